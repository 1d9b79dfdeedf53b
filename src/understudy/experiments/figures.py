"""Figures from stored curves. Nothing here trains."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers. The same N has the same colour
# everywhere; from light warm to dark cold as the window grows.
COLOURS = {
    1: "#E69F00",
    4: "#CC79A7",
    32: "#0072B2",
    128: "#009E73",
    256: "#56B4E9",
    "all": "#D55E00",
}
STYLES = {128: "--", 256: "-.", "all": ":"}  # where curves coincide, the one beneath shows
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def rooms(document: dict[str, Any], path: Path) -> None:
    """Three panels: mean over seeds, ± one standard deviation, the expert dashed."""
    sizes = [int(room) for room in document["expert"]]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * len(sizes), 3.2), layout="constrained")
        panels = figure.subplots(1, len(sizes), squeeze=False)[0]
        for panel, n in zip(panels, sizes, strict=True):
            expert = document["expert"][str(n)]
            panel.axhline(expert, color="black", linestyle="--", linewidth=1, label="expert")
            curves = [curve for curve in document["curves"] if curve["room"] == n]
            for N in dict.fromkeys(curve["N"] for curve in curves):
                of_N = [curve for curve in curves if curve["N"] == N]
                x = np.array(of_N[0]["interactions"])
                y = np.array([curve["return"] for curve in of_N])
                mean, std = y.mean(0), y.std(0)
                colour = COLOURS[N]
                panel.fill_between(x, mean - std, mean + std, color=colour, alpha=0.2, lw=0)
                panel.plot(
                    x, mean, STYLES.get(N, "-"), color=colour, linewidth=1.8, label=f"N = {N}"
                )
            panel.set_title(f"EmptyRoom {n}×{n}", fontsize=10)
            panel.set_xlabel("interactions")
            panel.set_xlim(0, max(curve["interactions"][-1] for curve in curves))
            panel.xaxis.set_major_formatter(lambda v, _: f"{v:,.0f}")
            panel.xaxis.set_major_locator(ticker.MaxNLocator(4, prune="upper"))
        panels[0].set_ylabel("return per episode")
        handles, labels = panels[0].get_legend_handles_labels()
        order = [*range(1, len(labels)), 0]
        figure.legend(
            [handles[i] for i in order],
            [labels[i] for i in order],
            loc="outside lower center",
            ncols=len(labels),
        )
        figure.savefig(path, dpi=200)

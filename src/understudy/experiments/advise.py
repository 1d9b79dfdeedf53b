"""`understudy advise`: the advisor's answer as a table, a terminal plot and a PNG."""

import math
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from rich.table import Table

from understudy.core.errors import UserError
from understudy.experiments import console, store
from understudy.experiments.figures import drawing
from understudy.theory import advisor
from understudy.theory.advisor import Advice
from understudy.theory.bounds import Sizes


def advise(
    S: int | None,
    A: int,
    H: int,
    K: int,
    B: int,
    out: Path | None,
    *,
    features: int | None = None,
) -> Advice:
    if (S is None) == (features is None):
        raise UserError("Give --states, or --features for a linear MDP: one of the two.")
    for value in (S, A, H, K, B, features):
        if value is not None and value > 10**30:
            raise UserError(f"{str(value)[:20]}… is too large a number to advise on.")
    advice = advisor.advise(Sizes(S=1 if S is None else S, A=A, H=H, K=K, B=B), features)
    if out is not None:
        if out.suffix != ".png":
            raise UserError(f"--out is {out}; give the name of a .png file.")
        with store.output_folder(out.parent), store.whole(out) as draft:
            draw(advice, draft)
    return advice


def show(advice: Advice) -> None:
    """Everything, on stderr."""
    console.err.print(table(advice))
    for line in plot(advice):
        console.err.print(line)
    size = advice.size
    console.err.print(
        f"\nN* = {advice.n_star['paper']:.2f} by the paper, {advice.n_star['sharp']:.2f} by the "
        f"sharper bound. Neither is advice: they balance an estimation error that holds for fresh "
        f"samples, not for reused ones. With what is proven the sum is least at N = 1; reuse pays "
        f"where it lets the reward be updated more often (docs/theory.md). With Eq. 5 regret is "
        f"sublinear for N = o(√K), √K = {math.sqrt(size.K):.0f}; with the leader for all data."
        f"\nStep sizes for K = {size.K:,}: sigma = {advice.sigma:.4g}, eta = {advice.eta:.4g}."
    )


def table(advice: Advice) -> Table:
    """The four terms of the bound against N, as printed and, where it differs, as proven."""
    theorem = "Thm 4.5" if advice.d is None else "the appendix's, linear MDPs"
    t = Table(title=f"Terms of the regret bound ({theorem}, constants dropped)")
    columns = (
        "N", "policy", "optimi- sation", "estimation", "shift", "estimation proven",
        "shift proven",
    )  # fmt: skip
    for column in columns:
        t.add_column(column, justify="right")
    paper = advice.terms["paper"]
    for i, N in enumerate(advice.windows):
        row = (
            paper["policy"],
            paper["optimisation"],
            paper["estimation"],
            paper["shift"],
            advice.terms["proven"]["estimation"],
            advice.terms["proven"]["shift"],
        )
        t.add_row(f"{N:,}", *(f"{term[i]:,.3g}" for term in row))
    return t


def plot(advice: Advice, width: int = 56) -> list[str]:
    """A small terminal plot: shift + estimation against N, both ways, logarithmic bars."""
    rows = []
    for kind in ("paper", "proven"):
        of_kind = advice.terms[kind]
        moving = [a + b for a, b in zip(of_kind["shift"], of_kind["estimation"], strict=True)]
        low, high = math.log(min(moving)), math.log(max(moving))
        best = min(range(len(moving)), key=moving.__getitem__)
        rows.append(
            f"{kind}: shift + estimation against N (log scale, least at N = {advice.windows[best]})"
        )
        for i, (N, value) in enumerate(zip(advice.windows, moving, strict=True)):
            share = (math.log(value) - low) / (high - low) if high > low else 0.0
            mark = " ◀" if i == best else ""
            rows.append(f"{N:>7,} {'█' * (1 + round(share * (width - 1)))} {value:.3g}{mark}")
    return rows


def draw(advice: Advice, path: Path) -> None:
    """The four terms against N, as the paper prints them and as they are proven, side by side."""
    colours = {
        "policy": "#0072B2",
        "optimisation": "#E69F00",
        "shift": "#D55E00",
        "estimation": "#009E73",
        "total": "#000000",
    }
    with matplotlib.rc_context(drawing.STYLE):
        figure = Figure(figsize=(7.6, 3.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, kind in zip(panels, ("paper", "proven"), strict=True):
            for name, values in advice.terms[kind].items():
                shown = [value if value > 0 else math.nan for value in values]  # N = 1: no shift
                panel.plot(
                    advice.windows,
                    shown,
                    color=colours[name],
                    label=name,
                    linewidth=1 if name == "total" else 1.8,
                    linestyle="--" if name == "total" else "-",
                )
            if kind == "paper":
                star = advice.n_star[kind]
                panel.axvline(star, color="grey", linewidth=1, linestyle=":")
                panel.annotate(
                    f"N* = {star:.2f}",
                    (star, 0.02),
                    xycoords=("data", "axes fraction"),
                    xytext=(4, 0),
                    textcoords="offset points",
                    color="dimgrey",
                )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlabel("policies reused, N")
            panel.set_title(
                "as printed (fresh samples)" if kind == "paper" else "proven for reused samples",
                fontsize=10,
            )
        panels[0].set_ylabel("regret bound, constants dropped")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.savefig(path, dpi=160)

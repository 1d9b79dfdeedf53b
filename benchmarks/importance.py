"""Reuse as it is, against importance-corrected reuse: what correction costs in variance.

    python benchmarks/importance.py     # prints two tables, draws docs/figures/importance.png

EmptyRoom 5×5, the paper's step sizes, one trajectory per iteration, 2,000 updates. First the error
of the estimated occupancy E‖d̂ − d_k‖², in closed form, from the policies of one run: its bias is
the shift, its variance the price of the ratios. Then the regret of whole runs, 10 seeds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from understudy.core import importance
from understudy.core import mdp as mdps
from understudy.core.mdp import MDP
from understudy.core.precision import double
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.figures.drawing import STYLE
from understudy.learners import tabular
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, imitate, plan, stack
from understudy.learners.seeds import keys_of
from understudy.learners.tabular import Problem

WINDOWS = (1, 2, 4, 8, 16, 32, 64)
MOMENTS = (70, 200, 1_000)  # updates done: hardly begun, half-way to the expert, there
LABELS = {"none": "reused as it is", "path": "path ratios", "marginal": "true marginal ratios"}
COLOURS = {"none": "#0072B2", "path": "#D55E00", "marginal": "#009E73"}
UPDATES, ROOM = 2_000, 5


def protocol(room: MDP) -> dict[str, Any]:
    """The paper's: ratios weigh the actions that were taken, and the last policy counts."""
    return {
        "batch": 1, "interactions": UPDATES * room.horizon, "steps": "paper",
        "visits": "sampled", "handed": "last",
    }  # fmt: skip


def latest_policies() -> dict[int, list[jnp.ndarray]]:
    """At each moment the policies of the widest window, newest first, from one run with N = 32."""
    room = empty_room(ROOM)
    problem = Problem(room, expert_occupancy(room, demonstrations(ROOM)))
    config = Config(window="32", ledger=False, **protocol(room))
    planned, keys = plan(room, config), keys_of([0])
    settings, shape = stack(planned.settings, 1), planned.protocol
    state, kept = tabular.start(problem, shape, keys=keys), {}
    for moment in MOMENTS:
        policies = []
        for k in range(moment - max(WINDOWS) + 1, moment + 1):
            marks = jnp.array([k], jnp.int32)
            state = tabular.advance(state, problem, settings, shape, marks, keys=keys).state
            policies.append(state.pi[0])
        kept[moment] = policies[::-1]
    return kept


@double
def errors(mdp: MDP, policies: list[jnp.ndarray], kind: str) -> list[tuple[float, float]]:
    """(bias², variance) of d̂, for each N: one trajectory of each of the N latest policies."""
    moment: dict[str, Callable] = {
        "none": lambda old, new: mdps.occupancy(mdp, old),
        "path": lambda old, new: importance.path_second_moment(mdp, old, new),
        "marginal": lambda old, new: importance.marginal_second_moment(mdp, old, new),
    }
    d = [mdps.occupancy(mdp, pi) for pi in policies[: max(WINDOWS)]]
    means = d if kind == "none" else [d[0]] * len(d)
    variances = [
        jnp.sum(moment[kind](old, policies[0]) - mean**2)
        for old, mean in zip(policies, means, strict=True)
    ]
    return [
        (
            float(jnp.sum((sum(means[:N]) / N - d[0]) ** 2)),
            float(sum(variances[:N])) / N**2,
        )
        for N in WINDOWS
    ]


def draw_error(panel: Axes, mdp: MDP, moment: int, policies: list[jnp.ndarray]) -> None:
    for kind, label in LABELS.items():
        bias, variance = np.array(errors(mdp, policies, kind)).T
        total = bias + variance
        panel.plot(WINDOWS, total, "o-", ms=3, color=COLOURS[kind], label=label)
        cells = " | ".join(f"{t:.3g}" for t in total)
        share = "" if kind != "none" else " (bias² " + ", ".join(f"{b:.2g}" for b in bias) + ")"
        print(f"| {moment} | {label}{share} | {cells} |", flush=True)
    panel.set_yscale("log")
    panel.set_title(f"error of d̂, {moment:,} updates", fontsize=10)


def draw_regret(panel: Axes) -> None:
    room, shown = empty_room(ROOM), demonstrations(ROOM)
    print("\n| N | correction | AIL regret | ± over seeds | shift | estimation |")
    print("|---:|---|---:|---:|---:|---:|")
    curves: dict[str, list[tuple[float, float]]] = {kind: [] for kind in LABELS}
    for N in WINDOWS:
        for kind, label in LABELS.items():
            config = Config(window=str(N), correction=kind, marks=1, **protocol(room))
            regret = imitate(room, shown, config, seeds=range(10)).regret
            ail = regret.ail[:, -1]
            curves[kind].append((ail.mean(), ail.std()))
            print(
                f"| {N} | {label} | {ail.mean():,.0f} | {ail.std():,.0f} | "
                f"{regret.shift[:, -1].mean():,.0f} | {regret.estimation[:, -1].mean():,.0f} |",
                flush=True,
            )
    for i, (kind, points) in enumerate(curves.items()):
        mean, std = np.array(points).T
        beside = np.array(WINDOWS) * 2 ** ((i - 1) / 8)  # so that no bar hides another
        panel.errorbar(beside, mean, std, color=COLOURS[kind], fmt="o-", ms=3, capsize=2)
    panel.set_title(f"AIL regret, {UPDATES:,} updates", fontsize=10)
    panel.set_ylim(0)


def main() -> None:
    print("| after | estimate | " + " | ".join(f"N = {N}" for N in WINDOWS) + " |")
    print("|---:|---|" + "---:|" * len(WINDOWS))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 3.3), layout="constrained")
        panels = figure.subplots(1, len(MOMENTS) + 1)
        for panel, (moment, policies) in zip(panels, latest_policies().items(), strict=False):
            draw_error(panel, empty_room(ROOM), moment, policies)
        draw_regret(panels[-1])
        for panel in panels:
            panel.set_xscale("log", base=2)
            panel.set_xticks(WINDOWS, [str(N) for N in WINDOWS])
            panel.set_xlabel("policies reused, N")
        panels[0].set_ylabel("E‖d̂ − d‖²")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.savefig(Path(__file__).parent.parent / "docs/figures/importance.png", dpi=160)


if __name__ == "__main__":
    main()

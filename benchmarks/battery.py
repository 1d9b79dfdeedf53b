"""The default against every fixed window and the leader, on 21 problems: regret, gap, interactions.

    python benchmarks/battery.py            # the battery; Markdown, half an hour on two cores
    python benchmarks/battery.py tuning     # the problems that the default was chosen on
    python benchmarks/battery.py bandit     # the default's regret against T, and its exponent
    python benchmarks/battery.py rooms      # Figure 1's rooms: interactions to 0.95
    python benchmarks/battery.py once       # the same with one new interaction an update, any N

Every column learns for 10,000 interactions, five seeds, P known. The AIL regret is counted an
interaction, so that columns which update less often are told apart by how they act: Σ over
interactions of ⟨μ*, d_E − d⟩. The gap is that of the policy handed out, and beside it of the last
iterate. The default takes its own occupancy from P; the columns beside it take it from samples, by
every fixed N with one new interaction an update, by every N with the equal estimation budget
(`equal`: 32 points an update, of which a window of N owes 32 // N anew), and by the leader. Two
more take it from P, but with steps that fall instead of adapting: the step and the leader.
`--rows` takes some of the rows alone, `--columns` some of the columns.
"""

import argparse
import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from problems import random_mdp

from understudy.core import mdp as mdps
from understudy.core.mdp import MDP
from understudy.core.precision import double
from understudy.core.types import Occupancy
from understudy.core.updates import paper_steps
from understudy.envs import catalog
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.experiments.sweeps import runner
from understudy.learners.config import Config
from understudy.learners.finite import expert_occupancy, expert_return, imitate, plan
from understudy.learners.loop import Run
from understudy.learners.tabular import Problem

T, SEEDS, WINDOWS = 10_000, (0, 1, 2, 3, 4), ("1", "4", "16", "64", "all")
NEAR = 0.95
NOTHING = 1e-4  # a gap below this is none, and so is a regret of 1 in 10,000: no ratio is formed


@double
def softmax_expert(mdp: MDP, temperature: float) -> Occupancy:
    """The occupancy of π ∝ exp(Q/τ), Q the soft-optimal values: a stochastic expert."""

    def backup(V: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        Q = mdps.at(mdp.reward, h) + mdps.expect(mdp, h, V)
        soft = temperature * jax.nn.logsumexp(Q / temperature, axis=-1)
        return soft, jax.nn.softmax(Q / temperature, axis=-1)

    stages = jnp.arange(mdp.horizon)
    return mdps.occupancy(mdp, jax.lax.scan(backup, jnp.zeros(mdp.states), stages, reverse=True)[1])


@double
def bandit(*p: float) -> Problem:
    """One state, one stage; the expert draws action a with probability p[a]."""
    A = len(p)
    mdp = mdps.build(
        np.zeros((1, 1, A, 1), int),
        np.ones((1, 1, A, 1)),
        horizon=1,
        nu=np.ones(1),
        reward=np.eye(A)[:1],
    )
    return Problem(mdp, jnp.asarray(p)[None, None])


def rooms(sizes: tuple[int, ...], temperature: float) -> Iterator[tuple[str, bool, Problem]]:
    for n in sizes:
        room = empty_room(n)
        yield f"room {n}×{n}", False, Problem(room, expert_occupancy(room, demonstrations(n)))
        yield f"room {n}×{n}, softmax", True, Problem(room, softmax_expert(room, temperature))


def toys(*named: tuple[str, int]) -> Iterator[tuple[str, bool, Problem]]:
    for env, horizon in named:
        mdp = catalog.find(env, horizon=horizon).mdp
        yield f"{env}, H = {horizon}", False, Problem(mdp, expert_occupancy(mdp, None))


def randoms(seeds: range, temperature: float) -> Iterator[tuple[str, bool, Problem]]:
    for seed in seeds:
        mdp = random_mdp(seed)
        yield f"random {seed}, softmax", True, Problem(mdp, softmax_expert(mdp, temperature))


def battery() -> Iterator[tuple[str, bool, Problem]]:
    """(name, whether the expert is stochastic, problem)."""
    yield "bandit (0.7, 0.3)", True, bandit(0.7, 0.3)
    yield "bandit (0.55, 0.45)", True, bandit(0.55, 0.45)
    yield from rooms((3, 5), 0.5)
    yield from randoms(range(10), 0.3)
    yield from toys(("FrozenLake-v1", 100), ("CliffWalking-v1", 100))
    yield from rooms((9,), 0.5)
    yield from toys(("FrozenLake8x8-v1", 200))


def tuning() -> Iterator[tuple[str, bool, Problem]]:
    """What the default was chosen on: none of these is in the battery."""
    yield "bandit (0.8, 0.2)", True, bandit(0.8, 0.2)
    yield "bandit (0.6, 0.3, 0.1)", True, bandit(0.6, 0.3, 0.1)
    yield from rooms((4, 7), 1.0)
    yield from toys(("FrozenLake-v1", 50), ("FrozenLake-v1", 150), ("CliffWalking-v1", 50))
    yield from toys(("FrozenLake8x8-v1", 100))
    yield from randoms(range(100, 104), 0.5)


def columns() -> dict[str, Config]:
    ours = Config(interactions=T)
    drawn = dataclasses.replace(ours, gradients="sampled")
    found = {
        "default": ours,
        "exact step": dataclasses.replace(ours, rewarder="step"),
        "exact leader": dataclasses.replace(ours, steps="anytime", rewarder="leader"),
    }
    for N in WINDOWS:
        found[f"N = {N}"] = dataclasses.replace(drawn, window=N)
        found[f"N = {N}, equal"] = dataclasses.replace(drawn, window=N, points=32)
    return {**found, "leader": dataclasses.replace(drawn, rewarder="leader")}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a column has on a row, means over seeds."""

    regret: float  # per interaction collected, summed
    gap: float
    last_gap: float
    reached: float  # interactions until the mean return first has 0.95 of the expert's
    last_reached: float


def cell(run: Run, job: runner.Job) -> Cell:
    seen = run.measured
    assert seen.regret is not None
    expert = expert_return(job.problem)
    enough = expert - (1 - NEAR) * abs(expert)

    def first(returns: np.ndarray) -> float:
        there = np.flatnonzero(np.asarray(returns).mean(0) >= enough)
        return float(job.plan.interactions[there[0]]) if len(there) else float("inf")

    def end(x: jax.Array) -> float:
        return float(np.asarray(x)[:, -1].mean())

    fresh = job.plan.protocol.fresh
    return Cell(
        regret=fresh * end(seen.regret.ail),
        gap=end(seen.gap),
        last_gap=end(seen.last_gap),
        reached=first(seen.returns),
        last_reached=first(seen.last_returns),
    )


def measure(name: str, problem: Problem, configs: dict[str, Config]) -> dict[str, Cell]:
    jobs = [  # a name each: shared programs would give every window the slots of the longest
        runner.Job((name, column), problem, plan(problem.mdp, c), SEEDS)
        for column, c in configs.items()
    ]
    done = runner.run_jobs(jobs, keep=lambda job, run: cell(run, job)).runs
    jax.clear_caches()  # or some hundred programs use up the memory maps of a process
    return dict(zip(configs, done, strict=True))


def compare(
    problems: Iterator[tuple[str, bool, Problem]], rows: list[str], wanted: list[str]
) -> None:
    """A row a problem, as each ends; below them the largest ratios."""
    heads = (
        "problem", "regret", "best other", "its regret", "ratio", "gap", "best other", "its gap",
        "ratio", "gap of the last iterate", "0.95 at", "last iterate's", "best other's",
    )  # fmt: skip
    print("| " + " | ".join(heads) + " |\n|---" + "|---:" * (len(heads) - 1) + "|")
    ratios: dict[str, list[float]] = {"regret": [], "gap": [], "of the last iterate": []}
    for name, stochastic, problem in problems:
        if rows and not any(row in name for row in rows):
            continue
        found = columns().items()
        chosen = {c: config for c, config in found if not wanted or c in ["default", *wanted]}
        cells = measure(name, problem, chosen)
        own = cells.pop("default")
        shown = [name]
        for what, digits in (("regret", ",.1f"), ("gap", ".4f")):
            best = min(cells, key=lambda c, what=what: getattr(cells[c], what))
            mine, least = getattr(own, what), getattr(cells[best], what)
            nothing = NOTHING * (T if what == "regret" else 1)
            ratio = None if max(mine, least) < nothing else mine / max(least, nothing)
            ratios[what] += [] if ratio is None else [ratio]
            told = "–" if ratio is None else f"{ratio:.2f}"
            shown += [f"{mine:{digits}}", best, f"{least:{digits}}", told]
        if stochastic and own.last_gap >= NOTHING:
            ratios["of the last iterate"].append(own.gap / own.last_gap)
        soonest = min(c.reached for c in cells.values())
        shown += [f"{own.last_gap:.3f}"]
        shown += [f"{x:,.0f}" for x in (own.reached, own.last_reached, soonest)]
        print("| " + " | ".join(shown) + " |", flush=True)
    print()
    for what, found in ratios.items():
        largest = f"{max(found):.3f}" if found else "none formed"
        print(f"Largest ratio, {what}: {largest}")


def grow() -> None:
    """The bandit's regret from T = 10⁴ to 10⁶."""
    ts, found = (10_000, 100_000, 1_000_000), []
    problem = bandit(0.7, 0.3)
    for t in ts:
        configs = {
            "default": Config(interactions=t, marks=1),
            "own probabilities": Config(interactions=t, marks=1, gradients="sampled"),
            "actions taken": Config(interactions=t, marks=1, visits="sampled"),
        }
        found.append({n: c.regret for n, c in measure("bandit", problem, configs).items()})
    for name in found[0]:
        regrets = np.array([row[name] for row in found])
        slope = np.polyfit(np.log(ts), np.log(np.maximum(regrets, NOTHING)), 1)[0]
        listed = ", ".join(f"{t:,}: {r:,.1f}" for t, r in zip(ts, regrets, strict=True))
        print(f"{name}: {listed}; exponent {slope:.2f}")


def figure_rooms() -> None:
    """Interactions to 0.95 in Figure 1's rooms: the default beside the equal budget's N = 32."""
    print("| room | N = 32, equal budget | default, last iterate | default, handed out |")
    print("|---|---:|---:|---:|")
    for name, stochastic, problem in rooms((3, 5, 9), 0.5):
        if stochastic:
            continue
        before = Config(
            window="32", points=32, steps="paper", visits="sampled", handed="last", marks=1000
        )
        cells = measure(name, problem, {"before": before, "default": Config(marks=1000)})
        old, own = cells["before"], cells["default"]
        print(
            f"| {name} | {old.reached:,.0f} | {own.last_reached:,.0f} | {own.reached:,.0f} |",
            flush=True,
        )


def every_interaction() -> None:
    """Figure 1's learner, but with one new interaction an update whatever N is."""
    shown = (200, 500, 1_000)
    print("| room | N | " + " | ".join(f"@{at:,}" for at in shown) + " |")
    print("|---|---:|" + "---:|" * len(shown))
    for n in (5, 9):
        room = empty_room(n)
        sigma, eta = paper_steps(room.horizon, T)
        for N in ("1", "4", "32", "all"):
            config = Config(
                interactions=1_000, window=N, steps="paper", sigma=sigma, eta=eta,
                visits="sampled", handed="last", ledger=False,
            )  # fmt: skip
            result = imitate(room, demonstrations(n), config, seeds=SEEDS)
            at = np.searchsorted(result.interactions, shown, side="right") - 1
            cells = " | ".join(f"{value:.2f}" for value in result.returns.mean(0)[at])
            print(f"| {n}×{n} | {N} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what",
        nargs="?",
        choices=["battery", "tuning", "bandit", "rooms", "once"],
        default="battery",
    )
    parser.add_argument(
        "--rows", nargs="*", default=[], help="problems whose name has one of these"
    )
    parser.add_argument(
        "--columns",
        nargs="*",
        default=[],
        choices=[c for c in columns() if c != "default"],
        help="these columns, beside the default",
    )
    asked = parser.parse_args()
    if asked.what in ("battery", "tuning"):
        compare({"battery": battery, "tuning": tuning}[asked.what](), asked.rows, asked.columns)
    else:
        {"bandit": grow, "rooms": figure_rooms, "once": every_interaction}[asked.what]()

"""`understudy train` and `understudy evaluate`: one run, its folder, and its policy."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from rich.table import Table

from understudy.core import linear_mdp
from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import MDP
from understudy.core.precision import double
from understudy.core.types import Occupancy
from understudy.demos import reading, rollout
from understudy.envs import catalog
from understudy.experiments import console, outcome, runs, standing, store
from understudy.learners.config import Config
from understudy.learners.finite import AnyProblem, Plan, expert_occupancy, imitate, plan, pose
from understudy.learners.linear import Rewards
from understudy.learners.seeds import check_seed
from understudy.learners.staged import TablePolicy

KIND = "tables"
Shown = Demonstrations | Occupancy | np.ndarray | None  # whom to imitate; None: the optimum


@dataclasses.dataclass(frozen=True)
class Expert:
    """Whom to imitate, as asked for; a run's folder keeps it."""

    demos: str | None = None
    expert: str = "auto"
    demonstrations: int | None = None


@dataclasses.dataclass(frozen=True)
class Learned:
    """A run with tables that has ended, and what is to be written of it."""

    request: dict[str, Any]
    summary: dict[str, Any]
    planned: Plan
    problem: AnyProblem
    outcome: outcome.Outcome

    def write(self, folder: Path) -> dict[str, Any]:
        """The run's folder; the summary as it says it."""
        summary = {**self.summary, "run": str(folder)}
        return outcome.record(
            folder, self.request, summary, self.planned, self.problem, self.outcome
        )


@double
def train(
    env: str,
    config: Config,
    asked: Expert = Expert(),  # noqa: B008 (frozen)
    *,
    horizon: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    features: str | None = None,
    rewards: Rewards = "ball",
    restart: bool = False,
) -> dict[str, Any]:
    """Learn, write the run's folder, and return its summary. With `restart`, what the folder holds
    of this run is moved aside first."""
    check_seed(seed)
    with exploring(env) as told:
        task = catalog.find(env, horizon=horizon, seed=seed, told=told)
    shown = choose_expert(task, asked, seed=seed)
    if features is None:
        rewards = task.rewards or rewards
    where = with_features(task, features)
    named: dict[str, Any] = dataclasses.asdict(asked)
    if features is not None:
        named |= {"features": features, "rewards": rewards}
    # The true expert is known only where its demonstrations were sampled here.
    truth = None
    if asked.demonstrations:
        truth = mdps.occupancy(task.mdp, mdps.optimum(task.mdp, task.mdp.reward)[0])
    if task.note:
        console.err.print(f"{task.name}: {task.note}")
    return in_folder(
        out or runs.default(task.name, seed),
        task,
        where,
        shown,
        config,
        request(task, config, seed, **named),
        truth=truth,
        rewards=rewards,
        restart=restart,
    )


@contextlib.contextmanager
def exploring(env: str) -> Iterator[Callable[[int], object]]:
    """A bar that appears where there is exploring to tell of."""
    with console.bar() as bar:
        states = bar.add_task(f"exploring {env}, states", total=None, visible=False)
        yield lambda n: bar.update(states, completed=n, visible=True)


def request(task: catalog.Task, config: Config, seed: int, **named: Any) -> dict[str, Any]:
    """The run's identity."""
    ordered: dict[str, Any] = {"env": task.name, "horizon": task.mdp.horizon, "seed": seed}
    if task.explored is not None:
        ordered["explored"] = task.explored
    features = {name: named.pop(name) for name in ("features", "rewards") if name in named}
    return {"kind": KIND, **ordered, **named, "config": dataclasses.asdict(config), **features}


def in_folder(
    out: Path,
    task: catalog.Task,
    where: MDP | LinearMDP,
    shown: Shown,
    config: Config,
    request: Mapping[str, Any],
    *,
    truth: Any = None,
    rewards: Rewards = "ball",
    restart: bool = False,
    progress: Callable[[int], object] = lambda n: None,
) -> dict[str, Any]:
    """Learn, and write the run's folder, but where it is there already."""
    planned = plan(where, config)
    with store.workplace(out), console.bar() as bar:
        if standing.prepare(out, request, restart=restart, tables=True) == "done":
            console.say(f"The run in {out} has ended already.")
            return runs.summary(out)
        total = planned.iterations * planned.protocol.fresh
        running = bar.add_task(f"{task.name}, interactions", total=total)

        def told(n: int) -> None:
            bar.update(running, completed=n)
            progress(n)

        learned = learn(
            task, where, shown, config, request, truth=truth, rewards=rewards, progress=told
        )
        return learned.write(out)


def learn(
    task: catalog.Task,
    where: MDP | LinearMDP,
    shown: Shown,
    config: Config,
    request: Mapping[str, Any],
    *,
    truth: Any = None,
    rewards: Rewards = "ball",
    progress: Callable[[int], object] | None = None,
) -> Learned:
    """Learn, and write nothing."""
    planned, seed = plan(where, config), request["seed"]
    d_E = expert_occupancy(task.mdp, numbered(shown, task.first))
    _, optimal_return = mdps.optimum(task.mdp, task.mdp.reward)
    begun = time.perf_counter()
    result = imitate(
        where, d_E, config, truth=truth, rewards=rewards, seeds=[seed], progress=progress
    )
    if not np.isfinite(result.policy).all():
        sizes = outcome.step_sizes(planned)
        steps = " and ".join(f"{n} {v:g}" for n, v in sizes.items()) or "steps that adapt"
        raise UserError(f"The policy became NaN with {steps}; use smaller steps.")
    only = outcome.Outcome(
        result.measured,
        result.policy,
        result.last_policy,
        result.reward,
    ).of(0)
    summary = {
        **outcome.ends(planned, only.measured),
        "expert_return": result.expert_return,
        "optimal_return": float(optimal_return),
        "interactions": planned.iterations * planned.protocol.fresh,
        "seed": seed,
        "seconds": round(time.perf_counter() - begun, 3),
        "env": task.name,
        "iterations": planned.iterations,
        **outcome.step_sizes(planned),
        **({} if task.first == (0, 0) else {"first": list(task.first)}),
    }
    return Learned(dict(request), summary, planned, pose(where, d_E, truth, rewards), only)


def numbered(shown: Shown, first: tuple[int, int]) -> Shown:
    """Demonstrations with the table's numbers, which begin at zero, for the environment's."""
    if not isinstance(shown, Demonstrations) or first == (0, 0):
        return shown
    return dataclasses.replace(
        shown,
        observations=[o - first[0] for o in shown.observations],
        actions=[a - first[1] for a in shown.actions],
    )


def with_features(task: catalog.Task, features: str | None) -> MDP | LinearMDP:
    """The MDP as it is, with features of its own, or with those that make it linear."""
    if features is None:
        return task.linear or task.mdp
    if features != "onehot":
        raise UserError(
            f"--features is '{features}'; where states can be counted give 'onehot'. Features of "
            f"your own go through understudy.core.linear_mdp."
        )
    return linear_mdp.one_hot(task.mdp)


def choose_expert(task: catalog.Task, asked: Expert, *, seed: int) -> Demonstrations | None:
    """The demonstrations to learn from; None stands for the optimal policy's exact occupancy."""
    if asked.demos is not None:
        if asked.expert != "auto" or asked.demonstrations is not None:
            raise UserError("--demos excludes --expert and --demonstrations; it is the expert.")
        return reading.read(asked.demos)
    if asked.demonstrations is not None:
        if not 1 <= asked.demonstrations <= 1_000_000:
            raise UserError(
                f"--demonstrations is {asked.demonstrations}; it must be from 1 to 1,000,000."
            )
        pi, _ = mdps.optimum(task.mdp, task.mdp.reward)
        return rollout.sample(task.mdp, np.asarray(pi), asked.demonstrations, seed=seed)
    if asked.expert == "handcrafted" and task.demonstrations is None:
        raise UserError(f"There are no handcrafted demonstrations of {task.name}; use optimal.")
    return None if asked.expert == "optimal" else task.demonstrations


@double
def evaluate(
    run: Path, *, episodes: int = 100, seed: int = 0, env: str | None = None
) -> dict[str, Any]:
    """The stored policy: its exact value in the table, and played in the real environment."""
    if episodes < 1:
        raise UserError(f"--episodes is {episodes}; it must be at least 1.")
    check_seed(seed)
    request, pi = load(run)
    request["env"] = runs.playable(run, request["env"], env)
    with exploring(request["env"]) as told:
        task = catalog.find(
            request["env"], horizon=request["horizon"], seed=request["seed"], told=told
        )
    refuse_renumbered(run, request, task)
    if pi.shape != task.mdp.shape:
        raise UserError(f"The policy has shape {pi.shape}, {task.name} has {task.mdp.shape}.")
    exact = float(mdps.value(task.mdp, jnp.asarray(pi), task.mdp.reward))
    if task.linear is not None:  # which is no Gymnasium environment
        drawn = rollout.sample(task.mdp, pi, episodes, seed=seed)
        played = drawn.returns
    else:
        played = play(task.name, pi, task.mdp.horizon, episodes, seed=seed)
    return {
        "run": str(run),
        "env": task.name,
        "return": exact,
        "expert_return": request["expert_return"],
        "episodes": episodes,
        "sampled_return": float(played.mean()),
        "sampled_std": float(played.std()),
        "seed": seed,
    }


def refuse_renumbered(run: Path, request: Mapping[str, Any], task: catalog.Task) -> None:
    """A policy of numbered states means nothing where they are numbered otherwise."""
    if (learned := request.get("explored")) not in (None, task.explored):
        raise UserError(
            f"The run {run} learned in other states than {task.name} has now ({learned!r:.40}, and "
            f"now {task.explored!r:.40}); name its own environment, or train again if the code of "
            f"that has changed since."
        )


def load(run: Path) -> tuple[dict[str, Any], np.ndarray]:
    """A run's request and policy, checked. No environment is asked."""
    config, file = run / "config.json", run / "policy.safetensors"
    asked = store.read_json(config, "The run's")
    kinds = {"env": str, "horizon": int, "seed": int}
    for name, kind in kinds.items():
        if not isinstance(asked.get(name), kind) or isinstance(asked.get(name), bool):
            raise UserError(f"{config} is not a run's config: '{name}' is {asked.get(name)!r}.")
    expert = runs.summary(run).get("expert_return")
    if isinstance(expert, bool) or not isinstance(expert, int | float) or not abs(expert) <= 1e15:
        raise UserError(f"{run / runs.MARKER} is not a run's: 'expert_return' is {expert!r}.")
    if not 1 <= asked["horizon"] <= 10**6:
        raise UserError(f"{config} has a horizon of {asked['horizon']}, which cannot be.")
    pi = runs.tensors(file, "The policy").get("policy")
    if pi is None or pi.ndim != 3 or pi.dtype.kind != "f" or pi.size == 0:
        raise UserError(f"{file} has no tensor 'policy' of shape (H, S, A).")
    if not (np.isfinite(pi).all() and (pi >= 0).all() and np.abs(pi.sum(-1) - 1).max() < 1e-6):
        raise UserError(f"{file} is not a policy: its rows must be probabilities that sum to one.")
    if len(pi) != asked["horizon"]:  # before an environment of that horizon is made
        raise UserError(f"{file} has {len(pi)} stages; {config} has {asked['horizon']}.")
    check_seed(asked["seed"])
    return {**asked, "expert_return": float(expert)}, pi


def policy(run: Path, env: str | None = None) -> TablePolicy:
    """A stored policy, to act with; it asks no environment."""
    asked, pi = load(run)
    first = runs.summary(run).get("first", [0, 0])
    if not (isinstance(first, list) and [type(x) for x in first] == [int, int]):
        raise UserError(f"{run / runs.MARKER} is not a run's: 'first' is {first!r:.60}.")
    return TablePolicy(pi, asked["env"], *first)


def play(env: str, pi: np.ndarray, horizon: int, episodes: int, *, seed: int) -> np.ndarray:
    """Returns of the stage-indexed policy in the Gymnasium environment itself."""
    rng = np.random.default_rng(seed)
    returns = np.zeros(episodes)
    with contextlib.closing(catalog.make(env, horizon=horizon)) as world, console.bar() as bar:
        for i in bar.track(range(episodes), description="episodes"):
            *_, returns[i] = rollout.play(world, pi, seed=seed + i, rng=rng)
    return returns


def summary_table(summary: dict[str, Any]) -> Table:
    """The few numbers a person wants, with the share of the expert's return."""
    t = Table(show_header=False)
    for name, value in summary.items():
        if name == "ledger":
            continue
        t.add_row(
            name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value)
        )
    if summary.get("expert_return", 0) > 0:  # a share of a loss would mislead
        t.add_row("return / expert", f"{summary['return'] / summary['expert_return']:.3f}")
    return t


VERDICT = {True: "yes", False: "NO", None: "-"}


def ledger_table(ledger: dict[str, Any]) -> Table:
    """Regret, term by term, beside the bounds."""
    t = Table(title="Regret ledger")
    for column in ("term", "measured", "paper's bound", "sharper bound", "holds"):
        t.add_column(column, justify="left" if column == "term" else "right")
    for name, row in ledger.items():
        shown = [row.get(key) for key in ("measured", "bound", "sharp_bound")]
        cells = ["-" if value is None else f"{value:,.4g}" for value in shown]
        t.add_row(name.replace("_", " "), *cells, VERDICT[row["holds"]])
    return t

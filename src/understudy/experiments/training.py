"""`understudy.train`: one call from an environment and demonstrations to a policy, whatever kind of
learner they are for."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import MDP
from understudy.core.precision import double
from understudy.demos import reading, shipped
from understudy.envs import catalog
from understudy.envs.catalog import Task
from understudy.envs.given import Given, given
from understudy.experiments import deep_run, kinds, runs, train_features, train_networks
from understudy.experiments import train_tables as tables
from understudy.experiments.kinds import FEATURES, NETWORKS, TABLES, Kind
from understudy.learners.config import Config, VectorConfig
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.learned_reward import Reward
from understudy.learners.seeds import check_seed
from understudy.learners.staged import FeaturePolicy, TablePolicy

AnyConfig = Config | VectorConfig | DeepConfig
Progress = Callable[[int, float | None], object]


@dataclass(frozen=True)
class Result:
    """What `train` has learned."""

    policy: Any
    """`policy.predict(observation, state, episode_start, deterministic)` answers `(action, state)`,
    as Stable-Baselines3's policies do."""
    interactions: np.ndarray
    """Where the policy was measured: (marks,)."""
    returns: np.ndarray
    """What it earned there: (marks,)."""
    expert_return: float
    """What the expert earns."""
    updates: np.ndarray
    """Updates made so far, at each mark."""
    gap: np.ndarray | None
    """With a table: the imitation gap sup_μ L(π, μ) of the policy at each mark; else None."""
    regret: dict[str, np.ndarray] | None
    """With a table: the regret at each mark, by term of the theorem; else None."""
    summary: dict[str, Any]
    """The numbers of the run's end."""
    _write: Callable[[Path], object]

    def save(self, folder: str | Path) -> Path:
        """Write the run to a folder, as `train(..., out=folder)` would have.

        Args:
            folder: A new one, or one that has no run in it.

        Returns:
            The folder, for `understudy.load_policy`, `understudy evaluate`, `watch` and `report`.
        """
        self._write(Path(folder))
        return Path(folder)


@double
def train(
    env: Any,
    demos: Any = None,
    config: AnyConfig | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | None = None,
    features: str | None = None,
    horizon: int | None = None,
    keys: Sequence[str] = (),
) -> Result:
    """Learn to act like an expert.

    Args:
        env: An environment's id, a Gymnasium environment (which is copied, and stays as it is), a
            function that makes one, an `MDP` or a `LinearMDP`.
        demos: The expert: a file or folder of demonstrations, `Demonstrations`, an occupancy
            (H, S, A) where `env` is finite; None for what ships with the package, or, where `env`
            is finite, for the optimal policy.
        config: A `Config` (tables), `VectorConfig` (features of vectors) or `DeepConfig`
            (networks), which chooses the kind of learner; None for the defaults of the kind that
            the environment's spaces are for.
        seed: Of all that is random.
        out: A folder for the run. Stopped, the same call goes on there; finished, it is read back.
            None writes nothing and resumes nothing.
        progress: Called now and then with the interactions so far, and with the return where it
            was measured.
        features: With a `VectorConfig`: 'fourier:ORDER' or 'radial:COUNT'; with a `Config`
            'onehot'.
        horizon: Steps per episode of a finite environment or with networks; the environment's own
            if not given.
        keys: With networks, of what is seen by name (a dictionary), only these parts, in this
            order; all of them, by name, if none is given.

    Returns:
        The policy, how it got there, and `save`.
    """
    check_seed(seed)
    if horizon is not None and not 1 <= horizon <= 10**9:
        raise UserError(f"The horizon is {horizon}; it must be at least 1.")
    kind = _kind(env, config, features)
    told = progress or (lambda n, gained: None)
    learn = {"tables": _tables, "features": _features, "networks": _networks}[kind.name]
    folder = None if out is None else Path(out)
    if keys and kind is not NETWORKS:
        raise UserError("Only networks choose among what is seen by name; leave keys out.")
    asked = Asked(env, demos, seed, folder, told, features, horizon, tuple(keys))
    return learn(asked, config or kind.config())


def load_policy(folder: str | Path, env: str | None = None) -> Any:
    """A stored run's policy, of whatever kind.

    Args:
        folder: The run's.
        env: The environment, where it is 'module:Class': a run's folder cannot name code to run.

    Returns:
        A policy with `predict(observation, state, episode_start, deterministic)`.
    """
    return kinds.of_run(Path(folder)).load(Path(folder), env)


def load_reward(folder: str | Path) -> Reward:
    """The reward that a stored run with networks has learned.

    Args:
        folder: The run's.

    Returns:
        A function of an observation and an action in the environment's own units, or of a batch of
        each. `understudy.LearnedReward(env, reward)` is an environment that pays it.
    """
    kind = kinds.of_run(Path(folder))
    if kind is not NETWORKS:
        raise UserError(
            f"The run {folder} is one with {kind.name}, whose reward is no function of vectors; of "
            f"a table it is 'reward' in policy.safetensors, by stage, state and action."
        )
    return train_networks.reward(Path(folder))


def _kind(env: Any, config: AnyConfig | None, features: str | None) -> Kind:
    if config is not None:
        return kinds.of_config(config)
    if isinstance(env, MDP | LinearMDP):
        return TABLES
    if isinstance(env, str):
        return kinds.of_env(env, features)
    with contextlib.closing(given(env).make(None)) as world:
        if catalog.shows_states(world):
            return TABLES
    return NETWORKS if features is None else FEATURES


def _shown(demos: Any, keys: Sequence[str] = ()) -> Any:
    """Demonstrations by their path, or as they are."""
    if not isinstance(demos, str | Path):
        return demos
    return reading.read(str(demos), keys if keys and reading.has_names(str(demos)) else ())


def _named(demos: Any) -> dict[str, Any]:
    """What a run's identity says of its demonstrations: the path, or what they hold."""
    if demos is None or isinstance(demos, str | Path):
        return {"demos": None if demos is None else str(demos)}
    if isinstance(demos, Demonstrations):
        held = (*demos.observations, *demos.actions, np.array(demos.terminated))
    else:
        held = (np.asarray(demos, float),)
    return {"demos": None, "demonstrated": train_networks.fingerprint(*held)}


# --- one kind each ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What `train` was asked, but for the config."""

    env: Any
    demos: Any
    seed: int
    out: Path | None
    told: Progress
    features: str | None
    horizon: int | None
    keys: tuple[str, ...] = ()


def _task(asked: Asked) -> Task:
    """A finite environment as a table."""
    env, seed = asked.env, asked.seed
    if isinstance(env, MDP | LinearMDP):
        if asked.horizon is not None:
            raise UserError("An MDP has its own horizon; leave horizon out.")
        if isinstance(env, LinearMDP):
            return Task("LinearMDP", env.mdp, linear=env)
        return Task("MDP", env)
    if isinstance(env, str):
        return catalog.find(env, horizon=asked.horizon, seed=seed)
    task: Given = given(env)
    with contextlib.closing(task.make(None)) as world:
        return catalog.of_env(world, task.name, horizon=asked.horizon, seed=seed)


def _tables(asked: Asked, config: Config) -> Result:
    task = _task(asked)
    where, shown = tables.with_features(task, asked.features), _shown(asked.demos)
    if shown is None:
        shown = task.demonstrations
    named: dict[str, Any] = {"expert": "auto", "demonstrations": None, **_named(asked.demos)}
    if asked.features is not None:
        named |= {"features": asked.features, "rewards": "ball"}
    if not isinstance(asked.env, str):  # whatever it is called, its table tells it
        arrays = [np.asarray(x) for x in jax.tree.leaves(task.mdp)]
        named["mdp"] = train_networks.fingerprint(*arrays)
    if not isinstance(asked.env, str | MDP | LinearMDP):
        named |= given(asked.env).named()
    request = tables.request(task, config, asked.seed, **named)

    def progress(n: int) -> None:
        asked.told(n, None)

    if asked.out is not None:
        tables.in_folder(asked.out, task, where, shown, config, request, progress=progress)
        pi = tables.load(asked.out)[1]
        return _read(asked.out, TablePolicy(pi, task.name, *task.first))
    learned = tables.learn(task, where, shown, config, request, progress=progress)
    seen = learned.outcome.measured
    return Result(
        policy=TablePolicy(learned.outcome.policy, task.name, *task.first),
        interactions=learned.planned.interactions,
        returns=np.asarray(seen.returns),
        expert_return=learned.summary["expert_return"],
        updates=learned.planned.marks,
        gap=np.asarray(seen.gap),
        regret=None if seen.regret is None else _terms(vars(seen.regret)),
        summary=learned.summary,
        _write=learned.write,
    )


def _terms(regret: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The terms of the regret, a number a mark each."""
    arrays = {term: np.asarray(values) for term, values in regret.items()}
    return {term: values for term, values in arrays.items() if values.ndim == 1}


def _features(asked: Asked, config: VectorConfig) -> Result:
    if asked.features is None:
        raise UserError("A VectorConfig needs features, such as train(..., features='fourier:2').")
    if asked.horizon is not None:
        raise UserError("The horizon is an option of VectorConfig; leave it out of train.")
    task = given(asked.env)
    with contextlib.closing(task.make(None)) as world:
        shown = _shown(asked.demos)
        if shown is None:
            shown = train_features.choose_expert(task.name, world, None, 10, seed=asked.seed)
        if not isinstance(shown, Demonstrations):
            raise UserError(
                f"The demonstrations are {type(shown).__name__}; features of vectors are learned "
                f"from a path or from understudy.Demonstrations."
            )
        named = {**_named(asked.demos), "demonstrations": 10, "seed": asked.seed, **task.named()}
        about = task.name, world, asked.features, shown, config
        if asked.out is not None:
            train_features.in_folder(asked.out, *about, progress=asked.told, **named)
            weights = runs.tensors(asked.out / "policy.safetensors", "The policy")["policy"]
            _, phi, farthest = train_features.prepare(*about, **named)
            shape = world.observation_space.shape or ()
            return _read(asked.out, FeaturePolicy(weights, phi, task.name, farthest, shape))
        learned = train_features.learn(*about, progress=asked.told, **named)
    return _result(learned.policy, learned.rows, learned.summary, learned.write)


def _networks(asked: Asked, config: DeepConfig) -> Result:
    if asked.features is not None:
        raise UserError("Networks learn their own features; leave features out.")
    task = given(asked.env, asked.keys)
    demos, shown = asked.demos, None
    if demos is None or isinstance(demos, str):
        shown = shipped.find(task.name, demos)
    if shown is None:
        shown = _shown(demos, asked.keys)
    if shown is None:
        raise UserError(
            f"There are no demonstrations of {task.name} in the package; give demos: a path, or "
            f"understudy.Demonstrations."
        )
    if not isinstance(shown, Demonstrations):
        raise UserError(
            f"The demonstrations are {type(shown).__name__}; networks learn from a path or from "
            f"understudy.Demonstrations."
        )
    path = str(asked.demos) if isinstance(asked.demos, str | Path) else None
    ready = train_networks.prepare(
        task,
        shown,
        config,
        demos=path,
        keys=asked.keys,
        horizon=asked.horizon,
        seed=asked.seed,
    )

    def tell(n: int, row: Mapping[str, Any] | None) -> None:
        asked.told(n, None if row is None else row["return"])

    run = ready.request, ready.begin, ready.stage, ready.schedule
    if asked.out is not None:
        deep_run.in_folder(asked.out, *run, expert_return=ready.expert_return, tell=tell)
        return _read(asked.out, train_networks.policy(asked.out))
    reached = deep_run.in_memory(*run, expert_return=ready.expert_return, tell=tell)
    write = functools.partial(deep_run.write, ready.request, reached)
    return _result(reached.policy, reached.rows, reached.summary, write)


def _read(out: Path, policy: Any) -> Result:
    """A finished run, from its folder."""
    return _result(policy, runs.metrics(out), runs.summary(out), functools.partial(runs.copy, out))


def _result(
    policy: Any,
    rows: Sequence[Mapping[str, Any]],
    summary: dict[str, Any],
    write: Callable[[Path], object],
) -> Result:
    """From the rows of its metrics."""
    regret = None
    if rows and "regret" in rows[0]:
        regret = _terms({t: [row["regret"][t] for row in rows] for t in rows[0]["regret"]})
    return Result(
        policy=policy,
        interactions=np.array([row["interactions"] for row in rows]),
        returns=np.array([row["return"] for row in rows]),
        expert_return=float(summary["expert_return"]),
        updates=np.array([row["updates"] for row in rows]),
        gap=np.array([row["gap"] for row in rows]) if rows and "gap" in rows[0] else None,
        regret=regret,
        summary=summary,
        _write=write,
    )

"""`understudy train --features` where observations are vectors: one run, its folder, its policy."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from understudy.core import vector_features as basis
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.core.vector_features import FeatureMap
from understudy.demos import reading, recording, scripted
from understudy.envs import catalog, wide_grid
from understudy.envs.given import given
from understudy.experiments import console, runs, standing, store
from understudy.learners import vectors
from understudy.learners.config import VectorConfig, as_option, check_vectors
from understudy.learners.seeds import check_seed
from understudy.learners.staged import FeaturePolicy

KIND = "features"
METHOD = "linear"
WIDER = 5.0  # times the demonstrations' range, where the space has no limits
GRID = "understudy/WideGrid-v0"


@dataclasses.dataclass(frozen=True)
class Learned:
    """A run on features that has ended, and what is to be written of it."""

    request: dict[str, Any]
    summary: dict[str, Any]
    rows: list[dict[str, Any]]  # of metrics
    policy: FeaturePolicy
    reward: np.ndarray

    def write(self, folder: Path) -> dict[str, Any]:
        """The run's folder; the summary as it says it."""
        summary = {**self.summary, "run": str(folder)}
        with runs.recording(folder, self.request) as draft:
            runs.append(draft, self.rows)
            runs.finish(draft, {"policy": self.policy.weights, "reward": self.reward}, summary)
        return summary


@double
def train(
    env: str,
    features: str,
    config: VectorConfig,
    *,
    demos: str | None = None,
    demonstrations: int = 10,
    seed: int = 0,
    out: Path | None = None,
    restart: bool = False,
) -> dict[str, Any]:
    """Learn, write the run's folder, and return its summary. With `restart`, what the folder holds
    of this run is moved aside first."""
    check_seed(seed)
    task = given(env)
    with contextlib.closing(task.make(None)) as world:
        shown = choose_expert(env, world, demos, demonstrations, seed=seed)
        return in_folder(
            out or runs.default(f"{env}-{METHOD}", seed),
            task.name,
            world,
            features,
            shown,
            config,
            seed=seed,
            restart=restart,
            demos=demos,
            demonstrations=demonstrations,
        )


def prepare(
    env: str,
    world: gymnasium.Env,
    features: str,
    shown: Demonstrations,
    config: VectorConfig,
    *,
    seed: int,
    **named: Any,
) -> tuple[dict[str, Any], FeatureMap, int]:
    """The run's identity, its features, and how far its policy can be played."""
    limit = world.spec.max_episode_steps if world.spec else None
    if limit is not None and config.horizon > limit:
        raise UserError(f"--horizon is {config.horizon}; episodes of {env} end at {limit}.")
    check_spaces(world)
    low, high = limits(world, shown)
    request = {
        "kind": KIND,
        "env": env,
        "horizon": config.horizon,
        "seed": seed,
        "method": METHOD,
        "features": features,
        "low": low.tolist(),
        "high": high.tolist(),
        **named,
        "config": dataclasses.asdict(config),
    }
    return request, feature_map(env, features, world, low, high), reach(config, limit)


def in_folder(
    out: Path,
    env: str,
    world: gymnasium.Env,
    features: str,
    shown: Demonstrations,
    config: VectorConfig,
    *,
    seed: int,
    restart: bool = False,
    progress: Callable[[int, float], object] = lambda n, mean: None,
    **named: Any,
) -> dict[str, Any]:
    """Learn, and write the run's folder, but where it is there already."""
    request, _, _ = prepare(env, world, features, shown, config, seed=seed, **named)
    with store.workplace(out), console.bar() as bar:
        if standing.prepare(out, request, restart=restart, tables=True) == "done":
            console.say(f"The run in {out} has ended already.")
            return runs.summary(out)
        running = bar.add_task(f"{env}, interactions", total=config.interactions)

        def told(done: int, mean: float) -> None:
            name = f"{env}, interactions (return {mean:.1f})"
            bar.update(running, completed=done, description=name)
            progress(done, mean)

        learned = learn(env, world, features, shown, config, seed=seed, progress=told, **named)
        return learned.write(out)


def learn(
    env: str,
    world: gymnasium.Env,
    features: str,
    shown: Demonstrations,
    config: VectorConfig,
    *,
    seed: int,
    progress: Callable[[int, float], object] = lambda n, mean: None,
    **named: Any,
) -> Learned:
    """Learn, and write nothing."""
    request, phi, farthest = prepare(env, world, features, shown, config, seed=seed, **named)
    begun = time.perf_counter()
    result = vectors.imitate(world, phi, shown, config, seed=seed, progress=progress)
    played = vectors.play(world, phi, result.policy, horizon=farthest, episodes=20, seed=seed)
    summary = {
        "return": float(played.mean()),
        "expert_return": float(shown.returns.mean()),
        "interactions": int(result.interactions[-1]),
        "iterations": len(result.returns),
        "features": phi.size,
        "seed": seed,
        "seconds": round(time.perf_counter() - begun, 3),
        "env": env,
    }
    rows = [
        {"interactions": int(n), "updates": k, "return": float(r)}
        for k, (n, r) in enumerate(zip(result.interactions, result.returns, strict=True), 1)
    ]
    shape = world.observation_space.shape or ()
    policy = FeaturePolicy(result.policy, phi, env, farthest, shape)
    return Learned(request, summary, rows, policy, result.reward)


@double
def load(run: Path, env: str | None = None) -> tuple[FeaturePolicy, float]:
    """A finished run's policy, checked, and its expert's return. `env` is the user's word for the
    environment."""
    asked, told = store.read_json(run / "config.json", "The run's"), runs.summary(run)
    try:
        given = {k: as_option(k, v, VectorConfig) for k, v in dict(asked["config"]).items()}
        config = VectorConfig(**given)
        check_vectors(config)
        low, high = np.asarray(asked["low"], float), np.asarray(asked["high"], float)
        named, features, expert = str(asked["env"]), str(asked["features"]), told["expert_return"]
        expert = float(expert)
        if not (math.isfinite(expert) and (low < high).all() and np.isfinite(high - low).all()):
            raise ValueError("its limits or its expert cannot be")
    except (KeyError, TypeError, ValueError, OverflowError, UserError) as error:
        raise UserError(f"The run {run} is not one of ours or is damaged ({error}).") from None
    env = runs.playable(run, named, env)
    policy = runs.tensors(run / "policy.safetensors", "The policy").get("policy")
    with contextlib.closing(catalog.make(env)) as world:
        check_spaces(world)
        if low.shape != world.observation_space.shape or high.shape != low.shape:
            raise UserError(f"The limits in {run / 'config.json'} do not fit {env}.")
        phi = feature_map(env, features, world, low, high)
        limit = world.spec.max_episode_steps if world.spec else None
    wanted = (1 if config.stages == "shared" else config.horizon, phi.size + 1)
    if policy is None or policy.shape != wanted or policy.dtype.kind != "f":
        raise UserError(f"The policy of {run} has no weights for {phi.size} features.")
    if not (np.abs(policy) <= 1e30).all():
        raise UserError(f"The policy of {run} has weights that are NaN or infinite.")
    return FeaturePolicy(policy, phi, env, reach(config, limit), low.shape), expert


def policy(run: Path, env: str | None = None) -> FeaturePolicy:
    """A stored policy, to act with."""
    return load(run, env)[0]


def reach(config: VectorConfig, limit: int | None) -> int:
    """How long an episode of the policy can be: as the task's, where its stages share weights."""
    return limit if limit and config.stages == "shared" else config.horizon


@double
def evaluate(run: Path, *, episodes: int, seed: int, env: str | None = None) -> dict[str, Any]:
    """Play the stored policy."""
    if episodes < 1:
        raise UserError(f"--episodes is {episodes}; it must be at least 1.")
    check_seed(seed)
    policy, expert_return = load(run, env)
    with contextlib.closing(catalog.make(policy.env)) as world:
        played = vectors.play(
            world,
            policy.phi,
            policy.weights,
            horizon=policy.horizon,
            episodes=episodes,
            seed=seed,
        )
    return {
        "run": str(run),
        "env": policy.env,
        "return": float(played.mean()),
        "return_std": float(played.std()),
        "expert_return": expert_return,
        "episodes": episodes,
        "seed": seed,
    }


def choose_expert(
    env: str, world: gymnasium.Env, demos: str | None, episodes: int, *, seed: int
) -> Demonstrations:
    """The demonstrations to learn from: a file's, or those of an expert that we have."""
    if demos is not None:
        return reading.read(demos)
    if not 1 <= episodes <= 10_000:
        raise UserError(f"--demonstrations is {episodes}; it must be from 1 to 10,000.")
    if env == GRID:
        return scripted.across_the_wide_grid(world.unwrapped.size, episodes, seed=seed)  # type: ignore
    act: Callable[..., Any] | None = scripted.EXPERTS.get(env)
    if act is None:
        known = ", ".join([*scripted.EXPERTS, GRID])
        raise UserError(f"There is no expert of {env} here ({known} have one); give --demos.")
    apart = seed + 10_000  # from the learner's own
    return recording.record(world, recording.acting(act), episodes, seed=apart)


def check_spaces(world: gymnasium.Env) -> None:
    """Vectors to see, and a choice to make."""
    space, actions = world.observation_space, world.action_space
    if not isinstance(space, Box) or len(space.shape) != 1:
        raise UserError(
            f"The environment has observations {space}; --features needs a Box of one axis, or "
            f"'onehot' where states can be counted."
        )
    if not isinstance(actions, Discrete) or actions.start != 0:
        raise UserError(f"The environment has actions {actions}; --features needs Discrete ones.")


def limits(world: gymnasium.Env, demos: Demonstrations) -> tuple[np.ndarray, np.ndarray]:
    """The box that a basis covers: the space's, and where that has no end, some times the range of
    the demonstrations about their middle."""
    space: Any = world.observation_space
    seen = np.concatenate(demos.observations).astype(float)
    if seen.ndim != 2 or seen.shape[1:] != space.shape:
        raise UserError(
            f"The demonstrations have observations of shape {seen.shape[1:]}, the environment "
            f"has {space.shape}."
        )
    middle = (seen.max(0) + seen.min(0)) / 2
    half = WIDER * np.maximum(np.ptp(seen, axis=0) / 2, 1e-6)
    bounded = (np.abs(space.low) < 1e6) & (np.abs(space.high) < 1e6)
    low = np.where(bounded, space.low, middle - half)
    return low, np.where(bounded, space.high, middle + half)


def feature_map(
    env: str, features: str, world: gymnasium.Env, low: np.ndarray, high: np.ndarray
) -> FeatureMap:
    """φ by its name."""
    actions: Any = world.action_space
    if features == "knots" and env == GRID:
        return wide_grid.features(world.unwrapped.size)  # type: ignore
    return basis.parse(features, low, high, int(actions.n))

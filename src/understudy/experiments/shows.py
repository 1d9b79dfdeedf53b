"""How a stored policy is shown, by its kind: where it plays, how fast, how it acts."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from understudy.core.errors import UserError
from understudy.demos import rollout
from understudy.envs import catalog, numbered
from understudy.envs.guard import calling
from understudy.experiments import runs, train_features, train_networks, train_tables
from understudy.learners import vectors

SMOOTH = 25  # frames a second that a film of a moving world wants


@dataclass(frozen=True)
class Show:
    """A stored policy, and how to film it."""

    env: str
    horizon: int | None
    play: Callable[[gymnasium.Env, int], Iterator[float]]  # episode i: the return after each step
    stride: int = 1  # steps per frame
    fps: int = 8
    longest: int | None = None  # frames per episode; what comes after is played, not filmed
    keys: tuple[str, ...] = ()  # what it sees by name, if only some of it


def of_features(run: Path, seed: int, seconds: int, env: str | None) -> Show:
    """A policy on features of vectors, a frame a step."""
    policy, _ = train_features.load(run, env)
    rng = np.random.default_rng([seed, 3])  # as `vectors.play`

    def play(world: gymnasium.Env, i: int) -> Iterator[float]:
        return vectors.episode(
            world, policy.phi, policy.weights, horizon=policy.horizon, seed=seed + i, rng=rng
        )

    return Show(policy.env, None, play, fps=SMOOTH, longest=seconds * SMOOTH)


def of_a_table(run: Path, seed: int, seconds: int, env: str | None) -> Show:
    """A tabular policy, step by step."""
    request, pi = train_tables.load(run)
    request["env"] = runs.playable(run, request["env"], env)
    rng = np.random.default_rng(seed)
    with contextlib.closing(catalog.make(request["env"], horizon=len(pi))) as plain:
        states, actions = plain.observation_space, plain.action_space
        if (known := numbered.inside(plain)) is not None:
            train_tables.refuse_renumbered(run, request, catalog.of_numbered(known))
    if not (isinstance(states, Discrete) and isinstance(actions, Discrete)):
        raise UserError(f"Environment {request['env']} is not discrete, but the run's policy is.")
    if actions.n != pi.shape[2] or states.n > pi.shape[1]:
        raise UserError(
            f"The policy has {pi.shape[1]} states and {pi.shape[2]} actions, "
            f"{request['env']} has {states.n} and {actions.n}."
        )

    def play(world: gymnasium.Env, i: int) -> Iterator[float]:
        return rollout.play(world, pi, seed=seed + i, rng=rng)

    return Show(request["env"], len(pi), play)


def of_networks(run: Path, seed: int, seconds: int, env: str | None) -> Show:
    """A deep policy, deterministic, in the time of its world."""
    policy, env, horizon, keys = train_networks.stored(run, env)
    with contextlib.closing(catalog.make(env, horizon=horizon, keys=keys)) as plain:
        pace = pace_of(plain, env)
    stride = max(1, round(pace / SMOOTH))
    fps = max(1, pace // stride)

    def play(world: gymnasium.Env, i: int) -> Iterator[float]:
        return rollout.follow(world, policy.predict, seed=seed + i)

    return Show(env, horizon, play, stride, fps, longest=seconds * fps, keys=keys)


def pace_of(world: gymnasium.Env, env: str) -> int:
    """Frames a second that the environment draws, if it says so."""
    with calling(f"Environment {env} cannot be watched; its render_fps is no number"):
        return min(max(1, int(world.metadata.get("render_fps") or SMOOTH)), 1_000)

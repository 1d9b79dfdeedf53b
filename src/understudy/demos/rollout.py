"""A policy at work: whole episodes sampled in a table, or played in the environment itself."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.mdp import MDP, at
from understudy.envs.guard import guarded


def sample(mdp: MDP, pi: np.ndarray, episodes: int, *, seed: int) -> Demonstrations:
    """`episodes` episodes of H steps each, acting with π."""
    rng = np.random.default_rng([seed, 1])  # apart from the learner's own draws
    table = [
        tuple(np.asarray(at(x, h)) for x in (mdp.succ, mdp.prob, mdp.reward))
        for h in range(mdp.horizon)
    ]
    observations, actions, rewards = [], [], []
    for _ in range(episodes):
        states, taken, gained = [int(rng.choice(mdp.states, p=np.asarray(mdp.nu)))], [], []
        for h, (succ, prob, reward) in enumerate(table):
            s = states[-1]
            a = int(rng.choice(mdp.actions, p=pi[h, s]))
            taken.append(a)
            gained.append(float(reward[s, a]))
            states.append(int(rng.choice(succ[s, a], p=prob[s, a])))
        observations.append(np.array(states))
        actions.append(np.array(taken))
        rewards.append(np.array(gained))
    return Demonstrations(observations, actions, rewards, [False] * episodes)


def play(
    world: gymnasium.Env, pi: np.ndarray, *, seed: int, rng: np.random.Generator
) -> Iterator[float]:
    """One episode of the stage-indexed π, at most H steps: the return so far, first after the
    reset (zero) and then after each step. The world stands still between two of them."""
    world = guarded(world)
    first_state = int(getattr(world.observation_space, "start", 0))
    first_action = int(getattr(world.action_space, "start", 0))
    s, _ = world.reset(seed=seed)
    gained = 0.0
    yield gained
    for at_h in pi:
        action = int(rng.choice(pi.shape[2], p=at_h[int(s) - first_state]))
        s, r, terminated, truncated, _ = world.step(action + first_action)
        gained += float(r)
        yield gained
        if terminated or truncated:
            return


def follow(
    world: gymnasium.Env, predict: Callable[..., tuple[Any, Any]], *, seed: int
) -> Iterator[float]:
    """One episode of a policy that is asked as Stable-Baselines3's are, deterministically: the
    return so far, as `play` yields it."""
    world = guarded(world)
    obs, _ = world.reset(seed=seed)
    gained, state, over = 0.0, None, False
    yield gained
    while not over:
        action, state = predict(obs, state, deterministic=True)
        if not np.isfinite(action).all():
            raise UserError(
                "The policy's action became NaN; the policy is damaged or has diverged."
            )
        obs, r, terminated, truncated, _ = world.step(action)
        gained, over = gained + float(r), terminated or truncated
        yield gained

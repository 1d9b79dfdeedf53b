"""Demonstrations of a policy in a table: whole episodes, sampled."""

import numpy as np

from understudy.demos.demonstrations import Demonstrations
from understudy.mdp import MDP, at


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

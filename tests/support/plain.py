"""The on- and off-policy tabular learner as a plain NumPy loop, written from the paper alone.

It shares no code with the package: it is what a reader would write first, and the reference that
the compiled learner is timed against and checked against. Deterministic moves, known transitions,
one start state, equal estimation budget.
"""

from collections.abc import Callable

import numpy as np

Draws = Callable[[int], tuple[np.ndarray, np.ndarray]]  # k -> uniforms for actions, for points


def learn(
    succ: np.ndarray,  # (S, A)
    d_E: np.ndarray,  # (H, S, A)
    *,
    start: int,
    N: int,
    m: int,
    fresh: int,
    sigma: float,
    eta: float,
    iterations: int,
    draws: Draws,
) -> tuple[np.ndarray, np.ndarray]:
    """π and μ after the given iterations."""
    H, S, A = d_E.shape
    logits = np.zeros((H, S, A))
    mu = np.zeros((H, S, A))
    pi = np.full((H, S, A), 1 / A)
    window: list[list[tuple[int, int, int]]] = []
    h, s = 0, start
    for k in range(1, iterations + 1):
        u_actions, u_points = draws(k)
        segment = []
        for u in u_actions:
            cdf = np.cumsum(pi[h, s])
            a = int(np.searchsorted(cdf, u * cdf[-1], side="right"))
            segment.append((h, s, a))
            h, s = h + 1, succ[s, a]
            if h == H:
                h, s = 0, start
        if len(window) < N:
            window.append(segment)
        else:
            window[(k - 1) % N] = segment

        points = [point for segment in window for point in segment]
        taken = np.array(points)[((np.arange(m) + u_points) / m * len(points)).astype(int)]
        d_mix = np.zeros((H, S, A))
        np.add.at(d_mix, tuple(taken.T), H / m)

        mu = np.clip(mu + eta * (d_E - d_mix), 0, 1)

        V = np.zeros(S)
        Q = np.empty((H, S, A))
        for stage in range(H - 1, -1, -1):
            Q[stage] = np.minimum(mu[stage] + V[succ], H - stage)
            V = (pi[stage] * Q[stage]).sum(-1)

        logits += sigma * Q
        logits -= logits.max(-1, keepdims=True)
        pi = np.exp(logits)
        pi /= pi.sum(-1, keepdims=True)
    return pi, mu


def value(pi: np.ndarray, succ: np.ndarray, reward: np.ndarray, start: int) -> float:
    """J(π, r) by walking the state distribution forwards."""
    nu = np.zeros(len(succ))
    nu[start] = 1
    total = 0.0
    for stage in pi:
        d = nu[:, None] * stage
        total += (d * reward[:, None]).sum()
        nu = np.zeros(len(succ))
        np.add.at(nu, succ, d)
    return total

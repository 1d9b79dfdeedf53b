"""SlipperyRoom n×n: the room of the paper's own code, which is not the room of its text.

Facts read off github.com/fairytale9/off_policy_ail_minigrid: four actions and no stay; with
probability 0.1 a move stays where it is; the reward is 1 for every step that ends at the goal and 0
elsewhere; H = 3n. The expert goes right or down, whichever a coin says, and shows four episodes.
Rewards are φᵀμ_h on eight random features, φ(s,a) = x_s + y_a with all entries uniform in [−1, 1],
and μ_h in [−1, 1]⁸. They are drawn once, and so are the episodes: both are part of the task, and
`SlipperyRoom-9x9-seed3` has others than `SlipperyRoom-9x9`, whose seed is 0.

States are numbered as in EmptyRoom; reaching the goal does not end the episode.
"""

import numpy as np

from understudy.core import linear_mdp
from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.core.linear_mdp import LinearMDP
from understudy.core.mdp import MDP
from understudy.envs.empty_room import check_size, moved

MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
UP, RIGHT, DOWN, LEFT = range(4)
SLIP = 0.1
FEATURES, SHOWN = 8, 4


def slippery_room(n: int, *, seed: int = 0, horizon: int | None = None) -> LinearMDP:
    """The n×n room with features of its own, H = 3n unless given."""
    mdp, rng = table(n, horizon=horizon), np.random.default_rng([seed, n, 0])
    x = rng.uniform(-1, 1, (n * n, 1, FEATURES)) + rng.uniform(-1, 1, (1, len(MOVES), FEATURES))
    return linear_mdp.of_features(mdp, x, any_length=True)


def table(n: int, *, horizon: int | None = None) -> MDP:
    """Its transitions and its own reward, that of the state a move ends in, in the mean."""
    check_size(n)
    S = n * n
    stay = np.broadcast_to(np.arange(S)[:, None], (S, len(MOVES)))
    ends = np.array([[moved(n, s, by) for by in MOVES.values()] for s in range(S)])
    slip = np.where(ends == stay, 0.0, SLIP)  # at a wall it stays in any case
    return mdps.build(
        np.stack([ends, stay], axis=-1)[None],
        np.stack([1 - slip, slip], axis=-1)[None],
        horizon=3 * n if horizon is None else horizon,
        nu=np.eye(S)[0],
        reward=(ends == S - 1) * (1 - slip) + (stay == S - 1) * slip,
    )


def expert(n: int, *, horizon: int | None = None) -> np.ndarray:
    """π_E: right or down, either with probability ½; along the last row or column, on to the
    goal; and down at the goal, where it is."""
    row, column = np.divmod(np.arange(n * n), n)
    right = np.where(column == n - 1, 0.0, np.where(row == n - 1, 1.0, 0.5))
    pi = np.zeros((n * n, len(MOVES)))
    pi[:, RIGHT], pi[:, DOWN] = right, 1 - right
    return np.broadcast_to(pi, (3 * n if horizon is None else horizon, *pi.shape)).copy()


def demonstrations(n: int, *, seed: int = 0, horizon: int | None = None) -> Demonstrations:
    """The four episodes that the expert shows."""
    rng = np.random.default_rng([seed, n, 1])
    pi, ends = expert(n, horizon=horizon), table(n, horizon=horizon)
    succ, slips, reward = (np.asarray(x[0]) for x in (ends.succ, ends.prob[..., 1], ends.reward))
    observations, actions, rewards = [], [], []
    for _ in range(SHOWN):
        states, taken, gained = [0], [], []
        for at_h in pi:
            s = states[-1]
            a = int(rng.choice(len(MOVES), p=at_h[s]))
            taken.append(a)
            gained.append(float(reward[s, a]))
            states.append(int(succ[s, a, int(rng.random() < slips[s, a])]))
        observations.append(np.array(states))
        actions.append(np.array(taken))
        rewards.append(np.array(gained))
    return Demonstrations(observations, actions, rewards, [False] * SHOWN)

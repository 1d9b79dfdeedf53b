"""Acting in the simulator: what a run collects and keeps, and episodes of a policy."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from understudy.core.importance import Correction
from understudy.core.mdp import MDP
from understudy.core.occupancy import Points
from understudy.core.types import Policy
from understudy.core.updates import Player, Rewarder
from understudy.core.window import Shape

# From samples of the window's policies; their true mixture, which needs the ledger; or what the
# counted model makes of the current policy.
Gradients = Literal["sampled", "exact", "modelled"]


@dataclass(frozen=True)
class RunShape:
    """The shapes of a run: what is collected and kept. Runs of one batch share them.

    Each iteration, `lanes` walkers take `steps` steps each, starting anew whenever an episode
    ends. B whole trajectories are B lanes of H steps; `fresh` interactions are one lane of
    `fresh` steps, whose episode then goes on under the next policies.
    """

    lanes: int
    steps: int
    slots: int  # segments kept, at least the largest N(k)
    points: int | None  # m sampled per reward update; None: all
    rounds: int | None  # steps of both players on one Q; None: the paper's order, one of each
    player: Player  # how the policy moves
    known: bool  # P known, or counted
    shared_counts: bool  # counts shared across stages
    stationary_reward: bool
    beta: Shape  # the shape of β
    keeps_all: bool  # no policy ever leaves the window
    ledger: bool  # keep the regret ledger
    correction: Correction  # importance ratios for old samples, a comparison
    gradients: Gradients  # of the reward: where d_mix comes from
    rewarder: Rewarder  # how the reward moves
    anytime: bool  # step sizes fall as 1/√k
    adaptive: bool  # both players adapt theirs, and guess
    expected: bool  # of a visited state, all actions count by their probability
    mixture: bool  # keep the averages that a policy is handed out from
    episodes: int  # sampled per measurement; 0: returns are exact
    replay: bool  # keep a glimpse at every mark

    @property
    def fresh(self) -> int:
        """Interactions per iteration."""
        return self.lanes * self.steps


class Walkers(eqx.Module):
    """Where each lane's episode stands."""

    h: Int[Array, " lanes"]
    s: Int[Array, " lanes"]


def practise(
    mdp: MDP,
    pi: Policy,
    walkers: Walkers,
    protocol: RunShape,
    owed: Int[Array, ""] | None = None,
    *,
    key: Key[Array, ""],
) -> tuple[Points, Int[Array, " fresh"], Walkers]:
    """Act with π: the points visited, the place of each successor in its row, and who is where.

    Of the `steps` there is room for only those `owed` are taken, where a program is shared by runs
    that owe different numbers; the rest means nothing. The draws of a step are the same either way.
    """
    u = jax.random.uniform(key, (protocol.steps, 3, protocol.lanes))

    def move(at: Walkers, u: Array) -> tuple[Walkers, tuple[Points, Array]]:
        a = draw(pi[at.h, at.s], u[0])
        row = (jnp.zeros_like(at.h) if mdp.prob.shape[0] == 1 else at.h, at.s, a)
        slot = draw(mdp.prob[row], u[1])
        over = at.h + 1 == mdp.horizon
        s = jnp.where(over, draw(mdp.nu, u[2]), mdp.succ[(*row, slot)])
        return Walkers(jnp.where(over, 0, at.h + 1), s), (Points(at.h, at.s, a), slot)

    if owed is None:
        walkers, (points, slot) = jax.lax.scan(move, walkers, u)
    else:

        def note(i: Array, so_far: tuple[Walkers, Any]) -> tuple[Walkers, Any]:
            walkers, seen = move(so_far[0], u[i])
            return walkers, jax.tree.map(lambda all, x: all.at[i].set(x), so_far[1], seen)

        none = jnp.zeros((protocol.steps, protocol.lanes), jnp.int32)
        nothing = Points(none, none, none), none
        walkers, (points, slot) = jax.lax.fori_loop(0, owed, note, (walkers, nothing))
    flat = jax.tree.map(lambda x: x.reshape(-1), (points, slot))
    return *flat, walkers


def draw(p: Float[Array, "*lanes n"], u: Float[Array, " lanes"]) -> Int[Array, " lanes"]:
    """Sample from each row of p (or from the one p) by inverse transform."""
    ends = jnp.cumsum(p, axis=-1)
    return jnp.sum(ends <= (u * ends[..., -1])[:, None], axis=-1, dtype=jnp.int32)


def sampled_return(mdp: MDP, pi: Policy, protocol: RunShape, *, key: Array) -> Array:
    """The mean return of some episodes, as the paper measures."""
    episodes = protocol.episodes
    starting, acting = jax.random.split(key)
    s = draw(mdp.nu, jax.random.uniform(starting, (episodes,)))
    walkers = Walkers(h=jnp.zeros(episodes, jnp.int32), s=s)
    whole = dataclasses.replace(protocol, lanes=episodes, steps=mdp.horizon)
    points, _, _ = practise(mdp, pi, walkers, whole, key=acting)
    stage = points.h if mdp.reward.shape[0] > 1 else 0
    return jnp.sum(mdp.reward[stage, points.s, points.a]) / episodes

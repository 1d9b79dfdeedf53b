"""The learner on features with several steps on one Q: an iteration of the authors' public code.

Where the paper moves the reward and then evaluates the policy, their code evaluates the policy by
the reward of the iteration before, and then both players move, four times in turn: the policy by
that same Q, and μ_h of every stage against some of the state-actions that the window holds of that
stage, drawn without replacement. Before there are as many as are to be drawn, both wait.

(Read off github.com/fairytale9/off_policy_ail_minigrid; docs/tabular.md has what it shows.)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from understudy.core import draws, features
from understudy.core import mdp as mdps
from understudy.core import mixture as mixtures
from understudy.core import occupancy as occupancies
from understudy.core import window as windows
from understudy.core.adaptive import PROJECT
from understudy.core.features import Features
from understudy.core.model import Known, evaluate
from understudy.core.occupancy import Points
from understudy.core.updates import ascend, mirror, policy
from understudy.core.window import Window
from understudy.learners import linear, loop
from understudy.learners.linear import Problem, State
from understudy.learners.practice import RunShape, practise
from understudy.learners.tabular import Info, Segment, Settings


def step(
    state: State, problem: Problem, settings: Settings, protocol: RunShape, *, key: Key[Array, ""]
) -> tuple[State, Info]:
    """Iteration k: π_{k−1}, μ_{k−1} → π_k, μ_k."""
    practising, recalling = jax.random.split(key)
    mdp, phi, k = problem.mdp, problem.linear.phi, state.k + 1

    points, _, walkers = practise(mdp, state.pi, state.walkers, protocol, key=practising)
    window = windows.append(state.window, Segment(points, None, None), label=state.k)
    mixture = state.mixture
    if mixture is not None:
        mixture = mixtures.extend(mixture, mdps.occupancy(mdp, state.pi), k)

    N = jnp.minimum(windows.reach(settings.reuse, k), protocol.slots)
    beta = windows.weights(settings.reuse, protocol.beta, N)
    weights, ready = draw(window, beta, k, settings, protocol, key=recalling)
    recalled = window.segments.points
    mixed = expectations(phi, recalled, weights, protocol, mdp.shape)

    Q = evaluate(Known(mdp), state.pi, problem.table(state.mu), problem.span)
    logits = mirror(state.logits, Q, len(mixed) * settings.sigma)  # Eq. 4, so many times
    shown, mu = features.collect(phi, problem.expert), state.mu
    for x in mixed:  # Eq. 5
        mu = ascend(mu, shown - x, settings.eta, PROJECT[problem.rewards])

    logits, mu = (
        jnp.where(ready, new, old) for new, old in ((logits, state.logits), (mu, state.mu))
    )
    V = jnp.sum(state.pi * Q, axis=-1)
    state = State(
        policy(logits), logits, mu, None, None, window, walkers, None, V, mixture, None, k
    )
    return state, Info(N, beta, occupancies.estimate(recalled, jnp.mean(weights, 0), mdp.shape))


def draw(
    window: Window,
    beta: Float[Array, " slots"],
    k: Int[Array, ""],
    settings: Settings,
    protocol: RunShape,
    *,
    key: Key[Array, ""],
) -> tuple[Float[Array, "rounds slots fresh"], Bool[Array, ""]]:
    """Weights of the window's points in each round, which sum to one; and whether each stage has as
    many as are to be drawn. A window of a few policies that never holds as many gives all that it
    can hold; of its own policies, since it may have room for those of others."""
    assert protocol.rounds is not None
    assert protocol.points is not None
    slots, H, lanes = protocol.slots, protocol.steps, protocol.lanes
    held = jnp.repeat(windows.by_slot(window, beta, k) > 0, lanes)  # of each stage
    full = jnp.where(settings.reuse.alpha == 0, settings.reuse.c, jnp.inf) * lanes
    many = jnp.minimum(protocol.points, full)
    taken = draws.choose(held, many, (protocol.rounds, H), key=key)
    # A segment's points lie step by step, its lanes beside each other.
    placed = jnp.transpose(taken.reshape(slots, lanes, protocol.rounds, H), (2, 0, 3, 1))
    return placed.reshape(protocol.rounds, slots, -1) / (many * H), jnp.sum(held) >= many


def expectations(
    phi: Features,
    points: Points,
    weights: Float[Array, "rounds slots fresh"],
    protocol: RunShape,
    shape: tuple[int, int, int],
) -> Float[Array, "rounds H d"]:
    """E φ of each stage by the points and their weights, a row a round: `features.collect` of their
    `occupancies.estimate`, and without the tables of it where features are dense."""
    if not phi.full:
        tables = jax.vmap(lambda w: occupancies.estimate(points, w, shape))(weights)
        return jax.vmap(lambda d: features.collect(phi, d))(tables)
    rounds, slots, _ = weights.shape
    apart = (slots, protocol.steps, protocol.lanes)
    x = phi.value[points.s, points.a].reshape(*apart, phi.size)
    return shape[0] * jnp.einsum("rnhl,nhld->rhd", weights.reshape(rounds, *apart), x)


LEARNER = loop.Learner(linear.init, step, linear.foresee)

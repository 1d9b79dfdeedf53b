"""The linear learner where states are vectors, and the environment can only be played.

The five lines of `linear.step` for any number of states: least-squares value iteration (Jin et al.
2020), PV = φᵀw. All that is learned are weights of φ(x, a); memory and time do not know S:

- practise: whole episodes, in Gymnasium;
- recall: the window keeps each policy's feature expectations;
- reward: μ_k = Proj[μ_{k−1} + η (f_E − f_mix)], on the ball of radius √d;
- evaluate: ŵ_h = Λ⁻¹ Σ φ(x, a) V̂_{h+1}(x') over all transitions seen, Λ⁻¹ by rank-one steps;
- policy: π_k ∝ exp(φᵀ Σ_j σ (μ_j + ŵ_j)), the mirror step on Q = φᵀ(μ + ŵ), kept as its weights.

Deviations, each for that last line. Q itself is neither cut nor given the bonus, or it would not be
linear; V̂ at the regression's targets is, as in Jin et al. Stages may share their weights
(`stages = 1`): then values are discounted by γ, each iteration makes some sweeps from where the
last one ended, and the gradient is the mean over stages.

An episode that ends stays ended until H, at no cost, in one more coordinate of φ: what ends is
then the reward's to judge, as everywhere else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.core import window as windows
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.mdp import at
from understudy.core.precision import double
from understudy.core.regression import MOST, RIDGE, add
from understudy.core.updates import ascend, linear_steps, project_ball
from understudy.core.vector_features import FeatureMap
from understudy.core.window import Reuse, Window
from understudy.envs.guard import guarded
from understudy.learners.config import VectorConfig, check_vectors

MOST_POLICIES = 4096  # that a window keeps, 'all' included: how many there will be is not known


@dataclass(frozen=True)
class Shape:
    """The shapes of a run."""

    horizon: int
    shared: bool  # all stages share their weights
    episodes: int  # B, per iteration
    slots: int  # policies kept
    capacity: int  # transitions kept: all
    sweeps: int  # backups per iteration, where stages share their weights
    optimistic: bool  # a bonus, or none

    @property
    def stages(self) -> int:
        """T, sets of weights."""
        return 1 if self.shared else self.horizon


class Numbers(eqx.Module):
    """The numbers of a run."""

    sigma: Float[Array, ""]
    eta: Float[Array, ""]
    gamma: Float[Array, ""]
    bonus: Float[Array, ""]  # κ of κ‖φ‖_{Λ⁻¹}
    reuse: Reuse


class Memory(eqx.Module):
    """Every transition seen, as features."""

    here: Float[Array, "M d"]  # φ(x, a)
    ahead: Float[Array, "M A d"]  # φ(x', ·)
    count: Int[Array, ""]


class State(eqx.Module):
    """Everything a run needs to go on. Nothing here has a size that depends on S."""

    policy: Float[Array, "T d"]  # Σ_j σ (μ_j + ŵ_j)
    mu: Float[Array, "T d"]
    w: Float[Array, "T d"]
    inverse: Float[Array, "d d"]  # Λ⁻¹, shared by all stages
    memory: Memory
    window: Window
    k: Int[Array, ""]


class Fresh(eqx.Module):
    """What an iteration has practised, padded with zeros to B·H transitions."""

    here: Float[Array, "n d"]
    ahead: Float[Array, "n A d"]
    count: Int[Array, ""]
    expectation: Float[Array, "T d"]  # f̂, ended stages included


def init(phi: FeatureMap, shape: Shape) -> State:
    """π⁰ uniform, μ⁰ = 0, nothing seen. d counts the coordinate of ended episodes."""
    d, A = phi.size + 1, phi.actions
    weights = jnp.zeros((shape.stages, d))
    memory = Memory(
        jnp.zeros((shape.capacity, d)),
        jnp.zeros((shape.capacity, A, d)),
        jnp.zeros((), jnp.int32),
    )
    window = windows.empty(weights[None], shape.slots)
    k = jnp.zeros((), jnp.int32)
    return State(weights, weights, weights, jnp.eye(d) / RIDGE, memory, window, k)


@eqx.filter_jit
def step(
    state: State, fresh: Fresh, expert: Float[Array, "T d"], numbers: Numbers, shape: Shape
) -> State:
    """Iteration k, from what π_{k−1} has practised: π_{k−1}, μ_{k−1} → π_k, μ_k."""
    k = state.k + 1
    memory, inverse = store(state.memory, fresh), learn(state.inverse, fresh)
    window = windows.append(state.window, fresh.expectation[None], label=state.k)

    N = jnp.minimum(windows.reach(numbers.reuse, k), shape.slots)
    beta = windows.weights(numbers.reuse, "uniform", N)
    recalled, weights = windows.recall(window, beta, k, None, key=jax.random.key(0))  # all of it
    f_mix = jnp.einsum("ns,nstd->td", weights, recalled)
    mu = ascend(state.mu, expert - f_mix, numbers.eta, project_ball)  # Eq. 5
    w = evaluate(state, mu, memory, inverse, numbers, shape)
    policy = state.policy + numbers.sigma * (mu + w)  # Eq. 4, in weights
    return State(policy, mu, w, inverse, memory, window, k)


def store(memory: Memory, fresh: Fresh) -> Memory:
    """The new transitions behind the others. Their padding is overwritten by the next ones."""
    place = memory.count
    return Memory(
        jax.lax.dynamic_update_slice_in_dim(memory.here, fresh.here, place, 0),
        jax.lax.dynamic_update_slice_in_dim(memory.ahead, fresh.ahead, place, 0),
        place + fresh.count,
    )


def learn(inverse: Float[Array, "d d"], fresh: Fresh) -> Float[Array, "d d"]:
    """Λ⁻¹ with the new transitions, a rank-one step each; zeros change nothing."""
    return jax.lax.fori_loop(0, fresh.count, lambda i, M: add(M, fresh.here[i]), inverse)


def evaluate(
    state: State,
    mu: Float[Array, "T d"],
    memory: Memory,
    inverse: Float[Array, "d d"],
    numbers: Numbers,
    shape: Shape,
) -> Float[Array, "T d"]:
    """ŵ_h for π_{k−1} and μ_k: backwards from stage H, or some sweeps of the shared weights."""
    root, H = jnp.sqrt(mu.shape[1] * 1.0), shape.horizon
    width = jnp.zeros(memory.ahead.shape[:2])
    if shape.optimistic:
        square = jnp.einsum("mad,de,mae->ma", memory.ahead, inverse, memory.ahead)
        width = numbers.bonus * jnp.sqrt(jnp.maximum(square, 0))
        width = jnp.where(memory.ahead[..., -1] > 0, 0, width)  # of an ended one all is known

    def backup(
        Q: Float[Array, " d"], policy: Float[Array, " d"], reach: Array
    ) -> Float[Array, " d"]:
        """γ P̂V̂ as weights, of Q = φᵀ(μ + ŵ) one stage later. An ended episode stays ended."""
        values = jnp.clip(memory.ahead @ Q + width, -reach, reach)
        V = jnp.sum(jax.nn.softmax(memory.ahead @ policy, axis=-1) * values, axis=-1)
        w = inverse @ (memory.here.T @ V)
        return numbers.gamma * w.at[-1].set(Q[-1])

    if shape.shared:
        reach = root / (1 - numbers.gamma)

        def sweep(_: Array, w: Array) -> Array:
            return backup(mu[0] + w, state.policy[0], reach)

        return jax.lax.fori_loop(0, shape.sweeps, sweep, state.w[0])[None]

    def stage(ahead: Array, h: Array) -> tuple[Array, Array]:
        w = jnp.where(h == H - 1, 0, backup(ahead, at(state.policy, h + 1), (H - 1 - h) * root))
        return mu[h] + w, w

    return jax.lax.scan(stage, jnp.zeros_like(mu[0]), jnp.arange(H), reverse=True)[1]


# --- in the environment ------------------------------------------------------------------------


def features(phi: FeatureMap, x: np.ndarray) -> Float[np.ndarray, "n A d"]:
    """φ(x, ·) with the coordinate of ended episodes, which is zero."""
    found = phi(np.asarray(x, float))
    return np.concatenate([found, np.zeros((*found.shape[:2], 1))], axis=-1)


def practise(
    world: gymnasium.Env,
    phi: FeatureMap,
    policy: np.ndarray,
    shape: Shape,
    rng: np.random.Generator,
) -> tuple[Fresh, np.ndarray]:
    """B episodes of at most H steps with π: what was seen, and their returns."""
    H, d = shape.horizon, phi.size + 1
    here = np.zeros((shape.episodes * H, d))
    ahead = np.zeros((shape.episodes * H, phi.actions, d))
    expectation, returns, n = np.zeros((H, d)), np.zeros(shape.episodes), 0
    for b in range(shape.episodes):
        x, _ = world.reset(seed=int(rng.integers(2**31)))
        now = features(phi, x[None])[0]
        for h in range(H):
            a = choose(now @ policy[0 if shape.shared else h], rng)
            x, r, terminated, truncated, _ = world.step(a)
            if truncated and not terminated and h < H - 1:
                raise UserError(
                    f"The environment cut an episode off after {h + 1} steps; use a horizon of at "
                    f"most {h + 1}, not {H}."
                )
            here[n], returns[b] = now[a], returns[b] + float(r)
            expectation[h] += now[a]
            now = features(phi, x[None])[0]
            if terminated:
                now = np.zeros_like(now)
                now[:, -1] = 1
                expectation[h + 1 :, -1] += 1
            ahead[n], n = now, n + 1
            if terminated:
                break
    f = mean_over_stages(expectation / shape.episodes, shape)
    return Fresh(*map(jnp.asarray, (here, ahead, np.int32(n), f))), returns


def choose(logits: np.ndarray, rng: np.random.Generator) -> int:
    """An action of π ∝ exp(logits)."""
    weight = np.exp(logits - logits.max())
    return int(np.searchsorted(np.cumsum(weight), rng.random() * weight.sum(), side="right"))


def mean_over_stages(f: Float[np.ndarray, "H d"], shape: Shape) -> Float[np.ndarray, "T d"]:
    """f_h, or the mean where all stages share one reward."""
    return f.mean(0, keepdims=True) if shape.shared else f


def of_demonstrations(phi: FeatureMap, demos: Demonstrations, shape: Shape) -> Float[Array, "T d"]:
    """E_dE φ, by stage; a demonstration that terminated stays ended until H."""
    H, f = shape.horizon, np.zeros((shape.horizon, phi.size + 1))
    for i, (x, a) in enumerate(zip(demos.observations, demos.actions, strict=True)):
        steps = min(len(a), H)
        if steps < H and not demos.terminated[i]:
            raise UserError(
                f"Demonstration {i} is cut off after {steps} of {H} steps; "
                f"use a horizon of at most {steps}, or longer demonstrations."
            )
        if a.ndim != 1 or a.min() < 0 or a.max() >= phi.actions or not (a == a.round()).all():
            raise UserError(
                f"Demonstration {i} has actions outside 0 … {phi.actions - 1}; check that the "
                f"demonstrations belong to this environment."
            )
        chosen = features(phi, x[:steps])[np.arange(steps), a[:steps].astype(int)]
        f[:steps] += chosen
        f[steps:, -1] += 1
    return jnp.asarray(mean_over_stages(f / len(demos), shape))


# --- a whole run -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """One run: the returns that it practised with, and the weights reached."""

    interactions: np.ndarray  # after each iteration
    returns: np.ndarray  # mean of the iteration's episodes
    policy: np.ndarray  # (T, d + 1)
    reward: np.ndarray  # (T, d + 1)


def plan(phi: FeatureMap, config: VectorConfig) -> tuple[Shape, Numbers]:
    """Check a config and make it definite."""
    check_vectors(config)
    H, d, A, B = config.horizon, phi.size + 1, phi.actions, config.batch
    if A < 2:
        raise UserError("The environment has one action; there is nothing to learn.")
    if d > MOST:
        raise UserError(
            f"There are {d:,} features, more than the {MOST:,} that can be regressed; use fewer."
        )
    if d > config.interactions:
        raise UserError(
            f"{d} features are more than {config.interactions} interactions can tell apart; "
            f"use fewer features, or allow more interactions."
        )
    if B * H > config.interactions:  # or more could be practised than was asked for
        raise UserError(
            f"{config.interactions:,} interactions are less than one iteration of {B * H:,} "
            f"({B:,} episodes of up to {H:,} steps); allow more with --interactions."
        )
    K = max(1, config.interactions // (B * H))
    sigma, eta = linear_steps(H, A, d, K)
    if config.stages == "shared":  # mean gradients, discounted values: H is not their unit
        sigma = linear_steps(1, A, d, K)[0] * (1 - config.gamma)
    c, alpha = windows.parse(config.window)
    slots = min(windows.largest(c, alpha, config.interactions), MOST_POLICIES)
    shape = Shape(
        horizon=H,
        shared=config.stages == "shared",
        episodes=B,
        slots=slots,
        capacity=config.interactions + B * H,
        sweeps=config.sweeps,
        optimistic=config.bonus > 0,
    )
    numbers = Numbers(
        sigma=jnp.asarray(sigma if config.sigma is None else config.sigma, float),
        eta=jnp.asarray(eta if config.eta is None else config.eta, float),
        gamma=jnp.asarray(config.gamma if config.stages == "shared" else 1.0, float),
        bonus=jnp.asarray(config.bonus, float),
        reuse=Reuse(jnp.asarray(c, float), jnp.asarray(alpha, float), jnp.zeros(min(slots, 4096))),
    )
    return shape, numbers


@double
def imitate(
    world: gymnasium.Env,
    phi: FeatureMap,
    demos: Demonstrations,
    config: VectorConfig,
    *,
    seed: int = 0,
    progress: Callable[[int, float], object] = lambda interactions, mean_return: None,
) -> Learned:
    """Learn to act like `demos` by playing `world`, until the interactions are used up."""
    world = guarded(world)
    shape, numbers = plan(phi, config)
    expert, rng = of_demonstrations(phi, demos, shape), np.random.default_rng([seed, 2])
    state, done, curve = init(phi, shape), 0, []
    while done < config.interactions:
        policy = np.asarray(state.policy)
        fresh, returns = practise(world, phi, policy, shape, rng)
        state = step(state, fresh, expert, numbers, shape)
        done += int(fresh.count)
        curve.append((done, returns.mean()))
        progress(done, returns.mean())
    at, mean = np.array(curve).T
    if not np.isfinite(np.asarray(state.policy)).all():
        raise UserError("The policy became NaN; use smaller steps (--sigma, --eta).")
    return Learned(at.astype(int), mean, np.asarray(state.policy), np.asarray(state.mu))


@double
def play(
    world: gymnasium.Env,
    phi: FeatureMap,
    policy: np.ndarray,
    *,
    horizon: int,
    episodes: int,
    seed: int,
) -> np.ndarray:
    """Returns of the policy; where stages share their weights, of any length."""
    rng, returns = np.random.default_rng([seed, 3]), np.zeros(episodes)
    for i in range(episodes):
        *_, returns[i] = episode(world, phi, policy, horizon=horizon, seed=seed + i, rng=rng)
    return returns


def episode(
    world: gymnasium.Env,
    phi: FeatureMap,
    policy: np.ndarray,
    *,
    horizon: int,
    seed: int,
    rng: np.random.Generator,
) -> Iterator[float]:
    """One episode: the return so far, as `rollout.play` yields it."""
    world = guarded(world)
    x, _ = world.reset(seed=seed)
    gained = 0.0
    yield gained
    for h in range(horizon):
        logits = features(phi, x[None])[0] @ policy[min(h, len(policy) - 1)]
        x, r, terminated, truncated, _ = world.step(choose(logits, rng))
        gained += float(r)
        yield gained
        if terminated or truncated:
            return

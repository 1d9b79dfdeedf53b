"""The reward player: a network that tells expert from agent, and rewards made of its logit.

Loss, reward map and penalties are separate functions of a logit, and compose. With D = sigmoid of
the logit ℓ(s,a), 1 for the expert:

- losses: `logistic`, the cross-entropy of Ho & Ermon (2016), or `linear`, E_mix ℓ − E_E ℓ, whose
  gradient in a table is the d_mix − d_E of Eq. 5;
- rewards: `logit` ℓ = log D − log(1−D); `positive` −log(1−D), which pays for staying alive;
  `negative` log D, which pays for ending; `auto` is `positive` once a termination was seen, and
  `logit` before and otherwise;
- regularisers: a gradient penalty, mixup, a spectral norm.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.networks import MLP, Linear, mlp

Points = Float32[Array, "points X"]  # (s, a) side by side
Logit = Callable[[Points], Float32[Array, " points"]]
Loss = Literal["logistic", "linear"]
RewardMap = Literal["auto", "logit", "positive", "negative"]


class Discriminator(eqx.Module):
    """ℓ(s,a)."""

    net: MLP
    spectral: bool = eqx.field(static=True)  # each layer divided by its spectral norm

    def __call__(self, x: Points) -> Float32[Array, " points"]:
        net = self.net
        if self.spectral:
            layers = tuple(
                Linear(layer.w / spectral_norm(layer.w), layer.b) for layer in net.layers
            )
            net = eqx.tree_at(lambda net: net.layers, net, layers)
        return net(x)[:, 0]


def discriminator(
    inputs: int, hidden: tuple[int, ...], *, spectral: bool, key: Key[Array, ""]
) -> Discriminator:
    return Discriminator(mlp((inputs, *hidden, 1), key=key), spectral)


def points(batch: Transitions, absorbing: bool) -> Float32[Array, "*points X"]:
    """What the discriminator sees: (s, a). In an absorbing state nothing depends on the action."""
    action = batch.action * (1 - batch.obs[..., -1:]) if absorbing else batch.action
    return jnp.concatenate([batch.obs, action], axis=-1)


def spectral_norm(w: Float32[Array, "i o"], iterations: int = 8) -> Float32[Array, ""]:
    """The largest singular value, by power iteration from a fixed start. The gradient holds the
    singular vectors still, as is usual."""
    fixed = jax.lax.stop_gradient(w)
    u = jnp.cos(jnp.arange(w.shape[0], dtype=w.dtype))  # not special to any w
    for _ in range(iterations):
        v = unit(u @ fixed)
        u = unit(fixed @ v)
    return u @ w @ v  # pyright: ignore[reportPossiblyUnboundVariable]


def unit(x: Float32[Array, " n"]) -> Float32[Array, " n"]:
    return x / (jnp.linalg.norm(x) + 1e-12)


# --- losses -----------------------------------------------------------------------------------


def logistic(ell: Logit, expert: Points, agent: Points) -> Float32[Array, ""]:
    """−E_E log D − E_mix log(1−D)."""
    return jnp.mean(jax.nn.softplus(-ell(expert))) + jnp.mean(jax.nn.softplus(ell(agent)))


def linear(ell: Logit, expert: Points, agent: Points) -> Float32[Array, ""]:
    """E_mix ℓ − E_E ℓ: the theory's objective ⟨d_mix − d_E, μ⟩."""
    return jnp.mean(ell(agent)) - jnp.mean(ell(expert))


def mixed(
    ell: Logit, expert: Points, agent: Points, *, loss: Loss, key: Key[Array, ""]
) -> Float32[Array, ""]:
    """Mixup: the loss at ε·expert + (1−ε)·agent, labelled expert with weight ε."""
    share = jax.random.uniform(key, (len(expert),), jnp.float32)
    between = ell(share[:, None] * expert + (1 - share[:, None]) * agent)
    if loss == "linear":
        return jnp.mean((1 - 2 * share) * between)
    as_expert, as_agent = jax.nn.softplus(-between), jax.nn.softplus(between)
    return 2 * jnp.mean(share * as_expert + (1 - share) * as_agent)


def gradient_penalty(
    ell: Logit, expert: Points, agent: Points, *, centre: float, key: Key[Array, ""]
) -> Float32[Array, ""]:
    """E (‖∇ℓ‖ − centre)² between expert and agent (Gulrajani et al. 2017, whose centre is 1)."""
    share = jax.random.uniform(key, (len(expert), 1), jnp.float32)
    slopes = jax.grad(lambda x: jnp.sum(ell(x)))(share * expert + (1 - share) * agent)
    if centre == 0:  # without a root, whose own slope at 0 is infinite
        return jnp.mean(jnp.sum(slopes**2, axis=-1))
    return jnp.mean((jnp.sqrt(jnp.sum(slopes**2, axis=-1) + 1e-12) - centre) ** 2)


def objective(
    ell: Logit,
    expert: Points,
    agent: Points,
    *,
    loss: Loss,
    mixup: bool,
    penalty: float,
    centre: float,
    key: Key[Array, ""],
) -> Float32[Array, ""]:
    """What the reward player minimises."""
    mixing, probing = jax.random.split(key)
    if mixup:
        value = mixed(ell, expert, agent, loss=loss, key=mixing)
    else:
        value = {"logistic": logistic, "linear": linear}[loss](ell, expert, agent)
    if penalty:
        value += penalty * gradient_penalty(ell, expert, agent, centre=centre, key=probing)
    return value


# --- rewards ----------------------------------------------------------------------------------


def reward(
    ell: Float32[Array, " points"], kind: RewardMap, terminates: Bool[Array, ""]
) -> Float32[Array, " points"]:
    """The reward that a logit stands for; `terminates` says whether an episode ever ended early."""
    positive, negative = jax.nn.softplus(ell), -jax.nn.softplus(-ell)
    return {
        "auto": lambda: jnp.where(terminates, positive, ell),
        "logit": lambda: ell,
        "positive": lambda: positive,
        "negative": lambda: negative,
    }[kind]()


def paid(
    learned: Float32[Array, " points"],
    own: Float32[Array, " points"] | None,
    share: float,
    unit: float,
) -> Float32[Array, " points"]:
    """The learned reward, with its share of the environment's own, in its unit, where there is
    one."""
    return learned if own is None else (1 - share) * learned + share * own / unit

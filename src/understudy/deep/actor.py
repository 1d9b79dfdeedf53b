"""The actor: a squashed Gaussian where actions are a box, a categorical where they are a list.

Actions inside understudy lie in [−1, 1]ᵈ, or are one-hot; `scaling` translates at the border.

Both kinds answer the same questions, so that the losses need not know which it is. In particular
`options` lists actions with weights that sum to one, such that Σ_n weight_n f(action_n) estimates
E_{a~π} f(a) with the right gradient: one reparametrised sample of a Gaussian, every action of a
categorical (no noise at all).
"""

import abc
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from understudy.deep.networks import MLP, mlp

Obs = Float32[Array, "*batch S"]
Action = Float32[Array, "*batch A"]
Log = Float32[Array, "*batch"]

LOG_STD = (-5.0, 2.0)  # standard deviations before squashing: 0.007 to 7.4


class Options(NamedTuple):
    """Actions to sum over. `raw` is the action before squashing, which keeps log-probabilities
    exact where tanh has run flat."""

    action: Float32[Array, "n *batch A"]
    raw: Float32[Array, "n *batch A"]
    log: Float32[Array, "n *batch"]  # log π of each
    weight: Float32[Array, "n *batch"]


class Actor(eqx.Module):
    """π(a|s). Abstract: `Gaussian` or `Categorical`."""

    net: eqx.AbstractVar[MLP]

    @abc.abstractmethod
    def options(self, obs: Obs, *, key: Key[Array, ""]) -> Options:
        """Actions to sum over in place of an expectation."""

    @abc.abstractmethod
    def log(self, obs: Obs, raw: Float32[Array, "n *batch A"]) -> Float32[Array, "n *batch"]:
        """log π(a|s) of actions given before squashing."""

    @abc.abstractmethod
    def log_action(self, obs: Obs, action: Action) -> Log:
        """log π(a|s) of an action as it was taken, for demonstrations."""

    @abc.abstractmethod
    def sample(self, obs: Obs, *, key: Key[Array, ""]) -> Action:
        """An action drawn from π."""

    @abc.abstractmethod
    def mode(self, obs: Obs) -> Action:
        """The action of a deterministic policy."""

    @abc.abstractmethod
    def kl(self, other: "Actor", obs: Obs) -> Log:
        """KL(π ‖ π′) = E_π[log π − log π′] at each observation, in closed form."""

    @abc.abstractmethod
    def tv(self, other: "Actor", obs: Obs) -> Log:
        """TV(π ‖ π′) at each observation, or a bound on it."""


class Gaussian(Actor):
    """a = tanh(u), u ~ N(mean(s), std(s))."""

    net: MLP

    def parameters(self, obs: Obs) -> tuple[Action, Action]:
        """Mean and log standard deviation of u."""
        mean, raw = jnp.split(self.net(obs), 2, axis=-1)
        low, high = LOG_STD
        return mean, low + (high - low) * (jnp.tanh(raw) + 1) / 2

    def options(self, obs: Obs, *, key: Key[Array, ""]) -> Options:
        mean, log_std = self.parameters(obs)
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        u = (mean + jnp.exp(log_std) * noise)[None]
        log = log_squashed(u, mean, log_std)
        return Options(jnp.tanh(u), u, log, jnp.ones_like(log))

    def log(self, obs: Obs, raw: Float32[Array, "n *batch A"]) -> Float32[Array, "n *batch"]:
        return log_squashed(raw, *self.parameters(obs))

    def log_action(self, obs: Obs, action: Action) -> Log:
        # An action on the border came from u = ±∞; a float32 tanh reaches it from about ±9.
        inside = jnp.clip(action, -1 + 1e-6, 1 - 1e-6)
        return self.log(obs, jnp.arctanh(inside)[None])[0]

    def sample(self, obs: Obs, *, key: Key[Array, ""]) -> Action:
        return self.options(obs, key=key).action[0]

    def mode(self, obs: Obs) -> Action:
        return jnp.tanh(self.parameters(obs)[0])

    def kl(self, other: Actor, obs: Obs) -> Log:
        """That of the two normals: squashing is one-to-one, so it changes nothing."""
        assert isinstance(other, Gaussian)
        (m, s), (n, t) = self.parameters(obs), other.parameters(obs)
        apart = t - s + (jnp.exp(2 * s) + (m - n) ** 2) / (2 * jnp.exp(2 * t)) - 0.5
        return jnp.sum(apart, axis=-1)

    def tv(self, other: Actor, obs: Obs) -> Log:
        """Pinsker's bound √(KL/2)."""
        return jnp.minimum(jnp.sqrt(jnp.maximum(self.kl(other, obs), 0) / 2), 1)


class Categorical(Actor):
    """One of A actions, as a one-hot vector. There is nothing to squash: raw is the action."""

    net: MLP

    def log_probabilities(self, obs: Obs) -> Action:
        return jax.nn.log_softmax(self.net(obs), axis=-1)

    def options(self, obs: Obs, *, key: Key[Array, ""]) -> Options:
        log = jnp.moveaxis(self.log_probabilities(obs), -1, 0)
        A = log.shape[0]
        every = jnp.eye(A, dtype=log.dtype).reshape((A, *(1,) * (log.ndim - 1), A))
        every = jnp.broadcast_to(every, (*log.shape, A))
        return Options(every, every, log, jnp.exp(log))

    def log(self, obs: Obs, raw: Float32[Array, "n *batch A"]) -> Float32[Array, "n *batch"]:
        return jnp.sum(raw * self.log_probabilities(obs), axis=-1)

    def log_action(self, obs: Obs, action: Action) -> Log:
        return self.log(obs, action[None])[0]

    def sample(self, obs: Obs, *, key: Key[Array, ""]) -> Action:
        log = self.log_probabilities(obs)
        return jax.nn.one_hot(jax.random.categorical(key, log), log.shape[-1], dtype=log.dtype)

    def mode(self, obs: Obs) -> Action:
        log = self.log_probabilities(obs)
        return jax.nn.one_hot(jnp.argmax(log, axis=-1), log.shape[-1], dtype=log.dtype)

    def kl(self, other: Actor, obs: Obs) -> Log:
        assert isinstance(other, Categorical)
        here, there = self.log_probabilities(obs), other.log_probabilities(obs)
        return jnp.sum(jnp.exp(here) * (here - there), axis=-1)

    def tv(self, other: Actor, obs: Obs) -> Log:
        assert isinstance(other, Categorical)
        here, there = self.log_probabilities(obs), other.log_probabilities(obs)
        return jnp.sum(jnp.abs(jnp.exp(here) - jnp.exp(there)), axis=-1) / 2


def log_squashed(
    u: Float32[Array, "n *batch A"], mean: Action, log_std: Action
) -> Float32[Array, "n *batch"]:
    """log-density of tanh(u), u ~ N(mean, std): the normal's, less the log-slope of the tanh."""
    z = (u - mean) * jnp.exp(-log_std)
    normal = -0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)
    return jnp.sum(normal - log_slope(u), axis=-1)


def log_slope(u: Action) -> Action:
    """log tanh′(u) = log(1 − tanh² u) = 2 (log 2 − u − log(1 + e⁻²ᵘ)), stable for any u."""
    return 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))


def actor(
    observations: int, actions: int, hidden: tuple[int, ...], *, discrete: bool, key: Key[Array, ""]
) -> Actor:
    """A fresh actor, close to the middle of the box or to the uniform choice."""
    kind, outputs = (Categorical, actions) if discrete else (Gaussian, 2 * actions)
    return kind(mlp((observations, *hidden, outputs), key=key, last=0.01))

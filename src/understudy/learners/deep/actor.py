"""The actor: a squashed Gaussian where actions are a box, a categorical where they are a list.

Actions inside understudy lie in [−1, 1]ᵈ, or are one-hot; `scaling` translates at the border.

`actor.at(obs)` is π(·|s), a `Choice` that answers every further question without another pass
through the network. Both kinds answer the same ones, so that the losses need not know which it is.
In particular `options` lists actions with weights that sum to one, such that
Σ_n weight_n f(action_n) estimates E_{a~π} f(a) with the right gradient: one reparametrised sample
of a Gaussian, every action of a categorical (no noise at all).
"""

import abc
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from understudy.learners.deep.networks import MLP, mlp

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


class Choice(eqx.Module):
    """π(·|s) at some states. Abstract: `Gaussian` or `Categorical`."""

    @abc.abstractmethod
    def options(self, *, key: Key[Array, ""]) -> Options:
        """Actions to sum over in place of an expectation."""

    @abc.abstractmethod
    def log(self, raw: Float32[Array, "n *batch A"]) -> Float32[Array, "n *batch"]:
        """log π(a|s) of actions given before squashing."""

    @abc.abstractmethod
    def miss(self, action: Action) -> Log:
        """How far the mode is from an action, for cloning."""

    @abc.abstractmethod
    def sample(self, *, key: Key[Array, ""]) -> Action:
        """An action drawn from π."""

    @abc.abstractmethod
    def mode(self) -> Action:
        """The action of a deterministic policy."""

    @abc.abstractmethod
    def kl(self, other: "Choice") -> Log:
        """KL(π ‖ π′) = E_π[log π − log π′], in closed form."""

    @abc.abstractmethod
    def tv(self, other: "Choice") -> Log:
        """TV(π ‖ π′), or a bound on it."""


class Gaussian(Choice):
    """a = tanh(u), u ~ N(mean, std)."""

    mean: Action
    log_std: Action

    def options(self, *, key: Key[Array, ""]) -> Options:
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        u = (self.mean + jnp.exp(self.log_std) * noise)[None]
        log = self.log(u)
        return Options(jnp.tanh(u), u, log, jnp.ones_like(log))

    def log(self, raw: Float32[Array, "n *batch A"]) -> Float32[Array, "n *batch"]:
        """The normal's log-density, less the log-slope of the tanh."""
        z = (raw - self.mean) * jnp.exp(-self.log_std)
        normal = -0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi)
        return jnp.sum(normal - log_slope(raw), axis=-1)

    def miss(self, action: Action) -> Log:
        """The cross-entropy of (1 + a)/2 and (1 + mode)/2: least where the mode is the action, and
        its slope by the mean is mode − a, which tanh does not flatten at the border of the box."""
        up, down = jax.nn.softplus(-2 * self.mean), jax.nn.softplus(2 * self.mean)
        return jnp.sum((1 + action) / 2 * up + (1 - action) / 2 * down, axis=-1)

    def sample(self, *, key: Key[Array, ""]) -> Action:
        return self.options(key=key).action[0]

    def mode(self) -> Action:
        return jnp.tanh(self.mean)

    def kl(self, other: Choice) -> Log:
        """That of the two normals: squashing is one-to-one, so it changes nothing."""
        assert isinstance(other, Gaussian)
        (m, s), (n, t) = (self.mean, self.log_std), (other.mean, other.log_std)
        apart = t - s + (jnp.exp(2 * s) + (m - n) ** 2) / (2 * jnp.exp(2 * t)) - 0.5
        return jnp.sum(apart, axis=-1)

    def tv(self, other: Choice) -> Log:
        """Pinsker's bound √(KL/2)."""
        return jnp.minimum(jnp.sqrt(jnp.maximum(self.kl(other), 0) / 2), 1)


class Categorical(Choice):
    """One of A actions, as a one-hot vector. There is nothing to squash: raw is the action."""

    log_p: Action

    def options(self, *, key: Key[Array, ""]) -> Options:
        log = jnp.moveaxis(self.log_p, -1, 0)
        A = log.shape[0]
        every = jnp.eye(A, dtype=log.dtype).reshape((A, *(1,) * (log.ndim - 1), A))
        every = jnp.broadcast_to(every, (*log.shape, A))
        return Options(every, every, log, jnp.exp(log))

    def log(self, raw: Float32[Array, "n *batch A"]) -> Float32[Array, "n *batch"]:
        return jnp.sum(raw * self.log_p, axis=-1)

    def miss(self, action: Action) -> Log:
        return -self.log(action[None])[0]

    def sample(self, *, key: Key[Array, ""]) -> Action:
        return self._one_hot(jax.random.categorical(key, self.log_p))

    def mode(self) -> Action:
        return self._one_hot(jnp.argmax(self.log_p, axis=-1))

    def kl(self, other: Choice) -> Log:
        assert isinstance(other, Categorical)
        return jnp.sum(jnp.exp(self.log_p) * (self.log_p - other.log_p), axis=-1)

    def tv(self, other: Choice) -> Log:
        assert isinstance(other, Categorical)
        return jnp.sum(jnp.abs(jnp.exp(self.log_p) - jnp.exp(other.log_p)), axis=-1) / 2

    def _one_hot(self, index: Array) -> Action:
        return jax.nn.one_hot(index, self.log_p.shape[-1], dtype=self.log_p.dtype)


def log_slope(u: Action) -> Action:
    """log tanh′(u) = log(1 − tanh² u) = 2 (log 2 − u − log(1 + e⁻²ᵘ)), stable for any u."""
    return 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))


class Actor(eqx.Module):
    """π(a|s): a network whose output is read as one kind of choice or the other."""

    net: MLP
    discrete: bool = eqx.field(static=True)

    def at(self, obs: Obs) -> Choice:
        """π(·|s) at each observation."""
        out = self.net(obs)
        if self.discrete:
            return Categorical(jax.nn.log_softmax(out, axis=-1))
        mean, raw = jnp.split(out, 2, axis=-1)
        low, high = LOG_STD
        return Gaussian(mean, low + (high - low) * (jnp.tanh(raw) + 1) / 2)

    def with_spread(self, std: Float32[Array, " A"]) -> "Actor":
        """The same modes, with these standard deviations before squashing in every state."""
        low, high = LOG_STD
        inside = jnp.clip(2 * (jnp.log(std) - low) / (high - low) - 1, -0.99, 0.99)
        last, A = self.net.layers[-1], len(std)
        w, b = last.w.at[:, A:].set(0), last.b.at[A:].set(jnp.arctanh(inside))
        return eqx.tree_at(lambda a: (a.net.layers[-1].w, a.net.layers[-1].b), self, (w, b))


def actor(
    observations: int, actions: int, hidden: tuple[int, ...], *, discrete: bool, key: Key[Array, ""]
) -> Actor:
    """A fresh actor, close to the middle of the box or to the uniform choice."""
    outputs = actions if discrete else 2 * actions
    return Actor(mlp((observations, *hidden, outputs), key=key, last=0.01), discrete)

"""Twin critics: two Q networks and their slowly following targets."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from understudy.learners.deep.networks import MLP, mlp

TWINS = 2


class Critic(eqx.Module):
    """Q₁ and Q₂, one network with a leading axis on its weights."""

    net: MLP

    def __call__(
        self, obs: Float32[Array, "batch S"], action: Float32[Array, "n batch A"]
    ) -> Float32[Array, "twins n batch"]:
        """Of n actions at each observation."""
        n, batch, _ = action.shape
        x = jnp.concatenate([jnp.broadcast_to(obs, (n, *obs.shape)), action], axis=-1)
        flat = x.reshape(n * batch, -1)  # matrices are what the machine multiplies fastest
        return jax.vmap(lambda net: net(flat)[:, 0])(self.net).reshape(TWINS, n, batch)

    def least(
        self, obs: Float32[Array, "batch S"], action: Float32[Array, "n batch A"]
    ) -> Float32[Array, "n batch"]:
        """min(Q₁, Q₂), against overestimation."""
        return jnp.min(self(obs, action), axis=0)


def critic(
    observations: int, actions: int, hidden: tuple[int, ...], *, norm: bool, key: Key[Array, ""]
) -> Critic:
    def one(key: Array) -> MLP:
        return mlp((observations + actions, *hidden, 1), key=key, norm=norm)

    return Critic(jax.vmap(one)(jax.random.split(key, TWINS)))

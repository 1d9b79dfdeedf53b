"""The window: segments of the N(k) most recent policies, and their weights β.

A segment is whatever one policy collected between two updates, any tree of arrays with a leading
axis of `size` points. The window keeps the last `slots` of them, each labelled with its policy.
It knows nothing of who uses it.

`N = 1` is on-policy learning and `N = all` is full replay; neither is a branch.
"""

import math
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from understudy.errors import UserError


class Window(eqx.Module):
    """A ring of segments. `label[i]` is the index of the policy that wrote slot i, −1 if none."""

    segments: Any  # leaves (slots, size, …)
    label: Int[Array, " slots"]

    @property
    def slots(self) -> int:
        return self.label.shape[0]

    @property
    def size(self) -> int:
        return jax.tree.leaves(self.segments)[0].shape[1]


class Reuse(eqx.Module):
    """How many policies, and how much of each: N(k) = ⌊c·kᵅ⌋ and weights by lag.

    α = 0 is a fixed N = c; c = α = 1 is all of them. `lag[n−1]` weighs the n-th most recent
    policy; it is cut to the N(k) policies that there are and normalised, so ones mean uniform.
    """

    c: Float[Array, ""]
    alpha: Float[Array, ""]
    lag: Float[Array, " slots"]


def parse(text: str) -> tuple[float, float]:
    """(c, α) of a window given in words: '32', 'all', '2*k^0.4', 'k^0.4'."""
    if text.strip().lower() == "all":
        return 1.0, 1.0
    power = re.fullmatch(r"(?:(?P<c>[\d.]+)\s*\*\s*)?k\s*\^\s*(?P<alpha>[\d.]+)", text.strip())
    try:
        c, alpha = (float(power["c"] or 1), float(power["alpha"])) if power else (int(text), 0.0)
        c = min(float(c), 2.0**31)  # more policies than there can be
    except (ValueError, OverflowError):
        raise UserError(
            f"The window is '{text}'; give a number of policies, 'all', or 'c*k^a' "
            f"such as '2*k^0.4'."
        ) from None
    if c < 1 and alpha == 0:
        raise UserError(f"The window is N = {text}; it must reuse at least 1 policy.")
    if not (c > 0 and 0 <= alpha <= 1):
        raise UserError(f"The window is '{text}'; it needs c > 0 and an exponent in [0, 1].")
    return c, alpha


def largest(c: float, alpha: float, K: int) -> int:
    """The largest N(k) of K iterations, the slots that a window needs."""
    return max(1, min(K, math.floor(c * K**alpha + 1e-9)))


def empty(example: Any, slots: int) -> Window:
    """A window of `slots` segments shaped like `example`, none written yet."""
    segments = jax.tree.map(lambda x: jnp.zeros((slots, *x.shape), x.dtype), example)
    return Window(segments=segments, label=jnp.full(slots, -1, jnp.int32))


def append(window: Window, segment: Any, label: Int[Array, ""]) -> Window:
    """Policy `label` wrote `segment`: it takes the place of the oldest."""
    slot = label % window.slots
    segments = jax.tree.map(lambda all, new: all.at[slot].set(new), window.segments, segment)
    return Window(segments=segments, label=window.label.at[slot].set(label))


def reach(reuse: Reuse, k: Int[Array, ""]) -> Int[Array, ""]:
    """N(k), at least 1 and at most the k policies that have acted before update k."""
    N = jnp.floor(reuse.c * k.astype(float) ** reuse.alpha + 1e-9)  # 1e-9: 8^(1/3) is 2
    return jnp.clip(N, 1, k).astype(jnp.int32)


def weights(reuse: Reuse, k: Int[Array, ""]) -> Float[Array, " slots"]:
    """β by lag at update k: β_n of policy k−n. Non-negative, sums to one, zero beyond N(k).

    Where the given weights put nothing on the policies that there are yet, uniform over them.
    """
    inside = jnp.arange(1, len(reuse.lag) + 1) <= reach(reuse, k)
    given = jnp.where(inside, reuse.lag, 0)
    beta = jnp.where(jnp.sum(given) > 0, given, inside.astype(given.dtype))
    return beta / jnp.sum(beta)


def recall(
    window: Window,
    beta: Float[Array, " slots"],
    k: Int[Array, ""],
    points: int | None,
    *,
    key: Key[Array, ""],
) -> tuple[Any, Float[Array, "*taken"]]:
    """The window's data at update k, with weights that sum to one: all of it, or `points` sampled.

    Sampling is stratified: the j-th point falls uniformly in the j-th of `points` equal shares of
    β. It is unbiased for any β, varies less than independent draws, and takes each point exactly
    once where the window holds just that many.
    """
    beta = jnp.where(window.label >= 0, beta[k - window.label - 1], 0)  # from lags to slots
    if points is None:
        each = jnp.broadcast_to(beta[:, None] / window.size, (window.slots, window.size))
        return window.segments, each
    share = (jnp.arange(points) + jax.random.uniform(key, (points,), beta.dtype)) / points
    ends = jnp.cumsum(beta)
    slot = jnp.searchsorted(ends, share * ends[-1], side="right")
    within = (share * ends[-1] - (ends - beta)[slot]) / beta[slot]
    point = jnp.clip((within * window.size).astype(jnp.int32), 0, window.size - 1)
    taken = jax.tree.map(lambda x: x[slot, point], window.segments)
    return taken, jnp.full(points, 1 / points)

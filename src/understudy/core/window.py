"""The window: segments of the N(k) most recent policies, and their weights β.

A segment is whatever one policy collected between two updates, any tree of arrays with a leading
axis of `size` points. The window keeps the last `slots` of them, each labelled with its policy.
It knows nothing of who uses it.

`N = 1` is on-policy learning and `N = all` is full replay; neither is a branch.

Weights are float64, whoever recalls: among 10⁵ policies a float32 sum would lose the last of them.
"""

import math
import re
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from understudy.core.errors import UserError


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
    policy where β is given; it is cut to the N(k) policies that there are and normalised.
    """

    c: Float[Array, ""]
    alpha: Float[Array, ""]
    lag: Float[Array, " slots"]


Shape = Literal["uniform", "geometric", "triangular", "optimal", "given"]


class Gauge(eqx.Module):
    """What an adaptive window goes by, both in ‖·‖₁ of occupancies and smoothed over updates."""

    drift: Float[Array, ""]  # c₁: how far one policy lies from the next
    error: Float[Array, ""]  # c₂: the estimation error of one segment alone

    @property
    def ratio(self) -> Float[Array, ""]:
        """r = c₂/c₁; enormous before anything was measured."""
        return self.error / jnp.maximum(self.drift, 1e-12)


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
            f"The window is '{text}'; give a number of policies, 'all', or 'c*k^a' such as "
            f"'2*k^0.4'."
        ) from None
    if c < 1 and alpha == 0:
        raise UserError(f"The window is N = {text}; it must reuse at least 1 policy.")
    if not (c > 0 and 0 <= alpha <= 1):
        raise UserError(f"The window is '{text}'; it needs c > 0 and an exponent in [0, 1].")
    return c, alpha


def largest(c: float, alpha: float, K: int) -> int:
    """The largest N(k) of K iterations, the slots that a window needs."""
    return max(1, min(K, math.floor(c * K**alpha + 1e-9)))


def owed(points: int, c: float, alpha: float) -> int:
    """Fresh interactions per update under the equal estimation budget: N policies supply the m
    points, so each owes m // N. A growing window passes m soon; it gets one throughout."""
    return max(1, points // int(c)) if alpha == 0 else 1


def lags(beta: str | tuple[float, ...], text: str, slots: int) -> list[float]:
    """Weights given as numbers, by slot, the largest of them one; zeros where β is a shape. The
    window, given in words, must be of just as many policies, or grow."""
    if isinstance(beta, str):
        return [0.0] * slots
    adaptive = text.strip().lower() == "adaptive"
    if adaptive or ((size := parse(text))[1] == 0 and len(beta) != size[0]):
        raise UserError(f"--beta has {len(beta)} weights for a window of {text} policies.")
    return [b / max(beta) for b in beta[:slots]] + [0.0] * (slots - len(beta))


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


def balance(gauge: Gauge, k: Int[Array, ""], *, least: int, most: int) -> Int[Array, ""]:
    """N(k) of the adaptive window: the N that minimises c₁ (N−1)/2 + c₂/√N, which is r^{2/3}.

    The first is the shift of N equally weighted policies that drift apart linearly, the second
    the estimation error of their pooled samples.
    """
    N = jnp.floor(jnp.cbrt(gauge.ratio) ** 2)
    return jnp.clip(jnp.clip(N, least, most), 1, k).astype(jnp.int32)


def length(
    reuse: Reuse, adaptive: tuple[int, int] | None, gauge: Gauge, k: Int[Array, ""]
) -> Int[Array, ""]:
    """N(k), of the policies that are kept: what the schedule says, or what drift and estimation
    error balance at, within the two ends of an adaptive window."""
    if adaptive is None:
        return jnp.minimum(reach(reuse, k), len(reuse.lag))
    least, most = adaptive
    return balance(gauge, k, least=least, most=most)


def weights(
    reuse: Reuse, shape: Shape, N: Int[Array, ""], gauge: Gauge | None = None
) -> Float[Array, " slots"]:
    """β by lag: β_n of policy k−n. Non-negative, sums to one, zero beyond N.

    Geometric weights fall by 1 − 1/(N+1) a lag, triangular ones linearly to zero beyond N, optimal
    ones as `waterfill` says. Where given weights put nothing on the policies that there are yet,
    uniform over them.
    """
    n = jnp.arange(1, len(reuse.lag) + 1)
    inside = n <= N
    assert gauge is not None or shape != "optimal"
    raw = {
        "uniform": lambda: jnp.ones_like(reuse.lag),
        "geometric": lambda: (1 - 1 / (N + 1.0)) ** (n - 1.0),
        "triangular": lambda: N + 1.0 - n,
        "optimal": lambda: waterfill(gauge.ratio, len(reuse.lag)),  # type: ignore
        "given": lambda: reuse.lag,
    }[shape]()
    cut = jnp.where(inside, raw, 0)
    beta = jnp.where(jnp.sum(cut) > 0, cut, inside.astype(cut.dtype))
    return beta / jnp.sum(beta)


def waterfill(ratio: Float[Array, ""], slots: int) -> Float[Array, " slots"]:
    """argmin over the simplex of c₁ Σ_n (n−1) β_n + c₂ ‖β‖₂, given r = c₂/c₁.

    Stationarity gives β_n ∝ (x − (n−1))₊ with Σ_n (x − (n−1))₊² = r². The sum over whole x is
    x(x+1)(2x+1)/6, which finds the interval; inside it the equation is quadratic. Beyond `slots`
    lags the weights are cut.
    """
    n = jnp.arange(slots, dtype=float)
    full = n * (n + 1) * (2 * n + 1) / 6  # Σ at x = n
    ratio = jnp.minimum(ratio, jnp.sqrt(slots * (slots + 1) * (2 * slots + 1) / 6))
    m = jnp.sum(full <= ratio**2) - 1  # m ≤ x < m + 1: the lags 0 … m carry weight
    spread = m * (2 * m + 1) / 6 - m**2 / 4  # variance of 0 … m
    x = m / 2 + jnp.sqrt(jnp.maximum(ratio**2 / (m + 1) - spread, 0))
    return jnp.maximum(x - n, 0)


def by_slot(
    window: Window, beta: Float[Array, " slots"], k: Int[Array, ""]
) -> Float[Array, " slots"]:
    """β from lags to slots."""
    return jnp.where(window.label >= 0, beta[k - window.label - 1], 0)


def recall(
    window: Window,
    beta: Float[Array, " slots"],
    k: Int[Array, ""],
    points: int | None,
    owed: Int[Array, ""] | None = None,
    *,
    key: Key[Array, ""],
) -> tuple[Any, Float[Array, "*taken"]]:
    """The window's data at update k, with weights that sum to one: all of it, or `points` sampled.
    Where only the first `owed` points of each segment were written, from these.

    Sampling is stratified: the j-th point falls uniformly in the j-th of `points` equal shares of
    β. It is unbiased for any β, varies less than independent draws, and takes each point exactly
    once where the window holds just that many.
    """
    beta = by_slot(window, beta, k)
    if points is None:
        each = jnp.broadcast_to(beta[:, None] / window.size, (window.slots, window.size))
        return window.segments, each
    share = (jnp.arange(points) + jax.random.uniform(key, (points,), beta.dtype)) / points
    ends = jnp.cumsum(beta)
    slot = jnp.searchsorted(ends, share * ends[-1], side="right")
    within = (share * ends[-1] - (ends - beta)[slot]) / beta[slot]
    size = window.size if owed is None else owed
    point = jnp.clip((within * size).astype(jnp.int32), 0, size - 1)
    taken = jax.tree.map(lambda x: x[slot, point], window.segments)
    return taken, jnp.full(points, 1 / points)

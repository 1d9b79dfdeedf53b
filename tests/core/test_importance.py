"""Importance ratios: unbiased for the current policy, and the variance that the paper fears."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mdps import random_mdp, random_policy

from understudy.core import importance
from understudy.core import mdp as mdps
from understudy.core import occupancy as occupancies
from understudy.core.errors import UserError
from understudy.core.occupancy import Points
from understudy.learners import practice, tabular
from understudy.learners.config import Config
from understudy.learners.finite import plan
from understudy.learners.practice import Walkers
from understudy.learners.tabular import Segment

LANES = 40_000


def test_both_ratios_turn_old_samples_into_new_ones():
    mdp = random_mdp(4, 5, 3, 3, staged=True, seed=4)
    old, new = random_policy(mdp, 1, 2.0), random_policy(mdp, 2, 2.0)
    d_old, d_new = mdps.occupancy(mdp, old), mdps.occupancy(mdp, new)
    protocol = plan(mdp, Config(window="2", batch=LANES, interactions=4 * LANES)).protocol
    starts = jax.random.choice(jax.random.key(0), 5, (LANES,), p=mdp.nu).astype(jnp.int32)
    walkers = Walkers(jnp.zeros(LANES, jnp.int32), starts)
    points, _, _ = practice.practise(mdp, old, walkers, protocol, key=jax.random.key(1))
    even = jnp.full(4 * LANES, 1 / (4 * LANES))
    ratios = {}
    for kind in ("path", "marginal"):
        corrected = dataclasses.replace(protocol, correction=kind)
        log = tabular.log_probability(mdp, old, points, corrected)
        ratios[kind] = tabular.ratio(mdp, new, Segment(points, log, None), corrected)
        estimate = occupancies.estimate(points, even * ratios[kind], mdp.shape)
        spread = float(ratios[kind].std()) / np.sqrt(LANES)
        np.testing.assert_allclose(estimate, d_new, atol=5 * spread)
    uncorrected = occupancies.estimate(points, even, mdp.shape)
    np.testing.assert_allclose(uncorrected, d_old, atol=0.02)
    assert np.abs(np.asarray(d_old - d_new)).max() > 0.1  # there was something to correct
    # The marginal ratio is the path ratio's mean given (s, a), so it varies less; and ratios grow
    # with the stage.
    by_stage = {kind: np.asarray(r).reshape(4, LANES).std(1) for kind, r in ratios.items()}
    assert (by_stage["marginal"] <= by_stage["path"] + 1e-9).all()
    assert (np.diff(by_stage["path"]) > 0).all()


def paths(mdp, old, new):
    """Every trajectory with its probability under `old` and its ratios to `new`, by enumeration."""
    H, S, A = mdp.shape
    old, new, nu = np.asarray(old), np.asarray(new), np.asarray(mdp.nu)
    succ, prob = np.asarray(mdp.succ), np.asarray(mdp.prob)

    def extend(h, s, p, w, trail):
        if h == H:
            yield p, trail
            return
        for a in range(A):
            ratio = w * new[h, s, a] / old[h, s, a]
            t = h if len(succ) > 1 else 0
            for c, to in enumerate(succ[t, s, a]):
                chance = p * old[h, s, a] * prob[t, s, a, c]
                yield from extend(h + 1, to, chance, ratio, [*trail, (h, s, a, ratio)])

    for s in range(S):
        yield from extend(0, s, nu[s], 1.0, [])


def test_second_moments_equal_enumeration():
    mdp = random_mdp(3, 3, 2, 2, staged=True, seed=9)
    old, new = random_policy(mdp, 3, 1.5), random_policy(mdp, 4, 1.5)
    d_old, d_new = (np.asarray(mdps.occupancy(mdp, pi)) for pi in (old, new))
    path, marginal = np.zeros(mdp.shape), np.zeros(mdp.shape)
    for p, trail in paths(mdp, old, new):
        for h, s, a, w in trail:
            path[h, s, a] += p * w**2
            marginal[h, s, a] += p * (d_new[h, s, a] / d_old[h, s, a]) ** 2
    np.testing.assert_allclose(importance.path_second_moment(mdp, old, new), path, rtol=1e-9)
    np.testing.assert_allclose(
        importance.marginal_second_moment(mdp, old, new), marginal, rtol=1e-9
    )
    np.testing.assert_allclose(importance.path_second_moment(mdp, old, old), d_old, rtol=1e-9)


def test_without_correction_ratios_are_one():
    mdp = random_mdp(3, 4, 2, 4, staged=False, seed=0)
    protocol = plan(mdp, Config(window="2", batch=1, interactions=30)).protocol
    none = jnp.zeros(3, jnp.int32)
    segment = Segment(Points(none, none, none), None, None)
    assert tabular.ratio(mdp, mdps.uniform(mdp), segment, protocol) == 1.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"visits": "sampled"}, "--correction needs whole trajectories"),
        ({"visits": "sampled", "batch": 1, "points": 32}, "give --batch and no --points"),
        ({"batch": 1}, "give --visits sampled"),
    ],
)
def test_correction_needs_trajectories_and_the_actions_taken(change, says):
    mdp = random_mdp(3, 4, 2, 4, staged=False, seed=0)
    with pytest.raises(UserError, match=says):
        plan(mdp, Config(correction="path", **change))

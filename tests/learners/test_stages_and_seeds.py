"""Policies with tables and features as others ask them, and seeds."""

import jax
import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.core.vector_features import FeatureMap
from understudy.learners import seeds, staged
from understudy.learners.staged import FeaturePolicy, TablePolicy

PI = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]])  # two stages
POLICY = TablePolicy(PI, "World-v0", first_state=5, first_action=2)


def test_a_table_acts_by_its_stage():
    action, state = POLICY.predict(5)
    assert (action, state[0].tolist()) == (2, [1])
    assert POLICY.predict(5, state)[0] == 3
    actions, state = POLICY.predict(np.array([5, 6, 6]))
    assert (actions.tolist(), state[0].tolist()) == ([2, 3, 3], [1, 1, 1])
    actions, state = POLICY.predict(np.array([5, 6, 6]), state, np.array([True, False, False]))
    assert (actions.tolist(), state[0].tolist()) == ([2, 2, 2], [1, 2, 2])
    with pytest.raises(UserError, match="has 2 stages, and an episode is in its 3th step"):
        POLICY.predict(np.array([5, 6, 6]), state)
    again, _ = POLICY.predict(np.array([5, 6, 6]), state, True)
    assert again.tolist() == [2, 3, 3]


@pytest.mark.parametrize("observation", [4, 7, 5.0, np.array([[5]]), np.array([5, 7])])
def test_what_is_no_state_is_refused(observation):
    with pytest.raises(UserError, match="whole numbers from 5 to 6"):
        POLICY.predict(observation)


def test_actions_that_are_drawn_follow_the_table():
    many = np.full(4000, 5)
    drawn = [POLICY.predict(many, deterministic=False, seed=seed)[0] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert np.mean(drawn[0] == 3) == pytest.approx(0.1, abs=0.02)
    p = np.array([[0.0, 0.5, 0.0, 1.5]] * 4000)  # need not sum to one; zeros are never drawn
    found = np.bincount(staged.choose(p, False, 0), minlength=4) / 4000
    np.testing.assert_allclose(found, [0, 0.25, 0, 0.75], atol=0.03)
    np.testing.assert_array_equal(staged.choose(p, True, None), 3)


PHI = FeatureMap(lambda x: np.stack([x, -x], axis=1) / 10, 2, 2)  # φ(x, 0) = x/10, φ(x, 1) = −x/10


def test_features_act_by_their_weights():
    """The last weight is that of ended episodes, and counts for nothing here."""
    one = FeaturePolicy(np.array([[1.0, 0.0, 99.0]]), PHI, "World-v0", 9, (2,))
    actions, state = one.predict(np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 3.0]]), "kept")
    assert (actions.tolist(), state) == ([0, 1, 0], "kept")
    assert one.predict(np.array([-1.0, 0.0]))[0] == 1
    each = FeaturePolicy(np.array([[1.0, 0, 9], [-1.0, 0, 9]]), PHI, "World-v0", 2, (2,))
    first, state = each.predict(np.array([1.0, 0.0]))
    second, state = each.predict(np.array([1.0, 0.0]), state)
    assert (first, second, state[0].tolist()) == (0, 1, [2])
    with pytest.raises(UserError, match="has 2 stages"):
        each.predict(np.array([1.0, 0.0]), state)
    for wrong in (np.zeros(3), np.zeros((2, 3)), np.zeros((1, 2, 2))):
        with pytest.raises(UserError, match=r"takes \(2,\)"):
            one.predict(wrong)


def test_features_are_drawn_by_a_softmax():
    weights = np.array([[10 * np.log(3) / 2, 0.0, 0.0]])
    policy = FeaturePolicy(weights, PHI, "World-v0", 9, (2,))
    many = np.tile([1.0, 0.0], (4000, 1))
    drawn, _ = policy.predict(many, deterministic=False, seed=0)
    assert np.mean(drawn == 0) == pytest.approx(0.75, abs=0.03)  # e^(log 3) to one


def test_seeds_are_numbers_of_32_bits():
    for seed in (0, 2**32 - 1):
        seeds.check_seed(seed)
    for seed in (-1, 2**32):
        with pytest.raises(UserError, match="from 0 to 4,294,967,295"):
            seeds.check_seed(seed)
    keys = seeds.keys_of([3, 2**32 - 1])
    for key, seed in zip(keys, (3, 2**32 - 1), strict=True):
        assert key == jax.random.key(seed)
    with pytest.raises(UserError, match="There are no seeds"):
        seeds.keys_of([])
    with pytest.raises(UserError, match="The seed is -1"):
        seeds.keys_of([0, -1])

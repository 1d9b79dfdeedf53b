"""A clone's drill: pushes that come as often as said, and new beginnings where it is lost."""

import contextlib
import functools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.learners.deep import acting, drill, learner, scaling
from understudy.learners.deep.actor import actor
from understudy.learners.deep.collect import Collector
from understudy.learners.deep.config import DeepConfig

OBS = jax.random.normal(jax.random.key(1), (7, 3), jnp.float32)


def some_actor(**options):
    return actor(3, 2, (8,), key=jax.random.key(0), **options)


@pytest.mark.parametrize(
    ("changes", "drilled"),
    [
        ({"interactions": 49_999}, True),
        ({"interactions": 50_000}, False),  # time enough to learn anew
        ({"interactions": 20_000, "warm_start": "none"}, False),
    ],
)
def test_short_runs_of_a_clone_are_drilled(changes, drilled):
    config = DeepConfig(**changes)
    assert learner.drilled(config) is drilled
    assert learner.drilled(drill.drilling(config)) is drilled  # the iteration asks again


def test_a_drill_has_more_steps_and_loosens_less():
    config = drill.drilling(DeepConfig(policy_steps=6, loosen=0.01))
    assert (config.policy_steps, config.loosen) == (12, pytest.approx(0.1))


def test_every_fifth_iteration_is_a_push():
    calm = some_actor(discrete=False)
    wide = [k for k in range(20) if drill.practising(calm, k) is not calm]
    assert wide == [4, 9, 14, 19]
    push = drill.practising(calm, 4).at(OBS)
    np.testing.assert_array_equal(push.mode(), calm.at(OBS).mode())  # the same policy, shaken
    np.testing.assert_allclose(np.exp(push.log_std), drill.SPREAD, rtol=1e-5)


def test_a_choice_among_few_is_not_pushed():
    choosing = some_actor(discrete=True)
    assert all(drill.practising(choosing, k) is choosing for k in range(10))


def rows(*logits, steps=4):
    """Each lane's logit, the same in every step."""
    return jnp.tile(jnp.array(logits, jnp.float32), (steps, 1))


def test_steps_astray_are_counted_by_lane_and_in_a_row():
    far, near = drill.ASTRAY - 1, drill.ASTRAY + 1
    at = jnp.zeros(3, jnp.int32)
    for _ in range(2):
        at = drill.strayed(at, rows(near, far, far))
    assert at.tolist() == [0, 8, 8]
    at = drill.strayed(at, rows(far, near, far))
    assert at.tolist() == [4, 0, 12]
    # A lane is judged by the mean of its steps: one far out, three near; and one not so far.
    mixed = rows(near, near, near).at[0].set(jnp.array([far - 8, near, far], jnp.float32))
    assert drill.strayed(at, mixed).tolist() == [8, 0, 0]


def test_at_the_end_of_its_patience_a_lane_begins_to_count_anew():
    at, told = jnp.zeros(2, jnp.int32), []
    for _ in range(14):
        at = drill.strayed(at, rows(drill.ASTRAY - 1, 0, steps=8))
        told.append(drill.impatient(at))
    whole = drill.PATIENCE // 8
    assert [i for i, lanes in enumerate(told, 1) if lanes] == [whole, 2 * whole]
    assert told[whole - 1] == [0]


def test_a_cut_episode_counts_and_the_next_can_be_gone_on_with():
    make = functools.partial(gymnasium.make, "Pendulum-v1")
    with contextlib.closing(make()) as world:
        border = scaling.of_spaces(world, "Pendulum-v1")
    new = functools.partial(Collector, make, border, lanes=2, seed=0, name="Pendulum-v1")
    act = acting.exploring(1, jax.random.key(0), 0, discrete=False)
    with contextlib.closing(new()) as collector, contextlib.closing(new()) as other:
        first = collector.practise(act, 5)
        begun = [lane.obs for lane in collector.lanes]
        collector.cut(1)
        assert collector.ended == [pytest.approx(first["reward"][1::2].sum(), rel=1e-5)]
        assert [lane.episode for lane in collector.lanes] == [0, 1]
        np.testing.assert_array_equal(collector.lanes[0].obs, begun[0])  # the other goes on
        assert not np.array_equal(collector.lanes[1].obs, begun[1])
        assert not first["terminated"].any()  # to be cut off is not to have ended
        collector.practise(act, 3)
        other.restore(collector.state())
        assert other.ended == collector.ended
        same = [acting.exploring(1, jax.random.key(0), 9, discrete=False) for _ in range(2)]
        a, b = collector.practise(same[0], 4), other.practise(same[1], 4)
        for name, x in a.items():
            np.testing.assert_array_equal(x, b[name])

"""Every answer that an environment may give, and those just beside them."""

import contextlib
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit

from understudy.core.errors import UserError
from understudy.envs import guard
from understudy.envs.action_fit import fitting, refuse_actions
from understudy.envs.guard import Guard, Wrong

HELD = float(np.finfo(np.float32).max)


class World(gymnasium.Env):
    """Says what it is told to."""

    observation_space, action_space = Box(-1, 1, (2,), np.float64), Discrete(3)

    def __init__(self, **answers):
        self.answers, self.sent, self.closings = answers, [], 0
        self.seen = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        print("reset")
        self.options = options
        return self.answers.get("reset", (self.seen, {"n": 1}))

    def step(self, action):
        print("step")
        self.sent.append(action)
        return self.answers.get("step", (self.seen, 1, 0, np.bool_(True), {}))

    def close(self):
        self.closings += 1
        if "close" in self.answers:
            raise self.answers["close"]


@pytest.mark.parametrize("told", [[np.zeros(2), {}], (np.zeros(2),), (np.zeros(2), {}, 0), None])
def test_a_reset_gives_a_pair(told):
    with pytest.raises(UserError, match="where an observation and a dictionary belong at a reset"):
        Guard(World(reset=told), "W").reset()


@pytest.mark.parametrize("told", [(np.zeros(2), 0.0, False, False), (1,) * 6, None, {}])
def test_a_step_gives_five_things(told):
    env = Guard(World(step=told), "W")
    env.reset()
    with pytest.raises(UserError, match=r"truncated and a dictionary belong in step 0"):
        env.step(0)


def test_what_a_world_tells_is_plain_and_what_it_prints_is_no_result(capsys):
    inner = World()
    env = Guard(inner, "W")
    out = sys.stdout
    obs, info = env.reset(seed=3, options={"a": 1})
    assert (obs.tolist(), info, inner.options) == ([0, 0], {"n": 1}, {"a": 1})
    first = env.step(2)
    assert [type(x) for x in first[1:4]] == [float, bool, bool]
    assert (first[1:4], inner.sent, env.t) == ((1.0, False, True), [2], 1)
    inner.seen += 5  # over its own observation: what was shown stays
    assert (obs.tolist(), first[0].tolist()) == ([0, 0], [0, 0])
    env.reset()
    assert env.t == 0
    assert inner.options is None
    assert sys.stdout is out
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.split() == ["reset", "step", "reset"]
    as_list = Guard(World(step=[np.zeros(2), 1.0, False, False, {}]), "W")
    as_list.reset()
    assert as_list.step(0)[1] == 1.0


def test_an_episode_ends_after_a_hundred_thousand_steps():
    env = Guard(World(), "W")
    env.reset()
    env.t = 99_999
    env.step(0)
    with pytest.raises(UserError, match="went on for 100,000 steps"):
        env.step(0)
    env.reset()
    env.step(0)


def test_a_world_is_closed_once_and_its_failure_is_told_unless_another_is():
    inner = World()
    env = Guard(inner, "W")
    env.close()
    env.close()
    assert inner.closings == 1
    with pytest.raises(UserError, match="failed as it was closed: OSError: gone"):
        Guard(World(close=OSError("gone")), "W").close()
    failing = contextlib.closing(Guard(World(close=OSError("gone")), "W"))
    with pytest.raises(ZeroDivisionError), failing:
        raise ZeroDivisionError


def test_a_guard_is_put_on_once():
    inner = World()
    env = guard.guarded(inner, "called so")
    assert (type(env), env.name, guard.guarded(inner).name) == (Guard, "called so", "World")
    outer = TimeLimit(env, 5)
    assert guard.guarded(outer) is outer
    assert guard.guarded(TimeLimit(inner, 5)).name == "World"


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_both_spaces_are_gymnasiums(name):
    world = World()
    setattr(world, name, (0, 1))
    with pytest.raises(UserError, match=rf"has \(0, 1\) as its {name}"):
        Guard(world, "W")


def test_there_must_be_something_to_see():
    world = World()
    world.observation_space = Box(0, 1, (0,))
    with pytest.raises(UserError, match="nothing to see"):
        Guard(world, "W")


# --- words ---------------------------------------------------------------------------------------


class Hostile:
    def __str__(self):
        raise RuntimeError


def test_words_that_are_quoted_are_short_and_on_one_line():
    assert guard.plain("x" * 200) == "x" * 200
    assert guard.plain("x" * 201) == "x" * 199 + "…"
    assert guard.plain(" a \n b\t c ") == "a b c"
    assert guard.plain(Hostile()) == "Hostile"
    assert guard.first_line(ValueError("one.\ntwo")) == "one"
    assert guard.first_line(ValueError("  ")) == "ValueError"
    assert guard.failed("It", ValueError("")) == "It: ValueError: without a word"
    assert "sys.exit" in guard.failed("It", SystemExit(3))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.zeros((2, 3), np.float32), "an array of shape (2, 3) of float32"),
        ((1, 2), "a tuple of 2"),
        ([], "a list of 0"),
        (7, "7"),
        (None, "None"),
        ("x" * 100, "'" + 59 * "x"),
        ({}, "a dict"),
    ],
)
def test_what_came_in_a_few_words(value, says):
    assert guard.shown(value) == says


@pytest.mark.parametrize("raised", [UserError("ours"), KeyboardInterrupt()])
def test_what_is_ours_goes_through(raised):
    out = sys.stdout
    with pytest.raises(type(raised)) as caught, guard.calling("It"):
        raise raised
    assert caught.value is raised
    assert sys.stdout is out
    with guard.calling("It"):
        assert sys.stdout is sys.stderr


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [1, 1.0, True, np.float32(1), np.array(1), np.bool_(True), np.array(1, np.uint8)]
)
def test_a_reward_is_one_number(value):
    assert guard.real(value) == 1.0
    assert type(guard.real(value)) is float


@pytest.mark.parametrize(
    "value", [None, "1", np.ones(1), [1.0], 1j, np.array("1"), np.array(1j), np.datetime64(1, "s")]
)
def test_what_is_no_number_is_no_reward(value):
    with pytest.raises(Wrong, match="which must be one number"):
        guard.real(value)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_reward_is_one_that_networks_can_hold(sign):
    below = sign * float(np.nextafter(HELD, 0))
    assert guard.real(below) == below
    for beyond in (sign * HELD, sign * np.inf, sign * 10**400, np.float64(np.nan)):
        with pytest.raises(Wrong, match="not finite"):
            guard.real(beyond)


@pytest.mark.parametrize("value", [True, 1, np.bool_(True), np.int8(1), np.array(True)])
def test_yes_and_no(value):
    assert guard.flag(value) is True
    assert guard.flag(type(value)(0) if not isinstance(value, np.ndarray) else ~value) is False


@pytest.mark.parametrize(
    "value", [2, -1, None, 1.0, "True", np.array([True]), np.array(1.0), np.int64(2)]
)
def test_neither_yes_nor_no(value):
    with pytest.raises(Wrong, match="must be True or False"):
        guard.flag(value)


def test_observations_of_just_the_shape_and_finite():
    read = guard.reader(Box(-1, 1, (2,)))
    for value in ([1, 2], (True, False), np.array([3.0, -4.0]), np.array([1, 2], np.uint8)):
        np.testing.assert_array_equal(read(value), value)
    below = np.nextafter(HELD, 0)
    np.testing.assert_array_equal(read([below, -below]), [below, -below])
    for beyond in (HELD, -HELD, np.inf, np.nan):
        with pytest.raises(Wrong, match="not finite"):
            read([0.0, beyond])
    for shape in ([1.0], [[1.0, 2.0]], 1.0, [1.0] * 3):
        with pytest.raises(Wrong, match=r"its observation_space has shape \(2,\)"):
            read(shape)
    for no_numbers in (["a", "b"], [None, 1], [1j, 2], None):
        with pytest.raises(Wrong, match="must be an array of numbers"):
            read(no_numbers)
    with pytest.raises(Wrong, match="no array of one shape"):
        read([[1], [1, 2]])


def test_states_are_whole_numbers_of_the_list():
    read = guard.reader(Discrete(3, start=5))
    for value in (5, 7, np.int64(6), 6.0, np.array(6), np.float32(7)):
        assert read(value) == int(value)
    for outside in (4, 8, np.int8(4), 8.0):
        with pytest.raises(Wrong, match="from 5 to 7"):
            read(outside)
    for odd in (5.5, np.nan, np.inf, None, "5", np.array([5]), np.array(5j)):
        with pytest.raises(Wrong, match="whole number from 5 to 7"):
            read(odd)
    assert guard.reader(Discrete(2))(np.bool_(True)) == 1


def test_parts_are_read_one_by_one():
    read = guard.reader(spaces.Dict(a=Discrete(2), b=Box(0, 1, (1,))))
    assert read({"a": 1, "b": [0.5]}) == {"a": 1, "b": np.array([0.5])}
    for value in ({"a": 1}, {"a": 1, "b": [0], "c": 0}, [1, [0.5]]):
        with pytest.raises(Wrong, match="with its space's keys"):
            read(value)
    with pytest.raises(Wrong, match="from 0 to 1"):
        read({"a": 2, "b": [0.5]})
    row = guard.reader(spaces.Tuple((Discrete(2), Discrete(3))))
    assert row((1, 2)) == (1, 2)
    for value in ([1, 2], (1,), (1, 2, 0)):
        with pytest.raises(Wrong, match="not a tuple of 2"):
            row(value)
    words = guard.reader(spaces.Text(3))
    assert words("abc") == "abc"
    with pytest.raises(Wrong, match="is not in"):
        words("abcd")


# --- what is sent --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_a_box_of_no_action_is_refused(shape):
    with pytest.raises(UserError, match="at least one number"):
        refuse_actions(Box(0, 1, shape), "W")
    refuse_actions(Box(0, 1, (1,)), "W")
    refuse_actions(Discrete(2), "W")


def test_actions_are_kept_inside_of_bounds_that_round_outwards():
    """Of 0.1 and 0.7 in 64 bits, one of the two neighbours in 32 bits lies outside."""
    low, high = np.array([-0.1, -0.7, 0.1, -1.0]), np.array([0.1, 0.7, 0.7, 1.0])
    fit = fitting(Box(low, high, dtype=np.float64))
    far = np.array([9.0, -9.0, 0.3], np.float32)[:, None] * np.ones(4, np.float32)
    for sent in far:
        got = fit(sent)
        assert got.dtype == np.float32
        assert ((got.astype(np.float64) >= low) & (got.astype(np.float64) <= high)).all()
    assert fit(far[2])[1:].tolist() == far[2, 1:].tolist()  # inside: as it was
    nearest = fit(far[0]).astype(np.float64)
    beyond = np.nextafter(fit(far[0]), np.float32(np.inf)).astype(np.float64)
    assert ((nearest <= high) & (beyond > high)).all()  # and not one step too far in
    nearest = fit(far[1]).astype(np.float64)
    beyond = np.nextafter(fit(far[1]), np.float32(-np.inf)).astype(np.float64)
    assert ((nearest >= low) & (beyond < low)).all()
    double = np.full(4, 9.0)
    assert fit(double) is double
    assert fitting(Box(-1, 1, (2,), np.float32)) is None
    assert fitting(Box(-0.5, 0.5, (2,), np.float64)) is None
    assert fitting(Discrete(3)) is None
    one_sided = [
        fitting(Box(np.array([a]), np.array([b]), dtype=np.float64))
        for a, b in ((-0.1, 1.0), (-1.0, 0.1))
    ]
    assert None not in one_sided


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_boxes_of_whole_numbers_are_sent_whole_numbers(kind):
    reach = np.iinfo(kind)
    fit = fitting(Box(reach.min, reach.max, (2,), kind))
    got = fit(np.array([-1e30, 1e30], np.float32))
    assert got.dtype == kind
    assert [int(x) for x in got] == [reach.min, reach.max]
    assert fit(np.array([2.4, 2.6])).tolist() == [2, 3]
    whole = np.array([1, 2], kind)
    assert fit(whole) is whole
    narrow = fitting(Box(1, 5, (3,), kind))
    assert narrow(np.array([0.2, 3.0, 7.0])).tolist() == [1, 3, 5]

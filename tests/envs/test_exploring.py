"""Worlds made by hand, whose tables are known, explored; and those that no table can stand for."""

import copy
import os
import random
import subprocess
import sys
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import TimeLimit

import understudy
from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.envs import catalog, exploring, numbered, world_state
from understudy.envs.toy_text import from_env
from understudy.envs.world_state import Reading

LEFT, RIGHT, TOGGLE = range(3)


class Lamp(gymnasium.Env):
    """Three cells in a row. A lamp is switched in the last one, and the first one is the way out
    when it is lit. Only the cell is seen, as a vector."""

    observation_space, action_space = Box(0, 2, (1,), np.int64), Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.lit, self.clock = 0, False, 0
        return self.see(), {}

    def see(self):
        return np.array([self.cell])

    def earned(self):
        return 1.0

    def step(self, action):
        self.clock += 1
        if action == TOGGLE:
            self.lit ^= self.cell == 2
        else:
            self.cell = min(max(self.cell + (1 if action == RIGHT else -1), 0), 2)
        out = self.lit and self.cell == 0
        return self.see(), self.earned() if out else 0.0, out, False, {}


# By hand, in the order in which they are found from (0, dark): each state's successors by action.
BY_HAND = [[0, 1, 0], [0, 2, 1], [1, 2, 3], [4, 3, 2], [5, 3, 4], [5, 5, 5]]


def explored(world, horizon=12, **options):
    return exploring.explore(world, "World", layout=0, horizon=horizon, **options)


def test_a_lamp_by_hand():
    found = explored(Lamp())
    np.testing.assert_array_equal(found.succ, BY_HAND)
    assert (found.states, found.sink, found.clocks) == (6, 5, {"Lamp.clock"})
    gains = np.zeros((1, 6, 3))
    gains[0, 4, LEFT] = 1
    np.testing.assert_array_equal(found.reward, gains)
    mdp = found.mdp()
    assert mdp.sink == 5
    best = [float(mdps.optimum(explored(Lamp(), h).mdp(), explored(Lamp(), h).reward)[1])
            for h in (4, 5)]  # fmt: skip
    assert best == [0, 1]  # two steps there, a switch, two steps back


class Fading(Lamp):
    """The way out is worth less the later it is taken."""

    def earned(self):
        return 1 - self.clock / 10


def test_a_reward_that_depends_on_the_stage_has_one_for_each():
    found = explored(Fading(), horizon=9)
    assert found.reward.shape == (9, 6, 3)
    np.testing.assert_allclose(found.reward[:, 4, LEFT], 1 - np.arange(1, 10) / 10)
    assert np.count_nonzero(found.reward) == 9
    assert float(mdps.optimum(found.mdp(), found.reward)[1]) == pytest.approx(0.5)


class Tides(Lamp):
    """Cell 1 cannot be entered with an even step: the clock is more than a clock."""

    def step(self, action):
        if self.clock % 2 == 0 and self.cell == 0 and action == RIGHT:
            action = TOGGLE
        return super().step(action)


def test_a_clock_that_moves_the_world_is_part_of_its_state():
    found = explored(Tides(), horizon=8)
    assert "Tides.clock" not in found.clocks
    assert found.states > 6
    played(Tides(), found)
    assert float(mdps.optimum(found.mdp(), found.reward)[1]) == 1
    sooner = explored(Tides(), horizon=5)
    assert float(mdps.optimum(sooner.mdp(), sooner.reward)[1]) == 0


def played(world, found, episodes=100):
    """Random actions in the world, step by step beside the table."""
    rng, seen = np.random.default_rng(1), set()
    for _ in range(episodes):
        world.reset(seed=0)
        s = 0
        for stage in range(found.horizon):
            a = int(rng.integers(found.succ.shape[1]))
            _, gained, over, _, _ = world.step(a)
            assert gained == found.reward[stage if len(found.reward) > 1 else 0, s, a]
            s = int(found.succ[s, a])
            seen.add(s)
            assert over is (s == found.sink)
            if over:
                break
            assert Reading(world, found.clocks, {}).digest == found.digests[s]
    return seen


def test_random_actions_in_the_world_are_as_in_the_table():
    assert played(Lamp(), explored(Lamp())) == set(range(6))


class Pit(Lamp):
    """Grows for ever."""

    def step(self, action):
        self.depth = getattr(self, "depth", 0) + (action == TOGGLE)
        return super().step(action)

    def reset(self, **options):
        self.depth = 0
        return super().reset(**options)


def test_no_deeper_than_an_episode_and_no_more_than_asked():
    depths = [explored(Pit(), horizon=h).states for h in (1, 2, 3)]
    assert depths[0] == 3  # here, one to the right, one deeper
    assert depths[0] < depths[1] < depths[2]
    with pytest.raises(UserError, match=r"more than 20 states .* in 9 steps.*--horizon"):
        explored(Pit(), horizon=9, most=20)


class Slips(Lamp):
    """Slips now and then, by a generator of the test's choice."""

    def __init__(self, draw):
        self.draw = draw

    def step(self, action):
        if self.draw(self) < 0.1:
            action = TOGGLE
        return super().step(action)


DRAWS = {
    "its own": lambda world: world.np_random.random(),
    "Python's": lambda world: random.random(),
    "NumPy's": lambda world: np.random.random(),  # noqa: NPY002
    "a space's": lambda world: Slips.action_space.sample() / 3 + 0.05,
}


@pytest.mark.parametrize("whose", DRAWS)
def test_a_world_of_chance_is_refused(whose):
    with pytest.raises(UserError, match=r"World is random: action \d in its state \d+ led to"):
        explored(Slips(DRAWS[whose]))


def test_the_programs_own_generators_stay_where_they_are():
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    asked = random.random(), np.random.random()  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    explored(Lamp())
    for whose in ("Python's", "NumPy's"):
        with pytest.raises(UserError):
            explored(Slips(DRAWS[whose]))
    assert (random.random(), np.random.random()) == asked  # noqa: NPY002


def test_what_draws_and_yet_does_the_same_is_a_table():
    """FrozenLake without slipping draws a number in each step; its own table knows the optimum."""
    with pytest.raises(UserError, match="is random"):
        explored(gymnasium.make("FrozenLake-v1").unwrapped, horizon=6)
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    found, own = explored(lake, horizon=6), from_env(lake, horizon=6)
    best = [float(mdps.optimum(mdp, mdp.reward)[1]) for mdp in (found.mdp(), own)]
    assert best == [1, 1]
    played(lake.unwrapped, found)


class Elsewhere(Lamp):
    """Where it begins is not the seed's to say."""

    def reset(self, **options):
        seen = super().reset(**options)
        self.cell = random.randrange(10**6)
        return seen


class Counted(Lamp):
    """Counts its resets, and all its steps."""

    resets = steps = 0

    def reset(self, **options):
        self.resets += 1
        return super().reset(**options)

    def step(self, action):
        self.steps += 1
        return super().step(action)


def test_every_episode_begins_alike():
    with pytest.raises(UserError, match=r"begins elsewhere when it is reset with the same seed"):
        explored(Elsewhere())
    world = Counted()
    found = explored(world)
    np.testing.assert_array_equal(found.succ, BY_HAND)
    assert found.clocks == {"Counted.clock", "Counted.resets", "Counted.steps"}


class Drawn(Lamp):
    """One of two lengths, by the seed."""

    def reset(self, *, seed=None, options=None):
        seen = super().reset(seed=seed)
        self.far = int(self.np_random.integers(2))
        return seen

    def step(self, action):
        seen, gained, over, cut, info = super().step(action)
        return seen, gained, over and (self.far == 0 or self.clock > 9), cut, info


def test_the_layout_is_the_seed_of_every_reset():
    worlds = [understudy.explore(Drawn(), layout=n, horizon=8) for n in range(6)]
    lengths = [world.unwrapped.far for world in worlds]
    assert set(lengths) == {0, 1}
    for world, far in zip(worlds, lengths, strict=True):
        for seed in (None, 7, 8):
            assert world.reset(seed=seed)[0] == 0
            assert world.unwrapped.far == far


def test_an_episode_that_is_cut_off_too_early_names_the_horizon():
    for world in (TimeLimit(Lamp(), 6), TimeLimit(Fading(), 6)):
        with pytest.raises(UserError, match=r"cuts its episodes off after 6 steps"):
            explored(world, horizon=7)
        assert explored(world, horizon=6).states == 6
    own = Lamp()
    own.max_steps = 6
    with pytest.raises(UserError, match=r"cuts its episodes off after 6 steps"):
        understudy.explore(own, horizon=7)
    assert understudy.explore(own).found.horizon == 6


def test_what_cannot_be_explored_is_one_sentence():
    locked = Lamp()
    locked.lock = threading.Lock()
    with pytest.raises(UserError, match=r"Lamp cannot be (read|copied)"):
        understudy.explore(lambda: locked, horizon=3)
    continuous = Lamp()
    continuous.action_space = Box(-1, 1, (1,))
    with pytest.raises(UserError, match="needs Discrete actions"):
        explored(continuous)
    with pytest.raises(UserError, match="sets no time limit"):
        understudy.explore(Lamp())
    broken = Lamp()
    broken.earned = lambda: "much"
    with pytest.raises(UserError, match=r"gave 'much' as a reward.* as it was explored"):
        explored(broken)
    for wrong in ({"layout": -1}, {"horizon": 0}, {"most": 0}):
        with pytest.raises(UserError, match=str(*wrong.values())):
            understudy.explore(Lamp(), **{"horizon": 3, **wrong})


HIDDEN = [0]


class Secret(Lamp):
    """Its lamp is lit by what no attribute holds."""

    def step(self, action):
        HIDDEN[0] += 1
        if HIDDEN[0] > 60:
            self.lit = True
        return super().step(action)


def test_what_the_simulator_does_not_hold_is_found_out_and_refused():
    HIDDEN[0] = 0
    with pytest.raises(UserError, match=r"World.*(before; a table cannot stand|is random)"):
        explored(Secret())


# --- what a state is -----------------------------------------------------------------------------


class Holds(gymnasium.Env):
    action_space = observation_space = Discrete(2)

    def __init__(self, **held):
        vars(self).update(held)


def digest(clocks=frozenset(), **held):
    return Reading(Holds(**held), clocks, {}).digest


class Thing:
    def __init__(self, at):
        self.at = at


def test_values_tell_states_apart():
    held = [1, 2, 1.5, "1", b"1", True, None, (1, 2), (1, 3), ((1,), 2), [1, 2], {1: 2}, {1: 3},
            {1, 2}, Thing(1), Thing(2), np.arange(20), np.arange(20.0), np.eye(2)]  # fmt: skip
    assert len({digest(x=x) for x in held}) == len(held)
    assert digest(x=1, y=2) != digest(x=2, y=1) != digest(xy=12)
    assert digest(x="a\x1fb") != digest(x="a", b="")


def test_types_of_numbers_and_what_draws_do_not():
    alike = [(1, 2), np.array([1, 2]), (np.int64(1), np.int8(2))]
    assert len({digest(x=x) for x in alike}) == 1
    assert digest(x=1) == digest(x=1, window=None, render_mode="human", np_random=random.Random(1))
    assert digest(frozenset({"Holds.t"}), x=1, t=3) == digest(frozenset({"Holds.t"}), x=1, t=4)
    assert digest(d={"a": 1, "b": 2}) == digest(d={"b": 2, "a": 1})


def test_whether_two_things_are_one_is_part_of_the_state():
    one = Thing(1)
    assert digest(x=[one, one]) != digest(x=[Thing(1), Thing(1)])
    circle = Thing(None)
    circle.at = circle
    assert digest(x=circle) == digest(x=copy.deepcopy(circle)) != digest(x=Thing(None))


class Says(Lamp):
    """Has what no copy compares, and says itself what its state is."""

    def __init__(self):
        self.since = [0.0]

    def understudy_state(self):
        return {"cell": self.cell, "lit": self.lit}

    def step(self, action):
        self.since.append(float(len(self.since)))
        return super().step(action)


def test_an_environment_may_say_what_its_state_is():
    np.testing.assert_array_equal(explored(Says()).succ, BY_HAND)


def test_the_numbers_are_the_same_in_every_process():
    code = (
        "import gymnasium; from understudy.envs import exploring\n"
        "world = gymnasium.make('CliffWalking-v1')\n"
        "print(exploring.explore(world, 'W', layout=0, horizon=4).fingerprint())"
    )
    here = exploring.explore(gymnasium.make("CliffWalking-v1"), "W", layout=0, horizon=4)
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "5"},
    )
    assert told.stdout.strip() == here.fingerprint(), told.stderr


# --- to play in, and to learn --------------------------------------------------------------------


class Rooms(Lamp):
    """The same, seen as a dictionary."""

    observation_space = Dict(cell=Discrete(3), lit=Box(0, 1, (1,), np.int8))

    def see(self):
        return {"cell": self.cell, "lit": np.array([self.lit], np.int8)}


@pytest.mark.parametrize("kind", [Lamp, Rooms])
def test_states_are_numbered_as_one_plays(kind):
    own = kind()
    world = understudy.explore(own, horizon=12)
    assert not vars(own)  # it was copied
    assert (world.observation_space, world.found.horizon) == (Discrete(6), 12)
    world.reset(seed=9)
    went = [world.step(a)[0] for a in (RIGHT, RIGHT, TOGGLE, LEFT)]
    assert went == [1, 2, 3, 4]
    assert world.step(LEFT)[:4] == (5, 1.0, True, False)
    world.reset()
    assert [world.step(TOGGLE)[3] for _ in range(12)] == [False] * 11 + [True]
    assert catalog.of_env(world, "World").name == f"{__name__}:{kind.__name__}-layout0"
    with pytest.raises(UserError, match="was explored for episodes of 12 steps"):
        catalog.of_env(world, "World", horizon=7)


def test_a_world_that_went_on_otherwise_is_refused_as_one_plays():
    world = understudy.explore(Lamp(), horizon=12)
    world.reset()
    world.unwrapped.lit = 7
    with pytest.raises(UserError, match=r"not there when it was explored.*understudy_state"):
        world.step(RIGHT)


@pytest.mark.parametrize("given", ["object", "class", "explored"])
def test_a_dictionary_is_learned_as_a_table_with_its_regret(given):
    env = {"object": Rooms(), "class": Rooms, "explored": understudy.explore(Rooms(), horizon=8)}
    config = understudy.Config(interactions=60)
    horizon = None if given == "explored" else 8
    result = understudy.train(env[given], config=config, horizon=horizon)
    assert result.summary["env"] == f"{__name__}:Rooms-layout0"
    assert result.returns[-1] == pytest.approx(1, abs=0.05)
    assert result.regret["ail"][-1] > 0
    world, s, state = understudy.explore(Rooms(), horizon=8), 0, None
    world.reset()
    over = cut = False
    while not (over or cut):
        action, state = result.policy.predict(s, state)
        s, gained, over, cut, _ = world.step(action)
    assert (gained, over) == (1, True)


def test_a_name_is_explored_once():
    numbered._found.clear()
    one, two = (catalog.make("CliffWalking-v1-layout0", horizon=3) for _ in range(2))
    assert one.found is two.found
    assert catalog.find("CliffWalking-v1-layout0", horizon=3).explored == one.found.fingerprint()
    assert catalog.make("CliffWalking-v1-layout1", horizon=3).found is not one.found
    assert world_state.core(one.env.env) is one.unwrapped

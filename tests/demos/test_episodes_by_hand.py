"""Who acts, and what is kept of it: sampled in tables, played, recorded."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from random_mdps import random_mdp, random_policy

from understudy.core import mdp as mdps
from understudy.core.errors import UserError
from understudy.demos import recording, rollout, scripted, shipped
from understudy.envs import wide_grid


@pytest.mark.parametrize("staged", [True, False])
def test_sampled_episodes_follow_the_policy_and_the_table(staged):
    mdp = random_mdp(3, 4, 2, 2, staged=staged, seed=1)
    pi = np.asarray(random_policy(mdp, 2, 1.0))
    shown = rollout.sample(mdp, pi, 600, seed=5)
    states, actions = np.array(shown.observations), np.array(shown.actions)
    assert (states.shape, actions.shape) == ((600, 4), (600, 3))
    assert shown.terminated == [False] * 600
    d = np.zeros(mdp.shape)
    for h in range(3):
        s, a = states[:, h], actions[:, h]
        np.testing.assert_array_equal(
            np.array(shown.rewards)[:, h], np.asarray(mdp.reward)[h, s, a]
        )
        t = h if staged else 0
        succ, prob = np.asarray(mdp.succ)[t, s, a], np.asarray(mdp.prob)[t, s, a]
        assert (prob[succ == states[:, h + 1, None]] > 0).all()
        np.add.at(d[h], (s, a), 1 / 600)
    truth = np.asarray(mdps.occupancy(mdp, pi))
    assert (np.abs(d - truth) <= 4.5 * np.sqrt(truth * (1 - truth) / 600) + 1e-9).all()
    again = rollout.sample(mdp, pi, 600, seed=5)
    np.testing.assert_array_equal(np.array(again.actions), actions)
    other = rollout.sample(mdp, pi, 600, seed=6)
    assert not np.array_equal(np.array(other.actions), actions)


class Ladder(gymnasium.Env):
    """States 5 … 9, actions 2 and 3: 3 climbs and pays the state, 2 stays and pays nothing; the
    top ends it, and so do eight steps. It begins where its seed says."""

    observation_space, action_space = Discrete(5, start=5), Discrete(2, start=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t, self.seed = 5 + (seed or 0) % 2, 0, seed
        return self.at, {}

    def step(self, action):
        assert action in (2, 3)
        self.t += 1
        gained = float(self.at) if action == 3 else 0.0
        self.at += int(action == 3)
        return self.at, gained, self.at == 9, self.t == 8, {}


def test_a_policy_with_tables_plays_in_the_worlds_own_numbers():
    """Climbs at the first two stages, then stays."""
    pi = np.zeros((4, 5, 2))
    pi[:2, :, 1] = pi[2:, :, 0] = 1
    rng = np.random.default_rng(0)
    assert [*rollout.play(Ladder(), pi, seed=0, rng=rng)] == [0, 5, 11, 11, 11]
    assert [*rollout.play(Ladder(), pi, seed=1, rng=rng)] == [0, 6, 13, 13, 13]
    up = np.tile([0.0, 1.0], (9, 5, 1))
    assert [*rollout.play(Ladder(), up, seed=0, rng=rng)] == [0, 5, 11, 18, 26]
    stay = np.tile([1.0, 0.0], (9, 5, 1))
    assert [*rollout.play(Ladder(), stay, seed=0, rng=rng)] == [0.0] * 9


def test_a_policy_that_says_nan_is_stopped():
    world = Ladder()
    world.action_space = Box(0, 9, (1,))
    asked = rollout.follow(world, lambda obs, state, deterministic: (np.array([np.nan]), 0), seed=0)
    assert next(asked) == 0
    with pytest.raises(UserError, match="became NaN"):
        next(asked)


def test_episodes_are_recorded_with_a_seed_each():
    told, firsts = [], []

    def play(obs, first):
        firsts.append(first)
        return 3

    shown = recording.record(Ladder(), play, 3, seed=4, told=told.append)
    climbed = [5, 6, 7, 8, 9]
    assert [o.tolist() for o in shown.observations] == [climbed, climbed[1:], climbed]
    assert [a.tolist() for a in shown.actions] == [[3] * 4, [3] * 3, [3] * 4]
    assert shown.returns.tolist() == told == [26, 21, 26]
    assert shown.terminated == [True] * 3
    assert firsts == [True, False, False, False, True, False, False, True, False, False, False]
    assert recording.record(Ladder(), recording.acting(lambda obs: 2), 1).terminated == [False]
    assert len(recording.record("CartPole-v1", recording.acting(lambda obs: 0), 2)) == 2


def test_who_has_had_enough_keeps_whole_episodes():
    def enough(after):
        left = iter([3] * after)

        def play(obs, first):
            try:
                return next(left)
            except StopIteration:
                raise recording.Done from None

        return play

    assert len(recording.record(Ladder(), enough(6), 9)) == 1
    assert len(recording.record(Ladder(), enough(7), 9)) == 2
    with pytest.raises(UserError, match="No episode was played to its end"):
        recording.record(Ladder(), enough(3), 9)


class Pushed(gymnasium.Env):
    observation_space, action_space = Box(-9, 9, (2,), np.float64), Box(-1, 1, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2), {}

    def step(self, action):
        action *= 0  # it may do as it likes with what it is given
        self.t += 1
        return np.full(2, float(self.t)), 0.0, False, self.t == 2, {}


def test_neither_the_player_nor_the_world_can_change_what_was_recorded():
    own = np.ones(1)

    def play(obs, first):
        obs += 100
        own[:] = 0.5
        return own

    shown = recording.record(Pushed(), play, 1)
    assert shown.observations[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert shown.actions[0].tolist() == [[0.5], [0.5]]


@pytest.mark.parametrize("bad", [1, 4, None, "3"])
def test_an_action_that_the_world_does_not_have_is_refused(bad):
    with pytest.raises(UserError, match="is not in Discrete"):
        recording.record(Ladder(), lambda obs, first: bad, 1)


def test_a_player_that_fails_is_named():
    def fail(*args):
        raise ZeroDivisionError("why")

    class Fails:
        predict = fail

    for player in (recording.acting(fail), recording.predicting(Fails())):
        with pytest.raises(UserError, match="The player failed: ZeroDivisionError: why"):
            recording.record(Ladder(), player, 1)


def test_a_policy_is_asked_deterministically_with_its_memory():
    asked = []

    class Remembers:
        def predict(self, observation, state, episode_start, deterministic):
            asked.append((int(observation), state, episode_start.tolist(), deterministic))
            return 3, (state or 0) + 1

    recording.record(Ladder(), recording.predicting(Remembers()), 2, seed=1)
    assert asked == [
        (6, None, [True], True),
        (7, 1, [False], True),
        (8, 2, [False], True),
        (5, None, [True], True),
        (6, 1, [False], True),
        (7, 2, [False], True),
        (8, 3, [False], True),
    ]


@pytest.mark.parametrize(
    ("x", "edge"),
    [((0, 0, None, -0.1), 0.04), ((-1.0, 0, None, 0), 0.05), ((0, -0.5, None, 0), 0.05)],
)
def test_the_angle_from_which_a_pole_is_pushed_the_other_way(x, edge):
    """0.4 of its turning, 0.05 of the place, 0.1 of the speed: just above and just below."""
    for angle, push in ((1.02 * edge, 1), (0.98 * edge, 0)):
        assert scripted.balance(np.array([angle if v is None else v for v in x])) == push


def test_the_best_way_across_the_wide_grid():
    shown = scripted.across_the_wide_grid(20, 3, seed=0)
    assert [o.shape for o in shown.observations] == [(41, 2)] * 3
    table = wide_grid.table(20)
    best = float(mdps.optimum(table, table.reward)[1])
    assert shown.returns.mean() == pytest.approx(best, rel=0.1)
    for o, r in zip(shown.observations, shown.rewards, strict=True):
        assert o[0].tolist() == [0, 0]
        assert (o[-1] > 0.7).all()
        assert r[:5].max() < 1e-9  # the corner opposite pays, and is far
        assert r[-1] > 0.3
    short = scripted.across_the_wide_grid(20, 1, seed=0, horizon=6)
    assert [len(a) for a in short.actions] == [6]


def test_experts_that_come_with_the_package_are_found_by_their_name():
    assert shipped.find("NoSuchThing-v0") is None
    assert shipped.find("data/Hopper-v5") is None
    found = shipped.find("Hopper-v5")
    assert found is not None
    assert len(found) == 10

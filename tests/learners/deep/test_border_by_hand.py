"""The border between a world's units and the networks', and who stands at it."""

import dataclasses
import math
import types

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, Text

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import Diverged, UserError
from understudy.learners.deep import absorbing, acting, asking, expert_points, rehearsal, scaling
from understudy.learners.deep import actor as actors
from understudy.learners.deep.collect import Collector
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.evaluation import Evaluator
from understudy.learners.deep.networks import mlp
from understudy.learners.deep.rehearsal import Method, Place, Schedule
from understudy.learners.deep.scaling import Scaling


class World(gymnasium.Env):
    """Goes up by its action each step, pays where it is, and is cut after a while; seeds say where
    it begins. It ends where it comes to ten."""

    def __init__(self, seen=None, acted=None, lasts=4):
        self.observation_space = seen or Box(-99, 99, (2,), np.float64)
        self.action_space = acted or Box(-1, 3, (1,), np.float64)
        self.lasts, self.seeds, self.sent, self.closed = lasts, [], [], 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.at, self.t = float(seed % 5), 0
        return np.array([self.at, 0.0]), {}

    def step(self, action):
        self.sent.append(action)
        self.t += 1
        self.at += float(np.asarray(action).sum())
        over = self.at >= 10
        return np.array([self.at, self.t]), self.at, over, self.t == self.lasts and not over, {}

    def close(self):
        self.closed += 1


# --- scaling -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acted", "low", "high", "actions"),
    [
        (Box(np.float32([[-1, 0]]), np.float32([[1, 4]])), [-1, 0], [1, 4], 2),
        (Box(-2, 5, (3,), np.int64), [-2] * 3, [5] * 3, 3),
        (Discrete(4), [0], [3], 4),
        (Discrete(4, start=-2), [-2], [1], 4),
    ],
)  # fmt: skip
def test_the_border_of_a_worlds_spaces(acted, low, high, actions):
    border = scaling.of_spaces(World(Box(-1, 1, (2, 3)), acted), "World")
    assert (border.observations, border.actions) == (6, actions)
    assert (border.low.tolist(), border.high.tolist()) == (low, high)
    assert border.discrete is isinstance(acted, Discrete)
    assert (border.mean.tolist(), border.std.tolist()) == ([0] * 6, [1] * 6)


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (World(seen=Discrete(3)), "the deep learner needs a Box of numbers"),
        (World(seen=Box(0, 1, (2,), bool)), "the deep learner needs a Box of numbers"),
        (World(acted=Box(-np.inf, 1, (1,))), "a bounded Box, Discrete"),
        (World(acted=Box(-1, np.inf, (1,))), "a bounded Box, Discrete"),
        (World(acted=Box(1, 1, (1,))), "a bounded Box, Discrete"),
        (World(acted=Text(3)), "a bounded Box, Discrete"),
        (World(acted=MultiBinary(11)), "2,048 combinations"),
    ],
)
def test_spaces_that_networks_cannot_use(world, says):
    with pytest.raises(UserError, match=says):
        scaling.of_spaces(world, "World")


def test_actions_go_in_and_out_and_stay_inside():
    border = scaling.of_spaces(World(acted=Box(np.float32([-1, 2]), np.float32([3, 4]))), "W")
    raw = np.array([[-1.0, 4.0], [1.0, 2.5], [3.0, 3.0]])
    inside = border.encode(raw)
    np.testing.assert_allclose(inside, [[-1, 1], [0, -0.5], [1, 0]])
    np.testing.assert_allclose(border.decode(inside), raw)
    np.testing.assert_allclose(border.decode(np.array([[-1.5, 2.0]])), [[-1, 4]])
    choice = scaling.of_spaces(World(acted=Discrete(3, start=4)), "W")
    np.testing.assert_array_equal(choice.encode(np.array([4, 6])), [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(choice.decode(np.array([[0.1, 0.2, 0.1], [3, 2, 1]])), [5, 4])


@pytest.mark.parametrize("width", [0.5, 8.0])
def test_demonstrations_may_miss_a_bound_by_a_thousandth(width):
    world = World(acted=Box(-width, width, (1,), np.float64))
    border, obs = scaling.of_spaces(world, "World"), np.zeros((1, 2))
    off = 1e-3 * min(1, 2 * width)
    for sign in (1, -1):
        border.check(obs, np.array([[sign * (width + 0.9 * off)]]), world, "World")
        with pytest.raises(UserError, match="have the action"):
            border.check(obs, np.array([[sign * (width + 1.5 * off)]]), world, "World")


def test_demonstrations_of_another_world_are_refused():
    world = World()
    border = scaling.of_spaces(world, "World")
    with pytest.raises(UserError, match=r"observations of shape \(3,\); World has \(2,\)"):
        border.check(np.zeros((4, 3)), np.zeros((4, 1)), world, "World")
    with pytest.raises(UserError, match=r"actions of shape \(\); World has \(1,\)"):
        border.check(np.zeros((4, 2)), np.zeros(4), world, "World")
    choice = World(acted=Discrete(3))
    border = scaling.of_spaces(choice, "World")
    border.check(np.zeros((2, 2)), np.array([0, 2]), choice, "World")
    with pytest.raises(UserError, match="fractional actions"):
        border.check(np.zeros((2, 2)), np.array([0.5, 1]), choice, "World")
    with pytest.raises(UserError, match="have the action 3"):
        border.check(np.zeros((2, 2)), np.array([0, 3]), choice, "World")


@pytest.mark.parametrize(
    ("size", "spread", "kind"),
    [
        (2.0**14, 1.0, np.float32),
        (2.0**14 + 1, 1.0, np.float64),  # of 24 bits fewer than ten would be left
        (1e37, 1e36, np.float32),
        (1.1e37, 1e36, np.float64),
        (1e-32, 1.1e-35, np.float32),
        (1e-35, 0.9e-35, np.float64),
    ],
)
def test_single_precision_where_it_is_fine_enough(size, spread, kind):
    assert scaling.fine_enough(np.array([1.0, size]), np.array([1.0, spread])) is kind


def test_standardised_by_mean_and_deviation():
    seen = np.array([[0.0, 5.0, 1.0], [2.0, 5.0, 4.0], [4.0, 5.0, 7.0]])
    border = Scaling(np.zeros(3), np.ones(3), *np.zeros((2, 1)), discrete=False)
    found = scaling.standardised(border, seen)
    np.testing.assert_allclose(found.mean, [2, 5, 4])
    np.testing.assert_allclose(found.std, [math.sqrt(8 / 3), 1, math.sqrt(6)], rtol=1e-6)
    np.testing.assert_allclose(found.obs(seen).mean(0), 0, atol=1e-6)
    last = scaling.standardised(border, seen, absorbing=True)
    assert (last.mean[-1], last.std[-1], last.mean[0]) == (0, 1, 2)


@pytest.mark.parametrize(("share", "varies"), [(0.5, False), (2.0, True)])
def test_a_spread_of_rounding_is_none(share, varies):
    """A trillionth of the number itself, or a quadrillionth of what varies most."""
    near = np.array([[1.0], [1.0 + 2e-12 * share]])
    border = Scaling(np.zeros(1), np.ones(1), *np.zeros((2, 1)), discrete=False)
    assert (scaling.standardised(border, near).std[0] != 1) == varies
    two = np.array([[0.0, -1.0], [2e-15 * share, 1.0]])
    two[:, 0] -= two[:, 0].mean()
    border = Scaling(np.zeros(2), np.ones(2), *np.zeros((2, 1)), discrete=False)
    assert (scaling.standardised(border, two).std[0] != 1) == varies


# --- asking --------------------------------------------------------------------------------------


def test_what_is_too_far_off_for_networks_is_the_worlds_doing():
    border = Scaling(np.zeros(2), np.full(2, 0.5), *np.zeros((2, 1)), discrete=False)
    near = np.array([[1.0, 0.49e12], [0.0, 0.0]])
    np.testing.assert_allclose(asking.scaled(border, near, "World"), 2 * near)
    for far in (0.51e12, np.nan, np.inf):
        with pytest.raises(UserError, match="Environment World gave an observation with the num"):
            asking.scaled(border, np.array([[1.0, 2.0], [far, 0.0]]), "World")
    with pytest.raises(UserError, match=r"number -6e[+]11, .* where it is 1.2e[+]12"):
        asking.scaled(border, np.array([[1.0, 2.0], [-6e11, 0.0]]), "World")
    many = np.full((1, 2), 0.49e12)  # their squares add up, and each is near enough
    np.testing.assert_allclose(asking.scaled(border, many, "World"), 2 * many)


def test_a_world_is_tried_for_three_steps_and_from_the_start_where_it_ends():
    for lasts, resets in ((9, 1), (3, 2), (2, 2), (1, 4)):
        world = World(lasts=lasts)
        asking.try_out(world)
        assert (len(world.sent), world.seeds) == (3, [0] * resets)
    other = World()
    asking.try_out(other)
    again = World()
    asking.try_out(again)
    assert np.array_equal(other.sent, again.sent)  # the same actions every time


def test_actions_as_they_are_sent():
    taken = np.arange(6.0).reshape(3, 2)
    assert asking.as_sent(None, (2,), taken) is taken
    seen = []

    def fit(action):
        seen.append(action.shape)
        return np.rint(action + 0.2)

    np.testing.assert_array_equal(asking.as_sent(fit, (2, 1), taken), taken)
    assert seen == [(2, 1)] * 3
    world = World(acted=Discrete(2))
    asking.begin(world, seed=1)
    asking.step(world, np.int64(1))
    assert (world.sent, type(world.sent[0])) == ([1], int)
    shaped = World(acted=Box(-1, 1, (1, 2)))
    assert asking.begin(shaped, seed=7).tolist() == [2, 0]
    obs, reward, ended, cut = asking.step(shaped, np.array([0.5, 0.25]))
    assert (obs.tolist(), reward, ended, cut) == ([2.75, 1], 2.75, False, False)
    assert shaped.sent[0].shape == (1, 2)


# --- practice, and going on ----------------------------------------------------------------------

ONE = scaling.of_spaces(World(), "World")


def collector(worlds, **options):
    making = iter(worlds)
    given = {"lanes": len(worlds), "seed": 3, "name": "World"} | options
    return Collector(lambda: next(making), ONE, **given)


def still(obs, episodes):
    return np.zeros((len(obs), 1), np.float32)  # in the middle of [−1, 3]: one up


def test_a_run_goes_on_where_it_was():
    first, second = collector([World(), World()]), collector([World(), World()])
    first.practise(still, 6)
    saved = first.state()
    second.restore(saved)
    assert second.ended == first.ended
    a, b = first.practise(still, 5), second.practise(still, 5)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
    assert first.ended == second.ended
    for x, y in zip(first.state().values(), second.state().values(), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_record_holds_what_was_seen_done_and_paid():
    one = collector([World()])
    begun = one.lanes[0].obs[0]
    one.practise(still, 6)
    saved = one.state()
    place = [begun + t for t in range(1, 5)]  # one up a step; cut after four
    assert saved["0/before/rewards"].tolist() == place
    assert saved["0/before/obs"].tolist() == [begun + 4, 4]
    assert saved["0/before/actions"].tolist() == [[1.0]] * 4
    assert saved["ended"].tolist() == [sum(place)]
    assert int(saved["0/episode"]) == 1
    again = one.lanes[0].obs[0] - 2
    assert saved["0/rewards"].tolist() == [again + 1, again + 2]
    assert one.lanes[0].gained == 2 * again + 3


def test_the_episode_before_is_played_twice_and_the_one_under_way_once():
    world = World()
    before = collector([World()])
    before.practise(still, 6)  # one whole episode of four, and two steps
    after = collector([world])
    begun = len(world.seeds)
    after.restore(before.state())
    seeds = world.seeds[begun:]
    assert len(seeds) == 3
    assert seeds[0] == seeds[1] != seeds[2]
    assert len(world.sent) == 4 + 4 + 2
    fresh = World()
    none = collector([World()])
    none.practise(still, 2)
    collector([fresh]).restore(none.state())
    assert len(fresh.sent) == 2 + 2
    untouched = World(lasts=1000)
    collector([untouched]).restore(collector([World(lasts=1000)]).state())
    assert 1 <= len(untouched.sent) <= 100  # a trial, twice in all: no episode to play again


@pytest.mark.parametrize(("spoilt", "how"), [("rewards", "rewards"), ("obs", "place")])
def test_a_world_that_comes_elsewhere_is_refused(spoilt, how):
    before = collector([World()])
    before.practise(still, 2)
    saved = before.state()
    saved[f"0/{spoilt}"] = saved[f"0/{spoilt}"] + 1
    with pytest.raises(UserError, match=f"did not come to the same {how}"):
        collector([World()]).restore(saved)


def test_an_action_of_nan_ends_practice():
    with pytest.raises(Diverged, match="became NaN"):
        collector([World()]).practise(lambda obs, episodes: np.full((1, 1), np.nan, np.float32), 1)


def test_worlds_are_closed():
    worlds = [World(), World()]
    collector(worlds).close()
    assert [world.closed for world in worlds] == [1, 1]


# --- measurement ---------------------------------------------------------------------------------


def test_episodes_are_played_side_by_side_to_their_ends():
    """Seeds 10,000 … begin at 0, 1, 2; by threes they end at 10 or are cut after four steps."""
    worlds = [World() for _ in range(3)]
    making = iter(worlds)
    evaluator = Evaluator(lambda: next(making), ONE, episodes=3, name="World")
    seen = []

    def act(obs):
        seen.append(obs.shape)
        return np.ones((len(obs), 1), np.float32)  # three up

    shown = evaluator(act)
    assert [world.seeds for world in worlds] == [[10_000], [10_001], [10_002]]
    assert [o[:, 0].tolist() for o in shown.observations] == [
        [0, 3, 6, 9, 12],
        [1, 4, 7, 10],
        [2, 5, 8, 11],
    ]
    assert [a.tolist() for a in shown.actions] == [[[3.0]] * 4, [[3.0]] * 3, [[3.0]] * 3]
    assert shown.returns.tolist() == [30, 21, 24]
    assert shown.terminated == [True, True, True]
    assert seen == [(3, 2)] * 4
    cut = evaluator(lambda obs: still(obs, None), seed=4)
    assert cut.terminated == [False] * 3
    assert [world.seeds[-1] for world in worlds] == [4, 5, 6]
    evaluator.close()
    assert [world.closed for world in worlds] == [1] * 3
    with pytest.raises(Diverged, match="became NaN"):
        Evaluator(World, ONE, episodes=1, name="World")(lambda obs: np.full((1, 1), np.nan))


# --- the loop ------------------------------------------------------------------------------------


class Storage:
    def __init__(self):
        self.rows, self.kept = [], []

    def append(self, row):
        self.rows.append(dict(row))

    def keep(self, place, collector):
        self.kept.append(place.interactions)


def rehearsed(schedule, *, fresh=2, lanes=2, info=None, place=None):
    """A learner that learns nothing; its state counts."""
    net = actors.actor(2, 1, (4,), discrete=False, key=jax.random.key(0))
    method = Method(
        {"net": net, "n": jnp.zeros(())},
        fresh,
        lambda state, n: still,
        lambda state, practised, n: (
            {"net": state["net"], "n": state["n"] + 1},
            info or {"mean": practised["reward"].mean(), "at": np.float32(n)},
        ),
        lambda state: state["net"],
    )
    storage, told = Storage(), []
    practice = collector([World(lasts=5) for _ in range(lanes)])
    evaluator = Evaluator(World, ONE, episodes=2, name="World")
    place = place or rehearsal.begin(method)
    actor = rehearsal.rehearse(
        place, method, practice, evaluator, schedule, storage,
        lambda n, row: told.append((n, row is not None)), begun=0.0,
    )  # fmt: skip
    return types.SimpleNamespace(
        place=place, rows=storage.rows, kept=storage.kept, told=told, actor=actor, net=net,
        practice=practice,
    )  # fmt: skip


def test_whole_iterations_are_counted():
    method = Method(None, 3, *[lambda *_: None] * 3)
    for interactions, whole in ((0, 0), (1, 6), (6, 6), (17, 12), (18, 18)):
        schedule = Schedule(interactions, 1, 1, keep_best=False, checkpoint_seconds=1e9)
        assert rehearsal.total(schedule, method, 2) == whole


def test_measurements_are_spread_over_the_run():
    ran = rehearsed(Schedule(26, 3, 2, keep_best=False, checkpoint_seconds=1e9))
    assert [row["interactions"] for row in ran.rows] == [0, 8, 16, 24]
    assert [row["updates"] for row in ran.rows] == [0, 2, 4, 6]
    assert ran.told == [(n, n % 8 == 0) for n in range(0, 25, 4)]
    assert [row.get("at") for row in ran.rows] == [None, 4, 12, 20]
    assert ran.kept == [0]  # before it begins, and then not for a while
    assert (float(ran.place.state["n"]), ran.place.interactions) == (6, 24)
    first = ran.rows[0]
    played = Evaluator(World, ONE, episodes=2, name="World")(acting.deterministic(ran.net))
    assert first["return"] == pytest.approx(played.returns.mean())
    assert first["return_std"] == pytest.approx(played.returns.std())
    assert first["length"] == np.mean([len(a) for a in played.actions])
    assert first["practice_return"] is None
    assert all(row["practice_return"] is not None for row in ran.rows[2:])


def test_a_run_begins_with_nothing_done():
    net = actors.actor(2, 1, (4,), discrete=False, key=jax.random.key(0))
    place = rehearsal.begin(Method(net, 1, *[lambda *_: None] * 2, lambda state: state))
    assert (place.interactions, place.seconds, place.measured) == (0, 0, False)
    assert place.best_return == -math.inf
    for a, b in zip(jax.tree.leaves(place.best), jax.tree.leaves(net), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a is not b


def test_checkpoints_are_kept_as_often_as_asked():
    ran = rehearsed(Schedule(12, 1, 1, keep_best=False, checkpoint_seconds=0.0))
    assert ran.kept == [0, 4, 8, 12]
    assert ran.place.seconds > 0


def test_a_run_goes_on_without_measuring_anew():
    begun = rehearsed(Schedule(12, 1, 1, keep_best=False, checkpoint_seconds=1e9)).place
    more = rehearsed(Schedule(24, 1, 1, keep_best=False, checkpoint_seconds=1e9), place=begun)
    assert [row["interactions"] for row in more.rows] == [24]
    assert more.kept == []


def test_what_is_enough_ends_a_run():
    ran = rehearsed(Schedule(400, 100, 2, keep_best=True, checkpoint_seconds=1e9, enough=-1e9))
    assert (ran.place.interactions, len(ran.rows)) == (0, 1)
    assert ran.actor is ran.place.best
    assert ran.place.best_return == ran.rows[0]["return"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_ends_a_run_in_its_iteration(bad):
    schedule = Schedule(8, 1, 1, keep_best=False, checkpoint_seconds=1e9)
    with pytest.raises(Diverged, match="The learner's critic loss became NaN"):
        rehearsed(schedule, info={"fine": 1.0, "critic_loss": np.float32(bad)})
    with pytest.raises(Diverged, match=r"state\['w'\] became NaN"):
        rehearsal.refuse_nan_in({"n": jnp.int32(3), "w": jnp.array([0.0, bad])})
    rehearsal.refuse_nan_in({"n": jnp.int32(3), "w": jnp.zeros(2)})


def test_the_best_is_kept_only_where_something_is_better():
    ran = rehearsed(Schedule(8, 2, 1, keep_best=True, checkpoint_seconds=1e9))
    place = Place({"net": ran.net, "n": jnp.zeros(())}, ran.net, best_return=1e9)
    more = rehearsed(Schedule(4, 1, 1, keep_best=True, checkpoint_seconds=1e9), place=place)
    assert more.actor is ran.net
    assert place.best_return == 1e9


# --- demonstrations in the networks' units -------------------------------------------------------


def shown(lengths=(3, 2), ends=(True, False)):
    rng = np.random.default_rng(0)
    return Demonstrations(
        [rng.normal(size=(n + 1, 2)) for n in lengths],
        [rng.uniform(-1, 3, (n, 1)) for n in lengths],
        [np.ones(n) for n in lengths],
        list(ends),
    )


def points(demos, thin=None, **options):
    config = dataclasses.replace(DeepConfig(normalise=False), **options)
    world = absorbing.Absorbing(World()) if config.absorbing else World()
    border = scaling.of_spaces(world, "World")
    return expert_points.expert_points(demos, world, border, config, "World", thin)


def test_an_end_is_the_last_step_of_an_episode_that_ended():
    demos = shown()
    found, border = points(demos)
    assert found.terminated.tolist() == [False, False, True, False, False]
    o = demos.observations
    np.testing.assert_allclose(found.obs, np.concatenate([x[:-1] for x in o]), rtol=1e-6)
    np.testing.assert_allclose(found.next_obs, np.concatenate([x[1:] for x in o]), rtol=1e-6)
    actions = (np.concatenate(demos.actions) + 1) / 2 - 1
    np.testing.assert_allclose(found.action, actions, atol=1e-6)
    np.testing.assert_array_equal(border.std, 1)
    _, standard = points(demos, normalise=True)
    np.testing.assert_allclose(standard.mean, np.concatenate([x[:-1] for x in o]).mean(0))
    over, _ = points(demos, absorbing=True)
    assert over.obs.shape == (6, 3)
    assert not over.terminated.any()


def test_every_so_many_steps_are_shown():
    demos = shown((40, 30))
    found, _ = points(demos, thin=30)
    assert len(found.obs) in (2, 3)
    with pytest.raises(UserError, match="from 1 to 30, the shortest"):
        points(demos, thin=31)
    with pytest.raises(UserError, match="--thin is 0"):
        points(demos, thin=0)
    assert len(points(demos, thin=1)[0].obs) == 70


def test_one_step_is_too_little_and_two_will_do():
    with pytest.raises(UserError, match="one step in all"):
        points(shown((1,), (True,)))
    assert len(points(shown((2,), (True,)))[0].obs) == 2


def test_demonstrations_that_are_too_far_off_are_named():
    demos = shown()
    demos.observations[0][-1] = 2e12  # a final one
    with pytest.raises(UserError, match=r"an observation that is too far off .*2e[+]12"):
        points(demos)
    demos.observations[0][-1] = 0.9e12
    points(demos)


# --- small networks ------------------------------------------------------------------------------


def test_fresh_weights_are_as_large_as_said():
    net = mlp((50, 400, 300, 2), key=jax.random.key(0), last=0.5)
    assert [layer.w.shape for layer in net.layers] == [(50, 400), (400, 300), (300, 2)]
    for layer, inputs, scale in zip(net.layers, (50, 400, 300), (1, 1, 0.5), strict=True):
        assert float(layer.w.std()) == pytest.approx(scale / math.sqrt(inputs), rel=0.1)
        assert not layer.b.any()
    plain = mlp((300, 200), key=jax.random.key(0))
    assert float(plain.layers[0].w.std()) == pytest.approx(1 / math.sqrt(300), rel=0.05)
    assert plain.norm is False


@pytest.mark.parametrize("discrete", [True, False])
def test_a_fresh_actor_is_close_to_the_middle(discrete):
    net = actors.actor(3, 4, (64, 64), discrete=discrete, key=jax.random.key(0))
    at = net.at(jax.random.normal(jax.random.key(1), (100, 3), jnp.float32))
    if discrete:
        np.testing.assert_allclose(jnp.exp(at.log_p), 0.25, atol=0.02)
        return
    assert float(jnp.abs(at.mode()).max()) < 0.1
    np.testing.assert_allclose(at.log_std, -1.5, atol=0.2)  # halfway from −5 to 2


def test_standard_deviations_have_ends():
    net = actors.actor(3, 1, (4,), discrete=False, key=jax.random.key(0))
    for raw, std in ((-1e6, math.exp(-5)), (1e6, math.exp(2))):
        pushed = dataclasses.replace(net, net=mlp((3, 2), key=jax.random.key(0)))
        layer = pushed.net.layers[0]
        layer = dataclasses.replace(layer, b=jnp.array([0.0, raw], jnp.float32))
        pushed = dataclasses.replace(pushed, net=dataclasses.replace(pushed.net, layers=(layer,)))
        spread = jnp.exp(pushed.at(jnp.zeros((1, 3), jnp.float32)).log_std)
        assert float(spread[0, 0]) == pytest.approx(std, rel=1e-4)
    wide = net.with_spread(jnp.array([100.0], jnp.float32)).at(jnp.zeros((1, 3), jnp.float32))
    assert float(jnp.exp(wide.log_std)[0, 0]) == pytest.approx(
        math.exp(-1.5 + 3.5 * 0.99), rel=1e-4
    )


def test_exploring_is_uniform_and_goes_on_where_it_was():
    obs = np.zeros((4000, 2))
    box = acting.exploring(3, jax.random.key(0), 5, discrete=False)(obs)
    assert box.shape == (4000, 3)
    assert box.min() >= -1
    assert box.max() < 1
    np.testing.assert_allclose(np.quantile(box, [0.25, 0.5, 0.75]), [-0.5, 0, 0.5], atol=0.03)
    choice = acting.exploring(4, jax.random.key(0), 5, discrete=True)
    first, second = choice(obs), choice(obs)
    np.testing.assert_array_equal(first.sum(-1), 1)
    np.testing.assert_allclose(first.mean(0), 0.25, atol=0.04)
    later = acting.exploring(4, jax.random.key(0), 6, discrete=True)
    np.testing.assert_array_equal(later(obs), second)
    assert not np.array_equal(first, second)
    held = acting.exploring(4, jax.random.key(0), 10, discrete=True, hold=2)
    for same in (first, first, second):  # calls 10, 11 and 12
        np.testing.assert_array_equal(held(obs), same)
    net = actors.actor(2, 3, (4,), discrete=True, key=jax.random.key(0))
    drawn = acting.sampling(net, jax.random.key(1), 0)
    seen = np.zeros((50, 2), np.float32)
    one, two = drawn(seen), drawn(seen)
    np.testing.assert_array_equal(acting.sampling(net, jax.random.key(1), 1)(seen), two)
    assert not np.array_equal(one, two)

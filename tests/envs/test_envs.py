"""Tables against the real environments: MiniGrid, Gymnasium's toy text, and sampling."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from random_mdps import dense

import understudy
from understudy.core import mdp as mdps
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.occupancy import flow_gap
from understudy.envs import catalog, sampled
from understudy.envs.empty_room import demonstrations, empty_room
from understudy.envs.toy_text import from_env
from understudy.learners.finite import expert_occupancy

EXPERT = {3: 4.6, 5: 6.2, 9: 9.4}


@pytest.mark.parametrize("n", [3, 5, 9])
def test_minigrid_room_agrees_with_the_table(n):
    understudy.register_envs()
    env = gymnasium.make(f"understudy/EmptyRoom-{n}x{n}-v0", render_mode="rgb_array")
    mdp, rng = empty_room(n), np.random.default_rng(n)
    succ, r = np.asarray(mdp.succ)[0, :, :, 0], np.asarray(mdp.reward)[0]
    for episode in range(20):
        s, _ = env.reset(seed=episode)
        assert s == int(np.argmax(mdp.nu))
        for h in range(3 * n):
            a = int(rng.integers(5)) if episode else [4, 2][h % 2]  # once straight to the goal
            to, gained, terminated, truncated, _ = env.step(a)
            assert (to, gained) == (succ[s, a], r[s, a])
            assert (terminated, truncated) == (False, h == 3 * n - 1)
            s = to
    picture = env.render()
    assert picture.shape[0] == picture.shape[1] > 100
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3  # walls, goal, agent
    env.close()


ASKED = {
    "by a call": "import understudy; understudy.register_envs(); id = '{}'",
    "by Gymnasium": "id = 'understudy.envs.registered:{}'",
}


@pytest.mark.parametrize("how", ASKED)
def test_rooms_are_registered_where_that_is_asked_for(how):
    first = ASKED[how].format("understudy/EmptyRoom-9x9-v0")
    code = f"import gymnasium; {first}; gymnasium.make(id).reset(seed=0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_is_registered_unasked():
    code = (
        "import gymnasium; before = set(gymnasium.registry); import understudy\n"
        "understudy.train('EmptyRoom-3x3', config=understudy.Config(interactions=40, ledger=False))"
        "\nassert set(gymnasium.registry) == before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_minigrid_room_is_a_proper_gymnasium_environment():
    understudy.register_envs()
    env = gymnasium.make("understudy/EmptyRoom-v0", size=4, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    with pytest.raises(gymnasium.error.InvalidAction):
        env.unwrapped.step(7)
    env.close()


@pytest.mark.parametrize("n", [3, 5, 9])
def test_handcrafted_demonstrations_are_expert(n):
    demos = demonstrations(n)
    np.testing.assert_allclose(demos.returns, EXPERT[n])
    mdp = empty_room(n)
    best = float(mdps.optimum(mdp, mdp.reward)[1])
    assert best == pytest.approx(EXPERT[n])
    ways = {tuple(states) for states in demos.observations}
    assert len(ways) == 4
    for states, actions in zip(demos.observations, demos.actions, strict=True):
        np.testing.assert_array_equal(np.asarray(mdp.succ)[0, states[:-1], actions, 0], states[1:])


@pytest.mark.parametrize("id", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_toy_text_rollouts_agree_with_the_table(id):
    """Every transition of the real environment has the table's reward and positive probability,
    and terminal states absorb."""
    env = gymnasium.make(id)
    mdp = from_env(env, horizon=20)
    succ, prob = np.asarray(mdp.succ)[0], np.asarray(mdp.prob)[0]
    rng = np.random.default_rng(0)
    s, _ = env.reset(seed=0)
    assert float(mdp.nu[s]) > 0
    gains: dict = {}
    for _ in range(3000):
        a = int(rng.integers(env.action_space.n))
        to, gained, terminated, truncated, _ = env.step(a)
        assert prob[s, a][succ[s, a] == to].sum() > 0
        gains.setdefault((s, a), []).append(gained)
        if terminated:
            assert (succ[to][prob[to] > 0] == to).all()
            assert (np.asarray(mdp.reward)[0, to] == 0).all()
        s = env.reset()[0] if terminated or truncated else to
    if id != "FrozenLake-v1":  # deterministic rewards
        for (s, a), seen in gains.items():
            assert seen == [float(mdp.reward[0, s, a])] * len(seen)
    env.close()


def test_frozen_lake_optimum_is_the_known_one():
    """Value iteration on Gymnasium's own table, 60 steps."""
    env = gymnasium.make("FrozenLake-v1")
    P, V = env.unwrapped.P, np.zeros(16)
    for _ in range(60):
        V = np.array(
            [
                max(
                    sum(p * (r + (0 if over else V[to])) for p, to, r, over in P[s][a])
                    for a in P[s]
                )
                for s in P
            ]
        )
    mdp = from_env(env, horizon=60)
    assert float(mdps.optimum(mdp, mdp.reward)[1]) == pytest.approx(V[0], abs=1e-12)


class Detour(gymnasium.Env):
    """State 1 is passed by action 0 and ends the episode by action 1: a state of two minds."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)
    P = {  # noqa: RUF012
        0: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 1, 5.0, True)]},
        1: {0: [(1.0, 2, 7.0, True)], 1: [(1.0, 0, 0.0, False)]},
        2: {0: [(1.0, 2, 9.0, True)], 1: [(1.0, 2, 9.0, True)]},
    }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = 0
        return self.s, {}

    def step(self, a):
        _, self.s, r, over = self.P[self.s][a][0]
        return self.s, r, over, False, {}


def test_an_ended_episode_goes_nowhere_even_through_a_shared_state():
    mdp = from_env(Detour(), horizon=3)
    assert mdp.states == 4  # one extra, absorbing
    assert float(mdps.optimum(mdp, mdp.reward)[1]) == 7.0  # not 5 + 7
    shown = Demonstrations([np.array([0, 1])], [np.array([1])], [np.array([5.0])], [True])
    assert float(flow_gap(mdp, expert_occupancy(mdp, shown))) < 1e-12  # it went to the sink


@pytest.mark.slow
def test_sampling_finds_the_table():
    """Frequencies within 4.5 standard deviations of the truth, and the same best policy."""
    env = gymnasium.make("FrozenLake-v1")
    found = sampled.from_samples(env, horizon=60, interactions=40_000)
    exact = from_env(env, horizon=60)
    assert found.coverage == 1.0
    tried = (found.visits > 0)[..., None]
    P, n = dense(exact)[0], np.maximum(found.visits, 1)[..., None]
    assert (np.abs(dense(found.mdp)[0] - P) <= 4.5 * np.sqrt(P * (1 - P) / n) + 1e-12)[
        np.broadcast_to(tried, P.shape)
    ].all()
    pi, _ = mdps.optimum(found.mdp, found.mdp.reward)
    best = float(mdps.optimum(exact, exact.reward)[1])
    assert float(mdps.value(exact, pi, exact.reward)) >= 0.97 * best
    with pytest.raises(UserError, match="needs both Discrete"):
        sampled.from_samples(gymnasium.make("CartPole-v1"), horizon=5)


class Gamble(gymnasium.Env):
    """Every step costs 1, and ends the episode in the same state with probability ½."""

    observation_space = gymnasium.spaces.Discrete(2, start=3)
    action_space = gymnasium.spaces.Discrete(2, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 3, {}

    def step(self, a):
        assert self.action_space.contains(a)
        return 3, -1.0, bool(a == 0 and self.np_random.random() < 0.5), False, {}


def test_sampling_keeps_a_state_that_only_sometimes_ends():
    """Action 0 ends with probability ½: the optimum over 4 steps is −(1 + ½ + ¼ + ⅛)."""
    found = sampled.from_samples(Gamble(), horizon=4, interactions=20_000)
    assert found.mdp.sink == 2
    assert float(mdps.optimum(found.mdp, found.mdp.reward)[1]) == pytest.approx(-1.875, abs=0.03)


def test_sampling_does_not_promise_what_was_never_tried():
    found = sampled.from_samples(Gamble(), horizon=4, interactions=1)
    best = float(mdps.optimum(found.mdp, found.mdp.reward)[1])
    assert best <= -1.0  # an untried pair is as bad as the worst seen, not free


def test_names_are_found_or_refused_with_a_hint():
    assert catalog.find("EmptyRoom-4x4").mdp.shape == (12, 16, 5)
    assert catalog.find("FrozenLake-v1", horizon=7).mdp.horizon == 7
    for name, names in {
        "FrozenLak-v1": "did you mean FrozenLake-v1",
        "EmptyRoom-3x4": "not square",
        "EmptyRoom-0x0": "from 2 to 1,000",
        "Pendulum-v1": "needs them Discrete",
        "Blackjack-v1": "sets no time limit",
        "NoSuchThing": "Unknown environment",
    }.items():
        with pytest.raises(UserError, match=names):
            catalog.find(name)
    with pytest.raises(UserError, match="horizon is 0"):
        catalog.find("EmptyRoom-3x3", horizon=0)

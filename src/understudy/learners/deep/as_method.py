"""Every method with networks as a `Method` of a rehearsal: ours, the baselines, cloning alone."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy.learners.baselines import iq_learn, sqil
from understudy.learners.baselines.methods import Method as Name
from understudy.learners.deep import acting, asking, clone, learner, turns
from understudy.learners.deep import lead as leads
from understudy.learners.deep.actor import Actor
from understudy.learners.deep.actor_critic import Transitions, transitions
from understudy.learners.deep.collect import Act
from understudy.learners.deep.learner import Settings
from understudy.learners.deep.rehearsal import Judged, Method
from understudy.learners.deep.scaling import Scaling
from understudy.learners.deep.turns import Player


def learner_of(method: Name) -> Any:
    """The module of a method: its `init` and its `step`."""
    return {"sqil": sqil, "iq-learn": iq_learn}.get(method, learner)  # the rest differ in options


def imitation(
    expert: Transitions,
    border: Scaling,
    settings: Settings,
    player: Any,
    *,
    seed: int,
    begun: Actor | None = None,
) -> Method:
    """A learner as a method of a rehearsal; where it has `begun`, as that policy in place of a
    clone."""
    config = settings.config
    settings = learner.sized(settings, border.actions, discrete=border.discrete)
    settings = learner.measured(settings, expert)
    key, fitting, practising = jax.random.split(jax.random.key(seed), 3)
    straying = jax.random.fold_in(practising, 0)
    state = player.init(
        settings, border.observations, border.actions, discrete=border.discrete, key=key
    )
    if begun is not None:
        state = learner.begin_with(state, jax.tree.map(jnp.copy, begun), settings)
    elif config.warm_start == "clone":
        actor = clone.clone(state.agent.actor, expert.obs, expert.action, config, key=fitting)
        state = learner.begin_with(state, jax.block_until_ready(actor), settings)

    ours = player is learner

    def act(state: Any, n: int) -> Act:
        newest = acting.sampling(state.agent.actor, practising, n)
        if not ours:
            return lambda obs, episodes: newest(obs)
        noise = 0.0
        if config.noise and not border.discrete:  # a choice from a list explores by itself
            noise = config.noise * float(learner.pace(settings, n // settings.fresh))
        exploring = acting.straying(newest, straying, n) if noise else None
        cloned, average = map(acting.deterministic, (state.lead.clone, state.average))
        taken = jax.tree.map(np.asarray, state.turns)

        def play(obs: np.ndarray, episodes: np.ndarray) -> np.ndarray:
            player = turns.players(taken, episodes, every=settings.audition)[:, None]
            if exploring is None:
                action = newest(obs)
            else:
                action = exploring(obs, noise * turns.boldness(episodes))
            for who, actor in ((Player.CLONE, cloned), (Player.AVERAGE, average)):
                if (player == who).any():
                    action = np.where(player == who, actor(obs), action)
            return action

        return play

    def step(state: Any, practised: dict[str, np.ndarray], n: int) -> tuple[Any, dict[str, Any]]:
        # The learner never sees the environment's reward, unless it is asked to.
        rewarded = expert.reward is not None
        if rewarded:
            asking.refuse_far_reward(practised)
        seen = transitions(practised, rewarded=rewarded)
        ended = {"ended": jnp.asarray(practised["ended"])} if ours else {}
        moving = n >= config.warmup
        state, info = player.step(state, seen, expert, settings=settings, moving=moving, **ended)
        return state, vars(info)

    def handed(state: Any) -> Actor:
        return leads.handed(state.lead, state.average) if ours else state.average

    def judge(state: Any) -> Judged | None:
        return (state.judge, bool(state.terminates)) if ours else None

    return Method(state, settings.fresh // config.envs, act, step, handed, judge)


def cloning_alone(expert: Transitions, border: Scaling, settings: Settings, *, seed: int) -> Method:
    """Behavioural cloning: what the learner begins with, to the bit, and no practice."""
    begun = imitation(expert, border, settings, learner, seed=seed)
    return Method(begun.actor(begun.state), 1, _never, _never, lambda state: state)


def _never(*_: Any) -> Any:
    raise AssertionError("cloning does not practise")

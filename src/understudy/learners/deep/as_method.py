"""Every method with networks as a `Method` of a rehearsal: ours, the baselines, cloning alone."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from understudy.learners.baselines import cloning, iq_learn, sqil
from understudy.learners.baselines.methods import Method as Name
from understudy.learners.deep import acting, clone, drill, learner
from understudy.learners.deep.actor import actor
from understudy.learners.deep.actor_critic import Transitions, transitions
from understudy.learners.deep.collect import Act
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.learner import Settings
from understudy.learners.deep.rehearsal import Method
from understudy.learners.deep.scaling import Scaling


def warmed(config: DeepConfig, n: int) -> bool:
    """Whether the actor moves after so many interactions."""
    if config.warmup is not None:
        return n >= config.warmup
    return n >= (min(5_000, config.interactions / 10) if config.warm_start == "clone" else 1_000)


def learner_of(method: Name) -> Any:
    """The module of a method: its `init` and its `step`."""
    return {"sqil": sqil, "iq-learn": iq_learn}.get(method, learner)  # the rest differ in options


def imitation(
    expert: Transitions, border: Scaling, settings: Settings, player: Any, *, seed: int
) -> Method:
    """A learner as a method of a rehearsal."""
    config = settings.config
    settings = learner.sized(settings, border.actions, discrete=border.discrete)
    key, fitting, practising = jax.random.split(jax.random.key(seed), 3)
    state = player.init(
        settings, border.observations, border.actions, discrete=border.discrete, key=key
    )
    if config.warm_start == "clone":
        actor = clone.clone(state.agent.actor, expert.obs, expert.action, key=fitting)
        state = learner.begin_with(state, jax.block_until_ready(actor))

    drilled = player is learner and learner.drilled(config)

    def act(state: Any, n: int) -> Act:
        actor = state.agent.actor
        if drilled:
            actor = drill.practising(actor, n // settings.fresh)
        return acting.sampling(actor, practising, n)

    def step(state: Any, practised: dict[str, np.ndarray], n: int) -> tuple[Any, dict[str, Any]]:
        state, info = player.step(
            state,
            transitions(practised),  # the learner never sees the environment's reward
            expert,
            settings=settings,
            moving=warmed(config, n),
        )
        return state, vars(info)

    each = settings.fresh // config.envs

    def lost_lanes(state: Any) -> Sequence[int]:
        return drill.impatient(state.strayed) if drilled else ()

    return Method(state, each, act, step, lambda state: state.average, lost_lanes)


def cloning_alone(
    expert: Transitions, border: Scaling, settings: Settings, ends: np.ndarray, *, seed: int
) -> Method:
    """Behavioural cloning, which is over before any practice."""
    initialising, fitting = jax.random.split(jax.random.key(seed))
    fresh = actor(
        border.observations,
        border.actions,
        (settings.config.hidden,) * clone.DEPTH,
        discrete=border.discrete,
        key=initialising,
    )
    held_out = cloning.hold_out(ends)
    fitted = cloning.cloned(fresh, expert.obs, expert.action, held_out, key=fitting)
    return Method(fitted, 1, _never, _never, lambda state: state)


def _never(*_: Any) -> Any:
    raise AssertionError("cloning does not practise")

"""A finished run's policy as the beginning of another run, in place of a clone."""

import dataclasses
from pathlib import Path

import gymnasium
import numpy as np

from understudy.core.errors import UserError
from understudy.learners.baselines.methods import Method
from understudy.learners.deep import policy as policies
from understudy.learners.deep.config import DeepConfig
from understudy.learners.deep.learner import Settings
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.scaling import Scaling


def policy(begin: Path, method: Method, config: DeepConfig) -> Policy:
    """The policy to begin as."""
    if method != "mdpo" or config.warm_start != "clone":
        raise UserError(
            "--begin is in place of the clone that our own method begins as; leave --method out, "
            "and say --warm-start clone."
        )
    return policies.load(begin)


def border(begun: Policy, plain: Scaling, world: gymnasium.Env, config: DeepConfig) -> Scaling:
    """The border of a run that goes on so: the policy's own, which has to fit the world."""
    name = f"The policy to begin as, of {begun.env},"
    if begun.absorbing != config.absorbing:
        raise UserError(
            f"{name} was learned {'with' if begun.absorbing else 'without'} --absorbing."
        )
    seen, acted = world.observation_space.shape or (), world.action_space.shape or ()
    if begun.scaling.observations != plain.observations or begun.action_shape != acted:
        raise UserError(
            f"{name} takes observations {begun.observation_shape} and actions "
            f"{begun.action_shape}; this environment has {seen} and {acted}."
        )
    ends = (begun.scaling.low, plain.low), (begun.scaling.high, plain.high)
    if begun.scaling.discrete != plain.discrete or not all(np.array_equal(*e) for e in ends):
        raise UserError(f"{name} has actions of another range than this environment.")
    return begun.scaling


def settings(begun: Policy, settings: Settings) -> Settings:
    """With an actor of its size."""
    hidden = tuple(layer.w.shape[1] for layer in begun.actor.net.layers[:-1])
    return settings._replace(tuning=dataclasses.replace(settings.tuning, actor_hidden=hidden))

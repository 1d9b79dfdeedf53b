"""What a method with networks executes, read off what was resolved: a comparison states it."""

from typing import NamedTuple

from understudy.learners.baselines.methods import Method
from understudy.learners.deep import as_method, learner
from understudy.learners.deep.learner import Settings


class Executed(NamedTuple):
    """The work and the networks of one method."""

    policy_steps: float  # of actor and critics, an interaction
    reward_steps: float  # of the discriminator, an interaction
    batch: int  # points of a policy step; of cloning, of a step of its own
    actor: tuple[int, ...]  # widths of its hidden layers
    critics: tuple[int, ...]
    warm_start: str


def executed(method: Method, settings: Settings) -> Executed:
    """Cloning alone takes no step after its warm start; some methods have no discriminator."""
    config, tuning = settings.config, settings.tuning
    if method == "bc":
        return Executed(0, 0, config.clone_batch, tuning.actor_hidden, (), config.warm_start)
    judged = as_method.learner_of(method) is learner
    return Executed(
        policy_steps=settings.policy_steps / settings.fresh,
        reward_steps=config.reward_steps / settings.fresh if judged else 0,
        batch=config.batch,
        actor=tuning.actor_hidden,
        critics=tuning.critic_hidden,
        warm_start=config.warm_start,
    )

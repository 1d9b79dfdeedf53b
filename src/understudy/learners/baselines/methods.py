"""The methods that can be compared, by name: which learner, with which options.

A method changes what makes it itself, and shares the rest with the others: with networks widths,
rates, discount, policy steps per interaction; with tables the rule for step sizes. No JAX here:
`--help` reads it.
"""

import dataclasses
from typing import Literal

from understudy.core.errors import UserError
from understudy.learners.config import Config
from understudy.learners.deep.config import PRESETS, DeepConfig

# With networks. Ours is called by its policy's step.
Method = Literal["mdpo", "bc", "gail", "dac", "sqil", "iq-learn"]

TITLES: dict[Method, str] = {
    "mdpo": "understudy",
    "bc": "behavioural cloning",
    "gail": "GAIL, on-policy",
    "dac": "DAC",
    "sqil": "SQIL",
    "iq-learn": "IQ-Learn",
}
SCRATCH = "scratch"  # ours without its warm start, as the others begin
COMPARED: dict[str, tuple[str, Method]] = {  # by name: its title, and the method that it is
    "understudy": (TITLES["mdpo"], "mdpo"),
    SCRATCH: ("understudy, from scratch", "mdpo"),
    **{name: (title, name) for name, title in TITLES.items() if name != "mdpo"},
}
ON_POLICY = 512  # interactions per update of GAIL
FRESH = 8  # of the others, where the options leave it open

# What a method without a discriminator, or without any practice, has no use for.
_NO_DISCRIMINATOR = {
    "beta", "points", "reward_steps", "discriminator_hidden", "discriminator_rate", "loss",
    "reward", "penalty", "penalty_centre", "mixup", "spectral_norm", "anchor", "noise",
    "audition", "heard", "task_reward",
}  # fmt: skip
_OPTIONS = {field.name for field in dataclasses.fields(DeepConfig)}
_CLONING = {"interactions", "hidden", "normalise", "marks", "episodes"} | {
    name for name in _OPTIONS if name.startswith("clone_")
}  # all that it reads
UNUSED: dict[str, set[str]] = {
    "bc": _OPTIONS - _CLONING,
    "sqil": _NO_DISCRIMINATOR,
    "iq-learn": _NO_DISCRIMINATOR,
}


def options(method: Method, base: DeepConfig) -> DeepConfig:
    """The options of a method, made from the learner's."""
    made = {"bc": _bc, "gail": _gail, "dac": _dac, "sqil": _sqil, "iq-learn": _iq_learn}
    return made.get(method, lambda base: base)(base)


def compared(name: str, base: DeepConfig) -> tuple[Method, DeepConfig]:
    """What is compared under this name: the method and its options."""
    _, method = COMPARED[name]
    config = options(method, base)
    return method, dataclasses.replace(config, warm_start="none") if name == SCRATCH else config


def check_used(method: Method, config: DeepConfig) -> None:
    """Refuse an option that was changed and would change nothing."""
    usual = [options(method, preset) for preset in PRESETS.values()]
    for name in sorted(UNUSED.get(method, ())):
        if all(getattr(config, name) != getattr(one, name) for one in usual):
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} changes nothing with --method {method}; leave it out.")


def _bc(base: DeepConfig) -> DeepConfig:
    """Behavioural cloning: what a learner that clones first begins with."""
    return dataclasses.replace(base, warm_start="clone")


def _gail(base: DeepConfig) -> DeepConfig:
    """On-policy GAIL (Ho & Ermon 2016): an update sees what its policy has just practised, and
    nothing else. It is the learner with N = 1, a replay of one segment, no demonstrations in its
    batches and no clone, not PPO; it takes as many steps per interaction as the others."""
    each = base.fresh or FRESH
    steps = base.policy_steps
    return dataclasses.replace(
        base,
        window="1",
        fresh=ON_POLICY,
        replay=ON_POLICY,
        policy_steps=None if steps is None else max(1, steps * ON_POLICY // each),
        reward_steps=max(1, base.reward_steps * ON_POLICY // each),
        demo_share=0.0,
        cloning=0.0,
        noise=0.0,
        audition=0,
        warm_start="none",
    )


def _dac(base: DeepConfig) -> DeepConfig:
    """DAC (Kostrikov et al. 2019): everything ever practised against the expert, absorbing states
    with a reward of their own, no KL. The learner with N = all and λ = 0; where theirs is TD3, this
    is the stochastic actor without entropy."""
    return dataclasses.replace(
        base,
        window="all",
        fresh=base.fresh or FRESH,
        replay=None,
        absorbing=True,
        reward="logit",
        kl=0.0,
        entropy=0.0,  # in an absorbing state it would be free, and pay for dying
        demo_share=0.0,
        cloning=0.0,
        noise=0.0,
        audition=0,
        warm_start="none",
    )


def _sqil(base: DeepConfig) -> DeepConfig:
    """SQIL (Reddy et al. 2020): Soft Actor-Critic, half of each batch from the expert."""
    return dataclasses.replace(
        base,
        window="all",
        fresh=base.fresh or FRESH,
        replay=None,
        kl=0.0,
        entropy=None,
        demo_share=0.5,
        cloning=0.0,
        warm_start="none",
    )


def _iq_learn(base: DeepConfig) -> DeepConfig:
    """IQ-Learn (Garg et al. 2021): as SQIL, with a small fixed weight of the entropy and an actor
    ten times slower than its critics, as theirs: what it climbs is its own reward."""
    return dataclasses.replace(_sqil(base), entropy=0.01, actor_rate=3e-5, critic_rate=3e-4)


# --- with tables ---------------------------------------------------------------------------

TABULAR_TITLES: dict[str, str] = {
    "understudy": "understudy",
    "bc": "behavioural cloning",
    "gail": "on-policy (N = 1)",
    "dac": "full replay (N = all)",
    "importance": "importance-corrected",
    "oal": "OAL",
}


def tabular_options(method: str, base: Config) -> Config:
    """The options of a method in a finite MDP, made from the learner's. Cloning has none."""
    if method == "understudy":
        return base
    changes = {
        # The equal estimation budget: on-policy, an update needs all of its 32 points anew.
        "gail": {"window": "1", "points": 32},
        "dac": {"window": "all", "points": 32},
        # Ratios along the path, of whole trajectories: a few policies, for their variance.
        "importance": {"window": "4", "batch": 1, "correction": "path"},
        # Shani et al. (2022): the reward's gradient, too, comes from the counted model.
        "oal": {"window": "1", "batch": 1, "model": "learned", "gradients": "modelled"},
    }
    # As published: the actions that were taken count, and the last policy is the result.
    shared = {"visits": "sampled", "handed": "last"}
    return dataclasses.replace(base, **shared, **changes.get(method, {}))

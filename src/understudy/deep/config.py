"""What a user asks of the deep learner and of the expert. No JAX here: `--help` reads it."""

from dataclasses import dataclass

from understudy.errors import UserError


@dataclass(frozen=True)
class ExpertConfig:
    """How to train an expert by Soft Actor-Critic."""

    interactions: int = 300_000
    """Environment steps in all."""
    rate: float = 3e-4
    """Adam's rate, for actor, critics and temperature."""
    batch: int = 128
    """Points per update."""
    gamma: float = 0.99
    """Discount."""
    tau: float = 0.005
    """How fast the target critics follow."""
    hidden: int = 256
    """Width of the two hidden layers."""
    layer_norm: bool = True
    """Layer norm in the critics."""
    explore: int = 5_000
    """First interactions, with random actions and no updates."""
    fresh: int = 8
    """Interactions between two rounds of updates; as many updates follow."""
    marks: int = 30
    """How often the policy is measured along the way; the best one is kept."""
    episodes: int = 10
    """Episodes per measurement, and demonstrations written."""


def check_expert(config: ExpertConfig) -> None:
    """Refuse what cannot be meant, by name."""
    for name in ("interactions", "batch", "hidden", "fresh", "marks", "episodes"):
        value = getattr(config, name)
        if not 1 <= value <= 2**31 - 1:
            raise UserError(f"--{name} is {value}; it must be at least 1.")
    if not 0 <= config.explore:
        raise UserError(f"--explore is {config.explore}; it must be zero or more.")
    for name, most in {"rate": 1.0, "tau": 1.0, "gamma": 1.0}.items():
        value = getattr(config, name)
        if not 0 < value <= most:
            raise UserError(f"--{name} is {value}; it must be above 0 and at most {most:g}.")

"""The three kinds of learner, each registered once: what a run is of is stored in its config, and
whoever needs to know asks here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from understudy.core.errors import UserError
from understudy.envs import making
from understudy.experiments import runs, shows, train_features, train_networks, train_tables
from understudy.experiments.shows import Show
from understudy.experiments.sweeps import networks, tables
from understudy.learners.config import Config, VectorConfig, check, check_vectors
from understudy.learners.deep.config import DeepConfig, check_deep

Name = Literal["tables", "features", "networks"]


@dataclass(frozen=True)
class Kind:
    """One way to learn, and all that is asked of it by name."""

    name: Name
    config: type
    """What a user asks of it."""
    check: Callable[[Any], None]
    """Refuses what cannot be asked."""
    evaluate: Callable[..., dict[str, Any]]
    """Measure a stored policy."""
    load: Callable[[Path, str | None], Any]
    """A stored policy, which has `predict`."""
    show: Callable[[Path, int, int, str | None], Show]
    """How a stored policy is filmed."""
    sweep: Callable[..., dict[str, Any]] | None = None
    """Many runs, where there can be many."""


TABLES = Kind(
    "tables",
    Config,
    check,
    train_tables.evaluate,
    train_tables.policy,
    shows.of_a_table,
    tables.run,
)
FEATURES = Kind(
    "features",
    VectorConfig,
    check_vectors,
    train_features.evaluate,
    train_features.policy,
    shows.of_features,
)
NETWORKS = Kind(
    "networks",
    DeepConfig,
    check_deep,
    train_networks.evaluate,
    train_networks.policy,
    shows.of_networks,
    networks.run,
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TABLES, FEATURES, NETWORKS)}


def of_run(folder: Path) -> Kind:
    """The kind of a run, as its folder says it."""
    return KINDS[runs.kind(folder)]


def of_config(config: Any) -> Kind:
    """The kind that a config is of."""
    for kind in KINDS.values():
        if isinstance(config, kind.config):
            return kind
    known = ", ".join(kind.config.__name__ for kind in KINDS.values())
    raise UserError(f"The config is {type(config).__name__}; it must be one of {known}.")


def of_env(env: str, features: str | None = None) -> Kind:
    """The kind that an environment is for, by its spaces; with features of vectors, if asked."""
    if not making.continuous(env):
        return TABLES
    return NETWORKS if features is None else FEATURES

"""`understudy tune`: its arguments."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from understudy.cli.demos import Json, Keys
from understudy.learners.baselines.methods import Method
from understudy.learners.deep.config import DeepConfig, Preset


@dataclass(frozen=True)
class Tune:
    """Search for settings of networks with Optuna, so many runs, the poor ones ended early.

    Stopped, the same command goes on where it was. Options that are given are those of every run,
    but for what is searched over. Look at it with: optuna-dashboard sqlite:///OUT/study.db
    """

    env: Positional[str]
    """The id of a Gymnasium environment with Box observations, or 'module:Class' of your own."""
    config: OmitArgPrefixes[DeepConfig] = field(default_factory=DeepConfig)
    budget: Annotated[int, arg(name="runs")] = 20
    """How many runs in all, those that were pruned and those from before among them."""
    over: tuple[str, ...] = ()
    """What to change: NAME, NAME=LOW:HIGH or NAME=ONE,TWO,THREE, such as kl gamma=0.97,0.99; seven
    options that matter most if not given."""
    preset: Preset = "fast"
    """As of train: the settings to begin with, which the first run has."""
    method: Method = "mdpo"
    """As of train."""
    demos: str | None = None
    """As of train."""
    trajectories: int | None = None
    """As of train."""
    thin: int | None = None
    """As of train."""
    keys: Keys = ()
    horizon: int | None = None
    """As of train."""
    seed: int = 0
    """Of every run, and of the search."""
    out: Path | None = None
    """The folder of the search; runs/tune-ENV-seedSEED if not given."""
    checkpoint: float = 60.0
    """Seconds between checkpoints."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, streams, tune

        document = tune.tune(
            self.env,
            self.config,
            budget=self.budget,
            over=self.over,
            method=self.method,
            demos=self.demos,
            trajectories=self.trajectories,
            thin=self.thin,
            keys=self.keys,
            horizon=self.horizon,
            seed=self.seed,
            out=self.out,
            checkpoint=self.checkpoint,
        )
        console.err.print(tune.table(document))
        console.say(f"Look at it with: optuna-dashboard {document['study']}")
        if self.json:
            console.print_json(document)
        else:
            streams.write(document["command"])

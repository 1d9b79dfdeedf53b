"""`understudy train` and `expert`: their arguments, a class for each kind of learner."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg

from understudy.cli.demos import Json, Keys
from understudy.learners.baselines.methods import Method
from understudy.learners.config import Config, VectorConfig
from understudy.learners.deep.config import DeepConfig, ExpertConfig, Preset

Track = Annotated[
    tuple[Literal["tensorboard", "wandb"], ...],
    arg(help="Also tell these trackers the metrics; W&B stays offline unless WANDB_MODE says so."),
]
Learner = Annotated[
    Literal["auto", "tables", "features", "networks"],
    arg(help="Which kind of learner; auto: the one that the environment's spaces are for."),
]
Restart = Annotated[
    bool,
    arg(help="Begin anew: the run's own files are moved into a dated folder beside it first."),
]


@dataclass(frozen=True)
class Train:
    """Learn a policy in a finite environment, and write it to a folder.

    Where observations are continuous (`understudy train Hopper-v5 --help`), the deep learner has
    options of its own.
    """

    env: Positional[str]
    """EmptyRoom-5x5 (any size), a task of MiniGrid's, or the id of a discrete Gymnasium
    environment; NAME-layout3: one that does the same every time, reset with 3 and explored."""
    config: OmitArgPrefixes[Config] = field(default_factory=Config)
    learner: Learner = "auto"
    demos: str | None = None
    """Demonstrations to imitate: .npz, .csv, Minari … (see understudy demos info --help)."""
    expert: Literal["auto", "optimal", "handcrafted"] = "auto"
    """Without --demos: the optimal policy, or EmptyRoom's four hand-crafted demonstrations."""
    demonstrations: int | None = None
    """Imitate this many sampled episodes of the optimal policy, not its exact occupancy."""
    horizon: int | None = None
    """Steps per episode; the environment's own if not given."""
    features: str | None = None
    """Learn on features: 'onehot'. Where observations are vectors, 'fourier:2' or 'radial:6'."""
    rewards: Literal["ball", "box"] = "ball"
    """With features: the set of rewards, the theory's ball or the table's box."""
    seed: int = 0
    """Of all that is random."""
    out: Path | None = None
    """The run's folder; runs/ENV-seedSEED if not given."""
    restart: Restart = False
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, trackers, train_tables

        trackers.refuse_missing(self.track)
        summary = train_tables.train(
            self.env,
            self.config,
            train_tables.Expert(self.demos, self.expert, self.demonstrations),
            horizon=self.horizon,
            seed=self.seed,
            out=self.out,
            features=self.features or ("onehot" if self.learner == "features" else None),
            rewards=self.rewards,
            restart=self.restart,
        )
        trackers.replay(self.track, Path(summary["run"]))
        console.err.print(train_tables.summary_table(summary))
        if "ledger" in summary:
            console.err.print(train_tables.ledger_table(summary["ledger"]))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class TrainDeep:
    """Learn a policy in an environment with continuous observations, and write it to a folder.

    Stopped, the same command goes on where it was, bit for bit.
    """

    env: Positional[str]
    """The id of a Gymnasium environment with Box observations, or 'module:Class' of your own."""
    config: OmitArgPrefixes[DeepConfig] = field(default_factory=DeepConfig)
    learner: Learner = "auto"
    preset: Preset = "fast"
    """Which defaults: our best, or the paper's (with its actor and critic rates as stated, or
    exchanged)."""
    method: Method = "mdpo"
    """Ours, or a baseline, which changes the defaults: behavioural cloning, on-policy GAIL, DAC,
    SQIL, IQ-Learn."""
    demos: str | None = None
    """Demonstrations to imitate: .npz, .csv, Minari … (see understudy demos info --help), or
    'medium', the package's weaker expert; the package's own, where it has some, if not given."""
    trajectories: int | None = None
    """Imitate only the first so many demonstrations."""
    thin: int | None = None
    """Show only every so many steps of each demonstration."""
    keys: Keys = ()
    begin: Path | None = None
    """Begin as the policy of this finished run, in place of a clone; with --task-reward 1
    --cloning 0 it goes on with the environment's reward alone."""
    horizon: int | None = None
    """Steps per episode; the environment's own if not given."""
    seed: int = 0
    """Of all that is random."""
    seeds: int = 1
    """So many runs, of this seed and those after it, side by side: a process a core, a folder
    each."""
    out: Path | None = None
    """The run's folder; runs/ENV-seedSEED if not given. Of several seeds: the folder of their
    folders."""
    checkpoint: float = 60.0
    """Seconds between checkpoints."""
    stepping: Literal["auto", "sync", "async"] = "auto"
    """How the copies of --envs are stepped: one after another, or each in a process of its own;
    auto: processes, where a step takes a millisecond or more. The run comes to the same."""
    restart: Restart = False
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.core.errors import UserError
        from understudy.experiments import console, several_seeds, train_networks, train_tables

        options = {
            "method": self.method,
            "demos": self.demos,
            "trajectories": self.trajectories,
            "thin": self.thin,
            "keys": self.keys,
            "begin": self.begin,
            "horizon": self.horizon,
            "seed": self.seed,
            "out": self.out,
            "checkpoint": self.checkpoint,
            "restart": self.restart,
        }
        if self.seeds != 1:
            if self.track:
                raise UserError("--track is of one run; leave it out, or train one of --seeds.")
            summary = several_seeds.train(self.env, self.config, seeds=self.seeds, **options)
            console.err.print(several_seeds.table(summary))
        else:
            summary = train_networks.train(
                self.env, self.config, stepping=self.stepping, track=self.track, **options
            )
            console.err.print(train_tables.summary_table(summary))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class TrainVectors:
    """Learn a policy on features of observations that are vectors, and write it to a folder."""

    env: Positional[str]
    """The id of a Gymnasium environment with Box observations and discrete actions."""
    features: str
    """'fourier:ORDER' or 'radial:COUNT'; 'knots' for understudy/WideGrid-v0."""
    config: OmitArgPrefixes[VectorConfig] = field(default_factory=VectorConfig)
    learner: Learner = "auto"
    demos: str | None = None
    """Demonstrations to imitate: .npz, .csv, Minari … (see understudy demos info --help); a
    scripted expert's, where there is one, if not given."""
    demonstrations: int = 10
    """Without --demos: how many episodes of the scripted expert."""
    seed: int = 0
    """Of all that is random."""
    out: Path | None = None
    """The run's folder; runs/ENV-linear-seedSEED if not given."""
    restart: Restart = False
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, trackers, train_features, train_tables

        trackers.refuse_missing(self.track)
        summary = train_features.train(
            self.env,
            self.features,
            self.config,
            demos=self.demos,
            demonstrations=self.demonstrations,
            seed=self.seed,
            out=self.out,
            restart=self.restart,
        )
        trackers.replay(self.track, Path(summary["run"]))
        console.err.print(train_tables.summary_table(summary))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Expert:
    """Train an expert by Soft Actor-Critic, and write its demonstrations as a Minari dataset.

    Stopped, the same command goes on where it was.
    """

    env: Positional[str]
    """The id of a Gymnasium environment with Box observations."""
    config: OmitArgPrefixes[ExpertConfig] = field(default_factory=ExpertConfig)
    seed: int = 0
    """Of all that is random."""
    out: Path | None = None
    """The run's folder; runs/expert-ENV-seedSEED if not given."""
    checkpoint: float = 60.0
    """Seconds between checkpoints."""
    begin: Path | None = None
    """Begin with the networks of this checkpoint, of the same sizes, and an empty replay; so
    `results/experts/*/networks.safetensors` are gone on with."""
    restart: Restart = False
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, expert

        summary = expert.expert(
            self.env,
            self.config,
            seed=self.seed,
            out=self.out,
            checkpoint=self.checkpoint,
            restart=self.restart,
            begin=self.begin,
        )
        console.say(
            f"{summary['env']}: {summary['return']:,.1f} ± {summary['return_std']:.1f} over "
            f"{summary['episodes']} deterministic episodes, {summary['seconds']:,.0f} s."
        )
        console.say(f"Demonstrations: {summary['demos']}")
        if self.json:
            console.print_json(summary)

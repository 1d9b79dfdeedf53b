"""The command line. Arguments are read here; the work, and its imports, wait until it is asked."""

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import tyro
from tyro import MISSING
from tyro.conf import OmitArgPrefixes, Positional, arg, subcommand

from understudy.cli import interrupts
from understudy.cli import learner_choice as cli_learner
from understudy.cli.demos import Demos, Json
from understudy.cli.results import Draw, Report, Table
from understudy.cli.sweeps import Compare, Reproduce, SweepFile
from understudy.core.errors import UserError, plain
from understudy.experiments import streams
from understudy.learners.baselines.methods import TITLES, Method, options
from understudy.learners.config import Config, VectorConfig
from understudy.learners.deep.config import PRESETS, DeepConfig, ExpertConfig, Preset

Track = Annotated[
    tuple[Literal["tensorboard", "wandb"], ...],
    arg(help="Also tell these trackers the metrics; W&B stays offline unless WANDB_MODE says so."),
]
Restart = Annotated[
    bool,
    arg(help="Begin anew: the run's own files are moved into a dated folder beside it first."),
]
TOO_LARGE = "understudy: this does not fit into memory; make the problem smaller."


@dataclass(frozen=True)
class Train:
    """Learn a policy in a finite environment, and write it to a folder.

    Where observations are continuous (`understudy train Hopper-v5 --help`), the deep learner has
    options of its own.
    """

    env: Positional[str]
    """EmptyRoom-5x5 (any size), or the id of a discrete Gymnasium environment."""
    config: OmitArgPrefixes[Config] = field(default_factory=Config)
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
        from understudy.experiments import console, trackers
        from understudy.experiments import train_tables as train

        trackers.refuse_missing(self.track)
        summary = train.train(
            self.env,
            self.config,
            train.Expert(self.demos, self.expert, self.demonstrations),
            horizon=self.horizon,
            seed=self.seed,
            out=self.out,
            features=self.features,
            rewards=self.rewards,
            restart=self.restart,
        )
        trackers.replay(self.track, Path(summary["run"]))
        console.err.print(train.summary_table(summary))
        if "ledger" in summary:
            console.err.print(train.ledger_table(summary["ledger"]))
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
    preset: Preset = "fast"
    """Which defaults: our best, or the paper's (with its actor and critic rates as stated, or
    exchanged)."""
    method: Method = "mdpo"
    """Ours, or a baseline, which changes the defaults: behavioural cloning, on-policy GAIL, DAC,
    SQIL, IQ-Learn."""
    demos: str | None = None
    """Demonstrations to imitate: .npz, .csv, Minari … (see understudy demos info --help); the
    package's own, where it has some, if not given."""
    trajectories: int | None = None
    """Imitate only the first so many demonstrations."""
    thin: int | None = None
    """Show only every so many steps of each demonstration."""
    horizon: int | None = None
    """Steps per episode; the environment's own if not given."""
    seed: int = 0
    """Of all that is random."""
    out: Path | None = None
    """The run's folder; runs/ENV-seedSEED if not given."""
    checkpoint: float = 60.0
    """Seconds between checkpoints."""
    restart: Restart = False
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments import train_networks as deep_train
        from understudy.experiments import train_tables as train

        summary = deep_train.train(
            self.env,
            self.config,
            method=self.method,
            demos=self.demos,
            trajectories=self.trajectories,
            thin=self.thin,
            horizon=self.horizon,
            seed=self.seed,
            out=self.out,
            checkpoint=self.checkpoint,
            track=self.track,
            restart=self.restart,
        )
        console.err.print(train.summary_table(summary))
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
        from understudy.experiments import console, trackers
        from understudy.experiments import train_features as linear_train
        from understudy.experiments import train_tables as train

        trackers.refuse_missing(self.track)
        summary = linear_train.train(
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
        console.err.print(train.summary_table(summary))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained policy: exactly where it is a table, and by playing the environment."""

    run: Positional[Path]
    """The run's folder, as written by train or expert."""
    episodes: int = 100
    """How many episodes to play."""
    seed: int = 0
    """Of all that is random."""
    env: str | None = None
    """The environment, where it is 'module:Class': a run's folder cannot name code to run."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, runs
        from understudy.experiments import train_tables as train

        if runs.method(self.run) == "linear":
            from understudy.experiments import train_features as linear_train

            summary = linear_train.evaluate(
                self.run, episodes=self.episodes, seed=self.seed, env=self.env
            )
        elif (self.run / "policy.json").exists():
            from understudy.experiments import train_networks as deep_train

            summary = deep_train.evaluate(
                self.run, episodes=self.episodes, seed=self.seed, env=self.env
            )
        else:
            summary = train.evaluate(self.run, episodes=self.episodes, seed=self.seed, env=self.env)
        console.err.print(train.summary_table(summary))
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
        )
        console.say(
            f"{summary['env']}: {summary['return']:,.1f} ± {summary['return_std']:.1f} over "
            f"{summary['episodes']} deterministic episodes, {summary['seconds']:,.0f} s."
        )
        console.say(f"Demonstrations: {summary['demos']}")
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Watch:
    """Render a trained policy in its environment to a GIF or an MP4."""

    run: Positional[Path]
    """The run's folder."""
    out: Path | None = None
    """The film, .gif or .mp4; RUN/watch.gif if not given."""
    episodes: int = 3
    """How many episodes to film."""
    seconds: int = 10
    """How much of each episode of a continuous task to film."""
    seed: int = 0
    """Of all that is random."""
    env: str | None = None
    """The environment, where it is 'module:Class': a run's folder cannot name code to run."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, watch

        filmed = watch.watch(
            self.run,
            self.out,
            episodes=self.episodes,
            seed=self.seed,
            seconds=self.seconds,
            env=self.env,
        )
        returns = ", ".join(f"{value:.2f}" for value in filmed["returns"])
        console.say(f"{filmed['episodes']} episodes (returns {returns}): {filmed['out']}")
        if self.json:
            console.print_json(filmed)


@dataclass(frozen=True)
class Advise:
    """How many policies to reuse, by the theory: the four terms against N, N*, the step sizes."""

    actions: int
    """A"""
    horizon: int
    """H"""
    states: int | None = None
    """S"""
    features: int | None = None
    """d, in place of S: a linear MDP."""
    iterations: int = 10_000
    """K, the updates of a run."""
    batch: int = 1
    """B, the trajectories collected between updates."""
    out: Path | None = None
    """Draw the terms to this PNG."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import advise, console

        advice = advise.advise(
            self.states,
            self.actions,
            self.horizon,
            self.iterations,
            self.batch,
            self.out,
            features=self.features,
        )
        advise.show(advice)
        if self.json:
            console.print_json(advice.document())


Chosen = (
    Train
    | TrainDeep
    | TrainVectors
    | Evaluate
    | Expert
    | Reproduce
    | SweepFile
    | Compare
    | Report
    | Draw
    | Table
    | Watch
    | Demos
    | Advise
)


def commands(arguments: list[str]) -> Any:
    """The commands; `train` has the options of the learner that its environment is for."""
    learner = _train(arguments[1:]) if arguments[:1] == ["train"] else Train
    train: Any = Annotated[learner, subcommand("train")]
    if learner is TrainDeep:  # a preset and a method have defaults of their own
        preset = _chosen(arguments, "--preset", PRESETS) or "fast"
        method = _chosen(arguments, "--method", TITLES) or "mdpo"
        default = TrainDeep(env=MISSING, config=options(method, PRESETS[preset]))
        train = Annotated[TrainDeep, subcommand("train", default=default)]
    return (
        train
        | Annotated[Evaluate, subcommand("evaluate")]
        | Annotated[Expert, subcommand("expert")]
        | Annotated[Reproduce, subcommand("reproduce")]
        | Annotated[SweepFile, subcommand("sweep")]
        | Annotated[Compare, subcommand("compare")]
        | Annotated[Report, subcommand("report")]
        | Annotated[Draw, subcommand("draw")]
        | Annotated[Table, subcommand("table")]
        | Annotated[Watch, subcommand("watch")]
        | Annotated[Demos, tyro.conf.OmitSubcommandPrefixes, OmitArgPrefixes, subcommand("demos")]
        | Annotated[Advise, subcommand("advise")]
    )


def _train(words: list[str]) -> type[Train] | type[TrainDeep] | type[TrainVectors]:
    """The command of the learner that the environment is for."""
    other = TrainDeep if _value(words, "--features") is None else TrainVectors
    env = cli_learner.environment(words, (Train, TrainVectors, TrainDeep, other))
    return other if env is not None and cli_learner.continuous(env) else Train


def _chosen(arguments: list[str], option: str, known: Collection[str]) -> Any:
    """What an option is given, if it is known; the parser itself will refuse what is not."""
    value = _value(arguments, option)
    return value if value in known else None


def _value(arguments: list[str], option: str) -> str | None:
    """What an option is given, as `--name value` or `--name=value`."""
    for i, word in enumerate(arguments):
        name, given, value = word.partition("=")
        if name == option:
            return value if given else " ".join(arguments[i + 1 : i + 2])
    return None


def main() -> None:
    warnings.filterwarnings("ignore", module="gymnasium|pygame")  # noise that users cannot act on
    with interrupts.heard(), streams.reserved():
        try:
            _keep_programs()
            _run()
        except UserError as error:
            _leave(f"understudy: {error}", 2)
        except MemoryError:
            _leave(TOO_LARGE, 2)
        except BrokenPipeError:
            os._exit(1)  # whoever read our output has gone; there is nobody to tell
        except OSError as error:
            _leave(f"understudy: {error.strerror or error}: {error.filename or 'output'}.", 2)
        except KeyboardInterrupt:
            _leave(interrupts.STOPPED, 130)
        except RuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):  # JAX's word for the same
                raise
            _leave(TOO_LARGE, 2)


def _keep_programs() -> None:
    """Compiled programs are kept between calls; a user's own JAX setting goes first. Where there is
    no home, as in some containers, they are not kept."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # the system does not know the user either
        return
    if home.is_absolute():
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(home / "understudy" / "jax"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def _run() -> None:
    asked = parse()
    if getattr(asked.what if isinstance(asked, Demos) else asked, "json", False):
        streams.result()  # refuses now what it would refuse later
    asked.main()


def parse() -> Chosen:
    """The command asked for. Tyro explains a mistake in a box; we keep its first sentence."""
    asked, said = commands(sys.argv[1:]), io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(streams.open_one()):
            return tyro.cli(
                asked,
                prog="understudy",
                description="Learn to act by watching an expert, with little practice.",
            )
    except SystemExit as leaving:
        if not leaving.code:
            raise
        lines = [line.strip("│╭╰╮╯ ") for line in said.getvalue().splitlines()[1:]]
        rule = next((i for i, line in enumerate(lines) if set(line) == {"─"}), len(lines))
        raise UserError(f"{' '.join(filter(None, lines[:rule]))} (see --help)") from None


def _leave(sentence: str, code: int) -> NoReturn:
    """End at once: a compiled piece of a run may still be at work, and would be waited for."""
    with contextlib.suppress(OSError):  # nobody listens, but the code tells
        sys.stderr.write(plain(sentence) + "\n")
        sys.stderr.flush()
    os._exit(code)

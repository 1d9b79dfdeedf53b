"""The command line. Arguments are read here; the work, and its imports, wait until it is asked."""

import contextlib
import dataclasses
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

from understudy.baselines.methods import TITLES, Method, options
from understudy.cli_demos import Demos, Json
from understudy.config import Config, VectorConfig
from understudy.deep.config import PRESETS, DeepConfig, ExpertConfig, Preset
from understudy.errors import UserError

Track = Annotated[
    tuple[Literal["tensorboard", "wandb"], ...],
    arg(help="Also tell these trackers the metrics; W&B stays offline unless WANDB_MODE says so."),
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
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, trackers, train

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
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, deep_train, train

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
    track: Track = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, linear_train, trackers, train

        trackers.refuse_missing(self.track)
        summary = linear_train.train(
            self.env,
            self.features,
            self.config,
            demos=self.demos,
            demonstrations=self.demonstrations,
            seed=self.seed,
            out=self.out,
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
        from understudy.experiments import console, runs, train

        if runs.method(self.run) == "linear":
            from understudy.experiments import linear_train

            summary = linear_train.evaluate(
                self.run, episodes=self.episodes, seed=self.seed, env=self.env
            )
        elif (self.run / "policy.json").exists():
            from understudy.experiments import deep_train

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
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, expert

        summary = expert.expert(
            self.env, self.config, seed=self.seed, out=self.out, checkpoint=self.checkpoint
        )
        console.say(
            f"{summary['env']}: {summary['return']:,.1f} ± {summary['return_std']:.1f} over "
            f"{summary['episodes']} deterministic episodes, {summary['seconds']:,.0f} s."
        )
        console.say(f"Demonstrations: {summary['demos']}")
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Reproduce:
    """Rerun a figure of the paper: the runs, the picture, the report, and which claims hold.

    Stopped, the same command goes on where it was.
    """

    figure: Positional[Literal["fig1", "fig2", "fig3", "linear"]]
    """fig1: three rooms, N = 1, 4, 32, 128, five seeds, 10,000 interactions, mirror descent; fig2:
    three MuJoCo tasks, N = 1, 4, 32, 256, all, three seeds, 100,000 interactions, networks: hours;
    fig3: fig1 with policy gradient; linear: regret in linear MDPs against K and against d."""
    quick: bool = False
    """About a minute: fewer rooms or features, fewer seeds; fig2: some minutes, the beginning of
    one task."""
    windows: tuple[str, ...] = ()
    """fig2: only these of its N, 1 and at least one of 4 and 32 among them."""
    seeds: int | None = None
    """So many seeds; the figure's own number if not given."""
    episodes: int | None = None
    """Judge by the mean return of this many sampled episodes; fig2: 10 if not given; the others: 0,
    exact returns (the paper has 5)."""
    out: Path | None = None
    """Where runs, picture and report go; runs/FIGURE, or runs/FIGURE-quick, if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, report, reproduce

        document = reproduce.reproduce(
            self.figure,
            self.out,
            quick=self.quick,
            episodes=self.episodes,
            windows=self.windows,
            seeds=self.seeds,
        )
        stored, out = document.pop("stored"), Path(document["out"])
        document["report"] = report.write(out, out / "report.html")["report"]
        console.err.print(reproduce.table(self.figure, stored))
        console.err.print(reproduce.verdict_table(document["verdicts"]))
        console.say(
            f"{document['runs']} runs, {document['resumed']} of them from before, "
            f"{document['seconds']:.1f} s."
        )
        console.say(f"Figure: {document['figure']} (and .pdf)")
        console.say(f"Report: {document['report']}")
        if self.json:
            console.print_json(document)


@dataclass(frozen=True)
class SweepFile:
    """Run every setting of a sweep; stopped, the same command goes on where it was."""

    file: Positional[Path]
    """A TOML file of envs, seeds, [config] for all runs, [grid] of lists (docs/experiments.md)."""
    out: Path | None = None
    """Where the runs go, a folder each; runs/NAME if not given."""
    on: str = "local"
    """Where they run: 'local'; 'ray', a Ray started for them here; or a cluster that exists:
    'auto', 'ray://HOST:PORT' or 'HOST:PORT'."""
    cores: int | None = None
    """On a cluster: cores of each run (1)."""
    gpus: float | None = None
    """On a cluster: GPUs of each run, or a share of one (0)."""
    retries: int | None = None
    """On a cluster: how often a run that was lost with its node is begun again, from its checkpoint
    (3)."""
    share: str | None = None
    """On a cluster whose nodes have no folder in common: a place that all of them see, as fsspec
    writes it (s3://…, gs://…, file:///…); --out is then a copy of it here."""
    checkpoint: float | None = None
    """Seconds between checkpoints of runs with networks (60)."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import cluster, console, sweep

        on = cluster.chosen(self.on, self.cores, self.gpus, self.retries, self.share)
        asked = sweep.read(self.file)
        out = self.out or Path("runs") / asked.name
        done = sweep.run(asked, out, on, self.checkpoint)
        console.say(
            f"{done['runs']} runs, {done['resumed']} of them from before, "
            f"{done['seconds']:.1f} s. See them with: understudy report {done['out']}"
        )
        if self.json:
            console.print_json(done)


@dataclass(frozen=True)
class Compare:
    """Methods side by side: one table, one figure, ranked by interactions to 0.9 of the expert.

    Stopped, the same command goes on where it was.
    """

    env: Positional[str]
    """A room, or the id of a Gymnasium environment that demonstrations are in the package for."""
    methods: tuple[str, ...] = ()
    """understudy, bc, gail, dac; with networks sqil, iq-learn; with tables importance, oal. All of
    them if not given."""
    budget: int | None = None
    """Interactions of each run; as of train if not given."""
    seeds: int = 3
    """How many."""
    trajectories: tuple[int, ...] = ()
    """Show so many demonstrations; several numbers are compared, such as 1 4 10."""
    thin: int | None = None
    """Also with every so many steps of each demonstration, the classic setting."""
    out: Path | None = None
    """Where runs, table, picture and report go; runs/compare-ENV if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import compare, console, report

        shown = [compare.Shown(n) for n in self.trajectories] or [compare.Shown()]
        if self.thin is not None:
            shown += [dataclasses.replace(one, thin=self.thin) for one in shown]
        document = compare.compare(
            self.env,
            self.methods,
            budget=self.budget,
            seeds=self.seeds,
            shown=shown,
            out=self.out,
        )
        out = Path(document["out"])
        document["report"] = report.write(out, out / "report.html")["report"]
        if self.json:
            console.print_json(document)
            return
        print(document["table"])
        console.say(f"Figure: {document['figure']} (and .pdf)")
        console.say(f"Report: {document['report']}")


@dataclass(frozen=True)
class Report:
    """One self-contained HTML page about stored runs: verdicts, curves, regret, replay, theory."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    out: Path | None = None
    """The page; RUNS/report.html if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, report

        written = report.write(self.runs, self.out or self.runs / "report.html")
        for sentence in written["skipped"]:
            console.say(f"Skipped: {sentence}")
        console.say(f"Report on {written['runs']} runs: {written['report']}")
        if self.json:
            console.print_json(written)


def _stored(folder: Path) -> tuple[list[Any], list[str]]:
    """The finished runs at or below a folder, at least one; what is skipped is told."""
    from understudy.experiments import console, runs

    stored, skipped = runs.load(folder)
    for sentence in skipped:
        console.say(f"Skipped: {sentence}")
    if not stored:
        raise UserError(f"There is no finished run at or below {folder}.")
    return stored, skipped


@dataclass(frozen=True)
class Draw:
    """Draw the learning curves of stored runs, as PNG and PDF."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    band: Literal["std", "stderr", "iqm"] = "std"
    """Mean ± standard deviation, ± standard error, or interquartile mean with 95 % bootstrap."""
    out: Path | None = None
    """Where to, without a suffix; RUNS/curves if not given."""
    title: str | None = None
    """A title above the panels."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, figures

        stored, skipped = _stored(self.runs)
        drawn = figures.curves(
            stored, self.out or self.runs / "curves", band=self.band, title=self.title
        )
        console.say(f"{len(stored)} runs: {' and '.join(map(str, drawn))}")
        if self.json:
            console.print_json(
                {"figures": [*map(str, drawn)], "runs": len(stored), "skipped": skipped}
            )


@dataclass(frozen=True)
class Table:
    """Tabulate stored runs in Markdown: a row a setting, shares of the expert's return."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, tables

        stored, _ = _stored(self.runs)
        found = tables.rows(stored)
        if self.json:
            console.print_json({"rows": [vars(row) for row in found]})
            return
        if told := tables.shared(stored):
            console.say(f"All with: {told}.")
        print(tables.markdown(found))


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
    train: Any = Annotated[Train, subcommand("train")]
    features = _value(arguments, "--features")
    words = [word for word in arguments[1:] if word != features]  # 'fourier:2' is no module:Class
    if arguments[:1] == ["train"] and _continuous(words):
        preset, method = (
            _chosen(arguments, "--preset", PRESETS),
            _chosen(arguments, "--method", TITLES),
        )
        default = TrainDeep(
            env=MISSING, config=options(method or "mdpo", PRESETS[preset or "fast"])
        )
        train = (
            Annotated[TrainDeep, subcommand("train", default=default)]
            if features is None
            else Annotated[TrainVectors, subcommand("train")]
        )
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


def _continuous(arguments: list[str]) -> bool:
    """Whether one of the words is an environment for the deep learner."""
    words = [word for word in arguments if not word.startswith("-")]
    if not words:
        return False
    from understudy.envs import kind

    try:
        return any(kind.continuous(word) for word in words)
    except UserError:
        raise
    except Exception:  # whatever an environment's constructor raises; `train` will tell
        return False


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
    # Compiled programs are kept between calls; a user's own JAX setting goes first.
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(home) / "understudy" / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    try:
        parse().main()
    except UserError as error:
        _leave(f"understudy: {error}", 2)
    except MemoryError:
        _leave(TOO_LARGE, 2)
    except BrokenPipeError:
        os._exit(1)  # whoever read our output has gone; there is nobody to tell
    except OSError as error:
        _leave(f"understudy: {error.strerror or error}: {error.filename or 'output'}.", 2)
    except KeyboardInterrupt:
        _leave("understudy: stopped.", 130)
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # JAX's word for the same
            raise
        _leave(TOO_LARGE, 2)


def parse() -> Chosen:
    """The command asked for. Tyro explains a mistake in a box; we keep its first sentence."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                commands(sys.argv[1:]),
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
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()
    os._exit(code)

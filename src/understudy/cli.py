"""The command line. Arguments are read here; the work, and its imports, wait until it is asked."""

import contextlib
import io
import os
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import tyro
from tyro.conf import OmitArgPrefixes, Positional, arg, subcommand

from understudy.config import Config
from understudy.errors import UserError

Json = Annotated[bool, arg(help="Print one JSON document on stdout.", name="json")]


@dataclass(frozen=True)
class Train:
    """Learn a policy in a finite environment, and write it to a folder."""

    env: Positional[str]
    """EmptyRoom-5x5 (any size), or the id of a discrete Gymnasium environment."""
    config: OmitArgPrefixes[Config] = field(default_factory=Config)
    demos: Path | None = None
    """Demonstrations to imitate (.npz)."""
    expert: Literal["auto", "optimal", "handcrafted"] = "auto"
    """Without --demos: the optimal policy, or EmptyRoom's four hand-crafted demonstrations."""
    demonstrations: int | None = None
    """Imitate this many sampled episodes of the optimal policy, not its exact occupancy."""
    horizon: int | None = None
    """Steps per episode; the environment's own if not given."""
    seed: int = 0
    out: Path | None = None
    """The run's folder; runs/ENV-seedSEED if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, train

        demos = None if self.demos is None else str(self.demos)
        summary = train.train(
            self.env,
            self.config,
            train.Expert(demos, self.expert, self.demonstrations),
            horizon=self.horizon,
            seed=self.seed,
            out=self.out,
        )
        console.err.print(train.summary_table(summary))
        if "ledger" in summary:
            console.err.print(train.ledger_table(summary["ledger"]))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained policy: exactly in the table, and by playing the environment."""

    run: Positional[Path]
    """The run's folder, as written by train."""
    episodes: int = 100
    """How many episodes to play."""
    seed: int = 0
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, train

        summary = train.evaluate(self.run, episodes=self.episodes, seed=self.seed)
        console.err.print(train.summary_table(summary))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Reproduce:
    """Rerun a figure of the paper: the runs, the table, the picture."""

    figure: Positional[Literal["fig1"]]
    """fig1: three rooms, N = 1, 4, 32, 128, five seeds, 10,000 interactions."""
    out: Path | None = None
    """Where the curves and the picture go; runs/FIGURE if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, fig1
        from understudy.experiments.paper import Figure1

        document = fig1.reproduce(self.out or Path("runs") / self.figure)
        console.err.print(fig1.table(document, Figure1().shown))
        console.err.print(
            f"{document['seconds']:.1f} s ({document['compile_seconds']:.1f} s compiling). "
            f"Figure: {document['figure']}"
        )
        if self.json:
            console.print_json(document)


@dataclass(frozen=True)
class Advise:
    """How many policies to reuse, by the theory: the four terms against N, N*, the step sizes."""

    states: int
    """S"""
    actions: int
    """A"""
    horizon: int
    """H"""
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
            self.states, self.actions, self.horizon, self.iterations, self.batch, self.out
        )
        advise.show(advice)
        if self.json:
            console.print_json(advice.document())


Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Advise, subcommand("advise")]
)


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
        _leave("understudy: this does not fit into memory; make the problem smaller.", 2)
    except BrokenPipeError:
        os._exit(1)  # whoever read our output has gone; there is nobody to tell
    except OSError as error:
        _leave(f"understudy: {error.strerror or error}: {error.filename or 'output'}.", 2)
    except KeyboardInterrupt:
        _leave("understudy: stopped.", 130)


def parse() -> Train | Evaluate | Reproduce | Advise:
    """The command asked for. Tyro explains a mistake in a box; we keep its first sentence."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                Command,  # type: ignore[arg-type]
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

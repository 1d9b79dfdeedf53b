"""The program: which command is asked for, and how it ends. The work, and its imports, wait until
it is asked for."""

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro
from tyro import MISSING
from tyro.conf import OmitArgPrefixes, subcommand

from understudy.cli import interrupts, learner_choice
from understudy.cli.demos import Demos
from understudy.cli.learning import Expert, Train, TrainDeep, TrainVectors
from understudy.cli.results import Advise, Draw, Evaluate, Export, Report, Table, Watch
from understudy.cli.sweeps import Compare, Reproduce, SweepFile
from understudy.cli.tuning import Tune
from understudy.core import extras
from understudy.core.errors import UserError, plain
from understudy.experiments import streams
from understudy.learners.baselines.methods import TITLES, options
from understudy.learners.deep.config import PRESETS

TOO_LARGE = "understudy: this does not fit into memory; make the problem smaller."

Chosen = (
    Train
    | TrainDeep
    | TrainVectors
    | Evaluate
    | Expert
    | Tune
    | Reproduce
    | SweepFile
    | Compare
    | Report
    | Draw
    | Table
    | Watch
    | Export
    | Demos
    | Advise
)


def commands(arguments: list[str]) -> Any:
    """The commands; `train` has the options of the learner that its environment is for."""
    learner = _train(arguments[1:]) if arguments[:1] == ["train"] else Train
    train: Any = Annotated[learner, subcommand("train")]
    # A preset and a method have defaults of their own.
    preset = _chosen(arguments, "--preset", PRESETS) or "fast"
    method = _chosen(arguments, "--method", TITLES) or "mdpo"
    config = options(method, PRESETS[preset])
    if learner is TrainDeep:
        train = Annotated[
            TrainDeep, subcommand("train", default=TrainDeep(env=MISSING, config=config))
        ]
    tune: Any = Annotated[Tune, subcommand("tune")]
    if arguments[:1] == ["tune"]:
        tune = Annotated[Tune, subcommand("tune", default=Tune(env=MISSING, config=config))]
    return (
        train
        | Annotated[Evaluate, subcommand("evaluate")]
        | Annotated[Expert, subcommand("expert")]
        | tune
        | Annotated[Reproduce, subcommand("reproduce")]
        | Annotated[SweepFile, subcommand("sweep")]
        | Annotated[Compare, subcommand("compare")]
        | Annotated[Report, subcommand("report")]
        | Annotated[Draw, subcommand("draw")]
        | Annotated[Table, subcommand("table")]
        | Annotated[Watch, subcommand("watch")]
        | Annotated[Export, subcommand("export")]
        | Annotated[Demos, tyro.conf.OmitSubcommandPrefixes, OmitArgPrefixes, subcommand("demos")]
        | Annotated[Advise, subcommand("advise")]
    )


def _train(words: list[str]) -> type[Train] | type[TrainDeep] | type[TrainVectors]:
    """The command of the learner that is asked for, or else that the environment is for."""
    vectors = _value(words, "--features") is not None or _value(words, "--learner") == "features"
    named = {"tables": Train, "networks": TrainDeep}.get(_value(words, "--learner") or "auto")
    other = TrainVectors if vectors else TrainDeep
    env = learner_choice.environment(words, (Train, TrainVectors, TrainDeep, named or other))
    if named is not None:
        return named
    return other if env is not None and learner_choice.continuous(env) else Train


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
        except ModuleNotFoundError as error:
            if (missing := extras.explained(error)) is None:
                raise
            _leave(f"understudy: {missing}", 2)
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

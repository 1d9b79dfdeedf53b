"""`understudy demos …`: its arguments."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg, subcommand

from understudy.core.errors import UserError

Json = Annotated[bool, arg(help="Print one JSON document on stdout.", name="json")]
Format = Literal["npz", "csv", "sb2", "d4rl", "robomimic", "imitation", "minari", "minari-arrow"]
Keys = Annotated[
    tuple[str, ...],
    arg(
        help="Of what is seen by name (a dictionary; LeRobot, robomimic), only these parts, in "
        "this order; all of them, by name, if not given."
    ),
]


@dataclass(frozen=True)
class Info:
    """Count and measure demonstrations: lengths, returns, ranges, ends, repetitions."""

    source: Positional[str]
    """A .npz (ours, or Stable-Baselines 2's), a .csv, a .hdf5 of D4RL or robomimic, a folder of
    LeRobot or of `imitation`'s trajectories, a Minari dataset (folder or id), or an environment
    whose demonstrations are in the package."""
    env: str | None = None
    """Also tell how much of this environment's spaces they cover."""
    keys: Keys = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments import demo_files as demos

        told = demos.info(self.source, self.env, self.keys)
        console.err.print(demos.table(told))
        if self.json:
            console.print_json(told)


@dataclass(frozen=True)
class Check:
    """Say what does not fit an environment (then the exit code is 2), and what is odd."""

    source: Positional[str]
    """As of `info`."""
    env: Positional[str]
    """The environment that they are meant for."""
    keys: Keys = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments import demo_files as demos

        found = demos.check(self.source, self.env, self.keys)
        if self.json:
            console.print_json(found)
        for sentence in found["odd"]:
            console.say(f"Odd: {sentence}")
        if found["wrong"]:
            raise UserError(" ".join(found["wrong"]))
        console.say(f"{self.source} fits {self.env}.")


@dataclass(frozen=True)
class Convert:
    """Write demonstrations in another format."""

    source: Positional[str]
    """As of `info`."""
    target: Positional[Path]
    """A new file (.npz, .csv, .hdf5) or folder."""
    format: Format | None = None
    """By the target's name if not given: .npz, .csv, or a folder, which is a Minari dataset."""
    env: str | None = None
    """For a Minari dataset, or a file of robomimic: the environment that it is of."""
    episodes: int | None = None
    """Only the first so many."""
    keys: Keys = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments import demo_files as demos

        done = demos.convert(
            self.source, self.target, self.format, self.env, self.episodes, self.keys
        )
        console.say(f"{done['episodes']} episodes, {done['steps']:,} steps: {done['out']}")
        if self.json:
            console.print_json(done)


@dataclass(frozen=True)
class Plot:
    """Draw demonstrations: returns, rewards, where they went, what they did."""

    source: Positional[str]
    """As of `info`."""
    out: Path = Path("demos.png")
    """The picture: .png, .pdf or .svg."""
    keys: Keys = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments import demo_files as demos

        drawn = demos.plot(self.source, self.out, self.keys)
        console.say(f"Picture: {drawn}")
        if self.json:
            console.print_json({"source": self.source, "out": str(drawn)})


@dataclass(frozen=True)
class Record:
    """Play an environment, by hand or by a policy, and keep the episodes as demonstrations."""

    env: Positional[str]
    """EmptyRoom-5x5 (any size), or the id of a Gymnasium environment."""
    out: Path = Path("demos.npz")
    """Where to: .npz, .csv, or a folder, which is a Minari dataset; it must be new."""
    player: str = "keys"
    """keys: you. Otherwise a function of the observation ('module:name'), the folder of a run, or
    a policy saved by Stable-Baselines3 (.zip)."""
    episodes: int = 4
    """How many."""
    window: bool = False
    """Play with keys in a window, not in the terminal."""
    seed: int = 0
    """Episode i is reset with this + i."""
    horizon: int | None = None
    """Steps per episode; the environment's own if not given."""
    format: Format | None = None
    """By the name of --out if not given."""
    keys: Keys = ()
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments import demo_files as demos

        told = demos.record(
            self.env,
            self.out,
            player=self.player,
            episodes=self.episodes,
            window=self.window,
            seed=self.seed,
            horizon=self.horizon,
            format=self.format,
            keys=self.keys,
        )
        console.err.print(demos.table(told))
        if self.json:
            console.print_json(told)


@dataclass(frozen=True)
class Demos:
    """Demonstrations: look at them, check them, convert them, draw them, record new ones."""

    what: (
        Annotated[Info, subcommand("info")]
        | Annotated[Check, subcommand("check")]
        | Annotated[Convert, subcommand("convert")]
        | Annotated[Plot, subcommand("plot")]
        | Annotated[Record, subcommand("record")]
    )

    def main(self) -> None:
        self.what.main()

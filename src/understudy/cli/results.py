"""What one does with runs: `understudy evaluate`, `watch`, `export`, `report`, `draw` and `table`;
and `advise`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from understudy.cli.demos import Json
from understudy.core.errors import UserError
from understudy.experiments import streams


@dataclass(frozen=True)
class Report:
    """One self-contained HTML page about stored runs: verdicts, curves, regret, replay, theory."""

    runs: Positional[Path]
    """A folder of runs, or of folders of runs."""
    out: Path | None = None
    """The page; RUNS/report.html if not given."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments.report import page

        written = page.write(self.runs, self.out or self.runs / "report.html")
        for sentence in written["skipped"]:
            console.say(f"Skipped: {sentence}")
        console.say(f"Report on {written['runs']} runs: {written['report']}")
        if self.json:
            console.print_json(written)


def _stored(folder: Path) -> tuple[list[Any], list[str]]:
    """The finished runs at or below a folder, at least one; what is skipped is told."""
    from understudy.experiments import console, stored_runs

    stored, skipped = stored_runs.load(folder)
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
        from understudy.experiments import console
        from understudy.experiments.figures import drawing

        stored, skipped = _stored(self.runs)
        drawn = drawing.curves(
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
        streams.write(tables.markdown(found))


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
        from understudy.experiments import console, kinds, train_tables

        evaluate = kinds.of_run(self.run).evaluate
        summary = evaluate(self.run, episodes=self.episodes, seed=self.seed, env=self.env)
        console.err.print(train_tables.summary_table(summary))
        if self.json:
            console.print_json(summary)


@dataclass(frozen=True)
class Watch:
    """Render a trained policy in its environment to a GIF or an MP4, or in a window."""

    run: Positional[Path]
    """The run's folder."""
    out: Path | None = None
    """The film, .gif or .mp4; RUN/watch.gif if not given."""
    live: bool = False
    """Play whole episodes in a window, and write nothing; Esc or q closes it."""
    episodes: int = 3
    """How many episodes to film or to play."""
    seconds: int | None = None
    """How much of each episode of a continuous task to film; 10 if not given."""
    seed: int = 0
    """Of all that is random."""
    env: str | None = None
    """The environment, where it is 'module:Class': a run's folder cannot name code to run."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console

        if self.live:
            self._live()
            return
        from understudy.experiments import watch

        filmed = watch.watch(
            self.run,
            self.out,
            episodes=self.episodes,
            seed=self.seed,
            seconds=10 if self.seconds is None else self.seconds,
            env=self.env,
        )
        returns = ", ".join(f"{value:.2f}" for value in filmed["returns"])
        console.say(f"{filmed['episodes']} episodes (returns {returns}): {filmed['out']}")
        if self.json:
            console.print_json(filmed)

    def _live(self) -> None:
        if self.out is not None or self.seconds is not None:
            raise UserError("--out and --seconds are of films; leave them out, or --live.")
        from understudy.experiments import console, live

        played = live.live(self.run, episodes=self.episodes, seed=self.seed, env=self.env)
        returns = ", ".join(f"{value:.2f}" for value in played["returns"])
        console.say(f"{played['episodes']} whole episodes (returns {returns or 'none'}).")
        if self.json:
            console.print_json(played)


@dataclass(frozen=True)
class Export:
    """Write a policy with networks for where understudy is not; nothing is uploaded."""

    run: Positional[Path]
    """The run's folder."""
    onnx: Path | None = None
    """A new file, policy.onnx: batches of observations in, actions out, scaling inside."""
    numpy: Path | None = None
    """A new file, policy.py: its `act(observation)` needs NumPy and nothing else."""
    to_hub: Path | None = None
    """A new folder, ready to upload to Hugging Face: model card, policy, reward, ONNX, NumPy."""
    license: str = "unknown"
    """Of the card: an identifier as Hugging Face lists them, such as mit."""
    episodes: int = 20
    """Of the card: how many episodes to play for its returns."""
    seed: int = 0
    """Of those episodes: episode i is reset with this + i."""
    env: str | None = None
    """The environment, where it is 'module:Class': a run's folder cannot name code to run."""
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, export

        told = export.export(
            self.run,
            onnx=self.onnx,
            numpy=self.numpy,
            to_hub=self.to_hub,
            license=self.license,
            episodes=self.episodes,
            seed=self.seed,
            env=self.env,
        )
        for kind in ("onnx", "numpy", "hub"):
            if kind in told:
                console.say(f"{told[kind]['out']}: within {told[kind]['apart']:.1g} of the policy.")
        if self.json:
            console.print_json(told)


@dataclass(frozen=True)
class Advise:
    """The four terms of the regret bound against N: as printed and as proven; the step sizes."""

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

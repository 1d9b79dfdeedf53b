"""`understudy reproduce`, `sweep` and `compare`: their arguments."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from understudy.cli.demos import Json
from understudy.core.errors import UserError
from understudy.experiments import streams
from understudy.learners.deep.config import Preset

Restart = Annotated[
    bool,
    arg(
        help="Begin runs anew that are damaged or have failed: their own files are moved into "
        "dated folders beside them first."
    ),
]


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
    preset: Preset = "fast"
    """fig2: our settings, or the paper's (its actor and critic rates as stated, or exchanged)."""
    fresh: int | None = None
    """fig2: every N with so many new interactions an iteration, so that all update equally often;
    the equal estimation budget if not given."""
    protocol: Literal["budget", "authors"] = "budget"
    """fig1: every reward update from as many points, whatever N; or as the authors' public code has
    it, with both beside the paper's text."""
    episodes: int | None = None
    """Judge by the mean return of this many sampled episodes; fig2: 10 if not given; the others: 0,
    exact returns (the paper has 5)."""
    out: Path | None = None
    """Where runs, picture and report go; runs/FIGURE, or runs/FIGURE-quick, if not given."""
    restart: Restart = False
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console, reproduce
        from understudy.experiments.report import page

        document = reproduce.reproduce(
            self.figure,
            self.out,
            quick=self.quick,
            episodes=self.episodes,
            windows=self.windows,
            seeds=self.seeds,
            preset=self.preset,
            fresh=self.fresh,
            protocol=self.protocol,
            restart=self.restart,
        )
        tables, out = document.pop("tables"), Path(document["out"])
        document["report"] = page.write(out, out / "report.html")["report"]
        for table in tables:
            console.err.print(table)
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
    env: tuple[str, ...] = ()
    """Environments of the file that are 'module:Class': a file alone cannot name code to run."""
    allow_code: bool = False
    """Run whatever code the file names."""
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
    restart: Restart = False
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import console
        from understudy.experiments.sweeps import cluster, sweep_file, sweep_run

        on = cluster.chosen(self.on, self.cores, self.gpus, self.retries, self.share)
        asked = sweep_file.read(self.file, allow_code=self.allow_code, named=self.env)
        out = self.out or Path("runs") / asked.name
        done = sweep_run.run(asked, out, on, self.checkpoint, restart=self.restart)
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
    """understudy, bc, gail, dac; with networks scratch (ours without a clone), sqil, iq-learn; with
    tables importance, oal. All of them if not given."""
    budget: int | None = None
    """Interactions of each run; as of train if not given."""
    seeds: int = 3
    """How many."""
    demos: str | None = None
    """With networks: the demonstrations to imitate, as of train; 'medium', for one."""
    trajectories: tuple[int, ...] = ()
    """Show so many demonstrations; several numbers are compared, such as 1 4 10."""
    thin: int | None = None
    """Also with every so many steps of each demonstration, the classic setting."""
    out: Path | None = None
    """Where runs, table, picture and report go; runs/compare-ENV if not given."""
    restart: Restart = False
    json: Json = False

    def main(self) -> None:
        from understudy.experiments import compare, comparison, console
        from understudy.experiments.report import page

        shown = [comparison.Shown(n) for n in self.trajectories] or [comparison.Shown()]
        if self.thin is not None:
            shown += [dataclasses.replace(one, thin=self.thin) for one in shown]
        document = compare.compare(
            self.env,
            self.methods,
            budget=self.budget,
            seeds=self.seeds,
            demos=self.demos,
            shown=shown,
            out=self.out,
            restart=self.restart,
        )
        out = Path(document["out"])
        document["report"] = page.write(out, out / "report.html")["report"]
        if self.json:
            console.print_json(document)
        else:
            streams.write(document["table"])
            if document["work"]:
                streams.write(f"\n{document['work']}")
            console.say(f"Figure: {document['figure']} (and .pdf)")
            console.say(f"Report: {document['report']}")
        if failed := document["failed"]:
            raise UserError(f"{len(failed)} runs failed, and are left out; the first: {failed[0]}")

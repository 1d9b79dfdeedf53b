"""Many runs on all cores: equal shapes share one compiled program, threads share the rest.

A piece of work is one setting with all its seeds, batched. XLA releases Python's lock while it
compiles and while it runs, so threads are enough.
"""

import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.precision import double
from understudy.learners import loop
from understudy.learners.finite import AnyProblem, Plan, counts, learner_of, stack, together
from understudy.learners.loop import Run
from understudy.learners.practice import RunShape
from understudy.learners.seeds import keys_of
from understudy.learners.tabular import Settings

ROOM = 2**15  # points in a window that is wide enough for all that share a program
PIECES = 20  # calls per run: how often progress moves and an interrupt is heard


@dataclass(frozen=True)
class Job:
    """One setting on one problem, for some seeds. Jobs with one `problem_name` share a problem."""

    problem_name: Hashable
    problem: AnyProblem
    plan: Plan
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """A job made concrete: its protocol widened to that of its group."""

    job: Job
    protocol: RunShape
    settings: Settings

    @property
    def cost(self) -> int:
        return self.job.plan.iterations * self.job.problem.expert.size * len(self.job.seeds)

    def run(self, marks: np.ndarray, progress: Callable[[int], object]) -> Run:
        return loop.run(
            learner_of(self.job.problem, self.protocol),
            self.job.problem,
            self.settings,
            self.protocol,
            marks,
            keys=keys_of(self.job.seeds),
            pieces=PIECES,
            progress=progress,
        )


@dataclass(frozen=True)
class Done:
    runs: list[Any]  # what was kept of each wanted job, in the order of the jobs
    compile_seconds: float
    run_seconds: float


def run_jobs(
    jobs: list[Job],
    *,
    wanted: Callable[[Job], bool] = lambda job: True,
    keep: Callable[[Job, Run], Any] = lambda job, run: run,
    failed: Callable[[Job, Exception], object] | None = None,
    compiled: Callable[[int, int], object] = lambda done, of: None,
    progress: Callable[[int], object] = lambda interactions: None,
) -> Done:
    """Compile every program, then run every wanted job, the longest first.

    Programs are shared as if all jobs were wanted, so that a job's results do not depend on which
    others were done before. `keep` is called as each job ends; what it returns is kept.
    `progress` is told of newly done interactions, summed over seeds. Where there is a `failed`, it
    is told of a job that raises, and the others go on.
    """
    batches = [b for group in _groups(jobs) for b in _batches(group) if wanted(b.job)]
    first_of = {_program(batch.job, batch.protocol): batch for batch in batches}
    stop = threading.Event()
    lock = threading.Lock()

    @double  # whose switch is a thread's own
    def compile_one(batch: Batch) -> None:
        # What cannot be compiled is met again, and told, when its jobs are run.
        with contextlib.suppress(*(() if failed is None else (Exception,))):
            batch.run(np.zeros_like(batch.job.plan.marks), progress=lambda k: None)

    @double
    def work(batch: Batch) -> Any:
        plan, seeds, last = batch.job.plan, len(batch.job.seeds), 0

        def report(k: int) -> None:
            nonlocal last
            if stop.is_set():
                raise KeyboardInterrupt
            with lock:
                progress((k - last) * plan.protocol.fresh * seeds)
            last = k

        try:
            done = batch.run(plan.marks, progress=report)
            with lock:
                return keep(batch.job, done)
        except Exception as error:
            if failed is None:
                raise
            with lock:
                return failed(batch.job, error)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            begun = time.perf_counter()
            for done, _ in enumerate(pool.map(compile_one, first_of.values()), start=1):
                compiled(done, len(first_of))
            ready = time.perf_counter()
            longest_first = sorted(batches, key=lambda batch: -batch.cost)
            results = pool.map(work, longest_first)
            runs = {id(b.job): run for b, run in zip(longest_first, results, strict=True)}
            finished = time.perf_counter()
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    kept = [runs[id(job)] for job in jobs if id(job) in runs]
    return Done(kept, ready - begun, finished - ready)


def _groups(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs that can share a program: same problem, same shapes but for the window's slots and,
    where that may be a number, what is collected an iteration."""
    alike: dict[Hashable, list[Job]] = {}
    for job in jobs:
        any_slots = dataclasses.replace(job.plan.protocol, slots=0)
        if counts(any_slots):
            any_slots = dataclasses.replace(any_slots, steps=0)
        alike.setdefault(_program(job, any_slots), []).append(job)
    groups = []
    for group in alike.values():
        shapes = [job.plan.protocol for job in group]
        if max(p.slots for p in shapes) * max(p.steps for p in shapes) <= ROOM:
            groups.append(group)
            continue
        apart: dict[int, list[Job]] = {}
        for job in group:
            apart.setdefault(job.plan.protocol.steps, []).append(job)
        groups += apart.values()
    return groups


def _batches(group: list[Job]) -> list[Batch]:
    protocol, settings = together([job.plan for job in group])
    return [
        Batch(job, protocol, stack(row, len(job.seeds)))
        for job, row in zip(group, settings, strict=True)
    ]


def _program(job: Job, protocol: RunShape) -> Hashable:
    """What a compiled program depends on, besides the problem's arrays."""
    return job.problem_name, protocol, len(job.plan.marks), len(job.seeds)

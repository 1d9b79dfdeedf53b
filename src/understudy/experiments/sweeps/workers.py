"""Tasks on this machine: a process a core, one task at a time in each.

Each worker has a pipe of its own, so it is known whose task is lost with a worker that dies, of
want of memory, by `kill -9`, by an environment that ends its process: that task has failed, another
worker takes its place, and the rest goes on.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import console

Task = Callable[[], object]  # what can be sent to another process
Ended = Callable[[int, BaseException | None], object]  # told of a task's place, and its error


@dataclass
class Worker:
    """A process, the way to it, and the place of the task that it is at."""

    process: Any
    pipe: Any
    place: int | None = None


def work_off(tasks: Sequence[Task], ended: Ended, tell: Callable[[], object]) -> None:
    """All of them on all cores. `tell` is called about once a second."""
    waiting = deque(enumerate(tasks))
    here = cores()
    working = [_hire(core) for core in here[: len(tasks)]]
    try:
        for worker in working:
            _next(worker, waiting)
        while any(worker.place is not None for worker in working):
            busy = {worker.pipe: i for i, worker in enumerate(working) if worker.place is not None}
            for pipe in connection.wait(list(busy), timeout=1):
                i = busy[pipe]
                worker, place = working[i], working[i].place
                error = _heard(worker)
                if not worker.process.is_alive():
                    worker = working[i] = _hire(here[i])
                _next(worker, waiting)
                assert place is not None
                ended(place, error)
            tell()
    finally:  # at the end they are idle; before it, busy for minutes more
        for worker in working:
            worker.process.terminate()
        for worker in working:
            worker.process.join(1)


def said(error: BaseException) -> str:
    """What a task raised, as a sentence."""
    if isinstance(error, UserError):
        return str(error)
    where, reason = error.__traceback__, str(error).strip() or "no reason given"
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = ""
    if where is not None:
        place = f" ({os.path.basename(where.tb_frame.f_code.co_filename)}, line {where.tb_lineno})"
    return f"{type(error).__name__}: {reason}{place}"


def _hire(core: int) -> Worker:
    fresh = multiprocessing.get_context("spawn")  # a forked JAX would hang
    ours, theirs = fresh.Pipe()
    process = fresh.Process(target=_work, args=(theirs, core), daemon=False)
    process.start()
    theirs.close()  # so that the pipe ends with the worker
    return Worker(process, ours)


def _next(worker: Worker, waiting: deque[tuple[int, Task]]) -> None:
    """Give a worker the next task, if there is one; one that has died meanwhile is noticed when it
    is listened to."""
    worker.place = None
    if waiting:
        worker.place, task = waiting.popleft()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.pipe.send(task)


def _heard(worker: Worker) -> UserError | None:
    """How the task of a worker ended, which has said so or died."""
    try:
        sentence = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        return UserError(f"its process ended before it, {_how(worker.process.exitcode)}")
    return None if sentence is None else UserError(sentence)


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"with code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def _work(pipe: Any, core: int) -> None:
    """In a worker: task after task. It keeps to one core, says nothing, leaves Ctrl-C to the
    parent, and ends when the sweep does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    console.err.quiet = True
    threading.Thread(target=_watch_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            task()
            sentence = None
        except BaseException as error:  # one that would end the process is told like any other
            sentence = said(error)
        pipe.send(sentence)


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # the run goes on from its checkpoint with the next sweep


def cores() -> list[int]:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))

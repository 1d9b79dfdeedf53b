"""Tasks on this machine: a process a core, one task at a time in each."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing.sharedctypes import Synchronized

from understudy.experiments import console

Task = Callable[[], object]  # what can be sent to another process
Ended = Callable[[int, BaseException | None], object]  # told of a task's place, and its error


def work_off(tasks: Sequence[Task], ended: Ended, tell: Callable[[], object]) -> None:
    """All of them on all cores. `tell` is called about once a second."""
    fresh = multiprocessing.get_context("spawn")  # a forked JAX would hang
    turn = fresh.Value("i", 0)
    with ProcessPoolExecutor(len(cores()), fresh, initializer=_settle, initargs=(turn,)) as pool:
        waiting = {pool.submit(task): place for place, task in enumerate(tasks)}
        try:
            while waiting:
                for future in wait(waiting, timeout=1).done:
                    ended(waiting.pop(future), future.exception())
                tell()
        except BaseException:
            for process in (pool._processes or {}).values():  # ours, and busy for minutes more
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _settle(turn: "Synchronized[int]") -> None:
    """A worker keeps to one core, says nothing, and ends when the sweep does."""
    with turn.get_lock():
        place, turn.value = turn.value, turn.value + 1
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores()[place % len(cores())]})
    console.err.quiet = True
    threading.Thread(target=_watch_parent, daemon=True).start()


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

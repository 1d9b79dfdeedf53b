"""Small runs that write their folders as real ones do, and a machine that goes away at a chosen
write of theirs."""

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
import probe

from understudy.experiments import deep_run, runs, standing, store
from understudy.experiments import run_files as own
from understudy.experiments import train_tables as train
from understudy.learners.config import Config
from understudy.learners.deep import acting, actor, scaling
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.rehearsal import Method, Schedule

TABLES = Config(interactions=40, ledger=False)


def tabular(out, *, seed=0, restart=False):
    """A real run with tables."""
    return train.train("EmptyRoom-3x3", TABLES, seed=seed, out=out, restart=restart)


def recorded(out, *, seed=0, restart=False):
    """As a run with tables writes its folder, without the learning."""
    request = {"env": "EmptyRoom-3x3", "seed": seed, "horizon": 9, "config": {"window": "4"}}
    with store.workplace(out):
        if standing.prepare(out, request, restart=restart, tables=True) == "done":
            return runs.summary(out)
        rows = [{"interactions": n, "updates": n, "return": 0.5 * n} for n in range(3)]
        policy = {"policy": seed + np.arange(4.0)}
        with runs.recording(out, request) as draft:
            runs.append(draft, rows)
            runs.finish(draft, policy, {"expert_return": 4.6, "return": 1.0}, replay=policy)
        return runs.summary(out)


BORDER = scaling.of_spaces(probe.Point(), "probe:Point")


@functools.cache
def player(seed):
    key = jax.random.key(seed)
    return actor.actor(BORDER.observations, BORDER.actions, (4,), discrete=False, key=key)


def alone(act):
    """Of observations alone, whichever episode they are of."""
    return lambda obs, episodes: act(obs)


def rehearsed(out, *, seed=0, restart=False):
    """A rehearsal in a real environment, with a checkpoint after every iteration; its learner
    learns nothing."""
    request = {"method": "mdpo", "env": "probe:Point", "seed": seed, "config": {"window": "4"}}
    net = player(seed)
    method = Method(
        net,
        2,
        lambda state, n: alone(acting.sampling(state, jax.random.key(seed), n)),
        lambda state, practised, n: (state, {"mean": practised["reward"].mean()}),
        lambda state: state,
    )
    stage = deep_run.Stage(
        probe.Point, BORDER, lambda net: Policy(net, BORDER, "probe:Point", (2,), (2,))
    )
    schedule = Schedule(6, 3, 1, keep_best=False, checkpoint_seconds=0.0)
    return deep_run.in_folder(
        out, request, lambda: method, stage, schedule, expert_return=1.0, restart=restart
    )


def results(folder):
    """What must not depend on what happened in between."""
    return {n: (folder / n).read_bytes() for n in own.LISTED if (folder / n).exists()}


@functools.cache
def whole(kind, seed=0):
    """The bytes that a run comes to if nothing happens to it."""
    with tempfile.TemporaryDirectory() as place:
        globals()[kind](Path(place) / "run", seed=seed)
        return results(Path(place) / "run")


def tree(root):
    """Every file below a folder, but for drafts of ours."""
    found = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(own.DRAFT.fullmatch(part) for part in parts):
            found["/".join(parts)] = path.read_bytes()
    return found


# --- the machine goes away -----------------------------------------------------------------------


class Gone(BaseException):
    """`kill -9`."""


watching = None
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate")


def _watch(event, arguments):
    if watching is not None and event in EVENTS:
        watching(event, arguments)


sys.addaudithook(_watch)  # which cannot be taken away again


@contextlib.contextmanager
def going_away(root, at, share=1.0):
    """What a `kill -9` leaves just before the `at`-th change below `root`: the files of that
    moment, whatever is tidied up while the exception goes its way. A draft that was to be renamed
    then is there only in part. Yields the changes that were seen."""
    global watching
    seen = []
    with tempfile.TemporaryDirectory() as kept:
        copy = Path(kept) / "copy"

        def look(event, arguments):
            global watching
            path = str(arguments[0])
            writing = event != "open" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
            if not path.startswith(str(root)) or not writing:
                return
            seen.append((event, *map(str, arguments[:2])))
            if len(seen) == at:
                watching = None
                shutil.copytree(root, copy, symlinks=True)
                name = Path(path).name
                if event == "os.rename" and own.DRAFT.fullmatch(name) and share < 1:
                    draft = copy / Path(path).relative_to(root)
                    if draft.is_file():
                        os.truncate(draft, int(share * draft.stat().st_size))
                raise Gone

        watching = look
        try:
            yield seen
        except Gone:
            pass
        finally:
            watching = None
            if copy.exists():
                for path in root.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                shutil.copytree(copy, root, symlinks=True, dirs_exist_ok=True)

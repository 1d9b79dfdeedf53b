"""The same tasks on a Ray cluster: one started for them on this machine, or one that exists.

A task whose worker or node is lost is given to another, which goes on from the run's checkpoint in
the folder that all nodes see. Ray itself is the extra `[ray]`, imported when it is asked for.
"""

import contextlib
import functools
import os
import re
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.core import extras
from understudy.core.errors import UserError
from understudy.experiments import console, store
from understudy.experiments.sweeps.shared_place import Place
from understudy.experiments.sweeps.workers import Ended, Task, cores

HERE = "ray"
TRIES = 2  # to start a Ray of our own
LONG = 120  # seconds for its node to start
PATIENCE = 120  # seconds to wait for a folder whose worker is lost and has not noticed yet


@dataclass(frozen=True)
class Cluster:
    """Where to run, and what each run asks for."""

    address: str  # HERE, "auto", "ray://HOST:PORT" or "HOST:PORT"
    cores: int = 1
    gpus: float = 0.0
    retries: int = 3
    share: Place | None = None  # where nodes have no folder in common


def chosen(
    on: str,
    cores: int | None = None,
    gpus: float | None = None,
    retries: int | None = None,
    share: str | None = None,
) -> Cluster | None:
    """From the command's options: None is this machine, without Ray."""
    given = {"cores": cores, "gpus": gpus, "retries": retries, "share": share and Place(share)}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if on == "local":
        if asked:
            raise UserError(f"--{min(asked)} is for a Ray cluster; give --on ray, say.")
        return None
    if on not in (HERE, "auto") and not re.fullmatch(r"(ray://)?[^\s/:]+:\d{1,5}", on):
        raise UserError(
            f"--on is {on!r}; it must be local, ray, auto, ray://HOST:PORT or HOST:PORT."
        )
    for name, least in (("cores", 1), ("gpus", 0), ("retries", 0)):
        value = asked.get(name)
        if value is not None and not least <= value <= 10_000:
            raise UserError(f"--{name} is {value}; it must be from {least} to 10,000.")
    if (asked.get("gpus") or 0) > 1 and asked["gpus"] % 1:
        raise UserError(f"--gpus is {asked['gpus']}; above one, Ray has whole ones only.")
    if share is not None:
        Place(share).open()  # refuses now what it would refuse later
    return Cluster(on, **asked)


def work_off(
    cluster: Cluster, tasks: Sequence[Task], ended: Ended, tell: Callable[[], object]
) -> None:
    """All of them, wherever there is room. `tell` is called about once a second."""
    with joined(cluster) as ray:
        remote = ray.remote(
            num_cpus=cluster.cores, num_gpus=cluster.gpus, max_retries=cluster.retries
        )(_there)
        lost = ray.exceptions.RayError
        waiting = {
            remote.remote(task, os.getcwd(), cluster.cores, cluster.gpus): place
            for place, task in enumerate(tasks)
        }
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=1)
            for one in done:
                try:
                    failed = ray.get(one)
                    error = None if failed is None else UserError(failed)
                except ray.exceptions.RayTaskError as problem:
                    error = problem.cause or problem
                except lost as problem:
                    error = UserError(f"lost with its worker: {_first_line(problem)}")
                ended(waiting.pop(one), error)
            tell()


@contextlib.contextmanager
def joined(cluster: Cluster) -> Iterator[Any]:
    """Ray, connected, for as long as it lasts; a task under way then ends with it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    extras.refuse_missing("--on ray", "ray")  # on every node
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    # Ray starts programs of its own, which JAX's warning of forks is not about.
    warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
    if cluster.address == HERE:
        # On the loopback, and without a dashboard: nobody else is let in.
        here = {"num_cpus": len(cores()), "include_dashboard": False}
        _start(ray, {**here, "_node_ip_address": "127.0.0.1", **quiet})
    else:
        try:
            _knock(cluster.address)
            ray.init(address=cluster.address, **quiet)
        except Exception as error:  # Ray raises whatever it likes, Exception itself among others
            raise UserError(
                f"Cannot join the Ray cluster {cluster.address}: {_first_line(error)}"
            ) from None
    try:
        _tell_whether_it_fits(ray, cluster)
        yield ray
    finally:
        ray.shutdown()


def _start(ray: Any, options: dict[str, Any]) -> None:
    """A Ray of our own. On a busy machine its node may take longer than Ray waits; then it is
    waited for longer, and tried once more."""
    for name in ("RAY_gcs_server_port_wait_time_s", "RAY_worker_register_timeout_seconds"):
        os.environ.setdefault(name, str(LONG))
    said = ""
    for _ in range(TRIES):
        try:
            with _patiently():
                ray.init(**options)
                return
        except Exception as error:  # a node that is late is an Exception, of no class of its own
            said = _first_line(error)
            ray.shutdown()
    raise UserError(
        f"Ray did not start on this machine in {TRIES} tries: {said.rstrip('.')}; try again when "
        f"it is less busy, or run the sweep without --on ray."
    )


@contextlib.contextmanager
def _patiently() -> Iterator[None]:
    """Ray asks for its new node for half a minute, a number that is written into its code. Here
    each time that it asks, it is answered later."""
    from ray._private import services

    ask = getattr(services, "get_node", None)
    if ask is None:  # another version, which has its own ways
        yield
        return
    services.get_node = functools.partial(_answered, ask)
    try:
        yield
    finally:
        services.get_node = ask


def _answered(ask: Callable[..., Any], *about: Any, **named: Any) -> Any:
    """What `ask` answers, once it does, for LONG seconds at most."""
    until = time.monotonic() + LONG
    while True:
        try:
            return ask(*about, **named)
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def _knock(address: str) -> None:
    """Whether anybody is there: Ray itself would wait for many minutes. For "auto" that is the
    cluster that this machine was told of, which may be long gone."""
    if address == "auto":
        noted = Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster"
        address = os.environ.get("RAY_ADDRESS") or (
            noted.read_text(encoding="utf-8") if noted.exists() else ""
        )
    host, _, port = address.removeprefix("ray://").strip().rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def _tell_whether_it_fits(ray: Any, cluster: Cluster) -> None:
    """A request that no node can meet would wait for ever, in silence."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    asked = {"CPU": cluster.cores, "GPU": cluster.gpus}
    if any(all(node.get(kind, 0) >= n for kind, n in asked.items()) for node in nodes):
        return
    most = {kind: max((node.get(kind, 0) for node in nodes), default=0) for kind in asked}
    said = f"a run asks for {asked['CPU']} cores and {asked['GPU']:g} GPUs; the largest node has "
    said += f"{most['CPU']:g} and {most['GPU']:g}"
    if cluster.address == HERE:
        raise UserError(f"{said[0].upper()}{said[1:]}; ask for less with --cores and --gpus.")
    console.say(f"Waiting for a node: {said}.")


def _there(task: Task, folder: str, cores: int, gpus: float) -> str | None:
    """On a node: run a task in the command's own folder; what the user is told if it cannot."""
    if threading.current_thread() is threading.main_thread():
        _settle(cores, gpus)
    with contextlib.suppress(OSError):  # a node without it needs absolute paths
        os.chdir(folder)
    begun = time.monotonic()
    while True:
        try:
            task()
            return None
        except store.Occupied as error:
            if time.monotonic() - begun > PATIENCE:
                return str(error)
            time.sleep(1)
        except UserError as error:
            return str(error)


def _settle(cores: int, gpus: float) -> None:
    """As many threads as cores were asked for, and that share of a GPU's memory. XLA looks at the
    cores when it starts; afterwards its threads may move, for Ray gives no core to anybody."""
    console.err.quiet = True
    if 0 < gpus < 1:
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{0.9 * gpus:.3f}")
    if not hasattr(os, "sched_setaffinity"):
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    import jax

    jax.devices()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), before)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

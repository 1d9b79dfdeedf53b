"""A place that all nodes see, where they have no file system in common: any that fsspec knows.

A run works in a folder of its node. What the place has of it is fetched first; what changes there
is brought to the place every now and then, so that another node can go on from it.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import console, run_files, runs
from understudy.experiments.run_files import CHECKPOINT


@dataclass(frozen=True)
class Place:
    """Where the runs of a sweep are kept, a folder each: s3://…, gs://…, file:///…"""

    url: str

    def open(self) -> tuple[Any, str]:
        """The file system, and the folder in it."""
        try:
            import fsspec

            return fsspec.core.url_to_fs(self.url)
        except ImportError as error:
            raise UserError(
                f"--share {self.url} needs a package that is not there: {error}; fsspec is in "
                f"understudy[ray]."
            ) from None
        except ValueError as error:
            raise UserError(
                f"--share {self.url} is not a place that fsspec knows: {error}"
            ) from None

    def fetch(self, folder: Path) -> None:
        """What the place has of a run, to its folder here; the marker last."""
        if runs.done(folder):
            return
        files, root = self.open()
        there = f"{root}/{folder.name}"
        with _reaching(self.url):
            listed = files.ls(there, detail=False) if files.exists(there) else []
            # No path leads out of the folder, and what else is in it is not a run's.
            names = [name for path in listed if (name := Path(path).name) in run_files.NAMES]
            if runs.MARKER not in names:  # it can be gone on from, and its results come again
                names = [name for name in names if name not in run_files.RESULTS]
            if names:
                folder.mkdir(parents=True, exist_ok=True)
            for name in sorted(names, key=lambda name: name == runs.MARKER):
                files.get_file(f"{there}/{name}", str(folder / name))

    def bring(self, folder: Path) -> None:
        """A run's folder to the place, such that at any moment what is there can be gone on from:
        a checkpoint never before the metrics that it counts on, the marker last."""
        if not folder.exists():
            return  # refused before it began
        files, root = self.open()
        there = f"{root}/{folder.name}"
        last = (CHECKPOINT, runs.MARKER)
        with (
            _reaching(self.url),
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as held,
        ):
            # The checkpoint of now, whatever replaces it while the others are on their way.
            latest = Path(held) / CHECKPOINT
            with contextlib.suppress(FileNotFoundError):
                os.link(folder / CHECKPOINT, latest)
            ended = (folder / runs.MARKER).exists()
            files.makedirs(there, exist_ok=True)
            for path in sorted(folder.iterdir()):
                if path.is_file() and path.name in run_files.NAMES and path.name not in last:
                    _put(files, path, there)
            if latest.exists() and not ended:
                _put(files, latest, there)
            if ended:
                _put(files, folder / runs.MARKER, there)
                if files.exists(f"{there}/{CHECKPOINT}"):
                    files.rm_file(f"{there}/{CHECKPOINT}")

    @contextlib.contextmanager
    def keeping(self, folder: Path, seconds: float) -> Iterator[None]:
        """While a run is at work in a folder: fetched first, brought now and then and at the end,
        however it ends."""
        self.fetch(folder)
        over = threading.Event()

        def now_and_then() -> None:
            while not over.wait(max(seconds, 1.0)):
                try:
                    self.bring(folder)
                except UserError as error:
                    console.say(str(error))  # the next time may do, and the last one must

        bringing = threading.Thread(target=now_and_then, daemon=True)
        bringing.start()
        try:
            yield
        finally:
            over.set()
            bringing.join()
            self.bring(folder)


def _put(files: Any, path: Path, there: str) -> None:
    """A file under another name, then under its own: whole or not at all."""
    draft = f"{there}/.{os.getpid()}.{path.name}"
    files.put_file(str(path), draft)
    files.mv(draft, f"{there}/{path.name}")


@contextlib.contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each file system has errors of its own
        reason = str(error) or type(error).__name__
        raise UserError(f"Cannot reach {url}: {reason}") from None

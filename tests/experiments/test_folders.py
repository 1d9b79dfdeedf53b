"""A run's folder under all that can happen to it: kills, the user's own files, edits, other runs.
No file of the user's is ever changed, and no finished run is lost."""

import os
import re
import tempfile
from pathlib import Path

import pytest
import stage
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from stage import whole

from understudy.core.errors import UserError
from understudy.experiments import run_files as own
from understudy.experiments import runs
from understudy.experiments import stored_runs as stored

SEQUENCES = int(os.environ.get("UNDERSTUDY_SEQUENCES", "50"))
KINDS = {"recorded": stage.recorded, "rehearsed": stage.rehearsed}


# --- whatever happens ----------------------------------------------------------------------------

FOREIGN = st.sampled_from(
    ["notes.md", "analysis/thesis.tex", "seed1/notes.md", "demos/mine.npz",
     ".draft-old/config.json", ".12.notes.md", "metrics.jsonl.bak", "Config.json", "done.json~",
     "tensorboard/events", ".12.run2/done.json",
     "demos/understudy/Point/expert-v0/data/main_data.hdf5"]
)  # fmt: skip
CONTENT = st.binary(max_size=12).map(lambda drawn: b"the user's: " + drawn)


class Folder(RuleBasedStateMachine):
    """One folder, `run`, and what is below and beside it."""

    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def begin(self, kind):
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name).resolve()
        self.run = self.root / "run"
        self.kind, self.learn = kind, KINDS[kind]
        self.users = {}  # the user's own files, by path
        self.edited = []  # what the user made of files of ours
        self.finished = []  # the files of every run that ended
        self.meddled = False  # whether somebody else changed the run's own files

    def teardown(self):
        if hasattr(self, "place"):
            self.place.cleanup()

    # what understudy does

    @rule(restart=st.sampled_from([False, False, True]))
    def train(self, restart):
        """It ends with the right bytes, or it is refused and nothing has changed."""
        before = stage.tree(self.root)
        if sentence := self.refused(restart):
            assert self.meddled, sentence
            assert re.search(r"--restart|--out", sentence), sentence
            assert stage.tree(self.root) == before
            return
        assert self.right()
        assert not own.drafts(self.run) or before == stage.tree(self.root)  # it was done before
        self.ended(self.run)
        self.meddled &= not restart

    @rule(at=st.integers(1, 60), share=st.sampled_from([0.0, 0.5, 1.0]), restart=st.booleans())
    def killed(self, at, share, restart):
        try:
            with stage.going_away(self.root, at, share) as seen:
                self.learn(self.run, restart=restart)
        except UserError:
            assert self.meddled
            return
        if restart and len(seen) >= at:
            self.meddled = True  # gone on with by the same command alone, --restart and all
        if runs.done(self.run):
            assert self.right()
            self.ended(self.run)

    @rule(seed=st.integers(1, 2), at=st.integers(1, 80))
    def another_in_a_folder_below(self, seed, at):
        with stage.going_away(self.root, at):
            KINDS["recorded"](self.run / f"seed{seed}", seed=seed)
        if runs.done(self.run / f"seed{seed}"):
            self.ended(self.run / f"seed{seed}")

    @rule()
    def another_here(self):
        """It is refused, but where nothing is: then it would be the run of this folder."""
        if not any((self.run / name).exists() for name in own.NAMES):
            return
        before = stage.tree(self.root)
        for restart in (False, True):
            if restart and own.read(self.run / "config.json") is None:
                continue  # whose it is cannot be told, and it would be moved aside
            with pytest.raises(UserError):
                self.learn(self.run, seed=7, restart=restart)
        assert stage.tree(self.root) == before

    @rule()
    def report(self):
        before = stage.tree(self.root)
        if self.run.is_dir():
            stored.load(self.run)
        assert stage.tree(self.root) == before

    def refused(self, restart):
        """The sentence, if it is."""
        try:
            self.learn(self.run, restart=restart)
        except UserError as error:
            return str(error)
        return None

    # what the user does

    @rule(name=FOREIGN, content=CONTENT)
    def writes(self, name, content):
        path = self.run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.users[path] = content

    @precondition(lambda self: self.ours())
    @rule(data=st.data(), how=st.sampled_from(["newline", "cut", "replaced", "deleted"]))
    def meddles(self, data, how):
        path = self.run / data.draw(st.sampled_from(self.ours()))
        content = path.read_bytes()
        new = []
        if how == "deleted":
            path.unlink()
        elif how == "cut":
            path.write_bytes(content[: len(content) // 2])
        else:
            changed = content + b"\n" if how == "newline" else b"mine"
            path.write_bytes(changed)
            new = [changed]
        self.now(new)

    @rule(name=st.sampled_from(own.NAMES), content=CONTENT)
    def takes_a_name_of_ours(self, name, content):
        path = self.run / name
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.now([content])

    def now(self, edited):
        """The user has changed files of ours: what is gone with that was the user's to lose."""
        self.meddled = True
        self.finished = [files for files in self.finished if self.there(files)]
        kept = stage.tree(self.root).values()
        self.edited = [content for content in self.edited if content in kept] + edited

    def right(self):
        return whole(self.kind).items() <= stage.results(self.run).items()

    def ours(self):
        return [name for name in own.NAMES if (self.run / name).is_file()]

    # what must hold

    def ended(self, folder):
        files = {name: (folder / name).read_bytes() for name in (*own.LISTED, own.MARKER)
                 if (folder / name).exists()}  # fmt: skip
        if files not in self.finished:
            self.finished.append(files)

    def there(self, files):
        """Whether these are together in one folder, wherever that is."""
        return any(
            all((p.parent / n).is_file() and (p.parent / n).read_bytes() == x
                for n, x in files.items())
            for p in self.root.rglob(own.MARKER)
        )  # fmt: skip

    @invariant()
    def no_file_of_the_users_changed(self):
        for path, content in getattr(self, "users", {}).items():
            assert path.read_bytes() == content
        kept = set(stage.tree(self.root).values()) if getattr(self, "edited", None) else set()
        assert set(getattr(self, "edited", ())) <= kept

    @invariant()
    def no_finished_run_was_lost(self):
        assert all(self.there(files) for files in getattr(self, "finished", ()))


def test_whatever_happens_nothing_is_lost():
    run_state_machine_as_test(
        Folder,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

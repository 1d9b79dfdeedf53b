"""Sweeps on Ray: a real one, of several nodes, some of which die."""

import json
from pathlib import Path

import pytest
from ray_sweep import ASKED as NETWORKS

from understudy.core.errors import UserError
from understudy.experiments import deep_run, runs
from understudy.experiments.sweeps import cluster, sweep_file, sweep_run
from understudy.experiments.sweeps.cluster import Cluster
from understudy.experiments.sweeps.shared_place import Place

ray = pytest.importorskip("ray")
# Ray starts programs of its own, which JAX's warning of forks is not about.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called:RuntimeWarning")

TABLES = """
envs = ["EmptyRoom-3x3"]
seeds = 2
[config]
interactions = 200
[grid]
window = ["1", "4"]
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "asked.toml").write_text(text)
        return sweep_file.read(tmp_path / "asked.toml")

    return write


def found(out: Path) -> dict[str, dict[str, bytes]]:
    """What does not depend on when and where a sweep ran."""
    listed = {}
    for run in sorted(runs.folders(out)):
        assert runs.done(run)
        files = {p.name: p.read_bytes() for p in run.iterdir() if p.name != "done.json"}
        told = runs.summary(run)
        listed[run.name] = files | {"return": json.dumps(told["return"]).encode()}
    return listed


def test_a_sweep_on_ray_is_the_sweep_at_home(written, tmp_path):
    asked = written(TABLES)
    there = sweep_run.run(asked, tmp_path / "there", Cluster("ray"))
    here = sweep_run.run(asked, tmp_path / "here")
    assert not ray.is_initialized()
    assert there["runs"] == here["runs"] == 4
    assert found(tmp_path / "there") == found(tmp_path / "here")
    again = sweep_run.run(asked, tmp_path / "there", Cluster("ray"))  # nothing left: no Ray either
    assert (again["resumed"], again["seconds"] < there["seconds"]) == (4, True)


@pytest.mark.slow
def test_sixty_runs_outlive_a_node(written, tmp_path, monkeypatch):
    """One node is killed in the middle of its runs and another joins: all end, none is done twice,
    each with the bytes that it has at home."""
    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setenv("RAY_health_check_timeout_ms", "2000")
    asked = written(NETWORKS)
    here, there = tmp_path / "here", tmp_path / "there"
    sweep_run.run(asked, here)
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    doomed = nodes.add_node(num_cpus=1)
    nodes.add_node(num_cpus=1)
    happened = []
    work_off = cluster.work_off

    def watched(on, tasks, ended, tell):
        def and_kill():
            tell()
            done = [run for run in runs.folders(there) if runs.done(run)]
            if len(done) >= 10 and not happened:
                happened.append({run: (run / runs.MARKER).stat().st_mtime_ns for run in done})
                nodes.remove_node(doomed, allow_graceful=False)
                nodes.add_node(num_cpus=1)

        work_off(on, tasks, ended, and_kill)

    monkeypatch.setattr(cluster, "work_off", watched)
    try:
        done = sweep_run.run(asked, there, Cluster(nodes.address), checkpoint=0.2)
    finally:
        nodes.shutdown()
    assert (done["runs"], done["resumed"], len(happened)) == (60, 0, 1)
    assert found(there) == found(here)
    assert all((run / runs.MARKER).stat().st_mtime_ns == at for run, at in happened[0].items())


def test_a_run_goes_on_from_the_place_that_nodes_share(tmp_path):
    """A folder's way to a place and back, at whatever moment: what it fetches can be gone on from,
    and only what has ended has the marker."""
    place, run, other = Place(f"file://{tmp_path}/place"), tmp_path / "a" / "run", tmp_path / "b"
    run.mkdir(parents=True)
    (run / "config.json").write_text("{}")
    (run / deep_run.CHECKPOINT).write_text("3 rows")
    (run / "metrics.jsonl").write_text("1\n2\n3\n")
    (run / ".draft").write_text("half")
    place.bring(run)
    place.fetch(other / "run")
    assert files_of(other / "run") == files_of(run) - {".draft"}
    (run / deep_run.CHECKPOINT).unlink()
    (run / runs.MARKER).write_text("{}")
    place.bring(run)
    place.fetch(tmp_path / "c" / "run")
    assert files_of(tmp_path / "c" / "run") == {"config.json", "metrics.jsonl", runs.MARKER}
    assert not [*(tmp_path / "a").glob(".*")]
    place.fetch(tmp_path / "c" / "never")
    assert not (tmp_path / "c" / "never").exists()


def files_of(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_nodes_without_a_common_folder_share_a_place(written, tmp_path):
    asked = written(NETWORKS.replace("seeds = 30", "seeds = 1"))
    sweep_run.run(asked, tmp_path / "here")
    on = Cluster("ray", share=Place(f"file://{tmp_path}/place"))
    sweep_run.run(asked, tmp_path / "there", on, checkpoint=0.2)
    again = sweep_run.run(asked, tmp_path / "elsewhere", on)  # everything comes from the place
    assert again["resumed"] == 2
    assert found(tmp_path / "here") == found(tmp_path / "there") == found(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("local", 2, None, None), "--cores is for a Ray cluster"),
        (("elsewhere", None, None, None), "--on is 'elsewhere'"),
        (("ray", 0, None, None), "--cores is 0"),
        (("ray", None, -1.0, None), "--gpus is -1.0"),
        (("ray", None, 1.5, None), "whole ones only"),
        (("ray", None, None, -1), "--retries is -1"),
    ],
)
def test_what_cannot_be_asked_of_a_cluster_is_named(options, names):
    with pytest.raises(UserError, match=names):
        cluster.chosen(*options)


def test_what_can_be_asked_of_a_cluster():
    assert cluster.chosen("local", None, None, None) is None
    assert cluster.chosen("auto", None, None, None) == Cluster("auto")
    assert cluster.chosen("ray://head:10001", 2, 0.5, 0) == Cluster("ray://head:10001", 2, 0.5, 0)

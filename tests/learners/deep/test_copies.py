"""Copies of an environment: however they are stepped, a run is the same, and goes on exactly."""

import dataclasses
import functools
import json

import numpy as np
import probe
import pytest
from test_deep_runs import SMALL, Stop, results, stopping

from understudy.core.errors import UserError
from understudy.demos import npz
from understudy.envs.given import given
from understudy.experiments import train_networks
from understudy.learners.deep import copies, scaling
from understudy.learners.deep.collect import Collector

TWO = dataclasses.replace(SMALL, envs=2)


def making(env, horizon=6):
    return functools.partial(given(env).make, horizon)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_run_in_processes_is_the_one_in_one_process(tmp_path, monkeypatch):
    """Also where it was stopped in between, and gone on with in the other way."""
    npz.write(tmp_path / "point.npz", probe.straight())

    def learn(name, stepping):
        train_networks.train(
            "probe:Point", TWO, demos=str(tmp_path / "point.npz"), out=tmp_path / name,
            stepping=stepping, checkpoint=0.0,
        )  # fmt: skip

    learn("sync", "sync")
    stopping(monkeypatch, at=(4,))
    with pytest.raises(Stop):
        learn("async", "async")
    learn("async", "async")
    assert results(tmp_path / "async") == results(tmp_path / "sync")
    assert "stepping" not in json.loads((tmp_path / "async/config.json").read_text())


def test_what_fails_in_a_process_is_one_sentence():
    several = copies.side_by_side(making("probe:Broken", 99), "probe:Broken", 2, processes=True)
    several.begin({0: 1, 1: 2})
    push = np.zeros(2)
    for _ in range(2):  # of twenty steps each
        several.play(1, 5, [push] * 20)
    with pytest.raises(UserError, match=r"probe:Broken failed in step 9 .*the world fell apart"):
        several.play(1, 5, [push] * 20)
    several.close()


def test_a_process_that_ends_is_one_sentence():
    several = copies.side_by_side(making("probe:Gone"), "probe:Gone", 2, processes=True)
    several.begin({0: 1, 1: 2})
    with pytest.raises(UserError, match="A copy of environment probe:Gone ended its process"):
        several.step([np.zeros(2)] * 2)
    several.close()


def test_where_a_step_is_slow():
    with making("probe:Point")() as quick, making("probe:Sleepy")() as sleepy:
        assert not copies.slow(quick)
        assert copies.slow(sleepy) is (len(copies._cores()) > 1)


def test_lanes_begin_with_the_same_seeds_however_many_there_are():
    """The first of three lanes is the only one of one."""
    make = making("Pendulum-v1")
    with make() as world:
        border = scaling.of_spaces(world, "Pendulum-v1")
    rows = {}
    for lanes in (1, 3):
        collector = Collector(make, border, lanes=lanes, seed=7, name="Pendulum-v1")
        got = collector.practise(lambda obs, _: np.tanh(obs[:, 1:2]), 15)
        rows[lanes] = {name: x[::lanes] for name, x in got.items()}
        assert collector.state()["0/actions"].shape == (3, 1)
        collector.close()
    for name, x in rows[1].items():
        np.testing.assert_array_equal(x, rows[3][name])
        assert x.dtype == rows[3][name].dtype

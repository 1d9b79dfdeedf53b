"""A task of MiniGrid's through every command: trained, evaluated, watched, recorded, compared."""

import json

import gymnasium
import numpy as np
import pytest
from test_watch import pictures

import understudy
from understudy.core.errors import UserError
from understudy.demos import keys, recording
from understudy.envs import catalog
from understudy.experiments import compare, demo_files, kinds, runs, watch
from understudy.experiments import train_tables as train
from understudy.experiments.sweeps import sweep_file, sweep_run
from understudy.experiments.train_tables import Expert
from understudy.learners.config import Config

GAP = "MiniGrid-LavaGapS5-v0"
BEST = 0.946  # six steps of a hundred


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "gap"
    train.train(GAP, Config(interactions=60), out=out)
    return out


def test_it_is_learned_with_its_regret_and_plays_as_its_table_says(run):
    summary = runs.summary(run)
    assert summary["env"] == f"{GAP}-layout0"
    assert summary["optimal_return"] == pytest.approx(BEST)
    assert summary["return"] >= 0.95 * BEST
    assert summary["ledger"]["ail"]["measured"] > 0
    told = train.evaluate(run, episodes=20)
    assert told["return"] == pytest.approx(summary["return"])
    assert told["sampled_return"] == pytest.approx(told["return"], abs=0.02)


def test_the_film_shows_the_real_world(run, tmp_path):
    told = watch.watch(run, tmp_path / "film.gif", episodes=1)
    shown = pictures(tmp_path / "film.gif")
    assert told["returns"] == [pytest.approx(BEST, abs=0.05)]
    assert shown[0].shape == (344, 320, 3)
    world, tile = [frame[watch.CAPTION :] for frame in shown], slice(3 * 64, 4 * 64)

    def share(frame, colour):
        return (np.abs(frame - colour).max(-1) < 8).mean()

    lava, goal = [255, 128, 0], [0, 255, 0]
    assert share(world[0][tile, tile], goal) > 0.9
    assert share(world[0], lava) > 0.02
    assert share(world[-1][tile, tile], goal) < 0.9  # the agent stands there


@pytest.mark.parametrize(("width", "height", "size"), [(19, 19, 17), (11, 6, 54), (90, 3, 8)])
def test_tiles_fit_the_film(width, height, size):
    world = gymnasium.make(GAP)
    world.unwrapped.width, world.unwrapped.height = width, height
    watch.draw_larger(world)
    assert (world.unwrapped.tile_size, world.unwrapped.highlight) == (size, False)


def test_a_run_of_other_states_is_refused(run, tmp_path):
    with pytest.raises(UserError, match=r"learned in other states than .*-layout1 has now"):
        train.evaluate(run, env=f"{GAP}-layout1")
    config = json.loads((run / "config.json").read_text())
    task = catalog.find(GAP)
    assert config["explored"] == task.explored
    train.refuse_renumbered(run, config, task)
    train.refuse_renumbered(run, {}, task)  # of what was not explored nothing is said
    with pytest.raises(UserError, match="train again if the code"):
        train.refuse_renumbered(run, {"explored": "0" * 16}, task)
    with pytest.raises(UserError, match="learned in other states"):
        watch.watch(run, tmp_path / "film.gif", env=f"{GAP}-layout1")
    assert not list(tmp_path.iterdir())


def test_demonstrations_are_recorded_checked_and_learned_from(run, tmp_path):
    policy = kinds.of_run(run).load(run, None)
    told = demo_files.record(
        GAP, tmp_path / "gap.npz", player=str(run), episodes=2, window=False, seed=5, horizon=None,
        format=None,
    )  # fmt: skip
    assert told["returns"]["max"] == pytest.approx(BEST, abs=0.05)
    assert told["terminated"] == 2
    assert demo_files.check(str(tmp_path / "gap.npz"), GAP)["wrong"] == []
    shown = Expert(demos=str(tmp_path / "gap.npz"))
    summary = train.train(GAP, Config(interactions=60), shown, out=tmp_path / "run")
    assert summary["return"] >= 0.95 * summary["expert_return"]
    by_name = recording.record(GAP, recording.predicting(policy), 1)
    assert by_name.observations[0][0] == 0
    assert by_name.returns[0] == pytest.approx(told["returns"]["max"])


def test_arrow_keys_turn_and_walk():
    world = catalog.make(GAP)
    named = keys.keys_of(world)
    assert [named[key] for key in ("left", "right", "up", "p", "d", "space", "6")] == [*range(6), 6]
    before = int(world.unwrapped.agent_dir) if world.reset() else None
    world.step(named["right"])
    assert int(world.unwrapped.agent_dir) == (before + 1) % 4
    assert world.unwrapped.actions.pickup == named["p"]


def test_methods_and_settings_are_compared_in_it(tmp_path):
    told = compare.compare(GAP, ["understudy", "bc"], budget=40, seeds=1, out=tmp_path / "compare")
    assert told["env"] == GAP
    assert {row["method"] for row in told["rows"]} == {"understudy", "bc"}
    assert told["expert"] == pytest.approx(BEST)
    file = tmp_path / "sweep.toml"
    file.write_text(
        f'name = "layouts"\nenvs = ["{GAP}", "{GAP}-layout1"]\nseeds = 1\n'
        "[config]\ninteractions = 20\nledger = false\n"
    )
    done = sweep_run.run(sweep_file.read(file), tmp_path / "sweep")
    assert done["runs"] == 2
    assert {folder.name.split("-N")[0] for folder in (tmp_path / "sweep").iterdir()
            if folder.is_dir()} >= {f"{GAP}-layout0", f"{GAP}-layout1"}  # fmt: skip


def test_minigrid_given_as_an_object_is_a_table_too(tmp_path):
    own = gymnasium.make(GAP)
    result = understudy.train(own, config=Config(interactions=60))
    assert result.summary["env"] == f"{GAP}-layout0"
    assert result.returns[-1] >= 0.95 * BEST
    result.save(tmp_path / "run")
    with pytest.raises(UserError, match="--env MiniGrid-LavaGapS5-v0-layout0"):
        train.evaluate(tmp_path / "run")
    told = train.evaluate(tmp_path / "run", env=f"{GAP}-layout0", episodes=3)
    assert told["sampled_return"] >= 0.95 * BEST


def test_networks_are_not_for_it_and_a_refusal_leaves_nothing(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(UserError, match="is random"):
        train.train("MiniGrid-Dynamic-Obstacles-5x5-v0", Config(interactions=60), out=out)
    assert not out.exists()
    assert kinds.of_env(GAP) is kinds.TABLES
    assert kinds.of_env("BabyAI-GoToObj-v0-layout3") is kinds.TABLES

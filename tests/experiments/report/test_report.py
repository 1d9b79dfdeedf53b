"""The report's data: what is averaged, what is kept apart, what is fitted, and what is skipped."""

import functools
import json
import math
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import UserError
from understudy.envs.empty_room import successor
from understudy.experiments import runs, stored_runs
from understudy.experiments.figures import palette
from understudy.experiments.report import cells, collect, page, sections
from understudy.experiments.train_tables import train
from understudy.learners.config import Config
from understudy.learners.deep.config import DeepConfig

VERDICTS = {
    "figure": "fig1",
    "rule": "Mean over seeds at 1,000 interactions, at least 0.97 of the expert.",
    "verdicts": [
        {"claim": "N = 32 reaches the expert", "measured": "0.99 of the expert", "holds": True},
        {"claim": "N = 1 reaches it too </script>", "measured": -0.13333333, "holds": False},
    ],
}


def curve(N: str, x: np.ndarray, seed: int) -> np.ndarray:
    """Something that looks like learning: faster for larger N, a little different each seed."""
    speed = {"1": 0.002, "4": 0.006}.get(N, 0.02)
    noise = np.random.default_rng(seed).normal(scale=0.2, size=len(x))
    return 4.6 - 5.3 * np.exp(-speed * x) + noise * np.exp(-speed * x)


def regret_of(k: np.ndarray, N: str, seed: int) -> dict[str, np.ndarray]:
    scale = 1 + seed / 10
    parts = {
        "optimisation": 30 * np.sqrt(k) * scale,
        "shift": 8.0 * np.sqrt(k) * (N != "1"),
        "estimation": -5 * np.sqrt(k),
        "demonstrations": 0.01 * k,
    }
    reward = np.sum(list(parts.values()), axis=0)
    policy = 20 * np.sqrt(k)
    slack = np.sqrt(k)
    return {**parts, "reward": reward, "policy": policy, "ail": reward + policy - slack}


@functools.cache
def film(n: int, marks: int) -> dict[str, np.ndarray]:
    """A policy that turns from wandering to walking right and down; a reward that grows."""
    visits, reward = np.zeros((marks, n * n, 5)), np.zeros((marks, n * n, 5))
    for m in range(marks):
        share = m / (marks - 1)
        pi = np.full((n * n, 5), 0.2 * (1 - share))
        for s in range(n * n):
            i, j = divmod(s, n)
            for a in (0,) if i == j == n - 1 else (2,) * (i < n - 1) + (4,) * (j < n - 1):
                pi[s, a] += share * (1 if 0 in (n - 1 - i, n - 1 - j) else 0.5)
        nu = np.eye(n * n)[0]
        for _ in range(3 * n):
            d = nu[:, None] * pi
            visits[m] += d
            nu = np.zeros(n * n)
            for s, a in np.ndindex(n * n, 5):
                nu[successor(n, s, a)] += d[s, a]
        reward[m] = share * visits[m] / visits[m].max()
    return {"visits": visits.astype(np.float32), "reward": reward.astype(np.float32)}


def store_run(root: Path, env: str, N: str, seed: int, *, marks=20, replay=0, **options) -> Path:
    """A finished run by the real writer; `replay` is the room's size where one is kept."""
    config = asdict(Config(window=N, marks=marks, **options))
    request = {"env": env, "horizon": 9, "seed": seed, "demos": None, "config": config}
    folder = root / runs.name(request)
    x = np.linspace(0, config["interactions"], marks + 1).round().astype(int)
    k = x // {"1": 32, "4": 8}.get(N, 1)
    returns = curve(N, x, seed)
    regret = regret_of(k, N, seed) if config["ledger"] else None
    runs.begin(folder, request)
    rows = []
    for i in range(len(x)):
        row = {"interactions": int(x[i]), "updates": int(k[i]), "return": float(returns[i])}
        if regret is not None:
            row["regret"] = {t: float(v[i]) for t, v in regret.items()} | {"drift": [0.1, 0.2]}
        rows.append(row)
    runs.append(folder, rows)
    summary = {"return": float(returns[-1]), "expert_return": 4.6, "iterations": int(k[-1])}
    if regret is not None:
        summary["ledger"] = {
            term: {
                "measured": float(values[-1]),
                "bound": None if term == "demonstrations" else 1e5,
                "sharp_bound": None if term == "demonstrations" else 5e4,
                "holds": True,
            }
            for term, values in regret.items()
        }
    policy = {"policy": np.full((9, 9, 5), 0.2)}
    runs.finish(folder, policy, summary, film(replay, len(x)) if replay else None)
    return folder


def told_at(n: int, end: int, seed: int, *, warmup=400, trial=200) -> dict[str, float | None]:
    """What a run with networks tells after n interactions: nothing at first, noughts of the actor
    while that one waits, and the lead from its first audition on."""
    if n == 0:
        return {"practice_return": None}
    part, moves = n / end, n > warmup
    wave = np.sin(n / 130 + seed)
    return {
        "practice_return": float(800 + 2000 * part + 250 * wave) if n % 200 == 0 else None,
        "window": n / 8,
        "drift": 0.02 * moves,
        "discriminator_loss": 0.8,
        "expert_logit": 1.2 - 0.8 * part + 0.05 * seed,
        "agent_logit": -2 + 1.4 * part,
        "reward": 0.1,
        "critic_loss": 2.0,
        "q": moves * (30 * np.sqrt(part) + wave),
        "kl": moves * (0.2 - 0.15 * part),
        "entropy": moves * (-3 - 2 * part),
        "missed": moves * (0.5 + 0.1 * part),
        "held": moves * (0.7 - 0.6 * part),
        "lead_since": 0.0 if n < trial else float(max(trial, n - n % 300)),
        "lead": float(n >= trial),
        "clone_earned": 0.0 if n < trial else 300 + 600 * part,
        "earned": 0.0 if n < trial else 250 + 600 * part + 80 * wave,
    }


def store_networks(root: Path, env: str, seed: int, *, marks=20, tell=told_at, **options) -> Path:
    """A finished run with networks, by the real writer."""
    config = asdict(DeepConfig(interactions=2_000, marks=marks, hidden=16, **options))
    request = {
        "kind": "networks", "method": "mdpo", "env": env, "seed": seed, "demos": None,
        "trajectories": 1, "horizon": None, "config": config,
    }  # fmt: skip
    folder = root / runs.name(request)
    runs.begin(folder, request)
    x = np.linspace(0, 2_000, marks + 1).round().astype(int).tolist()
    rows = [
        {"interactions": n, "updates": n // 8, "return": 1_000 + n + 50.0 * seed, "length": 900.0}
        | tell(n, 2_000, seed)
        for n in x
    ]
    runs.append(folder, rows)
    summary = {"return": rows[-1]["return"], "expert_return": 3_000.0, "seconds": 3.0}
    runs.finish(folder, {"policy": np.zeros((1, 1, 1))}, summary, None)
    return folder


def store_sweep(root: Path) -> None:
    """Three environments, five windows: rooms with replays, K that varies, and no ledger."""
    for N in ("1", "4", "32", "adaptive", "all"):
        for seed in (0, 1, 2):
            options = {"interactions": 1000, "replay": 5}
            store_run(root, "understudy/EmptyRoom-5x5-v0", N, seed, **options)
            store_run(root, "understudy/EmptyRoom-3x3-v0", N, seed, replay=3, interactions=1000)
            if N != "adaptive":
                store_run(root, "Taxi-v3", N, seed, interactions=1000, ledger=False)
    for K in (500, 1000, 2000, 4000):
        for N in ("4", "32"):
            for seed in (0, 1):
                store_run(root, "FrozenLake-v1", N, seed, interactions=K)
    (root / "verdicts.json").write_text(json.dumps(VERDICTS))
    stopped = store_run(root, "understudy/EmptyRoom-3x3-v0", "4", 99)
    (stopped / runs.MARKER).unlink()


def data_of(page: Path) -> dict:
    text = page.read_text()
    return json.loads(re.findall(r'id="data">(.*?)</script>', text, flags=re.S)[0])


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    store_sweep(root)
    return root


@pytest.fixture(scope="module")
def written(sweep, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "new" / "report.html"
    return page.write(sweep, out), data_of(out), out


def test_it_answers_with_what_it_read(written):
    answer, data, out = written
    assert answer["report"] == str(out)
    assert answer["runs"] == data["runs"] == 5 * 3 * 2 + 4 * 3 + 4 * 2 * 2
    assert len(answer["skipped"]) == 1
    assert "has not finished" in answer["skipped"][0]


def test_folders_are_named_without_where_they_lie(written, sweep):
    _, data, out = written
    assert "seed99" in data["skipped"][0]
    assert str(sweep) not in out.read_text()


def test_curves_are_means_over_seeds(written, sweep):
    _, data, _ = written
    stored, _ = stored_runs.load(sweep)
    chart = next(c for c in data["curves"] if "3x3" in c["env"])
    cell = next(c for c in chart["cells"] if c["N"] == "32")
    each = np.stack([r.returns for r in stored if r.env == chart["env"] and r.window == "32"])
    assert cell["seeds"] == len(each) == 3
    np.testing.assert_allclose(cell["mean"], each.mean(0), rtol=1e-5)
    np.testing.assert_allclose(cell["std"], each.std(0), rtol=1e-4, atol=1e-9)
    assert chart["expert"] == [4.6]
    assert [c["N"] for c in chart["cells"]] == ["1", "4", "32", "adaptive", "all"]


def test_runs_that_differ_in_more_than_the_seed_are_kept_apart(tmp_path):
    for steps in ("paper", "theory"):
        store_run(tmp_path, "FrozenLake-v1", "4", 0, steps=steps)
    data = collect.collect(stored_runs.load(tmp_path)[0])
    cells = data["curves"][0]["cells"]
    assert [c["setting"] for c in cells] == ["steps paper", "steps theory"]
    assert [c["seeds"] for c in cells] == [1, 1]


def test_a_ledger_makes_no_setting_of_its_own_and_a_repeated_run_counts_once(tmp_path):
    for ledger in (False, True):
        store_run(tmp_path, "FrozenLake-v1", "4", 0, ledger=ledger)
    answer = page.write(tmp_path, tmp_path / "report.html")
    data = data_of(tmp_path / "report.html")
    assert data["cells"] == len(data["ledgers"]) == 1
    assert data["curves"][0]["cells"][0]["seeds"] == 1
    assert "counted once" in answer["skipped"][0]


def test_an_older_run_without_a_newer_option_is_not_told_apart(tmp_path):
    store_run(tmp_path, "FrozenLake-v1", "4", 0)
    folder = store_run(tmp_path, "FrozenLake-v1", "4", 1)
    config = json.loads((folder / "config.json").read_text())
    del config["config"]["correction"]
    (folder / "config.json").write_text(json.dumps(config))
    assert collect.collect(stored_runs.load(tmp_path)[0])["curves"][0]["cells"][0]["seeds"] == 2


def test_an_older_run_whose_warm_up_was_left_open_is_read(tmp_path):
    for seed, warmup in enumerate((None, "long")):
        folder = store_networks(tmp_path, "Hopper-v5", seed)
        config = json.loads((folder / "config.json").read_text())
        config["config"]["warmup"] = warmup
        (folder / "config.json").write_text(json.dumps(config))
    found, skipped = stored_runs.load(tmp_path)
    assert [run.seed for run in found] == [0]
    assert len(skipped) == 1


def test_the_split_adds_up_and_bounds_stand_beside(written):
    _, data, _ = written
    assert {ledger["env"] for ledger in data["ledgers"]}.isdisjoint({"Taxi-v3"})
    for ledger in data["ledgers"]:
        assert (np.diff(ledger["k"]) > 0).all()
        split = np.sum([ledger["terms"][term] for term in cells.SPLIT], axis=0)
        np.testing.assert_allclose(split, ledger["terms"]["reward"], rtol=1e-4, atol=1e-3)
        rows = {row["term"]: row for row in ledger["bounds"]}
        assert rows["ail"]["measured"] == pytest.approx(ledger["terms"]["ail"][-1], rel=1e-4)
        assert (rows["ail"]["bound"], rows["ail"]["sharp_bound"]) == (1e5, 5e4)
        assert rows["demonstrations"]["bound"] is None


def test_slopes_are_fitted_over_runs_of_several_K(written):
    _, data, _ = written
    kinds = {chart["env"]: chart["kind"] for chart in data["rates"]}
    assert kinds == {
        "FrozenLake-v1": "final",
        "EmptyRoom-3x3": "curve",
        "EmptyRoom-5x5": "curve",
    }
    lake = next(c for c in data["rates"] if c["kind"] == "final")["series"]
    assert [(s["N"], s["setting"]) for s in lake] == [("4", ""), ("32", "")]
    assert [s["K"] for s in lake] == [[62, 125, 250, 500], [500, 1000, 2000, 4000]]
    for chart in data["rates"]:
        for series in chart["series"]:
            assert series["slope"] == pytest.approx(0.5, abs=0.03)


def test_slope_of_a_power_law_and_of_too_little():
    K = np.array([0, 10, 100, 1000])
    assert sections.slope(K, 3.0 * K**0.7) == pytest.approx(0.7)
    assert sections.slope(K[:2], K[:2] * 1.0) is None
    assert sections.slope(K, np.array([1.0, -1.0, math.nan, 2.0])) is None


def test_one_replay_a_room_and_window(written):
    _, data, _ = written
    assert sorted((r["n"], r["N"], r["seed"]) for r in data["replays"]) == sorted(
        (n, N, 0) for n in (3, 5) for N in ("1", "4", "32", "adaptive", "all")
    )
    for replay in data["replays"]:
        visits = np.array(replay["visits"]).reshape(-1, replay["n"] ** 2, 5)
        assert len(visits) == len(replay["interactions"]) == len(replay["returns"]) == 21
        np.testing.assert_allclose(visits.sum(2).max(1), 1000, atol=3)
        assert 0 <= np.min(replay["reward"]) <= np.max(replay["reward"]) == 1000


def test_a_replay_of_another_shape_is_left_out(tmp_path):
    store_run(tmp_path, "understudy/EmptyRoom-5x5-v0", "4", 0, replay=3)
    assert collect.collect(stored_runs.load(tmp_path)[0])["replays"] == []


def test_verdicts_come_with_their_rule_and_once(sweep, tmp_path):
    row = {"claim": "c", "measured": 1, "holds": True, "rule": "r"}
    more = {"figure": "fig2", "verdicts": [row]}
    page.write(sweep, tmp_path / "report.html", verdicts=[VERDICTS, more])
    documents = data_of(tmp_path / "report.html")["verdicts"]
    assert [(d["figure"], d["rule"]) for d in documents] == [
        ("fig1", VERDICTS["rule"]),
        ("fig2", ""),
    ]
    rows = documents[0]["rows"]
    assert [row["holds"] for row in rows] == [True, False]
    assert rows[1]["measured"] == "-0.1333"
    assert documents[1]["rows"][0] == {"claim": "c", "measured": "1", "holds": True, "rule": "r"}
    assert rows[1]["claim"].endswith("</script>")  # and the page was still read whole


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"verdicts": [{"claim": "c"}]}'])
def test_damaged_verdicts_are_skipped_by_name(tmp_path, text):
    store_run(tmp_path, "FrozenLake-v1", "4", 0)
    (tmp_path / "verdicts.json").write_text(text)
    answer = page.write(tmp_path, tmp_path / "report.html")
    assert "verdicts.json" in answer["skipped"][0]


def test_no_runs_is_an_error_that_says_so(tmp_path):
    with pytest.raises(UserError, match="no finished run"):
        page.write(tmp_path, tmp_path / "report.html")
    with pytest.raises(UserError, match="no such folder"):
        page.write(tmp_path / "nowhere", tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_how_networks_learned_is_a_mean_over_those_who_told(tmp_path):
    for seed in (0, 1):
        store_networks(tmp_path, "Hopper-v5", seed)
    store_run(tmp_path, "FrozenLake-v1", "4", 0)
    data = collect.collect(stored_runs.load(tmp_path)[0])
    (chart,) = data["networks"]  # none of the run with tables
    (cell,) = chart["cells"]
    assert (chart["env"], cell["seeds"], cell["expert"]) == ("Hopper-v5", 2, 3_000)
    both = [told_at(n, 2_000, seed) for seed in (0, 1) for n in (2_000,)]
    for name in ("expert_logit", "q", "earned", "practice_return"):
        values = [row[name] for row in both]
        assert cell["told"][name]["mean"][-1] == pytest.approx(np.mean(values), rel=1e-5)
        assert cell["told"][name]["std"][-1] == pytest.approx(np.std(values), rel=1e-4)
    assert cell["told"]["return"]["mean"][:2] == [1_025, 1_125]
    assert cell["told"]["practice_return"]["mean"][1] is None  # no episode had ended
    # While the actor waits for its critics, and before the average was heard, noughts say nothing.
    assert cell["told"]["entropy"]["mean"][:6] == [None] * 5 + [pytest.approx(-3.5)]
    assert [m is None for m in cell["told"]["earned"]["mean"][:4]] == [True, True, False, False]
    assert cell["leads"][0] == {"seed": 0, "since": [200, 300, 600, 900, 1200, 1500, 1800]}
    assert data["finite"]


def test_a_method_tells_what_it_has(tmp_path):
    def soft(n, end, seed):
        return {"critic_loss": 1.0, "q": 2.0 * n, "entropy": -1.0} if n else {}

    def newest(n, end, seed):
        told = told_at(n, end, seed)
        unheard = {"lead": 1, "lead_since": 0, "clone_earned": 0, "earned": 0}
        return told if n == 0 else told | unheard

    store_networks(tmp_path, "Hopper-v5", 0, tell=soft)
    store_networks(tmp_path, "Walker2d-v5", 0, tell=newest, audition=0)
    store_networks(tmp_path, "Ant-v5", 0, tell=lambda n, end, seed: {})
    data = collect.collect(stored_runs.load(tmp_path)[0])
    soft_one, newest_one = (chart["cells"][0] for chart in data["networks"])
    assert list(soft_one["told"]) == ["return", "q", "entropy"]
    assert newest_one["leads"] == []
    assert "earned" not in newest_one["told"]
    assert len(data["curves"]) == 3
    assert not data["finite"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("q", "1e99"), ("kl", "NaN"), ("missed", '"little"'), ("lead_since", "1999"), ("drift", "[]"),
     ("lead_since", "-8"), ("practice_return", "true"), ("critic_loss", "Infinity")],
)  # fmt: skip
def test_what_networks_told_is_read_as_strictly_as_the_rest(tmp_path, name, value):
    """The lead was not taken later than at its mark, for one."""
    store_networks(tmp_path, "Hopper-v5", 0)
    folder = store_networks(tmp_path, "Hopper-v5", 1)
    spoilt = re.sub(r', "crc32": \d+', "", (folder / "metrics.jsonl").read_text()).splitlines()
    spoilt[2] = re.sub(rf'"{name}": [^,}}]+', f'"{name}": {value}', spoilt[2])
    (folder / "metrics.jsonl").write_text("\n".join(spoilt) + "\n")
    told = json.loads((folder / runs.MARKER).read_text())
    (folder / runs.MARKER).unlink()
    runs.mark(folder, told)
    found, skipped = stored_runs.load(tmp_path)
    assert [run.seed for run in found] == [0]
    assert f"its {name} is" in skipped[0]


def test_a_hundred_runs_with_networks_stay_light(tmp_path):
    for seed in range(4):
        for kl in range(5):
            for env in ("Hopper-v5", "Walker2d-v5", "Ant-v5", "HalfCheetah-v5", "Pendulum-v1"):
                store_networks(tmp_path, env, seed, marks=200, kl=0.1 + kl)
    assert page.write(tmp_path, tmp_path / "report.html")["runs"] == 100
    assert (tmp_path / "report.html").stat().st_size < 10e6


def test_what_is_not_a_number_does_not_break_the_page(tmp_path):
    folder = store_run(tmp_path, "FrozenLake-v1", "4", 0)
    store_run(tmp_path, "FrozenLake-v1", "32", 0)
    metrics = folder / "metrics.jsonl"
    plain = re.sub(r', "crc32": \d+', "", metrics.read_text())  # as older versions wrote it
    metrics.write_text(re.sub(r'"return": [-\d.]+', '"return": NaN', plain, count=1))
    told = json.loads((folder / runs.MARKER).read_text())
    (folder / runs.MARKER).unlink()
    runs.mark(folder, told)
    page.write(tmp_path, tmp_path / "report.html")
    data = data_of(tmp_path / "report.html")
    assert [cell["N"] for cell in data["curves"][0]["cells"]] == ["32"]
    (why,) = data["skipped"]
    assert "its return is nan" in why


def test_colours_are_those_of_the_figures(written):
    _, data, _ = written
    assert [w["N"] for w in data["windows"]] == ["1", "4", "32", "adaptive", "all"]
    for window in data["windows"]:
        assert window["colour"] == palette.colour(window["N"])
        assert window["dash"] in collect.DASHES.values()


@pytest.mark.parametrize("marks", [1, 2, 50, 200, 5000])
def test_thinning_keeps_both_ends(marks):
    for early in (True, False):
        kept = cells.thin(marks, 60, early=early)
        assert len(kept) <= min(marks, 60)
        assert (kept[0], kept[-1]) == (0, marks - 1)
        assert (np.diff(kept) > 0).all()


def test_the_page_asks_for_nothing_from_elsewhere(written):
    _, _, out = written
    text = out.read_text()
    assert not re.findall(r"<(?:script|img|iframe)[^>]+src=|<link[^>]+href=\"(?!data:)", text)
    assert "{{" not in re.sub(r"<script>.*?</script>", "", text, flags=re.S)


def test_a_real_run(tmp_path):
    config = Config(
        interactions=300, window="4", points=32, steps="paper", visits="sampled", handed="last",
        marks=10,
    )  # fmt: skip
    train("EmptyRoom-3x3", config, out=tmp_path / "run")
    data = collect.collect(stored_runs.load(tmp_path)[0])
    assert data["ledgers"][0]["k"][-1] == 37
    rows = {row["term"]: row for row in data["ledgers"][0]["bounds"]}
    assert rows["shift"]["sharp_bound"] < rows["shift"]["bound"]
    assert rows["estimation"]["bound"] is None  # less than a whole trajectory an update
    assert data["rates"][0]["kind"] == "curve"


@pytest.mark.slow
def test_a_thousand_runs_are_read_in_time(tmp_path):
    first = {}
    for i in range(1000):
        N, seed = str(2 ** (i % 10)), i // 10
        env = f"understudy/EmptyRoom-{3 + seed % 4}x{3 + seed % 4}-v0"
        if N not in first:
            first[N] = store_run(tmp_path, env, N, seed, marks=100)
            continue
        folder = tmp_path / f"run{i}"
        folder.mkdir()
        for path in first[N].iterdir():
            if path.name != "config.json":
                (folder / path.name).hardlink_to(path)
        config = json.loads((first[N] / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"env": env, "seed": seed}))
    code = """
import re, sys, time
from pathlib import Path
from understudy.experiments import stored_runs
from understudy.experiments.figures import drawing
from understudy.experiments.report import page
root, begun = Path(sys.argv[1]), time.process_time()
drawing.curves(stored_runs.load(root)[0], root / "curves")
print(page.write(root, root / "report.html")["runs"], time.process_time() - begun)
# Not ru_maxrss, which a child inherits from whoever started it.
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    read, seconds, peak = done.stdout.split()
    assert read == "1000"
    assert float(seconds) < 30
    assert int(peak) < 1 << 20  # KiB
    assert (tmp_path / "report.html").stat().st_size < 10e6

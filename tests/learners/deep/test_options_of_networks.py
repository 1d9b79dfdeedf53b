"""Options of the learner with networks: those that are documented, and those that are refused."""

import dataclasses
import math
from pathlib import Path

import pytest

from understudy.core import memory
from understudy.core.errors import UserError
from understudy.learners.baselines import methods
from understudy.learners.deep import config as configs
from understudy.learners.deep import learner
from understudy.learners.deep.config import PRESETS, DeepConfig, ExpertConfig, check_deep

DOCS = Path(__file__).parent.parent.parent.parent / "docs"
WORDS = {"yes": True, "no": False, "m // N": None, "all": None,
         "one an interaction": None, "every iteration": None}  # fmt: skip


def test_the_presets_are_those_of_the_docs():
    """Every row of the table in docs/deep.md."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (DOCS / "deep.md").read_text().splitlines()
        if line.startswith("| `--")
    ]
    rows = [row for row in rows if len(row) == 3]
    differ = {
        field.name
        for field in dataclasses.fields(DeepConfig)
        if len({getattr(PRESETS[preset], field.name) for preset in ("fast", "paper")}) > 1
    }
    assert differ == {flag.strip("`-").replace("-", "_") for flag, *_ in rows}
    for flag, *told in rows:
        name = flag.strip("`-").replace("-", "_")
        for preset, text in zip(("fast", "paper"), told, strict=True):
            value = getattr(PRESETS[preset], name)
            if isinstance(value, str):
                assert text == value, flag
            elif value is None:
                assert WORDS.get(text, text) is None, flag
            else:
                shown = WORDS[text] if text in WORDS else float(text.replace(",", ""))
                assert shown == value, flag


WHOLE = ("interactions", "points", "fresh", "replay", "envs", "reward_steps", "policy_steps",
         "batch", "anchor", "hidden", "discriminator_hidden", "marks", "episodes")  # fmt: skip
LIGHT = ("reward_steps", "policy_steps", "anchor", "episodes")  # which need no memory


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_from_one(name):
    check_deep(dataclasses.replace(DeepConfig(), **{name: 1}))
    for value in (0, -1, 2**31):
        with pytest.raises(UserError, match=f"--{name.replace('_', '-')} is {value}; .* from 1 to"):
            check_deep(dataclasses.replace(DeepConfig(), **{name: value}))
    if name in LIGHT:
        check_deep(dataclasses.replace(DeepConfig(), **{name: 2**31 - 1}))


@pytest.mark.parametrize(
    ("name", "fitting", "wrong"),
    [
        ("warmup", (0, 1, 2**31 - 1), (-1, 2**31)),
        ("audition", (0, 1, 2**31 - 1), (-1, 2**31)),
        ("kl", (0.0, 5.0), (-0.1, math.inf, math.nan)),
        ("entropy", (None, 0.0), (-0.1, math.inf)),
        ("penalty", (0.0, 9.0), (-1e-9, math.nan)),
        ("penalty_centre", (0.0, 1.0), (-1.0, math.inf)),
        ("gamma", (1e-6, 0.999), (0.0, 1.0)),
        *((name, (1e-9, 1.0), (0.0, 1.001, math.nan)) for name in (
            "tau", "actor_rate", "final_rate", "critic_rate", "discriminator_rate")),
        ("demo_share", (0.0, 0.99), (-0.01, 1.0)),
        ("average", (0.0, 0.99), (-0.01, 1.0)),
    ],
)  # fmt: skip
def test_shares_and_weights_within_their_ends(name, fitting, wrong):
    for value in fitting:
        check_deep(dataclasses.replace(DeepConfig(), **{name: value}))
    for value in wrong:
        with pytest.raises(UserError, match=f"--{name.replace('_', '-')} is"):
            check_deep(dataclasses.replace(DeepConfig(), **{name: value}))


SMALL = DeepConfig(
    hidden=10,
    batch=20,
    discriminator_hidden=5,
    points=7,
    interactions=100,
    fresh=8,
    envs=2,
    marks=3,
)
# Six inputs, two layers of ten, one output: 191 weights, four times, and 20 points in 20 places;
# three such networks. Two layers of five: 71 weights, and 7 points in 10 places.
# An actor that is cloned has a layer more: 301 weights, and 20 points in 30 places.
CLONED = 3 * 4 * (4 * 301 + 20 * 30) + 4 * (4 * 71 + 7 * 10)
NETWORKS = 3 * 4 * (4 * 191 + 20 * 20) + 4 * (4 * 71 + 7 * 10)
EACH = 4 * (2 * 4 + 2) + 1  # bytes of a transition


@pytest.mark.parametrize(
    ("changes", "kept", "networks"),
    [
        ({}, 100, CLONED),
        ({"warm_start": "none"}, 100, NETWORKS),
        ({"replay": 50}, 50, CLONED),
        ({"replay": 500}, 100, CLONED),
        ({"replay": 5}, 16, CLONED),  # an iteration is kept in any case
        ({"replay": 1, "fresh": None}, 2, CLONED),
    ],
)
def test_what_a_run_needs_is_counted_byte_by_byte(changes, kept, networks, monkeypatch):
    config = dataclasses.replace(SMALL, **changes)
    needed = networks + kept * EACH + 24 * 3
    monkeypatch.setattr(memory, "machine", lambda: needed)
    configs.refuse_too_large(config, 4, 2)
    monkeypatch.setattr(memory, "machine", lambda: needed - 1)
    with pytest.raises(UserError, match="make --hidden and --batch smaller"):
        configs.refuse_too_large(config, 4, 2)


@pytest.mark.parametrize(
    ("changes", "of"),
    [
        ({"marks": 10**6}, "--marks"),
        ({"interactions": 10**6}, "--interactions, --replay, --fresh or --envs"),
        ({"points": 10**6}, "--discriminator-hidden and --points"),
    ],
)
def test_what_needs_most_is_named(changes, of, monkeypatch):
    monkeypatch.setattr(memory, "machine", lambda: 1000)
    with pytest.raises(UserError, match=f"make {of} smaller"):
        configs.refuse_too_large(dataclasses.replace(SMALL, **changes))


EXPERT = ExpertConfig(hidden=10, batch=20, interactions=100, fresh=8, marks=3)


def test_what_an_expert_needs_is_counted_byte_by_byte(monkeypatch):
    needed = 3 * 4 * (4 * 191 + 20 * 20) + 100 * EACH + 24 * 3
    monkeypatch.setattr(memory, "machine", lambda: needed)
    configs.refuse_too_large_expert(EXPERT, 4, 2)
    monkeypatch.setattr(memory, "machine", lambda: needed - 1)
    with pytest.raises(UserError, match="make --hidden and --batch smaller"):
        configs.refuse_too_large_expert(EXPERT, 4, 2)
    monkeypatch.setattr(memory, "machine", lambda: 1000)
    for changes, of in (({"marks": 10**6}, "--marks"), ({"interactions": 10**6}, "--interactions")):
        with pytest.raises(UserError, match=f"make {of}"):
            configs.refuse_too_large_expert(dataclasses.replace(EXPERT, **changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *(({name: 0}, f"--{name} is 0") for name in
          ("interactions", "batch", "hidden", "fresh", "marks", "episodes")),
        ({"episodes": 2**31}, "--episodes is"),
        ({"fresh": 101}, "it must be at most --interactions"),
        ({"explore": -1}, "--explore is -1"),
        *(({name: value}, f"--{name} is {value}") for name in ("rate", "tau", "gamma")
          for value in (0.0, 1.1)),
    ],
)  # fmt: skip
def test_experts_that_are_refused(changes, says):
    with pytest.raises(UserError, match=says):
        configs.check_expert(dataclasses.replace(EXPERT, **changes))


def test_experts_that_are_trained():
    least = {"interactions": 1, "fresh": 1, "batch": 1, "hidden": 1, "marks": 1}
    most = {"rate": 1.0, "tau": 1.0, "gamma": 1.0, "episodes": 2**31 - 1}
    for changes in ({"fresh": 100}, {"explore": 0}, least, most):
        configs.check_expert(dataclasses.replace(EXPERT, **changes))


# --- methods -------------------------------------------------------------------------------------


def test_methods_change_what_makes_them_themselves():
    """By docs/baselines.md; the rest is shared."""
    base = dataclasses.replace(SMALL, fresh=16, policy_steps=3, reward_steps=2, replay=50)
    shared = {"demo_share": 0.0, "cloning": 0.0, "noise": 0.0, "audition": 0,
              "warm_start": "none"}  # fmt: skip
    changed = {
        "mdpo": {},
        "bc": {},
        "gail": {
            "window": "1", "fresh": 512, "replay": 512, "policy_steps": 96, "reward_steps": 64,
            **shared,
        },
        "dac": {
            "window": "all", "replay": None, "absorbing": True, "reward": "logit", "kl": 0.0,
            "entropy": 0.0, **shared,
        },
        "sqil": {
            "window": "all", "replay": None, "kl": 0.0, "entropy": None, "demo_share": 0.5,
            "cloning": 0.0, "warm_start": "none",
        },
    }  # fmt: skip
    changed["iq-learn"] = changed["sqil"] | {
        "entropy": 0.01, "actor_rate": 3e-5, "critic_rate": 3e-4,
    }  # fmt: skip
    for name, options in changed.items():
        assert methods.options(name, base) == dataclasses.replace(base, **options), name
    open_ended = dataclasses.replace(base, fresh=None, policy_steps=1)
    assert methods.options("gail", open_ended).policy_steps == 64  # as with 8 an iteration
    assert [methods.options(name, open_ended).fresh for name in ("dac", "sqil")] == [8, 8]
    many = dataclasses.replace(base, fresh=2048, policy_steps=1)
    assert methods.options("gail", many).policy_steps == 1


def test_options_that_would_change_nothing_are_refused():
    for method in ("mdpo", "gail", "dac"):
        methods.check_used(method, dataclasses.replace(PRESETS["fast"], penalty=7.0))
    for method in ("sqil", "iq-learn", "bc"):
        for preset in PRESETS.values():
            methods.check_used(method, methods.options(method, preset))
        changed = dataclasses.replace(methods.options(method, PRESETS["fast"]), penalty=7.0)
        with pytest.raises(UserError, match=f"--penalty changes nothing with --method {method}"):
            methods.check_used(method, changed)
    methods.check_used("bc", dataclasses.replace(PRESETS["fast"], hidden=7, marks=3))
    methods.check_used("bc", dataclasses.replace(PRESETS["fast"], clone_depth=2, clone_most=9))


# --- made definite -------------------------------------------------------------------------------


def resolved(**options):
    given = {"interactions": 1000, "fresh": 8, "window": "4", "warm_start": "none"} | options
    return learner.resolve(DeepConfig(**given))


def test_iterations_slots_and_windows_in_numbers():
    plain = resolved()
    assert (plain.fresh, plain.K, plain.slots, plain.c, plain.alpha) == (8, 125, 125, 4, 0)
    assert plain.adaptive is None
    assert resolved(envs=3).fresh == 24
    assert resolved(envs=3).K == 41
    budget = resolved(fresh=None, points=256)
    assert (budget.fresh, budget.K) == (64, 15)
    assert resolved(fresh=None, window="k^0.5").fresh == 1
    assert resolved(replay=80).slots == 10
    assert resolved(replay=10**6).slots == 125
    assert resolved(replay=7, window="1").slots == 1
    assert resolved(interactions=8).K == 1


@pytest.mark.parametrize(
    ("options", "adaptive"),
    [
        ({"interactions": 10_001, "points": 40}, (20, 100)),  # 4 · 40 / 8, and below √10,001
        ({"interactions": 10_001, "points": 1}, (1, 100)),
        ({"interactions": 10_001, "points": 256, "replay": 400}, (50, 50)),
        ({"interactions": 10_001, "points": 256}, (128, 128)),
    ],
)
def test_the_ends_of_an_adaptive_window(options, adaptive):
    assert resolved(window=" Adaptive", **options).adaptive == adaptive


def test_what_cannot_be_made_definite_is_refused():
    with pytest.raises(UserError, match="7 interactions are less than one iteration of 8"):
        resolved(interactions=7)
    with pytest.raises(UserError, match=r"3 environments of 8 steps each"):
        resolved(interactions=20, envs=3)
    with pytest.raises(
        UserError, match="keeps 3 policies of 8 interactions, fewer than the window"
    ):
        resolved(replay=31)
    assert resolved(replay=32).slots == 4
    assert resolved(replay=31, window="all").slots == 3
    assert resolved(replay=31, window="adaptive").slots == 3
    with pytest.raises(UserError, match="--beta has 3 weights"):
        resolved(beta=(1.0, 1.0, 1.0))


def test_networks_are_as_wide_and_deep_as_asked():
    cloned = resolved(warm_start="clone", hidden=7)
    assert cloned.tuning.actor_hidden == (7, 7, 7)
    assert resolved(hidden=7).tuning.actor_hidden == (7, 7)
    assert cloned.tuning.critic_hidden == (7, 7)
    assert resolved(entropy=None).tuning.entropy == 0.05
    assert resolved(entropy=0.3).tuning.entropy == 0.3
    options = {
        "layer_norm": False, "actor_rate": 0.1, "critic_rate": 0.2, "gamma": 0.3, "tau": 0.4,
        "kl": 0.5,
    }  # fmt: skip
    tuning = resolved(**options).tuning
    told = (tuning.norm, tuning.actor_rate, tuning.critic_rate, tuning.gamma, tuning.tau, tuning.kl)
    assert told == tuple(options.values())
    given = resolved(beta=(1.0, 0.5, 0.25, 0.0))
    assert (given.beta, given.lag[:4]) == ("given", (1, 0.5, 0.25, 0))
    assert (resolved().beta, set(resolved().lag)) == ("uniform", {0.0})


def test_the_entropy_to_aim_at_is_set_only_where_it_is_tuned():
    tuned = resolved(entropy=None)
    assert learner.sized(tuned, 3, discrete=False).tuning.target_entropy == -3
    choice = learner.sized(tuned, 3, discrete=True).tuning.target_entropy
    assert choice == pytest.approx(0.3 * math.log(3))
    fixed = resolved(entropy=0.1)
    assert learner.sized(fixed, 3, discrete=False) is fixed


def test_an_expert_takes_updates_between_one_and_ten_thousand():
    for updates in (None, 1, 10_000):
        configs.check_expert(dataclasses.replace(EXPERT, updates=updates))
    for updates in (0, 10_001):
        with pytest.raises(UserError, match=f"--updates is {updates}; it must be from 1 to 10,000"):
            configs.check_expert(dataclasses.replace(EXPERT, updates=updates))

"""`understudy train` where observations are continuous: the deep learner or a baseline, its
demonstrations and its run."""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.core.precision import double
from understudy.demos import rollout, shipped
from understudy.demos.reading import has_names, read
from understudy.envs import catalog, named
from understudy.envs.given import Given, given
from understudy.experiments import console, deep_run, runs, store, trackers
from understudy.experiments.trackers import Tracker
from understudy.learners.baselines.methods import Method, check_used
from understudy.learners.deep import (
    as_method,
    asking,
    copies,
    going_on,
    learned_reward,
    learner,
    scaling,
)
from understudy.learners.deep import policy as policies
from understudy.learners.deep.absorbing import Absorbing
from understudy.learners.deep.config import DeepConfig, check_deep, refuse_too_large
from understudy.learners.deep.expert_points import expert_points
from understudy.learners.deep.learned_reward import Reward
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.rehearsal import Method as Rehearsed
from understudy.learners.deep.rehearsal import Schedule
from understudy.learners.seeds import check_seed

KIND = "networks"
# How copies of the environment are stepped; auto: in processes where a step is slow. It is no part
# of what a run is: it comes to the same.
Stepping = Literal["auto", "sync", "async"]


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to begin."""

    request: dict[str, Any]
    begin: Callable[[], Rehearsed]
    stage: deep_run.Stage
    schedule: Schedule
    expert_return: float


@double
def train(
    env: str,
    config: DeepConfig,
    *,
    method: Method = "mdpo",
    demos: str | None = None,
    trajectories: int | None = None,
    thin: int | None = None,
    keys: Sequence[str] = (),
    horizon: int | None = None,
    begin: Path | None = None,
    seed: int = 0,
    out: Path | None = None,
    checkpoint: float = deep_run.SECONDS,
    stepping: Stepping = "auto",
    track: Sequence[Tracker] = (),
    restart: bool = False,
) -> dict[str, Any]:
    """Learn, write the run's folder, and return its summary; where there is a run to `begin` with,
    as its policy in place of a clone. With `restart`, what the folder holds
    of this run is moved aside first."""
    check_deep(config)
    check_seed(seed)
    trackers.refuse_missing(track)
    ready = prepare(
        given(env, keys),
        demonstrations(env, demos, trajectories, keys),
        config,
        method=method,
        demos=demos,
        trajectories=trajectories,
        thin=thin,
        keys=keys,
        horizon=horizon,
        begin=begin,
        seed=seed,
        checkpoint=checkpoint,
        stepping=stepping,
    )
    return deep_run.in_folder(
        out,
        ready.request,
        ready.begin,
        ready.stage,
        ready.schedule,
        expert_return=ready.expert_return,
        track=track,
        restart=restart,
    )


def prepare(
    env: Given,
    shown: Demonstrations,
    config: DeepConfig,
    *,
    method: Method = "mdpo",
    demos: str | None = None,
    trajectories: int | None = None,
    thin: int | None = None,
    keys: Sequence[str] = (),
    horizon: int | None = None,
    begin: Path | None = None,
    seed: int = 0,
    checkpoint: float = deep_run.SECONDS,
    stepping: Stepping = "sync",
) -> Prepared:
    """Check all of it, and try the environment out; nothing is written or learned yet."""
    check_deep(config)
    check_used(method, config)
    check_seed(seed)
    settings = learner.resolve(config)
    begun = None if begin is None else going_on.policy(begin, method, config)
    if begun is not None:
        settings = going_on.settings(begun, settings)
    about = {"demos": demos, "trajectories": trajectories, "thin": thin, "keys": keys}
    identity = request(
        env.name, config, shown, method, **about, horizon=horizon, seed=seed, begin=begin,
        named=env.named(),
    )  # fmt: skip

    make = functools.partial(_made, env, horizon, config.absorbing)
    with contextlib.closing(make()) as world:
        if keys and not named.has_names(world) and not (demos and by_name(env.name, demos)):
            raise UserError(
                f"Neither {env.name} nor its demonstrations show anything by name; leave --keys "
                f"out."
            )
        border = scaling.of_spaces(world, env.name)
        plain = world.env if isinstance(world, Absorbing) else world
        shapes = (plain.observation_space.shape or (), plain.action_space.shape or ())
        refuse_too_large(config, border.observations, border.actions)
        scaled = config
        if begun is not None:
            border = going_on.border(begun, border, world, config)
            scaled = dataclasses.replace(config, normalise=False)  # it is already
        expert, border = expert_points(shown, world, border, scaled, env.name, thin)
        asking.try_out(world)
        alone = config.envs == 1 or method == "bc"
        processes = not alone and (
            stepping == "async" or (stepping == "auto" and copies.slow(world))
        )

    def start() -> Rehearsed:
        with console.working("beginning"):
            if method == "bc":
                return as_method.cloning_alone(expert, border, settings, seed=seed)
            learns = as_method.learner_of(method)
            actor = None if begun is None else begun.actor
            return as_method.imitation(expert, border, settings, learns, seed=seed, begun=actor)

    stage = deep_run.Stage(
        make,
        border,
        lambda actor: Policy(actor, border, env.name, *shapes, config.absorbing),
        lanes=config.envs,
        processes=processes,
        price=lambda judged: Reward(
            judged[0], border, env.name, *shapes, config.absorbing, config.reward, judged[1]
        ),
    )
    schedule = Schedule(
        0 if method == "bc" else config.interactions,
        config.marks,
        config.episodes,
        keep_best=False,
        checkpoint_seconds=checkpoint,
    )
    return Prepared(identity, start, stage, schedule, float(shown.returns.mean()))


def _made(env: Given, horizon: int | None, absorbing: bool) -> gymnasium.Env:
    world = env.make(horizon)
    return Absorbing(world) if absorbing else world


def request(
    env: str,
    config: DeepConfig,
    shown: Demonstrations,
    method: Method,
    demos: str | None,
    trajectories: int | None,
    thin: int | None,
    horizon: int | None,
    seed: int,
    keys: Sequence[str] = (),
    begin: Path | None = None,
    named: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The run's identity."""
    thinned: dict[str, Any] = {} if thin is None else {"thin": thin}
    if keys:
        thinned["keys"] = list(keys)
    options = dataclasses.asdict(config)
    if not config.task_reward:  # which younger runs alone have: the others keep their identity
        del options["task_reward"]
    return {
        "kind": KIND,
        "method": method,
        "env": env,
        "seed": seed,
        "demos": demos,
        "shown": fingerprint(*shown.observations, *shown.actions, np.array(shown.terminated)),
        "shown_rewards": fingerprint(*shown.rewards),
        "trajectories": trajectories,
        **thinned,
        **_begun(begin),
        **(named or {}),
        "horizon": horizon,
        "config": options,
    }


def _begun(begin: Path | None) -> dict[str, str]:
    """What a run's identity says of the run that it began with, if there is one."""
    if begin is None:
        return {}
    arrays = runs.tensors(begin / policies.TENSORS, "The policy")
    return {"begin": str(begin), "begun": fingerprint(*(arrays[name] for name in sorted(arrays)))}


@double
def evaluate(
    run: Path, *, episodes: int = 10, seed: int = 0, env: str | None = None
) -> dict[str, Any]:
    """The stored policy, played deterministically."""
    gained = returns(run, episodes=episodes, seed=seed, env=env)
    told = runs.summary(run)
    expert = told.get("expert_return", 0.0)
    if type(expert) not in (int, float) or not abs(expert) <= 1e15:
        raise UserError(f"{run / runs.MARKER} is not a run's: 'expert_return' is {expert!r:.60}.")
    return {
        "run": str(run),
        "env": stored(run, env)[1],
        "return": float(np.mean(gained)),
        "return_std": float(np.std(gained)),
        **{name: told[name] for name in ("expert_return",) if name in told},
        "episodes": episodes,
        "seed": seed,
    }


def returns(run: Path, *, episodes: int, seed: int, env: str | None) -> list[float]:
    """What the stored policy earns, deterministic: episode i is reset with seed + i."""
    if not 1 <= episodes <= 100_000:
        raise UserError(f"--episodes is {episodes}; it must be from 1 to 100,000.")
    check_seed(seed)
    policy, env, horizon, keys = stored(run, env)
    gained = []
    with (
        contextlib.closing(catalog.make(env, horizon=horizon, keys=keys)) as world,
        console.bar() as bar,
    ):
        for i in bar.track(range(episodes), description="episodes"):
            *_, last = rollout.follow(world, policy.predict, seed=seed + i)
            gained.append(last)
    return gained


def policy(run: Path, env: str | None = None) -> Policy:
    """A stored policy, to act with; it asks no environment."""
    return policies.load(run)


def reward(run: Path) -> Reward:
    """The reward that a stored run learned; it asks no environment."""
    if not (run / learned_reward.TENSORS).exists():
        method = store.read_json(run / "config.json", "The run's").get("method")
        raise UserError(
            f"The run {run} has no {learned_reward.TENSORS}: its method ({method!s:.40}) learns no "
            f"reward, or it has not finished, or an older version wrote it."
        )
    return learned_reward.load(run)


def stored(run: Path, env: str | None) -> tuple[Policy, str, int | None, tuple[str, ...]]:
    """A run's policy, environment and horizon, and the names of what it sees there, if only some
    of them."""
    policy = policies.load(run)
    request = store.read_json(run / "config.json", "The run's")
    env = runs.playable(run, policy.env, env)
    horizon = request.get("horizon")
    if horizon is not None and (type(horizon) is not int or not 1 <= horizon <= 10**9):
        raise UserError(f"{run / 'config.json'} has a horizon of {horizon!r}, which cannot be.")
    keys = request.get("keys", [])
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise UserError(f"{run / 'config.json'} has keys of {keys!r:.60}, which cannot be.")
    return policy, env, horizon, tuple(keys)


def demonstrations(
    env: str, demos: str | None, trajectories: int | None, keys: Sequence[str] = ()
) -> Demonstrations:
    """Those asked for, or those that we ship; `medium` is the environment's own. Of what they show
    by name, only the `keys`, if any are given."""
    shown = shipped.find(env, demos)
    if shown is None and demos is not None:
        shown = read(demos, keys if keys and has_names(demos) else ())
    if shown is None:
        raise UserError(
            f"There are no demonstrations of {env} in the package; give --demos (a .npz, a "
            f"Minari dataset), or make some with: understudy expert {env}"
        )
    if trajectories is None:
        return shown
    if not 1 <= trajectories <= len(shown):
        raise UserError(
            f"--trajectories is {trajectories}; there are {len(shown)} demonstrations of {env}."
        )
    return shown.first(trajectories)


def by_name(env: str, demos: str) -> bool:
    """Whether the demonstrations show things by name; the package's own do not."""
    return shipped.find(env, demos) is None and has_names(demos)


def fingerprint(*arrays: np.ndarray) -> str:
    """Tells two sets of demonstrations apart, whatever their file is called: a run does not go on
    with others than it began with, nor with others of their rewards."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]

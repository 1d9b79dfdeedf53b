"""`understudy train` where observations are continuous: the deep learner or a baseline, its
demonstrations and its run."""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError
from understudy.demos import rollout, shipped
from understudy.demos.reading import read
from understudy.envs import catalog
from understudy.experiments import console, runs, standing, store, trackers
from understudy.experiments import deep_run as rehearsal
from understudy.experiments.trackers import Tracker
from understudy.learners.baselines.methods import Method, check_used
from understudy.learners.deep import absorbing, acting, clone, drill, learner, scaling
from understudy.learners.deep import asking as worlds
from understudy.learners.deep import policy as policies
from understudy.learners.deep.absorbing import Absorbing
from understudy.learners.deep.actor import actor
from understudy.learners.deep.actor_critic import Transitions, transitions
from understudy.learners.deep.collect import Act
from understudy.learners.deep.config import DeepConfig, check_deep, refuse_too_large
from understudy.learners.deep.learner import Settings
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.scaling import Scaling
from understudy.learners.finite import keys_of

FAR = 1e12  # in the networks' units; some thousand times farther off, and they answer with NaN


def train(
    env: str,
    config: DeepConfig,
    *,
    method: Method = "mdpo",
    demos: str | None = None,
    trajectories: int | None = None,
    thin: int | None = None,
    horizon: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    checkpoint: float = rehearsal.SECONDS,
    track: Sequence[Tracker] = (),
    restart: bool = False,
) -> dict[str, Any]:
    """Learn, write the run's folder, and return its summary. With `restart`, what the folder holds
    of this run is moved aside first."""
    check_deep(config)
    check_used(method, config)
    trackers.refuse_missing(track)
    keys_of([seed])
    settings = learner.settle(config)
    shown = demonstrations(env, demos, trajectories)
    request = asked(env, config, shown, method, demos, trajectories, thin, horizon, seed)
    with contextlib.closing(make(env, config, horizon)) as world:
        border, plain = scaling.of_spaces(world, env), world.unwrapped
        shapes = (plain.observation_space.shape or (), plain.action_space.shape or ())
        refuse_too_large(config, border.observations, border.actions)
        expert, border = expert_points(shown, world, border, config, env, thin)
        worlds.try_out(world)

    def begin() -> rehearsal.Method:
        if method == "bc":
            ends = np.cumsum([len(rows) for rows in kept(shown, thin)])
            return cloning_alone(expert, border, settings, ends, seed=seed)
        return imitation(expert, border, settings, learner_of(method), seed=seed)

    return rehearsal.rehearse(
        out,
        request,
        begin,
        rehearsal.Stage(
            functools.partial(make, env, config, horizon),
            border,
            lambda actor: Policy(actor, border, env, *shapes, config.absorbing),
            lanes=config.envs,
        ),
        rehearsal.Schedule(
            0 if method == "bc" else config.interactions,
            config.marks,
            config.episodes,
            keep_best=False,
            checkpoint_seconds=checkpoint,
        ),
        expert_return=float(shown.returns.mean()),
        track=track,
        restart=restart,
    )


def asked(
    env: str,
    config: DeepConfig,
    shown: Demonstrations,
    method: Method,
    demos: str | None,
    trajectories: int | None,
    thin: int | None,
    horizon: int | None,
    seed: int,
) -> dict[str, Any]:
    """The run's identity."""
    thinned = {} if thin is None else {"thin": thin}
    return {
        "method": method,
        "env": env,
        "seed": seed,
        "demos": demos,
        "shown": fingerprint(*shown.observations, *shown.actions, np.array(shown.terminated)),
        standing.YOUNGER: fingerprint(*shown.rewards),
        "trajectories": trajectories,
        **thinned,
        "horizon": horizon,
        "config": dataclasses.asdict(config),
    }


def make(env: str, config: DeepConfig, horizon: int | None) -> gymnasium.Env:
    world = catalog.make(env, horizon=horizon)
    return Absorbing(world) if config.absorbing else world


def evaluate(
    run: Path, *, episodes: int = 10, seed: int = 0, env: str | None = None
) -> dict[str, Any]:
    """The stored policy, played deterministically: episode i reset with seed + i."""
    if not 1 <= episodes <= 100_000:
        raise UserError(f"--episodes is {episodes}; it must be from 1 to 100,000.")
    policy, env, horizon = stored(run, env)
    returns = []
    with contextlib.closing(catalog.make(env, horizon=horizon)) as world, console.bar() as bar:
        for i in bar.track(range(episodes), description="episodes"):
            *_, gained = rollout.follow(world, policy.predict, seed=seed + i)
            returns.append(gained)
    told = runs.summary(run)
    expert = told.get("expert_return", 0.0)
    if type(expert) not in (int, float) or not abs(expert) <= 1e15:
        raise UserError(f"{run / runs.MARKER} is not a run's: 'expert_return' is {expert!r:.60}.")
    return {
        "run": str(run),
        "env": env,
        "return": float(np.mean(returns)),
        "return_std": float(np.std(returns)),
        **{name: told[name] for name in ("expert_return",) if name in told},
        "episodes": episodes,
        "seed": seed,
    }


def stored(run: Path, env: str | None) -> tuple[Policy, str, int | None]:
    """A run's policy, environment and horizon."""
    policy = policies.load(run)
    request = store.read_json(run / "config.json", "The run's")
    env = runs.playable(run, policy.env, env)
    horizon = request.get("horizon")
    if horizon is not None and (type(horizon) is not int or not 1 <= horizon <= 10**9):
        raise UserError(f"{run / 'config.json'} has a horizon of {horizon!r}, which cannot be.")
    return policy, env, horizon


def demonstrations(env: str, demos: str | None, trajectories: int | None) -> Demonstrations:
    """Those asked for, or those that we ship."""
    if demos is None:
        found = shipped.find(env)
        if found is None:
            raise UserError(
                f"There are no demonstrations of {env} in the package; give --demos (a .npz, a "
                f"Minari dataset), or make some with: understudy expert {env}"
            )
        shown = found
    else:
        shown = read(demos)
    if trajectories is None:
        return shown
    if not 1 <= trajectories <= len(shown):
        raise UserError(
            f"--trajectories is {trajectories}; there are {len(shown)} demonstrations of {env}."
        )
    return shown.first(trajectories)


def fingerprint(*arrays: np.ndarray) -> str:
    """Tells two sets of demonstrations apart, whatever their file is called: a run does not go on
    with others than it began with, nor with others of their rewards."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def kept(shown: Demonstrations, thin: int | None) -> list[np.ndarray]:
    """The steps of each demonstration that are shown: all, or every so many from a random one on,
    as is usual since Ho & Ermon (2016)."""
    lengths = [len(actions) for actions in shown.actions]
    if thin is None:
        return [np.arange(length) for length in lengths]
    if not 1 <= thin <= min(lengths):
        raise UserError(
            f"--thin is {thin}; it must be from 1 to {min(lengths)}, the shortest demonstration."
        )
    first = np.random.default_rng(0).integers(thin, size=len(lengths))
    return [np.arange(f, length, thin) for f, length in zip(first, lengths, strict=True)]


def expert_points(
    shown: Demonstrations,
    world: gymnasium.Env,
    border: Scaling,
    config: DeepConfig,
    env: str,
    thin: int | None = None,
) -> tuple[Transitions, Scaling]:
    """The demonstrations in the networks' units, and the scaling that they set."""
    if config.absorbing:
        shown = absorbing.of_demonstrations(shown)
    rows = kept(shown, thin)
    obs, after, action = (
        np.concatenate([episode[of + i] for episode, i in zip(episodes, rows, strict=True)])
        for episodes, of in ((shown.observations, 0), (shown.observations, 1), (shown.actions, 0))
    )
    if len(action) < 2:
        raise UserError(f"The demonstrations of {env} have one step in all; give more.")
    border.check(obs, action, world, env)
    if config.normalise:
        border = scaling.standardised(border, obs, absorbing=config.absorbing)
    last = np.concatenate(
        [
            (i == len(actions) - 1) & ended
            for i, actions, ended in zip(rows, shown.actions, shown.terminated, strict=True)
        ]
    )
    points = border.obs(obs), border.encode(action), border.obs(after), last
    for name, values in zip(("observation", "action", "observation"), points[:3], strict=True):
        if not (np.abs(values) < FAR).all():
            raise UserError(
                f"The demonstrations of {env} have an {name} that is too far off for the networks "
                f"({np.abs(values).max():g} in their units); scale or bound what they show."
            )
    return Transitions(*map(jnp.asarray, points)), border


def warmed(config: DeepConfig, n: int) -> bool:
    """Whether the actor moves after so many interactions."""
    if config.warmup is not None:
        return n >= config.warmup
    return n >= (min(5_000, config.interactions / 10) if config.warm_start == "clone" else 1_000)


def learner_of(method: Method) -> Any:
    """The module of a method: its `init` and its `step`."""
    if method == "sqil":
        from understudy.learners.baselines import sqil

        return sqil
    if method == "iq-learn":
        from understudy.learners.baselines import iq_learn

        return iq_learn
    return learner  # the rest differ in options


def imitation(
    expert: Transitions, border: Scaling, settings: Settings, player: Any, *, seed: int
) -> rehearsal.Method:
    """A learner as a method of a rehearsal."""
    config = settings.config
    settings = learner.fitted(settings, border.actions, discrete=border.discrete)
    key, cloning, practising = jax.random.split(jax.random.key(seed), 3)
    state = player.init(
        settings, border.observations, border.actions, discrete=border.discrete, key=key
    )
    if config.warm_start == "clone":
        with console.working("cloning the expert"):
            actor = clone.clone(state.agent.actor, expert.obs, expert.action, key=cloning)
            state = learner.begin_with(state, jax.block_until_ready(actor))

    drilled = player is learner and learner.drilled(config)

    def act(state: Any, n: int) -> Act:
        actor = state.agent.actor
        if drilled:
            actor = drill.practising(actor, n // settings.fresh)
        return acting.sampling(actor, practising, n)

    def step(state: Any, practised: dict[str, np.ndarray], n: int) -> tuple[Any, dict[str, Any]]:
        state, info = player.step(
            state,
            transitions(practised),  # the learner never sees the environment's reward
            expert,
            settings=settings,
            moving=warmed(config, n),
        )
        return state, vars(info)

    each = settings.fresh // config.envs

    def strayed(state: Any) -> Sequence[int]:
        return drill.impatient(state.strayed) if drilled else ()

    return rehearsal.Method(state, each, act, step, lambda state: state.average, strayed)


def cloning_alone(
    expert: Transitions, border: Scaling, settings: Settings, ends: np.ndarray, *, seed: int
) -> rehearsal.Method:
    """Behavioural cloning, which is over before any practice."""
    from understudy.learners.baselines import cloning

    initialising, fitting = jax.random.split(jax.random.key(seed))
    fresh = actor(
        border.observations,
        border.actions,
        (settings.config.hidden,) * clone.DEPTH,
        discrete=border.discrete,
        key=initialising,
    )
    held_out = cloning.hold_out(ends)
    with console.working("cloning the expert"):
        fitted = cloning.cloned(fresh, expert.obs, expert.action, held_out, key=fitting)
    return rehearsal.Method(fitted, 1, _never, _never, lambda state: state)


def _never(*_: Any) -> Any:
    raise AssertionError("cloning does not practise")

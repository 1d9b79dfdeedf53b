"""`understudy expert`: train an expert by Soft Actor-Critic, and write its demonstrations."""

import contextlib
import dataclasses
import functools
import math
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from understudy.core.demonstrations import Demonstrations
from understudy.core.precision import double
from understudy.demos import minari
from understudy.envs import catalog
from understudy.experiments import deep_run
from understudy.learners.deep import acting, asking, sac, scaling
from understudy.learners.deep import checkpoint as checkpoints
from understudy.learners.deep.actor_critic import Tuning, usual_entropy
from understudy.learners.deep.collect import Act
from understudy.learners.deep.config import ExpertConfig, check_expert, refuse_too_large_expert
from understudy.learners.deep.evaluation import FIRST_SEED
from understudy.learners.deep.policy import Policy
from understudy.learners.deep.rehearsal import Method, Schedule
from understudy.learners.deep.scaling import Scaling
from understudy.learners.seeds import check_seed


@double
def expert(
    env: str,
    config: ExpertConfig,
    *,
    seed: int = 0,
    out: Path | None = None,
    checkpoint: float = deep_run.SECONDS,
    restart: bool = False,
    begin: Path | None = None,
) -> dict[str, Any]:
    """Train, write the run's folder and a Minari dataset in it, and return the summary. With
    `restart`, what the folder holds of this run is moved aside first. With `begin`, it begins with
    the networks of a checkpoint, and an empty replay."""
    check_expert(config)
    check_seed(seed)
    request = {
        "kind": "networks",
        "method": "sac",
        "env": env,
        "seed": seed,
        "config": dataclasses.asdict(config),
    }
    networks = None
    if begin is not None:
        networks = checkpoints.networks(begin)
        request["begin"] = checkpoints.checksum(networks, "")
    with contextlib.closing(catalog.make(env)) as world:
        border = scaling.of_spaces(world, env)
        shapes = (world.observation_space.shape or (), world.action_space.shape or ())
        refuse_too_large_expert(config, border.observations, border.actions)
        minari.refuse_unwritable(world)  # now, not when all is learned
        asking.try_out(world)
    return deep_run.in_folder(
        out,
        request,
        lambda: soft_actor_critic(border, config, seed=seed, networks=networks),
        deep_run.Stage(
            functools.partial(catalog.make, env),
            border,
            lambda actor: Policy(actor, border, env, *shapes),
        ),
        Schedule(
            config.interactions,
            config.marks,
            config.episodes,
            keep_best=True,
            checkpoint_seconds=checkpoint,
            enough=math.inf if config.enough is None else config.enough,
        ),
        after=functools.partial(demonstrate, env),
        restart=restart,
    )


def demonstrate(env: str, out: Path, draft: Path, played: Demonstrations) -> dict[str, Any]:
    """The policy's episodes as a Minari dataset below the run's folder, once it moves from its
    draft. Whatever else is in the dataset's folder stays."""
    stem = env.split(":")[-1].split("/")[-1]
    with contextlib.closing(catalog.make(env)) as world:
        written = minari.write(
            draft / "demos",
            f"understudy/{stem}/expert-v0",
            played,
            world,
            algorithm="Soft Actor-Critic",
            description=f"{len(played)} deterministic episodes of an expert in {env}, mean return "
            f"{played.returns.mean():.1f}.",
            seeds=range(FIRST_SEED, FIRST_SEED + len(played)),
        )
    return {"demos": str(out / written.relative_to(draft))}


def soft_actor_critic(
    border: Scaling,
    config: ExpertConfig,
    *,
    seed: int,
    networks: dict[str, np.ndarray] | None = None,
) -> Method:
    """SAC with its usual target entropy; where it has networks to begin with, these act first, and
    not chance."""
    S, A = border.observations, border.actions
    tuning = Tuning(
        actor_hidden=(config.hidden, config.hidden),
        critic_hidden=(config.hidden, config.hidden),
        norm=config.layer_norm,
        actor_rate=config.rate,
        critic_rate=config.rate,
        gamma=config.gamma,
        tau=config.tau,
        entropy=1.0,
        target_entropy=usual_entropy(A, discrete=border.discrete),
    )
    round_of = config.fresh if config.updates is None else config.updates
    state = sac.init(
        S,
        A,
        tuning,
        discrete=border.discrete,
        fresh=config.fresh,
        slots=max(1, config.interactions // config.fresh),
        key=jax.random.key(seed),
    )

    if networks is not None:
        agent = checkpoints.fill(state.agent, networks, "The networks to begin with")
        state = eqx.tree_at(lambda s: s.agent, state, agent)

    def act(state: sac.State, n: int) -> Act:
        if n >= config.explore or networks is not None:
            practised = acting.sampling(state.agent.actor, state.key, n)
        else:
            practised = acting.exploring(
                A, state.key, n, discrete=border.discrete, hold=config.hold
            )
        return lambda obs, episodes: practised(obs)

    def step(
        state: sac.State, practised: dict[str, np.ndarray], n: int
    ) -> tuple[sac.State, dict[str, Any]]:
        asking.refuse_far_reward(practised)
        updates = 0 if n < config.explore else round_of
        state, info = sac.step(
            state, sac.segment(practised), tuning=tuning, steps=updates, batch=config.batch
        )
        return state, vars(info) if updates else {}

    return Method(state, config.fresh, act, step, lambda state: state.agent.actor)

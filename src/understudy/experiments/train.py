"""`understudy train` and `understudy evaluate`: one run, its folder, and its policy."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from rich.table import Table
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from understudy import mdp as mdps
from understudy.config import Config
from understudy.demos import Demonstrations, npz
from understudy.envs import catalog
from understudy.errors import UserError
from understudy.experiments import console, store
from understudy.imitation import expert_occupancy, imitate, plan
from understudy.mdp import MDP


def train(
    env: str,
    config: Config,
    *,
    demos: Path | None,
    expert: str,
    demonstrations: int | None,
    horizon: int | None,
    seed: int,
    out: Path | None,
) -> dict[str, Any]:
    """Learn, write the run's folder, and return its document."""
    if seed < 0:
        raise UserError(f"--seed is {seed}; it must be zero or more.")
    task = catalog.find(env, horizon=horizon, seed=seed)
    shown = choose_expert(task, demos, expert, demonstrations, seed=seed)
    planned = plan(task.mdp, config)
    d_E = expert_occupancy(task.mdp, shown)
    out = out or Path("runs") / f"{task.name.replace('/', '-')}-seed{seed}"
    if task.note:
        console.err.print(f"{task.name}: {task.note}")

    with store.output_folder(out), console.bar() as bar:
        total = planned.iterations * planned.protocol.fresh
        running = bar.add_task(f"{task.name}, interactions", total=total)
        begun = time.perf_counter()
        result = imitate(
            task.mdp, d_E, config, seeds=[seed], progress=lambda n: bar.update(running, completed=n)
        )
        summary = {
            "return": float(result.returns[0, -1]),
            "expert_return": result.expert_return,
            "optimal_return": float(mdps.optimum(task.mdp, task.mdp.reward)[1]),
            "interactions": total,
            "seed": seed,
            "run": str(out),
            "seconds": round(time.perf_counter() - begun, 3),
            "env": task.name,
            "iterations": planned.iterations,
            "sigma": float(planned.settings.sigma),
            "eta": float(planned.settings.eta),
        }
        with store.whole(out / "policy.safetensors") as draft:
            save_file({"policy": result.policy[0], "reward": result.reward[0]}, draft)
        rows = [
            {"interactions": int(n), "return": float(value)}
            for n, value in zip(result.interactions, result.returns[0], strict=True)
        ]
        store.write_lines(out / "metrics.jsonl", rows)
        asked = {
            "env": task.name,
            "horizon": task.mdp.horizon,
            "seed": seed,
            "config": dataclasses.asdict(config),
        }
        store.write_json(out / "config.json", {**asked, "summary": summary})
    return summary


def choose_expert(
    task: catalog.Task, demos: Path | None, expert: str, demonstrations: int | None, *, seed: int
) -> Demonstrations | None:
    """The demonstrations to learn from; None stands for the optimal policy's exact occupancy."""
    if demos is not None and (expert != "auto" or demonstrations is not None):
        raise UserError("--demos excludes --expert and --demonstrations; the file is the expert.")
    if demonstrations is not None:
        if demonstrations < 1:
            raise UserError(f"--demonstrations is {demonstrations}; it must be at least 1.")
        return sample(task.mdp, demonstrations, seed=seed)
    if demos is not None:
        return npz.read(demos)
    if expert == "handcrafted" and task.demonstrations is None:
        raise UserError(f"There are no handcrafted demonstrations of {task.name}; use optimal.")
    return None if expert == "optimal" else task.demonstrations


def sample(mdp: MDP, episodes: int, *, seed: int) -> Demonstrations:
    """Whole episodes of the optimal policy."""
    rng = np.random.default_rng([seed, 1])
    pi = np.asarray(mdps.optimum(mdp, mdp.reward)[0])
    succ, prob, r, nu = (np.asarray(x) for x in (mdp.succ, mdp.prob, mdp.reward, mdp.nu))
    H, S, A = mdp.shape
    observations, actions, rewards = [], [], []
    for _ in range(episodes):
        s = [int(rng.choice(S, p=nu))]
        a, g = [], []
        for h in range(H):
            a.append(int(rng.choice(A, p=pi[h, s[-1]])))
            row = (h % succ.shape[0], s[-1], a[-1])
            g.append(float(r[h % r.shape[0], s[-1], a[-1]]))
            s.append(int(succ[row][rng.choice(succ.shape[-1], p=prob[row])]))
        observations.append(np.array(s))
        actions.append(np.array(a))
        rewards.append(np.array(g))
    return Demonstrations(observations, actions, rewards, [False] * episodes)


def evaluate(run: Path, *, episodes: int, seed: int) -> dict[str, Any]:
    """The stored policy: its exact value in the table, and played in the real environment."""
    if episodes < 1:
        raise UserError(f"--episodes is {episodes}; it must be at least 1.")
    asked = store.read_json(run / "config.json", "The run's")
    try:
        env, horizon = str(asked["env"]), int(asked["horizon"])
        expert_return = float(asked["summary"]["expert_return"])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{run / 'config.json'} is not a run's config: it lacks 'env'.") from None
    try:
        pi = load_file(run / "policy.safetensors")["policy"]
    except (OSError, KeyError, SafetensorError) as error:
        raise UserError(f"{run / 'policy.safetensors'} cannot be read: {error}") from None
    task = catalog.find(env, horizon=horizon, seed=seed)
    if pi.shape != task.mdp.shape:
        raise UserError(f"The policy has shape {pi.shape}, {env} has {task.mdp.shape}.")
    exact = float(mdps.value(task.mdp, jnp.asarray(pi), task.mdp.reward))
    played = play(env, pi, horizon, episodes, seed=seed)
    return {
        "run": str(run),
        "env": env,
        "return": exact,
        "expert_return": expert_return,
        "episodes": episodes,
        "sampled_return": float(played.mean()),
        "sampled_std": float(played.std()),
        "seed": seed,
    }


def play(env: str, pi: np.ndarray, horizon: int, episodes: int, *, seed: int) -> np.ndarray:
    """Returns of the stage-indexed policy in the Gymnasium environment itself."""
    world = catalog.make(env, max_episode_steps=horizon)
    rng = np.random.default_rng(seed)
    returns = np.zeros(episodes)
    with console.bar() as bar:
        for i in bar.track(range(episodes), description="episodes"):
            s, _ = world.reset(seed=seed + i)
            for h in range(horizon):
                action = int(rng.choice(pi.shape[2], p=pi[h, int(s)]))
                s, r, terminated, truncated, _ = world.step(action)
                returns[i] += float(r)
                if terminated or truncated:
                    break
    world.close()
    return returns


def summary_table(summary: dict[str, Any]) -> Table:
    """The few numbers a person wants, with the share of the expert's return."""
    t = Table(show_header=False)
    for name, value in summary.items():
        t.add_row(
            name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value)
        )
    if summary["expert_return"] > 0:  # a share of a loss would mislead
        t.add_row("return / expert", f"{summary['return'] / summary['expert_return']:.3f}")
    return t

"""One iteration of the deep learner beside the same mathematics in PyTorch eager, in one run.

    pip install torch==2.13.0        # a CPU build
    python benchmarks/deep.py        # both with all cores, then both with one thread
    python benchmarks/deep.py --seeds 1 2 4   # also: several seeds in one process, by vmap

An iteration is what `understudy train HalfCheetah-v5` does between two rounds of practice: keep a
segment, take the preset's discriminator steps (256 + 256 points, gradient penalty) and MDPO steps
(128 points; twin layer-normed critics, targets, squashed Gaussian actor, its anchor). The two are
timed in turns, and checked to compute the same: from equal weights and equal noise, one policy step
and one discriminator step must give equal weights.
"""

import argparse
import dataclasses
import functools
import itertools
import os
import statistics
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from understudy.learners.deep import actor_critic, learner
from understudy.learners.deep import discriminator as discriminators
from understudy.learners.deep.actor_critic import Transitions
from understudy.learners.deep.config import PRESETS

S, A = 17, 6  # HalfCheetah
# A fixed entropy in both, π_old renewed in both, and no terms of the warm start.
CONFIG = dataclasses.replace(
    PRESETS["fast"], entropy=0.05, warm_start="none", cloning=0.0, audition=0
)
SETTINGS = learner.resolve(CONFIG)
TUNING = SETTINGS.tuning


# --- PyTorch: the same learner, written as PyTorch users write it ------------------------------


class Net(torch.nn.Module):
    def __init__(self, sizes, norm=False):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(i, o) for i, o in itertools.pairwise(sizes)
        )
        self.norm = norm

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x)
            x = F.relu(F.layer_norm(x, x.shape[-1:]) if self.norm else x)
        return self.layers[-1](x)


def parameters(net, obs):
    mean, raw = net(obs).chunk(2, dim=-1)
    return mean, -5 + 7 * (torch.tanh(raw) + 1) / 2


def log_prob(u, mean, log_std):
    normal = torch.distributions.Normal(mean, log_std.exp()).log_prob(u)
    return (normal - 2 * (np.log(2) - u - F.softplus(-2 * u))).sum(-1)


class Torch:
    def __init__(self):
        hidden = TUNING.critic_hidden  # as of the actor, where nothing is cloned
        self.actor, self.anchor, self.average = (Net((S, *hidden, 2 * A)) for _ in range(3))
        self.critics = [Net((S + A, *hidden, 1), TUNING.norm) for _ in range(2)]
        self.targets = [Net((S + A, *hidden, 1), TUNING.norm) for _ in range(2)]
        width = (CONFIG.discriminator_hidden,) * 2
        self.judge = Net((S + A, *width, 1))
        both = [p for Q in self.critics for p in Q.parameters()]
        self.adam_actor = torch.optim.Adam(self.actor.parameters(), TUNING.actor_rate)
        self.adam_critic = torch.optim.Adam(both, TUNING.critic_rate)
        self.adam_judge = torch.optim.Adam(self.judge.parameters(), CONFIG.discriminator_rate)

    def judge_step(self, expert, agent, share):
        loss = F.softplus(-self.judge(expert)).mean() + F.softplus(self.judge(agent)).mean()
        between = (share * expert + (1 - share) * agent).requires_grad_(True)
        (slope,) = torch.autograd.grad(self.judge(between).sum(), between, create_graph=True)
        loss = loss + CONFIG.penalty * (slope**2).sum(-1).mean()
        self.adam_judge.zero_grad()
        loss.backward()
        self.adam_judge.step()

    def policy_step(self, obs, action, after, ended, reward, noise_after, noise):
        alpha = TUNING.entropy
        with torch.no_grad():
            mean, log_std = parameters(self.actor, after)
            u = mean + log_std.exp() * noise_after
            x = torch.cat([after, torch.tanh(u)], -1)
            least = torch.minimum(*(Q(x)[:, 0] for Q in self.targets))
            soft = least - alpha * log_prob(u, mean, log_std)
            y = reward + TUNING.gamma * torch.where(ended, 0.0, soft)
        x = torch.cat([obs, action], -1)
        loss = sum(((Q(x)[:, 0] - y) ** 2).mean() for Q in self.critics) / 2
        self.adam_critic.zero_grad()
        loss.backward()
        self.adam_critic.step()

        mean, log_std = parameters(self.actor, obs)
        u = mean + log_std.exp() * noise
        log = log_prob(u, mean, log_std)
        with torch.no_grad():
            old_mean, old_log_std = parameters(self.anchor, obs)
        kl = torch.distributions.kl_divergence(
            torch.distributions.Normal(mean, log_std.exp()),
            torch.distributions.Normal(old_mean, old_log_std.exp()),
        ).sum(-1)
        x = torch.cat([obs, torch.tanh(u)], -1)
        Q = torch.minimum(*(Q(x)[:, 0] for Q in self.critics))
        cost = (TUNING.kl * kl + alpha * log - Q).mean()
        self.adam_actor.zero_grad()
        cost.backward()
        self.adam_actor.step()
        with torch.no_grad():
            for slow, fast in zip(self.targets, self.critics, strict=True):
                for p, q in zip(slow.parameters(), fast.parameters(), strict=True):
                    p.lerp_(q, TUNING.tau)

    def iteration(self, replay, filled, demos, k=1_000):
        self.anchor.load_state_dict(self.actor.state_dict())
        names = ("obs", "action", "next_obs", "terminated")
        for _ in range(CONFIG.reward_steps):
            i = torch.randint(filled, (CONFIG.points,))
            j = torch.randint(len(demos["obs"]), (CONFIG.points,))
            agent = torch.cat([replay["obs"][i], replay["action"][i]], -1)
            expert = torch.cat([demos["obs"][j], demos["action"][j]], -1)
            self.judge_step(expert, agent, torch.rand(CONFIG.points, 1))
        shown = round(CONFIG.demo_share * CONFIG.batch)
        for _ in range(CONFIG.policy_steps):
            i = torch.randint(filled, (CONFIG.batch - shown,))
            j = torch.randint(len(demos["obs"]), (shown,))
            batch = [torch.cat([replay[name][i], demos[name][j]]) for name in names]
            with torch.no_grad():
                reward = self.judge(torch.cat(batch[:2], -1))[:, 0]
            noise = torch.randn(2, CONFIG.batch, A)
            self.policy_step(*batch, reward, noise[0], noise[1])
        with torch.no_grad():
            for p, q in zip(self.average.parameters(), self.actor.parameters(), strict=True):
                p.lerp_(q, 1 / (1 + CONFIG.average * k))

    def copy(self, state):
        """Take the weights of a JAX state."""

        def fill(net, layers, twin=None):
            with torch.no_grad():
                for to, layer in zip(net.layers, layers, strict=True):
                    w, b = (np.array(x if twin is None else x[twin]) for x in (layer.w, layer.b))
                    to.weight.copy_(torch.from_numpy(w.T.copy()))
                    to.bias.copy_(torch.from_numpy(b))

        fill(self.actor, state.agent.actor.net.layers)
        fill(self.anchor, state.agent.anchor.net.layers)
        for twin in range(2):
            fill(self.critics[twin], state.agent.critic.net.layers, twin)
            fill(self.targets[twin], state.agent.target.net.layers, twin)
        fill(self.judge, state.judge.net.layers)


# --- the same? -----------------------------------------------------------------------------------


def some_points(n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "obs": rng.normal(size=(n, S)).astype(np.float32),
        "action": np.tanh(rng.normal(size=(n, A))).astype(np.float32),
        "next_obs": rng.normal(size=(n, S)).astype(np.float32),
        "terminated": rng.random(n) < 0.1,
    }


def fresh_state():
    return learner.init(SETTINGS, S, A, discrete=False, key=jax.random.key(0))


def largest_difference():
    """Between the weights of the two after one policy step and one discriminator step."""
    state, other = fresh_state(), Torch()
    # Anchor apart from the actor, so that the KL has a slope.
    shaken = jax.tree.map(lambda x: x + 0.05, state.agent.anchor)
    state = eqx.tree_at(lambda s: s.agent.anchor, state, shaken)
    other.copy(state)
    b, key = some_points(CONFIG.batch), jax.random.key(3)
    reward = np.random.default_rng(1).normal(size=CONFIG.batch).astype(np.float32)
    batch = Transitions(**{name: jnp.asarray(x) for name, x in b.items()})
    looking, acting = jax.random.split(key)
    noise = [
        np.array(jax.random.normal(k, (CONFIG.batch, A), jnp.float32)) for k in (looking, acting)
    ]
    agent, _ = actor_critic.improve(state.agent, batch, jnp.asarray(reward), TUNING, key=key)
    tensors = [torch.from_numpy(b[n]) for n in ("obs", "action", "next_obs", "terminated")]
    other.policy_step(*tensors, torch.from_numpy(reward), *map(torch.from_numpy, noise))

    expert, seen = (some_points(CONFIG.points, seed)["obs"] for seed in (5, 6))
    pad = np.zeros((CONFIG.points, A), np.float32)
    x, y = np.concatenate([expert, pad], -1), np.concatenate([seen, pad], -1)
    _, probing = jax.random.split(key)
    share = np.array(jax.random.uniform(probing, (CONFIG.points, 1), jnp.float32))
    slope = jax.grad(
        lambda judge: discriminators.objective(
            judge,
            jnp.asarray(x),
            jnp.asarray(y),
            loss="logistic",
            mixup=False,
            penalty=CONFIG.penalty,
            centre=0.0,
            key=key,
        )
    )(state.judge)
    other.judge_step(*(torch.from_numpy(z) for z in (x, y, share)))

    def gap(layers, net, twin=None):
        return max(
            np.abs(np.array(l.w if twin is None else l.w[twin]).T - t.weight.detach().numpy()).max()
            for l, t in zip(layers, net.layers, strict=True)
        )

    gaps = [gap(agent.actor.net.layers, other.actor)]
    gaps += [gap(agent.critic.net.layers, other.critics[i], i) for i in range(2)]
    gaps += [gap(agent.target.net.layers, other.targets[i], i) for i in range(2)]
    slopes = max(
        np.abs(np.array(l.w).T - t.weight.grad.numpy()).max()
        for l, t in zip(slope.net.layers, other.judge.layers, strict=True)
    )
    return max(gaps), slopes


# --- how fast ------------------------------------------------------------------------------------


def jax_iteration(runs=1):
    """A function that takes one iteration, of several seeds at once if asked."""
    practised = Transitions(**{n: jnp.asarray(x) for n, x in some_points(SETTINGS.fresh).items()})
    expert = Transitions(**{n: jnp.asarray(x) for n, x in some_points(10_000, 1).items()})
    step = functools.partial(
        learner.step,
        practised=practised,
        expert=expert,
        settings=SETTINGS,
        ended=jnp.zeros(SETTINGS.fresh, bool),
    )
    state = fresh_state()
    if runs > 1:
        keys = jax.vmap(jax.random.key)(jnp.arange(runs))
        state = jax.vmap(lambda k: learner.init(SETTINGS, S, A, discrete=False, key=k))(keys)
        step = jax.jit(jax.vmap(step), donate_argnums=0)
    holder = [step(state)[0]]

    def once():
        holder[0] = step(holder[0])[0]
        jax.block_until_ready(holder[0].k)

    return once


def torch_iteration():
    replay = {n: torch.from_numpy(x) for n, x in some_points(100_000).items()}
    demos = {n: torch.from_numpy(x) for n, x in some_points(10_000, 1).items()}
    other = Torch()
    return lambda: other.iteration(replay, 50_000, demos)


def seconds(once, times=10):
    begun = time.perf_counter()
    for _ in range(times):
        once()
    return (time.perf_counter() - begun) / times


def compare(rounds=7):
    ours, theirs = jax_iteration(), torch_iteration()
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    mine, other = (statistics.median(x) * 1e3 for x in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    return mine, other, ratio


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--one-thread", action="store_true", help=argparse.SUPPRESS)
    asked.add_argument("--seeds", type=int, nargs="*", default=[])
    asked = asked.parse_args()
    if asked.one_thread:
        torch.set_num_threads(1)
        print(
            "one thread:  ours {:.1f} ms, PyTorch {:.1f} ms: {:.2f} times faster".format(*compare())
        )
        return
    weights, slopes = largest_difference()
    print(
        f"same mathematics: weights differ by {weights:.1e}, discriminator slopes by {slopes:.1e}"
    )
    assert weights < 1e-5, "the two do not compute the same"
    assert slopes < 1e-5, "the two do not compute the same"
    cores = torch.get_num_threads()
    print(
        "{} threads:   ours {:.1f} ms, PyTorch {:.1f} ms: {:.2f} times faster".format(
            cores, *compare()
        )
    )
    # XLA sizes its thread pool by the cores that it may use.
    cpu = str(min(os.sched_getaffinity(0)))
    subprocess.run(["taskset", "-c", cpu, sys.executable, __file__, "--one-thread"], check=True)
    for runs in asked.seeds:
        once = jax_iteration(runs)
        once()
        each = statistics.median(seconds(once, 5) for _ in range(3)) / runs * 1e3
        print(f"{runs} seeds in one process: {each:.1f} ms an iteration and seed")


if __name__ == "__main__":
    main()

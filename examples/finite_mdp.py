"""A finite MDP of your own, a stochastic expert, and what imitating it costs, term by term."""

import jax.numpy as jnp
import numpy as np

import understudy
from understudy.core import mdp as mdps

# A machine with five states of wear. It earns less as it wears, and then nothing. Action 0 runs it,
# action 1 repairs it, which brings it back to new and costs this step's earnings.
S, H = 5, 8


def outcomes(s, a):
    """The probability of each state that may follow, and what the step earns."""
    if a == 1:
        return [(1.0, 0, 0.0)]
    worse, earned = min(s + 1, S - 1), 1 - s / (S - 1)
    return [(0.3, s, earned), (0.7, worse, earned)]


machine = understudy.from_function(outcomes, states=S, actions=2, horizon=H, nu=np.eye(S)[0])

# A person repairs more often as wear grows, but not always: a stochastic expert. Its occupancy says
# how often it does what, at each stage; no episode has to be sampled.
repair = np.array([0.02, 0.2, 0.6, 0.9, 0.98])
person = np.broadcast_to(np.stack([1 - repair, repair], axis=-1), (H, S, 2))
expert = mdps.occupancy(machine, jnp.asarray(person))

config = understudy.Config(interactions=20_000, window="4", batch=1)  # an episode an update
result = understudy.train(machine, expert, config, seed=0)
print(f"the expert earns {result.expert_return:.3f}, the best policy of all ", end="")
print(f"{result.summary['optimal_return']:.3f}, the one learned {result.returns[-1]:.3f}")

# The theorem is about the sum over all policies on the way: AIL regret is at most the policy's
# regret plus the reward's, and the reward's is exactly the sum of the terms below it.
updates = result.summary["iterations"]
print(f"regret after {updates:,} updates, and per update:")
for term in ("ail", "policy", "reward", "optimisation", "shift", "estimation"):
    print(f"  {term:12} {result.regret[term][-1]:8.2f} {result.regret[term][-1] / updates:8.4f}")

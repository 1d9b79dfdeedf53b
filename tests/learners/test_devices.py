"""Several devices: forced ones of the host, in a process of its own, for JAX counts them once."""

import json
import os
import subprocess
import sys

import numpy as np

LEARN = """
import json, sys
import jax, numpy as np
from understudy import Config, imitate
from understudy.envs import catalog
from understudy.learners.finite import plan, pose, stack

told = {"devices": jax.device_count()}
for env, seeds in (("EmptyRoom-3x3", 6), ("RandomLinear-d4", 5)):
    task = catalog.find(env)
    config = Config(interactions=300, window="16", episodes=4, replay=True)
    done = imitate(task.linear or task.mdp, None, config, seeds=range(seeds))
    leaves = jax.tree.leaves((done.returns, done.policy, done.reward, done.regret, done.glimpse))
    told[env] = [np.asarray(x, float).ravel().tolist() for x in leaves]
    assert all(len(x) == seeds for x in (done.returns, done.policy))
print(json.dumps(told))
"""

SPREAD = """
import jax, jax.numpy as jnp
from understudy.learners import devices
x = devices.deal(jnp.arange(6.0), 6)
assert x.shape == (8,) and len(x.sharding.device_set) == 4
assert {s.data.shape for s in x.addressable_shards} == {(2,)}
keys = devices.deal(jax.random.split(jax.random.key(0), 3), 3)
assert keys.shape == (4,) and len(keys.sharding.device_set) == 4
back = devices.gather((x * 2, jnp.asarray(3)), 6)
assert back[0].tolist() == [0, 2, 4, 6, 8, 10] and int(back[1]) == 3
assert len(back[0].sharding.device_set) == 1
"""


def outcome(code: str, devices: int) -> str:
    flags = f"--xla_force_host_platform_device_count={devices}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_batch_is_dealt_out_evenly_and_comes_back():
    outcome(SPREAD, 4)


def test_four_devices_learn_what_one_learns():
    one, four = json.loads(outcome(LEARN, 1)), json.loads(outcome(LEARN, 4))
    assert (one.pop("devices"), four.pop("devices")) == (1, 4)
    for env, arrays in one.items():  # smaller batches add up in another order: the last bits
        for x, y in zip(arrays, four[env], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)

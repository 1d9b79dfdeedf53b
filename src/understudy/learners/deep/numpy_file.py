"""A policy as one Python file that needs NumPy and nothing else: the scaling, the layers, and the
weights in its last line but one."""

import base64
import io

import numpy as np

from understudy.learners.deep.plain_policy import Plain

HEAD = '''"""A policy that understudy learned. It needs NumPy and nothing else.

    from policy import act  # or whatever this file is called
    action = act(observation)  # in the environment's own units; or a batch of them
"""

import base64
import io

import numpy as np

ENV = {env}
OBSERVATION, ACTION = {observation}, {action}  # shapes


def act(observation):
    """The deterministic action at an observation, or at each of a batch."""
    seen = np.asarray(observation)
    if seen.shape != OBSERVATION and seen.shape[1:] != OBSERVATION:
        raise ValueError(f"The shape is {{seen.shape}}; it must be {{OBSERVATION}}, or a batch.")
    x = seen.reshape(-1, len(MEAN)).astype(MEAN.dtype)
    x = ((x - MEAN) / STD).astype(np.float32)
    for w, b in LAYERS[:-1]:
        x = np.maximum(x @ w + b, 0)
    w, b = LAYERS[-1]
    action = {chosen}
    action = action.reshape(-1, *ACTION)
    return action[0] if seen.shape == OBSERVATION else action


WEIGHTS = "{weights}"
with np.load(io.BytesIO(base64.b64decode(WEIGHTS))) as kept:
    MEAN, STD, LOW, HIGH = (kept[name] for name in ("mean", "std", "low", "high"))
    LAYERS = [(kept[f"w{{i}}"], kept[f"b{{i}}"]) for i in range({layers})]
'''
BOX = "np.clip(LOW + (np.tanh(x @ w + b) + 1) / 2 * (HIGH - LOW), LOW, HIGH)"
CHOICE = (
    "np.stack(np.unravel_index(np.argmax(x @ w + b, axis=-1), (HIGH - LOW + 1).astype(int)), -1)"
    " + LOW.astype(int)"
)


def source(policy: Plain) -> str:
    """The file's text. Whatever the environment is called, its name is quoted."""
    arrays = {name: getattr(policy, name) for name in ("mean", "std", "low", "high")}
    for i, (w, b) in enumerate(policy.layers):
        arrays |= {f"w{i}": w, f"b{i}": b}
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    return HEAD.format(
        env=ascii(policy.env),
        observation=policy.observation_shape,
        action=policy.action_shape,
        chosen=CHOICE if policy.discrete else BOX,
        weights=base64.b64encode(packed.getvalue()).decode(),
        layers=len(policy.layers),
    )

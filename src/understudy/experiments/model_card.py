"""The card of a model, as Hugging Face reads it: data between two lines of dashes, then a page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.experiments import command_line
from understudy.experiments.figures.averages import mean_interval
from understudy.learners.baselines.methods import TITLES
from understudy.learners.deep.policy import Policy

TAGS = ("reinforcement-learning", "imitation-learning", "gymnasium", "jax")
UNKNOWN = "unknown"  # Hugging Face's word for a licence that nobody chose


@dataclass(frozen=True)
class Told:
    """What a card tells of a run."""

    request: Mapping[str, Any]
    summary: Mapping[str, Any]
    policy: Policy
    returns: list[float]  # of episodes that were played for it
    seed: int  # of the first of them
    versions: Mapping[str, str]
    files: tuple[str, ...]  # beside the card
    license: str = UNKNOWN


def text(told: Told) -> str:
    """The whole file. Every value of its head is JSON, which YAML reads."""
    return "\n".join(["---", *_head(told), "---", "", *_page(told), ""])


def _head(told: Told) -> list[str]:
    env, returns = told.policy.env, np.array(told.returns)
    task = {"type": TAGS[0], "name": TAGS[0]}
    value = f"{returns.mean():.2f} +/- {returns.std():.2f}"
    metric = {"type": "mean_reward", "name": "mean_reward", "value": value, "verified": False}
    result = {"task": task, "dataset": {"name": env, "type": env}, "metrics": [metric]}
    head = {
        "license": told.license,
        "library_name": "understudy",
        "pipeline_tag": TAGS[0],
        "tags": [env, *TAGS],
        "model-index": [{"name": _name(told), "results": [result]}],
    }
    return [f"{key}: {json.dumps(value)}" for key, value in head.items()]


def _name(told: Told) -> str:
    return f"{told.policy.env} by {TITLES[told.request['method']]}"


def _page(told: Told) -> list[str]:
    request, env = told.request, told.policy.env
    return [
        f"# {_code(env)} by {TITLES[request['method']]}",
        "",
        "A policy that learned by watching an expert, made with understudy.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in _facts(told).items()),
        "",
        "## What it earns",
        "",
        *_earned(told),
        "",
        "## How it was made",
        "",
        *_made(told),
        "",
        "With " + ", ".join(f"{name} {_code(v)}" for name, v in told.versions.items()) + ".",
        "",
        "## How to use it",
        "",
        *_use(told),
        "",
        "## Licence",
        "",
        _licence(told.license),
    ]


def _facts(told: Told) -> dict[str, str]:
    request, policy = told.request, told.policy
    shown = request.get("trajectories")
    count = "all of them" if shown is None else f"the first {shown}"
    thin = request.get("thin")
    thinned = "" if thin is None else f", every {thin} steps"
    source, begun = request.get("demos"), request.get("begin")
    named = "those that understudy has of it, or those given in Python" if source is None else ""
    return {
        "task": f"{_code(policy.env)}, observations {policy.observation_shape}, "
        f"{'a choice' if policy.scaling.discrete else 'actions'} {policy.action_shape}",
        "data": f"demonstrations: {named or _code(str(source))}, {count}{thinned}; fingerprint "
        f"{_code(str(request.get('shown')))}",
        "practice": f"{told.summary['interactions']:,} interactions, seed {request['seed']}",
        **({} if begun is None else {"begun as": f"the policy of {_code(str(begun))}"}),
        "the task's own reward": _task_reward(request["config"].get("task_reward", 0.0)),
    }


def _task_reward(share: float) -> str:
    return "not learned from" if not share else f"{share:g} of what it was paid"


def _earned(told: Told) -> list[str]:
    returns = np.array(told.returns)
    low, high = mean_interval(returns)
    rows = {
        "episodes": f"{len(returns)}, deterministic, reset with {told.seed} and on",
        "mean return": f"{returns.mean():.2f}",
        "95 % interval of the mean (bootstrap over episodes)": f"{low:.2f} to {high:.2f}",
        "standard deviation": f"{returns.std():.2f}",
        "worst and best": f"{returns.min():.2f}, {returns.max():.2f}",
        "the demonstrations' mean return": f"{told.summary['expert_return']:.2f}",
    }
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items()), "",
            "The interval is of this one policy's episodes; another seed of learning is another "
            "policy."]  # fmt: skip


def _made(told: Told) -> list[str]:
    if "given" in told.request:
        return ["In Python, with an environment that was given as an object."]
    return ["```sh", command_line.train(told.request), "```"]


def _use(told: Told) -> list[str]:
    lines = ["```python", "import understudy", "", 'policy = understudy.load_policy(".")',
             "action, state = policy.predict(observation)", "```"]  # fmt: skip
    if "policy.py" in told.files:
        lines += ["", "With NumPy alone: `from policy import act`, then `act(observation)`."]
    if "policy.onnx" in told.files:
        lines += ["", "`policy.onnx` takes a batch named `observation` and answers `action`, both "
                  "in the environment's own units."]  # fmt: skip
    if "reward.safetensors" in told.files:
        lines += ["", 'The reward that it learned: `understudy.load_reward(".")`.']
    return lines


def _licence(name: str) -> str:
    if name == UNKNOWN:
        return "Nobody chose one yet."
    return f"The policy: {_code(name)}."


def _code(words: str) -> str:
    """Somebody's words, shown as they are: no mark-up, no cell's end."""
    return f"`{words.replace('`', ' ').replace('|', ' ')}`"

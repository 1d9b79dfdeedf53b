"""Policies that Stable-Baselines3 saved (`model.save("expert.zip")`), without unpickling anything.

Its own `load` unpickles what is in the file, which may run code. Of the archive we read the JSON,
for the kind and the size of the networks, and the weights, by PyTorch's reader that builds tensors
and nothing else; the spaces are the environment's. So policies with networks of one's own, and
SBX's, whose weights are pickled, are not read: load those in Python, and hand the model to
`recording.predicting`.
"""

import importlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import gymnasium

from understudy.core import extras, files
from understudy.core.errors import UserError
from understudy.demos.recording import Predicts

# By the module that the file names: the class of it that we build.
KINDS = {
    "stable_baselines3.common.policies": "ActorCriticPolicy",  # PPO, A2C
    "stable_baselines3.sac.policies": "SACPolicy",
    "stable_baselines3.td3.policies": "TD3Policy",  # and DDPG
    "stable_baselines3.dqn.policies": "DQNPolicy",
}
ACTIVATIONS = ("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU", "Mish", "Sigmoid", "Identity")
PLAIN = ("net_arch", "use_sde", "log_std_init", "full_std", "use_expln", "squash_output",
         "n_critics", "share_features_extractor", "normalize_images", "ortho_init",
         "clip_mean")  # fmt: skip
ADVICE = "load it in Python yourself and record with understudy.record (docs/demonstrations.md)"


def load(path: str | Path, world: gymnasium.Env) -> Predicts:
    """The policy in a `.zip`, for the spaces of `world`."""
    path = Path(path)
    try:
        files.regular(path)
    except FileNotFoundError:
        raise UserError(f"The policy {path} does not exist.") from None
    torch, build = _library()
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("data"))
            kind = about["policy_class"].get("__module__", "")
            if kind not in KINDS:
                raise UserError(f"{path} holds a policy of {kind or 'an unknown kind'}; {ADVICE}.")
            options = _options(about.get("policy_kwargs") or {}, torch, path)
            with archive.open("policy.pth") as file:
                weights = torch.load(file, map_location="cpu", weights_only=True)
        policy = build(kind, KINDS[kind])(
            world.observation_space, world.action_space, lambda _: 0.0, **options
        )
        policy.load_state_dict(weights)
    except UserError:
        raise
    except Exception as error:  # zip, JSON, PyTorch: whatever is wrong with the file
        reason = str(error).splitlines()[0].rstrip(".:") if str(error) else type(error).__name__
        raise UserError(
            f"The policy {path} cannot be read for {world.spec.id if world.spec else world}: "
            f"{reason}."
        ) from None
    policy.set_training_mode(False)
    return policy


def _library() -> tuple[Any, Any]:
    extras.refuse_missing("A policy of Stable-Baselines3", "torch", "stable_baselines3")
    torch = importlib.import_module("torch")
    return torch, lambda module, name: getattr(importlib.import_module(module), name)


def _options(stored: dict[str, Any], torch: Any, path: Path) -> dict[str, Any]:
    """The policy's options that change its networks; of a class, only a name that we know."""
    options = {name: stored[name] for name in PLAIN if name in stored}
    if "features_extractor_class" in stored:
        raise UserError(f"{path} has a features extractor of its own; {ADVICE}.")
    if activation := stored.get("activation_fn"):
        found = re.fullmatch(r"<class 'torch\.nn\.modules\.activation\.(\w+)'>", str(activation))
        if found is None or found[1] not in ACTIVATIONS:
            raise UserError(f"{path} has the activation {activation}; {ADVICE}.")
        options["activation_fn"] = getattr(torch.nn, found[1])
    return options

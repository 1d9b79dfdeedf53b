"""Packages that not everybody needs: which extra has each, and one sentence where it is missing."""

import importlib.util

from understudy.core.errors import UserError

EXTRAS = {  # by the name that is imported
    "PIL": "video",
    "fsspec": "ray",
    "h5py": "minari",
    "imageio_ffmpeg": "video",
    "matplotlib": "plots",
    "minari": "minari",
    "minigrid": "minigrid",
    "mujoco": "mujoco",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "optuna": "tune",
    "plotly": "plots",
    "pyarrow": "arrow",
    "pygame": "minigrid",
    "ray": "ray",
    "sqlalchemy": "tune",
    "stable_baselines3": "sb3",
    "tensorboard": "tensorboard",
    "torch": "sb3",
    "wandb": "wandb",
    "Box2D": "box2d",
}


def sentence(module: str, what: str = "This") -> str:
    """What is missing, and the command that adds it."""
    extra = EXTRAS[module]
    return f"{what} needs {module}, which is missing; add it: pip install 'understudy[{extra}]'"


def refuse_missing(what: str, *modules: str) -> None:
    """Before any work is spent."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise UserError(sentence(module, what))


def explained(error: ModuleNotFoundError) -> UserError | None:
    """The sentence for an import that failed, where the package is one of an extra."""
    module = (error.name or "").partition(".")[0]
    return UserError(sentence(module)) if module in EXTRAS else None

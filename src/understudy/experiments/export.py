"""`understudy export`: a policy for where understudy is not: as ONNX, as a file of NumPy, as a
folder for Hugging Face. What is written has answered as `predict` does; nothing is uploaded."""

import contextlib
import os
import re
import runpy
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from understudy.core.errors import UserError
from understudy.experiments import command_line, kinds, model_card, run_files, runs, store
from understudy.experiments import train_networks as networks
from understudy.experiments.model_card import Told
from understudy.learners.baselines.methods import TITLES
from understudy.learners.deep import learned_reward, numpy_file, onnx_file, plain_policy
from understudy.learners.deep import policy as policies
from understudy.learners.deep.policy import Policy

CARD, ONNX, NUMPY = "README.md", "policy.onnx", "policy.py"
TAKEN = (run_files.METRICS, policies.JSON, policies.TENSORS, learned_reward.TENSORS)


def export(
    run: Path,
    *,
    onnx: Path | None = None,
    numpy: Path | None = None,
    to_hub: Path | None = None,
    license: str = model_card.UNKNOWN,
    episodes: int = 20,
    seed: int = 0,
    env: str | None = None,
) -> dict[str, Any]:
    """Write what is asked for, and say how far each file's answers are from the policy's own."""
    wanted = [path for path in (onnx, numpy, to_hub) if path is not None]
    if not wanted:
        raise UserError(
            "There is nothing to export; give --onnx FILE, --numpy FILE or --to-hub FOLDER."
        )
    for path in wanted:
        _refuse_taken(path, folder=path is to_hub)
    if not re.fullmatch(r"[\w.+-]{1,60}", license):
        raise UserError(f"--license is {license!r:.80}; give an identifier, such as mit.")
    if onnx is not None or to_hub is not None:
        onnx_file.refuse_missing()
    if (kind := kinds.of_run(run)) is not kinds.NETWORKS:
        raise UserError(
            f"The run {run} is one with {kind.name}; those with networks are exported. Its policy "
            f"is an array in policy.safetensors already."
        )
    policy = policies.load(run)
    told: dict[str, Any] = {"run": str(run)}
    if onnx is not None:
        told["onnx"] = _file(onnx, policy, write_onnx)
    if numpy is not None:
        told["numpy"] = _file(numpy, policy, write_numpy)
    if to_hub is not None:
        told["hub"] = hub(run, policy, to_hub, license, episodes, seed, env)
    return told


def write_onnx(path: Path, policy: Policy) -> float:
    made = plain_policy.plain(policy)
    onnx_file.write(path, made)
    return plain_policy.refuse_apart(policy, onnx_file.acting(path, made), "The ONNX file")


def write_numpy(path: Path, policy: Policy) -> float:
    path.write_text(numpy_file.source(plain_policy.plain(policy)), encoding="utf-8")
    return plain_policy.refuse_apart(policy, runpy.run_path(str(path))["act"], "The NumPy file")


def _refuse_taken(path: Path, *, folder: bool) -> None:
    """Nobody's file is replaced; an empty folder is as good as none."""
    empty = folder and path.is_dir() and not any(path.iterdir())
    if os.path.lexists(path) and not empty:
        raise UserError(f"{path} is there already; choose another name.")


def _file(path: Path, policy: Policy, write: Any) -> dict[str, Any]:
    """A file that is checked before it takes its name."""
    with store.output_folder(path.parent), store.room_for(path.parent), store.whole(path) as draft:
        apart = write(draft, policy)
    return {"out": str(path), "apart": apart, "observations": plain_policy.OBSERVATIONS}


# --- for Hugging Face ----------------------------------------------------------------------------


def hub(
    run: Path, policy: Policy, out: Path, license: str, episodes: int, seed: int, env: str | None
) -> dict[str, Any]:
    """A folder ready to upload: the run as `load_policy`, `evaluate` and `watch` read it, its
    policy in both other forms, and its card."""
    summary = runs.summary(run)
    request = without_paths(store.read_json(run / run_files.CONFIG, "The run's"))
    if request.get("method") not in TITLES:
        raise UserError(
            f"The run {run} is an expert's, which imitates nobody, and has no card; export it with "
            f"--onnx or --numpy."
        )
    returns = networks.returns(run, episodes=episodes, seed=seed, env=env)
    with _folder(out) as draft:
        apart = {ONNX: write_onnx(draft / ONNX, policy), NUMPY: write_numpy(draft / NUMPY, policy)}
        for name in TAKEN:
            if (run / name).exists():
                shutil.copyfile(run / name, draft / name)
        store.write_json(draft / run_files.CONFIG, request)
        named = {"begun_as": request["begin"]} if "begin" in request else {}
        runs.mark(draft, {**summary, **named, "run": run.resolve().name})
        told = Told(
            request=request,
            summary=summary,
            policy=policy,
            returns=returns,
            seed=seed,
            versions=runs.versions_of(run),
            files=tuple(path.name for path in draft.iterdir()),
            license=license,
        )
        (draft / CARD).write_text(model_card.text(told), encoding="utf-8")
        names = sorted(path.name for path in draft.iterdir())
    return {"out": str(out), "files": names, "apart": max(apart.values()), "returns": returns}


def without_paths(request: Mapping[str, Any]) -> dict[str, Any]:
    """A run's config with the names of what it was given, but not where that was."""
    given = {name: request[name] for name in command_line.PATHS if request.get(name) is not None}
    return {**request, **{name: Path(str(path)).name for name, path in given.items()}}


@contextlib.contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A folder that appears whole, or not at all."""
    with store.output_folder(out.parent), store.room_for(out.parent):
        draft = out.with_name(f".{os.getpid()}.{out.name}")
        draft.mkdir()
        try:
            yield draft
            if out.is_dir():  # an empty one gives way
                out.rmdir()
            draft.replace(out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

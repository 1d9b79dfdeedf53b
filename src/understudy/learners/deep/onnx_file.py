"""A policy in the Open Neural Network Exchange, its scaling inside: `observation` in, a batch of
them in the environment's own units, and `action` out."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import extras
from understudy.learners.deep.plain_policy import Plain

OPSET, IR = 17, 8  # of 2022: what has been deployed since then reads it


def refuse_missing() -> None:
    """Before any work is spent."""
    extras.refuse_missing("An ONNX file", "onnx", "onnxruntime")


def model(policy: Plain) -> Any:
    """The graph, checked."""
    onnx = importlib.import_module("onnx")
    helper, held = onnx.helper, onnx.numpy_helper
    nodes, constants = [], []

    def kind(of: Any) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(of))

    def node(does: str, *inputs: str, out: str, **options: Any) -> str:
        nodes.append(helper.make_node(does, inputs, [out], name=out, **options))
        return out

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(held.from_array(np.ascontiguousarray(value), name))
        return name

    x = node("Flatten", "observation", out="flat", axis=1)
    x = node("Sub", x, constant("mean", policy.mean), out="centred")
    x = node("Div", x, constant("std", policy.std), out="standardised")
    if policy.seen is np.float64:
        x = node("Cast", x, out="rounded", to=kind(np.float32))
    for i, (w, b) in enumerate(policy.layers):
        if i:
            x = node("Relu", x, out=f"hidden{i}")
        x = node("Gemm", x, constant(f"w{i}", w), constant(f"b{i}", b), out=f"layer{i}")
    if policy.discrete:
        # One place in the list of all combinations; of several choices the last turns fastest.
        x, out = node("ArgMax", x, out="place", axis=1, keepdims=1), np.int64
        counts = (policy.high - policy.low + 1).astype(np.int64)
        each = np.cumprod(np.append(1, counts[:0:-1]))[::-1].copy()
        x = node("Div", x, constant("each", each), out="turned")
        x = node("Mod", x, constant("counts", counts), out="number")
        x = node("Add", x, constant("first", policy.low.astype(np.int64)), out="chosen")
    else:
        x, out = node("Tanh", x, out="squashed"), policy.low.dtype
        if out == np.float64:
            x = node("Cast", x, out="wide", to=kind(out))
        half = ((policy.high - policy.low) / 2).astype(out)
        x = node("Add", x, constant("one", np.ones(1, out)), out="lifted")
        x = node("Mul", x, constant("half", half), out="stretched")
        x = node("Add", x, constant("low", policy.low), out="moved")
        x = node("Max", x, "low", out="above")
        x = node("Min", x, constant("high", policy.high), out="within")
    shape = constant("shape", np.array([-1, *policy.action_shape], np.int64))
    node("Reshape", x, shape, out="action")
    graph = helper.make_graph(
        nodes,
        "policy",
        [
            helper.make_tensor_value_info(
                "observation", kind(policy.seen), ["batch", *policy.observation_shape]
            )
        ],
        [helper.make_tensor_value_info("action", kind(out), ["batch", *policy.action_shape])],
        constants,
    )
    made = helper.make_model(
        graph, producer_name="understudy", opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR, doc_string=f"A policy of {policy.env}, deterministic.",
    )  # fmt: skip
    onnx.checker.check_model(made, full_check=True)
    return made


def write(path: Path, policy: Plain) -> None:
    path.write_bytes(model(policy).SerializeToString(deterministic=True))


def acting(path: Path, policy: Plain) -> Callable[[np.ndarray], np.ndarray]:
    """What the file answers, by onnxruntime."""
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda seen: session.run(["action"], {"observation": seen.astype(policy.seen)})[0]

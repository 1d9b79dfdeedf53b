"""Columns of Arrow as arrays: PyArrow alone, with nothing of Hugging Face's on top."""

from typing import Any

import numpy as np

from understudy.core import extras


def pyarrow(what: str) -> Any:
    """PyArrow, with the parts of it that are read and written; or a sentence for `what` needs
    it."""
    extras.refuse_missing(what, "pyarrow")
    import pyarrow
    import pyarrow.ipc

    return pyarrow


def dense(row: Any) -> np.ndarray:
    """Lists of lists of numbers, all as long as each other, as an array."""
    shape = [len(row)]
    while hasattr(row, "flatten") and hasattr(row.type, "value_type"):
        inner = row.flatten()
        if shape[-1] == 0 or len(inner) % len(row) or row.null_count:
            raise ValueError("its episodes are ragged")
        each = len(inner) // len(row)
        if any(length != each for length in row.value_lengths().to_pylist()):
            raise ValueError("its episodes are ragged")
        shape.append(each)
        row = inner
    if row.null_count:
        raise ValueError("it has empty values")
    values = row.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"it has values of type {row.type} in place of numbers")
    return values.reshape(shape)

"""Numbers of Arrow arrays as NumPy arrays and back. PyArrow's own functions import pandas, if it is installed.

That takes most of a second and 50 MB, where a question may take neither.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers without NULL."""
    if column.null_count:
        raise pa.ArrowInvalid("A column of numbers has NULL in it.")
    if isinstance(column, pa.Array):
        return stored(column)
    chunks = [stored(chunk) for chunk in column.chunks]
    return chunks[0] if len(chunks) == 1 else np.concatenate([stored(pa.nulls(0, column.type)), *chunks])


def stored(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an array, and anything in the places of NULL."""
    kind, (_, held) = array.type.to_pandas_dtype(), array.buffers()
    if held is None or not len(array):
        return np.empty(0, dtype=kind)
    return np.frombuffer(held, dtype=kind)[array.offset : array.offset + len(array)]


def is_known(array: pa.Array) -> NDArray[np.bool_]:
    """Return which values of an array are not NULL."""
    mask = array.buffers()[0]
    if mask is None or not array.null_count:
        return np.full(len(array), array.null_count == 0)
    bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(bool)


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array; only if they are texts, or NULL is among them, as PyArrow makes it."""
    if pa.types.is_string(kind) or None in values:
        return pa.array(values, kind)
    return _held(np.array(values, dtype=kind.to_pandas_dtype()))


def table_of(**columns: NDArray[Any] | pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return a table of columns, of which NumPy's are not copied."""
    arrays = [_held(one) if isinstance(one, np.ndarray) else one for one in columns.values()]
    return pa.Table.from_arrays(arrays, names=[*columns])


def _held(values: NDArray[Any]) -> pa.Array:
    exact = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(exact.dtype), len(exact), [None, pa.py_buffer(exact)])

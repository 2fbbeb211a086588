"""Column: what one array says about each person, whatever library it comes from.

Whether values may be missing, and whether they are whole, is a property of the array's type, which is public: integers
and booleans of NumPy (or pandas over NumPy) cannot be missing, everything else can. A list or an array of objects has
no type of its own: what its values happen to be decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discretion.errors import InvalidDeclaration
from discretion.preference import Integers
from discretion.statistics import Aggregate


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """One value per person. Private."""

    present: NDArray[np.bool_]  # whether the person has a value (or, for a condition, whether it holds)
    group: Integers
    values: NDArray[Any]  # 0 where not present
    nullable: bool = True  # by type, not by content
    whole: bool = False  # by type: integers

    def __len__(self) -> int:
        return len(self.present)

    def __repr__(self) -> str:
        return f"Column(people={len(self)}, private)"

    def filled(self) -> "Column":
        """Everybody has a value: a missing one is 0, which the bounds clamp."""
        return replace(self, present=np.ones(len(self), dtype=bool), nullable=False)

    def steps(self, aggregate: Aggregate) -> Integers:
        """Each value as a grid step: clamped first, so that nothing overflows."""
        low, high = float(aggregate.value(aggregate.lower)), float(aggregate.value(aggregate.upper))
        clamped = np.clip(self.values.astype(np.float64), low, high)
        steps = np.rint((clamped - float(aggregate.origin)) / float(aggregate.step)).astype(np.int64)
        return np.clip(steps, aggregate.lower, aggregate.upper)


def numbers(values: Any) -> Column:
    """A column of numbers; missing, NaN and infinite ones are not present."""
    array, nullable = _array(values)
    whole = _is_typed(values) and (pa.types.is_integer(array.type) or pa.types.is_boolean(array.type))
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_boolean(array.type)):
        array = _cast(array, pa.float64())
    present = ~np.asarray(array.is_null()) | (not nullable)
    plain = _plain(array)
    if plain.dtype.kind == "f":
        present &= np.isfinite(plain)
        plain = np.where(present, plain, 0)
    return Column(
        present=present,
        group=np.zeros(len(present), dtype=np.int64),
        values=plain,
        nullable=nullable or plain.dtype.kind == "f",
        whole=whole,
    )


def bits(condition: Any) -> Column:
    """A column that is present where the condition holds."""
    column = numbers(condition)
    return replace(column, present=column.present & (column.values != 0), nullable=True)


def categories_of(values: Any, categories: Sequence[Any]) -> Column:
    """A column whose group is the category's number; other values are not present.

    Missing is no category: where presence is protected, it is an absence, which must count nowhere.
    """
    array, _ = _array(values)
    if pa.types.is_dictionary(array.type):  # a categorical type
        array = array.dictionary_decode()
    try:
        kind = None if pa.types.is_null(array.type) else array.type
        known = pa.array(list(categories), type=kind, from_pandas=True)
        array = array.cast(known.type)  # changes nothing, unless nobody has a value
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InvalidDeclaration(f"categories must be of the values' type, {array.type}.") from None
    if known.null_count:
        raise InvalidDeclaration("categories must be values that people can have, not None or NaN.")
    found = pc.index_in(array, value_set=known)
    present = ~np.asarray(found.is_null())
    group = np.asarray(pc.fill_null(found, 0)).astype(np.int64)
    return Column(present=present, group=group, values=np.zeros(len(present)))


def _array(values: Any) -> tuple[Any, bool]:
    """Any one-dimensional column as an Arrow array, and whether its type has missing values."""
    if hasattr(values, "to_arrow"):  # Polars
        values = values.to_arrow()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values, True
    dtype = getattr(values, "dtype", None)
    nullable = not (isinstance(dtype, np.dtype) and dtype.kind in "iub") or isinstance(values, np.ma.MaskedArray)
    if np.ndim(values) != 1:
        raise InvalidDeclaration(f"There must be one value per person, got {np.ndim(values)} dimensions.")
    try:
        return pa.array(values, from_pandas=True), nullable
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        if not all(value is None or isinstance(value, Real) for value in values):
            raise InvalidDeclaration("Values must all be of one type.") from None
        return pa.array(map(_double, values), pa.float64(), from_pandas=True), nullable


def _double(value: Any) -> float | None:
    """Python's own numbers may be of any size and mixed: which there are is data, and no reason to refuse."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _is_typed(values: Any) -> bool:
    dtype = getattr(values, "dtype", None)
    return isinstance(values, pa.Array | pa.ChunkedArray) or (dtype is not None and str(dtype) != "object")


def _cast(array: Any, target: Any) -> Any:
    """By type alone: whether text happens to spell numbers is data."""
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not (pa.types.is_null(array.type) or pa.types.is_primitive(array.type) or pa.types.is_decimal(array.type)):
            raise NotImplementedError
        return array.cast(target, safe=False)
    except (pa.ArrowException, NotImplementedError):
        raise InvalidDeclaration(f"Values must be numbers, got {array.type}.") from None


def _plain(array: Any) -> NDArray[Any]:
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0).cast(array.type))
    return np.asarray(array.to_numpy(zero_copy_only=False))

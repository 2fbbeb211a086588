"""Arrays as an engine: columns of any library become whole numbers by group and cohort.

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

from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.noise import Floats, Rng
from discretion.preference import Integers
from discretion.statistics import Aggregate, Measure, Request, Statistics


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayColumn:
    """One value per person. Private."""

    present: NDArray[np.bool_]  # whether the person has a value (or, for a condition, whether it holds)
    group: Integers | None = None  # None: one group
    values: NDArray[Any]  # 0 where not present
    nullable: bool = True  # by type, not by content
    whole: bool = False  # by type: integers
    required: bool = False  # everybody counts: a missing value is the bound nearest 0

    def __len__(self) -> int:
        return len(self.present)

    def __repr__(self) -> str:
        return f"ArrayColumn(people={len(self)}, private)"

    def filled(self) -> "ArrayColumn":
        """Return the same column for a question in which everybody has a value."""
        return replace(self, required=True, nullable=False)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Return who counts."""
        return np.ones(len(self), dtype=bool) if self.required else self.present

    def steps(self, aggregate: Aggregate) -> Integers:
        """Return each value as a grid step; for somebody without a value, the step of 0.

        It is the arithmetic of `engines.column`, operation by operation, so that SQL over the same values gives the
        same whole numbers.
        """
        values = np.asarray(self.values, dtype=np.float64)
        low, high = float(aggregate.value(aggregate.lower)), float(aggregate.value(aggregate.upper))
        moved = np.clip(values, low, high)  # first, so that nothing overflows
        if aggregate.origin:
            moved -= float(aggregate.origin)
        if aggregate.step.numerator != 1:
            moved /= float(aggregate.step)
        elif aggregate.step != 1:
            moved *= float(aggregate.step.denominator)
        steps = _rounded(moved).astype(np.int64)
        if max(-low, high, abs(float(aggregate.origin))) >= 2**43 * float(aggregate.step):  # doubles may be wider apart
            steps = np.clip(steps, aggregate.lower, aggregate.upper)
            steps = np.where(values < low, aggregate.lower, np.where(values > high, aggregate.upper, steps))
        if self.required:
            np.copyto(steps, aggregate.nearest(0), where=~self.present)
        return steps


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayRows:
    """Says which rows a request is about: what goes into `Request.source`."""

    column: ArrayColumn
    cohort: Integers  # of each person, by its place in the specification
    cohorts: int


def compute(request: Request[ArrayRows], rng: Rng = None) -> tuple[Statistics, ...]:
    """Return the statistics for every measure of a request, whose source is an `ArrayRows`."""
    return tuple(_statistics(measure, request.source, rng) for measure in request.measures)


def _statistics(measure: Measure, rows: ArrayRows, rng: Rng) -> Statistics:
    aggregate, column = measure.aggregate, rows.column
    used = column.counted
    if measure.inclusion is not None:  # every measure tosses coins of its own: losses add up for independent ones only
        used = used & noise.keep(noise.coins(len(column), rng), measure.inclusion, rows.cohort)
    cell = rows.cohort if column.group is None else column.group * rows.cohorts + rows.cohort
    everybody = bool(used.all())
    cell = cell if everybody else cell[used]
    shape = (aggregate.groups, rows.cohorts)
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    if aggregate.kind in ("count", "people"):
        return Statistics(counts=counts)
    steps = column.steps(aggregate)
    steps = steps if everybody else steps[used]
    if measure.histogram:
        values = aggregate.upper - aggregate.lower + 1
        by_value = np.bincount(cell * values + (steps - aggregate.lower), minlength=counts.size * values)
        return Statistics(counts=counts, histogram=by_value.reshape(*shape, values))
    largest = max(abs(aggregate.lower), abs(aggregate.upper))
    totals = _sums(steps, largest, cell, counts.size).reshape(shape)
    squares = _sums(steps**2, largest**2, cell, counts.size).reshape(shape) if aggregate.kind == "variance" else None
    return Statistics(counts=counts, totals=totals, squares=squares)


def _rounded(values: Floats) -> Floats:
    """Round to whole numbers, half away from 0 like ROUND in SQL; `np.rint` would round 2.5 to 2."""
    whole = np.rint(values)
    halves = np.abs(values - whole) == 0.5  # exactly
    whole[halves] = values[halves] + np.copysign(0.5, values[halves])
    return whole


def _sums(values: Integers, largest: int, cell: Integers, size: int) -> Any:
    """Return exact sums by cell: `bincount` adds doubles, so large numbers are added in parts that doubles hold."""
    if largest * len(values) < 2**53:
        return np.bincount(cell, weights=values, minlength=size).astype(np.int64).astype(object)
    low = np.bincount(cell, weights=values & 0xFFFF, minlength=size)  # exact below 2^37 people
    middle = np.bincount(cell, weights=(values >> 16) & 0xFFFF, minlength=size)
    high = np.bincount(cell, weights=values >> 32, minlength=size)
    parts = [part.astype(np.int64).astype(object) for part in (low, middle, high)]
    return parts[0] + parts[1] * 2**16 + parts[2] * 2**32


def numbers(values: Any) -> ArrayColumn:
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
    return ArrayColumn(
        present=present,
        values=plain,
        nullable=nullable or plain.dtype.kind == "f",
        whole=whole,
    )


def bits(condition: Any) -> ArrayColumn:
    """A column that is present where the condition holds."""
    column = numbers(condition)
    return replace(column, present=column.present & (column.values != 0), nullable=True)


def categories_of(values: Any, categories: Sequence[Any]) -> ArrayColumn:
    """A column whose group is the category's number; other values are not present.

    Missing is no category: where presence is protected, it is an absence, which must count nowhere.
    """
    if len(set(categories)) != len(categories) or not len(categories):
        raise InvalidDeclaration("categories must be one or more different values.")
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
    return ArrayColumn(present=present, group=group, values=np.zeros(len(present)))


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

"""Values of any library become columns of numbers, groups or people.

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
from numpy.typing import ArrayLike, NDArray

from discretion.engines.arrays import ArrayColumn
from discretion.errors import InvalidDeclaration
from discretion.noise import Floats
from discretion.preference import Integers
from discretion.release.calendar import MICROSECONDS

Column = ArrayLike | Sequence[object]  # NumPy, pandas, Polars, Arrow, or a list; one value per row
NOBODY = -1  # no group, or no person


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """The group of every row. Which groups there are is declared; which row is in which is private."""

    columns: dict[str, tuple[object, ...]]  # what describes each group
    place: Integers  # of every row's group, or NOBODY

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"Grouping(groups={len(self)}, rows={len(self.place)}, private)"

    def times(self, other: "Grouping") -> "Grouping":
        """Return every pair of groups; those of `other` change fastest."""
        columns = {
            name: tuple(value for value in values for _ in range(len(other))) for name, values in self.columns.items()
        }
        columns |= {name: values * len(self) for name, values in other.columns.items()}
        both = (self.place != NOBODY) & (other.place != NOBODY)
        return Grouping(columns=columns, place=np.where(both, self.place * len(other) + other.place, NOBODY))


def numbers(values: Column) -> ArrayColumn:
    """Return a column of numbers; missing, NaN and infinite ones are not present."""
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


def dates(values: Column, *, whole: bool) -> ArrayColumn:
    """Return a column of days since 1970, without the time of day if `whole`."""
    array, _ = _array(values)
    if pa.types.is_timestamp(array.type):
        microseconds = _plain(array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()))
        days = np.floor_divide(microseconds, MICROSECONDS) if whole else microseconds / MICROSECONDS
    elif pa.types.is_date(array.type) or pa.types.is_null(array.type):
        days = _plain(array.cast(pa.date32()).cast(pa.int32())).astype(np.float64)
    else:
        raise InvalidDeclaration(f"The bounds are dates, so the values must be dates or times, got {array.type}.")
    present = ~np.asarray(array.is_null())
    return ArrayColumn(present=present, values=days, nullable=True, whole=whole)


def bits(condition: Column) -> ArrayColumn:
    """Return a column that is present where the condition holds."""
    column = numbers(condition)
    return replace(column, present=column.present & (column.values != 0), nullable=True)


def categories_of(values: Column, categories: Sequence[Any], *, name: str, given: str = "categories") -> Grouping:
    """Return the category of every row; other values have none. `given` is the option that declares the categories.

    Missing is no category: where presence is protected, it is an absence, which must count nowhere.
    """
    if len(set(categories)) != len(categories) or not len(categories):
        raise InvalidDeclaration(f"{given} must be one or more different values.")
    array, _ = _array(values)
    if pa.types.is_dictionary(array.type):  # a categorical type
        array = array.dictionary_decode()
    try:
        kind = None if pa.types.is_null(array.type) else array.type
        known = pa.array(list(categories), type=kind, from_pandas=True)
        array = array.cast(known.type)  # changes nothing, unless nobody has a value
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InvalidDeclaration(f"{given} must be of the values' type, {array.type}.") from None
    if known.null_count:
        raise InvalidDeclaration(f"{given} must be values that people can have, not None or NaN.")
    found = pc.index_in(array, value_set=known)
    place = np.asarray(pc.fill_null(found, NOBODY)).astype(np.int64)
    return Grouping(columns={name: tuple(categories)}, place=place)


def intervals_of(column: ArrayColumn, edges: Floats, shown: Sequence[object]) -> Grouping:
    """Return the interval between two edges that every value is in: from the left edge to below the right one.

    Only the last interval has its right edge. Values outside all of them are in none.
    """
    values = np.asarray(column.values, dtype=np.float64)
    place = np.searchsorted(edges, values, side="right") - 1
    place = np.where(values == edges[-1], len(edges) - 2, place)
    inside = column.present & (values >= edges[0]) & (values <= edges[-1])
    columns = {"left": tuple(shown[:-1]), "right": tuple(shown[1:])}
    return Grouping(columns=columns, place=np.where(inside, place, NOBODY).astype(np.int64))


def people_of(person: Column) -> tuple[list[object], Integers]:
    """Return the people that a column names, and for every row whose it is; NOBODY where that is missing."""
    array, _ = _array(person)
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    coded = plain.dictionary_encode()  # only those who are there
    place = np.asarray(pc.fill_null(coded.indices, NOBODY)).astype(np.int64)
    return coded.dictionary.to_pylist(), place


def _array(values: Any) -> tuple[Any, bool]:
    """Return any one-dimensional column as an Arrow array, and whether its type has missing values."""
    if hasattr(values, "to_arrow"):  # Polars
        values = values.to_arrow()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values, True
    dtype = getattr(values, "dtype", None)
    nullable = not (isinstance(dtype, np.dtype) and dtype.kind in "iub") or isinstance(values, np.ma.MaskedArray)
    if np.ndim(values) != 1:
        raise InvalidDeclaration(f"Give one column of values, such as frame['age']. Got {np.ndim(values)} dimensions.")
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
    """Cast by type alone: whether text happens to spell numbers is data."""
    if pa.types.is_temporal(array.type):
        raise InvalidDeclaration("The values are dates, so the bounds must be dates too: (date(2020, 1, 1), ...).")
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not (pa.types.is_null(array.type) or pa.types.is_primitive(array.type) or pa.types.is_decimal(array.type)):
            raise NotImplementedError
        return array.cast(target, safe=False)
    except (pa.ArrowException, NotImplementedError):
        raise InvalidDeclaration(f"The values must be numbers, got {_kind(array.type)}.") from None


def _kind(type: pa.DataType) -> str:
    """Name a type as people do."""
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)
    return "texts. Convert them first, for example with pandas.to_numeric" if is_text else str(type)


def _plain(array: Any) -> NDArray[Any]:
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0).cast(array.type))
    return np.asarray(array.to_numpy(zero_copy_only=False))

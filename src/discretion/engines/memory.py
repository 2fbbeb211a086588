"""Memory: a data frame of any library becomes an Arrow table of the engine's own."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa

from discretion.engines.backend import Backend
from discretion.errors import InvalidDeclaration

_MEMORY = "memory:"  # what the place of an attached object begins with


@dataclass(frozen=True, kw_only=True)
class Attached:
    """A copy of an object: whoever owns the object may write to it later."""

    table: pa.Table
    digest: str
    columns: Mapping[str, str]


def attached(name: str, given: Any, person: str, backend: Backend) -> Attached:
    """Return a copy of an object in which no value can make a question fail."""
    copy = packed(backend.sound(arrow_table(name, given), person))
    table = pa.ipc.open_stream(copy).read_all()
    return Attached(table=table, digest=hashlib.sha256(copy).hexdigest(), columns=backend.columns(table))


def packed(table: pa.Table) -> pa.Buffer:
    """Return a copy of a table in one stretch of bytes."""
    copy = pa.BufferOutputStream()
    with pa.ipc.new_stream(copy, table.schema) as writer:
        writer.write_table(table)
    return copy.getvalue()


def place_of(name: str) -> str:
    """Return the place of an attached object."""
    return f"{_MEMORY}{name}"


def name_of(place: str) -> str:
    """Return the name that an object was attached under."""
    return place.removeprefix(_MEMORY)


def is_object(place: str) -> bool:
    """Tell whether a place is an attached object, which later programs cannot read."""
    return place.startswith(_MEMORY)


def arrow_table(name: str, given: Any) -> pa.Table:
    """Return the rows of a pandas, Polars, Arrow or other data frame, of a dataset, a reader or a lazy frame."""
    try:
        found = _taken(given)
    except (TypeError, ValueError, pa.ArrowException):
        mixed = _mixed_columns(given) if hasattr(given, "iloc") else []
        names = list(map(str, given.columns)) if hasattr(given, "iloc") and hasattr(given, "columns") else []
    else:
        return _without_periods(name, found)
    for twice in (one for one in names if names.count(one) > 1):
        raise InvalidDeclaration(f"{name!r} has two columns named {twice!r}. Give one of them another name.")
    if mixed:
        raise InvalidDeclaration(
            f"Column {mixed[0]!r} of {name!r} mixes types. Convert it first, as in frame[{mixed[0]!r}].astype(str)."
        )
    raise InvalidDeclaration(
        f"{name!r} must be an Arrow, pandas or Polars table or a file, got {type(given).__name__}."
    ) from None


def _without_periods(name: str, table: pa.Table) -> pa.Table:
    """Refuse periods and intervals of pandas: what is stored of them are numbers that only pandas can read."""
    for one in table.schema:
        if isinstance(one.type, pa.BaseExtensionType) and one.type.extension_name.startswith("pandas."):
            kind = one.type.extension_name.removeprefix("pandas.")
            raise InvalidDeclaration(
                f"Column {one.name!r} of {name!r} has a type of pandas, {kind}. Convert it first, as in "
                f"frame[{one.name!r}].astype(str)."
            )
    return table


def _taken(given: Any) -> pa.Table:
    if hasattr(given, "iloc"):
        return pa.Table.from_pandas(given, preserve_index=False)
    if hasattr(given, "scanner") and hasattr(given, "to_table"):  # an Arrow Dataset: importing its class loads pandas
        return given.to_table()
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if hasattr(given, "collect") and hasattr(given, "lazy"):  # a Polars LazyFrame
        return pa.table(given.collect())
    if hasattr(given, "__dataframe__") and not hasattr(given, "__arrow_c_stream__"):
        return import_module("pyarrow.interchange").from_dataframe(given)  # it loads pandas
    return pa.table(given)


def _mixed_columns(frame: Any) -> list[str]:
    """Return the columns of a pandas frame that have no type in common."""
    found = []
    for place, name in enumerate(frame.columns):
        try:
            pa.array(frame.iloc[:, place], from_pandas=True)
        except pa.ArrowException:
            found.append(str(name))
    return found

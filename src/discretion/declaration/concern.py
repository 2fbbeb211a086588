"""Concern: what seems wrong with rows that were admitted, in words for their steward and for nobody else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from discretion.declaration.table import Table


@dataclass(frozen=True, kw_only=True)
class Concern:
    """One thing a steward should look at; it depends on rows, so no analyst may see it."""

    kind: str
    text: str
    column: str = ""
    count: int | None = None  # of people or rows


def hints(texts: Iterable[str]) -> tuple[Concern, ...]:
    """Return what was noticed while a source was read."""
    return tuple(Concern(kind="reading", text=text) for text in texts)


def turnover(came: int, left: int) -> tuple[Concern, ...]:
    """Return a warning if about as many people came with a refresh as left: their names may be spelt differently."""
    if not left or not left / 2 <= came <= 2 * left:
        return ()
    text = (
        f"People who left the source: {left:,}. New people: {came:,}. If these are the same people under other names, "
        "each of them has a second allowance now. Write identifiers as before, and never refresh with new ones."
    )
    return (Concern(kind="turnover", text=text, count=came),)


def unstated(column: str, count: int) -> tuple[Concern, ...]:
    """Return a warning about people who stated no preference in a column."""
    text = f"People without a preference: {count:,}. They get the default or the strictest level."
    return (Concern(kind="no_preference", text=text, column=column, count=count),) if count else ()


def concerns(table: Table, counted: Mapping[tuple[str, str], int]) -> tuple[Concern, ...]:
    """Return what (measure, column or key) -> count says about a table."""
    return tuple(_told(table, counted))


def told(found: Iterable[Concern]) -> pa.Table:
    """Return concerns as a table that prints and becomes JSON."""
    rows = [{"warning": one.kind, "column": one.column, "people": one.count, "text": one.text} for one in found]
    kinds = {"warning": pa.string(), "column": pa.string(), "people": pa.int64(), "text": pa.string()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def _told(table: Table, counted: Mapping[tuple[str, str], int]) -> Iterator[Concern]:
    k = table.rows_per_person
    for (kind, about), count in counted.items():
        if kind == "no_preference":
            yield from unstated(about, count)
        if not count or kind == "no_preference":
            continue
        text = {
            "above_rows_per_person": (
                f"People with several rows, although rows_per_person is 1: {count:,}. One row of each counts."
                if k == 1
                else f"People with more than {k:,} rows (rows_per_person): {count:,}. Their other rows do not count."
            ),
            "not_in_register": f"People not in register {table.register!r}: {count:,}. Their rows do not count.",
            "no_person": f"Rows without a person: {count:,}. They do not count.",
            "outside_bounds": f"Rows with a value of {about!r} outside its bounds: {count:,}. It is clamped to them.",
            "outside_span": f"Rows with a date in {about!r} outside its bounds: {count:,}. No group has them.",
            "key_without_rows": f"No row has the declared key {about}.",
            "rows_without_key": f"Rows with a value of {about!r} that is no key: {count:,}. No group has them.",
        }[kind]
        yield Concern(kind=kind, text=text, column=about, count=None if kind == "key_without_rows" else count)

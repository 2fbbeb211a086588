"""Concern: what seems wrong with rows that were admitted, in words for their steward and for nobody else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from discretion.table import Table


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


def concerns(table: Table, counted: Mapping[tuple[str, str], int]) -> tuple[Concern, ...]:
    """Return what (measure, column or key) -> count says about a table."""
    return tuple(_told(table, counted))


def _told(table: Table, counted: Mapping[tuple[str, str], int]) -> Iterator[Concern]:
    k = table.rows_per_person
    for (kind, about), count in counted.items():
        if not count:
            continue
        text = {
            "above_rows_per_person": (
                f"{count:,} people have several rows, but rows_per_person is 1: one row of each counts."
                if k == 1
                else f"{count:,} people have more than {k:,} rows (rows_per_person); the others do not count."
            ),
            "no_preference": f"{count:,} people have no preference; they get the default or the strictest level.",
            "not_in_register": f"{count:,} people are not in register {table.register!r}; their rows do not count.",
            "no_person": f"{count:,} rows have no person; they do not count.",
            "outside_bounds": f"{count:,} rows have a value of {about!r} outside its bounds; it is clamped to them.",
            "key_without_rows": f"No row has the declared key {about}.",
            "rows_without_key": f"{count:,} rows have a value of {about!r} that is no declared key; no group has them.",
        }[kind]
        yield Concern(kind=kind, text=text, column=about, count=count)

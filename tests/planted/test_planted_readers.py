"""The truth suite finds bugs that are planted in reading a table and in a statistic, after so many examples."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent.parent / "truth"))

from kinds import KINDS
from shapes import Shape
from test_truth import RUN, examine

from discretion.engines.duckdb import admission, text
from discretion.errors import DiscretionError

MOST = 60  # examples until a planted bug must be found


def swapped(shape: Shape) -> pa.Table:
    """Two columns of one type are read as each other."""
    table = shape.table()
    for one in shape.columns:
        for other in shape.columns:
            if one.name < other.name and table.schema.field(one.name).type == table.schema.field(other.name).type:
                names = {one.name: other.name, other.name: one.name}
                return table.rename_columns([names.get(name, name) for name in table.column_names])
    return table


def duplicated(shape: Shape) -> pa.Table:
    """The first row is read twice."""
    return pa.concat_tables([shape.table(), shape.table().slice(0, 1)])


def dropped(shape: Shape) -> pa.Table:
    """The last line is not read."""
    return shape.table().slice(0, len(shape.person.values) - 1)


def given_away(shape: Shape) -> pa.Table:
    """The rows of one person are read as another's."""
    first, other = [one for one in dict.fromkeys(shape.person.values) if one is not None][:2]
    owners = [other if one == first else one for one in shape.person.values]
    return replaced(shape, {shape.person.name: owners})


def zeros(shape: Shape) -> pa.Table:
    """A missing number is read as 0."""
    numbers = [one for one in shape.columns if pa.types.is_integer(one.arrow().type)]
    return replaced(shape, {one.name: [value or 0 for value in one.values] for one in numbers})


def shifted(shape: Shape) -> pa.Table:
    """Times are read in another time zone."""
    hour = timedelta(hours=1)
    times = [one for one in shape.columns if one.type in ("time", "micro", "zoned")]
    return replaced(shape, {one.name: [value and value + hour for value in one.values] for one in times})


def replaced(shape: Shape, values: dict[str, list]) -> pa.Table:
    table = shape.table()
    for name, those in values.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(those, table.schema.field(name).type))
    return table


class FoundError(BaseException):
    """Ends a search at once: hypothesis would repeat the example."""


def hunt(name: str, kind: str, write: Callable[[Shape], pa.Table] | None = None) -> None:
    """Draw examples until one shows a wrong answer; fail if none does."""
    examples = 0

    @settings(max_examples=MOST, derandomize=True, **RUN)
    @given(data=st.data())
    def look(data):
        nonlocal examples
        examples += 1
        with TemporaryDirectory() as folder:
            try:
                found = examine(KINDS[kind], data, Path(folder), write)
            except DiscretionError as refused:
                found = [f"refused: {refused}"]
        if found:
            raise FoundError(found[0])

    with pytest.raises(FoundError) as found:
        look()
    print(f"{name} ({kind}): found by example {examples}: {found.value}")


@pytest.mark.parametrize("bug", [swapped, duplicated, dropped, given_away, zeros, shifted])
def test_a_bug_in_reading_is_found(bug):
    hunt(bug.__name__, "arrow", bug)


def test_columns_of_a_text_that_are_found_by_position_are_found(monkeypatch):
    """The bug of version 0.1: names in alphabetical order were given to columns by position."""
    header = text._header
    monkeypatch.setattr(text, "_header", lambda *given: tuple(sorted(header(*given))))
    hunt("columns by position", "csv")


def test_a_reader_that_drops_the_last_row_is_found(monkeypatch):
    select = admission.select
    monkeypatch.setattr(admission, "select", lambda *given: f"{select(*given)} LIMIT (SELECT COUNT(*) - 1 FROM staged)")
    hunt("reader drops the last row", "csv")


def test_a_reader_that_takes_a_missing_number_for_0_is_found(monkeypatch):
    safe = admission.safe

    def zeros(name, kind, person=""):
        return f"coalesce({safe(name, kind, person)}, 0)" if kind == "BIGINT" else safe(name, kind, person)

    monkeypatch.setattr(admission, "safe", zeros)
    hunt("reader takes NULL for 0", "sqlite")


def test_a_reader_that_ignores_the_zone_of_a_time_is_found(monkeypatch):
    cast = admission.cast

    def without_zone(name, guessed, source, *, is_person):
        local = f"TRY_CAST(left({text.named(name)}, 19) AS TIMESTAMP)"
        return local if guessed.zoned else cast(name, guessed, source, is_person=is_person)

    monkeypatch.setattr(admission, "cast", without_zone)
    hunt("reader ignores time zones", "csv")


def test_a_population_variance_in_place_of_the_sample_variance_is_found(monkeypatch):
    monkeypatch.setattr("discretion.mechanisms.linear.bessel", lambda rows: 1.0)
    hunt("population variance", "arrow")

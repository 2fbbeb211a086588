"""The truth suite finds bugs that are planted in reading a table and in a statistic, after so many examples."""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
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
    times = [one for one in shape.columns if one.type in ("time", "micro")]
    return replaced(shape, {one.name: [value and value + hour for value in one.values] for one in times})


def replaced(shape: Shape, values: dict[str, list]) -> pa.Table:
    table = shape.table()
    for name, those in values.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(those, table.schema.field(name).type))
    return table


@dataclass
class Hunt:
    """Counts the examples until one shows a wrong answer."""

    examples: int = 0
    found: list[str] = field(default_factory=list)

    def run(self, write: Callable[[Shape], pa.Table] | None) -> None:
        @settings(max_examples=MOST, derandomize=True, **RUN)
        @given(data=st.data())
        def look(data):
            self.examples += not self.found
            with TemporaryDirectory() as folder:
                found = examine(KINDS["arrow"], data, Path(folder), write)
            self.found = self.found or found
            assert [] == found

        with suppress(AssertionError):
            look()


@pytest.mark.parametrize("bug", [swapped, duplicated, dropped, given_away, zeros, shifted])
def test_a_bug_in_reading_is_found(bug, record_property):
    hunt = Hunt()
    hunt.run(bug)
    record_property("examples", hunt.examples)
    print(f"{bug.__name__}: found by example {hunt.examples}: {hunt.found[:1]}")
    assert hunt.found


def test_a_population_variance_in_place_of_the_sample_variance_is_found(monkeypatch, record_property):
    monkeypatch.setattr("discretion.mechanisms.linear.bessel", lambda rows: 1.0)
    hunt = Hunt()
    hunt.run(None)
    record_property("examples", hunt.examples)
    print(f"population variance: found by example {hunt.examples}: {hunt.found[:1]}")
    assert hunt.found

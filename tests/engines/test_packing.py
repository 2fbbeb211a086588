"""Whole numbers that are packed into one sort and group as they do together, and come out again."""

from itertools import product
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from discretion.engines import packing
from discretion.engines.column import columns_of
from discretion.engines.duckdb import DuckDB
from discretion.engines.packing import ROOM, Span, packed, size_of, spans, unpacked
from discretion.query import parse
from discretion.statistics import Measure
from engines.statements import table

SPANS = [Span("k", 0, 2), Span("v", -2, 1, optional=True), Span("w", 5, 6, optional=True), Span("c", 0, 1)]
EVERY = [
    [*range(one.least, one.most + 1), *([None] if one.optional else [])] for one in SPANS
]  # in the order of the statement: NULL last


def found(given: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the number that DuckDB packs each row into, and what it unpacks from that."""
    with duckdb.connect(":memory:") as connection:
        names = [one.name for one in SPANS]
        rows = ", ".join(str(tuple(row)).replace("None", "NULL") for row in given)
        number = exp.select(exp.alias_(packed(SPANS, "t"), "number")).from_(f"(VALUES {rows}) AS t({', '.join(names)})")
        out = list(unpacked(exp.column("number"), SPANS).values())
        return connection.sql(exp.select("number", *out).from_(number.subquery("n")).sql("duckdb")).fetchall()


def is_packed(given: list[tuple[Any, ...]]) -> bool:
    """Tell whether rows in their order get the numbers 0, 1, 2, ... and come out of these again."""
    rows = found(given)
    return [row[0] for row in rows] == list(range(len(given))) and [row[1:] for row in rows] == given


def test_every_row_has_a_number_of_its_own_in_the_order_of_rows() -> None:
    every = list(product(*EVERY))
    assert len(every) == size_of(SPANS)
    assert is_packed(every)


def test_a_missing_value_without_a_place_of_its_own_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing.Span, "size", property(lambda span: span.most - span.least + 1))
    assert not is_packed(list(product(*EVERY)))


def test_a_row_that_no_group_shows_has_no_number() -> None:
    assert [(None,) * 5] * 2 == [
        (*row[:1], None, None, None, None) for row in found([(None, 0, 5, 0), (1, 0, 5, None)])
    ]


@pytest.mark.parametrize(
    ("select", "cohorts", "expected"),
    [
        ("SUM(x), COUNT(*)", 3, ["k0", "v0", "c"]),
        ("SUM(x), COUNT(*)", 0, ["k0", "v0"]),  # preferences are not numbered
        ("COUNT(x), SUM(x)", 3, ["k0"]),
        ("SUM(x), COUNT(DISTINCT id)", 3, ["k0", "v0"]),
    ],
)
def test_columns_have_spans_up_to_the_first_without(select: str, cohorts: int, expected: list[str]) -> None:
    query = parse(f"SELECT place, {select} FROM t GROUP BY place", {"t": table(DuckDB())})
    columns, _ = columns_of(query.asked, [Measure(aggregate=one) for one in query.aggregates])
    known = spans(query.keys, columns, cohorts)
    assert expected == [one.name for one in known]
    assert size_of(known) < ROOM

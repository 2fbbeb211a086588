"""Subqueries per person: everybody who can exist in a small universe, in every pair of states, through the engine.

A person has up to three of seven rows, in every combination. Everybody is in a cohort of their own, so one computation
shows what each of them adds, and two of them are one person in two neighbouring databases.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows, gathering
from discretion.engines import statement as built
from discretion.engines.duckdb import DuckDB
from discretion.query import aggregation, gather, parse
from discretion.query.rowset import RowSet
from discretion.statistics import Measure, Request, Statistics
from test_neighbours import World, excesses, joint_excesses

NAN = float("nan")
ROWS: list[dict[str, Any]] = [
    {"x": 0.1, "i": 5, "money": 2.5, "kind": "a", "ok": True, "day": 19_723, "note": "b"},
    {"x": 0.2, "i": 2**63 - 1, "money": 999.99, "kind": "b", "ok": False, "day": 19_724, "note": "B"},
    {"x": 0.3, "i": -(2**63), "money": -0.01, "kind": "a", "ok": True, "day": 19_723, "note": ""},
    {"x": 1e308, "i": 40, "money": 2.5, "kind": "other", "ok": None, "day": None, "note": "b"},
    {"x": -0.0, "i": 0, "money": 0.0, "kind": "b", "ok": False, "day": 19_725, "note": None},
    {"x": 0.0, "i": 1, "money": None, "kind": "a", "ok": False, "day": 19_725, "note": "x"},
    {"x": NAN, "i": None, "money": None, "kind": None, "ok": None, "day": None, "note": None},
]
STATES = [state for most in (1, 2, 3) for state in combinations_with_replacement(range(len(ROWS)), most)]
PEOPLE = len(STATES)
SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("epsilon", pa.float64()), ("x", pa.float64()), ("i", pa.int64())),
        *(("money", pa.decimal128(6, 2)), ("kind", pa.string()), ("ok", pa.bool_()), ("day", pa.date32())),
        ("note", pa.string()),
    ]
)


def table(backwards: bool = False) -> pa.Table:
    """Return the rows of everybody who can exist."""
    rows = [{"id": who, "epsilon": who + 1.0, **ROWS[row]} for who, state in enumerate(STATES) for row in state]
    found = pa.Table.from_pylist(rows[::-1] if backwards else rows, pa.schema([*SCHEMA][:4]))
    more = pa.Table.from_pylist(rows[::-1] if backwards else rows, pa.schema([*SCHEMA][5:7]))
    chosen = rows[::-1] if backwards else rows
    money = pa.array([row["money"] for row in chosen], pa.float64()).cast(pa.decimal128(6, 2))
    days = pa.array([row["day"] for row in chosen], pa.int32()).view(pa.date32())
    notes = pa.array([row["note"] for row in chosen], pa.string())
    columns = [*found.columns, money, *more.columns, days, notes]
    return pa.table(columns, schema=SCHEMA)


class Universe(World):
    """The table of everybody who can exist, under one relation and one declared bound on rows."""

    def __init__(self, protects: Any, rows_per_person: int, backwards: bool = False) -> None:
        self.engine = DuckDB(threads=1)
        self.rows = table(backwards)
        place = self.engine.attach("t", self.rows)
        self.register = self.engine.attach("people", self.rows.select(["id", "epsilon"]))
        self.table = Table(
            name="t",
            source=place,
            person="id",
            epsilon="epsilon" if protects == "value" else "",
            register="t" if protects == "value" else "people",
            protects=protects,
            columns=dict(self.engine.schema(place)),
            rows_per_person=rows_per_person,
            bounds={"x": (-1, 9), "i": (-5, 40), "money": (0.01, 500)},
            keys={"kind": ("a", "b", None)},
        )

    def request(self, sql: str) -> Request[Rows]:
        query = parse(sql, {"t": self.table})
        apart = {} if self.table.epsilon else {"register": self.register, "person": "id", "epsilon": "epsilon"}
        cohorts = Cohorts(count=PEOPLE, levels={float(p + 1): p for p in range(PEOPLE)}, **apart)
        measures = [Measure(aggregate=one, histogram=one.kind == "quantile") for one in query.aggregates]
        return Request(measures=tuple(measures), source=Rows(query=query, cohorts=cohorts))

    def compute(self, sql: str) -> list[tuple[Measure, Statistics]]:
        request = self.request(sql)
        return list(zip(request.measures, self.engine.compute(request), strict=True))


def per_person(inner: str, outer: str, keys: str = "", tail: str = "", where: str = "") -> str:
    columns = f"id, {keys}, {inner}" if keys else f"id, {inner}"
    grouped = f"id, {keys}" if keys else "id"
    return f"SELECT {outer} FROM (SELECT {columns} FROM t {where} GROUP BY {grouped}) {tail}"


NUMBERS = "SUM(x) AS a, AVG(x) AS b, MIN(x) AS c, MAX(x) AS d"
DATES = "MAX(day) - MIN(day) AS span, BOOL_OR(ok) AS o"
QUERIES = [
    per_person("COUNT(*) AS n", "COUNT(*), COUNT(n), COUNT(DISTINCT id)", tail="WHERE n >= 2"),
    per_person("COUNT(x) AS n", "SUM(LEAST(n, 9)), AVG(LEAST(n, 9)), MEDIAN(LEAST(n, 9))"),
    per_person("COUNT(DISTINCT note) AS n, COUNT_IF(ok) AS m", "COUNT(*), SUM(LEAST(m, 5))", tail="WHERE n > 1"),
    per_person(NUMBERS, "SUM(LEAST(GREATEST(a, -2), 20)), AVG(b), VARIANCE(c), MEDIAN(d), MAX(b)"),
    per_person(NUMBERS, "COUNT(a), COUNT(b), COUNT(c), COUNT(*)", tail="WHERE a > 0.6 OR 1 / d > c"),
    per_person("SUM(i) AS a, AVG(i) AS b", "SUM(LEAST(GREATEST(a, 10), 60)), AVG(b), SUM(b)", where="WHERE ok"),
    per_person("SUM(money) AS a, MIN(money) AS b", "SUM(LEAST(GREATEST(a, 100), 1000)), AVG(b), SUM(b * 2 - 3)"),
    per_person("SUM(x) AS a", "COUNT(*), SUM(LEAST(GREATEST(a, 5), 7))", where="WHERE i > 0 AND x < 5"),
    per_person(DATES, "o, COUNT(*), AVG(LEAST(GREATEST(span, 0), 9))", tail="GROUP BY o"),
    per_person("ARG_MIN(x, day) AS f, LAST(i ORDER BY day) AS l", "AVG(f), SUM(l), COUNT(f)"),
    per_person(
        "COUNT(*) AS n", "CASE WHEN n > 2 THEN 'many' WHEN n > 1 THEN 'two' END AS s, COUNT(*)", tail="GROUP BY s"
    ),
    per_person("SUM(x) AS a", "COUNT(*), COUNT(DISTINCT id), SUM(LEAST(GREATEST(a, 4), 9))", "kind", "GROUP BY kind"),
    per_person("SUM(x) AS a, COUNT(*) AS n", "COUNT(*), SUM(LEAST(GREATEST(a, 0), 9)), MEDIAN(LEAST(n, 9))", "kind"),
    per_person("AVG(x) AS a", "kind, AVG(a), VARIANCE(a), MEDIAN(a)", "kind", "GROUP BY kind"),
    "SELECT COUNT(*), SUM(LEAST(GREATEST(b, 0), 99)) FROM (SELECT id, SUM(i) / COUNT(*) AS b FROM (SELECT id, x, i "
    "FROM t WHERE ok IS NOT NULL) GROUP BY id HAVING COUNT(*) > 1 AND MAX(x) < 5) WHERE b > 1",
    "WITH s AS (SELECT id AS who, COUNT(*) AS n, SUM(x) FILTER (WHERE ok) AS y FROM t GROUP BY who) "
    "SELECT COUNT(DISTINCT who), SUM(LEAST(GREATEST(y, 2), 9)), AVG(LEAST(GREATEST(y * n, -9), 9)) FROM s WHERE n < 9",
]
TOGETHER = [
    per_person("AVG(x) AS b", "COUNT(*), COUNT(b), SUM(b), AVG(b), VARIANCE(b)"),
    per_person("AVG(i) AS b", "kind, COUNT(*), AVG(b)", "kind", "GROUP BY kind"),
]
RELATIONS = [("value", 1), ("value", 2), ("presence", 1), ("presence", 2), ("presence", 5)]


@pytest.fixture(autouse=True)
def _same_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.engines.engine.coin_key", lambda: "0" * 64)


@pytest.mark.parametrize(("protects", "rows_per_person"), RELATIONS)
def test_nobody_moves_a_statistic_further_than_its_sensitivity(protects: str, rows_per_person: int) -> None:
    world = Universe(protects, rows_per_person)
    assert [] == [excess for sql in QUERIES for excess in excesses(world, sql)]
    assert [] == [excess for sql in TOGETHER for excess in joint_excesses(world, sql)]


def unlike(one: Universe, other: Universe, sql: str, people: Any = slice(None)) -> bool:
    """Tell whether somebody adds something else in another table."""
    pairs = zip(one.compute(sql), other.compute(sql), strict=True)
    return any(
        not np.array_equal(np.asarray(a)[:, people], np.asarray(b)[:, people])
        for (_, mine), (_, theirs) in pairs
        for a, b in ((mine.counts, theirs.counts), (mine.totals, theirs.totals), (mine.histogram, theirs.histogram))
        if a is not None
    )


def test_the_order_of_rows_has_no_influence() -> None:
    one, other = Universe("value", 2), Universe("value", 2, backwards=True)
    assert [] == [sql for sql in [*QUERIES, *ORDERED] if unlike(one, other, sql)]


def test_every_question_is_tried_on_made_up_rows() -> None:
    world = Universe("presence", 2)
    for sql in [*QUERIES, *ORDERED]:
        world.engine.check(world.request(sql))


ORDERED = [  # a sum of doubles, a choice between 0.0 and -0.0, and one among equally early rows depend on the order
    per_person("SUM(x) AS a", "COUNT(*)", tail="WHERE a > 0.6"),
    per_person("MIN(x) AS a, MAX(x) AS b", "COUNT(*)", tail="WHERE CAST(a AS VARCHAR) = '-0.0'"),
    per_person("FIRST(x ORDER BY day) AS f", "COUNT(*)", tail="WHERE f > 0.2"),
]


def test_nobody_moves_what_another_adds() -> None:
    world, fewer = Universe("presence", 2), Universe("presence", 2)
    gone = PEOPLE - 1
    fewer.engine.attach("t", fewer.rows.filter(pa.array(np.asarray(fewer.rows["id"]) != gone)))
    others = np.arange(PEOPLE) != gone
    assert [] == [sql for sql in QUERIES if unlike(world, fewer, sql, others)]


# Planted bugs -------------------------------------------------------------------------------------------------------


def doubles_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gathering, "_added", lambda one, value: exp.Sum(this=exp.cast(value, "DOUBLE")))


def either_zero(patch: pytest.MonkeyPatch) -> None:
    whole = gathering._chosen
    plain = lambda one, value: whole(replace(one, column=replace(one.column, type="BIGINT")), value)  # noqa: E731
    patch.setattr(gathering, "_chosen", plain)


def ties_left(patch: pytest.MonkeyPatch) -> None:
    def chosen(one: Any, value: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this="ARG_MIN", expressions=[value, exp.column(f"{one.name}_by")])

    patch.setattr(gathering, "_chosen", chosen)
    patch.setattr("discretion.engines.dialect.Dialect._knows", lambda *_: True)


@pytest.mark.parametrize(
    ("plant", "sql"), list(zip((doubles_added, either_zero, ties_left), ORDERED, strict=True)), ids=lambda one: ""
)
def test_the_check_notices_what_depends_on_the_order(
    plant: Callable[[pytest.MonkeyPatch], None], sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert unlike(Universe("presence", 2), Universe("presence", 2, backwards=True), sql)


def presence_for_value(patch: pytest.MonkeyPatch) -> None:
    """A table that protects values is treated as one that protects presence."""
    whole = gather.gathered

    def gathered(*given: Any) -> RowSet:
        found = whole(*given)
        return replace(found, table=replace(found.table, protects="presence"))

    patch.setattr(import_module("discretion.query.relation"), "gathered", gathered)  # the package has a function


def size_is_public(patch: pytest.MonkeyPatch) -> None:
    """Everybody is taken to have a row after WHERE."""
    whole = aggregation._shape

    def shape(kind: Any, value: Any, found: RowSet, *given: Any) -> Any:
        return replace(whole(kind, value, found, *given), complete=found.rows_per_person == 1)

    patch.setattr(aggregation, "_shape", shape)


def too_few_rows(patch: pytest.MonkeyPatch) -> None:
    """People with several keys are taken to have one row."""
    patch.setattr(gather, "min", lambda *_: 1, raising=False)
    patch.setattr(built._Build, "can_exceed", False)


def rows_not_chosen(patch: pytest.MonkeyPatch) -> None:
    """More rows than declared are left, where there are more keys."""
    patch.setattr(built._Build, "can_exceed", False)


def not_one_row(patch: pytest.MonkeyPatch) -> None:
    """A person's rows are put together by another column, too."""
    whole = gathering.put_together

    def several(rows: exp.Select, *given: Any) -> exp.Select:
        made = whole(rows, *given)
        inner = made.args["from_"].this.this
        inner.args["from_"].this.this.select(exp.column("day", table="t").as_("day"), copy=False)
        inner.group_by(exp.column("day"), copy=False)
        return made

    patch.setattr(built, "put_together", several)


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str, int]] = {
    "relation": (presence_for_value, "value", 2),
    "size": (size_is_public, "value", 2),
    "keys": (too_few_rows, "presence", 2),
    "chosen": (rows_not_chosen, "presence", 2),
    "one row": (not_one_row, "presence", 2),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_check_notices_a_planted_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, protects, rows_per_person = PLANTED[name]
    plant(monkeypatch)
    world = Universe(protects, rows_per_person)
    assert [sql for sql in QUERIES if excesses(world, sql)]

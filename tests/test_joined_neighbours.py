"""Protected tables joined on the person: everybody who can exist in a small universe, in every pair of states.

A person has up to three rows in the first table and up to two in the other, although one is declared there. Everybody
is in a cohort of their own, so one computation shows what each of them adds; whoever has no row at all adds nothing.
"""

from dataclasses import replace
from datetime import date
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discretion.declaration.table import Lookup, Table
from discretion.engines import Cohorts, Rows, partnership
from discretion.engines.duckdb import DuckDB
from discretion.errors import QueryRefused
from discretion.query import aggregation, parse
from discretion.query.rowset import RowSet
from discretion.statistics import Measure, Request, Statistics
from test_neighbours import World, excesses

VISITS: list[dict[str, Any]] = [
    {"x": 5.0, "kind": "a", "day": date(2024, 1, 9)},
    {"x": -3.0, "kind": "b", "day": date(2024, 2, 1)},
    {"x": None, "kind": "other", "day": date(2024, 3, 31)},
]
PATIENTS: list[dict[str, Any]] = [
    {"y": 2.0, "region": "N", "x": 1.0},
    {"y": 9.0, "region": "S", "x": 7.0},
    {"y": None, "region": None, "x": None},
]


GRADES = {"grade": ("low", "high")}


def several(rows: list[dict[str, Any]], most: int) -> list[tuple[int, ...]]:
    return [state for many in range(most + 1) for state in combinations_with_replacement(range(len(rows)), many)]


STATES = list(product(several(VISITS, 3), several(PATIENTS, 2)))
PEOPLE = len(STATES)


def rows(side: int, kinds: list[dict[str, Any]], backwards: bool) -> pa.Table:
    found = [{"id": who, "epsilon": who + 1.0, **kinds[row]} for who, state in enumerate(STATES) for row in state[side]]
    return pa.Table.from_pylist(found[::-1] if backwards else found)


class Universe(World):
    """Two tables of everybody who can exist."""

    def __init__(self, first: Any, second: Any, rows_per_person: int, backwards: bool = False) -> None:
        self.engine = DuckDB(threads=1)
        self.register = self.engine.attach(
            "people", pa.table({"id": np.arange(PEOPLE), "epsilon": np.arange(PEOPLE) + 1.0})
        )
        bounds, keys = {"x": (-4, 6), "y": (1, 10)}, {"kind": ("a", "b"), "region": ("N", "S")}
        codes = self.engine.attach("codes", pa.table({"code": ["N", "S"], "grade": ["low", "high"]}))
        lookup = Lookup(source=codes, key="code", columns=dict(self.engine.schema(codes)), keys=GRADES, public=True)
        self.tables = {}
        for side, (name, protects) in enumerate((("visits", first), ("patients", second))):
            content = rows(side, (VISITS, PATIENTS)[side], backwards)
            place = self.engine.attach(name, content)
            columns = dict(self.engine.schema(place))
            self.tables[name] = Table(
                name=name,
                source=place,
                person="id",
                epsilon="epsilon" if protects == "value" else "",
                register="people",
                protects=protects,
                columns=columns,
                rows_per_person=rows_per_person if side == 0 else 1,
                bounds={column: pair for column, pair in bounds.items() if column in columns},
                keys={column: values for column, values in keys.items() if column in columns},
                spans={"day": ("2024-01-02", "2024-03-30")} if side == 0 else {},
                lookups={"codes": lookup} if side == 0 else {},
            )
        self.table: Any = self.tables["visits"]

    def protects(self, sql: str) -> str:
        """Return what the relation must be: presence only if all tables protect it and none is joined by LEFT."""
        all_presence = all(one.protects == "presence" for one in self.tables.values())
        outer = any(f"LEFT JOIN {joined}" in sql for joined in ("patients", "("))
        return "presence" if all_presence and not outer else "value"

    def request(self, sql: str) -> Request[Rows]:
        query = parse(sql, self.tables)
        assert query.partners
        own = query.table.protects == "value"
        apart = {} if own else {"register": self.register, "person": "id", "epsilon": "epsilon"}
        cohorts = Cohorts(count=PEOPLE, levels={float(p + 1): p for p in range(PEOPLE)}, **apart)
        measures = [Measure(aggregate=one, histogram=one.kind in ("quantile", "mode")) for one in query.aggregates]
        return Request(measures=tuple(measures), source=Rows(query=query, cohorts=cohorts))

    def compute(self, sql: str) -> list[tuple[Measure, Statistics]]:
        request = self.request(sql)
        return list(zip(request.measures, self.engine.compute(request), strict=True))


def moved(world: Universe, sql: str) -> list[str]:
    """Return where somebody moves a statistic further than its sensitivity, under the relation that must hold."""
    world.table = SimpleNamespace(protects=world.protects(sql))
    return excesses(world, sql)


JOINS = [f"visits v {side}JOIN patients p ON v.id = p.id" for side in ("", "LEFT ")]
ASKED = [
    "SELECT COUNT(*), COUNT(y), COUNT(DISTINCT v.id), SUM(v.x) FROM {}",
    "SELECT SUM(p.x), AVG(y), MEDIAN(y), VARIANCE(v.x) FROM {} WHERE v.x < 6 OR y IS NULL",
    "SELECT p.region, COUNT(*), COUNT(DISTINCT v.id), SUM(y), AVG(v.x) FROM {} GROUP BY p.region",
    "SELECT SUM(LEAST(GREATEST(v.x * y, 20), 30)), COUNT(*) FROM {} WHERE p.region = 'N'",
    "SELECT kind, COUNT(*), SUM(y) FROM {} GROUP BY kind",
    "SELECT COUNT(*), SUM(LEAST(GREATEST(s, 3), 9)) FROM (SELECT v.id, SUM(y) AS s FROM {} GROUP BY v.id) WHERE s > 1",
    "SELECT region, COUNT(*) FROM (SELECT p.region, MAX(v.x) AS m FROM {} GROUP BY v.id, p.region) GROUP BY region",
    "SELECT MODE(p.region), CORR(v.x, y), QUANTILE_CONT(y, [0.25, 0.75]) FROM {}",
    "SELECT DATE_TRUNC('month', v.day) AS month, COUNT(*), SUM(y), MODE(kind) FROM {} GROUP BY 1",
    "SELECT grade, COUNT(*), SUM(y) FROM {} JOIN codes ON p.region = codes.code GROUP BY grade",
    "SELECT grade, COUNT(*), AVG(v.x) FROM {} LEFT JOIN codes ON p.region = codes.code GROUP BY grade",
]
QUERIES = [one.format(join) for one in ASKED for join in JOINS]
QUERIES += [one.format("visits v JOIN patients p ON v.id = p.id AND (y > 2 OR v.x < 6)") for one in ASKED[:6:2]]
CASES = [
    *(("presence", "presence", k) for k in (1, 2)),
    *(("presence", "value", 2), ("value", "presence", 1), ("value", "presence", 3)),
]


@pytest.fixture(autouse=True)
def _same_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.engines.engine.coin_key", lambda: "0" * 64)


@pytest.mark.parametrize(("first", "second", "rows_per_person"), CASES)
def test_nobody_moves_a_statistic_further_than_its_sensitivity(first: str, second: str, rows_per_person: int) -> None:
    world = Universe(first, second, rows_per_person)
    for sql in QUERIES:
        assert {world.protects(sql)} == {measure.aggregate.protects for measure in world.request(sql).measures}
    assert [] == [excess for sql in QUERIES for excess in moved(world, sql)]


def unlike(one: Universe, other: Universe, sql: str, people: Any = slice(None)) -> bool:
    pairs = zip(one.compute(sql), other.compute(sql), strict=True)
    return any(
        not np.array_equal(np.asarray(mine.totals)[:, people], np.asarray(theirs.totals)[:, people])
        for (_, mine), (_, theirs) in pairs
    )


def test_the_order_of_rows_has_no_influence() -> None:
    one, other = Universe("presence", "presence", 2), Universe("presence", "presence", 2, backwards=True)
    assert [] == [sql for sql in QUERIES if unlike(one, other, sql)]


def moves_others(queries: list[str]) -> list[str]:
    """Return the questions in which somebody who leaves moves what others add."""
    world, fewer, gone = Universe("presence", "value", 2), Universe("presence", "value", 2), PEOPLE - 1
    for name, side, kinds in (("visits", 0, VISITS), ("patients", 1, PATIENTS)):
        table = rows(side, kinds, False)
        fewer.engine.attach(name, table.filter(pa.array(np.asarray(table["id"]) != gone)))
    others = np.arange(PEOPLE) != gone
    return [sql for sql in queries if unlike(world, fewer, sql, others)]


def test_nobody_moves_what_another_adds() -> None:
    assert [] == moves_others(QUERIES)


def test_every_question_is_tried_on_made_up_rows() -> None:
    world = Universe("presence", "value", 2)
    for sql in QUERIES:
        world.engine.check(world.request(sql))


# Planted bugs -------------------------------------------------------------------------------------------------------


def presence_always(patch: pytest.MonkeyPatch) -> None:
    """A table joined by LEFT, or one that protects values, is treated as if rows only came and went."""
    patch.setattr(RowSet, "protects", "presence")


def not_cut(patch: pytest.MonkeyPatch) -> None:
    """Somebody with two rows in the other table doubles their rows in the first."""
    whole = partnership.joined_on_person
    patch.setattr(partnership, "joined_on_person", lambda *given: whole(*given[:4], None))


def size_is_public(patch: pytest.MonkeyPatch) -> None:
    """Everybody in the first table is taken to be in the other."""
    whole = aggregation._shape

    def shape(kind: Any, value: Any, found: RowSet, *given: Any) -> Any:
        made = whole(kind, value, found, *given)
        return made if found.protects == "presence" else aggregation.replace(made, complete=True)

    patch.setattr(aggregation, "_shape", shape)


def too_few_rows(patch: pytest.MonkeyPatch) -> None:
    """The noise is for the one row of the other table."""
    patch.setattr(RowSet, "rows_per_person", 1)


PLANTED: dict[str, tuple[Any, str, str, int]] = {
    "left": (presence_always, "presence", "presence", 2),
    "value": (presence_always, "presence", "value", 2),
    "cut": (not_cut, "presence", "presence", 3),
    "size": (size_is_public, "value", "presence", 1),
    "k": (too_few_rows, "presence", "presence", 2),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_check_notices_a_planted_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, first, second, rows_per_person = PLANTED[name]
    plant(monkeypatch)
    world = Universe(first, second, rows_per_person)
    assert [sql for sql in QUERIES if moved(world, sql)]


def test_a_lookup_under_the_name_of_a_protected_table_is_refused() -> None:
    tables = Universe("presence", "value", 2).tables
    for name in ("patients", "visits"):
        with pytest.raises(QueryRefused, match="Give the lookup another alias"):
            parse(f"SELECT COUNT(*) FROM {JOINS[0]} JOIN codes {name} ON p.region = {name}.code", tables)


def test_periods_of_a_table_that_is_joined_are_refused() -> None:
    tables = Universe("presence", "presence", 2).tables
    born = replace(
        tables["patients"], columns={**tables["patients"].columns, "day": "DATE"}, spans=tables["visits"].spans
    )
    asked = f"SELECT DATE_TRUNC('month', {{}}.day) AS month, COUNT(*) FROM {JOINS[0]} GROUP BY month"
    assert 3 == len(parse(asked.format("v"), {**tables, "patients": born}).keys[0].values)
    with pytest.raises(QueryRefused, match="needs values that are known in public"):
        parse(asked.format("p"), {**tables, "patients": born})

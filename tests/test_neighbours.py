"""What one person adds to the statistics, for awkward rows of every kind: never more than the sensitivity says.

Everybody is in a cohort of their own, so one computation shows what each of many possible people would add. Two people
with different rows are one person in two neighbouring databases; that nobody's rows move another's is tested apart.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discretion.declaration.table import Lookup, Table
from discretion.engines import Cohorts, Rows
from discretion.engines import statement as built
from discretion.engines.duckdb import DuckDB
from discretion.errors import QueryRefused
from discretion.mechanisms.form import tally
from discretion.mechanisms.joint import form_choices
from discretion.plan.family import families
from discretion.query import Query, parse
from discretion.statistics import Measure, Request, Statistics

PEOPLE = 80
FAR = 9007199254740992  # 2^53: from here on, doubles are 2 apart
_ROWS = f"""
SELECT p::BIGINT AS id, (p + 1)::DOUBLE AS epsilon,
    [NULL, 'nan', 'inf', '-inf', '-0.0', '1e308', '-1e308', '3.5', '-7.25', '100', '{FAR + 2}'][1 + h % 11]::DOUBLE x,
    [NULL, 9223372036854775807, -9223372036854775808, 0, 5, {FAR + 1}][1 + (h // 11) % 6]::BIGINT AS i,
    [NULL, 170141183460469231731687303715884105727, -3, 40][1 + (h // 66) % 4]::HUGEINT AS wide,
    [NULL, '999.99', '-0.01', '2.50'][1 + (h // 264) % 4]::DECIMAL(5, 2) AS money,
    [NULL, 'a', 'b', 'other', 'A'][1 + (h // 1056) % 5] AS kind, [NULL, true, false][1 + (h // 5280) % 3] AS ok,
    [NULL, '2024-01-01', '2024-02-30', 'infinity', 'x'][1 + (h // 15840) % 5] AS note,
    [NULL, DATE '2024-01-01', DATE '2024-05-05'][1 + (h // 79200) % 3] AS day
FROM (SELECT p, (hash(p * 100 + r) // 7)::BIGINT AS h FROM range({PEOPLE}) a(p), range(4) b(r) WHERE r <= p % 4)"""
_CODES = f"SELECT * FROM (VALUES ({FAR}::BIGINT, 1), ({FAR + 1}, 2), ({FAR + 2}, 3), (5, 4)) codes(code, worth)"
_IDS = "SELECT '00000000-0000-0000-0000-000000000001'::UUID AS label, 1 AS worth"
QUERIES = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(x), COUNT(money), COUNT(note) FROM t WHERE ok",
    "SELECT COUNT(DISTINCT id) FROM t",
    "SELECT COUNT(DISTINCT id), COUNT(DISTINCT id) FILTER (WHERE x > 0) FROM t WHERE i >= 0",
    "SELECT kind, COUNT(*), COUNT(DISTINCT id), SUM(x) FROM t GROUP BY kind",
    "SELECT SUM(x), AVG(x), VARIANCE(x), MEDIAN(x) FROM t",
    "SELECT SUM(i), SUM(wide), SUM(money), AVG(money) FROM t WHERE NOT ok",
    "SELECT AVG(i), MEDIAN(i), MAX(wide) FROM t WHERE kind <> 'a'",
    "SELECT SUM(COALESCE(x, 90)), AVG(COALESCE(money, 2)) FROM t",
    "SELECT SUM(x * 2 - 400), AVG(-x), SUM(ABS(money) / 3) FROM t",
    f"SELECT AVG(LEAST(GREATEST(x, {FAR}), {FAR + 2})) FROM t",
    f"SELECT AVG(LEAST(GREATEST(x, {FAR}.99), {FAR + 1}.01)) FROM t",
    f"SELECT MEDIAN(LEAST(GREATEST(x, {FAR}.99), {FAR + 1}.01)) FROM t",
    f"SELECT VARIANCE(LEAST(GREATEST(i, {FAR}.99), {FAR + 1}.01)) FROM t",
    "SELECT SUM(COALESCE(LEAST(GREATEST(x, 1000), 1001), 1000)) FROM t GROUP BY CASE WHEN ok THEN 'yes' END",
    "SELECT COUNT(*), AVG(COALESCE(LEAST(GREATEST(x, 1000), 1001), 1000)) FROM t GROUP BY CASE WHEN ok THEN 'yes' END",
    "SELECT day, COUNT(*) FROM t GROUP BY day",
    "SELECT ok, kind, COUNT(*), MEDIAN(x) FROM t GROUP BY ALL",
    "SELECT COUNT(*), SUM(LEAST(GREATEST(worth, 0), 9)) FROM t JOIN codes ON x = codes.code",
    "SELECT COUNT(*), COUNT((x) + 1), SUM(LEAST(-(x), (i))) FROM t WHERE id < -(i)",
    "SELECT COUNT(*) FROM t LEFT JOIN codes ON i = codes.code WHERE worth IS NULL",
    "SELECT COUNT(*) FROM t JOIN labels ON note = labels.label",
    "SELECT COUNT(*) FROM t WHERE CAST(note AS DATE) > '2023-01-01' OR 1 / x > i % 0 OR wide * wide > i - 1",
    "SELECT COUNT(CASE WHEN ok THEN i ELSE CAST(x AS DECIMAL(38, 37)) END) FROM t",
    "WITH s AS (SELECT id AS who, x * x AS y FROM t) SELECT COUNT(DISTINCT who), SUM(LEAST(y, 9)) FROM s WHERE y >= 0",
]


class World:
    """A table of possible people, under one relation and one bound on rows."""

    def __init__(self, protects: Any, rows_per_person: int) -> None:
        self.engine = DuckDB(threads=1)
        with duckdb.connect() as maker:
            self.rows = maker.sql(_ROWS).to_arrow_table()
            found = {
                "t": self.rows,
                "codes": maker.sql(_CODES).to_arrow_table(),
                "labels": maker.sql(_IDS).to_arrow_table(),
            }
        places = {name: self.engine.attach(name, table) for name, table in found.items()}
        self.register = self.engine.attach("people", self.rows.select(["id", "epsilon"]))
        lookups = {
            name: Lookup(source=places[name], key=key, columns=dict(self.engine.schema(places[name])))
            for name, key in (("codes", "code"), ("labels", "label"))
        }
        self.table = Table(
            name="t",
            source=places["t"],
            person="id",
            epsilon="epsilon" if protects == "value" else "",
            register="t" if protects == "value" else "people",
            protects=protects,
            columns=dict(self.engine.schema(places["t"])),
            rows_per_person=rows_per_person,
            bounds={"x": (-10, 90.5), "i": (-5, 40), "wide": (30, 50), "money": (0.01, 500)},
            keys={"kind": ("a", "b", None), "day": ("2024-01-01", "2024-05-05")},
            lookups=lookups,
        )

    def parse(self, sql: str) -> Query:
        return parse(sql, {"t": self.table})

    def compute(self, sql: str) -> list[tuple[Measure, Statistics]]:
        query = self.parse(sql)
        apart = {} if self.table.epsilon else {"register": self.register, "person": "id", "epsilon": "epsilon"}
        cohorts = Cohorts(count=PEOPLE, levels={float(p + 1): p for p in range(PEOPLE)}, **apart)
        measures = [Measure(aggregate=one, histogram=one.kind == "quantile") for one in query.aggregates]
        request = Request(measures=tuple(measures), source=Rows(query=query, cohorts=cohorts))
        return list(zip(measures, self.engine.compute(request), strict=True))


def moves(contributions: Any, *, absent: bool) -> int:
    """The most one person can move the statistics: by coming (where they can be absent), or by having other rows."""
    states = {tuple(map(int, column)) for column in np.asarray(contributions).T}
    if absent:
        return max(sum(map(abs, state)) for state in states)
    return max((sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in combinations(states, 2)), default=0)


def excesses(world: World, sql: str) -> list[str]:
    """Where somebody moves a statistic further than its sensitivity."""
    found, absent = [], world.table.protects == "presence"
    for measure, statistics in world.compute(sql):
        one, k = measure.aggregate, measure.aggregate.rows_per_person
        rows = 0 if one.size_is_public else k if absent or one.groups == 1 else 2 * k
        most = {"totals": one.sensitivity, "counts": one.sensitivity if one.kind in ("count", "people") else rows}
        given = {"totals": statistics.totals, "counts": statistics.counts}
        if statistics.histogram is not None:
            cells = statistics.histogram.transpose(0, 2, 1).reshape(-1, statistics.histogram.shape[1])
            given, most = {"cells": cells}, {"cells": k if absent else 2 * k}
        if one.kind in ("count", "people") and one.size_is_public:
            continue  # no row is looked at
        for name, contributions in given.items():
            if (moved := moves(contributions, absent=absent)) > most[name]:
                found.append(f"{sql}: {one.kind} {name} moved by {moved}, at most {most[name]}")
    return found


# Answers that are released together --------------------------------------------------------------------------------

TOGETHER = [
    "SELECT COUNT(x), SUM(x), AVG(x), VARIANCE(x) FROM t",
    "SELECT COUNT(*), AVG(x) FROM t",
    "SELECT COUNT(*), SUM(money), STDDEV(money) FROM t WHERE x > -5",
    "SELECT kind, COUNT(*), COUNT(x), SUM(x), AVG(x) FROM t GROUP BY kind",
    "SELECT kind, COUNT(*), AVG(i), VARIANCE(i) FROM t GROUP BY kind",
    "SELECT ok, COUNT(*) FILTER (WHERE i > 0), AVG(x) FILTER (WHERE i > 0) FROM t GROUP BY ok",
    "SELECT day, COUNT(*), AVG(x) FILTER (WHERE ok), SUM(wide) FROM t GROUP BY day",
    "SELECT AVG(x), COUNT(*), COUNT(worth) FROM t LEFT JOIN codes ON x = codes.code",
]


def joint_excesses(world: World, sql: str) -> list[str]:
    """Where somebody moves what is released together further than its noise covers."""
    asked, computed = world.parse(sql).asked, world.compute(sql)
    excess = []
    for whole in families(asked):
        for family in (whole, *whole.smaller):
            grid, rows = asked[family.base].aggregate, computed[family.base][1]
            varies = any(asked[place].aggregate.kind == "variance" for place in family.places)
            base = replace(grid, kind="variance" if varies else "mean", sample=False)
            if varies and rows.squares is None:
                continue
            for form, lacking in form_choices(base, family.wide is not None):
                parts = [np.asarray(tally(one.quantity, rows, base)) / one.scale for one in form]
                if lacking is not None:
                    width = base.upper - base.lower
                    norm = width**2 if varies else width
                    missing = computed[family.wide][1].counts.astype(object) - rows.counts.astype(object)
                    parts.append(missing * norm / lacking.scale)
                moved = moved_together(np.concatenate(parts), absent=world.table.protects == "presence")
                if moved > 1:
                    excess.append(f"{sql}: {[one.quantity for one in form]} moved by {float(moved):g}")
    return excess


def moved_together(contributions: Any, *, absent: bool) -> Fraction:
    states = {tuple(map(Fraction, column)) for column in np.asarray(contributions).T}
    if absent:
        return max(sum(map(abs, state)) for state in states)
    return max(sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in combinations(states, 2))


RELATIONS = [("value", 1), ("value", 2), ("presence", 1), ("presence", 3)]


@pytest.mark.parametrize(("protects", "rows_per_person"), RELATIONS)
def test_nobody_moves_a_statistic_further_than_its_sensitivity(protects: str, rows_per_person: int) -> None:
    world = World(protects, rows_per_person)
    assert [] == [excess for sql in QUERIES for excess in excesses(world, sql)]


@pytest.mark.parametrize(("protects", "rows_per_person"), RELATIONS)
def test_nobody_moves_a_joint_release_further_than_its_noise(protects: str, rows_per_person: int) -> None:
    world = World(protects, rows_per_person)
    assert [] == [excess for sql in TOGETHER for excess in joint_excesses(world, sql)]
    shared = [sql for sql in TOGETHER if families(world.parse(sql).asked)]
    assert shared == TOGETHER or (protects, rows_per_person) == ("value", 1)  # where COUNT(*) is public, less is shared
    assert len(shared) >= 5


@pytest.mark.parametrize(("protects", "rows_per_person"), [("value", 2), ("presence", 3)])
def test_the_check_notices_joint_rows_that_are_not_bounded(
    protects: str, rows_per_person: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built._Build, "can_exceed", False)
    world = World(protects, rows_per_person)
    assert all(joint_excesses(world, sql) for sql in TOGETHER[:2])


def test_the_check_notices_counts_of_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count whose rows are not those of the mean, and more, would cost more than is charged."""
    monkeypatch.setattr("discretion.plan.family._counts_more", lambda count, _: count.aggregate.kind == "count")
    sql = "SELECT kind, COUNT(*) FILTER (WHERE x IS NULL), AVG(x) FROM t GROUP BY kind"
    assert joint_excesses(World("presence", 3), sql)


@pytest.mark.parametrize(("protects", "rows_per_person"), RELATIONS)
def test_the_check_notices_rows_that_are_not_bounded(
    protects: str, rows_per_person: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built._Build, "can_exceed", False)
    world = World(protects, rows_per_person)
    caught = [sql for sql in QUERIES if excesses(world, sql)]
    assert len(caught) > len(QUERIES) // 3


def test_the_rows_of_one_person_never_move_what_another_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.engines.engine.coin_key", lambda: "0" * 64)
    world, without = World("presence", 2), World("presence", 2)
    mask = np.asarray(without.rows["id"]) != 7
    without.engine.attach("t", without.rows.filter(pa.array(mask)))
    for sql in QUERIES:
        for (_, some), (_, fewer) in zip(world.compute(sql), without.compute(sql), strict=True):
            others = np.arange(PEOPLE) != 7
            assert np.array_equal(some.totals[:, others], fewer.totals[:, others]), sql


def test_only_people_themselves_are_counted_once() -> None:
    for expression in ("id % 2", "NULLIF(id, 3)", "CAST(id AS DOUBLE)", "CASE WHEN id = 3 THEN 1 END"):
        with pytest.raises(QueryRefused, match="only people can be counted once"):
            World("value", 1).parse(f"SELECT COUNT(DISTINCT {expression}) FROM t")


def test_texts_cannot_be_doubled_until_the_memory_ends() -> None:
    """Only the rows that a CASE picks would exhaust it, so a failure would tell whether there are any."""
    doubled = ", ".join(f"s{n} AS (SELECT y || y AS y FROM s{n - 1})" for n in range(1, 13))
    with pytest.raises(QueryRefused, match="can make a text of"):
        World("value", 1).parse(f"WITH s0 AS (SELECT note AS y FROM t), {doubled} SELECT COUNT(y) FROM s12")

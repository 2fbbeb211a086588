"""Subqueries with GROUP BY person that are joined: everybody who can exist in a small universe, in pairs of states."""

from typing import Any

import pytest
from sqlglot import exp

from discretion.engines import partnership
from test_joined_neighbours import (
    CASES,
    Universe,
    moved,
    moves_others,
    presence_always,
    size_is_public,
    too_few_rows,
    unlike,
)

VISITED = "(SELECT id, SUM(x) AS x, COUNT(*) AS n, MAX(day) AS day FROM visits GROUP BY id) v"
PUT = "(SELECT id, SUM(y) AS y, MAX(x) AS x FROM patients GROUP BY id HAVING MAX(x) > 0) p"
PAIRS = [("patients p", VISITED, "p"), ("visits v", PUT, "v"), (VISITED, "patients p", "v"), (VISITED, PUT, "v")]
JOINS = [(f"{one} {side}JOIN {other} ON v.id = p.id", who) for one, other, who in PAIRS for side in ("", "LEFT ")]
GROUPED = (
    "SELECT {who}.x > 2 AS high, COUNT(*), SUM(LEAST(GREATEST(y, 3), 9)), COUNT(DISTINCT {who}.id) FROM {} GROUP BY 1"
)
ASKED = [
    "SELECT COUNT(*), COUNT(p.x), SUM(LEAST(GREATEST(v.x, -4), 9)), AVG(p.x) FROM {}",
    "SELECT MEDIAN(LEAST(GREATEST(y, 0), 9)), SUM(LEAST(GREATEST(v.x * y, 20), 30)) FROM {} WHERE v.x < 9 OR y IS NULL",
    "SELECT COUNT(*), SUM(p.x) FROM {} WHERE {who}.id > 3 AND (day > DATE '2024-01-20' OR p.x > 1)",
]
QUERIES = [GROUPED.format(join, who=who) for join, who in JOINS]
MORE = [one.format(join, who=who) for one in ASKED for join, who in JOINS]


@pytest.fixture(autouse=True)
def _same_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.engines.engine.coin_key", lambda: "0" * 64)


def wrong(queries: list[str], first: str, second: str, rows_per_person: int) -> list[str]:
    """Return where somebody moves a statistic further than its sensitivity."""
    world = Universe(first, second, rows_per_person)
    for sql in queries:
        assert {world.protects(sql)} == {measure.aggregate.protects for measure in world.request(sql).measures}
    return [excess for sql in queries for excess in moved(world, sql)]


def test_nobody_moves_a_statistic_further_than_its_sensitivity() -> None:
    assert [] == wrong(QUERIES[:2] + QUERIES[4:6], "presence", "presence", 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_nobody_moves_any_statistic_further_than_its_sensitivity(case: tuple[str, str, int]) -> None:
    assert [] == wrong(QUERIES + MORE, *case)


@pytest.mark.slow
def test_the_order_of_rows_has_no_influence() -> None:
    one, other = Universe("presence", "presence", 2), Universe("presence", "presence", 2, backwards=True)
    assert [] == [sql for sql in QUERIES + MORE if unlike(one, other, sql)]


@pytest.mark.slow
def test_nobody_moves_what_another_adds() -> None:
    assert [] == moves_others(QUERIES + MORE)


@pytest.mark.slow
def test_every_question_is_tried_on_made_up_rows() -> None:
    world = Universe("presence", "value", 2)
    for sql in QUERIES + MORE:
        world.engine.check(world.request(sql))


# Planted bugs -------------------------------------------------------------------------------------------------------


def not_together(patch: pytest.MonkeyPatch) -> None:
    """A subquery that is joined has two rows of somebody."""
    whole = partnership._summarised

    def twice(*given: Any) -> exp.Select:
        rows = whole(*given)
        return exp.select("*").from_(exp.union(rows, rows.copy(), distinct=False).subquery("twice"))

    patch.setattr(partnership, "_summarised", twice)


PLANTED: dict[str, tuple[Any, str, str, int]] = {
    "left": (presence_always, "presence", "presence", 2),
    "value": (presence_always, "presence", "value", 2),
    "size": (size_is_public, "value", "presence", 1),
    "k": (too_few_rows, "presence", "presence", 2),
    "twice": (not_together, "presence", "presence", 1),
}


SLOW = {"value", "size"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in PLANTED]
)
def test_the_check_notices_a_planted_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, first, second, rows_per_person = PLANTED[name]
    plant(monkeypatch)
    world = Universe(first, second, rows_per_person)
    assert any(moved(world, sql) for sql in QUERIES + MORE)


def test_the_check_notices_that_rows_meet_the_totals_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = partnership.same_person
    monkeypatch.setattr(partnership, "same_person", lambda *given: (whole(*given)[1],) * 2)
    assert moves_others(QUERIES[:1])

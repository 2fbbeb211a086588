"""What was released is paid for once: whatever is computed from the same aggregates is free, then and later."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from discretion import answer
from discretion.answer import compound, drawn
from discretion.answer.drawn import Drawn
from discretion.answer.state import MOST_NAMED
from discretion.declaration.table import Table
from discretion.noise import simulation
from discretion.query import parse

REGIONS = ["N", "S", "W"]
FIRST = "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 20 GROUP BY region"
# The same aggregates, and the same SQL over what the first question released, in a table r.
LATER = {
    "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 20 GROUP BY region ORDER BY n DESC, region": (
        "SELECT region, n, s FROM r ORDER BY n DESC, region"
    ),
    "SELECT region AS place, COUNT(*) AS people, SUM(age) AS years FROM t WHERE age > 20 GROUP BY region": (
        "SELECT region, n, s FROM r"
    ),
    "SELECT COUNT(*) - 3 AS l, SUM(age) / COUNT(*) AS m FROM t WHERE age > 20 GROUP BY region HAVING COUNT(*) > 30": (
        "SELECT n - 3, s / n FROM r WHERE n > 30"
    ),
    "SELECT region, COUNT(*) AS n FROM t WHERE age > 20 GROUP BY region ORDER BY SUM(age) LIMIT 1 OFFSET 1": (
        "SELECT region, n FROM r ORDER BY s LIMIT 1 OFFSET 1"
    ),
    "SELECT MAX(b) - MIN(b) AS span, COUNT(*) AS rows FROM (SELECT region, COUNT(*) AS a, SUM(age) AS b FROM t "
    "WHERE age > 20 GROUP BY region)": "SELECT MAX(s) - MIN(s), COUNT(*) FROM r",
    "SELECT SUM(age) AS s, region, COUNT(*) AS n FROM t WHERE age > 20 GROUP BY region": "SELECT s, region, n FROM r",
    "SELECT SUM(age) AS s, COUNT(*) AS n, sum(AGE) AS twice FROM t WHERE age > 20 AND age > 20 GROUP BY region": (
        "SELECT s, n, s FROM r"
    ),
    "SELECT region, COUNT(*) AS n FROM t WHERE age > 20 GROUP BY region": "SELECT region, n FROM r",
    "SELECT SUM(age) AS s, region FROM t WHERE age > 20 GROUP BY region ORDER BY s DESC": (
        "SELECT s, region FROM r ORDER BY s DESC"
    ),
    "SELECT region, s / SUM(s) OVER () AS part FROM (SELECT region, SUM(age) AS s FROM t WHERE age > 20 "
    "GROUP BY region)": "SELECT region, s / SUM(s) OVER () FROM r",
}
# Questions with several keys, conditions and families, and questions about some of the same in another order.
SEVERAL = {
    "SELECT ill, region, COUNT(*) AS n, AVG(age) AS m FROM t WHERE age > 20 AND id <> 7 GROUP BY ill, region": {
        "SELECT region, ill, AVG(age) AS m, COUNT(*) AS n FROM t WHERE id <> 7 AND age > 20 GROUP BY region, ill": (
            "SELECT region, ill, m, n FROM r ORDER BY region, ill"
        ),
        "SELECT AVG(age) AS m FROM t WHERE id <> 7 AND age > 20 GROUP BY region, ill ORDER BY region DESC, ill": (
            "SELECT m FROM r ORDER BY region DESC, ill"
        ),
    },
    "SELECT CORR(age, pay) AS c, REGR_SLOPE(age, pay) AS s, COUNT(*) AS n FROM t": {
        "SELECT REGR_SLOPE(age, pay) AS s FROM t": "SELECT s FROM r",
        "SELECT COUNT(*) AS n, REGR_SLOPE(age, pay) AS s, CORR(age, pay) AS c FROM t": "SELECT n, s, c FROM r",
    },
    "SELECT MODE(region) AS m, QUANTILE_CONT(age, [0.25, 0.5]) AS q FROM t WHERE region <> 'W'": {
        "SELECT QUANTILE_CONT(age, 0.5) AS h, MODE(region) AS m FROM t WHERE region <> 'W'": (
            'SELECT "q_0.5", m FROM r'
        ),
    },
}
OTHERS = (
    "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 21 GROUP BY region",
    "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM t GROUP BY region",
    "SELECT region, COUNT(*) AS n, SUM(age + 1) AS s FROM t WHERE age > 20 GROUP BY region",
    "SELECT region, COUNT(*) FILTER (WHERE ill) AS n, SUM(age) AS s FROM t WHERE age > 20 GROUP BY region",
    "SELECT ill, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 20 GROUP BY ill",
    "SELECT COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 20",
    "SELECT region, COUNT(*) AS n, AVG(age) AS s FROM t WHERE age > 20 GROUP BY region",
    "SELECT region, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m FROM t WHERE age > 20 GROUP BY region",
    "SELECT region, ill, COUNT(*) AS n FROM t WHERE age > 20 GROUP BY region, ill",
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[dn.Connection]:
    rng = simulation(6)
    regions = [REGIONS[int(place)] for place in rng.choice(3, size=300)]
    ill, ages, chosen = rng.random(300) < 0.4, rng.integers(0, 100, 300), rng.choice([0.5, 2.0], 300)
    pay = [float(one) for one in 2 * ages + rng.integers(0, 50, 300)]
    rows = pa.table({"id": [*range(300)], "epsilon": chosen, "region": regions, "ill": ill, "age": ages, "pay": pay})
    with dn.connect(tmp_path / "l.discretion") as opened:
        how: Any = {"bounds": {"age": (0, 99), "pay": (0, 250)}, "keys": {"region": REGIONS}}
        opened.protect("t", rows, person="id", epsilon="epsilon", **how)
        yield opened


def costs(db: dn.Connection, sql: str, **how: Any) -> bool:
    """Return whether somebody pays for a question."""
    before = db.head()
    db.sql(sql, **how)
    return bool(before != db.head())


@pytest.mark.parametrize("assume", [None, "gradual", "independent"])
def test_what_is_computed_from_the_same_aggregates_is_free_and_plain(db: dn.Connection, assume: Any) -> None:
    first = db.sql(FIRST, assume=assume)
    with duckdb.connect() as plain:
        plain.register("r", pa.table(first.columns))
        for sql, above in LATER.items():
            before = db.head()
            found, truth = list(db.sql(sql, assume=assume)), plain.sql(above).fetchall()
            assert before == db.head(), sql
            assert [tuple(row) for row in found] == [pytest.approx(row) for row in truth], sql
    again = db.sql(FIRST, assume=assume)
    assert (first.columns, first.errors, first.guarantee) == (again.columns, again.errors, again.guarantee)
    assert str(first.explain()) == str(again.explain())


def compared(db: dn.Connection, sql: str, later: Mapping[str, str]) -> None:
    """Ask, and compare later questions with plain SQL over what was released; they must be free."""
    first = db.sql(sql, share=0.9)
    with duckdb.connect() as plain:
        plain.register("r", pa.table(first.columns))
        for other, above in later.items():
            before = db.head()
            found, truth = list(db.sql(other, share=0.9)), plain.sql(above).fetchall()
            assert before == db.head(), other
            assert [tuple(row) for row in found] == truth, other


@pytest.mark.parametrize("sql", SEVERAL)
def test_the_order_of_aggregates_keys_and_conditions_makes_no_difference(db: dn.Connection, sql: str) -> None:
    compared(db, sql, SEVERAL[sql])


def test_groups_in_another_order_that_were_read_as_they_stand_would_be_noticed(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn, "_places", lambda keys, query: np.arange(len(query.groups)))
    sql = next(iter(SEVERAL))
    with pytest.raises(AssertionError):
        compared(db, sql, SEVERAL[sql])


def test_aggregates_that_were_read_by_their_place_would_be_noticed(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Drawn.from_dict
    monkeypatch.setattr(
        Drawn, "from_dict", lambda plain, query: read({**plain, "labels": [*query.labels, *plain["labels"]]}, query)
    )
    with pytest.raises(AssertionError):
        compared(db, FIRST, LATER)


def test_errors_of_a_few_aggregates_are_those_of_all_of_them(db: dn.Connection) -> None:
    both = "SELECT SUM(age) - AVG(age) AS d, AVG(age) AS m, COUNT(*) AS n FROM t WHERE ill"
    first = db.sql(both, share=0.5)
    later = db.sql("SELECT COUNT(*) AS n, AVG(age) AS m, SUM(age) - AVG(age) AS d FROM t WHERE ill", share=0.5)
    alone = db.sql("SELECT AVG(age) AS m FROM t WHERE ill", share=0.5)
    assert {name: first.errors[name] for name in "nmd"} == later.errors
    assert (first.errors["m"], first.guarantee, first.entry) == (alone.errors["m"], alone.guarantee, alone.entry)


def test_the_explanation_of_a_few_aggregates_does_not_name_the_others(db: dn.Connection) -> None:
    secret = "COUNT_IF(age = 8123457) AS c, SUM(LEAST(age, 8123457)) AS s"
    db.sql(f"SELECT MEDIAN(age) AS h, {secret}, AVG(LEAST(age, 8123457)) AS m FROM t WHERE ill", with_interval=True)
    before = db.head()
    alone = db.sql("SELECT MEDIAN(age) AS h FROM t WHERE ill", with_interval=True)
    assert before == db.head()
    shown = alone.explain()
    assert "8123457" not in shown + repr(alone) + json.dumps(alone.to_dict()) + alone.stored()
    assert ["MEDIAN(age)", "MEDIAN(age), from below", "MEDIAN(age), from above"] == [
        sheet.title.partition(":")[0] for sheet in shown.sheets[:-1]
    ]
    assert "Paid together with other aggregates." == shown.sheets[-1].notes[-1]


def everything(release: dn.Release) -> str:
    """Return all that is shown of an answer."""
    return "\n".join(
        [str(release), release._repr_html_(), json.dumps(release.to_dict()), release.stored(), str(release.explain())]
    )


@pytest.mark.parametrize("how", [{}, {"with_interval": True}])
@pytest.mark.parametrize("part", ["COUNT(*)", "SUM(age)", "CORR(age, pay)", "MEDIAN(age)"])
def test_the_answer_for_a_few_aggregates_shows_nothing_of_the_others(db: dn.Connection, part: str, how: Any) -> None:
    first = db.sql("SELECT COUNT(*), CORR(age, pay), SUM(age), MEDIAN(age) FROM t WHERE ill", share=0.01, **how)
    own = [name for label, _, name in (one.title.rpartition(": ") for one in first.explain().sheets) if part in label]
    told = ("split over", first.mechanism)
    assert all(one in everything(first) for one in told)
    before = db.head()
    alone = db.sql(f"SELECT {part} FROM t WHERE ill", share=0.01, **how)
    assert before == db.head()
    assert " + ".join(dict.fromkeys(own)) == alone.mechanism
    assert not any(one in everything(alone) for one in told)
    wide = replace(first, comparison=("An assumption would make errors up to 1.7 times smaller.",))
    assert "times smaller" not in everything(compound._about(wide, [part]))


def test_many_aggregates_are_one_question_in_any_order(db: dn.Connection) -> None:
    columns = [f"COUNT_IF(age > {limit}) AS c{limit}" for limit in range(MOST_NAMED + 1)]
    assert costs(db, f"SELECT {', '.join(columns)} FROM t", share=0.9)
    assert not costs(db, f"SELECT {', '.join(reversed(columns))} FROM t", share=0.9)


def test_parts_of_a_statement_may_be_written_in_any_order(db: dn.Connection) -> None:
    whole = "SELECT COUNT(*) AS n, SUM(age) AS s FROM t WHERE ill"
    parts = "SELECT SUM(age) AS s, COUNT(*) AS n FROM t WHERE NOT ill"
    first = db.sql(f"SELECT * FROM ({whole}) UNION ALL SELECT n, s FROM ({parts}) ORDER BY n", share=0.5)
    before = db.head()
    swapped = whole.replace("COUNT(*) AS n, SUM(age) AS s", "SUM(age) AS s, COUNT(*) AS n")
    again = db.sql(f"SELECT n, s FROM ({parts}) UNION ALL SELECT n, s FROM ({swapped}) ORDER BY n", share=0.5)
    assert before == db.head()
    assert first.columns == again.columns


def test_a_question_for_a_few_groups_has_paid_for_all_of_them(db: dn.Connection) -> None:
    few = db.sql(f"{FIRST} HAVING COUNT(*) > 1e6")
    assert [] == list(few)
    before = db.head()
    whole = db.sql(FIRST)
    assert REGIONS == list(whole.columns["region"])
    assert before == db.head()


def test_errors_are_those_of_what_is_shown(db: dn.Connection) -> None:
    first = db.sql(FIRST)
    later = db.sql(
        "SELECT region, 3 * COUNT(*) AS many, SUM(age) AS s FROM t WHERE age > 20 GROUP BY region ORDER BY region DESC"
    )
    assert [3 * error.half_width() for error in reversed(first.errors["n"])] == pytest.approx(
        [error.half_width() for error in later.errors["many"]]
    )
    assert tuple(reversed(first.errors["s"])) == later.errors["s"]


@pytest.mark.parametrize("sql", OTHERS)
def test_other_aggregates_groups_and_rows_are_paid_for(db: dn.Connection, sql: str) -> None:
    assert costs(db, FIRST, share=0.05)
    assert not costs(db, f"{FIRST} ORDER BY n", share=0.05)
    assert costs(db, sql, share=0.05)
    assert costs(db, FIRST, share=0.06)
    assert costs(db, FIRST, share=0.05, assume="independent")


def test_an_identity_without_the_rows_asked_about_would_be_noticed(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        answer, "identity_of", lambda _, query, __: " ".join(one.plain.sql("duckdb") for one in query.asked)
    )
    assert costs(db, FIRST)
    assert not costs(db, OTHERS[0])


def test_what_was_drawn_is_kept_exactly() -> None:
    rng = simulation(8)
    errors = [[dn.Error(bias=0.5, noise=float(n // 2)) for n in range(5)], [dn.Error(bias=0.0, noise=1.5)] * 5]
    released = [rng.normal(size=5), [1e300, float("nan"), -0.0, 5e-324, 1 / 3]]
    first = Drawn(released=[pa.array(each).to_numpy() for each in released], errors=errors, together=[(0, 1)])
    columns = {"id": "BIGINT", "age": "BIGINT"}
    table = Table(name="t", source="t.csv", register="t", person="id", protects="value", columns=columns)
    five = replace(table, keys={"age": (0, 1, 2, 3, 4)})
    query = parse("SELECT COUNT(*), COUNT_IF(age > 3) FROM t GROUP BY age", {"t": five})
    again = Drawn.from_dict(json.loads(json.dumps(first.to_dict(query), allow_nan=False)), query)
    assert [repr(each.tolist()) for each in first.released] == [repr(each.tolist()) for each in again.released]
    assert errors == again.errors
    assert [[0, 1]] == again.together

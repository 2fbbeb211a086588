"""What was released is paid for once: whatever is computed from the same aggregates is free, then and later."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import discretion as dn
from discretion import answer
from discretion.drawn import Drawn
from discretion.noise import simulation

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
}
OTHERS = (
    "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 21 GROUP BY region",
    "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM t GROUP BY region",
    "SELECT region, COUNT(*) AS n, SUM(age + 1) AS s FROM t WHERE age > 20 GROUP BY region",
    "SELECT region, COUNT(*) FILTER (WHERE ill) AS n, SUM(age) AS s FROM t WHERE age > 20 GROUP BY region",
    "SELECT ill, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 20 GROUP BY ill",
    "SELECT COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 20",
    "SELECT region, COUNT(*) AS n FROM t WHERE age > 20 GROUP BY region",
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[dn.Connection]:
    rng = simulation(6)
    regions = [REGIONS[int(place)] for place in rng.choice(3, size=300)]
    ill, ages, chosen = rng.random(300) < 0.4, rng.integers(0, 100, 300), rng.choice([0.5, 2.0], 300)
    rows = pa.table({"id": [*range(300)], "epsilon": chosen, "region": regions, "ill": ill, "age": ages})
    with dn.connect(tmp_path / "l.discretion") as opened:
        how: Any = {"bounds": {"age": (0, 99)}, "keys": {"region": REGIONS}}
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
    drawn = Drawn(released=[pa.array(each).to_numpy() for each in released], errors=errors, together=[(0, 1)])
    again = Drawn.from_dict(json.loads(json.dumps(drawn.to_dict(), allow_nan=False)))
    assert [repr(each.tolist()) for each in drawn.released] == [repr(each.tolist()) for each in again.released]
    assert errors == again.errors
    assert [[0, 1]] == again.together

"""SQL above released values: the plain answers, what it costs, and that it reaches nothing but these values."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from discretion import answer
from discretion.answer import compound, derived
from discretion.answer.propagation import Moves, ReleasedValue
from discretion.engines.duckdb import above
from discretion.errors import BudgetExhausted, QueryRefused
from discretion.noise import simulation
from discretion.query import division
from discretion.release import Error

REGIONS = ["N", "S", "W"]
STATEMENTS = [
    "SELECT region, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS part FROM t WHERE ill GROUP BY 1 ORDER BY n",
    "SELECT year, n, LAG(n) OVER (ORDER BY year) AS before FROM (SELECT 2000 + age // 50 AS year, COUNT(*) AS n FROM t "
    "GROUP BY 1) ORDER BY year",
    "WITH a AS (SELECT region, AVG(age) AS m FROM t GROUP BY region) SELECT a.region, b.region AS other, b.m - a.m AS d"
    " FROM a JOIN a b ON a.region < b.region ORDER BY ALL",
    "SELECT AVG(n) AS a, MAX(n) - MIN(n) AS span FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)",
    "SELECT region, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM t GROUP BY region QUALIFY place < 3 ORDER BY 1",
    "SELECT * FROM (SELECT region, ill, COUNT(*) AS n FROM t GROUP BY ALL) PIVOT (SUM(n) FOR ill IN (true, false)) "
    "ORDER BY region",
    "SELECT 'ill' AS who, COUNT(*) AS n FROM t WHERE ill UNION ALL SELECT 'all', COUNT(*) FROM t ORDER BY who",
    "SELECT region, COUNT(*) / (SELECT COUNT(*) FROM t) AS part FROM t GROUP BY region ORDER BY region",
    "WITH old AS (SELECT * FROM t WHERE age > 50) SELECT LOWER(region) || '!' AS r, ROUND(COUNT(*)) AS n FROM old "
    "GROUP BY region HAVING COUNT(*) > 1 ORDER BY SUM(COUNT(*)) OVER () - COUNT(*)",
    "SELECT region, CASE WHEN COUNT(*) > 30 THEN 'many' ELSE regexp_replace(region, 'N', 'x') END AS c, COUNT(*) AS n "
    "FROM t GROUP BY region ORDER BY region",
    'SELECT x.region, "ILL", COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY "region") AS part FROM t x GROUP BY region, '
    "x.ill ORDER BY x.region, ill",
    "SELECT LOWER(t.r) AS low, RANK() OVER (ORDER BY COUNT(*)) AS place FROM (SELECT region AS r FROM t) AS t "
    "GROUP BY LOWER(r) ORDER BY low",
]


def people(epsilon: float = 1_000.0) -> pa.Table:
    rng = simulation(5)
    regions = [REGIONS[int(place)] for place in rng.choice(3, size=120, p=[0.5, 0.3, 0.2])]
    ill, ages = rng.random(120) < 0.4, rng.integers(0, 100, 120)
    return pa.table({"id": [*range(120)], "epsilon": [epsilon] * 120, "region": regions, "ill": ill, "age": ages})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[dn.Connection]:
    with dn.connect(tmp_path / "l.discretion") as opened:
        how: Any = {"bounds": {"age": (0, 99)}, "keys": {"region": REGIONS}}
        opened.protect("t", people(), person="id", epsilon="epsilon", **how)
        yield opened


def alike(found: Any, truth: Any) -> bool:
    if isinstance(truth, int | float) and not isinstance(truth, bool):
        return abs(found - truth) < 0.5  # noise: below 1e-10
    return bool(found == truth)


def test_statements_have_their_plain_answers(db: dn.Connection) -> None:
    with duckdb.connect() as plain:
        plain.register("t", people())
        for sql in STATEMENTS:
            truth, found = plain.sql(sql).fetchall(), list(db.sql(sql, share=0.09))
            assert len(truth) == len(found), sql
            same = [
                alike(*pair) for row, other in zip(found, truth, strict=True) for pair in zip(row, other, strict=True)
            ]
            assert all(same), (sql, found, truth)


def test_another_statement_above_the_same_part_is_free(db: dn.Connection) -> None:
    first = db.sql(STATEMENTS[3])
    before = db.head()
    assert first.value == db.sql(STATEMENTS[3]).value
    db.sql("SELECT region, COUNT(*) FROM t GROUP BY region")  # the part itself, as an ordinary question
    db.sql("SELECT SUM(n) AS total FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)")
    assert before == db.head()


def test_a_statement_that_fails_loses_nothing(db: dn.Connection) -> None:
    with pytest.raises(QueryRefused, match="fails"):
        db.sql("SELECT CAST(region || n AS INTEGER) AS x FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)")
    assert 3 == len(db.history())  # it failed on made-up values, before anybody paid
    sql = (
        "SELECT CAST(IF(n > 2, region, '1') AS INTEGER) AS x FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)"
    )
    with pytest.raises(QueryRefused, match="fails"):
        db.sql(sql)
    before = db.head()
    assert 3 == len(db.sql("SELECT region, COUNT(*) FROM t GROUP BY region"))
    assert before == db.head()
    assert 0 == len(db.stops())


def test_every_part_is_charged(db: dn.Connection) -> None:
    sql = "SELECT region, COUNT(*) / (SELECT COUNT(*) FROM t WHERE ill) AS part FROM t GROUP BY region"
    db.sql(sql, share=0.2)
    spent = db.balance().to_pandas()["spent"].sum()
    assert pytest.approx(200, abs=0.01) == spent
    assert {"part 0, COUNT(*)", "part 1, COUNT(*)"} == {one.label for one in db.explain(sql).choices}


def test_parts_are_refused_together(db: dn.Connection) -> None:
    db.sql("SELECT COUNT(*) FROM t WHERE age > 3", share=0.95)
    before = db.head()
    with pytest.raises(BudgetExhausted):
        db.sql(STATEMENTS[7], share=0.09)
    assert before == db.head()


def test_errors_are_passed_on_simulated_or_unknown(db: dn.Connection) -> None:
    sql = (
        "SELECT region, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS part, COUNT(*) * 2 AS twice, "
        "MEDIAN(age) AS m, MEDIAN(age) + 1 AS more, LENGTH(region) AS one FROM t GROUP BY region"
    )
    found = db.sql(sql, share=0.01)
    part = db.sql("SELECT region, COUNT(*), MEDIAN(age) FROM t GROUP BY region", share=0.01)
    assert part.errors["COUNT(*)" if "COUNT(*)" in part.errors else "count(*)"] == found.errors["n"]
    assert ["rank"] * 3 == [one.unit for one in found.errors["m"]]
    assert all(one.simulated and one.noise > 0 for one in found.errors["part"])
    noise = found.errors["n"][0].total
    assert all(1.3 * noise < one.noise < 2.8 * noise for one in found.errors["twice"])
    assert all(one.noise == float("inf") for one in found.errors["more"])
    assert "one" not in found.errors
    assert any("simulated" in remark for remark in found.remarks())
    assert found.errors == db.sql(sql, share=0.01).errors  # the same draws every time


def test_biases_of_all_groups_may_have_one_direction(tmp_path: Path) -> None:
    """With nothing assumed, every count may be too small by its bias: so may their sum, by all of them together."""
    with dn.connect(tmp_path / "l.discretion") as opened:
        mixed = people().set_column(1, "epsilon", pa.array([0.1, 5.0, 5.0] * 40))
        opened.protect("t", mixed, person="id", epsilon="epsilon", keys={"region": REGIONS})
        how: Any = {"share": 0.5, "mechanism": "stretch"}
        part = opened.sql("SELECT region, COUNT(*) AS n FROM t GROUP BY region", **how)
        biases = sum(one.bias for one in part.errors["n"])
        total = opened.sql("SELECT SUM(n) AS n FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)", **how)
    assert biases > 10
    assert total.errors["n"][0].total > 0.9 * biases


def test_errors_of_linear_numbers_are_added_up(db: dn.Connection) -> None:
    """Without draws: independent noises of groups and parts by their squares, those of one group at their worst."""
    inner = "SELECT region, COUNT(*) AS n FROM t GROUP BY region"
    part = db.sql(inner, share=0.01).errors["n"]
    found = db.sql(f"SELECT SUM(n) AS s, AVG(n) * 6 - 1 AS a, SUM(n * n) AS q FROM ({inner})", share=0.01).errors
    together = sum(one.noise**2 for one in part) ** 0.5
    assert [together, 2 * together] == pytest.approx([found["s"][0].noise, found["a"][0].noise])
    assert [False, False, True] == [found[name][0].simulated for name in "saq"]
    windows = db.sql(f"SELECT region, n - LAG(n, 1, 0) OVER (ORDER BY region) AS d FROM ({inner})", share=0.01)
    expected = [part[0].noise, *((a.noise**2 + b.noise**2) ** 0.5 for a, b in pairwise(part))]
    assert expected == pytest.approx([one.noise for one in windows.errors["d"]])


def test_a_number_with_a_kink_or_a_curve_is_not_linear() -> None:
    cells = [ReleasedValue(part=0, row=row, column=0, error=Error(bias=0.0, noise=2.0)) for row in range(2)]
    drawn = np.array([[1.0, -3.0], [-5.0, 0.5]])
    moves = Moves(cells=cells, drawn=drawn)

    def error(of: Any) -> Error | None:
        start = np.array([10.0, 4.0])
        alone = [of(start + cells[0].step * np.eye(2)[place]) for place in range(2)]
        return moves.error(of(start), alone, [of(start + move) for move in drawn])

    linear = error(lambda x: 3 * x[0] - x[1] + 7)
    assert linear is not None
    assert (0.0, pytest.approx(40**0.5)) == (linear.bias, linear.noise)
    assert error(lambda x: x[0] * x[1]) is None
    assert error(lambda x: max(x[0], x[1] + 3)) is None
    assert error(lambda x: float(round(x[0] / 3))) is None


def test_aggregates_released_together_may_share_their_noise(tmp_path: Path) -> None:
    """Nobody knows how the noises of two columns of a part are related, so they count as if they added up."""
    inner = "SELECT COUNT(*) AS n, SUM(age) AS s FROM t WHERE ill"
    with dn.connect(tmp_path / "l.discretion") as opened:
        opened.protect("t", people(epsilon=1.0), person="id", epsilon="epsilon", bounds={"age": (0, 99)})
        part = opened.sql(inner)
        found = opened.sql(f"SELECT 100 * n + s AS up, s - 100 * n AS down FROM ({inner})")
    together = 100 * part.errors["n"][0].noise + part.errors["s"][0].noise
    assert found.errors["up"][0].total > 0.8 * together
    assert found.errors["down"][0].total > 0.8 * together


def test_a_number_that_happens_to_be_a_released_one_has_not_its_error() -> None:
    """n + m is n where m came out as 0, but only in the answer, not with other noise."""
    worlds = [{"part_0": pa.table({"_a0": [n], "_a1": [m]})} for n, m in ((5.0, 0.0), (6.1, 0.3))]
    found = [{"both": (5.0,), "n": (5.0,)}, {"both": (6.4,), "n": (6.1,)}]
    assert derived._origin("both", found, worlds) is None
    assert (0, 0) == derived._origin("n", found, worlds)


def test_noise_that_decides_which_value_is_taken_leaves_its_error_unknown(db: dn.Connection) -> None:
    """The largest of noisy counts is too large, and no draw around it shows that."""
    inner = "SELECT region, COUNT(*) AS n FROM t GROUP BY region"
    for text in (
        f"SELECT MAX(n) AS x FROM ({inner})",
        f"SELECT SUM(n) AS x FROM (SELECT * FROM ({inner}) ORDER BY n DESC LIMIT 1)",
        f"SELECT SUM(n) AS x FROM ({inner}) WHERE n > 30",
        "SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS x FROM t GROUP BY region",
    ):
        assert all(one.noise == float("inf") for one in db.sql(text, share=0.01).errors["x"]), text


def test_rows_named_by_numbers_keep_their_errors_in_any_order(tmp_path: Path) -> None:
    with dn.connect(tmp_path / "l.discretion") as opened:
        opened.protect("t", people(epsilon=0.5), person="id", epsilon="epsilon")
        found = opened.sql(
            "SELECT k, 2 * n AS f, RANK() OVER (ORDER BY n) AS r FROM (SELECT CASE WHEN age < 30 THEN 1 WHEN age < 60"
            " THEN 2 ELSE 3 END AS k, COUNT(*) AS n FROM t GROUP BY k) ORDER BY f DESC"
        )
    assert "k" not in found.errors
    assert all(one.noise > 0 and not one.simulated for one in found.errors["f"])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM (SELECT QUANTILE_CONT(age, [0.2, 0.8]) AS q, COUNT(*) AS n FROM t)",
        "SELECT mo, n FROM (SELECT MODE(region) AS mo, COUNT(*) AS n FROM t)",
        "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM t GROUP BY region USING SAMPLE 10%",
        "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM t GROUP BY region WITH ROLLUP",
        "WITH part_0 AS (SELECT 42 AS _a0) SELECT COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM t",
        "WITH t AS (SELECT 42 AS cost) SELECT COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM t",
        "SELECT n, (SELECT MAX(name) FROM pg_settings) AS s FROM (WITH pg_settings AS (SELECT 1 AS q) SELECT n + q "
        "AS n FROM (SELECT COUNT(*) AS n FROM t), pg_settings)",
        'SELECT n, (SELECT COUNT(*) FROM "/etc/passwd.csv") AS s FROM (WITH "/etc/passwd.csv" AS (SELECT 1 AS q) '
        'SELECT n + q AS n FROM (SELECT COUNT(*) AS n FROM t), "/etc/passwd.csv")',
    ],
)
def test_what_would_be_misread_is_refused_before_the_charge(db: dn.Connection, text: str) -> None:
    before = db.head()
    with pytest.raises(QueryRefused):
        db.sql(text, share=0.01)
    assert before == db.head()


# Nothing else can be reached ----------------------------------------------------------------------------------------

TABLES = {"part_0": pa.table({"_k0": ["N", "S"], "_a0": [10.0, 30.0]})}
ESCAPES = [
    *(
        "SELECT random() FROM part_0",
        "SELECT now()",
        "SELECT current_date",
        "SELECT current_timestamp",
        "SELECT today()",
    ),
    *("SELECT getenv('HOME')", "SELECT current_setting('memory_limit')", "SELECT version()", "SELECT uuid()"),
    *("SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM glob('/*')"),
    *("SELECT * FROM read_text('/etc/passwd')", "FROM parquet_metadata('x')", "SELECT * FROM duckdb_settings()"),
    *("SELECT * FROM pg_catalog.pg_tables", "SELECT * FROM information_schema.tables", "SELECT * FROM sqlite_master"),
    *("SELECT * FROM range(10)", "SELECT * FROM query('select 1')", "SELECT unnest(range(1000000000))", "SELECT ?"),
    *("PRAGMA version", "ATTACH 'x.db'", "COPY part_0 TO '/tmp/x'", "INSTALL httpfs", "LOAD httpfs", "SET threads = 3"),
    *("SELECT * FROM part_0 USING SAMPLE 1", "SELECT * FROM part_0 TABLESAMPLE 10%", "SELECT setseed(0.1)"),
    *("SELECT nextval('x')", "SELECT getvariable('x')", "SELECT txid_current()", "SELECT error('x')", "SELECT hash(1)"),
    *("CREATE TABLE x(a INT)", "SELECT * FROM part_0; SELECT 1", "SELECT * FROM (SHOW TABLES)", "EXPLAIN SELECT 1"),
    *("SELECT * FROM (DESCRIBE part_0)", "SELECT * FROM main.part_0", "SELECT * FROM part_9", "CALL pragma_version()"),
    *("SELECT current_user FROM part_0", "SELECT list_transform([1], x -> x)", "SELECT lpad('x', 1000000000, 'y')"),
]


@pytest.mark.parametrize("sql", ESCAPES)
def test_nothing_but_released_values_can_be_reached(sql: str) -> None:
    with pytest.raises(QueryRefused):
        above.refuse_unsafe(sql, TABLES)


@pytest.mark.parametrize(
    "sql", [one for one in ESCAPES if "passwd" in one or "glob" in one or "httpfs" in one or "env" in one]
)
def test_the_database_itself_has_no_way_out(sql: str) -> None:
    """Without the check: no file, no network, no variable of the machine."""
    with above._database(TABLES) as connection, pytest.raises(duckdb.Error):
        connection.execute(sql)
    with above._database(TABLES) as connection, pytest.raises(duckdb.Error):
        connection.execute("SET enable_external_access = true")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT n, random() FROM (SELECT COUNT(*) AS n FROM t)", "RANDOM is not allowed"),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM t) JOIN '/etc/passwd' ON true", "Only what|only what"),
        ("SELECT n, age FROM (SELECT COUNT(*) AS n FROM t), t", "age|rows"),
        ("SELECT region, ROW_NUMBER() OVER () FROM t", "aggregate|window"),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT SUM(n) OVER () FROM (SELECT COUNT(*) AS n FROM t)", "RECURSIVE"),
        ("SELECT id, SUM(COUNT(*)) OVER () FROM t GROUP BY id", "single people|person"),
        ("SELECT region, SUM(COUNT(*)) OVER () FROM (SELECT region AS r FROM t) GROUP BY r", "region is a column"),
    ],
)
def test_a_statement_that_reads_more_is_refused(sql: str, told: str, db: dn.Connection) -> None:
    before = db.head()
    with pytest.raises(QueryRefused, match=told):
        db.sql(sql)
    assert before == db.head()


def test_an_outer_query_that_reads_the_source_would_be_found(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant: the division leaves a protected table in the outer half. The database does not have it."""
    monkeypatch.setattr(division, "_refuse_other_tables", lambda *_: None)
    monkeypatch.setattr(above, "refuse_unsafe", lambda *_: None)
    whole = division.divide

    def reading(sql: str, tables: Any) -> Any:
        found = whole(sql, tables)
        return found and division.Division(queries=found.queries, outer="SELECT age FROM t")

    monkeypatch.setattr(compound, "divide", reading)
    with pytest.raises(QueryRefused, match="fails"):
        db.sql(STATEMENTS[0])


def test_numbers_that_are_public_are_exact_above_them_too(db: dn.Connection) -> None:
    found = db.sql("SELECT COUNT(*) AS n, COUNT(*) AS N FROM t", share=0.1).to_arrow().to_pydict()
    assert (found["n"], found["N_1"], found["N_1_low"], found["N_1_high"]) == ([120], [120], [120], [120])


def test_a_statement_is_read_again_only_if_a_table_was_declared_anew(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, parse = [], compound.parse

    def counted(sql: str, tables: Any) -> Any:
        texts.append(sql)
        return parse(sql, tables)

    monkeypatch.setattr(compound, "parse", counted)
    sql = "SELECT SUM(age) FROM t WHERE region = 'W'"
    first = str(db.explain(sql, share=0.1))
    assert str(db.explain(sql, share=0.1)) == first
    assert texts == [sql]
    db.protect("t", people(), person="id", epsilon="epsilon", bounds={"age": (0, 9)}, keys={"region": REGIONS})
    assert str(db.explain(sql, share=0.1)) != first
    assert set(texts[1:]) == {sql}


@pytest.mark.parametrize("sql", [*STATEMENTS, "SELECT region, COUNT(*), AVG(age), MEDIAN(age) FROM t GROUP BY region"])
def test_answering_leaves_what_was_read_as_it_was(db: dn.Connection, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, read = [], answer.read

    def kept(sql: str, tables: Any) -> compound.Compound:
        found.append(read(sql, tables))
        assert found[-1] is found[0]
        shown.append(repr(found[-1]))
        return found[-1]

    shown: list[str] = []
    monkeypatch.setattr(answer, "read", kept)
    for share in (0.1, 0.2, 0.2):
        db.sql(sql, share=share)
    assert len(shown) == 3
    assert len(set(shown)) == 1

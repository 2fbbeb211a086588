"""A name can belong to a column of the rows, of a subquery and of the answer: it is told apart as in plain SQL."""

import duckdb
import pyarrow as pa
import pytest

import discretion as dn
from discretion.errors import QueryRefused
from discretion.query import parse

ROWS = 600
TABLE = pa.table(
    {
        "id": range(ROWS),
        "epsilon": [1_000.0] * ROWS,
        "n": [1 + number % 5 for number in range(ROWS)],
        "k": ["aBc"[number % 3] for number in range(ROWS)],
    }
)
SAME = [
    "SELECT -n AS n, COUNT(*) AS c FROM t GROUP BY n ORDER BY n LIMIT 2",
    "SELECT -n AS n, COUNT(*) AS c FROM t GROUP BY n ORDER BY n + 0 LIMIT 2",
    "SELECT UPPER(k) AS k, COUNT(*) AS c FROM t GROUP BY k ORDER BY k",
    "SELECT n % 2 AS odd, ROUND(n) AS whole, COUNT(*) AS c FROM t GROUP BY n ORDER BY n",
    "SELECT -n AS n, COUNT(*) AS c, SUM(COUNT(*)) OVER () AS s FROM t GROUP BY n ORDER BY n LIMIT 2",
    "WITH s AS (SELECT id, n AS z FROM t) SELECT -z AS z, COUNT(*) AS c, SUM(COUNT(*)) OVER () AS s FROM s "
    "GROUP BY z ORDER BY z",
    "SELECT z % 3 AS z, COUNT(*) AS c, SUM(COUNT(*)) OVER () AS s FROM (SELECT id, n AS z FROM t) GROUP BY z ORDER BY "
    "z + 0",
    # A key that was changed is not the key of its name: its values are others.
    "SELECT k, COUNT(*) AS c FROM (SELECT id, UPPER(k) AS k FROM t GROUP BY id, t.k) GROUP BY k ORDER BY k",
    "SELECT k, COUNT(*) AS c FROM (SELECT id, k || 'x' AS k FROM t GROUP BY id, t.k) GROUP BY k ORDER BY k",
    "SELECT UPPER(k) AS u, COUNT(*) AS c FROM (SELECT id, (k) AS k FROM t GROUP BY id, t.k) GROUP BY u ORDER BY u",
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> dn.Connection:
    db = dn.connect(tmp_path_factory.mktemp("names") / "l.discretion")
    db.protect("t", TABLE, person="id", epsilon="epsilon", keys={"k": ["a", "B", "c"]}, bounds={"n": (1, 5)})
    return db


@pytest.mark.parametrize("sql", SAME)
def test_a_name_means_what_it_means_in_plain_sql(sql: str, db: dn.Connection) -> None:
    """Such as which rows LIMIT leaves, and that an answer with exact numbers can be kept."""
    with duckdb.connect() as plain:
        plain.register("t", TABLE)
        truth = plain.sql(sql).fetchall()
    found = [tuple(round(one) if isinstance(one, float) else one for one in row) for row in db.sql(sql, share=0.01)]
    assert len(truth) == len(found)
    for mine, theirs in zip(found, truth, strict=True):
        assert mine[0] == theirs[0]
        assert mine[1:] == pytest.approx(theirs[1:], abs=30)


def test_names_of_released_columns_are_taken(db: dn.Connection) -> None:
    with pytest.raises(QueryRefused, match="_k0: this name is taken"):
        db.explain("SELECT k, COUNT(*) AS _k0, SUM(COUNT(*)) OVER () AS s FROM t GROUP BY k HAVING _k0 > 10")


@pytest.mark.parametrize("columns", ["n AS a, id AS a", "*, id AS n", "id AS N, *", "*, *"])
def test_two_columns_of_a_subquery_have_two_names(columns: str, db: dn.Connection) -> None:
    with pytest.raises(QueryRefused, match="Two columns are named"):
        db.explain(f"SELECT COUNT(*) AS c FROM (SELECT {columns} FROM t)")


def test_a_remainder_is_below_the_divisor(db: dn.Connection) -> None:
    answer = db.sql("SELECT n % 3 AS r, COUNT(*) AS c FROM t GROUP BY r", share=0.01)
    assert (0, 1, 2) == answer.columns["r"]


WITHOUT = {"a * 2": "COUNT(*) + 1 * 2", "(n + 1) * 2": "n + 1 * 2"}  # as they would be without brackets


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) + 1 AS a, a * 2 AS b FROM t", "a * 2"),
        ("SELECT COUNT(b) AS c FROM (SELECT id, COUNT(*) + 1 AS a, a * 2 AS b FROM t GROUP BY id)", "a * 2"),
        ("SELECT (n + 1) * 2 AS x, COUNT(*) AS c FROM t GROUP BY n, n + 1", "(n + 1) * 2"),
        ("SELECT AVG(x) AS c FROM (SELECT id, (n + 1) * 2 AS x FROM t GROUP BY id, n, n + 1)", "(n + 1) * 2"),
    ],
)
def test_a_key_within_an_expression_stays_whole_in_the_text(one: str, other: str, db: dn.Connection) -> None:
    """Two questions of one text would get one answer."""
    tables = {table.name: table for table in db.tables()}
    assert parse(one, tables).text != parse(one.replace(other, WITHOUT[other]), tables).text

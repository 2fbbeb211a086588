"""Subqueries with GROUP BY person: what they become, which bounds they have, and what is refused."""

from dataclasses import replace
from fractions import Fraction

import pytest

from discretion.declaration.table import Lookup, Table
from discretion.errors import QueryRefused
from discretion.query import Query, parse
from discretion.query.scalar import Scalar

VISITS = Table(
    name="visits",
    source="",
    person="id",
    register="people",
    protects="presence",
    rows_per_person=10,
    columns={
        "id": "BIGINT",
        "cost": "DOUBLE",
        "items": "INTEGER",
        "price": "DECIMAL(8,2)",
        "wide": "DECIMAL(38,0)",
        "day": "DATE",
        "region": "VARCHAR",
        "ill": "BOOLEAN",
        "note": "VARCHAR",
        "zone": "TIME",
    },
    bounds={"cost": (0, 100), "items": (-1, 5)},
    keys={"region": ("N", "S", "W")},
    lookups={"codes": Lookup(source="", key="code", columns={"code": "INTEGER", "worth": "INTEGER"})},
)


def read(sql: str, table: Table = VISITS) -> Query:
    return parse(sql, {"visits": table})


def aggregate(function: str, table: Table = VISITS) -> Scalar:
    """Return one aggregate of a person's rows, as a column."""
    query = read(f"SELECT COUNT(*) FROM (SELECT id, {function} AS a FROM visits GROUP BY id)", table)
    assert query.gathered is not None
    return query.gathered.values[0].column


def test_each_person_is_one_row():
    query = read("SELECT AVG(total) FROM (SELECT id, SUM(cost) AS total FROM visits GROUP BY id) WHERE total > 10")
    (one,) = query.aggregates
    assert (1, False, 10) == (query.rows_per_person, one.complete, VISITS.rows_per_person)
    assert (0, 1000) == (one.value(one.lower), one.value(one.upper))  # ten rows of up to 100
    assert (
        'SELECT AVG(total) AS "avg(total)" FROM (SELECT id AS "id", SUM(cost) AS "total" FROM visits GROUP BY id) '
        "AS gathered WHERE total > 10" == query.text
    )


def test_what_a_person_has_by_key_is_chosen_among():
    by_region = "SELECT COUNT(*) FROM (SELECT id, region, COUNT(*) AS n FROM visits GROUP BY id, region)"
    few = read(by_region, replace(VISITS, rows_per_person=2))
    many = read(by_region)
    assert (2, True) == (few.rows_per_person, few.gathered.exceeds)
    assert (3, False) == (many.rows_per_person, many.gathered.exceeds)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        ("COUNT(*)", 1, 10),
        ("COUNT(cost)", 0, 10),
        ("COUNT_IF(ill)", 0, 10),
        ("COUNT(DISTINCT note)", 0, 10),
        ("SUM(cost)", 0, 1000),
        ("SUM(items)", -10, 50),
        ("SUM(LEAST(GREATEST(price, 1), 3))", 0, 30),
        ("AVG(items)", -1, 5),
        ("MIN(cost)", 0, 100),
        ("MAX(cost * 2)", 0, 200),
        ("ARG_MIN(cost, day)", 0, 100),
    ],
)
def test_bounds_follow_from_the_declaration(function: str, low: int, high: int):
    one = aggregate(function)
    assert (low, high) == (one.low, one.high)


def test_a_bound_that_nobody_declared_bounds_nothing():
    undeclared = replace(VISITS, rows_per_person=1)
    for function, low, high in [("COUNT(*)", 0, None), ("SUM(cost)", 0, None), ("SUM(items)", None, None)]:
        one = aggregate(function, undeclared)
        assert (low, high) == (one.low, one.high)
    assert (Fraction(-1), Fraction(5)) == (aggregate("AVG(items)", undeclared).low, Fraction(5))
    with pytest.raises(QueryRefused, match="Ask the steward to declare rows_per_person"):
        read("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY id)", undeclared)
    read("SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY id) WHERE n >= 3", undeclared)


def test_doubles_are_added_on_a_grid_and_exact_numbers_as_they_are():
    def value(function: str):
        sql = f"SELECT COUNT(*) FROM (SELECT {function} AS a FROM visits GROUP BY id)"
        return read(sql).gathered.values[0]

    assert (Fraction(1, 10**10), 0, 10**12) == (
        value("SUM(cost)").grid.step,
        value("SUM(cost)").grid.lower,
        value("AVG(cost)").grid.upper,
    )
    assert ("HUGEINT", None) == (value("SUM(items)").column.type, value("SUM(items)").grid)
    assert ("DECIMAL(38,2)", None) == (value("SUM(price)").column.type, value("SUM(price)").grid)


def test_a_subquery_may_be_renamed_filtered_and_computed_with():
    sql = (
        "WITH v AS (SELECT * FROM visits JOIN codes ON items = codes.code WHERE ill), s AS (SELECT id AS who, "
        "SUM(worth) / COUNT(*) AS rate, region AS r FROM v GROUP BY who, r HAVING rate > 1 AND COUNT(*) > 2) "
        "SELECT r, COUNT(DISTINCT who) FROM (SELECT who, r, rate * 2 AS twice FROM s) WHERE twice < 9 GROUP BY r"
    )
    query = read(sql)
    assert ("N", "S", "W") == query.keys[0].values
    assert 2 == len(query.where)
    assert 1 == len(query.lookups)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("(SELECT region, COUNT(*) AS n FROM visits GROUP BY region)", "GROUP BY in a subquery must name the person"),
        ("(SELECT COUNT(*) AS n FROM visits GROUP BY id % 2)", "GROUP BY in a subquery must name the person"),
        ("(SELECT COUNT(*) AS n FROM visits GROUP BY id, note)", "needs values that are known in public"),
        ("(SELECT id, cost FROM visits GROUP BY id)", "cost has a value for each row of a person"),
        ("(SELECT id, COUNT(*) AS n FROM visits GROUP BY id LIMIT 5)", "LIMIT on people's rows picks some of them"),
        ("(SELECT DISTINCT id, COUNT(*) AS n FROM visits GROUP BY id)", "SELECT DISTINCT lists values"),
        ("(SELECT id, COUNT(*) AS n FROM visits GROUP BY id ORDER BY n)", "ORDER BY in a subquery has no effect"),
        ("(SELECT id, SUM(cost) OVER () AS n FROM visits GROUP BY id)", "a window function gives every row an answer"),
        ("(SELECT id, MEDIAN(cost) AS n FROM visits GROUP BY id)", "cannot put a person's rows together"),
        ("(SELECT id, FIRST(cost) AS n FROM visits GROUP BY id)", "depends on the order of rows"),
        ("(SELECT id, MAX(note) AS n FROM visits GROUP BY id)", "got a text"),
        ("(SELECT id, SUM(DISTINCT cost) AS n FROM visits GROUP BY id)", "DISTINCT and ORDER BY inside an aggregate"),
        ("(SELECT id, SUM(wide) AS n FROM visits GROUP BY id)", "such numbers are added on a grid"),
        ("(SELECT id, SUM(note) AS n FROM visits GROUP BY id)", "needs a number, got a text"),
        ("(SELECT id, BOOL_OR(cost) AS n FROM visits GROUP BY id)", "needs a condition, got a number"),
        ("(SELECT id, COUNT(DISTINCT zone) AS n FROM visits GROUP BY id)", "needs a number, a text, a condition"),
        ("(SELECT id, SUM(3) AS n FROM visits GROUP BY id)", "is over a constant"),
        ("(SELECT id, COUNT(*) FROM visits GROUP BY id)", "needs a name"),
        ("(SELECT id, COUNT(*) AS id FROM visits GROUP BY id)", "Two columns are named 'id'"),
        ("(SELECT * FROM visits GROUP BY id)", "needs a name"),
        ("(SELECT COUNT(*) AS n FROM visits GROUP BY ROLLUP (id))", "GROUP BY in a subquery must name the person"),
        ("(SELECT COUNT(*) AS n FROM visits GROUP BY id) s JOIN codes ON s.n = codes.code", "inside the subquery"),
        (
            "(SELECT id FROM visits GROUP BY id HAVING SUM(cost) > (SELECT AVG(cost) FROM visits))",
            "would read rows",
        ),
        ("(SELECT id FROM visits WHERE cost > (SELECT AVG(cost) FROM visits) GROUP BY id)", "would read rows"),
        ("(SELECT id FROM visits GROUP BY id HAVING SUM(cost))", "HAVING needs a condition"),
        ("(SELECT id FROM visits GROUP BY id HAVING missing > 1)", "There is no column 'missing'"),
        ("(SELECT id FROM visits HAVING COUNT(*) > 1)", "HAVING in a subquery needs GROUP BY with the person"),
        (
            "(SELECT MAX(n) AS m FROM (SELECT id, region, COUNT(*) AS n FROM visits GROUP BY id, region) GROUP BY id)",
            "can be put together once",
        ),
    ],
)
def test_what_is_not_about_one_person_is_refused(sql: str, reason: str):
    with pytest.raises(QueryRefused, match=reason.replace("(", r"\(").replace("*", r"\*")):
        read(f"SELECT COUNT(*) FROM {sql}")


def test_people_themselves_are_not_aggregated():
    for outer in ("SUM(LEAST(m, 5))", "MEDIAN(LEAST(GREATEST(m, 0), 5))"):
        with pytest.raises(QueryRefused, match="says who people are"):
            read(f"SELECT {outer} FROM (SELECT MAX(id) AS m FROM visits GROUP BY id)")
    with pytest.raises(QueryRefused, match="would answer about single people"):
        read("SELECT m, COUNT(*) FROM (SELECT id % 2 AS m FROM visits GROUP BY id) GROUP BY m")


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (
            "SELECT id AS who, MAX(items) AS id FROM visits GROUP BY visits.id HAVING visits.id > 3",
            "SELECT * FROM (SELECT id AS who, MAX(items) AS id FROM visits GROUP BY visits.id) WHERE id > 3",
        ),
        (
            "SELECT id, CASE WHEN COUNT(*) > 2 THEN 'N' ELSE 'S' END AS region FROM visits GROUP BY id, visits.region "
            "HAVING visits.region = 'N'",
            "SELECT * FROM (SELECT id, CASE WHEN COUNT(*) > 2 THEN 'N' ELSE 'S' END AS region FROM visits "
            "GROUP BY id, visits.region) WHERE region = 'N'",
        ),
    ],
)
def test_a_name_of_its_own_inside_is_another_question_outside(inside: str, outside: str) -> None:
    """One answer would be given for the other's money."""
    texts = [read(f"SELECT COUNT(*) FROM ({each}) v").text for each in (inside, outside)]
    assert texts[0] != texts[1]

"""The form of a question that failed has none of the names that an analyst chose: with others it stays refused."""

import pytest

from discretion.declaration.table import Lookup, Table
from discretion.ledger.containment import shape_of
from discretion.query import parse

CODES = Lookup(source="c", key="code", columns={"code": "BIGINT", "worth": "BIGINT"})
VISITS = Table(
    name="visits",
    source="v",
    person="id",
    register="people",
    protects="presence",
    columns={"id": "BIGINT", "cost": "INTEGER", "code": "BIGINT"},
    bounds={"cost": (0, 5)},
    lookups={"codes": CODES},
)
PATIENTS = Table(
    name="patients",
    source="p",
    person="who",
    register="people",
    protects="presence",
    columns={"who": "BIGINT", "age": "INTEGER"},
)
TABLES = {"visits": VISITS, "patients": PATIENTS}
TOTALS = "(SELECT id AS {0}, MAX(cost) AS {1} FROM visits GROUP BY visits.id HAVING COUNT(*) > 1) {2}"
LATEST = "(SELECT who AS {0}, MAX(age) AS {1} FROM patients GROUP BY patients.who) {2}"
FORMS = {
    "subquery": "SELECT COUNT(*) AS {1} FROM " + TOTALS + " WHERE {1} > 3",
    "lookup": "SELECT COUNT(*) AS n FROM visits JOIN codes AS {2} ON cost = {2}.code WHERE {2}.worth > 1",
    "joined": "SELECT COUNT(*) AS n FROM visits JOIN " + LATEST + " ON visits.id = {2}.{0} WHERE {2}.{1} > 1",
    "left": "SELECT COUNT(*) AS n FROM " + TOTALS + " LEFT JOIN patients ON {2}.{0} = patients.who WHERE {1} > age",
}


@pytest.mark.parametrize("form", FORMS)
def test_names_of_subqueries_and_lookups_are_not_part_of_the_form(form: str) -> None:
    names = [("who", "a", "s"), ("w", "b", "z"), ("x", "cost", "codes"), ('"p q"', "gathered", "column_0")]
    shapes = {shape_of(parse(FORMS[form].format(*one), TABLES)) for one in names}
    assert 1 == len(shapes), shapes


def test_two_joins_of_one_lookup_stay_two() -> None:
    sql = "SELECT COUNT(*) AS n FROM visits JOIN codes a ON cost = a.code JOIN codes b ON visits.code = b.code WHERE {}"
    shapes = {shape_of(parse(sql.format(one), TABLES)) for one in ("a.worth > 1", "b.worth > 1")}
    assert 2 == len(shapes)

"""A refusal says where in the question its reason is."""

import pytest

from discretion.engines.duckdb import DuckDB
from discretion.errors import QueryRefused, did_you_mean
from discretion.query import parse
from sql_clinic import declared, rows

TABLES = declared(DuckDB(), rows())


def refusal(sql: str) -> QueryRefused:
    with pytest.raises(QueryRefused) as found:
        parse(sql, TABLES)
    return found.value


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT COUNT(*) FROM patientz", "patientz"),
        ("SELECT COUNT(*)\nFROM patients\nWHERE agge > 40 AND age < 3", "agge"),
        ("SELECT COUNT(*) FROM patients WHERE age > 1 AND\n  medium(age) > 2", "medium"),
        ("SELECT AVG(wage) FROM patients", "wage"),
        ("SELECT COUNT(*) FROM patients WHERE age > (SELECT 3", "3"),
        ("SELECT 'a', -- it's\n 'b FROM patients", "'b"),
        ("SELECT COUNT(*) FROM patients JOIN nowhere ON 1 = 1", "nowhere"),
        ("SELECT COUNT(*) FROM patients ORDER BY agge", "agge"),
        ("SELECT COUNT(*) FROM patients GROUP BY agge", "agge"),
    ],
)
def test_the_place_is_that_of_the_construct(sql, place):
    found = refusal(sql)
    start = sql.index(place)
    assert (sql[:start].count("\n") + 1, start - sql[:start].rfind("\n")) == (found.line, found.column), str(found)
    line, caret = found.excerpt.split("\n")
    assert sql.split("\n")[found.line - 1] == line
    assert caret.index("^") == found.column - 1
    assert any(found.excerpt in note for note in found.__notes__)


def test_of_a_long_line_the_part_around_the_place_is_shown():
    sql = f"SELECT COUNT(*) FROM patients WHERE {'age > 1 AND ' * 50} agge > 2\t-- end"
    found = refusal(sql)
    line, caret = found.excerpt.split("\n")
    assert len(line) <= 100
    assert "agge" == line[len(caret) - 1 :][:4]
    assert "\t" not in line


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM patient", "Did you mean 'patients'?"),
        ("SELECT COUNT(*) FROM patients WHERE agee > 1", "Did you mean 'age'?"),
        ("SELECT COUNT(*) FROM patients WHERE lowerr(note) = 'x'", "Did you mean 'LOWER'?"),
        ("SELECT MEDIANN(age) FROM patients", "Did you mean 'MEDIAN'?"),
    ],
)
def test_the_nearest_name_is_offered(sql, said):
    assert said in str(refusal(sql))


def test_nothing_is_offered_that_is_not_near():
    assert "" == did_you_mean("zebra", ["age", "income"])

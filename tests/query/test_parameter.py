"""Values for ? and $name become literals, and no value can become anything else."""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discretion.engines.duckdb import DuckDB
from discretion.errors import InvalidDeclaration, QueryRefused
from discretion.query import parse
from discretion.query.parameter import bound, literal
from sql_clinic import declared, rows

TABLES = declared(DuckDB(), rows())
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_values_are_written_in_the_places_of_question_marks():
    asked = bound("SELECT COUNT(*) FROM patients WHERE age > ? AND note = ? -- ?\n", [40, "it's ?"])
    assert "SELECT COUNT(*) FROM patients WHERE age > 40 AND note = 'it''s ?' -- ?\n" == asked
    assert parse("SELECT COUNT(*) FROM patients WHERE age > 40 AND note = 'it''s ?'", TABLES).text == (
        parse(asked, TABLES).text
    )


def test_values_are_written_in_the_places_of_names():
    asked = bound(
        "SELECT COUNT(*) FROM patients WHERE age > $low AND age < $high AND note <> '$low'", {"low": 1, "high": 2}
    )
    assert "SELECT COUNT(*) FROM patients WHERE age > 1 AND age < 2 AND note <> '$low'" == asked
    assert "age IN ('a', NULL)" == bound("age IN $few", {"few": ["a", None]})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("region IN ?", "region IN ('N', 'S')"),
        ("region NOT IN (?)", "region NOT IN ('N', 'S')"),
        ("f(x, ?)", "f(x, ['N', 'S'])"),
        ("p(?)", "p(['N', 'S'])"),
        ("?", "['N', 'S']"),
    ],
)
def test_a_list_is_written_as_its_place_takes_it(sql, expected):
    assert expected == bound(sql, [["N", "S"]])
    assert expected == bound(sql.replace("?", "$few"), {"few": ("N", "S")})


def test_a_list_of_quantiles_may_be_a_parameter():
    for quantiles in ("QUANTILE_CONT(age, ?)", "PERCENTILE_CONT(?) WITHIN GROUP (ORDER BY age)"):
        for some in ([0.25, 0.5], [0.5]):
            asked, written = f"SELECT {quantiles} AS q FROM patients", ", ".join(map(str, some))
            expected = parse(asked.replace("?", f"[{written}]"), TABLES).text
            assert expected == parse(bound(asked, [some]), TABLES).text
    assert "QUANTILE_CONT(age, 0.9)" in parse(bound("SELECT QUANTILE_CONT(age, ?) FROM patients", [0.9]), TABLES).text


def test_a_negative_number_cannot_become_a_comment():
    assert "SELECT age -(-5) FROM t" == bound("SELECT age -? FROM t", [-5])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (7, "7"),
        (-7, "(-7)"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (Decimal("1.50"), "1.50"),
        ("a'; DROP TABLE x; --", "'a''; DROP TABLE x; --'"),
        (date(2024, 12, 31), "DATE '2024-12-31'"),
        (datetime(2024, 12, 31, 8, 5), "TIMESTAMP '2024-12-31 08:05:00'"),
        (np.float64(40.5), "40.5"),
        (np.float32(0.5), "0.5"),
        (np.int64(-7), "(-7)"),
        (np.bool_(False), "FALSE"),
        (np.str_("it's"), "'it''s'"),
        (np.datetime64("2024-12-31"), "DATE '2024-12-31'"),
        (np.datetime64("2024-12-31T08:05"), "TIMESTAMP '2024-12-31 08:05:00'"),
        (np.datetime64("2024-12-31T08:05:00", "ns"), "TIMESTAMP '2024-12-31 08:05:00'"),
        (pd.Timestamp("2024-12-31 08:05"), "TIMESTAMP '2024-12-31 08:05:00'"),
    ],
)
def test_each_kind_of_value_has_a_literal_of_its_own(value, expected):
    assert expected == literal("Parameter 1", value)


@given(st.one_of(st.text(), st.integers(-(2**62), 2**62), FINITE, st.booleans(), st.none()))
def test_the_database_reads_the_very_value_that_was_given(value):
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value)):
        return  # the parser refuses these
    ((found,),) = duckdb.execute(f"SELECT {literal('Parameter 1', value)}").fetchall()
    assert (float(found) if isinstance(value, float) else found) == value


@given(st.text())
def test_no_text_can_change_a_question(text):
    """The tree of a question with a text in it is the same for every text, but for that text."""
    asked = bound("SELECT COUNT(*) FROM patients WHERE note = ? AND age > 3", [text])
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        with pytest.raises(QueryRefused, match="invalid character"):
            parse(asked, TABLES)
        return
    query = parse(asked, TABLES)
    known = parse("SELECT COUNT(*) FROM patients WHERE note = 'x' AND age > 3", TABLES)
    assert known.text.replace("'x'", literal("x", text)) == query.text


@pytest.mark.parametrize(
    ("sql", "params", "said"),
    [
        ("SELECT ?, ?", [1], r"one value for each \?, got 1 for 2"),
        ("SELECT $ages", {"age": 1}, r"no 'ages'. Did you mean 'age'\?"),
        ("SELECT $age", {"age": 1, "agee": 2}, r"no \$agee. Did you mean 'age'\?"),
        ("SELECT ?", "40", "must be a list"),
        ("SELECT ?", [nan], "type float"),
        ("SELECT ?", [inf], "type float"),
        ("SELECT ?", [10**5000], "more than 308 digits"),
        ("SELECT ?", [-(10**400)], "more than 308 digits"),
        ("SELECT $n", {"n": [1, 10**308]}, "more than 308 digits"),
        ("SELECT ?", [Decimal("1e400")], "more than 308 digits"),
        ("SELECT ?", [Decimal("nan")], "type Decimal"),
        ("SELECT ?", [b"x"], "type bytes"),
        ("SELECT ?", [[]], "1 to 1,000 values"),
        ("SELECT ?", [[[1]]], "list of lists"),
        ("SELECT ?", [datetime(2024, 1, 1, tzinfo=UTC)], "time zone"),
        ("SELECT ?", [pd.Timestamp("2024-01-01", tz="UTC")], "time zone"),
        ("SELECT ?", [pd.Timestamp("2024-01-01 00:00:00.000000001")], "nanoseconds"),
        ("SELECT ?", [np.datetime64("2024-01-01T00:00:00.000000001")], "type datetime64"),
        ("SELECT ?", [np.datetime64("NaT")], "type datetime64"),
        ("SELECT ?", [np.datetime64(10**17, "s")], "type datetime64"),
        ("SELECT ?", [np.timedelta64(1, "D")], "type timedelta64"),
        ("SELECT ?", [np.float64("nan")], "type float"),
        ("SELECT ?", [np.complex128(1)], "type complex"),
    ],
)
def test_values_that_do_not_fit_are_refused(sql, params, said):
    with pytest.raises(InvalidDeclaration, match=said):
        bound(sql, params)


def test_a_parameter_without_a_value_is_refused():
    with pytest.raises(QueryRefused, match="this parameter has no value"):
        parse("SELECT COUNT(*) FROM patients WHERE age > $low", TABLES)

"""What may be asked, and what is refused; the pairs are in tests/query/queries."""

from contextlib import suppress
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discretion.engines.duckdb import DuckDB
from discretion.errors import QueryRefused
from discretion.query import Query, parse
from discretion.query.key import bare
from sql_clinic import declared, rows

QUERIES = Path(__file__).parent / "queries"
TABLES = declared(DuckDB(), rows())


def pairs(name: str) -> list[tuple[str, str]]:
    """(query, what becomes of it) from a file in which each query is followed by lines of `-- > `."""
    blocks = (QUERIES / f"{name}.sql").read_text().split("\n\n")
    split = [block.strip().partition("\n-- > ") for block in blocks if block.strip()]
    return [(query, "\n".join(line.removeprefix("-- > ") for line in said.split("\n"))) for query, _, said in split]


def summary(query: Query) -> str:
    """The plan of a query in a few lines."""
    lines = [query.text]
    for asked in query.asked:
        one = asked.aggregate
        grid = "" if one.kind in ("count", "people") else f" {one.lower}..{one.upper} by {one.step} from {one.origin}"
        rank = "" if one.rank is None else f" rank {one.rank}"
        over = "every row" if asked.value is None else asked.value.sql("duckdb")
        over += "" if asked.categories is None else f" among {', '.join(map(str, asked.categories.values))}"
        sample = "sample " if one.sample else ""
        lines.append(f"{sample}{one.kind}{grid}{rank}{' complete' if one.complete else ''}: {over}")
    lines += [f"where {condition.sql('duckdb')}" for condition in query.where]
    lines += [f"by {key.expression.sql('duckdb')}: {', '.join(map(str, key.values))}" for key in query.keys]
    return "\n".join(lines)


@pytest.mark.parametrize(("sql", "expected"), pairs("accepted"))
def test_what_is_known_to_be_safe_is_read_as_planned(sql: str, expected: str) -> None:
    assert expected == summary(parse(sql, TABLES))


@pytest.mark.parametrize(("sql", "expected"), pairs("refused"))
def test_everything_else_is_refused_with_a_reason(sql: str, expected: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        parse(sql, TABLES)
    assert expected == str(refusal.value)


def test_columns_are_listed_as_they_can_be_written():
    table = replace(
        TABLES["patients"], columns={**TABLES["patients"].columns, "Total Cost": "DOUBLE", "Rank": "BIGINT"}
    )
    with pytest.raises(QueryRefused, match=r'there is "Total Cost", Rank, age, born'):
        parse("SELECT COUNT(*) FROM patients WHERE cost > 1", {"patients": table})
    with pytest.raises(QueryRefused, match=r"there is r, years\."):
        parse("SELECT COUNT(*) FROM (SELECT age AS years, Rank AS R FROM patients) WHERE x > 1", {"patients": table})


def test_there_are_enough_pairs() -> None:
    assert min(len(pairs("accepted")), len(pairs("refused"))) >= 60


# Around the pairs ---------------------------------------------------------------------------------------------------


def order(one: Query, other: Query) -> list[int]:
    """Return the places of another question's keys among those of one."""
    texts = [bare(key.plain) for key in one.keys]
    return [texts.index(bare(key.plain)) for key in other.keys]


def test_a_query_is_frozen_and_its_text_is_read_as_itself() -> None:
    for sql, _ in pairs("accepted"):
        query = parse(sql, TABLES)
        again = parse(query.text, TABLES)
        assert query.text == again.text
        assert query.aggregates == again.aggregates
        core = parse(query.core, TABLES)
        assert (query.core, query.core) == (again.core, core.core)
        assert {*query.groups} == {tuple(group[place] for place in order(core, query)) for group in core.groups}
    with pytest.raises(FrozenInstanceError):
        query.text = ""  # type: ignore[misc]


def test_spelling_does_not_make_another_question() -> None:
    spellings = [
        "select avg(AGE) from Patients where (smoker)",
        "SELECT /* x */ AVG(p.age)\nFROM patients p WHERE smoker;",
    ]
    texts = {parse(sql, TABLES).text.partition(" FROM")[2] for sql in spellings}
    assert 1 == len(texts)


def test_the_same_aggregate_is_asked_once() -> None:
    query = parse("SELECT AVG(age), AVG(age) + 1 AS b, STDDEV(age), VARIANCE(age) FROM patients", TABLES)
    assert ["AVG(age)", "VARIANCE(age)"] == [asked.text for asked in query.asked]
    assert [(0,), (0,), (1,), (1,)] == [column.uses for column in query.columns]
    assert [0, None, None, 1] == [column.asked for column in query.columns]


def finished(sql: str, *released: list[float]) -> list[tuple[object, ...]]:
    """The rows of an answer made of these released values."""
    answer = parse(sql, TABLES).finish([np.array(values) for values in released])
    return list(zip(*answer.values(), strict=True))


def test_arithmetic_having_order_and_limit_work_on_released_values() -> None:
    sql = """SELECT region, COUNT(*) AS n, COUNT(*) / 2 AS half FROM patients GROUP BY region
             HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 2"""
    assert [("W", 9.0, 4.5), ("S", 5.0, 2.5)] == finished(sql, [2.0, 5.0, -1.0, 9.0])
    assert [("N", 2.0), ("S", 5.0)] == finished(
        "SELECT region, COUNT(*) FROM patients GROUP BY region LIMIT 2", [2.0, 5.0, 1.0, 9.0]
    )


def test_what_has_no_answer_is_null() -> None:
    nothing = [(None, None, None, None)]
    sql = "SELECT 1 / (COUNT(*) - 2) AS a, SQRT(-COUNT(*)) AS b, LN(COUNT(*) - 2) AS c, COUNT(*) % 0 AS d FROM patients"
    assert nothing == finished(sql, [2.0])
    assert [(None,)] == finished("SELECT AVG(income) AS m FROM patients", [float("nan")])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ROUND(COUNT(*) / 4, 1)", 0.6),
        ("ROUND(-COUNT(*) / 4)", -1.0),
        ("TRUNC(COUNT(*) / 4, 2) + TRUNC(-COUNT(*))", -1.38),
        ("FLOOR(COUNT(*) / 4) + CEIL(COUNT(*) / 4)", 1.0),
        ("ABS(1 - COUNT(*)) + COUNT(*) ** 2 - EXP(0)", 6.75),
        ("CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END", "many"),
        ("CASE COUNT(*) WHEN 3 THEN 'three' END", None),
        ("IF(COUNT(*) < 2, 1, 0)", 0),
        ("COALESCE(NULL, COUNT(*))", 2.5),
        ("NULLIF(COUNT(*), 2.5)", None),
        ("GREATEST(COUNT(*), 3) + LEAST(COUNT(*), NULL)", 5.5),
        ("COUNT(*) BETWEEN 2 AND 3 AND NOT COUNT(*) IN (1, 2)", True),
        ("COUNT(*) IS NULL OR COUNT(*) <> 2.5", False),
        ("NULL AND COUNT(*) = 2.5", None),
        ("NULL OR COUNT(*) >= 2.5", True),
        ("POW(COUNT(*), 2)", 6.25),
        ("POW(-COUNT(*), 0.5)", None),
        ("POW(COUNT(*), 1e6)", None),
        ("(COUNT(*) <= 2) IS NOT TRUE", True),
        ("UPPER('a') || LOWER('B') || TRIM(' c ')", "Abc"),
    ],
)
def test_sql_arithmetic(expression: str, expected: object) -> None:
    ((_, actual),) = finished(f"SELECT COUNT(*) AS n, {expression} AS v FROM patients", [2.5])
    assert expected == actual


def test_nulls_sort_where_they_are_told_to() -> None:
    sql = "SELECT region, AVG(income) AS m FROM patients GROUP BY region ORDER BY m"
    released = [3.0, float("nan"), 1.0, 2.0]
    assert ["E", "W", "N", "S"] == [row[0] for row in finished(sql, released)]
    assert ["N", "W", "E", "S"] == [row[0] for row in finished(f"{sql} DESC", released)]  # as in DuckDB
    assert ["S", "N", "W", "E"] == [row[0] for row in finished(f"{sql} DESC NULLS FIRST", released)]


def test_declared_keys_that_do_not_fit_their_column_are_refused() -> None:
    patients = TABLES["patients"]
    for column, values in {
        "age": ("x",),
        "region": (1,),
        "born": ("2000-01-01 10:00",),
        "smoker": ("yes",),
        "income": ("1",),
    }.items():
        table = replace(patients, keys={column: values})
        with pytest.raises(QueryRefused, match="are not all of its type"):
            parse(f"SELECT {column}, COUNT(*) FROM patients GROUP BY {column}", {"patients": table})
    table = replace(patients, keys={"born": ("2000-01-01", None), "income": (0.5, 1)})
    for column in table.keys:
        assert 2 == len(parse(f"SELECT {column}, COUNT(*) FROM patients GROUP BY {column}", {"patients": table}).groups)


@pytest.mark.parametrize("sign", ["\0", "\ud800"])
def test_what_is_no_text_is_refused(sign: str) -> None:
    """Written into a ledger, half of a pair could never be shown again."""
    with pytest.raises(QueryRefused, match="invalid character"):
        parse(f"SELECT COUNT(*) FROM patients WHERE region = '{sign}' -- {sign}", TABLES)


def test_a_value_that_may_be_null_stays_so() -> None:
    assert parse("SELECT AVG(COALESCE(income, NULL)) FROM patients", TABLES).asked[0].fill is None
    assert 0 == parse("SELECT SUM(COALESCE(income, 0)) FROM patients", TABLES).asked[0].fill


def test_nesting_has_a_limit() -> None:
    deep = "(" * 3000 + "age" + ")" * 3000
    wide = " OR ".join(f"age = {i}" for i in range(100))
    twice = "age / 2.5"
    for _ in range(25):
        twice = f"CASE WHEN {twice} > 1 THEN 1.5 ELSE 0.5 END / age"
    for condition in (f"{deep} > 1", f"{twice} > 1"):
        with pytest.raises(QueryRefused, match="nested"):
            parse(f"SELECT COUNT(*) FROM patients WHERE {condition}", TABLES)
    assert parse(f"SELECT COUNT(*) FROM patients WHERE {wide}", TABLES).where
    with pytest.raises(QueryRefused, match="20,000 characters"):
        parse("SELECT COUNT(*) FROM patients" + " " * 20_000, TABLES)


WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT WITH AS JOIN ON UNION DISTINCT CASE WHEN THEN ELSE END AND OR
NOT IN BETWEEN LIKE IS NULL CAST COUNT SUM AVG MEDIAN MAX STDDEV FLOOR EXTRACT INTERVAL patients visits sites
age income region id note born smoker cost ( ) , * + - / % = < > . ; 1 2.5 'x' "y" [ ] { } -- /* */ :: => $1 ?
~ || ** @ \\ ' OVER FILTER WITHIN LATERAL VALUES INTEGER DATE ALL ANY EXISTS 1e999 0x10 é \x00
"""


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25), st.booleans())
def test_whatever_is_written_is_parsed_or_refused(words: list[str], led: bool) -> None:
    text = ("SELECT COUNT(*) FROM patients WHERE " if led else "") + " ".join(words)
    with suppress(QueryRefused):
        assert parse(text, TABLES).asked


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("AVG(SQRT(age))", 0, 120**0.5),
        ("AVG(EXP(age / 40))", 1, 20.085536923187668),
        ("AVG(age ** 2)", 0, 14_400),
        ("AVG((age - 50) ** 2)", 0, 4_900),
        ("AVG((age - 50) ** 3)", -125_000, 343_000),
        ("AVG(LENGTH(note))", 0, 1_000),
        ("AVG(LENGTH(LEFT(note, 20)))", 0, 20),
    ],
)
def test_bounds_follow_from_those_of_the_columns(sql: str, low: float, high: float) -> None:
    (aggregate,) = parse(f"SELECT {sql} FROM patients", TABLES).aggregates
    ends = aggregate.value(aggregate.lower), aggregate.value(aggregate.upper)
    assert pytest.approx((low, high), abs=float(aggregate.step)) == tuple(map(float, ends))


def test_columns_without_a_name_keep_the_spelling_of_the_question():
    query = parse(
        "SELECT Avg(Age), COUNT(*) FILTER (WHERE Smoker), SUM(CASE WHEN region = 'N' THEN 1 ELSE 0 END) FROM patients",
        TABLES,
    )
    names = ["avg(Age)", "count(*) filter(where Smoker)", "sum(case when region = 'N' then 1 else 0 end)"]
    assert names == [column.name for column in query.columns]
    assert parse("SELECT AVG(AGE) FROM patients", TABLES).text == parse("SELECT avg(age) FROM patients", TABLES).text

"""What may be asked, and what is refused; the pairs are in tests/queries."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discretion.engines.duckdb import DuckDB
from discretion.errors import QueryRefused
from discretion.query import Query, parse
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
        lines.append(f"{one.kind}{grid}{rank}{' complete' if one.complete else ''}: {over}")
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


def test_there_are_enough_pairs() -> None:
    assert min(len(pairs("accepted")), len(pairs("refused"))) >= 60

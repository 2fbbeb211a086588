"""Made-up rows: no pair of values of two columns is left out."""

from fractions import Fraction
from itertools import combinations

import duckdb
import pytest
from sqlglot import exp

from discretion.engines.rehearsal import MOST_ROWS, _combined, _extremes, _possible
from discretion.query.scalar import Scalar


@pytest.mark.parametrize("sizes", [[3, 4, 5], [25, 24, 26, 10], [25] * 31, [7] * 70, [2] * 300, [29] * 12])
def test_every_pair_of_values_of_two_columns_is_among_the_rows(sizes: list[int]) -> None:
    rows = _combined(tuple(sizes))
    assert len(rows) <= max(MOST_ROWS, 2 * 31**2)
    for one, other in combinations(range(len(sizes)), 2):
        assert sizes[one] * sizes[other] == len({(row[one], row[other]) for row in rows})
    assert all({*range(1, size + 1)} == {row[place] for row in rows} for place, size in enumerate(sizes))


WRITTEN = {"number": ["0", "1", "-1", "2", "9223372036854775808", "0.5"], "text": [], "moment": []}


@pytest.mark.parametrize("sql_type", ["DECIMAL(1,1)", "DECIMAL(2,1)", "DECIMAL(38,38)", "TINYINT", "HUGEINT", "FLOAT"])
def test_every_made_up_value_is_one_of_its_type(sql_type: str) -> None:
    assert duckdb.sql(f"SELECT {', '.join(_extremes(sql_type, WRITTEN))}").fetchall()


@pytest.mark.parametrize(
    ("sql_type", "reach"), [("BIGINT", 2**63), ("HUGEINT", 2**103), ("BIGINT", 0), ("HUGEINT", 2**128)]
)
def test_made_up_aggregates_stay_within_their_reach(sql_type: str, reach: int) -> None:
    column = Scalar(plain=exp.null(), total=exp.null(), type=sql_type, reach=reach, low=Fraction(0))
    (found,) = duckdb.sql(f"SELECT {', '.join(_possible(column, WRITTEN))}").fetchall()
    assert max(abs(value) for value in found if value is not None) <= max(reach, 2)

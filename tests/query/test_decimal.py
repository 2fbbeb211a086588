"""Exact numbers of every width: their sums, differences, products and remainders have an answer at both ends."""

from decimal import Decimal, localcontext
from itertools import product
from operator import add, mod, mul, sub

import duckdb
import pytest
from sqlglot import parse_one

from discretion.declaration.table import Table
from discretion.engines.duckdb.connections import _OPTIMIZERS, _others
from discretion.query.expression import scalar
from discretion.query.kind import DOUBLE, factors
from discretion.query.scalar import Scope, columns_of

DECIMALS = ((1, 0), (4, 4), (9, 2), (10, 2), (18, 0), (18, 9), (18, 18), (19, 2), (28, 10), (38, 0), (38, 37))
WHOLE = {"TINYINT": 7, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}
TYPES = {f"c{width}_{scale}": f"DECIMAL({width},{scale})" for width, scale in DECIMALS} | {w.lower(): w for w in WHOLE}
ENDS = {f"c{width}_{scale}": Decimal((0, (9,) * width, -scale)) for width, scale in DECIMALS}
ENDS |= {name.lower(): Decimal(2**bits - 1) for name, bits in WHOLE.items()}
OPERATIONS = {"+": add, "-": sub, "*": mul, "%": mod}
TABLE = Table(
    name="t",
    source="",
    person="p",
    epsilon="e",
    register="t",
    protects="value",
    columns={"p": "BIGINT", "e": "DOUBLE", **TYPES},
)


@pytest.mark.parametrize("sign", OPERATIONS)
def test_exact_arithmetic_has_the_exact_answer_at_both_ends(sign: str) -> None:
    scope = Scope({"t": columns_of(TABLE)})
    with duckdb.connect(config={"disabled_optimizers": ",".join(_others(_OPTIMIZERS))}) as database:
        for one, other in product(TYPES, TYPES):
            made = scalar(parse_one(f"{one} {sign} {other}", dialect="duckdb"), scope)
            for left, right in {(ENDS[one], ENDS[other]), (ENDS[one].copy_negate(), ENDS[other].copy_negate())} | (
                {(ENDS[one].copy_negate(), ENDS[other])} if one != other else set()
            ):
                row = {one: left, other: right}
                cells = ", ".join(f"CAST('{value}' AS {TYPES[name]}) AS {name}" for name, value in row.items())
                found = database.sql(f"SELECT {made.total.sql('duckdb')} FROM (SELECT {cells}) t").fetchall()[0][0]
                with localcontext(prec=100):
                    exact = OPERATIONS[sign](left, right)
                assert found is not None, (one, sign, other)
                assert made.type == DOUBLE or exact == Decimal(found), (one, sign, other)


def test_factors_are_widened_only_where_their_product_needs_it() -> None:
    assert ["DECIMAL(9,2)", "DECIMAL(9,2)"] == factors((7, 2), (7, 2))
    assert ["DECIMAL(19,2)", "DECIMAL(10,0)"] == factors((8, 2), (10, 0))
    assert ["DECIMAL(20,2)", "DECIMAL(18,0)"] == factors((18, 2), (18, 0))

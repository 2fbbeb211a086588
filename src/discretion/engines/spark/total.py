"""Totals in Spark's SQL: sums that cannot overflow, aggregates of some rows, and several rows made of one."""

from typing import Any, ClassVar

from sqlglot import exp

from discretion.engines.column import MOST
from discretion.engines.spark.cast import NoForm, spark_type, type_of


def added(write: Any, node: exp.Sum) -> str:
    """A sum that fewer than 2^39 rows cannot make overflow: whole numbers are summed in parts of at most 24 bits."""
    value, known = write.sql(node, "this"), type_of(node.this)
    only = _condition(write, node.parent) if isinstance(node.parent, exp.Filter) else ""
    if known == "INTEGER" and node.meta_get(MOST, 2**31) <= 2**24:
        return f"SUM(CAST({value} AS BIGINT)){only}"
    if known == "INTEGER":
        halves = (f"CAST(SHIFTRIGHT({value}, 20) AS BIGINT)", f"CAST({value} & 1048575 AS BIGINT)")
        high, low = (f"SUM({half}){only}" for half in halves)
        return f"(CAST({high} AS DECIMAL(20, 0)) * CAST(1048576 AS DECIMAL(7, 0)) + {low})"
    if known == "BIGINT":
        parts = (f"SHIFTRIGHT({value}, 42)", f"SHIFTRIGHT({value}, 21) & 2097151L", f"{value} & 2097151L")
        high, middle, low = (f"CAST(SUM({part}){only} AS DECIMAL(20, 0))" for part in parts)
        big, small = "CAST(4398046511104 AS DECIMAL(13, 0))", "CAST(2097152 AS DECIMAL(7, 0))"
        return f"({high} * {big} + {middle} * {small} + {low})"
    if known == "HUGEINT" or known.startswith("DECIMAL"):
        return f"SUM(CAST({value} AS {spark_type(type_of(node))})){only}"
    raise NoForm(f"a sum of {known or 'an unknown type'}")


def filtered(write: Any, node: exp.Filter) -> str:
    """An aggregate of some rows; a sum may be made of several, each with the condition."""
    found = write.sql(node, "this")
    return found if isinstance(node.this, exp.Sum) else f"{found}{_condition(write, node)}"


def _condition(write: Any, node: exp.Filter) -> str:
    return f" FILTER (WHERE {write.sql(node.expression, 'this')})"


class Spread(exp.Expression):
    """Several rows made of one: `rows` has the values of every row, `names` the columns."""

    arg_types: ClassVar = {"rows": True, "names": True}


def spread(write: Any, node: Spread) -> str:
    values = ", ".join(write.sql(value) for row in node.args["rows"] for value in row.expressions)
    return f"STACK({len(node.args['rows'])}, {values}) AS ({', '.join(map(write.sql, node.args['names']))})"

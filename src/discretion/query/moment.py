"""Functions of dates and times: parts, truncation, differences, and fixed intervals added."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import kind as types
from discretion.query.kind import BIGINT
from discretion.query.operation import TIMES, Operands, alike, built, flat, regrouped, try_cast
from discretion.query.scalar import Scalar, literal, shown

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
PARTS: dict[str, tuple[int, int] | None] = {  # what EXTRACT gives, where that is few
    **dict.fromkeys(UNITS),
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DOY": (1, 366),
    "DOW": (0, 6),
    "ISODOW": (1, 7),
    "HOUR": (0, 23),
    "MINUTE": (0, 59),
    "SECOND": (0, 59),
}


def shifted(node: exp.Expr, operands: Operands) -> Scalar:
    """A date plus or minus a fixed interval."""
    (moment,) = flat(operands)
    amount, unit = node.expression.this, node.expression.args.get("unit")
    fixed = isinstance(amount, exp.Literal) and str(amount.this).isdigit() and len(str(amount.this)) <= 6
    if moment.kind not in TIMES or not fixed or unit is None or unit.name.upper() not in UNITS:
        raise QueryRefused(f"{shown(node)} must add a fixed interval to a date, such as day + INTERVAL 30 DAY.")
    span = exp.Interval(this=exp.Literal.string(str(int(amount.this))), unit=exp.var(unit.name.upper()))
    made = built(node, {"this": moment.tame}, sql_type="TIMESTAMP", wild=True, expression=span)
    if moment.literal:
        steps = int(amount.this) * (-1 if isinstance(node, exp.Sub) else 1)
        value = None if moment.value is None else types.shifted(moment.value, steps, unit.name.upper())
        return literal(value, "TIMESTAMP", made.plain)
    return replace(made, required=False)


def date_part(node: exp.Expr, operands: Operands) -> Scalar:
    """EXTRACT(MONTH FROM day)."""
    (moment,), written = flat(operands), str(node.this.name).upper()
    name = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY", "DAYOFWEEKISO": "ISODOW"}.get(written, written)
    if name not in PARTS or moment.kind not in TIMES:
        raise QueryRefused(f"{shown(node)} must take one of {', '.join(PARTS)} from a date or a timestamp.")
    few, tame = PARTS[name], {"expression": moment.tame}
    low, high = (None, None) if few is None else map(Fraction, few)
    return built(node, tame, sql_type=BIGINT, reach=10_000, whole=True, this=exp.var(name), low=low, high=high)


def date_arithmetic(node: exp.Expr, operands: Operands) -> Scalar:
    """DATE_TRUNC('month', day) and DATE_DIFF('day', first, last)."""
    unit, parts = node.args.get("unit"), flat(operands)
    if unit is None or unit.name.upper() not in UNITS or any(part.kind not in TIMES for part in parts):
        raise QueryRefused(f"{shown(node)} needs dates and one of {', '.join(UNITS)}.")
    operands = regrouped(operands, alike(node, parts))
    if isinstance(node, exp.DateDiff):
        return built(node, operands, sql_type=BIGINT, reach=2**40, whole=True, unit=unit)
    result = built(node, operands, sql_type="TIMESTAMP", unit=unit)
    return replace(result, total=try_cast(result.total, "TIMESTAMP"), wild=True, required=False)

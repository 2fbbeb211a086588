"""Functions of dates and times: parts, truncation, differences, and fixed intervals added."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import kind as types
from discretion.query.interval import elapsed
from discretion.query.kind import BIGINT
from discretion.query.operation import TIMES, Operands, alike, built, flat, regrouped, tried, try_cast
from discretion.query.scalar import Scalar, literal, shown

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
DAYS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")  # units of whole days
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
    amount, unit = node.expression.this, _unit(node.expression)
    fixed = isinstance(amount, exp.Literal) and str(amount.this).isdigit() and len(str(amount.this)) <= 6
    if moment.kind not in TIMES or not fixed or not unit:
        raise QueryRefused(f"{shown(node)} must add a fixed interval to a date, such as day + INTERVAL 30 DAY.")
    span = exp.Interval(this=exp.Literal.string(str(int(amount.this))), unit=exp.var(unit))
    made = built(node, {"this": moment.tame}, sql_type="TIMESTAMP", wild=True, expression=span)
    if moment.literal:
        steps = int(amount.this) * (-1 if isinstance(node, exp.Sub) else 1)
        value = None if moment.value is None else types.shifted(moment.value, steps, unit)
        return literal(value, "TIMESTAMP", made.plain)
    return replace(made, required=False)


def _unit(interval: exp.Expr) -> str:
    """Return the unit of an interval, where DAYS is DAY; nothing for one that is not known."""
    name = str(interval.args["unit"].name).upper() if interval.args.get("unit") is not None else ""
    return next((unit for unit in UNITS if name in (unit, f"{unit}S")), "")


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
    parts = alike(node, parts)
    if isinstance(node, exp.DateDiff):
        low, high = elapsed(parts[0], parts[1], unit.name.upper())
        operands = regrouped(operands, [part.within for part in parts])
        return built(node, operands, sql_type=BIGINT, reach=2**40, whole=True, unit=unit, low=low, high=high)
    operands = regrouped(operands, parts)
    result = built(node, operands, sql_type="TIMESTAMP", unit=unit)
    return replace(result, total=try_cast(result.total, "TIMESTAMP"), wild=True, required=False)


def bucket(node: exp.Expr, operands: Operands) -> Scalar:
    """TIME_BUCKET(INTERVAL 2 WEEK, day)."""
    (moment,), width = flat(operands), node.this
    unit = _unit(width) if isinstance(width, exp.Interval) else ""
    amount = str(width.name) if unit else ""
    fixed = amount.isdigit() and len(amount) < 7 and int(amount) > 0
    if moment.kind not in TIMES or not fixed:
        raise QueryRefused(f"{shown(node)} needs a date and a fixed width, such as TIME_BUCKET(INTERVAL 2 WEEK, day).")
    if moment.kind == "date" and unit not in DAYS:
        raise QueryRefused(f"{shown(node)} divides days, but a date has no times. Use a width of days or more.")
    span = exp.Interval(this=exp.Literal.string(str(int(amount))), unit=exp.var(unit))
    made = built(node, {"expression": moment.tame}, sql_type=moment.type, wild=True, this=span)
    # The width is written first, wherever it stands among the parts.
    plain, total = (exp.DateBin(this=span.copy(), expression=one.copy()) for one in (moment.plain, moment.tame.total))
    return replace(made, plain=plain, total=tried(total), required=False)

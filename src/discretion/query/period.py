"""Periods: the values of a GROUP BY key over a date or time with declared bounds."""

from datetime import date, datetime
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import calendar
from discretion.query.released import evaluate
from discretion.query.scalar import Scalar, as_type

MOST_STEPS = 100_000  # that are tried to find the values of one key
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")  # each has whole ones of the next
_OF_DAYS = ("WEEK", "DOY", "DOW", "ISODOW", "DAYOFYEAR", "DAYOFWEEK", "DAYOFWEEKISO")
_STEPS = {"QUARTER": "MONTH", **dict.fromkeys(_OF_DAYS, "DAY")}


def periods(key: Scalar, column: Scalar) -> tuple[Any, ...] | None:
    """Return every value of `key`, a function of one column with declared bounds; None if they cannot be listed.

    The key must look at the column only through units of time, such as MONTH(day). It is then constant within the
    smallest of these units, so one moment of each is tried.
    """
    unit = _smallest(key.plain, column)
    if column.span is None or unit is None:
        return None
    plain, name = _dates_as_times(key.plain), column.plain.name
    values: dict[Any, None] = {}
    try:
        for moment in _steps(*column.span, unit):
            values[as_type(evaluate(plain, {name: as_type(moment, column.type)}), key.type)] = None
            if len(values) > MOST_STEPS:
                return None
    except (QueryRefused, TypeError, KeyError, OverflowError, AttributeError):
        return None
    return tuple(values) if len(values) else None


def _smallest(plain: exp.Expr, column: Scalar) -> str | None:
    """Return the smallest unit of time through which an expression looks at a column; None if it sees more."""
    found = []
    for node in [plain] if isinstance(plain, exp.Column) else plain.find_all(exp.Column):
        user = node.parent
        while isinstance(user, exp.Paren):
            user = user.parent
        unit = _unit(user) or ("DAY" if column.type == "DATE" else "")
        if not unit:
            return None
        found.append(_STEPS.get(unit, unit))
    return max(found, key=_UNITS.index) if found else None


def _unit(user: exp.Expr | None) -> str:
    """Return the unit of time that a function looks at."""
    if isinstance(user, exp.Extract):
        return str(user.this.name).upper()
    if isinstance(user, (exp.TimestampTrunc, exp.DateTrunc)):
        return str(user.args["unit"].name).upper()
    if isinstance(user, exp.DateBin):
        return str(user.this.args["unit"].name).upper()
    return "DAY" if isinstance(user, exp.Cast) and user.to.this == exp.DType.DATE else ""


def _dates_as_times(plain: exp.Expr) -> exp.Expr:
    """CAST(at AS DATE) as DATE_TRUNC('day', at)."""

    def truncated(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE:
            return exp.TimestampTrunc(this=node.this, unit=exp.var("DAY"))
        return node

    return plain.copy().transform(truncated)


def _steps(first: date, last: date, unit: str) -> list[datetime]:
    """Return one moment within bounds of every unit, at most MOST_STEPS."""
    moment, end = calendar.timed(first), calendar.timed(last)
    moments: list[datetime] = []
    while moment <= end:
        if len(moments) == MOST_STEPS:
            raise OverflowError
        moments.append(moment)
        if calendar.begun(moment, unit) == calendar.begun(end, unit):
            break
        moment = calendar.following(moment, unit)
    return moments

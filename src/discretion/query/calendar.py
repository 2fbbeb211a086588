"""Compute functions of dates and times for plain values: constants, declared bounds, keys of an answer.

The database gives the same: weeks begin on Monday and have the numbers of ISO 8601, and buckets are counted from
Monday, 3 January 2000 (of months and years: from 1 January 2000).
"""

from datetime import date, datetime, timedelta
from typing import Any

from sqlglot import exp

from discretion.query.kind import moment

_ORIGIN = datetime(2000, 1, 3)
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_WIDTHS = {name: timedelta(**{f"{name.lower()}s": 1}) for name in ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND")}


def timed(moment: date) -> datetime:
    """Return a date as the time it begins."""
    return moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)


def alike(values: list[Any]) -> list[Any]:
    """Return values that can be compared: among dates, a text is the date it spells; among times, a date is a time."""
    if not any(isinstance(value, date) for value in values):
        return values
    read = [moment(value) if isinstance(value, str) else value for value in values]
    if not any(isinstance(value, datetime) for value in read):
        return read
    return [timed(value) if isinstance(value, date) else value for value in read]


def part(moment: date, name: exp.Expr) -> int:
    """EXTRACT(MONTH FROM day)."""
    time, written = timed(moment), str(name.name).upper()
    found = {
        "YEAR": time.year,
        "QUARTER": (time.month + 2) // 3,
        "MONTH": time.month,
        "WEEK": time.isocalendar().week,
        "DAY": time.day,
        "HOUR": time.hour,
        "MINUTE": time.minute,
        "SECOND": time.second,
        **dict.fromkeys(("DOY", "DAYOFYEAR"), time.timetuple().tm_yday),
        **dict.fromkeys(("DOW", "DAYOFWEEK"), time.isoweekday() % 7),
        **dict.fromkeys(("ISODOW", "DAYOFWEEKISO"), time.isoweekday()),
    }
    return found[written]


def truncated(moment: date, unit: exp.Expr) -> datetime:
    """DATE_TRUNC('month', day)."""
    return begun(timed(moment), str(unit.name).upper())


def begun(time: datetime, unit: str) -> datetime:
    """Return when the year, month, hour or the like of a time began."""
    if unit in _MONTHS:
        month = (time.month - 1) // _MONTHS[unit] * _MONTHS[unit] + 1
        return datetime(time.year, month, 1)
    midnight = datetime(time.year, time.month, time.day)
    if unit in ("WEEK", "DAY"):
        return midnight - timedelta(days=time.weekday() if unit == "WEEK" else 0)
    return midnight + (time - midnight) // _WIDTHS[unit] * _WIDTHS[unit]


def following(time: datetime, unit: str) -> datetime:
    """Return when the next year, month, hour or the like begins; OverflowError after the year 9999."""
    if unit not in _MONTHS:
        return begun(time, unit) + _WIDTHS[unit]
    place = time.year * 12 + (time.month - 1) // _MONTHS[unit] * _MONTHS[unit] + _MONTHS[unit]
    if place // 12 > 9999:
        raise OverflowError
    return datetime(place // 12, place % 12 + 1, 1)


def bucketed(moment: date, width: exp.Expr) -> date:
    """TIME_BUCKET(INTERVAL 2 WEEK, day); of a date, a date."""
    time, amount, unit = timed(moment), int(width.this.this), str(width.args["unit"].name).upper()
    if unit in _MONTHS:
        size = amount * _MONTHS[unit]
        place = ((time.year - 2000) * 12 + time.month - 1) // size * size + 2000 * 12
        start = datetime(place // 12, place % 12 + 1, 1)
    else:
        start = _ORIGIN + (time - _ORIGIN) // (amount * _WIDTHS[unit]) * (amount * _WIDTHS[unit])
    return start if isinstance(moment, datetime) else start.date()


def difference(unit: str, start: date, end: date) -> int:
    """DATE_DIFF: how many times a unit begins after `start`, up to `end`; weeks are seven of the days between."""
    if unit == "WEEK":
        return int(difference("DAY", start, end) / 7)
    first, last = begun(timed(start), unit), begun(timed(end), unit)
    if unit in _MONTHS:
        return ((last.year - first.year) * 12 + last.month - first.month) // _MONTHS[unit]
    return (last - first) // _WIDTHS[unit]


def shown(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return dates and times of a column as ISO texts; as dates if all of them are midnights."""
    times = [value for value in values if isinstance(value, date)]
    if not times:
        return values
    days = all(timed(value) == begun(timed(value), "DAY") for value in times)
    return tuple(
        value if not isinstance(value, date) else str(timed(value).date()) if days else timed(value).isoformat(sep=" ")
        for value in values
    )

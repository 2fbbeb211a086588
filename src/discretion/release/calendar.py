"""Dates as numbers: days since 1970, and back."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor

FIRST = datetime(1970, 1, 1)
MICROSECONDS = 86_400_000_000  # in a day


def days(moment: date) -> Fraction:
    """Return the days from 1970 to a date, or to a time; times with a zone are taken in UTC."""
    if not isinstance(moment, datetime):
        return Fraction(moment.toordinal() - FIRST.toordinal())
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return Fraction((moment - FIRST) // timedelta(microseconds=1), MICROSECONDS)


def moment(number: float, like: date) -> date:
    """Return the date that is so many days after 1970; with a time and a zone if `like` has them."""
    if not isinstance(like, datetime):
        return date.fromordinal(FIRST.toordinal() + round(number))
    found = FIRST + timedelta(microseconds=round(number * MICROSECONDS))
    return found.replace(tzinfo=UTC) if like.tzinfo is not None else found


def outwards(low: float, high: float, like: date) -> tuple[date, date]:
    """Return both ends of an interval of days as dates; rounding never makes it shorter."""
    if not isinstance(like, datetime):
        low, high = floor(low), ceil(high)
    return moment(low, like), moment(high, like)

"""Span: the bounds that a steward declares for a column of dates or times."""

import re
from datetime import date, datetime, time
from typing import Any

from discretion.errors import InvalidDeclaration

TIMED = re.compile(r"DATE|TIMESTAMP(_S|_MS|_NS)?", re.IGNORECASE)  # types of columns that have such bounds
_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)
Ends = tuple[date, date]  # of a column of times: two datetimes


def is_moment(said: Any) -> bool:
    """Tell whether this is a date, a time without a zone, or the ISO text of one."""
    if isinstance(said, datetime):
        return said.tzinfo is None
    return isinstance(said, date) or (isinstance(said, str) and _read(said) is not None)


def span_of(column: str, sql_type: str, low: Any, high: Any) -> tuple[str, str]:
    """Return two moments as the declaration keeps them; refuse what does not fit the column."""
    texts = tuple(_written(one) for one in (low, high))
    if sql_type.upper() == "DATE" and any(len(text) > len("2020-01-01") for text in texts):
        raise InvalidDeclaration(f"Bounds of {column!r} must be dates, because it has no times, got {low!r}, {high!r}.")
    pair = texts[0], texts[1]
    first, last = ends(pair, sql_type)
    if first > last:
        raise InvalidDeclaration(f"Bounds of {column!r} must ascend, got {texts[0]} to {texts[1]}.")
    return pair


def ends(pair: tuple[str, str], sql_type: str) -> Ends:
    """Return the first and the last moment within bounds; a last date includes that whole day."""
    first, last = (datetime.fromisoformat(text) for text in pair)
    if sql_type.upper() == "DATE":
        return first.date(), last.date()
    whole_day = len(pair[1]) == len("2020-01-01")
    return first, datetime.combine(last, time.max) if whole_day else last


def _written(said: Any) -> str:
    if isinstance(said, str):
        return said.replace("T", " ")
    return str(said.isoformat(sep=" ") if isinstance(said, datetime) else said.isoformat())


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _TEXT.fullmatch(text) else None
    except ValueError:
        return None

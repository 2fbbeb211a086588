"""What functions give for plain Python values: constants of a query, and released answers.

SQL's rules: a function of NULL is NULL, and what has no answer (a division by zero, the root of −1) is NULL too.
"""

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discretion.query import kind as types
from discretion.query.kind import BIGINT, DOUBLE
from discretion.query.reference import letters

_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{0,30})?", re.ASCII)


def strict(function: Callable[..., Any], values: list[Any]) -> Any:
    """Return the answer, or None if a value is missing or there is no answer."""
    if any(value is None for value in values):
        return None
    try:
        answer = function(*values)
    except (
        ArithmeticError,
        ValueError,
        TypeError,
    ):  # the types were checked; a failure here would come after the charge
        return None
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def like_its_argument(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """Return a function that gives whole numbers as doubles for a double."""
    return lambda x: float(function(x)) if isinstance(x, float) else function(x)


def round_half_up(value: Any, decimals: int = 0) -> Any:
    """Round half away from zero, as SQL does; Python rounds half to even."""
    if not isinstance(value, float):
        step = Fraction(10) ** -decimals
        return sign(value) * math.floor(abs(Fraction(value)) / step + Fraction(1, 2)) * step
    scale = 10.0**decimals
    return math.copysign(math.floor(abs(value) * scale + 0.5) / scale, value)


def cut_off(value: Any, decimals: int = 0) -> Any:
    """Drop the decimals after these: TRUNC."""
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    cut = math.trunc(exact * Fraction(10) ** decimals) * Fraction(10) ** -decimals
    return float(cut) if isinstance(value, float) else cut


def divide(left: Any, right: Any) -> float:
    """Return a quotient as a double."""
    return float(left / right) if isinstance(left, float) or isinstance(right, float) else float(Fraction(left) / right)


def add(left: Any, right: Any) -> Any:
    """Return a sum; exact if both are."""
    return left + right


def subtract(left: Any, right: Any) -> Any:
    """Return a difference: of dates, in days."""
    return (left - right).days if isinstance(left, date) else left - right


def whole_quotient(left: Any, right: Any) -> int:
    """Return a quotient cut towards zero."""
    return int(Fraction(left) / Fraction(right))


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder, with the sign of the dividend."""
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    return Fraction(left) - whole_quotient(left, right) * Fraction(right)


def conjunction(left: bool | None, right: bool | None) -> bool | None:
    """AND of three truth values."""
    return False if False in (left, right) else None if None in (left, right) else True


def disjunction(left: bool | None, right: bool | None) -> bool | None:
    """OR of three truth values."""
    return True if True in (left, right) else None if None in (left, right) else False


def among(value: Any, *others: Any) -> bool | None:
    """IN: whether one of the others equals the value."""
    return None if value is None else value in others


def first_known(*values: Any) -> Any:
    """COALESCE: the first value that is not missing."""
    return next((value for value in values if value is not None), None)


def extreme(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """LEAST and GREATEST skip NULLs."""

    def of(*values: Any) -> Any:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return of


def unless_equal(value: Any, other: Any) -> Any:
    """NULLIF."""
    return None if value is None or value == other else value


def joined(*texts: str | None) -> str:
    """CONCAT skips NULLs."""
    return "".join(text for text in texts if text is not None)


def upper(text: str) -> str | None:
    """UPPER: letter by letter, and not 'SS' for 'ß'."""
    return text.upper() if text.isascii() else letters("UPPER", text)


def lower(text: str) -> str | None:
    """LOWER: letter by letter, whatever stands beside it."""
    return text.lower() if text.isascii() else letters("LOWER", text)


def trimmed(text: str, position: str | None = None) -> str | None:
    """TRIM, LTRIM and RTRIM: without the blanks at both ends, or at one."""
    if not text.isascii():
        return letters({"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(position or "", "TRIM"), text)
    return {"LEADING": text.lstrip, "TRAILING": text.rstrip}.get(position or "", text.strip)(" ")


def right(text: str, length: int) -> str:
    """Return the last characters of a text."""
    return text[-length:] if length else ""


def middle(text: str, start: int, length: int | None = None) -> str:
    """SUBSTRING, whose first character has number 1."""
    return text[start - 1 :][:length]


def cast(value: Any, sql_type: str) -> Any:
    """CAST of a constant; ValueError where engines could differ on what it gives."""
    kind = types.kind_of(sql_type)
    if isinstance(value, str) and kind == "number" and _NUMBER.fullmatch(value):
        value = Fraction(value)
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if kind == "number" and number:
        exact = sql_type == DOUBLE or (value == int(value) if sql_type == BIGINT else True)
        if exact and abs(value) < 2**63:
            return int(value) if sql_type == BIGINT else value
    if kind == "number" and isinstance(value, bool):
        return int(value)
    if kind == "text" and isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind in ("date", "timestamp") and isinstance(value, date):
        return value.date() if kind == "date" and isinstance(value, datetime) else value
    raise TypeError(sql_type)


def sign(value: Any) -> int:
    """SIGN."""
    return int(value > 0) - int(value < 0)

"""SQL types of row expressions: which there are, where two of them meet, and how a constant is written in each.

These are DuckDB's names. Ledgers keep them, so every engine gives the columns of its sources in these names. The
database never has to choose a type: every operation gets operands of types that this file chose, so no cast is
added that could fail.
"""

import re
import struct
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal

from sqlglot import exp

Kind = Literal["number", "text", "boolean", "date", "timestamp", "null", "other"]

BIGINT, HUGEINT, DOUBLE = "BIGINT", "HUGEINT", "DOUBLE"  # BIGINT stands for all whole numbers of up to 64 bits
KINDS: dict[str, Kind] = {
    BIGINT: "number",
    HUGEINT: "number",
    DOUBLE: "number",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "NULL": "null",
}
REACH = {  # the largest absolute value of each type of whole numbers
    "TINYINT": 2**7,
    "SMALLINT": 2**15,
    "INTEGER": 2**31,
    "BIGINT": 2**63,
    "HUGEINT": 2**127,
    "UTINYINT": 2**8,
    "USMALLINT": 2**16,
    "UINTEGER": 2**32,
    "UBIGINT": 2**64,
    "UHUGEINT": 2**128,
}
INTEGERS = tuple(name for name in REACH if name != "UHUGEINT")  # types of people and preferences that are whole numbers
SINGLES = ("FLOAT", "REAL")
FLOATS = ("DOUBLE", *SINGLES)
STORED_TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
NEVER_PEOPLE = ("BOOLEAN", "DATE", "TIME", "INTERVAL", "BLOB")  # what the types begin with that name nobody
MOST_DIGITS = 38  # of a DECIMAL
NARROW_DIGITS = 18  # of a DECIMAL that the database holds in 64 bits
FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)  # other dates count as missing
NOTED = "sql_type"  # where an expression's notes say its type
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?", re.ASCII)


def noted(expression: exp.Expr, sql_type: str) -> exp.Expr:
    """Note the type of an expression: a database that casts in another way than SQL says needs to know it."""
    expression.meta[NOTED] = sql_type
    return expression


def kind_of(sql_type: str) -> Kind:
    """Return the kind of values a type has."""
    return "number" if sql_type.startswith("DECIMAL") else KINDS[sql_type]


def decimal(whole_digits: int, scale: int) -> str:
    """Return the DECIMAL with so many digits before and after the point; DOUBLE if there is none."""
    width = max(whole_digits + scale, 1)
    return f"DECIMAL({width},{scale})" if width <= MOST_DIGITS else DOUBLE


def digits(sql_type: str, reach: int) -> tuple[int, int]:
    """Return how many digits an exact number has before and after the point."""
    found = _DECIMAL.fullmatch(sql_type)
    if found is None:
        return len(str(reach)), 0
    width, scale = int(found[1]), int(found[2])
    return width - scale, scale


def factors(left: tuple[int, int], right: tuple[int, int]) -> list[str]:
    """Return the DECIMAL types to multiply two numbers in, given their digits before and after the point.

    The database multiplies two numbers of up to 18 digits in 64 bits, and fails where the product has more digits. It
    takes 128 bits as soon as one of the two types is wider.
    """
    first, second = ((max(before + after, 1), after) for before, after in (left, right))
    if max(first[0], second[0]) <= NARROW_DIGITS < first[0] + second[0]:
        first = (NARROW_DIGITS + 1, first[1])
    return [f"DECIMAL({width},{scale})" for width, scale in (first, second)]


def fits(value: Fraction, sql_type: str) -> bool:
    """Return whether an exact type can hold a number, rounded to its decimals."""
    if sql_type in REACH:
        return abs(value) < REACH[sql_type]
    before, after = digits(sql_type, 0)
    return bool(abs(round(value * 10**after)) < 10 ** (before + after))


def whole(reach: int) -> str:
    """Return the type that holds whole numbers up to `reach`; some databases hold HUGEINT in 38 digits."""
    return BIGINT if reach <= 2**63 - 1 else HUGEINT if reach < 10**MOST_DIGITS else DOUBLE


def common(parts: Iterable[tuple[str, int]]) -> str:
    """Return the type in which numbers of these types and reaches can meet without loss, else DOUBLE."""
    parts = list(parts)
    types = {sql_type for sql_type, _ in parts}
    if len(types) == 1:
        return types.pop()
    if DOUBLE in types:
        return DOUBLE
    if types == {BIGINT, HUGEINT}:
        return HUGEINT
    before, after = zip(*(digits(*part) for part in parts), strict=True)
    return decimal(max(before), max(after))


def single(value: Any) -> float:
    """Return the 32-bit number that is nearest to one of less than 10^36."""
    return float(struct.unpack("f", struct.pack("f", float(value)))[0])


def spelled(value: float) -> float:
    """Return a 32-bit number with as few digits as tell it apart: 0.1 and not 0.10000000149011612."""
    return next(short for digits in range(6, 18) if single(short := float(f"{value:.{digits}g}")) == value)


def constant(value: Any, sql_type: str) -> exp.Expr:
    """Return a constant in the one form that reaches the database."""
    if value is None:
        return exp.Null() if sql_type == "NULL" else _typed("NULL", sql_type)
    if sql_type == "BOOLEAN":
        return exp.Boolean(this=bool(value))
    if sql_type == "VARCHAR":
        return exp.Literal.string(str(value))
    if sql_type in ("DATE", "TIMESTAMP"):
        text = value.isoformat() if sql_type == "DATE" else value.isoformat(sep=" ")
        return exp.cast(exp.Literal.string(text), sql_type)
    if sql_type == DOUBLE:
        return _signed(f"{abs(float(value))!r}" if "e" in repr(float(value)) else f"{abs(float(value))!r}e0", value < 0)
    text = str(_scaled(Fraction(value), digits(sql_type, 1)[1]))
    if sql_type == BIGINT and abs(int(value)) < 2**31:
        return _signed(text.lstrip("-"), value < 0)
    return _typed(f"'{text}'", sql_type)


def _scaled(value: Fraction, scale: int) -> str:
    """Return an exact number with `scale` decimals."""
    unscaled = round(value * 10**scale)
    sign, text = "-" if unscaled < 0 else "", str(abs(unscaled)).rjust(scale + 1, "0")
    return sign + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)


def _signed(text: str, negative: bool) -> exp.Expr:
    number = exp.Literal.number(text)
    return exp.paren(exp.Neg(this=number)) if negative else number


def _typed(text: str, sql_type: str) -> exp.Expr:
    inner = exp.Null() if text == "NULL" else exp.Literal.string(text.strip("'"))
    return exp.Cast(this=inner, to=exp.DataType.build(sql_type, dialect="duckdb"))


def moment(text: str) -> date | datetime | None:
    """Return the date or the time a text spells in ISO form; None for anything else."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text.replace("T", " ")) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None


def shifted(start: date, amount: int, unit: str) -> datetime | None:
    """Return a date or time moved by an interval, as SQL moves it; None beyond the years 1 to 9999."""
    moved = start if isinstance(start, datetime) else datetime(start.year, start.month, start.day)
    months = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
    try:
        if unit not in months:
            return moved + timedelta(**{f"{unit.lower()}s": amount})
        place = moved.year * 12 + moved.month - 1 + amount * months[unit]
        first = moved.replace(year=place // 12, month=place % 12 + 1, day=1)
        for day in range(moved.day, 27, -1):
            try:
                return first.replace(day=day)
            except ValueError:  # the month is shorter
                continue
        return first.replace(day=moved.day)
    except (OverflowError, ValueError):
        return None

"""Parameter: values for ? and $name become literals that are written here, so that no value can change the question."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from discretion.errors import InvalidDeclaration, did_you_mean

Value = str | int | float | Decimal | bool | date | np.generic | None | Sequence["Value"]
Params = Sequence[Value] | Mapping[str, Value]
MOST_VALUES = 1_000  # of one list
MOST_DIGITS = 308  # of one number, before its decimal point


def bound(sql: str, params: Params | None) -> str:
    """Return the question with a literal in the place of every parameter; refuse missing, unused and odd values."""
    if params is None or (not params and "?" not in sql and "$" not in sql):
        return sql
    if isinstance(params, str | bytes) or not isinstance(params, Sequence | Mapping):
        raise InvalidDeclaration(f"params must be a list for ? or a mapping for $name, got {type(params).__name__}.")
    try:
        tokens = sqlglot.tokenize(sql, dialect="duckdb")
    except SqlglotError:
        return sql  # the parser refuses it, and says where
    places = _named(tokens, params) if isinstance(params, Mapping) else _in_order(tokens, params)
    for start, end, text in reversed(places):
        sql = sql[:start] + text + sql[end + 1 :]
    return sql


def _in_order(tokens: Sequence[Token], params: Sequence[Value]) -> list[tuple[int, int, str]]:
    """Return where each ? begins and ends, and its literal."""
    marks = [place for place, one in enumerate(tokens) if one.token_type == TokenType.PLACEHOLDER and one.text == "?"]
    if len(marks) != len(params):
        raise InvalidDeclaration(
            f"params must have one value for each ?, got {len(params)} for {len(marks)}. Values for "
            "$name are given as a mapping: params={'name': 40}."
        )
    pairs = enumerate(zip(marks, params, strict=True), start=1)
    return [
        (tokens[place].start, tokens[place].end, _written(f"Parameter {number}", value, tokens[:place]))
        for number, (place, value) in pairs
    ]


def _named(tokens: Sequence[Token], params: Mapping[str, Value]) -> list[tuple[int, int, str]]:
    """Return where each $name begins and ends, and its literal."""
    found = [
        (place, mark.start, name.end, name.text)
        for place, (mark, name) in enumerate(pairwise(tokens))
        if mark.token_type == TokenType.PARAMETER and mark.text == "$" and name.start == mark.end + 1
    ]
    used = {name for *_, name in found}
    for name in used - set(params):
        raise InvalidDeclaration(f"The question has ${name}, and params has no {name!r}.{did_you_mean(name, params)}")
    for name in set(params) - used:
        raise InvalidDeclaration(f"params has {name!r}, and the question has no ${name}.{did_you_mean(name, used)}")
    return [
        (start, end, _written(f"Parameter {name!r}", params[name], tokens[:place])) for place, start, end, name in found
    ]


def _written(what: str, value: Value, before: Sequence[Token]) -> str:
    """Return a value as SQL where it stands: `IN ?` and `IN (?)` take values in round brackets, all else a list."""
    if not isinstance(value, list | tuple):
        return literal(what, value)
    if not 0 < len(value) <= MOST_VALUES:
        raise InvalidDeclaration(f"{what} must have 1 to {MOST_VALUES:,} values, got {len(value)}.")
    if any(isinstance(one, list | tuple) for one in value):
        raise InvalidDeclaration(f"{what} is a list of lists. Give a list of single values.")
    inner = ", ".join(literal(what, one) for one in value)
    kinds = [token.token_type for token in before[-2:]]
    if kinds == [TokenType.IN, TokenType.L_PAREN]:
        return inner
    return f"({inner})" if kinds[-1:] == [TokenType.IN] else f"[{inner}]"


def literal(what: str, value: Value) -> str:
    """Return a single value as SQL. A number below 0 has brackets: `a -?` must not become the comment `a --5`."""
    value = _plain(value)
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return str(exp.Literal.string(value).sql("duckdb"))
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidDeclaration(f"{what} has a time zone. Give the time without one, as the table has it.")
        if getattr(value, "nanosecond", 0) > 0:  # of a pandas Timestamp
            raise InvalidDeclaration(f"{what} has nanoseconds, and times are in microseconds. Round it first.")
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return _number(what, value)


def _plain(value: Value) -> Any:
    """Return a value of NumPy as one of Python; what is none there as it is."""
    if isinstance(value, np.datetime64):
        found, micro = value.item(), value.astype("datetime64[us]")  # of nanoseconds, `item` makes a number
        same = micro.astype(value.dtype) == value and isinstance(micro.item(), date)
        return found if isinstance(found, date) else micro.item() if same else value
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.timedelta64) else value


def _number(what: str, value: object) -> str:
    if isinstance(value, int | Decimal) and _is_huge(value):
        raise InvalidDeclaration(f"{what} has more than {MOST_DIGITS} digits, and no column holds such numbers.")
    if not isinstance(value, int | float | Decimal) or not isfinite(value):
        raise InvalidDeclaration(
            f"{what} must be a text, a finite number, a truth value, a date, a time, None or a list of these, got a "
            f"value of type {type(value).__name__}."
        )
    exact = value if isinstance(value, int) else Decimal(repr(value)) if isinstance(value, float) else value
    text = str(exact) if isinstance(exact, int) else format(exact, "f") if abs(exact.adjusted()) < 30 else str(exact)
    return f"({text})" if text.startswith("-") else text


def _is_huge(value: int | Decimal) -> bool:
    """Return whether a number is beyond those that a double can hold."""
    if isinstance(value, Decimal):
        return value.is_finite() and value.adjusted() >= MOST_DIGITS
    return abs(value) >= int(10**MOST_DIGITS)

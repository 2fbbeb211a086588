"""CAST and TRY_CAST: which types can be cast, and where the result lies."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import kind as types
from discretion.query.kind import BIGINT, DOUBLE
from discretion.query.operation import TIMES, Operands, built, flat, moment_of, try_cast
from discretion.query.scalar import TRUTH, Scalar, shown

LONGEST_CAST = 50  # characters of any number, truth value or time
_CASTS = {
    exp.DType.TINYINT: "TINYINT",
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INTEGER",
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: "FLOAT",
    exp.DType.DOUBLE: DOUBLE,
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR), "VARCHAR"),
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ), "TIMESTAMP"),
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.DATE: "DATE",
}
_CASTABLE: dict[str, tuple[str, ...]] = {
    "number": ("number", "text", "boolean"),
    "boolean": ("number", "text", "boolean"),
    "text": ("number", "text", "boolean", *TIMES),
    **dict.fromkeys(TIMES, ("text", *TIMES)),
}


def cast(node: exp.Expr, operands: Operands) -> Scalar:
    """CAST and TRY_CAST, which are the same here: what cannot be cast is NULL."""
    (value,), target = flat(operands), node.args["to"]
    own = _decimal(target) if target.this == exp.DType.DECIMAL else _CASTS.get(target.this, "other")
    found = DOUBLE if own == "FLOAT" else BIGINT if own in types.REACH else own
    kind = "other" if own == "other" else types.kind_of(found)
    if kind in TIMES and value.kind == "text" and value.literal:
        return moment_of(value, found)
    if kind not in _CASTABLE.get(value.kind, ()):
        raise QueryRefused(f"{shown(node)} is not possible. Cast between numbers, texts, booleans, dates, timestamps.")
    low, high = (Fraction(0), Fraction(1)) if value.kind == "boolean" else (value.low, value.high)
    if own in types.REACH:
        low, high = None if low is None else Fraction(floor(low)), None if high is None else Fraction(ceil(high))
    tame = value.tame.anywhere if kind == "boolean" else value.tame
    result = built(node, {"this": tame}, sql_type=found, to=exp.DataType.build(own, dialect="duckdb"))
    spelled = kind == "text" and value.single  # '0.1' and not '0.10000000149011612'
    total = try_cast(types.noted(try_cast(tame.total, "FLOAT"), "FLOAT") if spelled else tame.total, own)
    known: dict[str, Any] = {"total": try_cast(total, DOUBLE) if own == "FLOAT" else total}
    if kind == "number":
        whole = own in types.REACH
        known |= {"low": low, "high": high, "reach": types.REACH.get(own, 0), "whole": whole, "narrow": whole}
    if kind == "text":
        longest = value.longest or LONGEST_CAST
        known |= {"longest": longest, "made": value.made + longest}
    wild = found in (DOUBLE, "DATE", "TIMESTAMP")
    known |= {"wild": wild, "single": own in types.SINGLES, "values": TRUTH if kind == "boolean" else None}
    return replace(result, required=value.required and _always_fits(value, own, kind), **known)


def _always_fits(value: Scalar, own: str, kind: str) -> bool:
    """Tell whether a cast has an answer for every value within declared bounds."""
    if kind in ("text", "boolean") or value.kind in ("boolean", *TIMES):
        return value.kind != "text" or kind == "text"
    if value.kind == "text" or value.low is None or value.high is None:
        return False
    if own in types.REACH:
        return bool(max(abs(value.low), abs(value.high)) < types.REACH[own] - 1)
    before = {DOUBLE: 300, "FLOAT": 38}.get(own) or types.digits(own, 0)[0]
    return bool(max(abs(value.low), abs(value.high)) < 10**before - 1)


def _decimal(target: exp.Expr) -> str:
    """The DECIMAL type a cast names, in one spelling: the database would refuse others after the charge."""
    sizes = [one.name for one in target.expressions]
    if all(size.isdigit() and len(size) < 4 for size in sizes) and len(sizes) <= 2:
        width, scale = [*map(int, sizes), *(18, 0)[len(sizes) :]]
        if len(sizes) == 1:
            scale = 0
        if 1 <= width <= types.MOST_DIGITS and scale <= width:
            return f"DECIMAL({width},{scale})"
    raise QueryRefused(
        f"{shown(target)} is not a type. DECIMAL(width, scale) has a width from 1 to 38 and a scale of at most that."
    )

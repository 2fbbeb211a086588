"""What each allowed operation gives: a total expression, its kind, and the interval or the values it can take.

An operation that would raise on some data (a cast, an overflow, a division by zero) is NULL there instead. Doubles are
made finite before they are compared: in DuckDB NaN equals itself and exceeds everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from math import ceil, floor
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.sql import interval
from discretion.sql.scalar import TRUTH, Kind, Scalar, Storage, mixed, shown

Operands = Mapping[str, Scalar | list[Scalar]]

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
CASTS: dict[exp.DType, tuple[Kind, Storage]] = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), ("number", "integer")),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), ("number", "float")),
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR), ("text", "")),
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ), ("timestamp", "")),
    exp.DType.DECIMAL: ("number", "wide"),
    exp.DType.BOOLEAN: ("boolean", ""),
    exp.DType.DATE: ("date", ""),
}
MOST_JOINED = 200  # operations in joined texts: doubled again and again, one row's text could exhaust the memory
_TIMES = ("date", "timestamp")
_CASTABLE: dict[str, tuple[str, ...]] = {
    "number": ("number", "text", "boolean"),
    "boolean": ("number", "text", "boolean"),
    "text": ("number", "text", "boolean", *_TIMES),
    **dict.fromkeys(_TIMES, ("text", *_TIMES)),
}


def comparison(node: exp.Expr, operands: Operands) -> Scalar:
    """=, <>, <, <=, >, >=, IS [NOT] DISTINCT FROM, BETWEEN, IN."""
    parts = alike(node, flat(operands))
    if any(part.kind == "null" for part in parts):
        raise QueryRefused(f"{shown(node)} compares with NULL, which is never true. Write IS NULL or IS NOT NULL.")
    tame = [part.tame for part in parts]
    return _condition(node, _regrouped(operands, tame), total=_closed if castless(tame) else tried)


def is_null(node: exp.Expr, operands: Operands) -> Scalar:
    """IS NULL; IS TRUE and IS FALSE of a condition."""
    (tested,) = flat(operands)
    if not isinstance(node.expression, (exp.Null, exp.Boolean)):
        raise QueryRefused(f"{shown(node)} is not allowed. Only IS NULL, IS TRUE and IS FALSE are.")
    if isinstance(node.expression, exp.Boolean) and tested.kind != "boolean":
        raise QueryRefused(f"{shown(node)} tests a {tested.kind}. Only a condition IS TRUE or IS FALSE.")
    return _condition(node, {"this": tested.tame}, expression=node.expression)


def like(node: exp.Expr, operands: Operands) -> Scalar:
    """LIKE and ILIKE with a fixed pattern."""
    text, pattern = flat(operands)
    if text.kind != "text" or pattern.kind != "text" or not pattern.literal:
        raise QueryRefused(f"{shown(node)} needs a text and a pattern in quotes, such as name LIKE 'A%'.")
    matched = _condition(node, operands)
    return logic(exp.Not(), {"this": matched}) if node.args.get("negate") else matched


def logic(node: exp.Expr, operands: Operands) -> Scalar:
    """AND, OR, NOT."""
    for part in flat(operands):
        if part.kind != "boolean":
            raise QueryRefused(
                f"{type(node).__name__.upper()} needs conditions, got {shown(part.plain)}: a {part.kind}."
            )
    return _condition(node, operands)


def arithmetic(node: exp.Expr, operands: Operands) -> Scalar:
    """+ − * / // % and powers."""
    left, right = flat(operands)
    if isinstance(node, exp.Sub) and left.kind == right.kind == "date":
        return built(node, operands, kind="number", storage="integer", whole=True)
    if {left.kind, right.kind} != {"number"}:
        mixed(node, {left.kind, right.kind, "number"})
    real = isinstance(node, (exp.Div, exp.Pow))
    whole = left.whole and right.whole and not real
    if isinstance(node, exp.IntDiv) and not whole:
        raise QueryRefused(f"{shown(node)} needs whole numbers. Write FLOOR(a / b).")
    floats = real or "float" in (left.storage, right.storage)
    low, high = interval.span(node, left, right)
    values = interval.few_values(node, left, right)
    result = built(
        node,
        operands,
        kind="number",
        storage="float" if floats else "wide",
        wild=floats,
        whole=whole,
        low=low,
        high=high,
        values=values,
    )
    divides = isinstance(node, (exp.Div, exp.IntDiv, exp.Mod))
    if divides and not (right.literal and right.low):  # engines differ on a division by zero
        divisor = exp.Nullif(this=right.total.copy(), expression=exp.Literal.number(0))
        return replace(result, total=exp.Try(this=type(node)(this=left.total.copy(), expression=divisor)))
    return result


def shifted(node: exp.Expr, operands: Operands) -> Scalar:
    """A date plus or minus a fixed interval."""
    (moment,) = flat(operands)
    amount, unit = node.expression.this, node.expression.args.get("unit")
    fixed = isinstance(amount, exp.Literal) and str(amount.this).isdigit() and len(str(amount.this)) <= 6
    if moment.kind not in _TIMES or not fixed or unit is None or unit.name.upper() not in UNITS:
        raise QueryRefused(f"{shown(node)} must add a fixed interval to a date, such as day + INTERVAL 30 DAY.")
    return built(node, operands, kind="timestamp", expression=node.expression)


def real(node: exp.Expr, operands: Operands) -> Scalar:
    """Negation, ABS, SIGN, SQRT, LN, EXP, FLOOR, CEIL, ROUND, TRUNC."""
    (part,) = flat(operands)
    if part.kind != "number":
        raise QueryRefused(f"{shown(node)} needs a number, got a {part.kind}. CAST it first.")
    digits = fixed_number(node, "decimals", 0, 15) or 0
    low, high = interval.image(node, part, Fraction(1, 10**digits))
    extra = {"decimals": node.args["decimals"]} if node.args.get("decimals") else {}
    if isinstance(node, (exp.Sqrt, exp.Ln, exp.Exp)):
        return built(node, operands, kind="number", storage="float", wild=True)
    if isinstance(node, exp.Neg) and part.literal:
        values = tuple(-value for value in part.values or ())
        return replace(
            part, plain=exp.Neg(this=part.plain), total=exp.Neg(this=part.total), low=low, high=high, values=values
        )
    rounds = isinstance(node, (exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Sign)) and digits == 0
    kept = {"storage": part.storage, "wild": part.wild, "whole": part.whole or rounds}
    return built(node, operands, kind="number", low=low, high=high, **kept, **extra)


def texts(node: exp.Expr, operands: Operands) -> Scalar:
    """LOWER, UPPER, TRIM, LENGTH, STARTS_WITH, ENDS_WITH, CONTAINS, ||, CONCAT, SUBSTRING, LEFT, RIGHT."""
    for part in flat(operands):
        if part.kind != "text":
            raise QueryRefused(f"{shown(node)} needs a text, got a {part.kind}. CAST it AS VARCHAR first.")
    extra: dict[str, Any] = {name: node.args[name] for name in ("position", "safe", "coalesce") if node.args.get(name)}
    for name in ("start", "length", "expression"):
        if name not in operands and node.args.get(name) is not None:
            fixed_number(node, name, 1 if name == "start" else 0, 1_000_000)
            extra[name] = node.args[name]
    if isinstance(node, exp.Length):
        return built(node, operands, kind="number", storage="integer", whole=True, **extra)
    if isinstance(node, (exp.StartsWith, exp.EndsWith, exp.Contains)):
        return built(node, operands, kind="boolean", values=TRUTH, **extra)
    made = built(node, operands, kind="text", **extra)
    if isinstance(node, (exp.DPipe, exp.Concat)) and made.size > MOST_JOINED:
        raise QueryRefused(f"{shown(node)} joins too many texts: at most {MOST_JOINED} operations.")
    return made


def date_part(node: exp.Expr, operands: Operands) -> Scalar:
    """EXTRACT(MONTH FROM day)."""
    (moment,), written = flat(operands), str(node.this.name).upper()
    name = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY", "DAYOFWEEKISO": "ISODOW"}.get(written, written)
    if name not in PARTS or moment.kind not in _TIMES:
        raise QueryRefused(f"{shown(node)} must take one of {', '.join(PARTS)} from a date or a timestamp.")
    low, high = PARTS[name] or (None, None)
    sides = {"low": None if low is None else Fraction(low), "high": None if high is None else Fraction(high)}
    return built(node, operands, kind="number", storage="integer", whole=True, this=exp.var(name), **sides)


def date_arithmetic(node: exp.Expr, operands: Operands) -> Scalar:
    """DATE_TRUNC('month', day) and DATE_DIFF('day', first, last)."""
    unit, parts = node.args.get("unit"), flat(operands)
    if unit is None or unit.name.upper() not in UNITS or any(part.kind not in _TIMES for part in parts):
        raise QueryRefused(f"{shown(node)} needs dates and one of {', '.join(UNITS)}.")
    operands = _regrouped(operands, alike(node, parts))
    if isinstance(node, exp.DateDiff):
        return built(node, operands, kind="number", storage="integer", whole=True, unit=unit)
    result = built(node, operands, kind="timestamp", unit=unit)
    return replace(result, total=_try_cast(result.total, "TIMESTAMP"))


def cast(node: exp.Expr, operands: Operands) -> Scalar:
    """CAST and TRY_CAST, which are the same here: what cannot be cast is NULL."""
    (value,), target = flat(operands), node.args["to"]
    kind, storage = CASTS.get(target.this, ("other", ""))
    if target.this == exp.DType.DECIMAL and not _is_decimal(target):
        raise QueryRefused(
            f"{shown(target)} is no type. DECIMAL(width, scale) has a width from 1 to 38 and a scale of at most that."
        )
    if kind in _TIMES and value.kind == "text" and value.literal:
        return _moment(value)
    if kind not in _CASTABLE.get(value.kind, ()):
        raise QueryRefused(f"{shown(node)} is not possible. Cast between numbers, texts, booleans, dates, timestamps.")
    low, high = value.low, value.high
    if value.kind == "boolean":
        low, high = Fraction(0), Fraction(1)
    elif storage == "integer":
        low, high = None if low is None else Fraction(floor(low)), None if high is None else Fraction(ceil(high))
    numeric = {"storage": storage, "whole": storage == "integer", "low": low, "high": high} if kind == "number" else {}
    result = built(node, operands, kind=kind, wild=storage == "float", to=target, **numeric)
    total = exp.TryCast(this=value.total.copy(), to=target.copy())
    known = value.required and value.kind != "text"
    return replace(result, total=total, values=TRUTH if kind == "boolean" else None, required=known)


def _is_decimal(target: exp.Expr) -> bool:
    """Whether the database has this type: found out now, it would fail after the charge."""
    sizes = [one.name for one in target.expressions]
    if not all(size.isdigit() for size in sizes):
        return False
    width, scale, *more = [*map(int, sizes), *(18, 0)[len(sizes) :]]
    return 1 <= width <= 38 and scale <= width and not more


def choice(node: exp.Expr, operands: Operands) -> Scalar:
    """COALESCE, NULLIF, LEAST, GREATEST."""
    parts = [part.tame for part in alike(node, flat(operands))]
    clamps = isinstance(node, (exp.Least, exp.Greatest))
    known = merged(parts[:1] if isinstance(node, exp.Nullif) else parts)
    low, high = interval.clamped(node, parts) if clamps else (known.low, known.high)
    given = [part for part in parts if part.required or (part.literal and part.kind != "null")]
    certain = isinstance(node, exp.Coalesce) and bool(given)
    more: dict[str, Any] = {"ignore_nulls": True} if clamps else {}
    more |= {"storage": known.storage, "whole": known.whole, "low": low, "high": high}
    result = built(node, _regrouped(operands, parts), kind=known.kind, **more)
    return replace(result, values=None if clamps else known.values, required=certain)


def merged(results: Sequence[Scalar]) -> Scalar:
    """What is known of a value that is one of `results`."""
    known = [part for part in results if part.kind != "null"]
    if not known:
        raise QueryRefused("A CASE or COALESCE whose results are all NULL says nothing. Give it a result.")
    lows, highs, domains = [p.low for p in known], [p.high for p in known], [p.values for p in known]
    stored = {part.storage for part in known}
    return replace(
        known[0],
        storage=stored.pop() if len(stored) == 1 else "float" if "float" in stored else "wide",
        whole=all(part.whole for part in known),
        low=interval.least(lows),
        high=interval.most(highs),
        values=None if None in domains else tuple(dict.fromkeys(v for d in domains for v in d or () if v is not None)),
    )


def alike(node: exp.Expr, parts: Sequence[Scalar]) -> list[Scalar]:
    """Operands of one kind; anything that differs is refused.

    A text literal is read as a date among dates, and a person's text as a number among numbers: people in a text file
    are always texts, also where all of them are numbers.
    """
    if any(part.kind in _TIMES for part in parts):
        parts = [_moment(part) if part.kind == "text" and part.literal else part for part in parts]
    if any(part.kind == "number" for part in parts):
        whole: dict[str, Any] = {"kind": "number", "storage": "integer", "whole": True, "number": None}
        parts = [part if part.number is None else replace(part, total=part.number, **whole) for part in parts]
    kinds = {part.kind for part in parts} - {"null"}
    if kinds == set(_TIMES):
        return [replace(part, kind="timestamp", total=_try_cast(part.total, "TIMESTAMP")) for part in parts]
    if len(kinds) > 1 or "other" in kinds:
        mixed(node, kinds)
    return list(parts)


def built(node: exp.Expr, operands: Operands, *, kind: Kind, total: Any = None, **known: Any) -> Scalar:
    """`node` over its operands, as written and total; what is known of it beside its kind, and its fixed parts."""
    parts = flat(operands)
    fixed = {name: known.pop(name) for name in list(known) if name in node.arg_types}

    def over(side: Callable[[Scalar], exp.Expr]) -> exp.Expr:
        arguments: dict[str, Any] = {
            name: [side(s).copy() for s in part] if isinstance(part, list) else side(part).copy()
            for name, part in operands.items()
        }
        return type(node)(**arguments, **{n: v.copy() if isinstance(v, exp.Expr) else v for n, v in fixed.items()})

    return Scalar(
        plain=over(lambda part: part.plain),
        total=(total or tried)(over(lambda part: part.total)),
        kind=kind,
        columns=frozenset().union(*(part.columns for part in parts)),
        required=all(part.required or part.literal for part in parts),
        size=1 + sum(part.size for part in parts),
        **known,
    )


def flat(operands: Operands) -> list[Scalar]:
    """The operands in one list."""
    return [s for part in operands.values() for s in (part if isinstance(part, list) else [part])]


def fixed_number(node: exp.Expr, name: str, least: int, most: int) -> int | None:
    """The number written out as one part of a node, None without that part."""
    argument = node.args.get(name)
    if argument is None:
        return None
    text = str(argument.this) if isinstance(argument, exp.Literal) and not argument.is_string else ""
    if not text.isdigit() or not least <= int(text) <= most:
        raise QueryRefused(f"{shown(node)} needs a whole number from {least} to {most:,} written out.")
    return int(text)


def _condition(node: exp.Expr, operands: Operands, total: Any = None, **fixed: Any) -> Scalar:
    return built(node, operands, kind="boolean", values=TRUTH, total=total or _closed, **fixed)


def _closed(expression: exp.Expr) -> exp.Expr:
    return exp.Paren(this=expression)


def tried(expression: exp.Expr) -> exp.Expr:
    """`expression`, NULL where it fails."""
    return exp.Try(this=expression)


def _try_cast(expression: exp.Expr, sql_type: str) -> exp.Expr:
    return exp.TryCast(this=expression.copy(), to=exp.DataType.build(sql_type, dialect="duckdb"))


def _regrouped(operands: Operands, parts: Sequence[Scalar]) -> Operands:
    """The operands' names over other scalars."""
    supply = iter(parts)
    return {n: [next(supply) for _ in part] if isinstance(part, list) else next(supply) for n, part in operands.items()}


def castless(parts: Sequence[Scalar]) -> bool:
    """Whether these meet without a cast that could fail: then engines may push a comparison into the scan.

    The database casts numbers of different types by itself, and 10 is no DECIMAL(38, 37).
    """
    numbers = [part for part in parts if part.kind == "number"]
    stored = {part.storage for part in numbers if not part.literal}
    return stored <= {"float"} or {part.storage for part in numbers} == {"integer"}


def _moment(literal: Scalar) -> Scalar:
    """A text in the query as the date or time it spells."""
    text = str(literal.plain.this)
    try:
        zone = datetime.fromisoformat(text).tzinfo
    except ValueError:
        zone = None
        text = ""
    if not text or zone is not None:
        raise QueryRefused(f"{shown(literal.plain)} stands for a date but is none. Write '2024-12-31', or with a time.")
    kind: Kind = "date" if len(text) == 10 else "timestamp"
    cast_literal = exp.cast(exp.Literal.string(text), kind.upper())
    return replace(literal, plain=cast_literal, total=cast_literal, kind=kind, values=None)

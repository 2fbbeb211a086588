"""The table of everything that may be computed: one row per function and operator.

A row says what its operands are, which rule gives its type, bounds and total form (over people's rows), what it gives
for plain values (constants and released answers), and how it passes on the error of a released answer.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import bucket, calendar, casting, moment, operation, value
from discretion.query.operation import Operands
from discretion.query.scalar import Scalar, literal, shown

Slope = Literal["", "opposite", "sum", "difference", "product", "quotient", "root", "rounding", "clamp"]


@dataclass(frozen=True, kw_only=True)
class SqlFunction:
    """One row of the table."""

    rule: Callable[[exp.Expr, Operands], Scalar]
    operands: tuple[str, ...] = ("this",)  # parts that are expressions
    fixed: tuple[str, ...] = ()  # parts that are written out
    value: Callable[..., Any] | None = None  # of plain values; None: only over rows
    strict: bool = True  # NULL if an operand is
    slope: Slope = ""  # how an error of a released answer goes on; empty: not known

    def of(self, node: exp.Expr, values: list[Any]) -> Any:
        """The answer for plain values of the operands, which are of the types the rule allows."""
        if self.value is None:
            raise QueryRefused(f"{shown(node)} is computed from constants or released values. Write its value out.")
        values = calendar.alike(values)
        given = values + [_written(node.args[name]) for name in self.fixed if node.args.get(name) is not None]
        answer = value.strict(self.value, given) if self.strict else self.value(*given)
        return not answer if node.args.get("negate") and answer is not None else answer


def _written(argument: Any) -> Any:
    """A fixed part as a plain value."""
    if isinstance(argument, exp.Neg):
        return -_written(argument.this)
    if isinstance(argument, exp.Literal) and not argument.is_string:
        return int(argument.this)
    if isinstance(argument, exp.Boolean | exp.Null):
        return None if isinstance(argument, exp.Null) else bool(argument.this)
    return argument


def _is(tested: Any, expected: bool | None) -> bool:
    return tested is expected


_TWO = ("this", "expression")


def _compared(function: Callable[..., Any] | None, *operands: str, strict: bool = True) -> SqlFunction:
    return SqlFunction(rule=operation.comparison, operands=operands or _TWO, value=function, strict=strict)


def _computed(function: Callable[..., Any], slope: Slope = "") -> SqlFunction:
    return SqlFunction(rule=operation.arithmetic, operands=_TWO, value=function, slope=slope)


def _curve(function: Callable[[float], float], slope: Slope = "") -> SqlFunction:
    return SqlFunction(rule=operation.curve(function), value=function, slope=slope)


def _rounded(function: Callable[..., Any], *, slope: Slope = "") -> SqlFunction:
    return SqlFunction(rule=operation.real, fixed=("decimals",), value=function, slope=slope)


def _text(
    function: Callable[..., Any], *operands: str, fixed: tuple[str, ...] = (), strict: bool = True
) -> SqlFunction:
    return SqlFunction(rule=operation.texts, operands=operands or ("this",), fixed=fixed, value=function, strict=strict)


def _chosen(function: Callable[..., Any], *operands: str, slope: Slope = "") -> SqlFunction:
    return SqlFunction(rule=operation.choice, operands=operands, value=function, strict=False, slope=slope)


FUNCTIONS: Mapping[type[exp.Expr], SqlFunction] = MappingProxyType(
    {
        exp.EQ: _compared(operator.eq),
        exp.NEQ: _compared(operator.ne),
        exp.LT: _compared(operator.lt),
        exp.LTE: _compared(operator.le),
        exp.GT: _compared(operator.gt),
        exp.GTE: _compared(operator.ge),
        exp.NullSafeEQ: _compared(operator.eq, strict=False),
        exp.NullSafeNEQ: _compared(operator.ne, strict=False),
        exp.Between: _compared(lambda one, low, high: low <= one <= high, "this", "low", "high"),
        exp.In: _compared(value.among, "this", "expressions", strict=False),
        exp.Is: SqlFunction(rule=operation.is_null, fixed=("expression",), value=_is, strict=False),
        exp.Like: SqlFunction(rule=operation.like, operands=_TWO, fixed=("negate",)),
        exp.ILike: SqlFunction(rule=operation.like, operands=_TWO, fixed=("negate",)),
        exp.And: SqlFunction(rule=operation.logic, operands=_TWO, value=value.conjunction, strict=False),
        exp.Or: SqlFunction(rule=operation.logic, operands=_TWO, value=value.disjunction, strict=False),
        exp.Not: SqlFunction(rule=operation.logic, value=operator.not_),
        exp.Add: _computed(value.add, "sum"),
        exp.Sub: _computed(value.subtract, "difference"),
        exp.Mul: _computed(operator.mul, "product"),
        exp.Div: _computed(value.divide, "quotient"),
        exp.IntDiv: _computed(value.whole_quotient),
        exp.Mod: _computed(value.remainder),
        exp.Pow: _computed(math.pow),
        exp.Neg: SqlFunction(rule=operation.real, value=operator.neg, slope="opposite"),
        exp.Abs: SqlFunction(rule=operation.real, value=abs),
        exp.Sign: SqlFunction(rule=operation.real, value=value.sign),
        exp.Sqrt: _curve(math.sqrt, slope="root"),
        exp.Cbrt: _curve(math.cbrt),
        exp.Ln: _curve(math.log),
        exp.Exp: _curve(math.exp),
        exp.Floor: SqlFunction(rule=operation.real, value=value.like_its_argument(math.floor)),
        exp.Ceil: SqlFunction(rule=operation.real, value=value.like_its_argument(math.ceil)),
        exp.Trunc: _rounded(value.cut_off),
        exp.Round: _rounded(value.round_half_up, slope="rounding"),
        exp.WidthBucket: SqlFunction(
            rule=bucket.width_bucket,
            operands=("this", "min_value", "max_value"),
            fixed=("num_buckets",),
            value=bucket.bucket_of,
        ),
        exp.Lower: _text(value.lower),
        exp.Upper: _text(value.upper),
        exp.Length: _text(len),
        exp.Trim: SqlFunction(rule=operation.texts, fixed=("position",), value=value.trimmed),
        exp.StartsWith: _text(str.startswith, *_TWO),
        exp.EndsWith: _text(str.endswith, *_TWO),
        exp.Contains: _text(str.__contains__, *_TWO),
        exp.DPipe: _text(operator.add, *_TWO),
        exp.Concat: _text(value.joined, "expressions", strict=False),
        exp.Substring: _text(value.middle, fixed=("start", "length")),
        exp.Left: _text(lambda text, length: text[:length], fixed=("expression",)),
        exp.Right: _text(value.right, fixed=("expression",)),
        exp.Extract: SqlFunction(rule=moment.date_part, operands=("expression",), fixed=("this",), value=calendar.part),
        exp.TimestampTrunc: SqlFunction(rule=moment.date_arithmetic, fixed=("unit",), value=calendar.truncated),
        exp.DateTrunc: SqlFunction(rule=moment.date_arithmetic, fixed=("unit",), value=calendar.truncated),
        exp.DateBin: SqlFunction(
            rule=moment.bucket, operands=("expression",), fixed=("this",), value=calendar.bucketed
        ),
        exp.DateDiff: SqlFunction(rule=moment.date_arithmetic, operands=_TWO, fixed=("unit",)),
        exp.Cast: SqlFunction(rule=casting.cast, fixed=("to",)),
        exp.TryCast: SqlFunction(rule=casting.cast, fixed=("to",)),
        exp.Coalesce: _chosen(value.first_known, "this", "expressions"),
        exp.Nullif: _chosen(value.unless_equal, *_TWO),
        exp.Least: _chosen(value.extreme(min), "this", "expressions", slope="clamp"),
        exp.Greatest: _chosen(value.extreme(max), "this", "expressions", slope="clamp"),
    }
)


def applied(node: exp.Expr, operands: Operands) -> Scalar:
    """`node` over its operands; a constant if they all are."""
    row = FUNCTIONS[type(node)]
    made = row.rule(node, operands)
    given = made.operands
    if not given or not all(part.literal for part in given):
        return made
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return _cast(node, made, given[0])
    return _folded(row.of(node, [part.value for part in given]), made)


def _cast(node: exp.Expr, made: Scalar, given: Scalar) -> Scalar:
    """A constant in another type, where every engine agrees on it."""
    if given.value is None:
        return literal(None, made.type, made.plain)
    try:
        return _folded(value.cast(given.value, made.type), made)
    except (TypeError, ValueError, ArithmeticError):
        raise QueryRefused(f"{shown(node)} casts a constant. Write its value out.") from None


def _folded(found: Any, made: Scalar) -> Scalar:
    """Return the constant that an operation on constants gives; of 32-bit numbers, the nearest one."""
    if not made.single or found is None:
        return literal(found, made.type, made.plain)
    return operation.as_single(found, made.plain)

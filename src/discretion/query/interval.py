"""Interval arithmetic: where the result of an operation lies, from where its operands lie."""

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

from sqlglot import exp

from discretion.declaration.span import Ends
from discretion.query.calendar import difference
from discretion.query.scalar import Scalar, Side

MOST_POWER = 64  # of a power whose bounds are worked out


def span(node: exp.Expr, left: Scalar, right: Scalar) -> tuple[Side, Side]:
    """Return where a result lies, by interval arithmetic."""
    a, b, c, d = left.low, left.high, right.low, right.high
    if a is None or b is None or c is None or d is None:
        return None, None
    if isinstance(node, exp.Add):
        return a + c, b + d
    if isinstance(node, exp.Sub):
        return a - d, b - c
    if isinstance(node, exp.Mul):
        corners = [a * c, a * d, b * c, b * d]
    elif isinstance(node, (exp.Div, exp.IntDiv)) and not c <= 0 <= d:
        corners = [a / c, a / d, b / c, b / d]
    elif isinstance(node, exp.Mod) and c == d != 0:
        most = abs(c) - 1 if left.whole and right.whole else abs(c)  # 5 % 3 is at most 2
        corners = [Fraction(0) if a >= 0 else -most, Fraction(0) if b <= 0 else most]
    elif isinstance(node, exp.Pow) and c == d and c.denominator == 1 and 0 <= c <= MOST_POWER:
        corners = [a**c.numerator, b**c.numerator, *([Fraction(0)] if a < 0 < b else [])]
    else:
        return None, None
    low, high = min(corners), max(corners)
    # SQL cuts a whole quotient towards zero.
    return (Fraction(int(low)), Fraction(int(high))) if isinstance(node, exp.IntDiv) else (low, high)


def few_values(node: exp.Expr, left: Scalar, right: Scalar) -> tuple[Any, ...] | None:
    """The values of few values plus, minus or times a literal."""
    known: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
        exp.Add: operator.add,
        exp.Sub: operator.sub,
        exp.Mul: operator.mul,
    }
    operation = known.get(type(node))
    few, constant = (left, right) if right.literal else (right, left)
    values = few.domain()
    if operation is None or values is None or not constant.literal or not constant.values:
        return None
    literal, swapped = constant.values[0], few is right
    shifted = (operation(literal, v) if swapped else operation(v, literal) for v in values if v is not None)
    return tuple(dict.fromkeys(shifted))


def image(node: exp.Expr, part: Scalar, step: Fraction) -> tuple[Side, Side]:
    """Return where a function of one number lies."""
    if isinstance(node, exp.Sign):
        return Fraction(-1), Fraction(1)
    if part.low is None or part.high is None:
        return None, None
    low, high = part.low, part.high
    if isinstance(node, exp.Neg):
        return -high, -low
    if isinstance(node, exp.Abs):
        return max(Fraction(0), low, -high), max(abs(low), abs(high))
    if isinstance(node, exp.Floor):
        return Fraction(floor(low)), Fraction(floor(high))
    if isinstance(node, exp.Ceil):
        return Fraction(ceil(low)), Fraction(ceil(high))
    return floor(low / step) * step, ceil(high / step) * step


def grown(function: Callable[[float], float], part: Scalar) -> tuple[Side, Side]:
    """Return where a function of one number lies that grows with it; unknown if it has no answer at an end."""
    if part.low is None or part.high is None:
        return None, None
    try:
        return Fraction(function(float(part.low))), Fraction(function(float(part.high)))
    except (ValueError, OverflowError):
        return None, None


def clamped(node: exp.Expr, parts: Sequence[Scalar]) -> tuple[Side, Side]:
    """LEAST and GREATEST skip NULLs, so a literal among them bounds the result from one side, whatever the rest."""
    literals = [part.low for part in parts if part.literal and part.low is not None]
    low, high = least([part.low for part in parts]), most([part.high for part in parts])
    if literals and isinstance(node, exp.Least):
        high = min(literals)
    if literals and isinstance(node, exp.Greatest):
        low = max(literals)
    return low, high


def elapsed(end: Scalar, start: Scalar, unit: str) -> tuple[Side, Side]:
    """The least and the most units from `start` to `end`, if both are constants or have declared bounds."""
    begins, finishes = _known_span(start), _known_span(end)
    if begins is None or finishes is None:
        return None, None
    (first, last), (earliest, latest) = begins, finishes
    return Fraction(difference(unit, last, earliest)), Fraction(difference(unit, first, latest))


def _known_span(one: Scalar) -> Ends | None:
    return (one.value, one.value) if one.literal and one.value is not None else one.span


def least(sides: Sequence[Side]) -> Side:
    """The lowest of all sides, None if one is unknown."""
    known = [side for side in sides if side is not None]
    return min(known) if len(known) == len(sides) else None


def most(sides: Sequence[Side]) -> Side:
    """The highest of all sides, None if one is unknown."""
    known = [side for side in sides if side is not None]
    return max(known) if len(known) == len(sides) else None

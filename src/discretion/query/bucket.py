"""WIDTH_BUCKET: the number of the bucket, among n of one width, that a number lies in."""

from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import kind as types
from discretion.query.kind import BIGINT, DOUBLE
from discretion.query.operation import (
    Operands,
    arithmetic,
    choice,
    fixed_number,
    flat,
    real,
    try_cast,
)
from discretion.query.scalar import MOST_VALUES, Scalar, literal, shown

_PARTS = ("this", "min_value", "max_value")


def width_bucket(node: exp.Expr, operands: Operands) -> Scalar:
    """WIDTH_BUCKET(x, low, high, n): 1 to n, 0 for x < low, n + 1 for x >= high, NULL for NULL.

    No database computes it itself: the same steps in doubles give the same bucket in all of them, and in `bucket_of`.
    """
    part, low, high = flat(operands)
    count = fixed_number(node, "num_buckets", 1, MOST_VALUES - 2)
    if part.kind not in ("number", "null") or count is None:
        hint = " Use TIME_BUCKET for dates." if part.kind in ("date", "timestamp") else ""
        raise QueryRefused(f"{shown(node)} needs a number and three numbers written out, got a {part.kind}.{hint}")
    ends = [one.value if one.literal and one.kind == "number" else None for one in (low, high)]
    if ends[0] is None or ends[1] is None or not float(ends[0]) < float(ends[1]):
        raise QueryRefused(f"{shown(node)} needs ascending ends written out, such as WIDTH_BUCKET(x, 0, 100, 10).")
    written = [one.plain.copy() for one in (part, low, high)]
    plain = exp.WidthBucket(**dict(zip(_PARTS, written, strict=True)), num_buckets=node.args["num_buckets"].copy())
    if part.literal:  # its value is computed from constants
        return replace(literal(None, BIGINT, plain), operands=(part, low, high))
    return replace(_written_out(part.tame.to(DOUBLE), float(ends[0]), float(ends[1]), count), plain=plain)


def _written_out(x: Scalar, low: float, high: float, count: int) -> Scalar:
    """CASE WHEN x < low THEN 0 WHEN x < high THEN the bucket WHEN x >= high THEN n + 1 END."""

    def of(number: float) -> Scalar:
        return literal(number, DOUBLE, types.constant(number, DOUBLE))

    scaled = arithmetic(exp.Mul(), {"this": _minus(x, of(low)), "expression": of(float(count))})
    place = real(exp.Floor(), {"this": arithmetic(exp.Div(), {"this": scaled, "expression": of(high - low)})})
    # Rounding can take a number just below `high` to n.
    place = choice(exp.Least(), {"this": place, "expressions": [of(float(count - 1))]})
    bucket = arithmetic(exp.Add(), {"this": place, "expression": of(1.0)}).tame
    # Not `comparison`, which also sees dates outside their bounds: here these have no bucket.
    tests = [
        kind(this=x.total.copy(), expression=types.constant(end, DOUBLE))
        for kind, end in ((exp.LT, low), (exp.LT, high), (exp.GTE, high))
    ]
    results = [types.constant(0, BIGINT), try_cast(bucket.total, BIGINT), types.constant(count + 1, BIGINT)]
    for result in results:
        types.noted(result, BIGINT)
    ifs = [exp.If(this=test, true=one) for test, one in zip(tests, results, strict=True)]
    return Scalar(
        plain=x.plain,
        total=exp.Case(ifs=ifs),
        type=BIGINT,
        reach=count + 1,
        narrow=True,
        whole=True,
        low=Fraction(0),
        high=Fraction(count + 1),
        columns=x.columns,
        size=10 + bucket.size + 3 * x.size,
        made=bucket.made + 3 * x.made,
        operands=(x, bucket),
    )


def _minus(x: Scalar, low: Scalar) -> Scalar:
    return arithmetic(exp.Sub(), {"this": x, "expression": low})


def bucket_of(x: Any, low: Any, high: Any, count: int) -> int:
    """Return the bucket of a plain number."""
    value, first, last = float(x), float(low), float(high)
    if value < first:
        return 0
    return min(floor((value - first) * count / (last - first)), count - 1) + 1 if value < last else count + 1

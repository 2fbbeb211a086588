"""Errors of released aggregates become errors of what is computed from them."""

from collections.abc import Mapping, Sequence
from math import hypot, inf
from typing import Any

from sqlglot import exp

from discretion.query.category import CATEGORY
from discretion.query.function import FUNCTIONS
from discretion.query.released import evaluate
from discretion.release import Error

UNKNOWN = Error(bias=inf, noise=inf)
ROUNDING = -1
MOST_PLACES = 300  # decimals to round to: more are beyond doubles, and so is the answer
BOUNDS = (exp.Sqrt, exp.Greatest, exp.Least)  # whose slopes are only bounds
Slopes = dict[int, float]  # released aggregate -> the most the answer moves when it moves by 1; and by rounding


def propagate(
    expression: exp.Expr,
    environment: Mapping[str, Any],
    errors: Sequence[Error],
    together: Sequence[Sequence[int]] = (),
) -> Error:
    """The error of `expression`, where placeholder i has `errors[i]`; UNKNOWN where no simple rule holds.

    Sums, differences, constant factors, roots and rounding: biases add up, independent noises in squares. The noises of
    aggregates that were released `together` may be related in any way, so these add up too.
    """
    if isinstance(expression, exp.Placeholder):
        return errors[int(expression.name)]
    if expression.meta.get(CATEGORY):
        return errors[int(expression.this.name)]
    slopes = _slopes(expression, environment)
    if slopes is None:
        return UNKNOWN
    rounding = slopes.pop(ROUNDING, 0.0)
    used = [(errors[number], slope) for number, slope in slopes.items() if slope]
    if any(error.unit == "rank" for error, _ in used):
        (error, slope), *others = used
        return UNKNOWN if others or slope < 0 or rounding else error  # an ascending function keeps ranks
    of = {number: tuple(family) for family in together for number in family}
    noises: dict[Any, float] = {}
    for number, slope in slopes.items():
        if slope:
            source = of.get(number, number)
            noises[source] = noises.get(source, 0.0) + abs(slope) * errors[number].noise
    return Error(
        bias=rounding + sum(abs(slope) * (error.bias + error.pull) for error, slope in used),
        noise=hypot(*noises.values()),
        assumption="; ".join(sorted({error.assumption for error, _ in used if error.assumption})),
    )


def _slopes(node: exp.Expr, environment: Mapping[str, Any]) -> Slopes | None:
    if not _released(node):
        return {}
    if isinstance(node, exp.Placeholder):
        return {int(node.name): 1.0}
    if isinstance(node, exp.Paren):
        return _slopes(node.this, environment)
    slope = FUNCTIONS[type(node)].slope if type(node) in FUNCTIONS else ""
    if slope == "opposite":
        return _scaled(_slopes(node.this, environment), -1.0)
    if slope in ("sum", "difference"):
        return _joined(node, environment)
    if slope in ("product", "quotient"):
        return _multiplied(node, environment)
    if slope == "root":
        root = evaluate(node, environment)
        # |√a − √b| = |a − b| / (√a + √b) is at most |a − b| / √a, for every truth b
        return _scaled(_slopes(node.this, environment), 1 / root) if root else None
    if slope == "rounding":
        return _rounded(node, environment)
    if slope == "clamp":  # a clamped number moves no further than the number
        moving = [part for part in (node.this, *node.expressions) if _released(part)]
        return _slopes(moving[0], environment) if len(moving) == 1 else None
    return None


def _rounded(node: exp.Expr, environment: Mapping[str, Any]) -> Slopes | None:
    decimals = node.args.get("decimals")
    slopes = _slopes(node.this, environment)
    if slopes is None or (decimals is not None and _released(decimals)):
        return None
    places = 0 if decimals is None else evaluate(decimals, environment)
    if not isinstance(places, int | float) or abs(places) > MOST_PLACES:
        return None
    half = 0.5 * 10.0**-places
    return {**slopes, ROUNDING: slopes.get(ROUNDING, 0.0) + half}


def _joined(node: exp.Expr, environment: Mapping[str, Any]) -> Slopes | None:
    left, right = _slopes(node.this, environment), _slopes(node.expression, environment)
    if left is None or right is None or (({*left} & {*right}) - {ROUNDING} and node.find(*BOUNDS)):
        return None  # bounds do not cancel
    sign = -1.0 if isinstance(node, exp.Sub) else 1.0
    rounding = left.pop(ROUNDING, 0.0) + right.pop(ROUNDING, 0.0)  # never cancels
    return {
        **{number: left.get(number, 0.0) + sign * right.get(number, 0.0) for number in {*left, *right}},
        ROUNDING: rounding,
    }


def _multiplied(node: exp.Expr, environment: Mapping[str, Any]) -> Slopes | None:
    moving, factor = (node.this, node.expression) if _released(node.this) else (node.expression, node.this)
    if _released(factor) or (isinstance(node, exp.Div) and moving is not node.this):
        return None
    constant = evaluate(factor, environment)
    if not isinstance(constant, int | float) or (isinstance(node, exp.Div) and not constant):
        return None
    return _scaled(_slopes(moving, environment), 1 / constant if isinstance(node, exp.Div) else constant)


def _scaled(slopes: Slopes | None, factor: float) -> Slopes | None:
    if slopes is None:
        return None
    moved = {number: slope * factor for number, slope in slopes.items()}
    return moved | ({ROUNDING: abs(moved[ROUNDING])} if ROUNDING in moved else {})


def _released(node: exp.Expr) -> bool:
    return node.find(exp.Placeholder) is not None

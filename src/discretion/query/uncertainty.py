"""Errors of released aggregates become errors of what is computed from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf
from typing import Any

from sqlglot import exp

from discretion.query.category import CATEGORY
from discretion.query.function import FUNCTIONS
from discretion.query.released import evaluate
from discretion.release import Error

UNKNOWN = Error(bias=inf, noise=inf)
ROUNDING = -1
SURE = 0.999  # how surely a divisor is not nearer to 0 than an error of a ratio takes it to be
MOST_PLACES = 300  # decimals to round to: more are beyond doubles, and so is the answer
BOUNDS = (exp.Sqrt, exp.Greatest, exp.Least)  # whose slopes are only bounds
Slopes = dict[int, float]  # released aggregate -> the most the answer moves when it moves by 1; and by rounding


@dataclass(frozen=True, kw_only=True)
class _Surroundings:
    """Hold what was released: keys and values by name, errors by number, and which came from one release."""

    environment: Mapping[str, Any]
    errors: Sequence[Error]
    together: Sequence[Sequence[int]]


def propagate(
    expression: exp.Expr,
    environment: Mapping[str, Any],
    errors: Sequence[Error],
    together: Sequence[Sequence[int]] = (),
) -> Error:
    """The error of `expression`, where placeholder i has `errors[i]`; UNKNOWN where no simple rule holds.

    Sums, differences, constant factors, ratios, roots and rounding: biases add up, independent noises in squares. The
    noises of aggregates that were released `together` may be related in any way, so these add up too.
    """
    if isinstance(expression, exp.Placeholder):
        return errors[int(expression.name)]
    if expression.meta_get(CATEGORY):
        return errors[int(expression.this.name)]
    known = _Surroundings(environment=environment, errors=errors, together=together)
    slopes = _slopes(expression, known)
    return UNKNOWN if slopes is None else _error(slopes, known)


def _error(slopes: Slopes, known: _Surroundings) -> Error:
    """Return the error of what moves by these slopes."""
    errors = known.errors
    rounding = slopes.pop(ROUNDING, 0.0)
    used = [(errors[number], slope) for number, slope in slopes.items() if slope]
    if any(error.unit == "rank" for error, _ in used):
        (error, slope), *others = used
        # An ascending function keeps ranks.
        return UNKNOWN if others or slope < 0 or rounding else replace(error, step=slope * error.step)
    of = {number: tuple(family) for family in known.together for number in family}
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


def _slopes(node: exp.Expr, known: _Surroundings) -> Slopes | None:
    if not _released(node):
        return {}
    if isinstance(node, exp.Placeholder):
        return {int(node.name): 1.0}
    if isinstance(node, exp.Paren):
        return _slopes(node.this, known)
    slope = FUNCTIONS[type(node)].slope if type(node) in FUNCTIONS else ""
    if slope == "opposite":
        return _scaled(_slopes(node.this, known), -1.0)
    if slope in ("sum", "difference"):
        return _joined(node, known)
    if slope in ("product", "quotient"):
        return _multiplied(node, known)
    if slope == "root":
        root = evaluate(node, known.environment)
        # |√a − √b| = |a − b| / (√a + √b) is at most |a − b| / √a, for every truth b
        return _scaled(_slopes(node.this, known), 1 / root) if root else None
    if slope == "rounding":
        return _rounded(node, known)
    if slope == "clamp":  # a clamped number moves no further than the number
        moving = [part for part in (node.this, *node.expressions) if _released(part)]
        return _slopes(moving[0], known) if len(moving) == 1 else None
    return None


def _rounded(node: exp.Expr, known: _Surroundings) -> Slopes | None:
    decimals = node.args.get("decimals")
    slopes = _slopes(node.this, known)
    if slopes is None or (decimals is not None and _released(decimals)):
        return None
    places = 0 if decimals is None else evaluate(decimals, known.environment)
    if not isinstance(places, int | float) or abs(places) > MOST_PLACES:
        return None
    half = 0.5 * 10.0**-places
    return {**slopes, ROUNDING: slopes.get(ROUNDING, 0.0) + half}


def _joined(node: exp.Expr, known: _Surroundings) -> Slopes | None:
    left, right = _slopes(node.this, known), _slopes(node.expression, known)
    if left is None or right is None or (({*left} & {*right}) - {ROUNDING} and _has_bounds(node)):
        return None  # bounds do not cancel
    sign = -1.0 if isinstance(node, exp.Sub) else 1.0
    rounding = left.pop(ROUNDING, 0.0) + right.pop(ROUNDING, 0.0)  # never cancels
    return {
        **{number: left.get(number, 0.0) + sign * right.get(number, 0.0) for number in {*left, *right}},
        ROUNDING: rounding,
    }


def _multiplied(node: exp.Expr, known: _Surroundings) -> Slopes | None:
    if isinstance(node, exp.Div) and _released(node.expression):
        return _divided(node, known)
    moving, factor = (node.this, node.expression) if _released(node.this) else (node.expression, node.this)
    if _released(factor):
        return None
    constant = evaluate(factor, known.environment)
    if not isinstance(constant, int | float) or (isinstance(node, exp.Div) and not constant):
        return None
    return _scaled(_slopes(moving, known), 1 / constant if isinstance(node, exp.Div) else constant)


def _divided(node: exp.Div, known: _Surroundings) -> Slopes | None:
    """Return how far a ratio moves if its divisor is surely far from 0.

    With r = a/b, and a₀ and b₀ the truth, r − a₀/b₀ = ((a − a₀) − r(b − b₀))/b₀: exactly a straight line, but for b₀,
    which is at least |b| less the error of b at `SURE`. It may be at most half of |b|; the slope is then at most twice
    that of the delta method, and the chance that b₀ is closer to 0 is far less than what the slope is too steep by.
    """
    top, bottom = _slopes(node.this, known), _slopes(node.expression, known)
    ratio, divisor = (evaluate(one, known.environment) for one in (node, node.expression))
    if top is None or bottom is None or not all(isinstance(one, int | float) for one in (ratio, divisor)):
        return None
    if (({*top} & {*bottom}) - {ROUNDING} and _has_bounds(node.this, node.expression)) or not divisor:
        return None
    unsure = _error(dict(bottom), known)
    least = abs(divisor) - unsure.half_width(SURE)
    if unsure.unit == "rank" or not least >= abs(divisor) / 2:
        return None
    rounding = top.pop(ROUNDING, 0.0) + abs(ratio) * bottom.pop(ROUNDING, 0.0)
    moved = {number: (top.get(number, 0.0) - ratio * bottom.get(number, 0.0)) / least for number in {*top, *bottom}}
    return {**moved, ROUNDING: rounding / least}


def _has_bounds(*nodes: exp.Expr) -> bool:
    """Return whether slopes are only bounds, which do not cancel: of roots, clamps and ratios of released values."""
    return any(
        node.find(*BOUNDS) is not None or any(_released(one.expression) for one in node.find_all(exp.Div))
        for node in nodes
    )


def _scaled(slopes: Slopes | None, factor: float) -> Slopes | None:
    if slopes is None:
        return None
    moved = {number: slope * factor for number, slope in slopes.items()}
    return moved | ({ROUNDING: abs(moved[ROUNDING])} if ROUNDING in moved else {})


def _released(node: exp.Expr) -> bool:
    return node.find(exp.Placeholder) is not None

"""Flanks: a quantile gets an interval in value units from two more quantiles, released at its sides.

A flank is asked for at a rank that lies its own 95% error away from the wanted one, so the truth lies between both
flanks at least that often, whatever the data look like. A third of the quantile's share pays for the two.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discretion.mechanisms import Belief
from discretion.noise import Floats
from discretion.plan import choose
from discretion.preference import Specification
from discretion.query import Asked, Query
from discretion.release import Error

WHOLE, MIDDLE, SIDE = 6, 4, 1  # parts of an aggregate's share: all, the quantile itself, each flank
FINEST = 1_000  # ranks are asked for in thousandths


def flanked(query: Query, specification: Specification, belief: Belief, mechanism: str) -> Query:
    """`query` with two flanks for every quantile after its own aggregates; `specification` is what a flank spends."""
    sides = [
        side
        for asked in query.asked
        if asked.aggregate.kind == "quantile"
        for side in _sides(asked, specification, belief, mechanism)
    ]
    return replace(query, asked=(*query.asked, *sides))


def weights(query: Query) -> tuple[int, ...]:
    """How many parts of the share each of the aggregates, then each of the flanks gets."""
    quantiles = [asked.aggregate.kind == "quantile" for asked in query.asked]
    return (*(MIDDLE if quantile else WHOLE for quantile in quantiles), *(SIDE, SIDE) * sum(quantiles))


def interval_errors(query: Query, released: Sequence[Floats], errors: Sequence[Error]) -> list[tuple[Error, ...]]:
    """The error of every aggregate in every group, in value units for quantiles whose flanks are released too."""
    flanks = iter(released[len(query.asked) :])
    found = []
    for asked, values, error in zip(query.asked, released, errors, strict=False):
        if len(released) > len(query.asked) and asked.aggregate.kind == "quantile":
            found.append(tuple(map(_between, values, next(flanks), next(flanks))))
        else:
            found.append((error,) * asked.aggregate.groups)
    return found


def _sides(asked: Asked, specification: Specification, belief: Belief, mechanism: str) -> tuple[Asked, Asked]:
    middle = asked.aggregate.rank or Fraction(0)
    below = above = middle
    for _ in range(2):  # the error depends a little on the rank, so the second look is at the rank used
        below = max(Fraction(0), middle - _reach(asked, below, specification, belief, mechanism))
        above = min(Fraction(1), middle + _reach(asked, above, specification, belief, mechanism))
    return (
        replace(asked, text=f"{asked.text}, from below", aggregate=replace(asked.aggregate, rank=below)),
        replace(asked, text=f"{asked.text}, from above", aggregate=replace(asked.aggregate, rank=above)),
    )


def _reach(asked: Asked, rank: Fraction, specification: Specification, belief: Belief, mechanism: str) -> Fraction:
    """The 95% error of a flank at this rank, in whole thousandths of the ranks, rounded up."""
    plan = choose([replace(asked.aggregate, rank=rank)], specification, belief, mechanism=mechanism)
    half = plan.choices[0].mechanism.error.half_width()
    return Fraction(min(FINEST, int(half * FINEST) + 1), FINEST)


def _between(value: float, below: float, above: float) -> Error:
    low, high = min(value, below), max(value, above)
    return Error(bias=max(value - low, high - value), noise=0.0, limits=(low, high))

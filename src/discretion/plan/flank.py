"""Flanks: every quantile of a query gets an interval in value units from two more, released at its sides."""

from collections.abc import Sequence
from dataclasses import replace

from discretion.mechanisms import Belief
from discretion.noise import Floats
from discretion.plan.interval import MIDDLE, SIDE, WHOLE, between, sides
from discretion.preference import Specification
from discretion.query import Asked, Query
from discretion.release import Error


def flanked(query: Query, specification: Specification, belief: Belief, mechanism: str) -> Query:
    """`query` with two flanks for every quantile after its own aggregates; `specification` is what a flank spends."""
    flanks = [
        flank
        for asked in query.asked
        if asked.aggregate.kind == "quantile"
        for flank in _flanks(asked, specification, belief, mechanism)
    ]
    return replace(query, asked=(*query.asked, *flanks))


def weights(query: Query) -> tuple[int, ...]:
    """How many parts of the share each of the aggregates, then each of the flanks gets."""
    quantiles = [asked.aggregate.kind == "quantile" for asked in query.asked]
    return (*(MIDDLE if quantile else WHOLE for quantile in quantiles), *(SIDE, SIDE) * sum(quantiles))


def interval_errors(
    query: Query, released: Sequence[Floats], errors: Sequence[tuple[Error, ...]]
) -> list[tuple[Error, ...]]:
    """The error of every aggregate in every group, in value units for quantiles whose flanks are released too."""
    flanks = zip(released[len(query.asked) :], errors[len(query.asked) :], strict=True)
    found = []
    for asked, values, by_group in zip(query.asked, released, errors, strict=False):
        if len(released) > len(query.asked) and asked.aggregate.kind == "quantile":
            (below, lower), (above, upper) = next(flanks), next(flanks)
            ranks = lower[0].asked or 0.0, 1.0 if upper[0].asked is None else upper[0].asked
            answers = zip(values.tolist(), by_group, below.tolist(), above.tolist(), strict=True)
            found.append(
                tuple(between(asked.aggregate, value, error, (low, high), ranks) for value, error, low, high in answers)
            )
        else:
            found.append(by_group)
    return found


def _flanks(asked: Asked, specification: Specification, belief: Belief, mechanism: str) -> tuple[Asked, Asked]:
    below, above = sides(asked.aggregate, specification, belief, mechanism)
    return (
        replace(asked, text=f"{asked.text}, from below", aggregate=below),
        replace(asked, text=f"{asked.text}, from above", aggregate=above),
    )

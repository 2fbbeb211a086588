"""An interval in value units for a quantile: two more quantiles, asked for at its sides.

A side is asked for at a rank that lies its own 97.5% error away from the wanted one, so the truth lies between the two
answers at least 95% of the time for any data. A third of the quantile's ε pays for both. Where that rank would leave
the data, the side is the declared bound.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, isfinite
from typing import TypeVar

from discretion.errors import Unsuitable
from discretion.mechanisms import Belief
from discretion.noise import Floats
from discretion.plan import choose
from discretion.plan.choice import Choice
from discretion.preference import Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Wanted

WHOLE, MIDDLE, SIDE = 6, 4, 1  # parts of a quantile's ε: all, the quantile itself, each side
FINEST = 1_000  # ranks are asked for in thousandths
W = TypeVar("W", bound=Wanted)


def weights(wanted: Sequence[Wanted]) -> tuple[int, ...]:
    """Return how many parts of the ε each aggregate gets, then each side of a quantile."""
    quantiles = [one.aggregate.kind == "quantile" for one in wanted]
    return (*(MIDDLE if quantile else WHOLE for quantile in quantiles), *(SIDE, SIDE) * sum(quantiles))


def flanked(wanted: Sequence[W], specification: Specification, belief: Belief, mechanism: str) -> tuple[W, ...]:
    """Return `wanted`, then both sides of every quantile; `specification` is what one side may spend."""
    flanks: list[W] = []
    for one in wanted:
        if one.aggregate.kind == "quantile":
            below, above = sides(one.aggregate, specification, belief, mechanism)
            flanks.append(replace(one, text=f"{one.text}, from below", aggregate=below))
            flanks.append(replace(one, text=f"{one.text}, from above", aggregate=above))
    return (*wanted, *flanks)


def sides(
    aggregate: Aggregate, specification: Specification, belief: Belief, mechanism: str
) -> tuple[Aggregate, Aggregate]:
    """Return the quantiles to ask for below and above; `specification` is what one of them may spend."""
    middle = aggregate.rank or Fraction(0)

    def away(direction: int) -> Fraction:
        rank = middle
        while True:  # the error depends on the rank; every round moves on by a thousandth at least, and 0 and 1 end it
            reach = _reach(replace(aggregate, rank=rank), specification, belief, mechanism)
            further = min(max(middle + direction * reach, Fraction(0)), Fraction(1))
            if direction * (further - rank) <= 0:
                return rank
            rank = further

    return replace(aggregate, rank=away(-1)), replace(aggregate, rank=away(1))


def _reach(aggregate: Aggregate, specification: Specification, belief: Belief, mechanism: str) -> Fraction:
    """Return the 97.5% error of an answer, in whole thousandths of the ranks, rounded up."""
    error = choose([aggregate], specification, belief, mechanism=mechanism).choices[0].mechanism.error
    if not isfinite(error.half_width()):
        raise Unsuitable(f"{mechanism!r} does not know its error in ranks, so it has no interval in values.")
    return Fraction(min(FINEST, ceil(error.half_width(0.975) * FINEST)), FINEST)


def errors_of(
    choices: Sequence[Choice], wanted: int, released: Sequence[Floats], errors: Sequence[tuple[Error, ...]]
) -> list[tuple[Error, ...]]:
    """Return the errors of the first `wanted` choices by group; in value units for quantiles with sides after them."""
    flanks = iter(range(wanted, len(choices)))
    found = list(errors[:wanted])
    for number in range(wanted if len(choices) > wanted else 0):
        if choices[number].aggregate.kind == "quantile":
            pair = next(flanks), next(flanks)
            found[number] = _between(
                [choices[place].aggregate for place in (number, *pair)],
                [released[place] for place in (number, *pair)],
                errors[number],
            )
    return found


def _between(aggregates: Sequence[Aggregate], released: Sequence[Floats], asked: Sequence[Error]) -> tuple[Error, ...]:
    """Return the errors of a quantile by group, given its answers, those of both sides, and its errors in ranks.

    The ranks of the sides were set for as many rows as the register allows; that there are as many is an assumption.
    """
    middle, lower, upper = aggregates
    errors = []
    for value, below, above, error in zip(*(values.tolist() for values in released), asked, strict=True):
        beyond = middle.rounding if middle.rounding > middle.step / 2 else 0  # the last candidate is below the bound
        least, most = float(middle.value(middle.lower)), float(middle.value(middle.upper) + beyond)
        low = max(least, min(value, below) - float(middle.rounding)) if lower.rank else least
        high = min(most, max(value, above) + float(middle.rounding)) if upper.rank != 1 else most
        enough = f"there are about {error.rows:,.0f} rows to ask about" if error.rows is not None else ""
        interval = Error(
            bias=max(value - low, high - value),
            noise=0.0,
            assumption="; ".join(filter(None, [error.assumption, enough])),
            limits=(low, high),
            bought=True,
        )
        errors.append(interval)
    return tuple(errors)

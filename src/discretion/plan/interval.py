"""An interval in value units for a quantile: two more quantiles, asked for at its sides.

A side is asked for at a rank that lies its own 97.5% error away from the wanted one, so the truth lies between the two
answers 95% of the time at least, whatever the data look like. A third of the quantile's ε pays for both. Where that
rank would leave the data, the side is the declared bound.
"""

from dataclasses import replace
from fractions import Fraction
from math import ceil, isfinite

from discretion.errors import Unsuitable
from discretion.mechanisms import Belief
from discretion.plan import choose
from discretion.preference import Specification
from discretion.release import Error
from discretion.statistics import Aggregate

WHOLE, MIDDLE, SIDE = 6, 4, 1  # parts of a quantile's ε: all, the quantile itself, each side
FINEST = 1_000  # ranks are asked for in thousandths


def sides(
    aggregate: Aggregate, specification: Specification, belief: Belief, mechanism: str
) -> tuple[Aggregate, Aggregate]:
    """The quantiles to ask for below and above; `specification` is what one of them may spend."""
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
    """The 97.5% error of an answer, in whole thousandths of the ranks, rounded up."""
    error = choose([aggregate], specification, belief, mechanism=mechanism).choices[0].mechanism.error
    if not isfinite(error.half_width()):
        raise Unsuitable(f"{mechanism!r} does not know its error in ranks, so it has no interval in values.")
    return Fraction(min(FINEST, ceil(error.half_width(0.975) * FINEST)), FINEST)


def between(
    aggregate: Aggregate, value: float, asked: Error, answers: tuple[float, float], ranks: tuple[float, float]
) -> Error:
    """The error of `value`, which was `asked` with an error in ranks, given both sides' answers and ranks.

    The ranks of the sides were set for as many rows as the register allows; that there are as many is an assumption.
    """
    low = min(value, answers[0]) if ranks[0] > 0 else float(aggregate.value(aggregate.lower))
    high = max(value, answers[1]) if ranks[1] < 1 else float(aggregate.value(aggregate.upper))
    enough = f"there are about {asked.rows:,.0f} rows to ask about" if asked.rows is not None else ""
    return Error(
        bias=max(value - low, high - value),
        noise=0.0,
        assumption="; ".join(filter(None, [asked.assumption, enough])),
        limits=(low, high),
        bought=True,
    )

"""How far a private choice may stray from the answer asked for, as a share of the people, from public information.

With P(r) ∝ exp(−d(r)/s) over m candidates, one of which has d = 0, P(d ≥ s·ln m + y) ≤ exp(−y/s), whatever the data
(and permute-and-flip strays less, [MS20] Theorem 2). So d is at most s·ln m ("pull": wrong answers are many) plus
exponential noise of scale s, whose 1 − δ quantile is that of Laplace noise with standard deviation √2·s.
"""

from fractions import Fraction
from math import hypot, log, sqrt
from typing import NamedTuple

import numpy as np

from discretion.errors import Unsuitable
from discretion.mechanisms.accuracy import GROUP_ASSUMES
from discretion.mechanisms.belief import Belief
from discretion.noise import Floats
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate

LARGEST_SCORE = 2**62


class Stray(NamedTuple):
    """In shares of the (effective) people: the most a choice is drawn away, the noise on top, and the usual drift."""

    pull: float
    noise: float
    drift: float = 0.0  # the part of the pull that is not rare: cheap people let an answer go far


def candidates(aggregate: Aggregate) -> int:
    """Return how many answers there are."""
    return aggregate.upper - aggregate.lower + 1


def by_price(
    aggregate: Aggregate, specification: Specification, prices: Integers, rates: Floats, touched: int
) -> Stray:
    """Return where d is the price of the slots that must change: at worst the cheapest are all on one side.

    j slots cost at least the j smallest prices, a sum convex in j; so a straight line bounds the inverse beyond any
    point. A change mends a rank by at most 1, and the lead of the most frequent category by at most 2. The drift is
    what a price of s = 2 changes, beyond the noise, where every level has its part on the larger side of the answer.
    """
    slots = specification.heads * aggregate.rows_per_person * rates
    used = (prices > 0) & (slots > 0)
    if not used.any():
        raise Unsuitable("It would leave nobody to answer about.")
    price, slots = prices[used] / MICRO / touched, slots[used]
    expected = float(slots.sum())
    people = max(expected - 2 * sqrt(expected), 1.0) if (rates % 1).any() else expected  # a sample may turn out small
    pull = 2 * log(candidates(aggregate))
    margin = price[min(int(np.searchsorted(np.cumsum(price * slots), pull)), len(price) - 1)]
    side = 1.0 if aggregate.rank is None else float(max(aggregate.rank, 1 - aggregate.rank))
    drift = max(_changed(2.0, price, side * slots) - 2 / float(margin), 0.0)
    share = (2 if aggregate.kind == "mode" else 1) * aggregate.groups / people
    return Stray(share * _changed(pull, price, slots), share * 2 * sqrt(2) / float(margin), share * drift)


def _changed(paid: float, price: Floats, slots: Floats) -> float:
    """Return how many slots that much ε changes at most, the cheapest first; between whole slots, a part of one."""
    return float(np.interp(paid, np.append(0.0, np.cumsum(price * slots)), np.append(0.0, np.cumsum(slots))))


def by_weight(aggregate: Aggregate, specification: Specification, influence: Integers, scale: float) -> Stray:
    """Return where d is a distance in weights: a share of the weight is a share of the (effective) people."""
    total = float(specification.heads @ influence) / MICRO * aggregate.rows_per_person / aggregate.groups
    if total == 0:
        raise Unsuitable("It would leave nobody to answer about.")
    return Stray(scale * log(candidates(aggregate)) / total, sqrt(2) * scale / total)


def tilt(specification: Specification, weights: Floats | Integers) -> float:
    """τ = Σ|w − 1/n|/2: the most that weighing people unequally can move a share."""
    heads = specification.heads
    shares = heads * weights / float(heads @ weights)
    return float(np.abs(shares - heads / heads.sum()).sum()) / 2


def scatter(specification: Specification, weights: Floats | Integers) -> float:
    """Variance of a weighted share, over that of one person, when preferences fall on people at random."""
    heads, weights = specification.heads, weights / weights.max()
    return max(float(heads @ weights**2) / float(heads @ weights) ** 2 - 1 / float(heads.sum()), 0.0)


def share_variance(rank: Fraction | None, away: float, scattered: float) -> float:
    """Mean square of how far a share of people is from the same share of weight, which lies `away` from the rank.

    For a share p it is p(1 − p)·`scattered`. Near an end that says too little: nobody of the 1/`scattered` people that
    the weights amount to need lie there, and what lies beyond their outermost is exponential, with the mean square
    2·`scattered`². Of a mode, two shares and any p: at most `scattered`.
    """
    if rank is None:
        return scattered
    p = min(float(min(rank, 1 - rank)) + away, 0.5)
    return p * (1 - p) * scattered + 2 * (1 - 2 * p) ** 2 * scattered**2


def coin_scatter(specification: Specification, rates: Floats) -> float:
    """Variance that sampling people adds to a share, at most, over the largest squared deviation."""
    heads = specification.heads
    return float(heads @ (rates * (1 - rates))) / float(heads @ rates) ** 2


def rank_error(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    weights: Floats | Integers,
    stray: Stray,
    *,
    coins: float = 0.0,
) -> Error:
    """The error of a choice among people who count by `weights`, as a share of all of them.

    With cohorts' shares at most β apart (belief), unequal weights move a share by at most βτ, a difference of two by
    2βτ. In a rank answer "asked" is the rank itself; in a mode, 0: how far the answer is from the most frequent.
    """
    q = float(aggregate.rank) if aggregate.rank is not None else None
    largest = max(q, 1 - q) if q is not None else 1.0
    usual = stray.pull if q in (0, 1) else stray.drift  # of a minimum or maximum every error is on one side
    believed = 1.0 if belief.beta is None else belief.beta
    moved = believed * tilt(specification, weights) * (1 if q is not None else 2)
    scattered = 0.0 if belief.beta is None else scatter(specification, weights) * aggregate.groups
    random = share_variance(aggregate.rank, usual, scattered)
    drawn = sqrt(random + largest**2 * coins * aggregate.groups)
    return Error(
        bias=min(moved + usual, largest),
        noise=min(hypot(drawn, stray.noise), largest),
        unit="rank",
        assumption="; ".join(filter(None, [str(belief), "" if aggregate.size_is_public else GROUP_ASSUMES])),
        limits=(0.0, 1.0),
        asked=q or 0.0,
        shortfall=q is None,
        pull=min(max(stray.pull - usual, 0.0), largest),
        rows=None if aggregate.size_is_public else specification.size * aggregate.rows_per_person / aggregate.groups,
    )


def check(aggregate: Aggregate, specification: Specification, largest_weight: int) -> None:
    """Refuse, by public information, what whole 64-bit numbers could not hold."""
    denominator = aggregate.rank.denominator if aggregate.rank is not None else 1
    if 4 * denominator * aggregate.rows_per_person * specification.size * largest_weight >= LARGEST_SCORE:
        raise Unsuitable("The scores would not fit 64 bits: use a rounder quantile or fewer rows per person.")

"""Choose an answer by whom it would take to make it the true one: quantiles and modes, by [JYC15]'s PE and relatives.

Everything is computed from counts by (cohort, grid value), in whole micro-ε. A row slot is a state: a person has
`rows_per_person` of them, each absent or at a grid value, so the same cost serves tables of public and of secret size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discretion import noise
from discretion.errors import EngineFailed, Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.level import Level, best_level
from discretion.mechanisms.scheme import Scheme
from discretion.mechanisms.stray import Stray, by_price, check, coin_scatter, rank_error
from discretion.noise import Floats, Rng, Rule
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

IMPOSSIBLE = 2**62  # a cost above every sum of micro-ε
MOST_CATEGORIES = 200  # of a mode: its cost takes categories² × levels


@dataclass(frozen=True, kw_only=True)
class Rank:
    """Pick a grid value, likelier the less it would cost to make it the true answer.

    Definition  [JYC15] Definition 10 (PE): P(r) ∝ exp(−c(r)/2), c(r) the least sum of prices of row slots whose change
                makes r the quantile of rank ⌈qn⌉ (or a most frequent category). Prices are the people's ε (PE), one ε
                for all (minimum), one ε for those who allow it (threshold) or for those a coin keeps (sample).
    Guarantee   A slot's change moves every c(r) by at most its price, because c is a distance; a person changes at
                most `touched` slots (`rows_per_person`, twice that if rows can change group), so the scale 2·touched
                makes the person lose their price. With coins: [JYC15] Theorem 5, in both directions, needs a choice
                that is private whether slots appear, disappear or change, which holds since absent is a state.
    Neighbours  presence or value.
    Tested by   tests/mechanisms/test_rank.py::test_nobody_loses_more_than_the_charge
    """

    aggregate: Aggregate
    specification: Specification
    scheme: Scheme
    error: Error
    rule: Rule = "exponential"
    upper: bool = False  # the rank ⌊qn⌋ + 1 instead of ⌈qn⌉: the upper median

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.scheme.charges, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, histogram=True, inclusion=self.scheme.inclusion)

    @property
    def scale(self) -> int:
        """Return what a choice divides scores by."""
        return 2 * MICRO * touched(self.aggregate)

    def scores(self, statistics: Statistics) -> Integers:
        """(group, grid value) -> minus the cost, in micro-ε."""
        prices = np.array(self.scheme.prices)
        used = prices > 0
        prices, slots = prices[used], self.specification.heads[used] * self.aggregate.rows_per_person
        costs = []
        for histogram in histograms(statistics)[:, used]:  # (cohort, grid value)
            absent = np.maximum(slots - histogram.sum(axis=1), 0)
            costs.append(self._costs(histogram, absent, prices))
        return -np.array(costs)

    def _costs(self, histogram: Integers, absent: Integers, prices: Integers) -> Integers:
        if self.aggregate.kind == "mode":
            return mode_costs(histogram, absent, prices)
        rank = self.aggregate.rank or Fraction(0)
        if self.upper:  # the lower quantile of the mirrored values
            return quantile_costs(histogram[:, ::-1], absent, prices, 1 - rank)[::-1]
        return quantile_costs(histogram, absent, prices, rank)

    def probabilities(self, statistics: Statistics) -> Floats:
        """(group, grid value) -> the probability that it is released, given who was sampled."""
        return np.array([noise.choice_probabilities(s, self.scale, self.rule) for s in self.scores(statistics)])

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        picks = [noise.choose(scores, self.scale, rng, self.rule) for scores in self.scores(statistics)]
        return np.array([float(self.aggregate.value(self.aggregate.lower + pick)) for pick in picks])


def touched(aggregate: Aggregate) -> int:
    """Return how many slots one person can change, counted in every group: changing the group counts twice."""
    moves_group = aggregate.protects == "value" and aggregate.groups > 1
    return aggregate.rows_per_person * (2 if moves_group else 1)


def quantile_costs(histogram: Integers, absent: Integers, prices: Integers, rank: Fraction) -> Integers:
    """For every grid value, the least price of slots whose change makes it the quantile of rank ⌈qn⌉.

    histogram is (cohort, grid value) -> slots, absent and prices are by cohort, prices ascending; q = a/b. With L below
    r, E on it and G above, r is the quantile iff bL < a(L+E+G) and a(L+E+G) ≤ b(L+E). Whoever changes may as well
    come to r: from below that mends the first condition by b, from above the second by b, from absence the first
    by a and the second by b − a; never are both broken. With nobody absent this is [JYC15]'s formula with the rank
    ⌈qn⌉ fixed.
    """
    if rank == 0:  # the minimum is the maximum of the mirrored values
        return quantile_costs(histogram[:, ::-1], absent, prices, Fraction(1))[::-1]
    a, b = rank.numerator, rank.denominator
    below = np.cumsum(histogram, axis=1) - histogram
    above = histogram.sum(axis=1, keepdims=True) - histogram - below
    present = int(histogram.sum())
    too_high = np.maximum(b * below.sum(axis=0) - a * present + 1, 0)
    too_low = np.maximum(b * above.sum(axis=0) - (b - a) * present, 0)
    costs = _cheapest(too_high, below, absent, prices, b, a) + _cheapest(too_low, above, absent, prices, b, b - a)
    return costs if present or absent.any() else np.zeros_like(costs)


def _cheapest(need: Integers, movers: Integers, absent: Integers, prices: Integers, moved: int, added: int) -> Integers:
    """For every grid value, the least price of whole movers (worth `moved` each) and absent slots that cover `need`.

    Absent slots (worth `added`) may be used in part, which keeps the cost convex in the number of movers: the best
    whole number of them is next to the best real one, which taking slots by price over worth gives. It changes
    nothing for medians, minima and maxima (worth 1), and elsewhere the cost still moves by at most the price of a
    slot that changes: take that slot whole, and a cover of the one database is a cover of the other. Rounding down
    keeps that, prices being whole.
    """
    if added == 0:
        absent, added = np.zeros_like(absent), 1
    worth = np.vstack([movers * moved, np.repeat(absent[:, None] * added, movers.shape[1], axis=1)])
    order = np.argsort(np.concatenate([prices * added, prices * moved]), kind="stable")  # price over worth
    taken = _take(need, worth[order])
    from_movers = taken[order < len(prices)].sum(axis=0)
    spare = int(absent.sum()) * added
    best = np.full_like(need, IMPOSSIBLE)
    for movers_taken in (from_movers // moved, -(-from_movers // moved)):
        rest = np.maximum(need - moved * movers_taken, 0)
        cost = prices @ _take(movers_taken, movers) + prices @ _take(rest, absent[:, None] * added) // added
        best = np.minimum(best, np.where(rest <= spare, cost, IMPOSSIBLE))
    return best


def _take(need: Integers, available: Integers) -> Integers:
    """Return how much of each row of `available`, in order, it takes to cover `need`."""
    before = np.cumsum(available, axis=0) - available
    return np.clip(need - before, 0, available)


def mode_costs(histogram: Integers, absent: Integers, prices: Integers) -> Integers:
    """For every category, the least price of slots whose change makes it a most frequent one.

    If no other category keeps more than h, the cheapest surplus of each must move to r, and then the cheapest others
    until r has h. That is a linear program with whole solutions, hence convex in h: bisection finds the best h.
    """
    categories, most = range(histogram.shape[1]), int(histogram.sum(axis=0).max(initial=0))
    costs = []
    for category in categories:
        others = np.delete(histogram, category, axis=1)
        has = int(histogram[:, category].sum())
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            here, next_ = (_level_cost(others, absent, prices, has, level) for level in (middle, middle + 1))
            low, high = (low, middle) if here <= next_ else (middle + 1, high)
        costs.append(_level_cost(others, absent, prices, has, low))
    return np.array(costs, dtype=np.int64)


def _level_cost(others: Integers, absent: Integers, prices: Integers, has: int, level: int) -> int:
    surplus = np.maximum(others.sum(axis=0) - level, 0)
    forced = _take(surplus, others)
    pool = (others - forced).sum(axis=1) + absent
    more = _take(np.array([max(0, level - has - int(surplus.sum()))]), pool[:, None])
    return int(prices @ forced.sum(axis=1) + (prices @ more).sum())


def is_ranked(aggregate: Aggregate) -> bool:
    """Return whether the answer is chosen among grid values."""
    return aggregate.kind in ("quantile", "mode")


def at_level(
    level: Level,
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    scheme: Callable[[Specification, int], Scheme],
    among: Sequence[int] = (),
) -> Rank:
    """Return the mechanism whose scheme is at this level; for "best", at the best of `among` or of everything between.

    Levels are tuned without the pull of many candidates, which only bad data attains (see weighted_rank).
    """

    def at(t: int, pull: bool = False) -> Rank:
        return tuned(aggregate, specification, belief, scheme(specification, t), pull=pull)

    return at(max(best_level(level, specification, at, among=among).scheme.prices), pull=True)


def tuned(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    scheme: Scheme,
    *,
    rule: Rule | None = None,
    upper: bool = False,
    pull: bool = True,
) -> Rank:
    """Return the exponential mechanism at the prices of a scheme; without `pull`, with the error that levels need."""
    prices = np.array(scheme.prices)
    check(aggregate, specification, int(prices.max()))
    if aggregate.kind == "mode" and aggregate.upper - aggregate.lower >= MOST_CATEGORIES:
        raise Unsuitable(f"It takes at most {MOST_CATEGORIES} categories; weighted_rank takes any number.")
    rates = scheme.rates
    stray = by_price(aggregate, specification, prices, rates, touched(aggregate))
    if not pull:
        stray = Stray(0.0, stray.noise)
    elif aggregate.rank in (0, 1):  # ranks say nothing beyond the extreme: the answer may lie anywhere up to the bound
        stray = Stray(1.0, 0.0)
    return Rank(
        aggregate=aggregate,
        specification=specification,
        scheme=scheme,
        error=rank_error(aggregate, specification, belief, rates, stray, coins=coin_scatter(specification, rates)),
        rule=rule or default_rule(aggregate),
        upper=upper,
    )


def default_rule(aggregate: Aggregate) -> Rule:
    """Permute-and-flip is never worse by score ([MS20] Theorem 2), and helps where candidates are few."""
    return "permute_and_flip" if aggregate.kind == "mode" else "exponential"


def histograms(statistics: Statistics) -> Integers:
    if statistics.histogram is None:
        raise EngineFailed("A choice among grid values needs counts by grid value, and there are none.")
    return statistics.histogram

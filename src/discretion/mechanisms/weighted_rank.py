"""Weighted rank: choose the value with the right share of influence below it. Our own."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, hypot, log, sqrt
from typing import NamedTuple

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.level import TRIED, best_level
from discretion.mechanisms.rank import default_rule, histograms, is_ranked
from discretion.mechanisms.scheme import capped
from discretion.mechanisms.stray import Stray, by_weight, candidates, check, rank_error, scatter, share_variance, tilt
from discretion.mechanisms.weighted import saturation
from discretion.noise import Floats, Rng, Rule
from discretion.preference import LARGEST_EPSILON, MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics


@dataclass(frozen=True, kw_only=True)
class WeightedRank:
    """Give everybody the influence u = min(ε, κ) and pick a value whose influence-weighted rank is right.

    Definition  A quantile's score is −dist(T, [Σ_{x<r} u, Σ_{x≤r} u]), T = qW, W = Σu: 0 where the weighted quantile
                is, also on ties. A minimum aims at T = min(margin, W/2), a maximum at T = max(W − margin, W/2): without
                a margin every value beyond the data would score 0. A mode's score is Σ_{x=r} u.
                P(r) ∝ exp(score/scale), or permute-and-flip with the same scores.
    Guarantee   u. Both rules lose at most (the most a score rises + the most one falls) / scale, which is at most
                `spread`·u for `scale` = spread; see there.
    Neighbours  presence or value.
    Tested by   tests/mechanisms/test_weighted_rank.py::test_nobody_loses_more_than_the_charge
    """

    aggregate: Aggregate
    specification: Specification
    influence: tuple[int, ...]  # by cohort, in micro-ε: what each member pays
    margin: int = 0  # in micro-ε of influence: how far from the extreme a minimum or maximum aims
    error: Error
    rule: Rule = "exponential"

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.influence, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, histogram=True)

    @property
    def scale(self) -> Fraction:
        """Return what a choice divides scores by; those of quantiles are whole multiples of 1 / _denominator."""
        return spread(self.aggregate) * _denominator(self.aggregate) * MICRO

    def scores(self, statistics: Statistics) -> Integers:
        """(group, grid value) -> score, in micro-ε of influence, times the denominator."""
        influence = np.array(self.influence)
        weights: Integers = np.einsum("c,gcv->gv", influence, histograms(statistics))  # (group, grid value)
        if self.aggregate.kind == "mode":
            return weights
        upto, total = np.cumsum(weights, axis=1), weights.sum(axis=1, keepdims=True)
        below, denominator, target = upto - weights, _denominator(self.aggregate), self._target(total)
        scores: Integers = np.minimum(np.minimum(target - denominator * below, denominator * upto - target), 0)
        return scores

    def _target(self, total: Integers) -> Integers:
        """T times the denominator."""
        rank = self.aggregate.rank or Fraction(0)
        if rank == 0:
            return np.minimum(total, 2 * self.margin)
        if rank == 1:
            return np.maximum(total, 2 * (total - self.margin))
        return total * rank.numerator

    def probabilities(self, statistics: Statistics) -> Floats:
        """(group, grid value) -> the probability that it is released."""
        return np.array([noise.choice_probabilities(s, self.scale, self.rule) for s in self.scores(statistics)])

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        picks = [noise.choose(scores, self.scale, rng, self.rule) for scores in self.scores(statistics)]
        return np.array([float(self.aggregate.value(self.aggregate.lower + pick)) for pick in picks])


def spread(aggregate: Aggregate) -> Fraction:
    """The most scores rise plus the most they fall, over all groups, when a person of influence 1 changes.

    Quantile, a row comes (or goes): a score is −max(0, B − T, T − B'), B and B' the influence below r and up to r. Rows
    at x < r raise B and B' by 1, at x > r neither, at x = r only B'; T rises by q, so B − T and T − B' move by at most
    max(q, 1 − q). At the extremes T rises by something from 0 to 1, so they move by at most 1 = max(q, 1 − q) too.
    Quantile, a row changes: T stays, B and B' move by at most 1. A row that changes group comes in one and goes in
    another: max(q, 1 − q) in each, more in all than 1. Mode: a row that comes raises one score by 1, which is a
    spread of 1; a row that changes raises one and lowers one. `rows_per_person` rows add up.
    """
    rows, q = aggregate.rows_per_person, aggregate.rank
    if q is None:
        return Fraction(rows * (1 if aggregate.protects == "presence" else 2))
    alone = max(q, 1 - q)
    if aggregate.protects == "presence":
        return 2 * rows * alone
    return 2 * rows * (Fraction(1) if aggregate.groups == 1 else 2 * alone)


def _denominator(aggregate: Aggregate) -> int:
    if aggregate.rank is None:
        return 1
    return 2 if aggregate.rank in (0, 1) else aggregate.rank.denominator


def propose(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    *,
    cap: float | None = None,
    rule: Rule | None = None,
) -> WeightedRank:
    if not is_ranked(aggregate):
        raise Unsuitable("It chooses among grid values, so it answers quantiles and modes only.")
    if cap is not None and not cap > 0:
        raise Unsuitable(f"cap must be above 0, got {cap!r}.")
    check(aggregate, specification, specification.epsilons[-1])
    kappa = _cap(aggregate, specification, belief) if cap is None else max(1, int(min(cap, LARGEST_EPSILON) * MICRO))
    influence = capped(specification, kappa)
    stray = by_weight(aggregate, specification, influence, float(spread(aggregate)))
    margin = _margin(aggregate)
    stray = Stray(stray.pull + margin / _weight(aggregate, specification, influence), stray.noise)
    return WeightedRank(
        aggregate=aggregate,
        specification=specification,
        influence=tuple(influence.tolist()),
        margin=margin,
        error=rank_error(aggregate, specification, belief, influence, stray),
        rule=rule or default_rule(aggregate),
    )


def _margin(aggregate: Aggregate) -> int:
    """Return how far inside an extreme to aim, in micro-ε, so that for any data 95% of answers are inside."""
    return ceil(spread(aggregate) * MICRO * log(20 * candidates(aggregate))) if aggregate.rank in (0, 1) else 0


def _weight(aggregate: Aggregate, specification: Specification, influence: Integers) -> float:
    """The influence in one group, if people are spread evenly over the groups, in micro-ε."""
    return float(specification.heads @ influence) * aggregate.rows_per_person / aggregate.groups


class _Tried(NamedTuple):
    cap: int
    error: Error


def _cap(aggregate: Aggregate, specification: Specification, belief: Belief) -> int:
    """κ: the saturation point for medians and modes whose preferences are unrelated to values, else the best found.

    The pull of many candidates is left out: it shrinks with 1/W as the noise does, and only bad data attains it.
    """
    rank, scale = aggregate.rank, float(spread(aggregate))
    variance = max(float(rank * (1 - rank)), 1e-9) if rank is not None else 1.0
    noise_at_one = 2 * scale**2 * aggregate.groups / aggregate.rows_per_person**2
    saturated = saturation(specification, noise_at_one / variance)
    if belief.beta == 0 and rank in (None, Fraction(1, 2)):
        return saturated
    believed = 1.0 if belief.beta is None else belief.beta

    def at(cap: int) -> _Tried:
        influence = capped(specification, cap)
        drawn = by_weight(aggregate, specification, influence, scale).noise  # refuses if nobody is left
        aimed = _margin(aggregate) / _weight(aggregate, specification, influence)
        scattered = 0.0 if belief.beta is None else scatter(specification, influence) * aggregate.groups
        random = share_variance(rank, aimed, scattered)
        biased = believed * tilt(specification, influence) + aimed
        return _Tried(cap, Error(bias=biased, noise=hypot(drawn, sqrt(random))))

    between = np.geomspace(specification.strictest, specification.epsilons[-1], TRIED**2).astype(np.int64)
    among = sorted({*specification.epsilons, saturated, *between.tolist()})
    return best_level("best", specification, at, among=among).cap

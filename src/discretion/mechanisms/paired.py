"""Paired: nine sums about two columns are released once; covariance, correlation and regression line follow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import hypot, inf, isfinite, sqrt
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import GROUP_ASSUMES, assignment, believed, over
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.joint import Answers, Derived, Kin
from discretion.mechanisms.level import best_level, refuse_nobody
from discretion.mechanisms.linear import unit_of
from discretion.mechanisms.scheme import capped
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Pair, Statistics, weigh

PARTS = 9
ROUNDING = 5  # steps: each of nine numbers is rounded by at most half a step, so they add up to less than 5 more
# What 1, t and t² are in (1 − u)², 2u(1 − u), u², t = 2u − 1 the position from −1 to 1.
ONE, FIRST, SECOND = np.array([1.0, 1.0, 1.0]), np.array([-1.0, 0.0, 1.0]), np.array([1.0, -1.0, 1.0])
MOMENTS = np.array(
    [
        np.outer(of_x, of_y).ravel()
        for of_x, of_y in [(ONE, ONE), (FIRST, ONE), (ONE, FIRST), (FIRST, FIRST), (SECOND, ONE), (ONE, SECOND)]
    ]
)
SURE = 3.0  # standard deviations that rows and variances must be above 0, so that their quotient has an error


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Release nine weighted sums about two columns, and compute statistics of both from them.

    Definition  Weights w_u = min(ε_u, κ). With u and v the positions of a row's x and y between their bounds, from 0 to
                1, the nine products of (1 − u)², 2u(1 − u), u² with the same of v are never negative and add up to 1.
                Each is rounded to a whole number of N steps. Released are their nine weighted sums with discrete
                Laplace noise; rows, Σx, Σy, Σxy, Σx² and Σy² are sums of these.
    Guarantee   min(ε_u, κ). Theorem: a row adds a vector of L1 norm at most w(N + 5), because rounding adds at most
                half a step to each of nine. k rows that come or go move all groups' sums by at most wk(N + 5);
                a change is what leaves and what comes. The scale is k(N + 5) under presence and twice that under value.
    Neighbours  presence or value.
    Tested by   tests/mechanisms/test_paired.py
    """

    aggregate: Aggregate  # of each part
    specification: Specification
    belief: Belief
    weights: tuple[int, ...]  # by cohort, in micro-ε: what each member pays
    estimates: tuple[Derived, ...]

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.weights, protects=self.aggregate.protects)

    @property
    def unit(self) -> int:
        return unit_of(np.array(self.weights, dtype=np.int64))

    @property
    def scales(self) -> tuple[Any, ...]:
        """Return the noise scale of each part, in steps and units of weight."""
        times = 1 if self.aggregate.protects == "presence" else 2
        most = times * self.aggregate.rows_per_person * (self.aggregate.upper + ROUNDING)
        return (Fraction(most * MICRO, self.unit),) * PARTS

    def centres(self, statistics: Sequence[Statistics]) -> tuple[Any, ...]:
        """Return the weighted sums by group before the noise. Private."""
        weights = np.array(self.weights, dtype=np.int64) // self.unit
        return tuple(weigh(part.totals, weights) for part in statistics)

    def answer(self, statistics: Sequence[Statistics], rows: object, rng: Rng) -> Answers:
        """Return the answers and errors of all parts, in their order; a part without a statistic is just its sum."""
        groups, steps = self.aggregate.groups, self.aggregate.upper
        noisy = np.array(
            [
                np.asarray((centre + noise.discrete_laplace(scale, groups, rng).astype(object)) * self.unit, float)
                for centre, scale in zip(self.centres(statistics), self.scales, strict=True)
            ]
        ) / (steps * MICRO)  # (part, group), in ε of weight
        found = []
        for one in self.estimates:
            told = [self._told(one.kin.pair, noisy[:, group]) for group in range(groups)]
            found.append((np.array([value for value, _ in told]), tuple(error for _, error in told)))
        return found

    def _told(self, pair: Pair | None, sums: Floats) -> tuple[float, Error]:
        if pair is None or pair.statistic is None:
            return float("nan"), Error(bias=inf, noise=inf)
        people = self.specification.size * MICRO / max(over(self.specification.heads, np.array(self.weights)), 1)
        value = statistic_of(pair, sums, people)
        return value, error_of(pair, sums, self, people)


def statistic_of(pair: Pair, sums: Floats, people: float) -> float:
    """Return a statistic of nine sums of weights; `people` is how many a weight of 1 stands for. NaN: there is none."""
    rows, *others = MOMENTS @ sums
    if rows <= 0:
        return float("nan")
    x, y, both, xx, yy = (one / rows for one in others)
    half_x, half_y = ((high - low) / 2 for low, high in (pair.x, pair.y))
    covariance, of_x, of_y = both - x * y, xx - x**2, yy - y**2
    if pair.statistic == "covariance":
        return float(half_x * half_y * covariance)
    if pair.statistic == "sample covariance":
        known = max(rows * people, 2.0)
        return float(half_x * half_y * covariance * known / (known - 1))
    if of_x <= 0 or (pair.statistic == "correlation" and of_y <= 0):
        return float("nan")
    if pair.statistic == "correlation":
        return float(covariance / sqrt(of_x * of_y))
    slope = half_y / half_x * covariance / of_x
    if pair.statistic == "slope":
        return float(slope)
    return float(sum(pair.y) / 2 + half_y * y - slope * (sum(pair.x) / 2 + half_x * x))


def error_of(pair: Pair, sums: Floats, paired: Paired, people: float, *, sure: bool = True) -> Error:
    """Return the error by the delta method; unknown where rows or variances cannot be told from 0.

    A row of the share f of all weight moves the statistic by f·g·W, g its gradient at the nine parts and W the weight:
    as parts are never negative and add up to 1, (g·row)² is at most Σ g²·part. Preferences at random add that variance;
    cohorts that differ move the statistic by at most τβ(max g − min g)W.
    """
    aggregate, belief, specification = paired.aggregate, paired.belief, paired.specification
    limits = _limits(pair)
    deviation = sqrt(2) * float(paired.scales[0]) * paired.unit / (aggregate.upper * MICRO)
    rows = float(sums.sum())
    unknown = Error(bias=inf, noise=inf, limits=limits)
    if rows <= SURE * 3 * deviation * sure:
        return unknown
    gradient = _gradient(pair, sums, people)
    if not np.isfinite(gradient).all() or (sure and not _is_sure(pair, sums, deviation)):
        return unknown
    heads, weights = specification.heads, np.array(paired.weights, dtype=np.float64)
    total = max(over(heads, weights), 1.0)
    share = weights * (specification.size / total)
    means = believed(aggregate, belief)
    part = min(max(rows * MICRO / total, 1e-9), 1.0)
    scatter = assignment(share, heads, means) / specification.size**2 / part
    random = rows * float(gradient**2 @ np.maximum(sums, 0)) * max(scatter, 0.0)
    moved = over(heads, np.abs(share - 1)) / specification.size / 2 * (1.0 if belief.beta is None else belief.beta)
    rounded = rows * float(np.abs(gradient).sum()) / (2 * aggregate.upper)  # half a step of every part of every row
    return Error(
        bias=moved * rows * float(gradient.max() - gradient.min()) + rounded,
        noise=hypot(deviation * float(np.linalg.norm(gradient)), sqrt(random)),
        assumption="; ".join(filter(None, [str(belief), GROUP_ASSUMES])),
        limits=limits,
    )


def _limits(pair: Pair) -> tuple[float, float] | None:
    if pair.statistic == "correlation":
        return -1.0, 1.0
    if pair.statistic == "covariance":
        most = (pair.x[1] - pair.x[0]) * (pair.y[1] - pair.y[0]) / 4
        return -most, most
    return None


def _gradient(pair: Pair, sums: Floats, people: float) -> Floats:
    step = 1e-5 * float(sums.sum())
    moved = np.eye(PARTS) * step
    up, down = (np.array([statistic_of(pair, sums + sign * one, people) for one in moved]) for sign in (1, -1))
    return np.asarray((up - down) / (2 * step))


def _is_sure(pair: Pair, sums: Floats, deviation: float) -> bool:
    """Tell whether the variances that a statistic divides by are visibly above 0."""
    if pair.statistic in ("covariance", "sample covariance"):
        return True
    rows, x, y, _, xx, yy = MOMENTS @ sums
    of_x, of_y = xx / rows - (x / rows) ** 2, yy / rows - (y / rows) ** 2
    most = 2 * 3 * deviation / rows  # of a mean square and of a squared mean, each with nine noises
    return bool(of_x > SURE * most and (pair.statistic != "correlation" or of_y > SURE * most))


def propose(kin: Sequence[Kin], specification: Specification, belief: Belief) -> Paired:
    """Tune the cap, for values that are spread evenly over both ranges."""
    refuse_nobody(specification)
    belief = Belief(assume=None if belief.assume == "gradual" else belief.assume)  # what is expected is of other values
    made = best_level("best", specification, partial(_at, kin, specification, belief)).paired
    if made.scales[0] > noise.LARGEST_SCALE:  # before anybody is charged
        raise Unsuitable("The noise would be larger than the exact sampler can draw: use fewer rows per person.")
    return made


@dataclass(frozen=True, kw_only=True)
class _Paired:
    paired: Paired
    error: Error


def _at(kin: Sequence[Kin], specification: Specification, belief: Belief, kappa: int) -> _Paired:
    weights: Integers = capped(specification, kappa)
    blank = Paired(
        aggregate=kin[0].aggregate,
        specification=specification,
        belief=belief,
        weights=tuple(weights.tolist()),
        estimates=(),
    )
    heads = specification.heads
    total = over(heads, weights.astype(np.float64)) / MICRO
    people = specification.size / max(total, 1e-9)
    even = np.full(PARTS, total / kin[0].aggregate.groups / PARTS)  # one row a person
    errors = [
        Error(bias=0.0, noise=0.0)
        if one.pair is None or one.pair.statistic is None
        else error_of(one.pair, even, blank, people, sure=False)
        for one in kin
    ]
    estimates = tuple(Derived(kin=one, error=error) for one, error in zip(kin, errors, strict=True))
    return _Paired(
        paired=replace(blank, estimates=estimates),
        error=max(errors, key=lambda error: error.total if isfinite(error.total) else inf),
    )

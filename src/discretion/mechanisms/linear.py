"""The law that minimum, threshold, stretch and weighted share: whole weighted totals plus discrete Laplace noise.

A person's weight is a whole number of micro-ε, and the noise is scaled so that moving the totals as far as one person
can costs exactly that weight. What is released are the noisy totals; everything after them is arithmetic on them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics, weigh

Quantity = Literal["count", "total", "centred", "square", "centred_square"]


class Part(NamedTuple):
    """One quantity that rows add up to, and how much noise a weight of one ε calls for."""

    quantity: Quantity
    scale: Fraction  # of the noise, in the quantity's own units


def is_affine(aggregate: Aggregate) -> bool:
    """Whether the answer is a total, or a total over a public number of people; else it is a ratio of totals."""
    return aggregate.kind in ("count", "people", "sum") or (aggregate.kind == "mean" and aggregate.size_is_public)


@lru_cache(maxsize=1024)
def parts(aggregate: Aggregate) -> tuple[Part, ...]:
    """What is released, scaled so that a person of weight w loses at most w: Σ |change of part| / scale ≤ 1.

    A row has the position x = (2z − lower − upper)/R from −1 to 1, R = upper − lower. With a public n, a variance
    needs Σx and Σx² at the rates (1/scale) 1/2 and 1/4: changing x into y costs |x − y|/2 + |x² − y²|/4, which is at
    most d/2 + d(2 − d)/4 = d − d²/4 ≤ 1 for d = |x − y|, because |x + y| ≤ 2 − d. For a private n see `_rates`.
    """
    width = aggregate.upper - aggregate.lower
    if aggregate.kind == "sum" and not aggregate.size_is_public and aggregate.origin != 0:
        raise Unsuitable("A sum over an unknown number of rows needs a grid whose origin is 0.")
    if is_affine(aggregate):
        quantity: Quantity = "count" if aggregate.kind in ("count", "people") else "total"
        return (Part(quantity, Fraction(aggregate.sensitivity)),)
    if aggregate.kind not in ("mean", "variance"):
        raise Unsuitable("It adds up rows, so it answers counts, sums, means and variances only.")
    if aggregate.size_is_public:
        return Part("centred", Fraction(2 * width)), Part("square", Fraction(4 * width**2))
    alpha, beta = _rates(aggregate)
    moments = [Part("centred", width / alpha), Part("centred_square", width**2 / alpha)]
    return *moments[: 1 if aggregate.kind == "mean" else 2], Part("count", 1 / beta)


def _rates(aggregate: Aggregate) -> tuple[Fraction, Fraction]:
    """The rates α of the moments Σx and, for a variance, Σ(2x² − 1), and β of the count, where n is private.

    A row that comes or goes costs |x|α + |2x² − 1|α + β: α + β for a mean, 2α + β for a variance. A row that changes
    costs 2α for a mean, and for a variance |x − y|α + 2|x² − y²|α ≤ αd(5 − 2d) ≤ 25α/8. If a person has a rows before
    and b after, min(a, b) of them change and |a − b| come or go, together at most k rows: under value in one group
    the loss is at most k times the dearer of the two. Under presence no row changes. Under value in many groups
    every row may go from one group and come to another, 2k in all.
    """
    is_mean, k = aggregate.kind == "mean", aggregate.rows_per_person
    if aggregate.protects == "value" and aggregate.groups == 1:
        alpha, beta = (Fraction(1, 2), Fraction(1, 2)) if is_mean else (Fraction(8, 25), Fraction(9, 25))
        return alpha / k, beta / k
    most = k if aggregate.protects == "presence" else 2 * k
    alpha = Fraction(17, 20) if is_mean else Fraction(2, 5)
    return alpha / most, (1 - alpha if is_mean else 1 - 2 * alpha) / most


def unit_of(weights: Integers) -> int:
    """The greatest common divisor of the weights; one ε if all are 0."""
    return int(np.gcd.reduce(weights)) or MICRO


def refuse_scale(aggregate: Aggregate, unit: int) -> None:
    """Refuse while planning, before anybody is charged, what the exact sampler could not draw."""
    widest = max(part.scale for part in parts(aggregate)) * MICRO / unit
    if widest > noise.LARGEST_SCALE:
        raise Unsuitable(
            f"Its noise would span about {float(widest):.2g} grid steps, too many for exact arithmetic. "
            "Use tighter bounds, a coarser grid or fewer rows per person."
        )


def tally(quantity: Quantity, statistics: Statistics, aggregate: Aggregate) -> Any:
    """The quantity by (group, cohort), in whole numbers of any size."""
    counts = np.asarray(statistics.counts).astype(object)
    if quantity == "count":
        return counts
    totals = np.asarray(statistics.totals).astype(object)
    if quantity == "total":
        return totals
    ends = aggregate.lower + aggregate.upper
    if quantity == "centred":
        return 2 * totals - ends * counts  # Σ R·x
    squares = 4 * np.asarray(statistics.squares).astype(object) - 4 * ends * totals + ends**2 * counts  # Σ (R·x)²
    if quantity == "square":
        return squares
    return 2 * squares - (aggregate.upper - aggregate.lower) ** 2 * counts  # Σ R²(2x² − 1)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Weighted totals plus noise; the subclasses differ in how they are tuned.

    A total is estimated as noisy total / divisor + offset, in grid steps. Ratios (a mean with a private denominator,
    a variance) need neither: numerator and denominator carry the same weights.
    """

    aggregate: Aggregate
    specification: Specification
    weights: tuple[int, ...]  # by cohort, in micro-ε: what each member pays
    divisor: Fraction = Fraction(MICRO)  # micro-ε of weight that count a person once
    offset: Fraction = Fraction(0)  # steps added for what the weights leave out
    error: Error
    # a ratio's error if those with a value have this part of the register's weight, which only the release tells
    error_at: Callable[[float, float], Error] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        refuse_scale(self.aggregate, self.unit)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.weights, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate)

    @cached_property
    def unit(self) -> int:
        """The largest whole number of micro-ε that divides every weight: totals and noise are counted in it."""
        return unit_of(np.array(self.weights))

    @property
    def full_weight(self) -> float:
        """The weight of everybody in the register, in micro-ε."""
        return float(self.specification.heads @ np.array(self.weights))

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The noise scale of each part, in units."""
        return tuple(part.scale * MICRO / self.unit for part in parts(self.aggregate))

    def centres(self, statistics: Statistics) -> tuple[Any, ...]:
        """The weighted totals before the noise, one array of whole numbers a part. Private."""
        weights = np.array(self.weights, dtype=np.int64) // self.unit
        return tuple(weigh(tally(part.quantity, statistics, self.aggregate), weights) for part in parts(self.aggregate))

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        return self.answer(statistics, rng)[0]

    def answer(self, statistics: Statistics, rng: Rng) -> tuple[Floats, tuple[Error, ...]]:
        """The private answers and their errors; a noisy denominator, released too, tells how good a ratio is."""
        noisy = [
            (centre + noise.discrete_laplace(scale, self.aggregate.groups, rng).astype(object)) * self.unit
            for centre, scale in zip(self.centres(statistics), self.scales, strict=True)
        ]
        if is_affine(self.aggregate):
            return self._total(noisy[0]), (self.error,) * self.aggregate.groups
        floats = [np.asarray(part, dtype=np.float64) for part in noisy]
        return self._ratio(floats), self._ratio_errors(floats)

    def _ratio_errors(self, noisy: list[Floats]) -> tuple[Error, ...]:
        if self.aggregate.size_is_public or self.error_at is None:
            return (self.error,) * self.aggregate.groups
        surely = noisy[-1] - 3 * float(self.scales[-1]) * self.unit  # less with a probability of 2.5%
        parts = np.maximum(surely, 0.0) / max(self.full_weight, 1.0)
        away = np.abs(self._mean(noisy))
        return tuple(self.error_at(part, near) for part, near in zip(parts.tolist(), away.tolist(), strict=True))

    def _mean(self, noisy: list[Floats]) -> Floats:
        """In steps from the middle of the bounds."""
        width = self.aggregate.upper - self.aggregate.lower
        return np.asarray(np.clip(noisy[0] / self._denominator(noisy), -width, width) / 2)

    def _denominator(self, noisy: list[Floats]) -> Floats:
        if self.aggregate.size_is_public:
            return np.array([self.full_weight])
        return np.maximum(noisy[-1], float(self.scales[-1]) * self.unit)  # below its own noise it says nothing

    def _total(self, noisy: Any) -> Floats:
        """Noisy weighted total -> the answer, exactly until the last rounding."""
        aggregate, people = self.aggregate, self.specification.size
        steps = [Fraction(int(total)) / self.divisor + self.offset for total in noisy]
        if aggregate.kind == "mean":
            return np.array([float(aggregate.value(total / people)) for total in steps])
        origin = aggregate.origin * people if aggregate.kind == "sum" and aggregate.size_is_public else Fraction(0)
        return np.array([float(origin + aggregate.step * total) for total in steps])

    def _ratio(self, noisy: list[Floats]) -> Floats:
        """Noisy numerators over the noisy (or public) denominator, kept inside what is possible."""
        aggregate = self.aggregate
        width, step = aggregate.upper - aggregate.lower, float(aggregate.step)
        middle = float(aggregate.value(Fraction(aggregate.lower + aggregate.upper, 2)))
        mean, weight = self._mean(noisy), self._denominator(noisy)
        if aggregate.kind == "mean":
            return np.asarray(middle + step * mean)
        second = noisy[1] / weight / 4 if aggregate.size_is_public else (noisy[1] / weight + width**2) / 8
        variance = step**2 * np.clip(second - mean**2, 0, width**2 / 4)
        return np.asarray(variance * bessel(self._rows(noisy)) if aggregate.sample else variance)

    def _rows(self, noisy: list[Floats]) -> Floats:
        """Return the number of rows with a value: the public one, or an estimate from the released weight."""
        return self._denominator(noisy) * (self.specification.size / max(self.full_weight, 1.0))


def bessel(rows: Floats | float) -> Floats:
    """Return n/(n − 1), which turns a population variance into a sample variance; at most 2, that of two rows."""
    known = np.maximum(rows, 2.0)
    return np.asarray(known / (known - 1))

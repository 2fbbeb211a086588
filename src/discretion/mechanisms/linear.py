"""The law that minimum, threshold, stretch and weighted share: whole weighted totals plus discrete Laplace noise.

A person's weight is a whole number of micro-ε, and the noise is scaled so that moving the totals as far as one person
can costs exactly that weight. What is released are the noisy totals; everything after them is arithmetic on them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd, sqrt
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.form import FIRST, ROWS, SECOND, Form, Part, is_affine, moments, parts, sizes, tally
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics, weigh


def unit_of(weights: Integers) -> int:
    """The greatest common divisor of the weights; one ε if all are 0."""
    return int(np.gcd.reduce(weights)) or MICRO


def refuse_scale(aggregate: Aggregate, unit: int, form: Form = ()) -> None:
    """Refuse while planning, before anybody is charged, what the exact sampler could not draw."""
    widest = max(part.scale for part in form or parts(aggregate))
    if widest.numerator * MICRO > noise.LARGEST_SCALE * widest.denominator * unit:
        raise Unsuitable(
            f"Its noise would span about {float(widest * MICRO / unit):.2g} grid steps, too many for exact arithmetic. "
            "Use tighter bounds, a coarser grid or fewer rows per person."
        )


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
    form: Form = ()  # what is released; the usual form if none is given
    error: Error
    # the error that a release tells: a total's for its value (by keyword), a ratio's for the part of the register's
    # weight that those with a value have, and the distance of the mean from the middle
    error_at: Callable[..., Error] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        refuse_scale(self.aggregate, self.unit, self.form)

    @property
    def released(self) -> Form:
        """Return the sums that are released."""
        return self.form or parts(self.aggregate)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.weights, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate)

    @cached_property
    def unit(self) -> int:
        """The largest whole number of micro-ε that divides every weight: totals and noise are counted in it."""
        return gcd(*self.weights) or MICRO

    @property
    def full_weight(self) -> float:
        """The weight of everybody in the register, in micro-ε."""
        return float(self.specification.heads @ np.array(self.weights))

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The noise scale of each part, in units."""
        return tuple(part.scale * MICRO / self.unit for part in self.released)

    def centres(self, statistics: Statistics) -> tuple[Any, ...]:
        """The weighted totals before the noise, one array of whole numbers a part. Private."""
        weights = np.array(self.weights, dtype=np.int64) // self.unit
        return tuple(weigh(tally(part.quantity, statistics, self.aggregate), weights) for part in self.released)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        return self.answer(statistics, rng)[0]

    def answer(self, statistics: Statistics, rng: Rng) -> tuple[Floats, tuple[Error, ...]]:
        """The private answers and their errors; a noisy denominator, released too, tells how good a ratio is."""
        noisy = [
            (centre + noise.discrete_laplace(scale, self.aggregate.groups, rng).astype(object)) * self.unit
            for centre, scale in zip(self.centres(statistics), self.scales, strict=True)
        ]
        if is_affine(self.aggregate):
            return self._totals(noisy[0])
        return self.ratio(self.moments(np.array(noisy, dtype=np.float64)))

    def _totals(self, noisy: Any) -> tuple[Floats, tuple[Error, ...]]:
        values = self._total(noisy)
        if self.error_at is None:
            return values, (self.error,) * self.aggregate.groups
        return values, tuple(self.error_at(value=value) for value in values.tolist())

    def ratio(self, found: Floats) -> tuple[Floats, tuple[Error, ...]]:
        """Return answers and errors of a ratio from its noisy moments, by (moment, group)."""
        return self._ratio(found), self._ratio_errors(found)

    def moments(self, noisy: Floats) -> Floats:
        """Return weighted rows, Σx and Σx², x from −1 to 1 across the bounds, by (moment, group)."""
        form = self.released
        found = moments(form, self.aggregate) @ (noisy / sizes(form, self.aggregate)[:, None])
        if self.aggregate.size_is_public:
            found[ROWS] = self.full_weight
        return np.asarray(found)

    @cached_property
    def rows_scale(self) -> float:
        """Return the scale of Laplace noise that varies as much as the noise of the weighted rows."""
        form = self.released
        scales = np.array([float(scale) * self.unit for scale in self.scales]) / sizes(form, self.aggregate)
        return sqrt(float(np.square(moments(form, self.aggregate)[ROWS] * scales).sum()))

    def _ratio_errors(self, found: Floats) -> tuple[Error, ...]:
        if self.aggregate.size_is_public or self.error_at is None:
            return (self.error,) * self.aggregate.groups
        surely = found[ROWS] - 3 * self.rows_scale  # less with a probability of 2.5%
        parts = np.maximum(surely, 0.0) / max(self.full_weight, 1.0)
        away = np.abs(self._mean(found))
        return tuple(self.error_at(part, near) for part, near in zip(parts.tolist(), away.tolist(), strict=True))

    def _mean(self, found: Floats) -> Floats:
        """Return the mean position, from −1 to 1."""
        return np.asarray(np.clip(found[FIRST] / self._denominator(found), -1, 1))

    def _denominator(self, found: Floats) -> Floats:
        return np.asarray(np.maximum(found[ROWS], self.rows_scale))  # below its own noise it says nothing

    def _total(self, noisy: Any) -> Floats:
        """Noisy weighted total -> the answer, exactly until the last rounding."""
        aggregate, people = self.aggregate, self.specification.size
        steps = [Fraction(int(total)) / self.divisor + self.offset for total in noisy]
        if aggregate.kind == "mean":
            return np.array([float(aggregate.value(total / people)) for total in steps])
        origin = aggregate.origin * people if aggregate.kind == "sum" and aggregate.size_is_public else Fraction(0)
        return np.array([float(origin + aggregate.step * total) for total in steps])

    def _ratio(self, found: Floats) -> Floats:
        """Return noisy moments over the noisy (or public) number of rows, kept inside what is possible."""
        aggregate = self.aggregate
        half = float(aggregate.step) * (aggregate.upper - aggregate.lower) / 2
        mean = self._mean(found)
        if aggregate.kind == "mean":
            middle = float(aggregate.value(Fraction(aggregate.lower + aggregate.upper, 2)))
            return np.asarray(middle + half * mean)
        variance = half**2 * np.clip(found[SECOND] / self._denominator(found) - mean**2, 0, 1)
        return np.asarray(variance * bessel(self._rows(found)) if aggregate.sample else variance)

    def _rows(self, found: Floats) -> Floats:
        """Return the number of rows with a value: the public one, or an estimate from the released weight."""
        return self._denominator(found) * (self.specification.size / max(self.full_weight, 1.0))


def bessel(rows: Floats | float) -> Floats:
    """Return n/(n − 1), which turns a population variance into a sample variance; at most 2, that of two rows."""
    known = np.maximum(rows, 2.0)
    return np.asarray(known / (known - 1))


__all__ = ["Form", "Linear", "Part", "bessel", "is_affine", "parts", "refuse_scale", "tally", "unit_of"]

"""Pooled: one weighted release for every band of similar ε; what they say together is estimated afterwards."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import believed, centre, laplace_variance, limits
from discretion.mechanisms.bands import Bands, choices
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.form import Form, parts, tally
from discretion.mechanisms.level import refuse_nobody
from discretion.mechanisms.linear import refuse_scale, unit_of
from discretion.mechanisms.pooling import Pool
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics, weigh

TOLERANCE = 1.01  # of the least predicted error: within it the most bands are taken
ASSUMES = (
    "the relation of choices and values is gradual (people of similar ε are alike); it was estimated from this release"
)


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Release a weighted total for each band of similar ε, then estimate how means depend on ε.

    Definition  Bands of neighbouring levels partition the register. For every band b and every part of the aggregate,
                release Σ_{u in b} ε_u x_u + Laplace noise, exactly the release of `weighted` with κ = the largest ε
                of b. The answer is the posterior mean of a small-area model (`small_area.py`): arithmetic on what was
                released.
    Guarantee   ε_u. Theorem: let u change. u is in one band, whatever their rows are, because bands come from the
                register. Only that band's totals move, and by at most ε_u times what one person of weight 1 can move
                them, which costs ε_u (`linear.py`, `parts`). The other bands' laws are unchanged, and noises are
                independent, so the log ratio of the whole release is at most ε_u. Choosing bands and computing the
                answer read public information and released numbers only.
    Neighbours  presence or value, as the aggregate says. Presence: absent people stay in their band with x_u = 0.
                Value: a changed value stays in its band, because choices are public.
    Tested by   tests/mechanisms/test_linear.py::test_nobody_loses_more_than_the_charge,
                tests/mechanisms/test_pooled.py
    """

    aggregate: Aggregate
    specification: Specification
    bands: Bands
    belief: Belief = field(default_factory=Belief)
    form: Form = ()  # what every band releases; the usual form if none is given
    error: Error

    def __post_init__(self) -> None:
        for unit in self.units:
            refuse_scale(self.aggregate, unit, self.form)

    @property
    def released(self) -> Form:
        """Return the sums that every band releases."""
        return self.form or parts(self.aggregate)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.specification.epsilons, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate)

    @cached_property
    def units(self) -> tuple[int, ...]:
        """By release, the largest whole number of micro-ε that divides every weight."""
        return tuple(map(unit_of, self.bands.weights(self.specification.micro)))

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The noise scale of every part of every band, in the band's units."""
        return tuple(part.scale * MICRO / unit for part in self.released for unit in self.units)

    def centres(self, statistics: Statistics) -> tuple[Any, ...]:
        """The weighted totals before the noise: for every part of every band one array, by group. Private."""
        found: list[Any] = []
        for part in self.released:
            found += self.by_band(tally(part.quantity, statistics, self.aggregate))
        return tuple(found)

    def by_band(self, totals: Any) -> list[Any]:
        """Return whole numbers by (group, cohort) as weighted totals of every band, in its units. Private."""
        weights = self.bands.weights(self.specification.micro)
        return [weigh(totals, weight // unit) for weight, unit in zip(weights, self.units, strict=True)]

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        return self.answer(statistics, rng)[0]

    def answer(self, statistics: Statistics, rng: Rng) -> tuple[Floats, tuple[Error, ...]]:
        """The private answers and their errors, by group."""
        return self.pool.answer(self.noisy(statistics, rng))

    def noisy(self, statistics: Statistics, rng: Rng) -> Floats:
        """Return what is released: noisy totals by (group, part and band), in micro-ε."""
        drawn = [
            centre + noise.discrete_laplace(scale, len(centre), rng).astype(object)
            for centre, scale in zip(self.centres(statistics), self.scales, strict=True)
        ]
        return self.totals(np.array(drawn, dtype=np.float64).T)

    def totals(self, noisy: Floats) -> Floats:
        """Noisy totals by (row, part and band), from units to micro-ε."""
        return np.asarray(noisy * np.tile(self.units, noisy.shape[1] // len(self.bands)))

    @cached_property
    def pool(self) -> Pool:
        """Return what turns noisy totals into answers."""
        return pool_of(self.aggregate, self.specification, self.belief, self.bands, self.released)


def deviations(form: Form, specification: Specification, bands: Bands) -> tuple[float, ...]:
    """Return the standard deviation of the noise of every part of every band, in micro-ε times its own units."""
    units = [unit_of(weights) for weights in bands.weights(specification.micro)]
    return tuple(sqrt(laplace_variance(float(part.scale) * MICRO / unit)) * unit for part in form for unit in units)


def pool_of(aggregate: Aggregate, specification: Specification, belief: Belief, bands: Bands, form: Form) -> Pool:
    """The estimation for these bands."""
    means, full = believed(aggregate, belief), believed(aggregate, Belief())
    width = full.high - full.low
    return Pool(
        aggregate=aggregate,
        specification=specification,
        bands=bands,
        low=full.low,
        width=width,
        variance=means.variance,
        narrow=(means.high - means.low) / width,
        centre=float(centre(aggregate, belief)),
        form=form,
        deviations=deviations(form, specification, bands),
        assumption="; ".join(filter(None, [ASSUMES, str(belief)])),
        limits=limits(aggregate, specification),
    )


def propose(aggregate: Aggregate, specification: Specification, belief: Belief, *, bands: int | None = None) -> Pooled:
    if belief.assume != "gradual":
        raise Unsuitable('It takes the relation of choices and values to be gradual: ask with assume="gradual".')
    if aggregate.kind not in ("count", "people", "sum", "mean"):
        raise Unsuitable("It answers counts, sums and means only.")
    if bands is not None and bands < 1:
        raise InvalidDeclaration(f"bands must be at least 1, got {bands!r}.")
    refuse_nobody(specification)
    form = parts(aggregate)
    means = believed(aggregate, belief)
    if not means.high > means.low:
        raise Unsuitable("Nothing can vary within these bounds, so there is nothing to estimate.")
    options = choices(specification, bands)
    first = pool_of(aggregate, specification, belief, options[0], form)
    tried = [replace(first, bands=one, deviations=deviations(form, specification, one)) for one in options]
    least = min(pool.predicted.total for pool in tried)
    good = [pool for pool in tried if pool.predicted.total <= TOLERANCE * least]
    best = min(good, key=lambda pool: (-len(pool.bands), pool.predicted.total))  # more bands see more of the relation
    return Pooled(
        aggregate=aggregate, specification=specification, bands=best.bands, belief=belief, error=best.predicted
    )

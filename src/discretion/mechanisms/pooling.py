"""Pooling: noisy totals of bands become answers, errors and relations. Everything here reads released numbers only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from discretion.mechanisms import small_area
from discretion.mechanisms.bands import Bands, steps_of
from discretion.mechanisms.fieller import Ratio
from discretion.mechanisms.form import FIRST, ROWS, Form, is_affine, moments, sizes
from discretion.mechanisms.small_area import TAILS, Design, Posterior
from discretion.noise import Floats
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.release.relation import Band, Relation
from discretion.statistics import Aggregate

SIDES = (*TAILS, *(1 - tail for tail in TAILS))
EVERYBODY, DIFFERENCE, FIRST_BAND = 0, 1, 2  # places among the averages asked about
MIDDLE = (0.025, 0.975)  # of a relation's intervals
NORMAL_95 = 1.96  # standard deviations
OF = {"count": "rows per person", "people": "share of people", "sum": "sum per person", "mean": "mean"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """Says what is known after a release, by row, in the units of the answer."""

    values: Floats
    deviations: Floats
    sides: Floats  # (row, quantile): at those asked for
    levels: Posterior  # of the bands' means, from `start`, in parts of `each`
    start: Floats  # (row)
    each: Floats  # (row, band)


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Says how the bands' noisy weighted totals, in micro-ε, are combined."""

    aggregate: Aggregate
    specification: Specification
    bands: Bands
    low: float  # where one person's contribution lies, in steps: from here
    width: float  # and so far
    variance: float  # the most it is believed to vary, in steps²
    narrow: float  # the part of that range in which means are expected
    centre: float  # where they are expected, in steps
    form: Form
    deviations: tuple[float, ...]  # of the noise of every part of every band, in the units of the totals
    assumption: str
    limits: tuple[float, float]

    @cached_property
    def released(self) -> Floats:
        """Return what every release has of each step: ε of its people together, in micro-ε, by (release, step)."""
        micro, heads = self.specification.micro, self.specification.heads
        given = np.array(self.bands.weights(micro), dtype=np.float64) * heads
        return np.asarray(np.add.reduceat(given, steps_of(self.specification).starts, axis=1))

    @cached_property
    def owned(self) -> Floats:
        """The micro-ε that every release is about."""
        return np.asarray(self.released.sum(axis=1))

    def _design(self, *asked: Floats, trends: Sequence[int] = ()) -> Design:
        """Observed: every release. Asked about: everybody, and other averages or differences over the steps."""
        steps = steps_of(self.specification)
        observed = self.released / np.maximum(self.owned, 1e-300)[:, None]
        everybody = steps.heads / max(int(steps.heads.sum()), 1)
        return Design.of(steps.heads, np.vstack([observed, everybody, *asked]), len(self.bands), trends=trends)

    @cached_property
    def design(self) -> Design:
        """Asked about: everybody, the difference of the halves, every band by heads."""
        steps, bands = steps_of(self.specification), len(self.bands)
        ends = np.cumsum(steps.heads)
        half = ends[-1] / 2
        strict = np.clip(half - (ends - steps.heads), 0, steps.heads)  # how many of each step are in the stricter half
        firsts = [first for first, _ in self.bands.spans]
        band_of = np.searchsorted(firsts, steps.starts, side="right") - 1  # −1 where people chose 0
        members = (band_of == np.arange(bands)[:, None]) * steps.heads  # (band, step)
        means = members / np.maximum(members.sum(axis=1, keepdims=True), 1)
        return self._design((steps.heads - 2 * strict) / half, *means, trends=[bands + DIFFERENCE])

    # Before the release ---------------------------------------------------------------------------------------------

    @cached_property
    def predicted(self) -> Error:
        """The error that is expected, averaged over relations of any strength and counting variances at their most.

        For a ratio, as if everybody had one row with a value and groups were equally large (`accuracy.ratio_error`).
        """
        noise = (np.array(self.deviations).reshape(-1, len(self.bands)) / self.owned) ** 2  # (part, band)
        design = self._design()
        if is_affine(self.aggregate):
            found = small_area.expected_variances(
                design,
                noise[0] / self.width**2,
                variance=self.variance / self.width**2,
                reach=self.narrow,
            )
            return self._predicted(found, self._unit * self.width)
        rows = 1 / self.aggregate.groups
        noise = np.square(self._lines[[ROWS, FIRST]]).sum(axis=0) @ noise  # Σx − m·rows at m = ±1
        found = small_area.expected_variances(design, noise, variance=rows, reach=2 * rows)
        return self._predicted(found, self._half / rows)

    def _predicted(self, found: tuple[float, float], unit: float) -> Error:
        """Return the error of these variances of the answer and its interval, in this unit."""
        plain = self._error(sqrt(found[0]) * unit)
        return replace(plain, pull=max(0.0, NORMAL_95 * sqrt(found[1]) * unit - plain.half_width()))

    def _error(self, noise: float) -> Error:
        return Error(bias=0.0, noise=noise, assumption=self.assumption, limits=self.limits)

    @property
    def _unit(self) -> float:
        """Return what one step of everybody's average is in the answer."""
        people = 1 if self.aggregate.kind == "mean" else self.specification.size
        return float(self.aggregate.step) * people

    @property
    def _lines(self) -> Floats:
        """Return how a ratio's rows and Σx are made of its parts, by (moment, part)."""
        return np.asarray(moments(self.form, self.aggregate) / sizes(self.form, self.aggregate))

    @property
    def _half(self) -> float:
        """Half the range of a ratio, in its units."""
        return float(self.aggregate.step) * (self.aggregate.upper - self.aggregate.lower) / 2

    # After the release ----------------------------------------------------------------------------------------------

    def answer(self, totals: Floats) -> tuple[Floats, tuple[Error, ...]]:
        """Answers and errors, by row, from noisy totals by (row, part and band)."""
        found = self.estimate(totals)
        errors = []
        for value, deviation, ends, relation in zip(
            found.values, found.deviations, found.sides, self._relations(found), strict=True
        ):
            offsets = (ends - value).tolist()
            ladder = tuple(zip(TAILS, offsets[: len(TAILS)], offsets[len(TAILS) :], strict=True))
            plain = self._error(float(deviation))
            exact = replace(plain, quantiles=ladder, relation=relation)
            # for those who only use bias, noise and pull: as wide as the quantiles at 95%
            errors.append(replace(exact, pull=max(0.0, exact.half_width() - plain.half_width())))
        return found.values, tuple(errors)

    def estimate(self, totals: Floats, sides: Sequence[float] = SIDES) -> Estimate:
        """The same without relations, with these quantiles, for many rows at once."""
        shape = (len(totals), -1, len(self.bands))
        observed = totals.reshape(shape) / self.owned
        noise = np.broadcast_to((np.array(self.deviations).reshape(shape[1:]) / self.owned) ** 2, observed.shape)
        if is_affine(self.aggregate):
            return self._total(observed[:, 0], noise[:, 0], sides)
        return self._ratio(observed, noise, sides)

    def _total(self, observed: Floats, noise: Floats, sides: Sequence[float]) -> Estimate:
        found = small_area.estimate_shares(
            self.design,
            (observed - self.low) / self.width,
            noise / self.width**2,
            centre=(self.centre - self.low) / self.width,
            narrow=self.narrow,
        )
        aggregate, rows = self.aggregate, len(observed)
        people = 1 if aggregate.kind == "mean" else self.specification.size
        origin = float(aggregate.origin) if aggregate.kind == "mean" or aggregate.size_is_public else 0.0
        each = float(aggregate.step) * self.width
        start = origin + float(aggregate.step) * self.low
        return Estimate(
            values=people * (start + each * found.mean[:, EVERYBODY]),
            deviations=people * each * found.deviation[:, EVERYBODY],
            sides=people * (start + each * found.quantiles(sides, EVERYBODY)),
            levels=found,
            start=np.full(rows, start),
            each=np.full((rows, len(self.bands)), each),
        )

    def _ratio(self, observed: Floats, noise: Floats, sides: Sequence[float]) -> Estimate:
        """A mean over a private number of rows: the m for which Σ (x − m) is 0, x from −1 to 1.

        Numerator minus m times denominator is a total like any other, for every m. Where its posterior puts 0 says how
        probable it is that the mean is below m (Fieller's argument), which stays right if the denominator is small.
        """
        most, lines = float(self.aggregate.rows_per_person), self._lines
        observed, noise = lines @ observed, np.square(lines) @ noise  # (row, moment, band)
        rows = small_area.estimate_shares(self.design, observed[:, ROWS] / most, noise[:, ROWS] / most**2)
        density = np.clip(rows.mean, np.minimum(rows.deviation, 1.0), 1.0) * most  # rows a person, never 0
        ratio = Ratio(
            design=self.design,
            top=observed[:, FIRST],
            bottom=observed[:, ROWS],
            top_noise=noise[:, FIRST],
            bottom_noise=noise[:, ROWS],
            density=density[:, EVERYBODY],
            most=most,
        )
        values, deviations, ends = ratio.solve(sides)
        middle = float(self.aggregate.value(Fraction(self.aggregate.lower + self.aggregate.upper, 2)))
        start = middle + self._half * values
        return Estimate(
            values=start,
            deviations=self._half * deviations,
            sides=middle + self._half * ends,
            levels=ratio.residual(values[:, None]),
            start=start,
            each=self._half / density[:, FIRST_BAND:],
        )

    def _relations(self, found: Estimate) -> list[Relation]:
        """Return how the bands differ, in the units of one person."""
        heads, micro, count = self.specification.heads, self.specification.micro, len(self.bands)
        people = [int(heads[slice(*band)].sum()) for band in self.bands.spans]
        epsilons = [(float(micro[first]) / MICRO, float(micro[last - 1]) / MICRO) for first, last in self.bands.spans]
        means = found.start[:, None] + found.each * found.levels.mean[:, FIRST_BAND:]
        ends = found.start[:, None, None] + found.each[:, :, None] * np.stack(
            [found.levels.quantiles(MIDDLE, FIRST_BAND + band) for band in range(count)], axis=1
        )  # (row, band, end)
        unit = found.each.mean(axis=1)
        apart = unit * found.levels.mean[:, DIFFERENCE]
        within = unit[:, None] * found.levels.quantiles(MIDDLE, DIFFERENCE)
        return [
            Relation(
                of=OF[self.aggregate.kind],
                bands=tuple(
                    Band(epsilon=epsilon, people=size, mean=mean, low=low, high=high)
                    for epsilon, size, mean, (low, high) in zip(
                        epsilons, people, means[row].tolist(), ends[row].tolist(), strict=True
                    )
                ),
                difference=float(apart[row]),
                low=float(within[row, 0]),
                high=float(within[row, 1]),
            )
            for row in range(len(means))
        ]

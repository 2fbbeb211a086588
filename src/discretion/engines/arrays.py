"""Arrays as an engine: columns become whole numbers by group and cohort."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discretion import noise
from discretion.noise import Floats, Rng
from discretion.preference import Integers
from discretion.statistics import Aggregate, Measure, Request, Statistics


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayColumn:
    """One value per row. Private."""

    present: NDArray[np.bool_]  # whether the row has a value (or, for a condition, whether it holds)
    inside: NDArray[np.bool_] | None = None  # whether the row is in a declared group; None: all are
    group: Integers | None = None  # None: one group
    values: NDArray[Any]  # 0 where not present
    nullable: bool = True  # by type, not by content
    whole: bool = False  # by type: integers
    required: bool = False  # everybody counts: a missing value is the bound nearest 0

    def __len__(self) -> int:
        return len(self.present)

    def __repr__(self) -> str:
        return f"ArrayColumn(rows={len(self)}, private)"

    def grouped(self, group: Integers, inside: NDArray[np.bool_]) -> "ArrayColumn":
        """Return the same column in groups; a row in no group does not count."""
        return replace(self, group=group, inside=inside)

    def filled(self) -> "ArrayColumn":
        """Return the same column for a question in which everybody has a value."""
        return replace(self, required=True, nullable=False)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Return which rows count."""
        there = np.ones(len(self), dtype=bool) if self.required else self.present
        return there if self.inside is None else there & self.inside

    def part(self, number: int) -> "ArrayColumn":
        """Return the column that the measure of this number is over: all of them are over this one."""
        return self

    def steps(self, aggregate: Aggregate) -> Integers:
        """Return each value as a grid step; for somebody without a value, the step of 0.

        It is the arithmetic of `engines.column`, operation by operation, so that SQL over the same values gives the
        same whole numbers.
        """
        values = np.asarray(self.values, dtype=np.float64)
        low, high = float(aggregate.value(aggregate.lower)), float(aggregate.value(aggregate.upper))
        moved = np.clip(values, low, high)  # first, so that nothing overflows
        if aggregate.origin:
            moved -= float(aggregate.origin)
        if aggregate.step.numerator != 1:
            moved /= float(aggregate.step)
        elif aggregate.step != 1:
            moved *= float(aggregate.step.denominator)
        steps = _rounded(moved).astype(np.int64)
        if max(-low, high, abs(float(aggregate.origin))) >= 2**43 * float(aggregate.step):  # doubles may be wider apart
            steps = np.clip(steps, aggregate.lower, aggregate.upper)
            steps = np.where(values < low, aggregate.lower, np.where(values > high, aggregate.upper, steps))
        if self.required:
            np.copyto(steps, aggregate.nearest(0), where=~self.present)
        return steps


@dataclass(frozen=True, kw_only=True, eq=False)
class PairColumn(ArrayColumn):
    """Two numbers per row, x and y: the `values` are those of x. Private."""

    others: NDArray[Any]  # y
    ends: tuple[tuple[float, float], tuple[float, float]]  # the bounds of x and of y

    def part(self, number: int) -> ArrayColumn:
        """Return one of nine products of (1 − u)², 2u(1 − u), u² with the same of v, as `query.pair` writes it."""
        x, y = (_position(*one) for one in zip((self.values, self.others), self.ends, strict=True))
        product = _bernstein(x, number // 3) * _bernstein(y, number % 3)
        return ArrayColumn(present=self.present, inside=self.inside, group=self.group, values=product)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayRows:
    """Says which rows a request is about: what goes into `Request.source`."""

    column: ArrayColumn
    cohort: Integers  # of each person, by its place in the specification
    cohorts: int
    person: Integers | None = None  # whose each row is; None: there is one row for each person, in order

    def each(self, by_person: NDArray[Any]) -> NDArray[Any]:
        """Return for every row what its person has."""
        return by_person if self.person is None else by_person[self.person]


def compute(request: Request[ArrayRows], rng: Rng = None) -> tuple[Statistics, ...]:
    """Return the statistics for every measure of a request, whose source is an `ArrayRows`."""
    rows = request.source
    return tuple(
        _statistics(measure, replace(rows, column=rows.column.part(number)), rng)
        for number, measure in enumerate(request.measures)
    )


def limited(column: ArrayColumn, person: Integers, most: int, rng: Rng = None) -> ArrayColumn:
    """Return the column with at most `most` rows of each person, chosen at random among those that count.

    Which are chosen depends on that person's rows alone, so one person's rows never move another's. A row of nobody
    does not count.
    """
    counted = column.counted & (person >= 0)
    coin = noise.coins(len(column), rng)
    order = np.lexsort((coin, ~counted, person))  # by person, rows that count first, in random order
    sorted_person = person[order]
    first = np.searchsorted(sorted_person, sorted_person, side="left")
    kept = np.zeros(len(column), dtype=bool)
    kept[order] = np.arange(len(column)) - first < most
    return replace(column, inside=counted & kept)


def _statistics(measure: Measure, rows: ArrayRows, rng: Rng) -> Statistics:
    aggregate, column = measure.aggregate, rows.column
    used = column.counted
    if measure.inclusion is not None:  # every measure tosses coins of its own: losses add up for independent ones only
        # One coin a person: all rows of a person are kept, or none.
        kept = noise.keep(noise.coins(len(rows.cohort), rng), measure.inclusion, rows.cohort)
        used = used & rows.each(kept)
    cohort = rows.each(rows.cohort)
    cell = cohort if column.group is None else column.group * rows.cohorts + cohort
    everybody = bool(used.all())
    cell = cell if everybody else cell[used]
    shape = (aggregate.groups, rows.cohorts)
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    if aggregate.kind in ("count", "people"):
        return Statistics(counts=counts)
    steps = column.steps(aggregate)
    steps = steps if everybody else steps[used]
    if measure.histogram:
        values = aggregate.upper - aggregate.lower + 1
        by_value = np.bincount(cell * values + (steps - aggregate.lower), minlength=counts.size * values)
        return Statistics(counts=counts, histogram=by_value.reshape(*shape, values))
    largest = max(abs(aggregate.lower), abs(aggregate.upper))
    totals = _sums(steps, largest, cell, counts.size).reshape(shape)
    squares = _sums(steps**2, largest**2, cell, counts.size).reshape(shape) if aggregate.kind == "variance" else None
    return Statistics(counts=counts, totals=totals, squares=squares)


def _position(values: NDArray[Any], ends: tuple[float, float]) -> Floats:
    """Return where values are between two ends, from 0 to 1."""
    low, high = ends
    return np.asarray((np.clip(np.asarray(values, dtype=np.float64), low, high) - low) / (high - low))


def _bernstein(position: Floats, degree: int) -> Floats:
    rest = 1.0 - position
    return (rest * rest, 2.0 * position * rest, position * position)[degree]


def _rounded(values: Floats) -> Floats:
    """Round to whole numbers, half away from 0 like ROUND in SQL; `np.rint` would round 2.5 to 2."""
    whole = np.rint(values)
    halves = np.abs(values - whole) == 0.5  # exactly
    whole[halves] = values[halves] + np.copysign(0.5, values[halves])
    return whole


def _sums(values: Integers, largest: int, cell: Integers, size: int) -> Any:
    """Return exact sums by cell: `bincount` adds doubles, so large numbers are added in parts that doubles hold."""
    if largest * len(values) < 2**53:
        return np.bincount(cell, weights=values, minlength=size).astype(np.int64).astype(object)
    low = np.bincount(cell, weights=values & 0xFFFF, minlength=size)  # exact below 2^37 people
    middle = np.bincount(cell, weights=(values >> 16) & 0xFFFF, minlength=size)
    high = np.bincount(cell, weights=values >> 32, minlength=size)
    parts = [part.astype(np.int64).astype(object) for part in (low, middle, high)]
    return parts[0] + parts[1] * 2**16 + parts[2] * 2**32

"""Covariance, correlation and slope of two columns of arrays: nine sums, one release."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from discretion.arrays.bounded import NumberBounds, bounds_of, is_dates
from discretion.arrays.question import ArrayChoices, By, Epsilon, Keys, answer, most_rows, refuse_other_length
from discretion.declaration.parameter import checked
from discretion.engines.arrays import PairColumn
from discretion.engines.values import Column, numbers
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.paired import PARTS
from discretion.noise import Rng
from discretion.release import Release
from discretion.statistics import Pair, PairStatistic, pair_sum


@checked
def covariance(
    x: Column,
    y: Column,
    *,
    epsilon: Epsilon,
    x_bounds: NumberBounds,
    y_bounds: NumberBounds,
    population: bool = False,
    levels: Mapping[str, float] | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    person: Column | None = None,
    rows_per_person: int | None = None,
    assume: Assume = None,
    protects: Protects = "value",
    rng: Rng = None,
) -> Release:
    """Return the sample covariance of x and y, each clamped to its bounds, over the rows that have both.

    It divides by n − 1, like COVAR_SAMP in SQL; with `population` by n, like COVAR_POP.
    """
    asking = ArrayChoices(
        epsilon=epsilon,
        levels=levels,
        by=by,
        keys=keys,
        person=person,
        rows_per_person=rows_per_person,
        assume=assume,
        protects=protects,
        rng=rng,
    )
    statistic: PairStatistic = "covariance" if population else "sample covariance"
    return _paired("covariance", statistic, x, y, asking, x_bounds, y_bounds)


@checked
def correlation(
    x: Column,
    y: Column,
    *,
    epsilon: Epsilon,
    x_bounds: NumberBounds,
    y_bounds: NumberBounds,
    levels: Mapping[str, float] | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    person: Column | None = None,
    rows_per_person: int | None = None,
    assume: Assume = None,
    protects: Protects = "value",
    rng: Rng = None,
) -> Release:
    """Return Pearson's correlation of x and y, each clamped to its bounds, over the rows that have both: CORR in SQL.

    The answer is None if noise leaves no variance to divide by.
    """
    asking = ArrayChoices(
        epsilon=epsilon,
        levels=levels,
        by=by,
        keys=keys,
        person=person,
        rows_per_person=rows_per_person,
        assume=assume,
        protects=protects,
        rng=rng,
    )
    return _paired("correlation", "correlation", x, y, asking, x_bounds, y_bounds)


@checked
def slope(
    x: Column,
    y: Column,
    *,
    epsilon: Epsilon,
    x_bounds: NumberBounds,
    y_bounds: NumberBounds,
    levels: Mapping[str, float] | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    person: Column | None = None,
    rows_per_person: int | None = None,
    assume: Assume = None,
    protects: Protects = "value",
    rng: Rng = None,
) -> Release:
    """Return by how much y rises per unit of x, each clamped to its bounds: REGR_SLOPE(y, x) in SQL.

    It is the slope of the least squares line over the rows that have both. The answer is None if noise leaves no
    variance to divide by.
    """
    asking = ArrayChoices(
        epsilon=epsilon,
        levels=levels,
        by=by,
        keys=keys,
        person=person,
        rows_per_person=rows_per_person,
        assume=assume,
        protects=protects,
        rng=rng,
    )
    return _paired("slope", "slope", x, y, asking, x_bounds, y_bounds)


def _paired(
    name: str,
    statistic: PairStatistic,
    x: Column,
    y: Column,
    asking: ArrayChoices,
    x_bounds: NumberBounds,
    y_bounds: NumberBounds,
) -> Release:
    """Ask for nine sums about two columns, as SQL does; what they say about an empty group is None."""
    ends = _ends(name, "x_bounds", x_bounds), _ends(name, "y_bounds", y_bounds)
    of_x, of_y = numbers(x), numbers(y)
    refuse_other_length("y", len(of_y), len(of_x))
    column = PairColumn(present=of_x.present & of_y.present, values=of_x.values, others=of_y.values, ends=ends)
    rows = most_rows(asking)
    shape = pair_sum(protects="value", rows_per_person=rows)
    if shape is None:
        raise InvalidDeclaration(f"{name} needs fewer rows per person than {rows:,}.")
    pairs = [Pair(part=part, statistic=None if part else statistic, x=ends[0], y=ends[1]) for part in range(PARTS)]
    found = answer(name, [shape] * PARTS, column, asking, pairs=pairs)
    values = tuple(value if isfinite(value) else None for value in found.columns[name])
    return replace(found, columns={**found.columns, name: values})


def _ends(name: str, option: str, bounds: NumberBounds) -> tuple[float, float]:
    low, high = bounds_of(bounds, option)
    if is_dates(bounds):
        raise InvalidDeclaration(f"{name} needs numbers, and {option} are dates. Count days, and give their bounds.")
    return float(low), float(high)

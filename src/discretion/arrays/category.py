"""Counts of arrays: how many people, how many in each category or interval, and the most frequent category."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np

from discretion.arrays.bounded import Bounds, bounds_of, is_dates
from discretion.arrays.question import ArrayChoices, By, Epsilon, Keys, answer
from discretion.declaration.parameter import checked
from discretion.engines.arrays import ArrayColumn
from discretion.engines.values import Column, Grouping, bits, categories_of, dates, intervals_of, numbers
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Model, Protects
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import MechanismName, Options
from discretion.noise import Rng
from discretion.release import Release
from discretion.release.calendar import days
from discretion.statistics import Aggregate

COUNT = Aggregate(kind="count", protects="value")
Bins = int | Sequence[float] | Sequence[date]


@checked
def count(
    condition: Column,
    *,
    epsilon: Epsilon,
    levels: Mapping[str, float] | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    person: Column | None = None,
    rows_per_person: int | None = None,
    mechanism: MechanismName = "auto",
    options: Options | None = None,
    assume: Assume = None,
    expect: tuple[float, float] | None = None,
    protects: Protects = "value",
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return how many people the condition holds for (True, or any number but 0); with `person`, how many rows."""
    asking = ArrayChoices(
        epsilon=epsilon,
        levels=levels,
        by=by,
        keys=keys,
        person=person,
        rows_per_person=rows_per_person,
        mechanism=mechanism,
        options=options,
        assume=assume,
        expect=expect,
        protects=protects,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    return answer("count", [COUNT], bits(condition), asking)


@checked
def histogram(
    values: Column,
    *,
    epsilon: Epsilon,
    categories: Sequence[Any] | None = None,
    bins: Bins | None = None,
    bounds: Bounds | None = None,
    levels: Mapping[str, float] | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    person: Column | None = None,
    rows_per_person: int | None = None,
    mechanism: MechanismName = "auto",
    options: Options | None = None,
    assume: Assume = None,
    expect: tuple[float, float] | None = None,
    protects: Protects = "value",
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return how many people have each of `categories`, or a value in each of `bins`; other values are not counted.

    `bins` are edges, as in NumPy: each bin has its left edge but not its right one, the last one has both. A number of
    bins of equal width needs `bounds`. Categories, edges and bounds must be known without looking at the data.
    """
    asking = ArrayChoices(
        epsilon=epsilon,
        levels=levels,
        by=by,
        keys=keys,
        person=person,
        rows_per_person=rows_per_person,
        mechanism=mechanism,
        options=options,
        assume=assume,
        expect=expect,
        protects=protects,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    grouping = _binned(values, bins, bounds) if bins is not None else None
    if (grouping is None) == (categories is None) or (bounds is not None and not isinstance(bins, int)):
        raise InvalidDeclaration(
            "A histogram needs categories=[...], or bins=[edges], or bins=10 with bounds=(low, high)."
        )
    if grouping is None:
        grouping = categories_of(values, categories or (), name="category")
    everybody = np.ones(len(grouping.place), dtype=bool)
    return answer("count", [COUNT], ArrayColumn(present=everybody, values=everybody), asking, grouping)


@checked
def mode(
    values: Column,
    *,
    epsilon: Epsilon,
    categories: Sequence[Any],
    levels: Mapping[str, float] | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    person: Column | None = None,
    rows_per_person: int | None = None,
    mechanism: MechanismName = "auto",
    options: Options | None = None,
    assume: Assume = None,
    expect: tuple[float, float] | None = None,
    protects: Protects = "value",
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the most frequent of `categories`, which must be known beforehand; other values are not counted."""
    asking = ArrayChoices(
        epsilon=epsilon,
        levels=levels,
        by=by,
        keys=keys,
        person=person,
        rows_per_person=rows_per_person,
        mechanism=mechanism,
        options=options,
        assume=assume,
        expect=expect,
        protects=protects,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    found = categories_of(values, categories, name="category").place
    column = ArrayColumn(present=found >= 0, values=found)
    shape = Aggregate(kind="mode", protects="value", upper=len(categories) - 1)
    release = answer("mode", [shape], column, asking)
    picked = tuple(categories[int(pick)] for pick in release.columns["mode"])
    return replace(release, columns={**release.columns, "mode": picked})


def _binned(values: Column, bins: Bins, bounds: Bounds | None) -> Grouping:
    """Return the bin of every value."""
    edges: Sequence[Any] = _equal(bins, bounds) if isinstance(bins, int) else list(bins)
    moments = is_dates(edges)
    places = np.array([float(days(edge)) if moments else edge for edge in edges], dtype=np.float64)
    if len(places) < 2 or not (np.isfinite(places).all() and (np.diff(places) > 0).all()):
        raise InvalidDeclaration("bins must be two or more finite edges in ascending order.")
    if not moments:
        return intervals_of(numbers(values), places, edges)
    return intervals_of(dates(values, whole=not isinstance(edges[0], datetime)), places, edges)


def _equal(bins: int, bounds: Bounds | None) -> list[float]:
    """Return the edges of so many bins of equal width."""
    if bounds is None or is_dates(bounds) or bins < 1:
        raise InvalidDeclaration(f"bins={bins!r} needs bounds=(low, high), two numbers. For dates give the edges.")
    low, high = map(float, bounds_of(bounds))
    return [float(edge) for edge in np.linspace(low, high, bins + 1)]

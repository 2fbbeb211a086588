"""Medians and other quantiles of arrays, their minimum and maximum."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from typing import Any, cast

import numpy as np

from discretion.arrays.bounded import Bounds, Grid, numeric
from discretion.arrays.question import ArrayChoices, By, Epsilon, Keys
from discretion.declaration.parameter import checked
from discretion.engines.values import Column
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Model, Protects
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import MechanismName, Options
from discretion.noise import Rng
from discretion.release import Release

MIDDLE = Fraction(1, 2)


@checked
def median(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
    grid: Grid = None,
    required: bool = False,
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
    with_interval: bool = False,
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return a median of values, each clamped to `bounds`; see `quantile`."""
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
        with_interval=with_interval,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    return numeric("median", "quantile", values, asking, bounds=bounds, required=required, grid=grid, ranks=(MIDDLE,))


@checked
def quantile(
    values: Column,
    q: float | Sequence[float],
    *,
    epsilon: Epsilon,
    bounds: Bounds,
    grid: Grid = None,
    required: bool = False,
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
    with_interval: bool = False,
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the value of rank ⌈q·n⌉ among the n rows that have one, each clamped to `bounds`.

    The answer to a list of q has one row for each, in the order given. They are one release where that is clearly
    better. Where they are not, answers for close q may come out in the wrong order.

    Where q·n is whole, as for the median of an even number, any value from there to the next higher one may be
    returned, as in SQL. Candidates are the points of a grid, 1,000 steps from bound to bound or `grid` apart; for
    whole numbers and dates in a span of 1,000 or less, every value. The error is in ranks: a share of the rows.
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
        with_interval=with_interval,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    how: dict[str, Any] = {"bounds": bounds, "required": required, "grid": grid}
    is_list = isinstance(q, Iterable) and not isinstance(q, str)
    given: list[Any] = [*cast(Iterable[float], q)] if is_list else [q]
    if not given or len(set(map(str, given))) != len(given) or not all(map(_is_number, given)):
        raise InvalidDeclaration(f"q must be a number, or a list of different numbers, got {q!r}.")
    ranks = tuple(map(_rank, given))
    if not is_list:
        return numeric("quantile", "quantile", values, asking, ranks=ranks, **how)
    if model == "individual":
        raise InvalidDeclaration("Model `individual` answers one q at a time. Ask for each by itself.")
    release = numeric("quantile", "quantile", values, asking, ranks=ranks, **how)
    if "q" in release.columns:
        raise InvalidDeclaration("A column of by= cannot be called 'q': the list of q is. Give it another name.")
    listed = tuple(float(each) for each in given for _ in range(len(release) // len(given)))
    return replace(release, columns={"q": listed, **release.columns})


@checked
def minimum(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
    grid: Grid = None,
    required: bool = False,
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
    with_interval: bool = False,
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the smallest value, each clamped to `bounds`; it aims a little inside, where people are."""
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
        with_interval=with_interval,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    return numeric("min", "quantile", values, asking, bounds=bounds, required=required, grid=grid, ranks=(Fraction(0),))


@checked
def maximum(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
    grid: Grid = None,
    required: bool = False,
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
    with_interval: bool = False,
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the largest value, each clamped to `bounds`; it aims a little inside, where people are."""
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
        with_interval=with_interval,
        rng=rng,
        model=model,
        acknowledged=acknowledged,
    )
    return numeric("max", "quantile", values, asking, bounds=bounds, required=required, grid=grid, ranks=(Fraction(1),))


def _is_number(q: object) -> bool:
    return isinstance(q, Real) and not isinstance(q, bool | np.bool_)


def _rank(q: Any) -> Fraction:
    if not 0 <= q <= 1:
        raise InvalidDeclaration(f"q must be from 0 (the minimum) to 1 (the maximum), got {q!r}.")
    rank = Fraction(q).limit_denominator(10_000)
    if (rank in (0, 1)) != (q in (0, 1)):
        raise InvalidDeclaration(f"q must be 0, 1 or at least 0.0001 away from them, got {q!r}.")
    return rank

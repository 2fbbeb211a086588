"""Sums, means, variances and standard deviations of arrays."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, sqrt

from discretion.arrays.bounded import Bounds, numeric
from discretion.arrays.question import ArrayChoices, By, Epsilon, Keys
from discretion.declaration.parameter import checked
from discretion.engines.values import Column
from discretion.guarantee import Model, Protects
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import MechanismName, Options
from discretion.noise import Rng
from discretion.release import Error, Release

TAILS = (0.25, 0.1, 0.05, 0.025, 0.005, 0.0005, 5e-10)  # at which the interval of a standard deviation is worked out


@checked
def sum(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
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
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the sum of values, each clamped to `bounds`; a missing value adds 0."""
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
    return numeric("sum", "sum", values, asking, bounds=bounds, required=required)


@checked
def mean(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
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
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the mean of values, each clamped to `bounds`, over the rows that have one; a date if they are dates."""
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
    return numeric("mean", "mean", values, asking, bounds=bounds, required=required)


@checked
def variance(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
    population: bool = False,
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
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the sample variance of values, each clamped to `bounds`.

    It divides by n − 1, like VARIANCE in SQL; with `population` by n, like VAR_POP.
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
    return numeric("variance", "variance", values, asking, bounds=bounds, required=required, sample=not population)


@checked
def std(
    values: Column,
    *,
    epsilon: Epsilon,
    bounds: Bounds,
    population: bool = False,
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
    rng: Rng = None,
    model: Model = "personalized",
    acknowledged: bool = False,
) -> Release:
    """Return the standard deviation of values, each clamped to `bounds`: the square root of `variance`."""
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
    found = numeric("std", "variance", values, asking, bounds=bounds, required=required, sample=not population)
    roots = tuple(sqrt(max(value, 0.0)) for value in found.columns["std"])
    errors = tuple(map(_root_error, found.columns["std"], found.errors["std"]))
    return replace(found, columns={**found.columns, "std": roots}, errors={"std": errors})


def _root_error(value: float, error: Error) -> Error:
    """Return the error of a square root: the roots of both ends of the interval, at every confidence."""
    root = sqrt(max(value, 0.0))
    # |√a − √b| is at most |a − b| / √a, and at most √|a − b|.
    most = min(error.total / root if root else inf, sqrt(error.total))
    shrunk = most / error.total if 0 < error.total < inf else 1.0
    ends = [error.interval(value, 1 - 2 * tail) for tail in TAILS]
    return replace(
        error,
        bias=error.bias * shrunk,
        noise=error.noise * shrunk,
        limits=None if error.limits is None else _roots(error.limits),
        quantiles=tuple(
            (tail, low - root, high - root) for tail, (low, high) in zip(TAILS, map(_roots, ends), strict=True)
        ),
        expected=None if error.expected is None else error.expected * shrunk,
    )


def _roots(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    return sqrt(max(low, 0.0)), sqrt(max(high, 0.0))

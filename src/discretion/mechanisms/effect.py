"""Effect: a statistic of the data there is, and how far each person or group could move it. All of it is private."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.mechanisms.sensitivity import Ordered, appeared, changed, midpoint_changed
from discretion.noise import Floats
from discretion.preference import Integers

Statistic = Literal[
    "median", "midpoint", "quantile", "min", "max", "second_max", "rank", "sum", "mean", "count", "histogram"
]
Places = Callable[[int], tuple[int, ...]]  # how many values there are -> the places that are averaged
Bounds = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Effect:
    """The truth, and the L1 distances it can be moved."""

    truth: Floats  # one number, or one a category
    by_person: Floats  # by each person there is, in the order of the data
    newcomer: float  # by somebody who appears, where presence is protected; else 0
    by_group: Callable[[int], float]  # by i people: Δ_i

    def __repr__(self) -> str:
        return "Effect(private)"


def effect_of(
    statistic: Statistic,
    data: Floats,
    bounds: Bounds,
    protects: Protects,
    *,
    q: float | None = None,
    inside: Bounds | None = None,
) -> Effect:
    """The effect on one of the statistics; `data` is within `bounds`, one value a person."""
    if statistic not in get_args(Statistic):
        raise InvalidDeclaration(f"statistic must be one of {', '.join(get_args(Statistic))}, got {statistic!r}.")
    if statistic == "sum":
        return _sum(data, bounds, protects)
    if statistic == "mean":
        return _mean(data, bounds, protects)
    if statistic == "count":
        return _count(data, bounds, protects, bounds if inside is None else inside)
    if statistic == "histogram":
        return _histogram(data, bounds, protects)
    return order_effect(data, bounds, protects, *_places(statistic, q))


def with_departures(effect: Effect, data: Floats, of: Callable[[Floats], Effect]) -> Effect:
    """Return the effect with what each of very few people changes by going, tried one by one.

    Whoever goes may leave too few values to have an answer; the answer is then a bound or the middle.
    """
    gone = [np.abs(of(np.delete(data, one)).truth - effect.truth).sum() for one in range(len(data))]
    return replace(effect, by_person=np.array(gone, dtype=np.float64))


def _places(statistic: str, q: float | None) -> tuple[Places, int]:
    """Return which places are averaged, and how many values that needs at least."""
    if statistic in ("quantile", "rank") and q is None:
        raise InvalidDeclaration(f"A {statistic} needs q: a quantile's share, or a place counted from 1.")
    asked = Fraction(q or 0).limit_denominator(10_000)
    named: dict[str, tuple[Places, int]] = {
        "median": (lambda n: ((n + 1) // 2,), 1),
        "midpoint": (lambda n: ((n + 1) // 2, n // 2 + 1), 1),
        "min": (lambda n: (1,), 1),
        "max": (lambda n: (n,), 1),
        "second_max": (lambda n: (n - 1,), 2),
        "quantile": (lambda n: (min(n, max(1, ceil(asked * n))),), 1),
        "rank": (lambda n: (int(asked),), int(asked)),
    }
    return named[statistic]


def order_effect(data: Floats, bounds: Bounds, protects: Protects, places: Places, least: int) -> Effect:
    """A mean of order statistics. It ascends in every value, so the extremes of a change are at the bounds.

    With Y the data after the person at place p went (or rose to the upper bound), Y(j) = X(j) for j < p and X(j+1)
    from there on; after they fell to the lower bound, Y(j) = X(j−1) for j ≤ p and X(j) from there on.
    """
    ordered, n = Ordered.of(data, bounds), len(data)
    p: Integers = np.argsort(np.argsort(data, kind="stable"), kind="stable") + 1  # everybody's place

    def mean(shifted: list[Integers]) -> Floats:
        return np.asarray(np.mean([ordered.at(place) for place in shifted], axis=0))

    truth = float(mean([np.array(j) for j in places(n)]))
    if protects == "value":
        risen, fallen = mean([j + (p <= j) for j in places(n)]), mean([j - (p >= j) for j in places(n)])
        by_person, newcomer = np.maximum(risen - truth, truth - fallen), 0.0
    else:
        gone = mean([j + (p <= j) for j in places(n - 1)]) if n > least else np.full(n, truth)
        by_person = np.abs(gone - truth)
        after = [mean([np.array(j + shift) for j in places(n + 1)]) for shift in (-1, 0)]
        newcomer = max(abs(float(found) - truth) for found in after)
    return Effect(
        truth=np.atleast_1d(truth),
        by_person=by_person,
        newcomer=newcomer,
        by_group=lambda i: _order_by_group(ordered, places, least, protects, i),
    )


def _order_by_group(ordered: Ordered, places: Places, least: int, protects: Protects, people: int) -> float:
    n = len(ordered)
    if protects == "value" and len(set(places(n))) == 1:
        return changed(ordered, places(n)[0], people)
    if protects == "value":
        return midpoint_changed(ordered, people)
    if len(places(n)) == 1:
        return appeared(ordered, lambda size: places(size)[0], people, least)
    return _unknown("a midpoint median")


def _sum(data: Floats, bounds: Bounds, protects: Protects) -> Effect:
    low, high = bounds
    if protects == "value":
        by_person, newcomer = np.maximum(high - data, data - low), 0.0
        most = np.maximum(np.cumsum(np.sort(high - data)[::-1]), np.cumsum(np.sort(data - low)[::-1]))
    else:
        by_person, newcomer = np.abs(data), max(abs(low), abs(high))
        most = np.zeros(0)
    return Effect(
        truth=np.array([data.sum()]),
        by_person=by_person,
        newcomer=newcomer,
        by_group=lambda i: (
            float(np.append(0.0, most)[min(i, len(data))]) if protects == "value" else i * max(abs(low), abs(high))
        ),
    )


def _mean(data: Floats, bounds: Bounds, protects: Protects) -> Effect:
    low, high = bounds
    n, total = max(len(data), 1), _sum(data, bounds, protects)
    mean = float(data.mean()) if len(data) else (low + high) / 2
    if protects == "value":
        by_person, newcomer = total.by_person / n, 0.0
    else:
        by_person = np.abs(data - mean) / max(n - 1, 1) * (n > 1)
        newcomer = max(high - mean, mean - low) / (len(data) + 1)
    return Effect(
        truth=np.array([mean]),
        by_person=by_person,
        newcomer=newcomer,
        by_group=lambda i: total.by_group(i) / n if protects == "value" else _unknown("a mean"),
    )


def _count(data: Floats, bounds: Bounds, protects: Protects, inside: Bounds) -> Effect:
    """Return how many values lie in a range; a range that nobody can enter, or nobody can leave, says nothing."""
    low, high = inside
    counted: NDArray[np.bool_] = (data >= low) & (data <= high)
    can_enter = low <= high and low <= bounds[1] and high >= bounds[0]
    can_leave = protects == "presence" or low > bounds[0] or high < bounds[1]
    one = float(can_enter and can_leave)
    n, found = len(data), int(counted.sum())
    return Effect(
        truth=np.array([float(found)]),
        by_person=one * (counted if protects == "presence" else np.ones(n)).astype(np.float64),
        newcomer=float(can_enter) if protects == "presence" else 0.0,
        by_group=lambda i: one * (i if protects == "presence" else max(min(i, found), min(i, n - found))),
    )


def _histogram(data: Floats, bounds: Bounds, protects: Protects) -> Effect:
    """Count the values at each whole number from bound to bound; a change is one less here, one more there."""
    bins = np.arange(round(bounds[0]), round(bounds[1]) + 1)
    n, one = len(data), 1.0 if protects == "presence" else 2.0
    return Effect(
        truth=np.array([np.count_nonzero(np.rint(data) == place) for place in bins], dtype=np.float64),
        by_person=np.full(n, one),
        newcomer=1.0 if protects == "presence" else 0.0,
        by_group=lambda i: one * (i if protects == "presence" else min(i, n)),
    )


def _unknown(what: str) -> float:
    raise InvalidDeclaration(f"What groups can do to {what} is known where values are protected, not presence.")

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.mechanisms.linear import refuse_scale
from discretion.statistics import Aggregate, Statistics, gridded, weigh


def everything_one_person_can_add(aggregate: Aggregate) -> list[tuple[int, ...]]:
    """All vectors of group totals one person's rows can make, spelled out from the definition."""
    row = [(g, v) for g in range(aggregate.groups) for v in range(aggregate.lower, aggregate.upper + 1)]
    if aggregate.kind == "count" and not aggregate.complete:  # every row counts
        row = [(g, 1) for g in range(aggregate.groups)]
    sizes = [1] if aggregate.complete else range(aggregate.rows_per_person + 1)
    totals = set()
    for rows in (rows for size in sizes for rows in product(row, repeat=size)):
        total = [0] * aggregate.groups
        for group, value in rows:
            total[group] = 1 if aggregate.kind == "people" else total[group] + value
        totals.add(tuple(total))
    return sorted(totals)


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    ("kind", "lower", "upper"),
    [("count", 0, 1), ("people", 0, 1), ("sum", 0, 3), ("sum", -2, 3), ("sum", 2, 3), ("sum", -3, -1)],
)
@pytest.mark.parametrize(("protects", "complete"), [("presence", False), ("value", False), ("value", True)])
def test_sensitivity_is_the_exhaustive_worst_case(kind, lower, upper, groups, rows, protects, complete):
    if complete and (rows > 1 or kind == "people"):
        return
    aggregate = Aggregate(
        kind=kind, lower=lower, upper=upper, groups=groups, rows_per_person=rows, protects=protects, complete=complete
    )
    possible = everything_one_person_can_add(aggregate)
    others = [(0,) * groups] if protects == "presence" else possible
    worst = max(sum(abs(x - y) for x, y in zip(a, b, strict=True)) for a in possible for b in others)
    assert worst == aggregate.sensitivity
    low, high = aggregate.person_range
    assert low <= min(min(a) for a in possible)
    assert high >= max(max(a) for a in possible)


def test_the_grid_has_an_origin_and_a_step():
    ages = Aggregate(kind="quantile", protects="value", upper=10, origin=Fraction(18), step=Fraction(1, 2), rank=1)
    assert Fraction(41, 2) == ages.value(5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "product"},
        {"lower": 2},
        {"groups": 0},
        {"rows_per_person": 0},
        {"step": Fraction(0)},
        {"rank": Fraction(1, 2)},
        {"kind": "quantile"},
        {"kind": "quantile", "rank": Fraction(3, 2)},
        {"complete": True, "protects": "presence"},
        {"complete": True, "rows_per_person": 2},
    ],
)
def test_a_malformed_aggregate_is_refused(wrong):
    with pytest.raises(InvalidDeclaration):
        Aggregate(**({"kind": "count", "protects": "value"} | wrong))


def test_statistics_never_show_a_number():
    assert "99" not in repr(Statistics(counts=np.full((1, 2), 99), totals=np.full((1, 2), 99)))


def test_weighing_is_exact_beyond_64_bits():
    assert 3 * 2**80 == weigh(np.array([[2**62, 2**62]]), np.array([2**18, 2**19]))[0]


@pytest.mark.parametrize("bounds", [(0, 1), (-7, 7), ("17.5", 95), (0, "1e6"), (10**9, 10**9 + 1)])
@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_the_grid_leaves_room_for_the_noise_of_any_preferences(kind, protects, groups, rows, bounds):
    """At a millionth of ε, what preferences without a common divisor come down to; the grid is still fine enough."""
    low, high = map(Fraction, bounds)
    shape = gridded(kind, low, high, whole=False, protects=protects, groups=groups, rows_per_person=rows)
    refuse_scale(shape, 1)
    if rows == 1 and (low, kind) != (10**9, "sum"):
        assert shape.step <= (high - low) / 1_000


def test_half_a_step_is_rounded_away_from_0():
    shape = Aggregate(kind="sum", protects="value", lower=-3, upper=4)
    halves = [Fraction(n, 2) for n in range(-9, 10)]
    assert [-3, -3, -3, -3, -3, -2, -2, -1, -1, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4] == [shape.nearest(one) for one in halves]


def test_the_steps_of_whole_numbers_fall_on_them():
    for kind, rank in (("sum", None), ("mean", None), ("quantile", Fraction(1, 2))):
        shape = gridded(kind, Fraction(-1, 2), Fraction(181, 2), protects="value", whole=True, rank=rank)
        fits = kind != "quantile"  # candidates begin at the bound, so they are not all whole
        assert fits == all(n == shape.value(shape.nearest(n)) for n in range(91))


def test_every_pair_of_bounds_has_a_grid():
    for exponent in range(-30, 31):
        for high in (1, 2, 5, 7.0710678, 141.4213562373095, 2**32, 9.999999999999999):
            bound = Fraction(high) * Fraction(10) ** exponent
            for kind in ("sum", "mean", "variance"):
                made = gridded(kind, -bound, bound, whole=False, protects="presence", rows_per_person=7)
                assert made.lower < 0 < made.upper, (kind, high, exponent)

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.statistics import Aggregate, Statistics, weigh


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

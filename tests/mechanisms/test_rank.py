"""Quantiles and modes by price: the costs are true distances, and nobody loses more than the charge."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from contracts import (
    Universe,
    charges_of,
    check_nobody_loses_more_than_the_charge,
    law_of,
    losses_of,
    statistics_of,
    violations,
)
from discretion import noise
from discretion.errors import EngineFailed, Unsuitable
from discretion.mechanisms import BY_NAME, MECHANISMS, Belief
from discretion.mechanisms.rank import mode_costs, quantile_costs
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics
from drawing import check_release_draws_the_law

NOTHING = Belief()
propose_exponential, propose_minimum, propose_threshold, propose_sample = (
    MECHANISMS[name] for name in ("exponential", "minimum", "threshold", "sample")
)


def counted(values, prices, low, high):
    """(cohort, grid value) -> people, absent people by cohort, and the cohorts' prices in micro-ε."""
    micro = [int(Fraction(price) * MICRO) for price in prices]
    levels = sorted(set(micro))
    histogram, absent = np.zeros((len(levels), high - low + 1), dtype=np.int64), np.zeros(len(levels), dtype=np.int64)
    for value, price in zip(values, micro, strict=True):
        if value is None:
            absent[levels.index(price)] += 1
        else:
            histogram[levels.index(price), min(max(value, low), high) - low] += 1
    return histogram, absent, np.array(levels)


def quantile(values, rank):
    present = sorted(v for v in values if v is not None)
    return present[max(1, -((-rank * len(present)) // 1)) - 1] if present else None


def distance(values, prices, states, is_answer):
    """The least price of people whose change makes `is_answer` true, by trying every dataset."""
    changed = (
        sum(price for price, old, new in zip(prices, values, other, strict=True) if old != new)
        for other in product(states, repeat=len(values))
        if is_answer(other)
    )
    return min(changed)


def is_mode(values, category):
    counts = [sum(v == c for v in values) for c in range(3)]
    return counts[category] == max(counts)


def quantile_of(rank, **shape):
    return Aggregate(**{"kind": "quantile", "protects": "value", "upper": 2, "rank": Fraction(rank)} | shape)


def test_the_golden_costs_and_probabilities_hold(golden):
    for case in golden("pdp")["pe"]:
        if case["kind"] == "count":
            continue
        people = len(case["D"])
        rank = Fraction(case["rank"] + 1, people) if case["rank"] or people == 1 else Fraction(0)
        costs = quantile_costs(*counted(case["D"], case["phi"], case["lo"], case["hi"]), rank)
        assert [int(Fraction(cost) * MICRO) for cost in case["cost"]] == costs.tolist(), case["name"]
        expected = [float(p) for p in case["prob"]]
        assert np.allclose(expected, noise.choice_probabilities(-costs, 2 * MICRO), rtol=1e-12, atol=0)


def test_the_golden_costs_with_absence_as_a_state_hold(golden):
    for case in golden("pdp")["pe_addremove"]:
        histogram, absent, prices = counted(case["D"], case["phi"], case["lo"], case["hi"])
        upper_median = quantile_costs(histogram[:, ::-1], absent, prices, Fraction(1, 2))[::-1]
        assert [int(Fraction(cost) * MICRO) for cost in case["cost"]] == upper_median.tolist()


def test_values_outside_the_bounds_count_as_the_bound():
    inside = counted([1, 5, 9], ["0.1", "0.2", "0.3"], 1, 9)
    outside = counted([-50, 5, 70], ["0.1", "0.2", "0.3"], 1, 9)
    assert all(np.array_equal(a, b) for a, b in zip(inside, outside, strict=True))


@pytest.mark.parametrize("rank", ["0", "1/2", "1"])
@pytest.mark.parametrize("absence", [False, True])
def test_medians_minima_and_maxima_cost_the_true_distance(rank, absence):
    prices, rank = (100_000, 200_000, 500_000, 1_000_000), Fraction(rank)
    states = (None, 0, 1, 2) if absence else (0, 1, 2)
    for values in product(states, repeat=4):
        costs = quantile_costs(*counted(values, [Fraction(p, MICRO) for p in prices], 0, 2), rank)
        expected = [distance(values, prices, states, lambda other, r=r: quantile(other, rank) == r) for r in range(3)]
        assert expected == costs.tolist(), values


@pytest.mark.parametrize("rank", ["0", "1/2", "2/3", "1"])
def test_people_who_chose_zero_move_for_free(rank):
    prices, states, rank = (0, 0, 200_000, 1_000_000), (0, 1, 2), Fraction(rank)
    for values in product(states, repeat=4):
        costs = quantile_costs(*counted(values, [Fraction(p, MICRO) for p in prices], 0, 2), rank)
        expected = [distance(values, prices, states, lambda other, r=r: quantile(other, rank) == r) for r in range(3)]
        assert expected == costs.tolist(), values


@pytest.mark.parametrize("rank", ["1/4", "2/3", "9/10"])
def test_any_quantile_of_a_table_of_public_size_costs_the_true_distance(rank):
    prices, states, rank = (100_000, 200_000, 200_000, 1_000_000), (0, 1, 2), Fraction(rank)
    for values in product(states, repeat=4):
        costs = quantile_costs(*counted(values, [Fraction(p, MICRO) for p in prices], 0, 2), rank)
        expected = [distance(values, prices, states, lambda other, r=r: quantile(other, rank) == r) for r in range(3)]
        assert expected == costs.tolist(), values


@pytest.mark.parametrize("rank", ["1/4", "2/3", "9/10"])
def test_any_quantile_costs_at_most_the_distance_and_less_than_one_person_below_it(rank):
    prices, states, rank = (100_000, 200_000, 500_000, 1_000_000), (None, 0, 1, 2), Fraction(rank)
    for values in product(states, repeat=4):
        costs = quantile_costs(*counted(values, [Fraction(p, MICRO) for p in prices], 0, 2), rank)
        for r, cost in enumerate(costs.tolist()):
            true = distance(values, prices, states, lambda other, r=r: quantile(other, rank) == r)
            assert true - max(prices) < cost <= true


@pytest.mark.parametrize("absence", [False, True])
def test_the_mode_costs_the_true_distance(absence):
    prices = (100_000, 100_000, 300_000, 500_000, 1_000_000)
    states = (None, 0, 1, 2) if absence else (0, 1, 2)
    rng = noise.simulation(4)
    for _ in range(60):
        values = tuple(states[i] for i in rng.integers(0, len(states), 5))
        costs = mode_costs(*counted(values, [Fraction(p, MICRO) for p in prices], 0, 2))
        expected = [distance(values, prices, states, lambda other, r=r: is_mode(other, r)) for r in range(3)]
        assert expected == costs.tolist(), values


def test_large_counts_by_level_agree_with_sorting_people():
    rng = noise.simulation(8)
    values, cohort = rng.integers(0, 50, 2_000), rng.integers(0, 7, 2_000)
    prices = np.sort(rng.choice(np.arange(1, 100), 7, replace=False)) * 10_000
    histogram = np.zeros((7, 50), dtype=np.int64)
    np.add.at(histogram, (cohort, values), 1)
    costs = quantile_costs(histogram, np.zeros(7, dtype=np.int64), prices, Fraction(3, 10))
    rank = 600 - 1
    for r in range(50):
        below, above = np.sort(prices[cohort[values < r]]), np.sort(prices[cohort[values > r]])
        expected = below[: max(0, below.size - rank)].sum() + above[: max(0, above.size - (2_000 - 1 - rank))].sum()
        assert expected == costs[r]


@pytest.mark.parametrize("rank", ["0", "1/10", "1/3", "1/2", "7/9", "99/100", "1"])
def test_no_cost_moves_by_more_than_the_price_of_the_slot_that_changes(rank):
    """What the guarantee rests on, on larger data than can be enumerated: any rank, absence included."""
    rng, prices = noise.simulation(21), np.array([7, 50_001, 333_333, 1_000_000])
    for _ in range(300):
        histogram, absent = rng.integers(0, 6, (4, 7)), rng.integers(0, 5, 4)
        other, gone, level = histogram.copy(), absent.copy(), int(rng.integers(4))
        states = [place for place in range(7) if histogram[level, place]] + [7] * bool(absent[level])
        if not states:
            continue
        for place, change in ((int(rng.choice(states)), -1), (int(rng.integers(8)), 1)):
            (gone if place == 7 else other[level])[level if place == 7 else place] += change
        for costs in (lambda h, a: quantile_costs(h, a, prices, Fraction(rank)), lambda h, a: mode_costs(h, a, prices)):
            assert np.max(np.abs(costs(histogram, absent) - costs(other, gone))) <= prices[level]


PERSON = (0, 1, 2)
ONE_ROW = tuple(((0, value),) for value in PERSON)
SHAPES = {
    "value, everybody has one": (quantile_of("1/2", complete=True), ONE_ROW, (0.1, 0.3, 1.0)),
    "value, some have none": (quantile_of("1/2"), ((), *ONE_ROW), (0.1, 0.3, 1.0)),
    "presence": (quantile_of("1/2", protects="presence"), ((), *ONE_ROW), (0.1, 0.3, 1.0)),
    "minimum, presence": (quantile_of("0", protects="presence"), ((), *ONE_ROW), (0.1, 0.3, 1.0)),
    "maximum": (quantile_of("1", complete=True), ONE_ROW, (0.1, 0.3, 1.0)),
    "quartile": (quantile_of("1/4"), ((), *ONE_ROW), (0.1, 0.3, 1.0)),
    "90%, presence": (quantile_of("9/10", protects="presence"), ((), *ONE_ROW), (0.1, 0.3, 1.0)),
    "somebody never wants their data used": (quantile_of("1/2", complete=True), ONE_ROW, (0.0, 0.3, 1.0)),
    "two groups, value": (
        quantile_of("1/2", upper=1, groups=2),
        ((), *(((g, v),) for g in (0, 1) for v in (0, 1))),
        (0.1, 0.5, 1.0),
    ),
    "two groups, presence": (
        quantile_of("1/3", upper=1, groups=2, protects="presence"),
        ((), *(((g, v),) for g in (0, 1) for v in (0, 1))),
        (0.1, 0.5, 1.0),
    ),
    "two rows a person": (
        quantile_of("1/2", upper=1, rows_per_person=2),
        ((), ((0, 0),), ((0, 1),), ((0, 0), (0, 0)), ((0, 0), (0, 1)), ((0, 1), (0, 1))),
        (0.1, 0.5, 1.0),
    ),
    "two rows a person, presence": (
        quantile_of("2/3", upper=1, rows_per_person=2, protects="presence"),
        ((), ((0, 0),), ((0, 1),), ((0, 0), (0, 0)), ((0, 0), (0, 1)), ((0, 1), (0, 1))),
        (0.1, 0.5, 1.0),
    ),
    "mode": (Aggregate(kind="mode", protects="value", upper=2, complete=True), ONE_ROW, (0.1, 0.3, 1.0)),
    "mode, presence": (Aggregate(kind="mode", protects="presence", upper=2), ((), *ONE_ROW), (0.1, 0.3, 1.0)),
    "mode, two groups": (
        Aggregate(kind="mode", protects="value", upper=1, groups=2),
        ((), *(((g, v),) for g in (0, 1) for v in (0, 1))),
        (0.1, 0.5, 1.0),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nobody_loses_more_than_the_charge(shape):
    aggregate, states, epsilons = SHAPES[shape]
    universe, names = Universe(epsilons, states), set()
    for name in MECHANISMS.keys() - BY_NAME:
        with suppress(Unsuitable):
            mechanism = MECHANISMS[name](aggregate, universe.specification, NOTHING)
            check_nobody_loses_more_than_the_charge(mechanism, universe)
            check_release_draws_the_law(mechanism, universe)
            names.add(name)
    assert {"exponential", "minimum", "threshold", "sample", "weighted_rank", "partition"} <= names


@pytest.mark.parametrize("rule", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("shape", ["value, some have none", "mode", "presence"])
def test_both_rules_of_choice_keep_the_charge(shape, rule):
    aggregate, states, epsilons = SHAPES[shape]
    universe = Universe(epsilons, states)
    losses = check_nobody_loses_more_than_the_charge(
        propose_exponential(aggregate, universe.specification, NOTHING, rule=rule), universe
    )
    assert all(loss > 0 for loss in losses)


@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.5, 1.0])
def test_every_threshold_is_private(threshold):
    for shape in ("value, some have none", "presence", "two groups, value"):
        aggregate, states, epsilons = SHAPES[shape]
        universe = Universe(epsilons, states)
        for propose in (propose_threshold, propose_sample):
            check_nobody_loses_more_than_the_charge(
                propose(aggregate, universe.specification, NOTHING, threshold=threshold), universe
            )


def test_the_upper_median_is_private_and_is_the_upper_one():
    for shape in ("value, some have none", "presence"):
        aggregate, states, epsilons = SHAPES[shape]
        universe = Universe(epsilons, states)
        mechanism = propose_exponential(aggregate, universe.specification, NOTHING, upper=True)
        check_nobody_loses_more_than_the_charge(mechanism, universe)
    statistics = statistics_of(aggregate, universe, (((0, 0),), ((0, 2),), ()), range(3))
    assert [2, 0] == [
        int(np.argmax(propose_exponential(aggregate, universe.specification, NOTHING, upper=upper).scores(statistics)))
        for upper in (True, False)
    ]


def test_the_golden_worst_losses_of_pe_are_reached(golden):
    named = {case["name"]: case for case in golden("pdp")["verification"] if case["relation"] == "sub"}
    for name, rank in [("PE median_lower", "1/2"), ("PE min", "0"), ("PE max", "1"), ("PE 1/4", "1/4")]:
        case = named[name]
        universe = Universe(tuple(case["phi"]), ONE_ROW)
        mechanism = propose_exponential(quantile_of(rank, complete=True), universe.specification, NOTHING)
        assert np.allclose(case["worst_loss"], losses_of(mechanism, universe), atol=1e-8), name


def test_a_size_taken_from_the_data_is_noticed():
    """[JYC15]'s formula with nobody absent, where people may come and go: 0.387 at ε = 0.1."""

    class SizeFromTheData:
        measure = propose_exponential(quantile_of("1/2", protects="presence"), SPECIFICATION, NOTHING).measure
        guarantee = propose_exponential(quantile_of("1/2", protects="presence"), SPECIFICATION, NOTHING).guarantee

        def probabilities(self, statistics):
            costs = quantile_costs(statistics.histogram[0], np.zeros(4, dtype=np.int64), SPECIFICATION.micro, HALF)
            return noise.choice_probabilities(-costs, 2 * MICRO)

    universe = Universe((0.1, 0.2, 0.5, 1.0), ((), *ONE_ROW))
    assert violations(losses_of(SizeFromTheData(), universe), universe.epsilons)


def test_forgetting_that_rows_can_change_group_is_noticed():
    aggregate, states, epsilons = SHAPES["two groups, value"]
    universe = Universe(epsilons, states)
    mechanism = propose_minimum(aggregate, universe.specification, NOTHING)

    class Halved(type(mechanism)):
        @property
        def scale(self):
            return super().scale // 4

    planted = Halved(**{name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__})
    assert violations(losses_of(planted, universe), charges_of(mechanism, universe))


def test_a_sample_whose_choice_knows_its_size_is_noticed():
    """The inner choice may not know how many were kept."""
    universe = Universe((0.1, 0.5, 1.0), ONE_ROW)
    mechanism = propose_sample(quantile_of("1/2", complete=True), universe.specification, NOTHING, threshold=1.0)

    class KnowsItsSize(type(mechanism)):
        def probabilities(self, statistics):
            size = int(statistics.counts.sum())
            return np.outer(np.arange(4) == size, super().probabilities(statistics)[0]).ravel()

    planted = KnowsItsSize(**{name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__})
    assert violations(losses_of(planted, universe), universe.epsilons)


def test_a_release_is_drawn_from_the_probabilities():
    universe = Universe((0.5, 1.0, 2.0), ONE_ROW)
    aggregate = replace(quantile_of("1/2", complete=True), origin=Fraction(10), step=Fraction(1, 2))
    mechanism = propose_exponential(aggregate, universe.specification, NOTHING)
    statistics = statistics_of(aggregate, universe, (((0, 0),), ((0, 2),), ((0, 2),)), range(3))
    rng = noise.simulation(1)
    drawn = [float(mechanism.release(statistics, rng)[0]) for _ in range(4_000)]
    expected = law_of(mechanism, aggregate, universe, (((0, 0),), ((0, 2),), ((0, 2),))).probabilities
    found = [drawn.count(10.0 + value / 2) / 4_000 for value in range(3)]
    assert np.allclose(expected, found, atol=0.04)  # five standard deviations
    assert mechanism.release(statistics, None)[0] in (10.0, 10.5, 11.0)


def test_what_cannot_be_answered_is_refused_with_the_reason():
    with pytest.raises(Unsuitable, match="at most 200 categories"):
        propose_exponential(Aggregate(kind="mode", protects="value", upper=500), SPECIFICATION, NOTHING)
    with pytest.raises(Unsuitable, match="leaves everybody out"):
        propose_threshold(quantile_of("1/2"), SPECIFICATION, NOTHING, threshold=2.0)
    with pytest.raises(Unsuitable, match="64 bits"):
        propose_exponential(quantile_of(Fraction(10**11, 10**12 + 1)), SPECIFICATION, NOTHING)


def test_counts_without_grid_values_are_refused():
    mechanism = propose_exponential(quantile_of("1/2"), SPECIFICATION, NOTHING)
    with pytest.raises(EngineFailed, match="by grid value"):
        mechanism.scores(Statistics(counts=np.ones((1, 4), dtype=np.int64)))


HALF = Fraction(1, 2)
SPECIFICATION = Specification.assign([0.1, 0.2, 0.5, 1.0])[0]

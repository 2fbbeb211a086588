"""Order statistics: every formula against the golden vectors and against trying everything."""

from itertools import product
from math import ceil, exp

import numpy as np
import pytest
from sensitivity_after import appeared_after, changed_after, midpoint_changed_after

from discretion import noise
from discretion.mechanisms.effect import effect_of
from discretion.mechanisms.sensitivity import (
    Ordered,
    appeared,
    changed,
    log_smooth,
    midpoint_changed,
)

RANKS = {
    "lower_median": lambda n: (n + 1) // 2,
    "max": lambda n: n,
    "min": lambda n: 1,
    "second_max": lambda n: n - 1,
    "quantile_0.25": lambda n: min(n, max(1, ceil(n / 4))),
    "quantile_0.9": lambda n: min(n, max(1, ceil(9 * n / 10))),
}


def cases(golden, relation):
    for case in golden("hdp")["idp_sensitivities"]:
        for query in case["queries"]:
            if query["relation"] == relation:
                yield Ordered.of(np.array(case["x"]), (case["lo"], case["hi"])), query


def test_the_golden_vectors_hold_where_values_change(golden):
    for data, query in cases(golden, "sub"):
        rank = RANKS[query["query"]](len(data))
        assert (query["rank"], query["value"]) == (rank, data.at(rank))
        assert query["LS"] == changed(data, rank, 1)
        assert query["group"] == [changed(data, rank, i) for i in range(len(query["group"]))]
        assert query["LS_at_distance"] == [changed_after(data, rank, k) for k in range(len(query["LS_at_distance"]))]
        for beta, smooth in query["smooth"].items():
            assert smooth == pytest.approx(exp(log_smooth(data, rank, float(beta))), abs=1e-9)


def test_the_golden_vectors_hold_where_people_come_and_go(golden):
    for data, query in cases(golden, "addrem"):
        rank, least = RANKS[query["query"]], query["nmin"]
        assert query["LS"] == appeared(data, rank, 1, least)
        assert query["group"] == [appeared(data, rank, i, least) for i in range(len(query["group"]))]
        after = [appeared_after(data, rank, k, least) for k in range(3 * len(data) + 3)]
        assert query["LS_at_distance"] == after[: len(query["LS_at_distance"])]
        for beta, smooth in query["smooth"].items():
            assert smooth == pytest.approx(max(exp(-float(beta) * k) * a for k, a in enumerate(after)), abs=1e-9)


def test_the_large_golden_smooth_sensitivities_hold(golden):
    for case in golden("hdp")["smooth_sensitivity_large_sub"]:
        data = Ordered.of(np.array(case["x"]), (case["lo"], case["hi"]))
        for beta, smooth in case["smooth"].items():
            assert smooth == pytest.approx(exp(log_smooth(data, case["r"], float(beta))), abs=1e-9)


def test_the_fast_smooth_sensitivity_is_the_maximum_over_distances():
    rng = noise.simulation(3)
    for _ in range(300):
        people, beta = int(rng.integers(1, 40)), float(rng.choice([0.01, 0.1, 0.5, 2.0]))
        data = Ordered.of(rng.integers(0, rng.integers(2, 60), people), (0, 60))
        rank = int(rng.integers(1, people + 1))
        expected = max(exp(-beta * k) * changed_after(data, rank, k) for k in range(people + 1))
        assert expected == pytest.approx(exp(log_smooth(data, rank, beta)), rel=1e-12)


def test_it_is_smooth_and_covers_the_local_sensitivity_everywhere():
    beta, rank = 0.3, 2
    known = {values: Ordered.of(np.array(values), (0, 4)) for values in product(range(5), repeat=4)}
    logs = {values: log_smooth(data, rank, beta) for values, data in known.items()}
    for values, data in known.items():
        assert changed(data, rank, 1) <= exp(logs[values]) + 1e-12
        for person, new in product(range(4), range(5)):
            neighbour = (*values[:person], new, *values[person + 1 :])
            assert abs(logs[values] - logs[neighbour]) <= beta + 1e-12
            assert abs(data.at(rank) - known[neighbour].at(rank)) <= changed(data, rank, 1)


def test_bounds_taken_from_the_data_are_not_smooth():
    """The published experiments bound the domain by the sample's extremes: a log ratio of 7.44 against 0.333."""
    values = np.linspace(0, 1, 11)
    logs = [log_smooth(Ordered.of(data, (data.min(), data.max())), 6, 1 / 3) for data in (values, _stretched(values))]
    assert abs(logs[0] - logs[1]) > 5


def _stretched(values):
    return np.where(values == 1, 1_000, values)


def test_the_midpoint_median_agrees_with_trying_everything():
    states = range(4)
    known = {values: float(np.median(values)) for values in product(states, repeat=4)}

    def within(values, distance):
        return [o for o in known if sum(a != b for a, b in zip(values, o, strict=True)) <= distance]

    reach = {
        (values, i): max(abs(known[o] - known[values]) for o in within(values, i))
        for values in list(known)[::7]
        for i in (1, 2)
    }
    for (values, changes), expected in reach.items():
        assert expected == midpoint_changed(Ordered.of(np.array(values), (0, 3)), changes)
    for values in list(known)[::37]:
        data = Ordered.of(np.array(values), (0, 3))
        expected = max(midpoint_changed(Ordered.of(np.array(o), (0, 3)), 1) for o in within(values, 1))
        assert expected == midpoint_changed_after(data, 1)


def test_data_do_not_show_themselves():
    assert "Ordered(values=3, private)" == repr(Ordered.of(np.array([1.0, 2.0, 3.0]), (0, 9)))
    assert "Effect(private)" == repr(effect_of("max", np.array([1.0, 2.0]), (0, 9), "value"))

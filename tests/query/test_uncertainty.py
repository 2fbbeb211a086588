"""Errors of released aggregates become errors of arithmetic on them."""

from dataclasses import replace
from math import hypot, isinf, sqrt

import pytest
from sqlglot import parse_one

from discretion.noise import simulation
from discretion.query.uncertainty import UNKNOWN, propagate
from discretion.release import Error

COUNT, SUM = Error(bias=1.0, noise=3.0, limits=(0, 9)), Error(bias=2.0, noise=4.0, assumption="something")
MEDIAN = Error(bias=0.01, noise=0.02, unit="rank")
VALUES = {"0": 16.0, "1": 100.0, "2": 5.0, "region": "N"}


def error_of(sql):
    return propagate(parse_one(sql, dialect="duckdb"), VALUES, [COUNT, SUM, MEDIAN])


def test_an_aggregate_keeps_its_own_error():
    assert COUNT is error_of("$0")
    assert MEDIAN is error_of("$2")


@pytest.mark.parametrize(
    ("sql", "bias", "noise"),
    [
        ("$0 + 7", 1, 3),
        ("7 - $0", 1, 3),
        ("-($0)", 1, 3),
        ("$0 * 10", 10, 30),
        ("0.5 * $0", 0.5, 1.5),
        ("$0 / 4", 0.25, 0.75),
        ("$0 + $1", 3, 5),
        ("2 * $0 - $1", 4, sqrt(36 + 16)),
        ("$0 - $0", 0, 0),
        ("SQRT($0)", 1 / 4, 3 / 4),
        ("3 * SQRT($1)", 0.6, 1.2),
        ("ROUND($0)", 1.5, 3),
        ("GREATEST($0, 0)", 1, 3),
        ("SQRT(LEAST(1000, $1))", 0.2, 0.4),
        ("ROUND($0 * 10, 1) - ROUND($0, 2)", 9 + 0.05 + 0.005, 27),
        ("-2 * ROUND($0)", 3, 6),
    ],
)
def test_linear_arithmetic_and_roots_have_a_known_error(sql, bias, noise):
    assert (pytest.approx(bias), pytest.approx(noise)) == (error_of(sql).bias, error_of(sql).noise)


@pytest.mark.parametrize(
    "sql",
    [
        "$0 * $1",
        "$1 / $0",
        "1 / $0",
        "LN($0)",
        "ROUND($0, $1)",
        "ROUND($0, NULL)",
        "ROUND($0, -400)",
        "SQRT($0) - SQRT($0)",
        "GREATEST($0, $1)",
        "$0 - GREATEST($0, 0)",
        "$0 / 0",
    ],
)
def test_other_arithmetic_says_that_its_error_is_unknown(sql):
    assert error_of(sql) == UNKNOWN
    assert isinf(error_of(sql).half_width())


LARGE = {"0": 300.0, "1": 1000.0}
PAIR = [Error(bias=1.0, noise=3.0), Error(bias=2.0, noise=4.0)]


def ratio_error(sql, together=()):
    return propagate(parse_one(sql, dialect="duckdb"), LARGE, PAIR, together)


def test_a_ratio_has_an_error_if_its_divisor_is_surely_far_from_0():
    """(a − a₀ − r(b − b₀))/b₀, with b₀ at least the lower end of its interval at 99.9%."""
    least = 1000 - PAIR[1].half_width(0.999)
    found = ratio_error("100.0 * $0 / $1")
    assert pytest.approx(100 * (1 + 0.3 * 2) / least) == found.bias
    assert pytest.approx(100 * hypot(3, 0.3 * 4) / least) == found.noise
    assert pytest.approx(found.noise / 100) == ratio_error("$0 / $1").noise
    assert pytest.approx(100 * (3 + 0.3 * 4) / least) == ratio_error("100.0 * $0 / $1", [(0, 1)]).noise
    assert pytest.approx(found.bias + 0.05) == ratio_error("ROUND(100.0 * $0 / $1, 1)").bias
    assert pytest.approx(0.0, abs=1e-12) == ratio_error("$1 / $1").noise
    for sql in ("$0 / $1 - $1", "$0 / ($1 - 990)", "$0 / ($1 - 1000)", "SQRT($1) / $1", "$0 / $1 + $0 / $1"):
        assert UNKNOWN == ratio_error(sql)


def test_intervals_of_ratios_hold():
    """2,000 ratios of a fixed seed, down to divisors whose error is barely small enough: at least 95% hold."""
    rng = simulation(7)
    for truth in (60.0, 200.0, 2000.0):
        held = known = 0
        for _ in range(2000):
            top, bottom = truth / 3 + rng.laplace(0, 4), truth + rng.laplace(0, 4)
            errors = [Error(bias=0.0, noise=4 * sqrt(2))] * 2
            found = propagate(parse_one("$0 / $1", dialect="duckdb"), {"0": top, "1": bottom}, errors)
            known += found != UNKNOWN
            held += found != UNKNOWN and abs(top / bottom - 1 / 3) <= found.half_width()
        assert known > 500
        assert held >= 0.95 * known


def test_assumptions_are_carried_along():
    assert "something" == error_of("$0 + $1").assumption


def test_a_rank_stays_the_same_under_ascending_arithmetic_only():
    assert MEDIAN == error_of("$2 * 2 + 1")
    assert UNKNOWN == error_of("-($2)")
    assert UNKNOWN == error_of("$2 - $0")
    assert UNKNOWN == error_of("ROUND($2)")


def test_the_step_of_a_grid_grows_with_the_value():
    expression = parse_one("$0 * 2 + 1", dialect="duckdb")
    assert 3040.0 == propagate(expression, VALUES, [replace(MEDIAN, step=1520.0)], []).step


def test_noises_of_what_was_released_together_add_up():
    expression = parse_one("2 * $0 - $1", dialect="duckdb")
    assert pytest.approx(6 + 4) == propagate(expression, VALUES, [COUNT, SUM, MEDIAN], [(0, 1)]).noise

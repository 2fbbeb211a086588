"""Discrete noise: intervals hold as often as they say, computed from the law of the noise, not drawn."""

from dataclasses import replace
from fractions import Fraction
from math import exp, floor

import numpy as np
import pytest

from discretion.mechanisms import MECHANISMS, Belief
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
EPSILONS = [*np.geomspace(0.01, 12, 80).tolist(), 0.5, 1.0, 2.0, 3.0]


def missed(half: float, epsilon: float, bias: float = 0.0) -> float:
    """P(|bias + N| > half) of discrete Laplace noise N of scale 1/ε."""
    q = exp(-epsilon)
    return (q ** (floor(half - bias) + 1) + q ** (floor(half + bias) + 1)) / (1 + q)


def error(epsilon: float):
    specification = Specification.of([(round(epsilon * MICRO), 1_000)])
    return MECHANISMS["minimum"](Aggregate(kind="count", protects="value"), specification, Belief()).error


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_an_interval_of_a_count_holds_as_often_as_it_says(confidence):
    halves = [(error(epsilon).half_width(confidence), epsilon) for epsilon in EPSILONS]
    assert max(missed(half, round(epsilon * MICRO) / MICRO) for half, epsilon in halves) <= 1 - confidence + 1e-12


def test_noise_taken_as_continuous_would_miss_too_often():
    halves = [(replace(error(epsilon), grain=0.0).half_width(), epsilon) for epsilon in EPSILONS]
    assert max(missed(half, epsilon) for half, epsilon in halves) > 0.09


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.5, 6.0])
def test_an_interval_is_at_most_half_a_step_wider(epsilon):
    found = error(epsilon)
    assert found.grain == 1.0
    assert 0 <= found.half_width() - replace(found, grain=0.0).half_width() < 0.6


@pytest.mark.parametrize("confidence", CONFIDENCES[2:])
@pytest.mark.parametrize("bias", [0.01, 0.3, 1.0, 2.7, 40.0])
def test_an_interval_beside_a_bias_holds_wherever_the_truth_is(bias, confidence):
    for epsilon in EPSILONS[::5]:
        half = replace(error(epsilon), bias=bias).half_width(confidence)
        worst = max(missed(half, epsilon, off) for off in np.linspace(-bias, bias, 41).tolist())
        assert worst <= 1 - confidence + 1e-12, epsilon


def test_ends_on_the_grid_are_inside_whatever_their_rounding():
    grid = Aggregate(kind="sum", protects="value", upper=10, step=Fraction(1, 10))
    found = MECHANISMS["minimum"](grid, Specification.of([(5 * MICRO, 30)]), Belief()).error
    reached = found.half_width() / found.grain
    assert floor(reached) == floor(reached + 1e-5)
    for truth in range(0, 300, 7):
        low, high = found.interval((truth + floor(reached)) / 10)
        assert low <= truth / 10 <= high


@pytest.mark.parametrize("bias", [0.0, 2.5])
@pytest.mark.parametrize("noise", [1e-300, 1e-200, 1e-9, 1e9, 1e16, 1e200])
def test_no_size_of_noise_makes_an_interval_fail(noise, bias):
    """An answer that was paid for has an interval, from the largest ε there is to the finest grain."""
    half = Error(bias=bias, noise=noise, grain=1.0).half_width()
    assert bias <= half < 4 * noise + bias + 1


@pytest.mark.parametrize("epsilon", [300, 700, 744, 745, 746, 1_000])
def test_the_largest_epsilons_have_intervals(epsilon):
    assert 0 <= error(epsilon).half_width() < 1e-6

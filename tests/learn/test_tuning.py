"""The sampling threshold from old, public data and from a part of the budget."""

import numpy as np
import pytest

from discretion import learn
from discretion.errors import InvalidDeclaration
from discretion.mechanisms import MECHANISMS, Belief
from discretion.noise import discrete_laplace, simulation
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate

EPSILON = np.repeat([0.1, 1.0], [130, 70])
ONES = np.isin(np.arange(200), [*range(13), *range(130, 137)])  # [JYC15] Example 1


def test_old_data_finds_the_threshold_of_example_1():
    """The best t is .2085. Over 400 runs at each of three thresholds the squared errors are 99.8, 152 and about 120."""
    rng = simulation(4)

    def noisy_count(rows, epsilon):
        return rows.sum() + discrete_laplace(1 / epsilon, 1, rng)[0]

    found = learn.tune_threshold(
        noisy_count,
        ONES,
        epsilon=EPSILON,
        error=lambda answer: (answer - 20) ** 2,
        thresholds=[0.1, 0.2085, 1.0],
        runs=400,
        rng=rng,
    )
    assert 0.2085 == found


def test_without_thresholds_the_levels_are_tried():
    found = learn.tune_threshold(
        lambda rows, epsilon: epsilon, ONES, epsilon=EPSILON, error=lambda output: -output, runs=1, rng=simulation(1)
    )
    assert 1.0 == found
    with pytest.raises(InvalidDeclaration, match="at least one threshold"):
        learn.tune_threshold(lambda rows, e: e, ONES, epsilon=EPSILON, error=abs, thresholds=[])


@pytest.mark.parametrize("portion", [0.05, 0.3])
def test_a_pilot_and_the_count_together_cost_nobody_more_than_their_epsilon(portion):
    rng = simulation(2)
    epsilon = rng.choice([0.0, 0.013, 0.1, 0.333333, 1.0], 500)
    release = learn.count_with_pilot(rng.random(500) < 0.2, epsilon=epsilon, portion=portion, rng=rng)
    losses = [loss.micro_epsilon for loss in release.guarantee.losses.values()]
    paid = dict(zip((0, 13_000, 100_000, 333_333, 1_000_000), losses, strict=True))
    assert all(spent <= level for level, spent in paid.items())
    assert 0 == paid[0]
    assert release.guarantee.honours(Specification.assign(epsilon)[0])
    assert "pilot" in release.explanation


def test_a_pilot_that_charged_the_whole_budget_again_would_be_noticed(monkeypatch):
    """The planted bug: Sample runs with everybody's full epsilon after the pilot has spent a part of it."""
    monkeypatch.setattr("discretion.learn.tuning._left", lambda micro, offered: micro)
    release = learn.count_with_pilot(ONES, epsilon=EPSILON, portion=0.5, rng=simulation(1))
    assert not release.guarantee.honours(Specification.assign(EPSILON)[0])


def test_a_pilot_brings_the_threshold_near_the_one_that_knows_the_truth():
    """1,000 people at two levels and a tenth of ones, 200 pilots: the tuned error is within 1.5 times the best."""
    specification = Specification(epsilons=(100_000, MICRO), people=(650, 350))
    aggregate = Aggregate(kind="count", protects="value")
    known = MECHANISMS["sample"](aggregate, specification, Belief(expect=(0.1, 0.1))).error.total
    rng, epsilon = simulation(3), np.repeat([0.1, 1.0], [650, 350])
    ones = np.arange(1000) % 10 == 0
    squares = [(learn.count_with_pilot(ones, epsilon=epsilon, rng=rng).value - 100) ** 2 for _ in range(200)]
    assert np.sqrt(np.mean(squares)) < 1.5 * known


@pytest.mark.parametrize(("options", "words"), [({"portion": 0.0}, "portion"), ({"epsilon": 1.0}, "different epsilon")])
def test_a_pilot_that_nobody_can_pay_for_is_refused(options, words):
    with pytest.raises(InvalidDeclaration, match=words):
        learn.count_with_pilot(ONES, **({"epsilon": EPSILON} | options))

"""Closed forms of the error agree with what the mechanisms really release."""

from fractions import Fraction

import numpy as np
import pytest

from discretion.engines.values import bits, numbers
from discretion.mechanisms import Belief
from discretion.mechanisms.partition import propose as partition
from discretion.mechanisms.pooled import Pooled
from discretion.noise import simulation
from discretion.papers.trial import Contender, Trial, absolute_error, drawn_errors, squared_error
from discretion.preference import Specification
from discretion.statistics import Aggregate, Statistics

DRAWS = 4_000


@pytest.fixture(scope="module")
def trial():
    rng = simulation(5)
    specification, cohort = Specification.assign(np.repeat([0.1, 0.5, 1.0], [30, 20, 10]))
    ones = rng.random(60) < 0.4
    return Trial(specification=specification, cohort=cohort, column=bits(ones), truth=float(ones.sum()))


@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "stretch", "weighted", "partition", "exponential"])
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_the_squared_error_of_a_count_is_that_of_its_releases(trial, name, protects):
    """Mean of 4,000 squared errors within 5 of its standard errors: a false alarm in 10^5 or less, seed fixed."""
    rng = simulation(6)
    contender = Contender(curve=name, mechanism=name, protects=protects)
    mechanism = contender.tuned(Aggregate(kind="count", protects=protects), trial.specification)
    squares = []
    for _ in range(DRAWS):
        statistics = trial.statistics(mechanism.measure, rng)
        squares.append((mechanism.release(statistics, rng)[0] - trial.truth) ** 2)
    expected = squared_error(mechanism, trial, rng)
    assert abs(np.mean(squares) - expected) < 5 * np.std(squares) / np.sqrt(DRAWS)
    assert abs(np.mean(squares) - 1.3 * expected) > 5 * np.std(squares) / np.sqrt(DRAWS)  # power: 30% would show


def test_the_squared_error_of_a_pooled_count_is_that_of_its_releases(trial):
    """Both are means of draws; they differ by at most 5 standard errors, seeds fixed."""
    rng = simulation(9)
    contender = Contender(curve="gradual", mechanism="auto", protects="value", assume="gradual")
    mechanism = contender.tuned(Aggregate(kind="count", protects="value"), trial.specification)
    statistics = trial.statistics(mechanism.measure, rng)
    slow = [(mechanism.release(statistics, rng)[0] - trial.truth) ** 2 for _ in range(200)]
    fast = [squared_error(mechanism, trial, rng) for _ in range(200)]
    assert isinstance(mechanism, Pooled)
    assert abs(np.mean(slow) - np.mean(fast)) < 5 * np.hypot(np.std(slow), np.std(fast)) / np.sqrt(200)


def test_the_absolute_error_of_a_median_is_that_of_its_releases(trial):
    rng = simulation(7)
    values = rng.integers(0, 50, 60)
    asked = Aggregate(kind="quantile", protects="value", upper=50, rank=Fraction(1, 2), complete=True)
    people = Trial(
        specification=trial.specification,
        cohort=trial.cohort,
        column=numbers(values),
        truth=float(np.sort(values)[29]),
    )
    mechanism = Contender(curve="PE", mechanism="exponential", protects="value").tuned(asked, people.specification)
    statistics = people.statistics(mechanism.measure, rng)
    errors = [abs(mechanism.release(statistics, rng)[0] - people.truth) for _ in range(DRAWS)]
    expected = absolute_error(mechanism, people)
    assert abs(np.mean(errors) - expected) < 5 * np.std(errors) / np.sqrt(DRAWS)


@pytest.mark.parametrize("name", ["partition", "sample", "weighted"])
def test_drawn_errors_have_the_law_of_releases(trial, name):
    """Means and standard deviations of 4,000 draws each, within 6 standard errors."""
    rng = simulation(8)
    asked = Aggregate(kind="count", protects="value")
    belief = Belief(assume="independent")
    if name == "partition":
        mechanism = partition(asked, trial.specification, belief, groups=2)
    else:
        mechanism = Contender(curve=name, mechanism=name, protects="value", assume="independent").tuned(
            asked, trial.specification
        )
    counts = np.array([[12, 9, 3], [0, 1, 2]])
    fast = drawn_errors(mechanism, counts, DRAWS, rng)  # (draw, query)
    for query, row in enumerate(counts):
        slow = []
        for _ in range(DRAWS):
            kept = row
            if mechanism.measure.inclusion is not None:
                kept = rng.binomial(row, [threshold / 2**64 for threshold in mechanism.measure.inclusion])
            slow.append(mechanism.release(Statistics(counts=kept[None, :]), rng)[0] - row.sum())
        spread = np.std(slow)
        assert abs(np.mean(slow) - fast[:, query].mean()) < 6 * spread * np.sqrt(2 / DRAWS)
        assert 0.85 < np.std(fast[:, query]) / spread < 1.15

"""PE for counts: exact costs and probabilities, by cohorts instead of people."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from contracts import Universe, statistics_of
from discretion.errors import Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
from discretion.noise import simulation
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

COUNT = Aggregate(kind="count", protects="value")
propose = MECHANISMS["exponential"]


def test_costs_and_probabilities_are_the_papers(golden):
    vectors = [vector for vector in golden("pdp")["pe"] if vector["kind"] == "count"]
    assert 3 == len(vectors)
    for vector in vectors:
        universe = Universe(tuple(map(float, vector["phi"])), ())
        dataset = tuple(((0, 1),) if bit else () for bit in vector["D"])
        mechanism = propose(COUNT, universe.specification, Belief())
        statistics = statistics_of(COUNT, universe, dataset, range(len(dataset)))
        assert [int(Fraction(cost) * MICRO) for cost in vector["cost"]] == mechanism.costs(statistics).tolist()
        assert pytest.approx(list(map(float, vector["prob"])), abs=1e-15) == mechanism.probabilities(statistics)


def test_the_predicted_error_bounds_the_error_of_every_dataset():
    rng = simulation(8)
    for _ in range(40):
        specification = Specification.of(
            (int(level), int(people))
            for level, people in zip(rng.integers(1, 2e6, 4), rng.integers(1, 9, 4), strict=True)
        )
        mechanism = propose(COUNT, specification, Belief())
        for _ in range(20):
            ones = rng.integers(0, specification.heads + 1)
            law = mechanism.probabilities(Statistics(counts=ones[None]))
            actual = sqrt(law @ (np.arange(len(law)) - ones.sum()) ** 2)
            assert actual <= mechanism.error.total + 1e-9


def test_the_bound_is_close_where_cheap_people_are_on_both_sides():
    specification = Specification(epsilons=(100_000, 1_000_000), people=(600, 400))
    mechanism = propose(COUNT, specification, Belief())
    law = mechanism.probabilities(Statistics(counts=np.array([[300, 200]])))
    assert sqrt(law @ (np.arange(1001) - 500.0) ** 2) >= 0.99 * mechanism.error.total


def test_the_answer_is_drawn_from_the_law():
    """5,000 draws: a chi-square statistic with 5 degrees of freedom below 25.7 (false alarm 1 in 10,000)."""
    specification = Specification(epsilons=(400_000, 1_000_000), people=(3, 2))
    mechanism = propose(COUNT, specification, Belief())
    statistics = Statistics(counts=np.array([[1, 2]]))
    rng = simulation(6)
    drawn = np.bincount([int(mechanism.release(statistics, rng)[0]) for _ in range(5_000)], minlength=6)
    expected = 5_000 * mechanism.probabilities(statistics)
    assert 25.7 > ((drawn - expected) ** 2 / expected).sum()


def test_the_secure_source_answers_too():
    specification = Specification(epsilons=(5_000_000,), people=(10,))
    mechanism = propose(COUNT, specification, Belief(), rule="permute_and_flip")
    answers = [mechanism.release(Statistics(counts=np.array([[4]])), None)[0] for _ in range(20)]
    assert all(0 <= answer <= 10 for answer in answers)
    assert pytest.approx(4, abs=1.5) == np.median(answers)


@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "count", "groups": 2},
        {"kind": "count", "rows_per_person": 2},
        {"kind": "sum", "upper": 2},
        {"kind": "mean"},
    ],
)
def test_only_one_number_of_people_can_be_chosen(shape):
    with pytest.raises(Unsuitable, match="ungrouped count of people"):
        propose(Aggregate(protects="value", **shape), Specification(epsilons=(MICRO,), people=(3,)), Belief())


def test_a_sum_of_bits_is_a_count():
    aggregate = Aggregate(kind="sum", protects="value")
    mechanism = propose(aggregate, Specification(epsilons=(MICRO,), people=(3,)), Belief())
    statistics = Statistics(counts=np.array([[3]]), totals=np.array([[2]], dtype=object))
    assert [2 * MICRO, MICRO, 0, MICRO] == mechanism.costs(statistics).tolist()


def test_too_many_people_are_refused():
    with pytest.raises(Unsuitable, match="takes too long"):
        propose(COUNT, Specification(epsilons=(MICRO,), people=(2_000_000,)), Belief())


def test_more_rows_than_people_are_no_error():
    """The engine bounds rows; should it ever fail to, an error would tell about them, so everybody counts."""
    mechanism = propose(COUNT, Specification.of([(MICRO, 3)]), Belief())
    everybody, more = (mechanism.costs(Statistics(counts=np.array([[count]]))).tolist() for count in (3, 5))
    assert everybody == more

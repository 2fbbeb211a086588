"""PE for one's own function: exact distances, proof obligations on small universes, and every loss enumerated."""

from itertools import product
from math import log

import numpy as np
import pytest

from contracts import Atoms, Universe, loss, statistics_of
from discretion.errors import InvalidDeclaration
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.own import Own, brute_force, check_distance
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.statistics import Aggregate

ABSENT = None
STATES = (ABSENT, 0, 1, 2)
PRICES = [100_000, 500_000, 1_000_000]


def spread(states):
    """Somebody's own function: the range of the values there are."""
    present = [state for state in states if state is not ABSENT]
    return max(present) - min(present) if present else 0


def ones(states):
    return sum(state == 1 for state in states)


def count_distance(states, prices):
    """[JYC15] IV-C: the r − x cheapest zeros, or the x − r cheapest ones."""
    held = sorted(price for state, price in zip(states, prices, strict=True) if state == 1)
    others = sorted(price for state, price in zip(states, prices, strict=True) if state != 1)
    x = len(held)
    return [sum(others[: r - x]) if r >= x else sum(held[: x - r]) for r in range(len(states) + 1)]


def worst(own, states, prices):
    """The largest |log ratio| of the laws of two neighbours, by the person in whom they differ."""
    laws = {d: Atoms(own.probabilities(d, prices)) for d in product(states, repeat=len(prices))}
    found = [0.0] * len(prices)
    for dataset, law in laws.items():
        for person in range(len(prices)):
            for state in states:
                neighbour = (*dataset[:person], state, *dataset[person + 1 :])
                found[person] = max(found[person], loss(law, laws[neighbour]))
    return found


def test_brute_force_finds_the_papers_costs_of_a_count():
    found = brute_force(ones, (0, 1), range(4))
    for dataset in product((0, 1), repeat=3):
        assert count_distance(dataset, PRICES) == found(dataset, PRICES)


def test_a_count_by_brute_force_has_the_law_of_the_built_in_one():
    universe = Universe((0.1, 0.5, 1.0), ())
    own = Own(candidates=tuple(range(4)), distance=brute_force(ones, (0, 1), range(4)))
    aggregate = Aggregate(kind="count", protects="value")
    built_in = MECHANISMS["exponential"](aggregate, universe.specification, Belief())
    for dataset in product((0, 1), repeat=3):
        rows = tuple(((0, 1),) if bit else () for bit in dataset)
        statistics = statistics_of(aggregate, universe, rows, range(3))
        assert pytest.approx(built_in.probabilities(statistics)) == own.probabilities(dataset, PRICES)


def test_nobody_loses_more_than_their_epsilon_in_their_own_function():
    """All 4^3 datasets, absence among the states, so for people who come and go as well."""
    own = Own(candidates=(0, 1, 2), distance=brute_force(spread, STATES, (0, 1, 2)))
    for person, found in enumerate(worst(own, STATES, PRICES)):
        assert 0 < found <= PRICES[person] / MICRO + 1e-9
    check_distance(own.distance, own.candidates, STATES, spread)


def test_somebody_who_allows_nothing_has_no_influence():
    own = Own(candidates=(0, 1, 2), distance=brute_force(spread, STATES, (0, 1, 2)))
    assert 0 == worst(own, STATES, [0, 500_000])[0]


def test_a_distance_that_counts_changes_instead_of_their_price_is_refused_and_does_lose_more():
    """The planted bug: every change costs the mean price, so strict people pay for liberal ones."""

    def careless(states, prices):
        mean = sum(prices) / len(prices)
        return [mean * abs(r - ones(states)) for r in range(len(states) + 1)]

    with pytest.raises(InvalidDeclaration, match="not private"):
        check_distance(only_up_to(careless), range(4), (0, 1))
    own = Own(candidates=tuple(range(4)), distance=careless)
    assert worst(own, (0, 1), PRICES)[0] > 0.1


def test_a_distance_from_another_answer_than_the_true_one_is_refused():
    def shifted(states, prices):
        return [10.0 + cost for cost in count_distance(states, prices)]

    with pytest.raises(InvalidDeclaration, match="costs"):
        check_distance(only_up_to(shifted), range(4), (0, 1), ones)
    check_distance(only_up_to(count_distance), range(4), (0, 1), ones)


def only_up_to(distance, most=4):
    """One cost for each of 0..3 whatever the number of people: what cannot be reached costs everybody and more."""

    def padded(states, prices):
        costs = list(distance(states, prices))
        return (costs + [10**13] * most)[:most]

    return padded


def test_candidates_that_no_dataset_has_are_never_chosen():
    own = Own(candidates=(0, 1, 2, 99), distance=brute_force(spread, STATES, (0, 1, 2, 99)))
    assert 0 == own.probabilities((0, 1, 2), PRICES)[3]
    assert own.choose((0, 1, 2), [10**9] * 3, simulation(1)) == 2


def test_what_cannot_be_enumerated_or_read_is_refused():
    with pytest.raises(InvalidDeclaration, match="every dataset"):
        brute_force(ones, STATES, range(30))([0] * 20, [1] * 20)
    with pytest.raises(InvalidDeclaration, match="one cost per candidate"):
        Own(candidates=(0, 1), distance=lambda states, prices: [0]).costs([0], [1])
    with pytest.raises(InvalidDeclaration, match="at least one candidate"):
        Own(candidates=(), distance=count_distance)
    with pytest.raises(InvalidDeclaration, match="states"):
        check_distance(count_distance, range(4), (0,))
    with pytest.raises(InvalidDeclaration, match="0 or more"):
        check_distance(lambda states, prices: [-1.0], (0,), (0, 1))


def test_the_law_is_the_papers():
    """P(r) ∝ exp(−c(r)/2): by hand, one person with ε = 1 who holds a one; the other count costs 1."""
    own = Own(candidates=(0, 1), distance=count_distance)
    low, high = own.probabilities((1,), [MICRO])
    assert pytest.approx(-0.5) == log(low / high)
    assert pytest.approx(1.0) == np.sum([low, high])

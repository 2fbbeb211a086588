"""One's own function under model individual: tried on every small universe, with its proof obligation checked."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest

import discretion as dn
from discretion import learn
from discretion.errors import InvalidDeclaration
from discretion.learn.local import _scale, check_sensitivity, reachable
from discretion.noise import simulation
from discretion.release import IndividualRelease

FENCE = {"model": "individual", "acknowledged": True}
STATES = (0, 1, 2)


def extremes(states):
    """f: D -> R^2."""
    return (min(states, default=0), max(states, default=2))


def moved(states):
    """Its local sensitivity: what one person can do to both ends."""
    ends = np.array(extremes(states))
    others = ([*states[:i], new, *states[i + 1 :]] for i in range(len(states)) for new in STATES)
    return max(float(np.abs(np.array(extremes(other)) - ends).sum()) for other in others)


def most_frequent(states):
    return max(STATES, key=lambda state: states.count(state) if isinstance(states, list) else list(states).count(state))


@pytest.mark.parametrize("sensitivity", [None, moved])
def test_nobody_loses_more_than_their_epsilon_around_the_actual_data(sensitivity):
    micro = [100_000, 500_000, 1_000_000]
    for states in product(STATES, repeat=3):
        scale = _scale(extremes, sensitivity, states, micro, STATES, Fraction(1, 10))
        for person, epsilon in enumerate(micro):
            for new in STATES:
                other = [*states[:person], new, *states[person + 1 :]]
                distance = sum(abs(a - b) for a, b in zip(extremes(other), extremes(states), strict=True))
                assert distance * 10**6 <= epsilon * scale or distance == 0


def test_a_sensitivity_that_is_too_small_is_refused():
    check_sensitivity(extremes, moved, STATES)
    with pytest.raises(InvalidDeclaration, match="too small"):
        check_sensitivity(extremes, lambda states: moved(states) / 2, STATES)
    with pytest.raises(InvalidDeclaration, match="too small"):
        learn.answer_locally(
            [0, 1], epsilon=1.0, possible=STATES, function=extremes, sensitivity=lambda states: float("nan"), **FENCE
        )
    with pytest.raises(InvalidDeclaration, match="possible states"):
        check_sensitivity(extremes, moved, range(30))


def test_a_choice_among_categories_covers_whatever_one_person_can_make_it():
    """The law of κ_D at D and at its neighbours: weights e^ε and 1 on one set, so no ratio is above e^ε."""
    for states in product(STATES, repeat=3):
        modes = reachable(most_frequent, list(states), STATES, STATES)
        assert most_frequent(states) == modes[0]
        weights = {mode: exp(0.1) if place == 0 else 1.0 for place, mode in enumerate(modes)}
        for person, new in product(range(3), STATES):
            other = most_frequent([*states[:person], new, *states[person + 1 :]])
            assert exp(0.1) >= weights[modes[0]] / weights[other]  # a KeyError would be an unbounded ratio


def test_answers_come_as_individual_releases_that_say_so():
    states = [0, 1, 2, 2, 2, 2, 2]
    release = learn.answer_locally(states, epsilon=1.0, possible=STATES, function=extremes, rng=simulation(1), **FENCE)
    assert isinstance(release, IndividualRelease)
    assert 2 == len(release)
    assert "NOT differential privacy" in repr(release)
    assert "float" == release.guarantee.arithmetic
    mode = learn.answer_locally(
        [0] * 3 + [2] * 9, epsilon=0.001, possible=STATES, function=most_frequent, candidates=STATES, **FENCE
    )
    assert 2 == mode.value  # nobody alone can change it, so it is exact
    unknown = learn.answer_locally(
        [2] * 9, epsilon=1.0, possible=STATES, function=most_frequent, candidates=(1, 0), **FENCE
    )
    assert 1 == unknown.value  # an answer that is no candidate counts as the first one
    left_out = learn.answer_locally(
        [0] * 9 + [2] * 3, epsilon=[0.0] * 9 + [1.0] * 3, possible=STATES, function=len, **FENCE
    )
    assert 3 == left_out.value  # people who chose 0 are not in the data, and nobody can change a length


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"acknowledged": False}, "NOT differential privacy"),
        ({"states": []}, "at least one person"),
        ({"protects": "presence"}, "absent"),
        ({"protects": "both"}, "must be 'value' or 'presence'"),
    ],
)
def test_bad_arguments_are_refused(bad, said):
    good = {"states": [0, 1, 2], "epsilon": 1.0, "possible": STATES, "function": extremes, **FENCE}
    with pytest.raises(InvalidDeclaration, match=said):
        learn.answer_locally(**{**good, **bad})


# The functions about arrays -----------------------------------------------------------------------------------------


def test_arrays_answer_histograms_modes_groups_and_second_maxima():
    values, epsilon = np.array([0, 1, 1, 2, 2, 2, 2, 2, 7, 9]), 1_000.0
    counted = dn.histogram(values, categories=[0, 1, 2], epsilon=epsilon, **FENCE)
    assert isinstance(counted, IndividualRelease)
    assert (1, 2, 5) == counted.value
    assert (0, 1, 2) == counted.columns["category"]
    assert 2 == dn.mode(values, categories=[0, 1, 2], epsilon=epsilon, **FENCE).value
    second = dn.max(values, bounds=(0, 9), epsilon=epsilon, options={"place": 2}, **FENCE)
    assert 7 == second.value
    kinds = np.array(["a", "b"] * 5)
    by_kind = dn.max(values, bounds=(0, 9), epsilon=epsilon, by={"kind": kinds}, keys={"kind": ["a", "b"]}, **FENCE)
    assert [("a", 7.0), ("b", 9.0)] == list(by_kind)
    with pytest.raises(InvalidDeclaration, match="NOT differential privacy"):
        dn.histogram(values, categories=[0, 1], epsilon=epsilon, model="individual")
    with pytest.raises(InvalidDeclaration, match="about rows of people"):
        dn.histogram(values, categories=[0, 1], epsilon=epsilon, person=values, rows_per_person=1, **FENCE)

"""Choosing the answer of one's own function, through the public interface."""

import pytest

from discretion import learn
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation

STATES = ["a", "b", "a", "a", "c"]


def most_frequent(states):
    present = [state for state in states if state is not None]
    return max(sorted(set(present)), key=present.count) if present else "a"


def chosen(**changes):
    options = {
        "epsilon": [500.0] * 5,
        "candidates": ["a", "b", "c"],
        "possible": ["a", "b", "c"],
        "function": most_frequent,
        "rng": simulation(1),
    }
    return learn.choose(STATES, **(options | changes))


def test_with_hardly_any_privacy_it_is_the_true_answer():
    release = chosen()
    assert "a" == release.value
    assert "exponential (own function)" == release.mechanism
    assert release.simulated


def test_everybody_pays_their_own_epsilon_and_presence_needs_a_state_for_it():
    release = chosen(epsilon=[0.1, 0.1, 0.5, 1.0, 1.0], protects="presence", possible=[None, "a", "b", "c"])
    assert [100_000, 500_000, 1_000_000] == [loss.micro_epsilon for loss in release.guarantee.losses.values()]
    assert "presence" == release.guarantee.protects
    with pytest.raises(InvalidDeclaration, match="absent"):
        chosen(protects="presence")


def test_a_distance_is_checked_before_it_is_used_and_named_in_the_guarantee():
    def tenth_cheapest(states, prices):
        return [0 if most_frequent(states) == candidate else min(prices) for candidate in ("a", "b", "c")]

    release = chosen(distance=tenth_cheapest)  # nobody's change moves a cost by more than the smallest price
    assert "rests on the distance" in release.guarantee.note

    def dearest(states, prices):
        return [0 if most_frequent(states) == candidate else max(prices) for candidate in ("a", "b", "c")]

    with pytest.raises(InvalidDeclaration, match="not private"):
        chosen(distance=dearest)


def test_what_is_missing_is_named():
    for changes, words in [
        ({"function": None}, "Give function="),
        ({"possible": ["a", "a"]}, "listed once"),
        ({"protects": "shape"}, "protects must be"),
    ]:
        with pytest.raises(InvalidDeclaration, match=words):
            chosen(**changes)


def test_an_unknown_state_is_not_an_error():
    assert (
        learn.choose(
            [*STATES, "z"], epsilon=1.0, candidates=["a"], possible=["a", "b", "c"], function=most_frequent
        ).value
        == "a"
    )

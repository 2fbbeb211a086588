from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from item_checker import worst_finite_log_ratio

from discretion.errors import InvalidDeclaration
from discretion.noise import ALWAYS, simulation
from discretion.preference import MICRO
from discretion.social.profile import Profiles
from discretion.social.response import Response, flip_threshold, report_threshold

EPSILON = 1_500_000
WEIGHTS = (0, 1, 250, 500, 999, 1000)


def reported_law(level, pivot):
    """The exact law of one reported bit under private weights: absent (None) or held with this weight."""
    absent = flip_threshold(EPSILON * pivot // 1000)
    one = Fraction(absent if level is None else report_threshold(EPSILON * level // 1000, absent), ALWAYS)
    return {1: one, 0: 1 - one}


def flipped_law(bit, level):
    """The exact law of one reported bit under a public weight."""
    flip = Fraction(flip_threshold(EPSILON * level // 1000), ALWAYS)
    return {bit: 1 - flip, 1 - bit: flip}


def test_no_item_loses_more_than_its_weight_to_randomised_response():
    for v in WEIGHTS:
        allowed = EPSILON / MICRO * v / 1000
        assert worst_finite_log_ratio(flipped_law(0, v), flipped_law(1, v)) <= allowed + 1e-12
    for pivot, v, u in product((250, 500, 1000), (None, *WEIGHTS), (None, *WEIGHTS)):
        allowed = EPSILON / MICRO * max(v or 0, u or 0) / 1000
        assert worst_finite_log_ratio(reported_law(v, pivot), reported_law(u, pivot)) <= allowed + 1e-12
    assert worst_finite_log_ratio(reported_law(1000, 500), reported_law(None, 500)) > 1.4999  # attained
    assert worst_finite_log_ratio(reported_law(500, 500), reported_law(None, 500)) > 0.7499


def test_the_checker_catches_a_flip_rate_that_is_too_small():
    flip = Fraction(flip_threshold(EPSILON), ALWAYS) * Fraction(9, 10)
    assert worst_finite_log_ratio({0: flip, 1: 1 - flip}, {0: 1 - flip, 1: flip}) > 1.6


def test_flip_thresholds_are_rounded_up():
    for micro in (1, 1000, MICRO, 20 * MICRO):
        rate = Fraction(flip_threshold(micro), ALWAYS)
        assert abs(float(rate) - 1 / (1 + exp(micro / MICRO))) < 1e-15
    assert ALWAYS // 2 == flip_threshold(0)
    assert flip_threshold(0) > flip_threshold(1)


def test_estimates_are_unbiased_under_public_weights_per_item():
    people, items = 4_000, 6
    held = np.tile([1, 0, 1, 1, 0, 0], (people, 1))
    profiles = Profiles.of(*np.nonzero(held), people=people, items=items)
    weights = np.array([[1.0, 1.0, 0.5, 0.25, 0.5, 0.0]])
    estimates = Response.publish(profiles, epsilon=2.0, public_weights=weights).estimates(simulation(2))
    e = np.exp(2.0 * weights[0, :5])
    deviation = np.sqrt(e / (e - 1) ** 2 / people)  # Var = e^ε/(e^ε − 1)²
    assert np.all(np.abs(estimates[:, :5].mean(axis=0) - held[0, :5]) < 5 * deviation)
    assert np.all(estimates[:, 5] == 0)  # weight 0 says nothing
    assert np.allclose(estimates[:, :5].var(axis=0), e / (e - 1) ** 2, rtol=0.1)


def test_similarities_are_unbiased():
    people = 20_000
    person, item = np.nonzero(np.tile([1, 1, 0, 1], (people, 1)))
    profiles = Profiles.of(person, item, people=people, items=4)
    draw = Response.publish(profiles, epsilon=2.0, public_weights=1.0).join(simulation(3))
    pairs = np.arange(people).reshape(2, -1)
    scores = draw(pairs[0], pairs[1], None)
    assert abs(3 - scores.mean()) < 5 * scores.std() / np.sqrt(scores.size)


def test_private_weights_are_reported_at_their_rate():
    people = 20_000
    pairs = np.nonzero(np.tile([1, 1, 1, 0], (people, 1)))
    profiles = Profiles.of(*pairs, np.tile([0.5, 1.0, 0.0], people), people=people, items=4)
    estimates = Response.publish(profiles, epsilon=2.0).estimates(simulation(3))
    r = 1 / (1 + exp(1.0))
    half, whole = 1 - r, 1 - (1 - r) * exp(-2.0)
    expected = [(half - r) / (whole - r), 1, 0, 0]  # unbiased for weight 1; weight 0 looks like absent
    assert np.all(np.abs(estimates.mean(axis=0) - expected) < 5 * 0.8 / np.sqrt(people))


def test_shrinking_ranks_better_and_costs_nothing():
    rng = simulation(7)
    taste = rng.integers(0, 2, 400)
    chance = np.where(taste[:, None] == np.arange(60) % 2, 0.4, 0.05)
    profiles = Profiles.of(*np.nonzero(rng.random(chance.shape) < chance), people=400, items=60).weigh(1000)
    plain = Response.publish(profiles, epsilon=1.0)
    shrunk = plain.shrunk()
    assert plain.joining == shrunk.joining
    left, right = rng.integers(0, 400, (2, 20_000))
    truth = (profiles.held[left].multiply(profiles.held[right])).sum(axis=1)
    errors = [np.mean((r.join(simulation(8))(left, right, None) - truth) ** 2) for r in (plain, shrunk)]
    assert errors[1] < 0.3 * errors[0]


def test_publishing_is_charged_once_and_pairs_are_free():
    profiles = Profiles.of([0, 1], [0, 0], [1, 1], people=2, items=1)
    response = Response.publish(profiles, epsilon=0.5)
    assert (500_000, 0) == (response.joining, response.micro_epsilon)
    assert 250_000 == response.promise(500_000).losses[500_000].micro_epsilon


def test_malformed_publications_are_refused(monkeypatch):
    profiles = Profiles.of([0, 1], [0, 0], [1, 1], people=2, items=1)
    with pytest.raises(InvalidDeclaration, match="above 0"):
        Response.publish(profiles, epsilon=0)
    monkeypatch.setattr("discretion.social.response.MOST_CELLS", 1)
    with pytest.raises(InvalidDeclaration, match="into fewer"):
        Response.publish(profiles, epsilon=1)

"""Attacks: model individual gives secrets away at a tiny ε; differential privacy stays near coin-flipping."""

import numpy as np
import pytest

from discretion import noise
from discretion.papers.attack import (
    AGAINST,
    ask_individual,
    attack_idp,
    draw,
    order_statistics,
    second_maximum,
    threshold_counts,
)

PEOPLE = 151
FOUND = {epsilon: attack_idp(people=PEOPLE, values=700, epsilon=epsilon, seed=7) for epsilon in (0.01, 1.0)}


@pytest.mark.parametrize("epsilon", FOUND)
def test_individual_privacy_gives_nearly_every_secret_away(epsilon):
    rows = [row for row in FOUND[epsilon] if not row.is_private]
    assert 5 == len(rows)
    assert [] == [row for row in rows if row.recovered < 0.95]


@pytest.mark.parametrize("epsilon", FOUND)
def test_differential_privacy_stays_near_coin_flipping(epsilon):
    """Four standard deviations of coin-flipping: a false alarm once in 16,000 rows, of which there are 12."""
    rows = [row for row in FOUND[epsilon] if row.is_private and row.attack != "order statistics"]
    assert 6 == len(rows)
    for row in rows:
        assert abs(row.recovered - 0.5) < 4 * 0.5 / PEOPLE**0.5
        assert row.ceiling > 0.5


def test_values_stay_hidden_too():
    for row in FOUND[0.01]:
        if row.is_private and row.attack == "order statistics":
            assert row.recovered < row.guessing + 0.1


def test_every_attack_costs_almost_nothing_by_its_own_account():
    assert all(0.01 == row.epsilon for row in FOUND[0.01])


@pytest.mark.parametrize("attack", [second_maximum, threshold_counts])
def test_a_million_times_less_epsilon_changes_nothing(attack):
    bits = (noise.simulation(3).random(60) < 0.5).astype(np.int64)
    assert np.array_equal(bits, attack(bits, ask_individual, 1, noise.simulation(4)))


def test_unequal_values_on_a_wide_range_are_harder():
    """Few exact answers where few people share a value: the attack reads runs, not single values."""
    values = noise.simulation(5).integers(0, 100, 30)
    read = order_statistics(values, ask_individual, 10, noise.simulation(6))
    assert np.mean(read == np.sort(values)) < 0.7


def test_the_picture_is_drawn(tmp_path):
    draw(FOUND[0.01], tmp_path / "attack.png")
    assert (tmp_path / "attack.png").stat().st_size > 10_000
    assert set(AGAINST) >= {row.against for row in FOUND[0.01] if row.attack == "second maximum"}

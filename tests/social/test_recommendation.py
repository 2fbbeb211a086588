from itertools import product

import numpy as np
import pytest
from item_checker import Law, worst_log_ratio

from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social.exchange import Exchange
from discretion.social.gossip import explore
from discretion.social.profile import Profiles
from discretion.social.recommendation import recommend, weighted_counts
from discretion.social.similarity import ScalarProduct


def circle(budget=None, epsilon=0.1):
    """Four people; 0, 1 and 2 are alike, 1 and 2 hold item 5 as well, which 0 lacks."""
    pairs = [(p, i) for p in (0, 1, 2) for i in (0, 1, 2)] + [(1, 5), (2, 5), (3, 4)]
    profiles = Profiles.of(*zip(*pairs, strict=True), np.ones(len(pairs)), people=4, items=6)
    product = ScalarProduct(profiles=profiles, micro_epsilon=int(epsilon * MICRO))
    return profiles, Exchange(product, budget=budget, rng=simulation(1))


def test_no_item_of_a_neighbour_loses_more_than_its_weight():
    levels, scale = (None, 0, 300, 1000), 1000 / 0.5
    for others in product((None, 700), repeat=2):
        counts = {}
        for level in levels:
            entries = [(1, 0, level), (2, 0, others[0]), (1, 1, others[1])]
            entries = [(p, i, v / 1000) for p, i, v in entries if v is not None]
            person, item, weight = zip(*entries, strict=True) if entries else ((), (), ())
            counts[level] = weighted_counts(Profiles.of(person, item, weight, people=3, items=2), np.array([1, 2]))
        for v, u in product(levels, repeat=2):
            # every item has its own independent noise: the log-ratios of the coordinates add up
            spent = sum(
                worst_log_ratio(Law(int(a), scale), Law(int(b), scale))
                for a, b in zip(counts[v], counts[u], strict=True)
            )
            assert spent <= 0.5 * max(v or 0, u or 0) / 1000 + 1e-9


def test_the_noise_drawn_is_that_of_the_proof(monkeypatch):
    """The check above compares laws of this scale; here is what is really drawn, once for every item there is."""
    drawn = []
    monkeypatch.setattr(
        "discretion.social.recommendation.discrete_laplace",
        lambda scale, size, rng: drawn.append((scale, size)) or np.zeros(size, dtype=np.int64),
    )
    profiles, exchange = circle()
    recommend(exchange, explore(exchange, rounds=2), profiles, 0, epsilon=0.5)
    assert [(2_000, 6)] == drawn


def test_neighbours_items_are_recommended_and_the_neighbours_are_charged():
    profiles, exchange = circle(epsilon=20.0)
    clustering = explore(exchange, neighbours=2, rounds=30)
    before = exchange.spent.copy()
    found = recommend(exchange, clustering, profiles, 0, epsilon=50.0, count=2)
    assert 5 == found.items[0]
    assert not set(found.items.tolist()) & {0, 1, 2}  # what the person holds is left out
    assert {1, 2} == set(found.neighbours.tolist())
    assert [0, 50 * MICRO, 50 * MICRO, 0] == (exchange.spent - before).tolist()
    assert 50 * MICRO == found.guarantee.losses[MICRO].micro_epsilon
    assert found.simulated
    assert 3 == recommend(exchange, clustering, profiles, 0, epsilon=1.0, count=99).items.size


def test_neighbours_who_cannot_pay_are_not_asked():
    profiles, exchange = circle(budget=1.0)
    clustering = explore(exchange, neighbours=2, rounds=30)
    found = recommend(exchange, clustering, profiles, 0, epsilon=0.9)
    assert 0 == found.neighbours.size
    assert exchange.spent.max() <= MICRO


def test_malformed_requests_are_refused():
    profiles, exchange = circle()
    clustering = explore(exchange, rounds=1)
    for options in ({"person": 4, "epsilon": 1}, {"person": 0, "epsilon": 0}, {"person": 0, "epsilon": 1, "count": 0}):
        with pytest.raises(InvalidDeclaration):
            recommend(exchange, clustering, profiles, **options)

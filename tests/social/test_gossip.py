import tracemalloc
from functools import partial

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social.dataset import Network
from discretion.social.exchange import Exchange
from discretion.social.gossip import _overwriting, expected_peers, explore, gossip, nearest, split_total
from discretion.social.profile import Profiles
from discretion.social.similarity import Exact, ScalarProduct
from discretion.social.strangers import NOBODY, Strangers, anyone

PROTOCOLS = {"explore": explore, "explore 3": partial(explore, peers=3), "gossip": gossip}


def from_sets(sets):
    pairs = [(person, item) for person, items in enumerate(sets) for item in items]
    return Profiles.of(
        *zip(*pairs, strict=True), np.ones(len(pairs)), people=len(sets), items=1 + max(i for _, i in pairs)
    )


def villages(people=120, seed=2):
    made = Network(people=people, items=300, mean=30, communities=4, outside=0.02, popularity=0.1, activity=0.2)
    return made.generate(simulation(seed)).weigh(1000)


def test_cosines_and_ideal_views_are_the_golden_ones(golden):
    case = golden["gossip"]
    exchange = Exchange(Exact(profiles=from_sets(case["profiles"]), measure="cosine"))
    left, right = np.nonzero(~np.eye(6, dtype=bool))
    expected = [case["cosine"][a][b] for a, b in zip(left, right, strict=True)]
    assert np.allclose(expected, exchange.ask(left, right), atol=1e-12)
    views = nearest(exchange, [(left, right)], 2)
    assert case["ideal_views_k2"] == views.tolist()


def test_merging_views_is_the_golden_example(golden):
    case = golden["gossip"]
    merge = case["merge_example"]
    exchange = Exchange(Exact(profiles=from_sets(case["profiles"]), measure="cosine"))
    node = np.array([[merge["node"]]])
    seen = [(node, np.array([merge[view]])) for view in ("own_view", "random_view", "received")]
    assert merge["result"] == nearest(exchange, seen, merge["k"])[merge["node"]].tolist()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_views_hold_distinct_others_best_first(name):
    profiles = villages()
    exchange = Exchange(ScalarProduct(profiles=profiles, micro_epsilon=MICRO), rng=simulation(3))
    result = PROTOCOLS[name](exchange, neighbours=7, rounds=12)
    for person, view in enumerate(result.neighbours):
        real = view[view != NOBODY]
        assert person not in real
        assert real.size == np.unique(real).size == 7
        scores = exchange.ask(np.full(real.size, person), real)
        assert np.all(np.diff(scores) <= 0)
    assert result.simulated
    assert "peers compared" in str(result)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_same_seed_gives_the_same_views(name):
    runs = [
        PROTOCOLS[name](Exchange(ScalarProduct(profiles=villages(), micro_epsilon=MICRO), rng=simulation(3)))
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].neighbours, runs[1].neighbours)
    assert np.array_equal(runs[0].spent, runs[1].spent)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_budget_bounds_every_total_and_the_protocol_goes_on(name):
    exchange = Exchange(ScalarProduct(profiles=villages(), micro_epsilon=100_000), budget=1.0, rng=simulation(4))
    result = PROTOCOLS[name](exchange)
    assert result.spent.max() <= MICRO
    assert 10 == result.releases.max()
    assert np.array_equal(100_000 * result.releases, result.spent)
    assert MICRO == result.guarantee.losses[MICRO].micro_epsilon
    assert (result.neighbours != NOBODY).any(axis=1).mean() > 0.95


def test_without_a_budget_the_promise_is_what_the_most_asked_person_lost():
    result = gossip(Exchange(ScalarProduct(profiles=villages(), micro_epsilon=100_000), rng=simulation(4)))
    assert result.spent.max() == result.guarantee.losses[MICRO].micro_epsilon
    assert result.spent.max() > 20 * 100_000  # far more than the ε of one pair


@pytest.mark.parametrize("name", PROTOCOLS)
def test_people_find_their_own_village(name):
    profiles = villages()
    truth = np.argsort(-(profiles.held @ profiles.held.T).toarray(), axis=1)[:, 1:11]
    found = PROTOCOLS[name](Exchange(Exact(profiles=profiles), rng=simulation(5))).neighbours
    overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(truth.tolist(), found.tolist(), strict=True)])
    assert overlap > 3 * 10 / 119  # three times what chance would find


def test_the_secure_source_drives_a_whole_run():
    result = explore(Exchange(ScalarProduct(profiles=villages(20), micro_epsilon=MICRO)), rounds=2)
    assert not result.simulated


def test_expected_peers_come_from_a_rehearsal_without_profiles():
    peers = expected_peers(explore, 481, simulation(1))
    assert 30 < peers < 45  # 20 own questions and 20 of others, less repetitions
    assert 200 < expected_peers(gossip, 481, simulation(1)) < 330
    price = split_total(1.0, peers)
    assert price * peers <= MICRO < price * peers + peers
    with pytest.raises(InvalidDeclaration, match="split"):
        split_total(0.00001, 100)


def test_the_overwriting_queue_forgets_more_than_half_of_the_best():
    """Digest: pushing 1..100 in random order keeps 4.4 of the true top 10."""
    people = 2_000
    person, peer = np.repeat(np.arange(people), 100), np.tile(np.arange(100), people)
    view = _overwriting(person, peer, peer.astype(float), (people, 10), simulation(1))
    assert abs(4.4 - (view >= 90).sum(axis=1).mean()) < 0.15
    exchange = Exchange(Exact(profiles=villages()), rng=simulation(5))
    assert gossip(exchange, queue="overwriting").neighbours.shape == (120, 10)


def test_random_views_keep_distinct_others_and_stay_mixed():
    rng = simulation(6)
    strangers = Strangers.meet(300, 10, rng)
    met = np.zeros((300, 300), dtype=bool)
    for _ in range(30):
        strangers = strangers.shuffle(5, rng)
        peers = strangers.peers
        assert not np.any(peers == np.arange(300)[:, None])
        assert all(np.unique(row[row != NOBODY]).size == (row != NOBODY).sum() for row in peers)
        met[np.repeat(np.arange(300), 10), peers.ravel()] = True
    assert (peers != NOBODY).mean() > 0.99
    known_by = np.bincount(peers.ravel()[peers.ravel() != NOBODY], minlength=300)
    assert known_by.max() < 40  # a uniform view has mean 10
    assert met.mean() > 0.3


def test_anyone_is_uniform_among_the_others():
    drawn = anyone(np.full(60_000, 2), 5, simulation(1))
    assert [0, 1, 3, 4] == np.unique(drawn).tolist()
    assert np.all(np.abs(np.bincount(drawn, minlength=5)[[0, 1, 3, 4]] - 15_000) < 5 * np.sqrt(15_000))


@pytest.mark.slow
def test_memory_stays_far_below_an_all_pairs_matrix():
    people = 12_000  # all pairs as doubles: 1.15 GB
    made = Network(people=people, items=286, mean=3, communities=8, outside=0.05, popularity=1.0, activity=0.5)
    profiles = made.generate(simulation(0))
    tracemalloc.start()
    gossip(Exchange(ScalarProduct(profiles=profiles.weigh(1000), micro_epsilon=MICRO), rng=simulation(1)), rounds=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * 8 * people**2


def test_two_people_suffice():
    tiny = from_sets([[0, 1], [1]])
    for protocol in (explore, gossip):
        result = protocol(Exchange(ScalarProduct(profiles=tiny, micro_epsilon=MICRO), rng=simulation(1)), rounds=3)
        assert [1, 0] == result.neighbours[:, 0].tolist()
        assert [1, 1] == result.releases.tolist()

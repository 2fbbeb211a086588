"""The network has the law of the simulation in one process: whom people find, what they pay, and the noise."""

import asyncio
from functools import lru_cache
from math import sqrt

import numpy as np
import pytest
from crowd import CATALOGUE, cycle, prepare, rehearsing, terms, two_villages, without_sockets

from discretion.noise import simulation
from discretion.peers.account import Account
from discretion.preference import MICRO
from discretion.social.exchange import Exchange
from discretion.social.gossip import explore
from discretion.social.profile import Profiles
from discretion.social.response import Response
from discretion.social.similarity import ScalarProduct

PEOPLE, CYCLES, NEIGHBOURS, EPSILON = 6, 6, 1, 0.5
RUNS, SIMULATED = 130, 800
# Each statistic is a mean over independent runs, so nearly normal. The difference of the two means is refused beyond
# 6.5 standard deviations: with three statistics and three networks the chance of a false alarm is 9 · 8e-11 < 1e-9.
# A shift of 0.8 deviations of a single run is found with probability Φ(0.8/√(1/130 + 1/800) − 6.5) = Φ(1.96) = 0.97.
LIMIT = 6.5


def statistics(found, releases, noise):
    """One run: how many friends are of one's own village, how many peers one was compared with, mean |noise|."""
    person = np.arange(PEOPLE) < PEOPLE // 2
    own = [person[friend] == person[me] for me, friends in enumerate(found) for friend in friends]
    return np.mean(own), np.mean(releases), np.mean(np.abs(noise))


@lru_cache
def simulated(method, runs=SIMULATED, *, budget=100.0, draws=2, epsilon=EPSILON, friends=0.5, peers=1, seed=1):
    """The statistics of many runs of the simulation."""
    half, rng, rows = len(CATALOGUE) // 2, simulation(seed), []
    held = [(p, i + half * (p >= PEOPLE // 2)) for p in range(PEOPLE) for i in range(half)]
    profiles = Profiles.of(*zip(*held, strict=True), np.ones(len(held)), people=PEOPLE, items=len(CATALOGUE))
    pairs = {"micro_epsilon": int(epsilon * MICRO), "coefficient": "product", "draws": draws}
    true = (profiles.held @ profiles.held.T).toarray()
    for _ in range(runs):
        if method == "product":
            similarity = ScalarProduct(profiles=profiles, **pairs)
        else:
            similarity = Response.publish(profiles, epsilon=epsilon)
        exchange = Exchange(similarity, budget=budget, rng=rng)
        found = explore(exchange, neighbours=NEIGHBOURS, rounds=CYCLES, peers=peers, friends=friends)
        left, right = np.divmod(exchange._pairs, PEOPLE)
        friends_of = [[friend for friend in row if friend >= 0] for row in found.neighbours.tolist()]
        rows.append(statistics(friends_of, found.releases, exchange._scores - true[left, right]))
    return np.array(rows)


def networked(folder, monkeypatch, method, runs=RUNS, budget=100.0):
    """The statistics of many runs of real peers, connected in memory."""
    agreed = terms(method, epsilon=EPSILON)
    peers = [
        rehearsing(folder, number, profile, agreed, neighbours=NEIGHBOURS, rng=simulation(1_000 + number))
        for number, profile in enumerate(two_villages(PEOPLE))
    ]
    without_sockets(monkeypatch, peers)
    number = {peer.name: place for place, peer in enumerate(peers)}
    true = np.kron(np.eye(2), np.full((3, 3), len(CATALOGUE) // 2))

    async def once():
        for peer in peers:
            peer.account.close()
            peer.account = peer.contacts.account = Account.rehearsal(budget=budget)
        prepare(peers)
        for peer in peers:
            peer.settle()
        for _ in range(CYCLES):
            await cycle(peers)
        scores = [peer.account.scores(agreed.digest) for peer in peers]
        noise = [s - true[me, number[name]] for me, own in enumerate(scores) for name, s in own.items()]
        assert all(peer.account.spent <= budget * MICRO for peer in peers)
        return statistics([[number[name] for name in peer.view] for peer in peers], [len(own) for own in scores], noise)

    async def many():
        return np.array([await once() for _ in range(runs)])

    found = asyncio.run(many())
    for peer in peers:
        peer.account.close()
    return found


def distance(one, other):
    """How many standard deviations the means of two samples of runs are apart, for each statistic."""
    spread = np.sqrt(one.var(axis=0, ddof=1) / len(one) + other.var(axis=0, ddof=1) / len(other))
    return np.abs(one.mean(axis=0) - other.mean(axis=0)) / np.maximum(spread, 1e-12)


@pytest.mark.parametrize(("method", "budget"), [("product", 100.0), ("product", 1.5), ("response", 100.0)])
def test_the_network_has_the_law_of_the_simulation(tmp_path, monkeypatch, method, budget):
    """Also where everybody can pay for three comparisons only."""
    found = networked(tmp_path, monkeypatch, method, budget=budget)
    assert np.all(distance(found, simulated(method, budget=budget)) < LIMIT)


@pytest.mark.parametrize(
    ("planted", "statistic"),
    [
        ({"friends": 1.0}, 1),  # never asks anybody but friends of friends
        ({"peers": 2}, 1),  # asks twice as many
        ({"draws": 1}, 2),  # one side's noise only
        ({"epsilon": 1.0}, 2),  # half the noise
        ({"budget": 1.5}, 1),  # stops too early
    ],
)
def test_the_comparison_would_notice_another_law(planted, statistic):
    """The shift that a planted fault causes, in deviations of the comparison of RUNS runs."""
    right, wrong = simulated("product"), simulated("product", 300, seed=3, **planted)
    shift = abs(right.mean(axis=0) - wrong.mean(axis=0))[statistic]
    spread = sqrt(wrong.var(axis=0)[statistic] / RUNS + right.var(axis=0)[statistic] / SIMULATED)
    assert shift / spread > LIMIT + 1.7  # found with probability Φ(1.7) = 0.955 or more

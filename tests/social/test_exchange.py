import numpy as np
import pytest

from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social.exchange import Exchange, distinct, places
from discretion.social.profile import Profiles
from discretion.social.response import Response
from discretion.social.similarity import Cosine, Exact, ScalarProduct


def network(people=12, items=8, epsilon=0.5, seed=1, **options):
    rng = simulation(seed)
    held = rng.random((people, items)) < 0.5
    profiles = Profiles.of(*np.nonzero(held), people=people, items=items).sliced(np.array([0, 500, 1000]), rng)
    product = ScalarProduct(profiles=profiles, micro_epsilon=int(epsilon * MICRO))
    return profiles, Exchange(product, rng=rng, **options)


def test_a_pair_is_drawn_once_for_both_directions_and_charged_once_to_both():
    _, exchange = network()
    first = exchange.ask(np.array([0, 1, 3]), np.array([1, 0, 4]))
    assert first[0] == first[1]
    again = exchange.ask(np.array([4, 0]), np.array([3, 1]))
    assert [first[2], first[0]] == again.tolist()
    assert [1, 1, 0, 1, 1] == exchange.releases[:5].tolist()
    assert [500_000, 500_000, 0] == exchange.spent[:3].tolist()


def test_every_release_is_counted_like_a_plain_ledger_would():
    _, exchange = network(people=30)
    rng, seen = simulation(4), set()
    for _ in range(20):
        left, right = rng.integers(0, 30, (2, 40))
        left, right = left[left != right], right[left != right]
        exchange.ask(left, right)
        seen |= {frozenset(pair) for pair in zip(left.tolist(), right.tolist(), strict=True)}
    expected = [sum(u in pair for pair in seen) for u in range(30)]
    assert expected == exchange.releases.tolist()
    assert [n * 500_000 for n in expected] == exchange.spent.tolist()


def test_nobody_answers_beyond_their_budget():
    _, exchange = network(people=40, budget=2.2)  # four answers at 0.5 each
    rng = simulation(5)
    for _ in range(30):
        left, right = rng.integers(0, 40, (2, 60))
        apart = left != right
        exchange.ask(left[apart], right[apart])
    assert 4 == exchange.releases.max()
    assert exchange.spent.max() <= exchange.budget
    assert exchange.releases.mean() > 3.5  # and the budget gets used
    assert 2_200_000 == exchange.guarantee.losses[MICRO].micro_epsilon


def test_an_unanswered_pair_has_no_score_and_costs_nothing():
    _, exchange = network(budget=0.5)
    assert not np.isnan(exchange.ask(np.array([0]), np.array([1]))[0])
    assert np.isnan(exchange.ask(np.array([0]), np.array([2]))[0])
    assert 0 == exchange.spent[2]
    nothing = network(budget=0.1)[1]
    assert np.isnan(nothing.ask(np.array([0]), np.array([1]))[0])
    assert 0 == nothing.ask(np.zeros(0, int), np.zeros(0, int)).size


def test_item_totals_compose_as_in_the_golden_vectors(golden):
    for case in golden["composition"]:
        people = case["releases"] + 1
        profiles = Profiles.of(np.arange(people), np.zeros(people), np.full(people, case["v"]), people=people, items=1)
        exchange = Exchange(ScalarProduct(profiles=profiles, micro_epsilon=int(case["eps"] * MICRO)), rng=simulation(1))
        exchange.ask(np.zeros(people - 1, dtype=int), np.arange(1, people))
        totals = exchange.item_totals(profiles)
        assert case["pure"] == totals[0, 0] / MICRO
        assert case["pure"] == exchange.guarantee.losses[int(case["v"] * MICRO)].micro_epsilon / MICRO


def test_joining_is_charged_to_everybody_at_once():
    profiles, exchange = network()
    sized = Cosine.charged(exchange.similarity, size_epsilon=0.25)
    assert [250_000] * 12 == Exchange(sized).spent.tolist()
    noisy = Exchange(Response.publish(profiles, epsilon=0.75), budget=0.75, rng=simulation(2))
    scores = noisy.ask(np.array([0, 1]), np.array([1, 2]))
    assert not np.isnan(scores).any()
    assert [750_000] * 12 == noisy.spent.tolist()
    with pytest.raises(InvalidDeclaration, match="Joining costs"):
        Exchange(sized, budget=0.2)


def test_nothing_is_drawn_before_everybody_was_charged_for_it(monkeypatch):
    """Not when a similarity is declared, not when the budget does not suffice, and never before it is booked."""
    profiles, happened = network()[0], []

    class Watched(Exchange):
        def __setattr__(self, name, value):
            happened.append((name, np.max(value) if name == "spent" else None))
            super().__setattr__(name, value)

    for name in ("similarity.discrete_laplace", "response.coins"):
        drawn = getattr(noise, name.split(".")[1])
        monkeypatch.setattr(
            f"discretion.social.{name}", lambda *given, drawn=drawn: happened.append(("drawn", None)) or drawn(*given)
        )
    product = ScalarProduct(profiles=profiles, micro_epsilon=1_000)
    for similarity in (Cosine.charged(product, size_epsilon=0.25), Response.publish(profiles, epsilon=0.25)):
        with pytest.raises(InvalidDeclaration, match="Joining costs"):
            Watched(similarity, budget=0.2)
        assert "drawn" not in dict(happened)
        exchange = Watched(similarity, rng=simulation(1))
        assert ("spent", 250_000) == next(event for event in happened if event[0] in ("spent", "drawn"))
        assert ("drawn", None) in happened
        happened.clear()
        exchange.ask(np.array([0]), np.array([1]))
        assert ("spent", 250_000 + similarity.micro_epsilon) == happened[1]
        assert ("drawn", None) not in happened[:2]
        happened.clear()


def test_a_person_pays_for_other_releases_from_the_same_budget():
    _, exchange = network(budget=1.0)
    exchange.ask(np.array([0]), np.array([1]))
    assert [False, True] == exchange.pay(np.array([0, 2]), 600_000).tolist()
    assert [500_000, 600_000] == exchange.spent[[0, 2]].tolist()
    assert [True] == network()[1].pay(np.array([0]), 5).tolist()
    with pytest.raises(InvalidDeclaration, match="once"):
        exchange.pay(np.array([3, 3]), 1)


def test_without_privacy_there_is_no_guarantee():
    profiles, _ = network()
    assert Exchange(Exact(profiles=profiles)).guarantee is None


def test_nobody_is_compared_with_themselves():
    with pytest.raises(InvalidDeclaration, match="themselves"):
        network()[1].ask(np.array([1]), np.array([1]))


def test_places_and_distinct():
    assert [0, 0, 1, 2, 1] == places(np.array([7, 3, 7, 7, 3])).tolist()
    assert [3, 7] == distinct(np.array([7, 3, 7, 7, 3])).tolist()
    assert 0 == distinct(np.zeros(0, dtype=int)).size


def test_a_refused_pair_takes_nobody_s_turn():
    """0 can answer once. The pair that is refused leaves the other side free to answer somebody else."""
    _, exchange = network(people=4, budget=0.5)
    exchange.ask(np.array([0]), np.array([1]))
    scores = exchange.ask(np.array([0, 2]), np.array([2, 3]))
    assert [True, False] == np.isnan(scores).tolist()


def test_two_draws_are_the_noise_of_both_sides():
    profiles, _ = network()
    steady = ScalarProduct(profiles=profiles, micro_epsilon=MICRO, draws=2)
    left = np.zeros(20_000, dtype=np.int64)
    noise = steady.draw(left, left + 1, simulation(3)) - steady.steps(left, left + 1) / steady.whole
    # variance 2·2 of two Laplace laws of scale 1; 7 deviations of the estimate (kurtosis 4.5) are .37
    assert abs(4 - np.var(noise)) < 0.37
    with pytest.raises(InvalidDeclaration, match="two draws"):
        ScalarProduct(profiles=profiles, micro_epsilon=MICRO, draws=3)

from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.social.dataset import Network
from discretion.social.gossip import explore, gossip
from discretion.social.profile import Profiles
from discretion.social.recall import (
    _without,
    compare,
    f1,
    grouped,
    hdp,
    homogeneous,
    naive,
    non_private,
    precision,
    random_recall,
    recall,
    split,
)
from discretion.social.strangers import NOBODY

SHARES = {"unconcerned": 0.3, "pragmatists": 0.4, "fundamentalists": 0.3}


def from_sets(sets, items=10):
    pairs = [(person, item) for person, kept in enumerate(sets) for item in kept]
    return Profiles.of(*zip(*pairs, strict=True), np.ones(len(pairs)), people=len(sets), items=items)


def villages():
    made = Network(people=80, items=200, mean=30, communities=4, outside=0.03, popularity=0.3, activity=0.2)
    return made.generate(simulation(0)).weigh(1000)


def test_recall_is_the_golden_one(golden):
    case = golden["gossip"]
    held, hidden = from_sets(case["profiles"]).weights, from_sets(case["tests"]).weights
    assert case["recall_of_ideal_views"] == recall(np.array(case["ideal_views_k2"]), held, hidden).tolist()
    assert abs(case["expected_random_recall_k2"] - random_recall(held, hidden, 2).mean()) < 1e-12


def test_random_recall_is_the_mean_over_all_sets_of_neighbours(golden):
    case = golden["gossip"]
    held, hidden = from_sets(case["profiles"]).weights, from_sets(case["tests"]).weights
    for person in range(6):
        others = [other for other in range(6) if other != person]
        found = []
        for chosen in combinations(others, 3):
            views = np.tile(np.array(chosen), (6, 1))
            found.append(recall(views, held, hidden)[person])
        assert abs(np.mean(found) - random_recall(held, hidden, 3)[person]) < 1e-12


def test_items_of_weight_zero_and_missing_neighbours_are_handled():
    profiles = from_sets([[0], [0], [1]]).weigh(0)
    hidden = from_sets([[0], [], [1]]).weights
    values = recall(np.array([[1, -1], [0, -1], [-1, -1]]), profiles.weights, hidden)
    assert 1.0 == values[0]
    assert np.isnan(values[1])
    assert 0.0 == values[2]


def test_a_tenth_of_the_items_that_somebody_else_holds_is_hidden():
    made = Network(people=300, items=400, mean=40, communities=3, outside=0.2, popularity=1.0, activity=0.5)
    profiles = made.generate(simulation(0))
    parts = split(profiles, rng=simulation(1))
    holders = np.bincount(profiles.weights.indices, minlength=400)
    assert holders[parts.hidden.indices].min() >= 2
    shareable = (holders[profiles.weights.indices] >= 2).sum()
    assert abs(parts.hidden.nnz - 0.1 * shareable) < 5 * np.sqrt(0.09 * shareable)
    assert profiles.weights.nnz == parts.training.weights.nnz + parts.hidden.nnz


def test_hidden_items_are_not_in_the_training_profiles():
    profiles = villages()
    parts = split(profiles, rng=simulation(2))
    assert 0 == parts.training.held.multiply(parts.hidden).nnz
    assert 0 == abs(parts.training.weights + parts.hidden - profiles.weights).sum()


def test_contenders_are_ordered_as_they_should_be():
    """People with few items, so that ε = 1 a pair costs something; villagers with thirty would hardly feel it."""
    made = Network(people=80, items=200, mean=8, communities=4, outside=0.03, popularity=0.3, activity=0.2)
    hamlets = made.generate(simulation(0)).weigh(1000)
    contenders = [non_private(), hdp(1.0), hdp(0.001)]
    best, good, noise = compare(hamlets, contenders, protocol=gossip, runs=3, seed=1)
    assert best.recall > best.random + 0.05
    assert best.recall > good.recall + 0.05
    assert good.recall > noise.recall + 0.05
    assert abs(noise.recall - noise.random) < 0.05  # ε too small to see anything
    assert (0, 0) == (best.mean_total, best.largest_total)
    assert abs(good.mean_peers - good.mean_total) < 1e-9  # ε = 1 a pair: the honest total is the number of peers
    assert good.largest_total > 20


def test_groups_are_reported_and_fundamentalists_can_be_dropped():
    contenders = [grouped(hdp(1.0), SHARES), naive(1.0, SHARES), homogeneous(1.0, SHARES)]
    outcomes = compare(villages(), contenders, protocol=partial(explore, peers=2), runs=2)
    groups = {(o.name, o.group) for o in outcomes}
    assert ("HDP scalar min ε=1", "fundamentalists") in groups
    assert ("Naive ε=1", "fundamentalists") not in groups
    assert ("homogeneous ε/2, ε=1", "pragmatists") in groups
    totals = {o.name: o.mean_total / o.mean_peers for o in outcomes if o.group == "all"}
    assert np.allclose([1.0, 1.0, 0.5], list(totals.values()))
    half = compare(villages(), [naive(1.0, SHARES, dropped=0.0)], protocol=explore, runs=2)
    assert "fundamentalists" in {o.group for o in half}


def test_people_without_hidden_items_are_left_out_or_count_as_zero():
    made = Network(people=80, items=60, mean=4, communities=2, outside=0.1, popularity=0.5, activity=0.2)
    sparse = made.generate(simulation(0)).weigh(1000)
    contender = hdp(1.0, public_sizes=True, squared=True)
    left_out, as_zero = (compare(sparse, [contender], runs=2, untested=value)[0] for value in (np.nan, 0.0))
    assert as_zero.recall < 0.7 * left_out.recall
    assert as_zero.random < 0.7 * left_out.random


def test_a_comparison_needs_two_runs_and_groups_to_drop():
    with pytest.raises(InvalidDeclaration, match="two runs"):
        compare(villages(), [non_private()], runs=1)
    ungrouped = naive(1.0, SHARES)
    with pytest.raises(InvalidDeclaration, match="groups"):
        _without(villages(), 1.0, simulation(1))
    assert ungrouped.prepare(villages(), simulation(1)).people == 56


def test_neighbours_help_on_real_visits():
    """On generated data where the optional file is missing: the same path, the same claim."""
    path = Path(__file__).parents[3] / "shared" / "data" / "msweb_visits.parquet"
    if path.exists():
        visits = pq.read_table(path, columns=["user_id", "area_id"]).slice(0, 3_000)
        public = {"people": visits["user_id"].unique().to_pylist(), "catalogue": visits["area_id"].unique().to_pylist()}
        profiles = Profiles.from_arrow(visits, person="user_id", item="area_id", **public).weigh(1000)
    else:
        profiles = villages()
    outcomes = compare(profiles, [non_private(), hdp(1.0, public_sizes=True)], runs=2, progress=True)
    assert outcomes[0].recall > outcomes[0].random
    assert 0 < outcomes[0].f1 < 2 * outcomes[0].precision < 1


def test_precision_and_f1_are_those_counted_by_hand():
    # 0 knows item 0 and misses 1 and 2; its neighbours bring 0, 1, 3 and 4: two of three new items are wrong
    whole = from_sets([{0, 1, 2}, {0, 1, 3}, {3, 4}, {5}], items=6)
    hidden = from_sets([{1, 2}, set(), set(), {5}], items=6).weights
    known = from_sets([{0}, {0, 1, 3}, {3, 4}, set()], items=6).weights
    views = np.array([[1, 2], [0, 2], [0, 1], [NOBODY, NOBODY]])
    found, exact = recall(views, whole.weights, hidden), precision(views, whole.weights, known, hidden)
    assert np.array_equal([1 / 2, np.nan, np.nan, 0], found, equal_nan=True)
    assert np.array_equal([1 / 3, np.nan, np.nan, 0], exact, equal_nan=True)
    assert np.allclose([2 / 5, np.nan, np.nan, 0], f1(exact, found), equal_nan=True)


def test_precision_counts_every_held_item_also_those_of_weight_zero():
    whole = Profiles.of([0, 1, 1], [0, 0, 1], people=2, items=2)  # all weights are 0
    hidden, known = (Profiles.of(*pairs, people=2, items=2).weights for pairs in (([0], [0]), ([1, 1], [0, 1])))
    assert 0.5 == precision(np.array([[1], [0]]), whole.weights, known, hidden)[0]

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social.profile import Profiles
from discretion.social.weight import WESTIN, loss, promise, slices, westin


def many(people=400, items=50):
    return Profiles.of(*np.nonzero(simulation(1).random((people, items)) < 0.3), people=people, items=items)


def test_an_undeclared_weight_is_zero_and_the_item_is_still_held():
    profiles = Profiles.of([0, 0, 1], [0, 1, 1], people=2, items=2)
    assert [2, 1] == profiles.sizes.tolist()
    assert [0, 0] == profiles.stretched_sizes.tolist()
    assert [[1, 1], [0, 1]] == profiles.held.toarray().tolist()


def test_pairs_given_twice_count_once():
    profiles = Profiles.of([0, 0, 1], [1, 1, 1], [0.5, 0.9, 1], people=2, items=2)
    assert [500, 1000] == profiles.stretched_sizes.tolist()


def test_profiles_come_from_a_table_with_weights_in_a_column():
    table = pa.table({"who": ["a", "b", "a"], "what": [10, 10, 30], "openness": [0.25, 1.0, 0.0]})
    declared = {"person": "who", "item": "what", "people": ["a", "b"], "catalogue": [10, 30]}
    profiles = Profiles.from_arrow(table, weight="openness", **declared)
    assert [[250, 0], [1000, 0]] == profiles.weights.toarray().tolist()
    assert [2, 1] == profiles.sizes.tolist()
    assert [0, 0] == Profiles.from_arrow(table, **declared).stretched_sizes.tolist()


def test_slices_are_the_golden_levels(golden):
    for case in golden["weight_levels"]:
        assert [round(1000 * v) for v in case["levels"]] == slices(case["lo"], case["hi"], case["n"]).tolist()
    drawn = many().sliced(slices(0.5, 1, 3), simulation(2)).weights.data
    assert [500, 750, 1000] == np.unique(drawn).tolist()
    assert np.all(np.abs(np.bincount(drawn)[[500, 750, 1000]] - drawn.size / 3) < 5 * np.sqrt(drawn.size / 4))
    with pytest.raises(InvalidDeclaration, match="two levels"):
        slices(0, 1, 1)


def test_westin_groups_have_exact_shares_and_their_own_weights():
    shares = {"unconcerned": 0.23, "pragmatists": 0.43, "fundamentalists": 0.34}
    profiles = many().westin(shares, simulation(3))
    assert [92, 172, 136] == np.bincount(profiles.groups).tolist()
    for number, levels in enumerate(WESTIN.values()):
        assert set(levels) == set(profiles.keep(profiles.groups == number).weights.data.tolist())
    once = many().westin(shares, simulation(3), per="person")
    ends = once.weights.indptr
    assert all(np.unique(once.weights.data[a:b]).size <= 1 for a, b in pairwise(ends))
    with pytest.raises(InvalidDeclaration, match="per item or per person"):
        many().westin(shares, per="group")


def test_shares_must_be_of_known_groups_and_sum_to_one():
    for shares in ({"unconcerned": 0.5}, {"careless": 1.0}, {"unconcerned": 1.5, "pragmatists": -0.5}):
        with pytest.raises(InvalidDeclaration, match="sum to 1"):
            westin(shares, 10)


def test_some_people_can_be_kept():
    profiles = many().westin({"unconcerned": 1.0}, simulation(1))
    kept = profiles.keep(np.arange(400) % 2 == 0)
    assert (200, 50) == (kept.people, kept.items)
    assert profiles.sizes[::2].tolist() == kept.sizes.tolist()
    assert 200 == kept.groups.size
    assert many().keep(np.arange(400) < 5).groups is None


def test_a_promise_lists_every_possible_weight_and_rounds_losses_up():
    promised = promise(333_333)
    assert 1_001 == len(promised.losses)
    assert 333_333 == promised.losses[MICRO].micro_epsilon
    assert 334 == promised.losses[1_000].micro_epsilon
    assert [0, 2, 1_001] == loss(1_001, np.array([0, 1, 1_000])).tolist()
    twice = promised + promise(666_667)
    assert MICRO == twice.losses[MICRO].micro_epsilon
    assert "each item" in str(promised)


def test_malformed_profiles_are_refused():
    for build in (
        lambda: Profiles.of([0], [0], [1], people=1, items=1),
        lambda: Profiles.of([0, 1], [0, 0], [1], people=2, items=1),
        lambda: Profiles.of([0, 1], [0], [1, 1], people=2, items=1),
        lambda: Profiles.of([0, 1], [0, 0], people=2, items=1).weigh(1001),
        lambda: Profiles(weights=many().weights, groups=np.zeros(3)),
    ):
        with pytest.raises(InvalidDeclaration):
            build()
    with pytest.raises(InvalidPreference):
        Profiles.of([0, 1], [0, 0], [1, 2], people=2, items=1)


def test_rows_about_undeclared_items_and_people_are_left_out():
    profiles = Profiles.of([0, 1, 1, 2, -1, 0], [0, 1, 7, 0, 0, -1], np.ones(6), people=2, items=2)
    assert [[1000, 0], [0, 1000]] == profiles.weights.toarray().tolist()
    table = pa.table({"who": ["a", "b", "c", None], "what": ["x", "z", "x", "y"]})
    named = Profiles.from_arrow(table, person="who", item="what", people=["b", "a"], catalogue=["y", "x"])
    assert [[0, 0], [0, 1]] == named.held.toarray().tolist()


def test_numbers_follow_the_declared_lists_and_not_the_rows():
    rows = {"who": ["a", "b", "b"], "what": ["x", "x", "y"]}
    for order in ([0, 1, 2], [2, 1, 0]):
        table = pa.table(rows).take(order)
        named = Profiles.from_arrow(table, person="who", item="what", people=["a", "b"], catalogue=["x", "y", "z"])
        assert [[1, 0, 0], [1, 1, 0]] == named.held.toarray().tolist()


@pytest.mark.parametrize("declared", [["x", "x"], ["x", None], [1.5, 2.5], [[1], [2]]])
def test_a_catalogue_that_does_not_fit_is_refused(declared):
    table = pa.table({"who": ["a", "b"], "what": pa.array([1, 2]) if declared[0] != "x" else ["x", "y"]})
    with pytest.raises(InvalidDeclaration, match="declared catalogue"):
        Profiles.from_arrow(table, person="who", item="what", people=["a", "b"], catalogue=declared)

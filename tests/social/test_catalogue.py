"""The catalogue of items is public: an item of weight 0 must not decide which items can be recommended."""

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social.exchange import Exchange
from discretion.social.gossip import Clustering
from discretion.social.profile import Profiles
from discretion.social.recommendation import recommend
from discretion.social.similarity import ScalarProduct

PEOPLE, CATALOGUE = ("ann", "bob", "cid"), (0, 1, 2)
HELD = (("ann", 0), ("bob", 1), ("cid", 1))  # always there; the other rows come and go


def declared(rows):
    table = pa.table({"who": [row[0] for row in rows], "what": [row[1] for row in rows]})
    return Profiles.from_arrow(table, person="who", item="what", people=PEOPLE, catalogue=CATALOGUE)


def counted_from_rows(rows):
    """The old behaviour, planted: as many items as the largest number in the rows."""
    person = [PEOPLE.index(who) for who, _ in rows]
    items = [item for _, item in rows]
    return Profiles.of(person, items, people=len(PEOPLE), items=max(items) + 1)


def named_by_rows(rows):
    """The old behaviour of from_arrow, planted: items are numbered in the order of the rows."""
    items = list(dict.fromkeys(item for _, item in rows))
    person = [PEOPLE.index(who) for who, _ in rows]
    return Profiles.of(person, [items.index(item) for _, item in rows], people=len(PEOPLE), items=len(items))


def recommended(build, rows):
    """Every item that ann can be shown; the noise decides the order only."""
    profiles = build(rows)
    exchange = Exchange(ScalarProduct(profiles=profiles, micro_epsilon=MICRO), rng=simulation(1))
    exchange.ask(np.array([0, 0]), np.array([1, 2]))
    found = Clustering.of(exchange, np.array([[1, 2], [0, 2], [0, 1]]))
    return frozenset(recommend(exchange, found, profiles, 0, epsilon=1.0, count=99).items.tolist())


def broken_pairs(build):
    """Neighbouring row sets of weight 0, all of them, after which ann can be shown different items."""
    optional = [row for row in product(("bob", "cid"), CATALOGUE) if row not in HELD]
    broken = []
    for size in range(len(optional) + 1):
        for chosen in combinations(optional, size):
            for more in set(optional) - set(chosen):
                before, after = HELD + chosen, (*HELD, *chosen, more)
                if recommended(build, before) != recommended(build, after):
                    broken.append((before, after))
    return broken


def test_an_item_of_weight_zero_never_changes_what_can_be_recommended():
    assert [] == broken_pairs(declared)


@pytest.mark.parametrize("planted", [counted_from_rows, named_by_rows])
def test_the_check_finds_a_catalogue_taken_from_the_rows(planted):
    broken = broken_pairs(planted)
    assert broken
    assert (HELD, (*HELD, ("bob", 2))) in broken  # only bob holds item 2, at a promised loss of 0


def test_profiles_without_a_declared_catalogue_cannot_be_made():
    with pytest.raises(TypeError, match="items"):
        Profiles.of([0, 1], [0, 0], people=2)
    with pytest.raises(TypeError, match="catalogue"):
        Profiles.from_arrow(pa.table({"a": [1], "b": [2]}), person="a", item="b", people=[1])

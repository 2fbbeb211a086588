import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.social.dataset import NETWORKS, Network, survey

VILLAGES = {"people": 60, "items": 120, "mean": 20, "communities": 3, "popularity": 0.1, "activity": 0.2}
# people, items, items a person
PUBLISHED = {"Survey": (113, 196, 68), "Digg": (481, 1_237, 317), "Delicious": (504, 51_807, 135)}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_networks_have_the_published_sizes(name):
    profiles = NETWORKS[name].generate(simulation(1))
    people, items, mean = PUBLISHED[name]
    assert (people, items) == (profiles.people, profiles.items)
    assert people * mean == profiles.weights.nnz
    assert 0 == profiles.weights.data.max()  # nobody declared anything yet
    assert NETWORKS[name].holders <= np.bincount(profiles.weights.indices, minlength=items).min()


def test_members_of_a_community_hold_the_same_items():
    """With hardly any item from outside, people share many items (their own community's) or next to none."""
    held = Network(outside=1e-6, **VILLAGES).generate(simulation(1)).held
    shared = (held @ held.T).toarray()[np.triu_indices(60, 1)]
    assert np.mean((shared <= 2) | (shared >= 5)) > 0.95
    mixed = Network(outside=1.0, **VILLAGES).generate(simulation(1)).held
    assert np.std((mixed @ mixed.T).toarray()[np.triu_indices(60, 1)]) < np.std(shared) / 2


def test_the_same_seed_gives_the_same_network():
    first, again, other = (survey(seed).weights for seed in (1, 1, 2))
    assert np.array_equal(first.indices, again.indices)
    assert not np.array_equal(first.indices, other.indices)


@pytest.mark.parametrize("impossible", [{"mean": 120}, {"mean": 1}, {"holders": 11}])
def test_a_network_that_cannot_be_is_refused(impossible):
    with pytest.raises(InvalidDeclaration, match="cannot give every item"):
        Network(**({"outside": 0.5} | VILLAGES | impossible))

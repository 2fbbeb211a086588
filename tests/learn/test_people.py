"""Whose rows they are decides what everybody may lose; nothing public may depend on who is present."""

import numpy as np
import pytest

from discretion import noise
from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.learn.people import people
from discretion.preference import Specification


def test_one_epsilon_for_everybody_is_one_cohort():
    owners = people(0.5, 3)
    assert (500_000,) == owners.specification.epsilons
    assert (3,) == owners.specification.people


def test_people_are_counted_once_however_many_rows_they_own():
    owners = people([0.1, 0.1, 1.0, 0.1], 4, groups=["ann", "ann", "bob", "cyd"])
    assert (2, 1) == owners.specification.people
    assert [2, 2, 1, 1] == owners.rows_each.tolist()
    assert [0.5, 0.5, 1.0, 1.0] == owners.votes.tolist()


def test_a_person_whose_rows_disagree_on_epsilon_is_refused():
    with pytest.raises(InvalidPreference, match="same epsilon"):
        people([0.1, 0.2], 2, groups=["ann", "ann"])


@pytest.mark.parametrize("epsilon", [[0.1], [[0.1, 0.2]], [0.1, 0.2, 0.3]])
def test_there_is_one_epsilon_a_row(epsilon):
    with pytest.raises(InvalidPreference, match="one epsilon per row"):
        people(epsilon, 2)


def test_presence_needs_a_register_and_is_tuned_to_it_alone():
    with pytest.raises(InvalidDeclaration, match="register"):
        people([0.1], 1, protects="presence")
    register = [0.1, 0.1, 0.5, 1.0]
    few = people([0.1], 1, protects="presence", register=register)
    many = people([0.1, 1.0, 0.5], 3, protects="presence", register=register)
    assert few.specification == many.specification == Specification.of([(100_000, 2), (500_000, 1), (1_000_000, 1)])
    assert [0, 2, 1] == many.cohort.tolist()


def test_an_epsilon_that_the_register_does_not_offer_is_refused():
    for stranger in (0.2, 2.0):
        with pytest.raises(InvalidPreference, match="register offers"):
            people([stranger], 1, protects="presence", register=[0.1, 1.0])


def test_a_register_under_value_is_a_mistake():
    with pytest.raises(InvalidDeclaration, match="presence"):
        people([0.1], 1, register=[0.1])


def test_several_fits_share_the_allowance_rounded_down():
    owners = people([0.1, 1.0], 2, fits=3)
    assert [33_333, 333_333] == owners.spends.micro.tolist()
    assert owners.guarantee(owners.spends.micro * 3, arithmetic="exact").honours(owners.specification)


@pytest.mark.parametrize("fits", [0, -1, 1.5])
def test_the_number_of_fits_is_whole_and_positive(fits):
    with pytest.raises(InvalidDeclaration, match="fits"):
        people(0.1, 2, fits=fits)


def test_at_most_so_many_rows_of_each_person_stay():
    owner = np.repeat(np.arange(5), [1, 2, 3, 4, 10])
    owners = people(np.ones(20), 20, groups=owner)
    kept = owners.bounded(3, noise.simulation(1))
    assert [1, 2, 3, 3, 3] == np.bincount(owner[kept]).tolist()
    assert sorted(set(kept.tolist())) == kept.tolist()


def test_a_person_is_kept_with_all_their_rows_or_none():
    owner = np.repeat(np.arange(200), 3)
    owners = people(np.ones(600), 600, groups=owner)
    kept = owners.kept((2**63,), noise.simulation(2))
    counts = np.bincount(owner[kept], minlength=200)
    assert {0, 3} == set(counts.tolist())
    assert 60 < (counts > 0).sum() < 140  # Binomial(200, 1/2): outside with probability below 1e-7


def test_groups_must_name_an_owner_for_each_row():
    with pytest.raises(InvalidDeclaration, match="groups"):
        people([0.1, 0.1], 2, groups=["ann"])

import numpy as np
import pytest

from discretion.errors import InvalidPreference
from discretion.preference import MICRO, Preference, Specification, allowance, round_down


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.1, 1001.0])
def test_a_preference_must_be_a_sensible_number(bad):
    with pytest.raises(InvalidPreference, match="from 0 to 1000"):
        Preference(name="odd", epsilon=bad)
    with pytest.raises(InvalidPreference, match="At least one"):
        allowance([0.1, bad])


def test_an_allowance_that_is_not_a_number_is_refused_without_quoting_it():
    with pytest.raises(InvalidPreference) as refusal:
        allowance(["secret"])
    assert "secret" not in str(refusal.value)


def test_allowances_are_rounded_down_but_decimals_are_kept():
    assert [290_000, 100_000, 1, 0, 333_333] == allowance([0.29, 0.1, 1.9e-6, 9e-7, 1 / 3]).tolist()


def test_every_decimal_of_the_menu_survives_its_double():
    hundredths = np.arange(0, 1001)
    assert (hundredths * 10_000).tolist() == allowance(hundredths / 100).tolist()


def test_levels_round_down_to_the_menu_and_below_it_nobody_is_used():
    menu = [0.1, 0.5, 1.0]
    assert [0, 100_000, 100_000, 500_000, 1_000_000] == round_down(allowance([0.05, 0.1, 0.49, 0.5, 7]), menu).tolist()


def test_a_specification_counts_cohorts_and_places_people():
    specification, cohort = Specification.assign([1.0, 0.1, 0.1, 0.0])
    assert (0, 100_000, 1_000_000) == specification.epsilons
    assert (1, 2, 1) == specification.people
    assert [2, 1, 1, 0] == cohort.tolist()
    assert 4 == specification.size
    assert 100_000 == specification.strictest


def test_named_levels_and_a_menu():
    specification, _ = Specification.assign(["strict", "open", "open"], levels={"strict": 0.1, "open": 1.0})
    assert (1, 2) == specification.people
    rounded, _ = Specification.assign([0.19, 0.9], menu=[0.1, 0.5])
    assert (100_000, 500_000) == rounded.epsilons


def test_an_unknown_level_is_refused_without_quoting_it():
    with pytest.raises(InvalidPreference, match="'strict'") as refusal:
        Specification.assign(["strict", "whatever"], levels={"strict": 0.1})
    assert "whatever" not in str(refusal.value)


def test_equal_levels_are_merged():
    assert Specification(epsilons=(1, 5), people=(3, 6)) == Specification.of([(5, 2), (1, 3), (5, 4)])


@pytest.mark.parametrize(
    ("epsilons", "people"), [((), ()), ((1,), (1, 2)), ((2, 1), (1, 1)), ((-1,), (1,)), ((1,), (-1,))]
)
def test_a_malformed_specification_is_refused(epsilons, people):
    with pytest.raises(InvalidPreference):
        Specification(epsilons=epsilons, people=people)


def test_one_epsilon_per_person_means_one_dimension():
    for shape in ([], [[0.1], [0.2]]):
        with pytest.raises(InvalidPreference, match="one epsilon per person"):
            Specification.assign(shape)


def test_nobody_with_anything_to_spend_is_an_error_not_a_guess():
    with pytest.raises(InvalidPreference, match="above 0"):
        _ = Specification(epsilons=(0,), people=(3,)).strictest


def test_it_reads_well():
    assert "3 people: 1 at ε=0.1, 2 at ε=1" == str(Specification(epsilons=(MICRO // 10, MICRO), people=(1, 2)))
    many = Specification(epsilons=tuple(range(1, 10)), people=(1,) * 9)
    assert "(9 levels)" in str(many)


def test_counting_and_sorting_give_the_same_cohorts():
    """Small ε are counted, large ones sorted: one large ε switches the method and must change nothing else."""
    epsilons = np.tile([0.3, 0.1, 0.0, 0.3, 2.5], 3)
    counted, places = Specification.assign(epsilons)
    sorted_, others = Specification.assign(np.append(epsilons, 9.0))
    assert (counted.epsilons, counted.people) == (sorted_.epsilons[:-1], sorted_.people[:-1])
    assert places.tolist() == others[:-1].tolist()


def test_divided_cohorts_keep_their_places_although_their_amounts_may_become_equal():
    specification = Specification(epsilons=(3, 6, 11, 12), people=(1, 2, 3, 4))
    assert Specification(epsilons=(0, 1, 1, 2), people=(1, 2, 3, 4)) == specification.divided(6)

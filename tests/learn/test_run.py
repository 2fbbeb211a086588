"""Which people are run together, with which ε: from public numbers alone, and never more than anybody has."""

from itertools import combinations

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.learn.run import partition, plan, precision, risk_utility
from discretion.mechanisms.cuts import utility_cuts
from discretion.noise import ALWAYS
from discretion.preference import Specification

BUDGET = np.array([0, 10_000, 20_000, 50_000, 70_000, 90_000, 110_000, 140_000, 150_000])
HEADS = np.array([3, 1, 5, 2, 1, 7, 1, 1, 4])
PEOPLE = Specification(epsilons=tuple(BUDGET.tolist()), people=tuple(HEADS.tolist()))


def spent(runs):
    return np.sum([run.charge for run in runs], axis=0)


def members(runs):
    return [[index for index, coin in enumerate(run.inclusion) if coin == ALWAYS] for run in runs]


@pytest.mark.parametrize("cuts", ["utility", "privacy"])
@pytest.mark.parametrize("parts", [1, 3, 20])
@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_nobody_pays_more_than_they_have_and_zero_is_never_asked(cuts, parts, rounds):
    runs = partition(PEOPLE, cuts=cuts, parts=parts, rounds=rounds)
    assert np.all(spent(runs) <= BUDGET)
    for run, inside in zip(runs, members(runs), strict=True):
        assert 0 not in inside
        assert [run.micro_epsilon if index in inside else 0 for index in range(9)] == list(run.charge)
        assert run.people == HEADS[inside].sum()


def test_the_groups_of_one_round_are_disjoint_and_cover_everybody():
    for cuts in ("utility", "privacy"):
        found = members(partition(PEOPLE, cuts=cuts, parts=4))
        assert [1, 2, 3, 4, 5, 6, 7, 8] == sorted(index for inside in found for index in inside)


def test_each_round_asks_for_what_is_left():
    once, often = (partition(PEOPLE, parts=2, rounds=rounds) for rounds in (1, 50))
    assert list(once) == list(often[: len(once)])
    assert np.array_equal(BUDGET, spent(often))


@pytest.mark.parametrize("smallest", [1, 6])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_utility_cuts_are_the_best_of_all(smallest, parts):
    levels, heads = BUDGET[1:], HEADS[1:]

    def worth(starts):
        people = np.add.reduceat(heads, starts)
        if people.min() < smallest:
            return -np.inf
        return sum(precision(n, levels[start] / 1e6) for n, start in zip(people, starts, strict=True))

    every = [[0, *rest] for k in range(parts) for rest in combinations(range(1, 8), k)]
    best = utility_cuts(levels, heads, parts, precision, smallest)
    assert max(map(worth, every)) == pytest.approx(worth(best))


def test_privacy_cuts_use_the_number_of_groups_of_most_utility():
    runs = plan(PEOPLE, "partition", {"cuts": "privacy", "parts": 8, "utility": lambda people, epsilon: people**2})
    assert 1 == len(runs)  # large groups are all that counts
    runs = plan(PEOPLE, "partition", {"cuts": "privacy", "parts": 8, "utility": lambda n, epsilon: n * epsilon})
    assert 8 == len(runs)  # and here only wasted privacy does


def test_a_group_too_small_for_anything_is_refused():
    for cuts in ("utility", "privacy"):
        with pytest.raises((InvalidDeclaration, Unsuitable), match="people"):
            partition(PEOPLE, cuts=cuts, smallest=1000)


@pytest.mark.parametrize("cuts", ["utility", "privacy"])
def test_no_group_is_smaller_than_the_smallest_in_any_round(cuts):
    runs = partition(PEOPLE, cuts=cuts, smallest=6, rounds=9)
    assert min(run.people for run in runs) >= 6
    assert max(spent(runs)) > 0


def test_without_parts_every_number_of_groups_up_to_n_over_t_is_tried():
    """Only wasted privacy counts: as many groups as levels, or as many as have six people each."""
    linear = {"utility": lambda people, epsilon: people * epsilon}
    assert 8 == len(partition(PEOPLE, cuts="privacy", **linear))
    assert 8 == len(partition(PEOPLE, cuts="utility", **linear))
    assert 3 == len(partition(PEOPLE, cuts="utility", smallest=6, **linear))


def test_a_group_as_large_as_another_with_a_smaller_epsilon_is_dropped_before_it_is_asked():
    few = Specification(epsilons=(10_000, 20_000, 900_000), people=(5, 3, 5))
    linear = {"utility": lambda people, epsilon: people * epsilon}
    assert [10_000, 20_000, 900_000] == spent(partition(few, **linear)).tolist()
    assert [0, 20_000, 900_000] == spent(partition(few, drop=True, **linear)).tolist()


def test_the_utility_of_risk_minimisation_is_one_over_the_printed_bound():
    """[LXJJ17] Equation (2), second part, with numbers put in by hand: d = 2, ‖f‖ = 1, c = 1/4, e = .1, σ = .05."""
    n, epsilon = 1_000, 0.5
    bound = 16 * 4 * np.log(40) ** 2 * 0.35 / (n**2 * 0.01 * epsilon**2) + np.log(20) / (n * 0.1) + 0.05
    utility = risk_utility(2)
    assert pytest.approx(1 / bound) == utility(n, epsilon)
    assert utility(n, epsilon) < utility(2 * n, epsilon)
    assert utility(n, epsilon) < utility(n, 2 * epsilon)
    assert 0 == utility(0, epsilon)
    assert partition(PEOPLE, utility=utility)
    with pytest.raises(InvalidDeclaration, match="dimensions"):
        risk_utility(0)


@pytest.mark.parametrize("options", [{"cuts": "random"}, {"parts": 0}, {"rounds": 0}, {"smallest": 0}])
def test_bad_cuts_are_refused(options):
    with pytest.raises(InvalidDeclaration, match="cuts must be"):
        partition(PEOPLE, **options)


@pytest.mark.parametrize("method", ["threshold", "sample"])
def test_a_mean_below_a_millionth_is_a_millionth(method):
    """Rounded down to 0 it would ask everybody, those who chose 0 too."""
    (run,) = plan(Specification(epsilons=(0, 2), people=(9, 1)), method, {"threshold": "mean"})
    assert (1, (0, 1), (0, ALWAYS)) == (run.micro_epsilon, run.charge, run.inclusion)

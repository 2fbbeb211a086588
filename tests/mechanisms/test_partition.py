"""Partitions: exact cuts, charges and combinations."""

from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import Universe, check_nobody_loses_more_than_the_charge, losses_of, violations
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.committee import Committee, shares
from discretion.mechanisms.cuts import precision_cuts, privacy_cuts, privacy_cuts_each, utility_cuts
from discretion.mechanisms.scheme import Group, Scheme, paid, without_dominated
from discretion.noise import simulation
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

COUNT = Aggregate(kind="count", protects="value")
propose = MECHANISMS["partition"]

levels_and_heads = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 6)), min_size=1, max_size=9, unique_by=lambda pair: pair[0]
).map(lambda pairs: tuple(np.array(column) for column in zip(*sorted(pairs), strict=True)))


def spans(cuts, count):
    return list(zip(cuts, [*cuts[1:], count], strict=True))


def waste(levels, heads, cuts):
    return sum(
        int(heads[first:last] @ (levels[first:last] - levels[first]) ** 2) for first, last in spans(cuts, len(levels))
    )


def precision(levels, heads, cuts, variance=0.0):
    total = 0.0
    for first, last in spans(cuts, len(levels)):
        size = heads[first:last].sum()
        total += 1 / (variance / size + 2 / (size * levels[first] / MICRO) ** 2)
    return total


def all_cuts(count, groups):
    return [[0, *cuts] for cuts in combinations(range(1, count), groups - 1)]


@settings(deadline=None, derandomize=True)
@given(levels_and_heads, st.integers(1, 5))
def test_privacy_cuts_waste_the_least(profile, groups):
    levels, heads = profile
    groups = min(groups, len(levels))
    found = privacy_cuts(levels, heads, groups)
    assert groups == len(found)
    assert waste(levels, heads, found) == min(waste(levels, heads, cuts) for cuts in all_cuts(len(levels), groups))


@settings(deadline=None, derandomize=True)
@given(levels_and_heads, st.integers(1, 5), st.sampled_from([0.0, 0.1, 5.0]))
def test_precision_cuts_are_the_most_precise_of_at_most_so_many_groups(profile, groups, variance):
    levels, heads = profile
    levels = levels * 10_000
    for count, found in enumerate(precision_cuts(levels, heads, groups, variance), start=1):
        best = max(
            precision(levels, heads, cuts, variance)
            for fewer in range(1, min(count, len(levels)) + 1)
            for cuts in all_cuts(len(levels), fewer)
        )
        assert pytest.approx(best) == precision(levels, heads, found, variance)


def test_the_cuts_of_figure_1(golden):
    for vector in golden("pdp")["partitions"]:
        levels, heads = np.unique([int(Fraction(e) * MICRO) for e in vector["eps"]], return_counts=True)
        groups = min(vector["k"], len(levels))
        starts = np.append(0, np.cumsum(heads))
        by_privacy = privacy_cuts(levels, heads, groups)
        assert Fraction(vector["privacy_aware"]["W"]) * MICRO**2 == waste(levels, heads, by_privacy)
        assert [*(int(starts[cut]) for cut in by_privacy), len(vector["eps"])] in vector["privacy_aware"][
            "all_optimal_cuts"
        ]
        by_precision = precision_cuts(levels, heads, groups, 0.0)[-1]
        known = vector["utility_sum_(n*epsmin)^2"]
        assert pytest.approx(known["value_float"] / 2) == precision(levels, heads, by_precision)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(st.integers(0, 10**6))
def test_large_profiles_agree_with_the_full_dynamic_program(seed):
    rng = simulation(seed)
    levels = np.unique(rng.integers(1, 10**6, 120))
    heads = rng.integers(1, 50, len(levels))
    found = privacy_cuts(levels, heads, 6)
    assert full_program(levels, heads, 6) == waste(levels, heads, found)


def full_program(levels, heads, groups):
    """C_q(j) over all pairs of levels."""
    count = len(levels)
    cost = np.full((count + 1, count + 1), 2**60)
    for first in range(count):
        cost[first, first + 1 :] = np.cumsum(heads[first:] * (levels[first:] - levels[first]) ** 2)
    best = cost[0].copy()
    for _ in range(groups - 1):
        best = np.array([min(best[first] + cost[first, last] for first in range(count)) for last in range(count + 1)])
    return best[count]


def test_budgets_beyond_64_bits_are_cut_too():
    levels = np.array([10**8, 2 * 10**8, 9 * 10**8])
    assert [0, 2] == privacy_cuts(levels, np.array([10**6, 1, 10**6]), 2)


def test_many_levels_are_thinned_for_precision_and_little_is_lost():
    rng = simulation(3)
    levels = np.unique(rng.integers(10_000, 10**6, 5_000))
    heads = np.ones(len(levels), dtype=np.int64)
    found = precision_cuts(levels, heads, 4, 0.0)[-1]
    few = levels[:: len(levels) // 60]
    coarse = precision_cuts(few, np.diff(np.append(np.searchsorted(levels, few), len(levels))), 4, 0.0)[-1]
    rough = [int(np.searchsorted(levels, few[cut])) for cut in coarse]
    assert precision(levels, heads, found) >= 0.999 * precision(levels, heads, rough)


@settings(deadline=None, derandomize=True)
@given(levels_and_heads, st.integers(1, 6), st.integers(1, 12))
def test_no_group_is_smaller_than_the_smallest_allowed(profile, groups, smallest):
    """Every objective, against all partitions that keep the minimum size."""
    levels, heads = profile
    levels = levels * 10_000
    if heads.sum() < smallest:
        with pytest.raises(InvalidDeclaration, match="needs as many"):
            privacy_cuts(levels, heads, groups, smallest)
        return
    allowed = [
        cuts
        for count in range(1, min(groups, len(levels)) + 1)
        for cuts in all_cuts(len(levels), count)
        if np.add.reduceat(heads, cuts).min() >= smallest
    ]
    found = privacy_cuts(levels, heads, groups, smallest)
    assert np.add.reduceat(heads, found).min() >= smallest
    assert waste(levels, heads, found) == min(waste(levels, heads, cuts) for cuts in allowed)
    assert {len(cuts) for cuts in allowed} == {len(cuts) for cuts in privacy_cuts_each(levels, heads, groups, smallest)}
    by_precision = precision_cuts(levels, heads, groups, 0.1, smallest)[-1]
    best = max(precision(levels, heads, cuts, 0.1) for cuts in allowed)
    assert pytest.approx(best) == precision(levels, heads, by_precision, 0.1)

    def cubed(people, epsilon):
        return people**3 * epsilon

    by_utility = utility_cuts(levels, heads, groups, cubed, smallest)
    worth = [
        sum(cubed(heads[a:b].sum(), levels[a] / MICRO) for a, b in spans(cuts, len(levels)))
        for cuts in (*allowed, by_utility)
    ]
    assert pytest.approx(max(worth)) == worth[-1]


def test_every_number_of_groups_up_to_n_over_t_is_tried():
    """40 levels of 25 people. T = 100 leaves 1 to 10 groups; more were never tried before than 12."""
    levels, heads = np.arange(1, 41) * 25_000, np.full(40, 25)
    assert list(range(1, 41)) == [len(cuts) for cuts in privacy_cuts_each(levels, heads, 1_000)]
    assert list(range(1, 11)) == [len(cuts) for cuts in privacy_cuts_each(levels, heads, 1_000, 100)]
    specification = Specification(epsilons=tuple(levels.tolist()), people=tuple(heads.tolist()))
    belief = Belief(assume="independent", expect=(0.0, 0.0))
    free = propose(COUNT, specification, belief, cuts="privacy", ensemble="homogeneous")
    given_numbers = [
        propose(COUNT, specification, belief, cuts="privacy", ensemble="homogeneous", groups=count)
        for count in range(1, 41)
    ]
    assert min(mechanism.error.total for mechanism in given_numbers) == free.error.total
    floored = propose(COUNT, specification, belief, cuts="privacy", smallest=100, rounds=3)
    assert min(group.people(specification) for group in floored.groups) >= 100


def test_a_group_as_large_as_another_with_a_smaller_epsilon_can_be_dropped_and_pays_nothing():
    specification = Specification(epsilons=(100_000, 200_000, 900_000), people=(50, 20, 50))
    groups = tuple(Group((cohort,), level) for cohort, level in enumerate(specification.epsilons))
    assert groups[1:] == without_dominated(groups, specification)
    mechanism = propose(COUNT, specification, Belief(), groups=3, cuts="privacy", ensemble="homogeneous", drop=True)
    assert [0, 200_000, 900_000] == [loss.micro_epsilon for loss in mechanism.guarantee.losses.values()]


STATES = ((), ((0, 0),), ((0, 1),), ((0, 2),))
ASKED = {
    "median": Aggregate(kind="quantile", protects="presence", upper=2, rank=Fraction(1, 2)),
    "minimum": Aggregate(kind="quantile", protects="value", upper=2, rank=Fraction(0)),
    "maximum": Aggregate(kind="quantile", protects="presence", upper=2, rank=Fraction(1)),
    "mode": Aggregate(kind="mode", protects="value", upper=2),
    "variance": Aggregate(kind="variance", protects="presence", upper=2),
    "mean": Aggregate(kind="mean", protects="value", upper=2),
}


@pytest.mark.parametrize("cuts", ["precision", "privacy"])
@pytest.mark.parametrize("question", ASKED)
def test_nobody_loses_more_than_their_group(question, cuts):
    """All 4^4 datasets of four people, both neighbours of each; two groups."""
    universe = Universe((0.1, 0.2, 0.9, 1.0), STATES)
    mechanism = propose(ASKED[question], universe.specification, Belief(), groups=2, cuts=cuts)
    assert isinstance(mechanism, Committee)
    losses = check_nobody_loses_more_than_the_charge(mechanism, universe)
    assert max(losses) > 0


@pytest.mark.parametrize("question", ["median", "variance"])
def test_a_group_that_answers_at_its_largest_epsilon_is_noticed(question, monkeypatch):
    """The planted bug: the ε of the least strict member instead of the strictest."""
    universe = Universe((0.1, 0.2, 0.9, 1.0), STATES)

    def greedy(group, specification):
        prices = np.zeros(len(specification.epsilons), dtype=np.int64)
        prices[list(group.cohorts)] = max(specification.epsilons[cohort] for cohort in group.cohorts)
        return Scheme(prices=tuple(prices.tolist()), charges=tuple(prices.tolist()))

    monkeypatch.setattr(Group, "scheme", greedy)
    mechanism = propose(ASKED[question], universe.specification, Belief(), groups=2, cuts="privacy")
    assert {0, 1} & set(violations(losses_of(mechanism, universe), [0.1, 0.1, 0.9, 0.9]))


def test_a_committee_averages_numbers_and_elects_categories():
    specification = Specification(epsilons=(400_000_000, 900_000_000), people=(30, 70))
    histogram = np.zeros((1, 2, 11), dtype=np.int64)
    histogram[0, 0, 2], histogram[0, 1, 8] = 30, 70  # the groups' medians are 2 and 8
    statistics = Statistics(counts=np.array([[30, 70]]), histogram=histogram)
    median = Aggregate(kind="quantile", protects="value", upper=10, rank=Fraction(1, 2), complete=True)
    mechanism = propose(median, specification, Belief(), groups=2, cuts="privacy")
    weights = shares(mechanism.groups, specification)
    assert pytest.approx([(30 * 4) ** 2, (70 * 9) ** 2] / np.float64((30 * 4) ** 2 + (70 * 9) ** 2)) == weights
    assert pytest.approx(weights @ [2, 8]) == mechanism.release(statistics, simulation(1))[0]
    mode = Aggregate(kind="mode", protects="value", upper=10)
    elected = propose(mode, specification, Belief(), groups=2, cuts="privacy")
    assert [8.0] == elected.release(statistics, simulation(1)).tolist()


def test_ranks_and_ratios_are_answered_in_one_round_and_not_added_up():
    for options in ({"rounds": 2}, {"ensemble": "stratified"}):
        with pytest.raises(Unsuitable, match="cannot be added up"):
            propose(ASKED["median"], Specification.of([(MICRO, 9)]), Belief(), **options)


@pytest.mark.parametrize(
    ("levels", "heads", "groups"),
    [([1, 2], [1, 1], 0), ([], [], 1), ([2, 1], [1, 1], 1), ([0, 1], [1, 1], 1), ([1], [1, 1], 1)],
)
def test_impossible_cuts_are_refused(levels, heads, groups):
    with pytest.raises(InvalidDeclaration):
        privacy_cuts(np.array(levels, dtype=np.int64), np.array(heads, dtype=np.int64), groups)


def test_maximising_the_printed_utility_is_backwards(golden):
    """[LXJJ17] maximise an error: at k = 2 of Figure 1 its cuts have 6.7 times less precision."""
    vector = golden("pdp")["partitions"][0]
    levels = np.array([int(Fraction(e) * MICRO) for e in vector["eps"]])
    heads = np.ones(len(levels), dtype=np.int64)
    printed = vector["literal_max_of_variance(wrong)"]["cuts"][:-1]
    best = precision(levels, heads, precision_cuts(levels, heads, 2, 0.0)[-1])
    assert pytest.approx(6.66, abs=0.01) == best / precision(levels, heads, printed)


def test_the_printed_rule_for_the_number_of_groups_always_wants_more():
    """[LXJJ17] rule (1): Σ W_i / n_i falls to 0 at as many groups as levels, whatever the data."""
    levels, heads = np.arange(1, 21) * 50_000, np.full(20, 50)

    def rule(groups):
        cuts = privacy_cuts(levels, heads, groups)
        return sum(
            heads[first:last] @ (levels[first:last] - levels[first]) ** 2 / heads[first:last].sum()
            for first, last in spans(cuts, 20)
        )

    values = [rule(groups) for groups in range(1, 21)]
    assert values == sorted(values, reverse=True)
    assert 0 == values[-1]
    specification = Specification(epsilons=tuple(levels.tolist()), people=tuple(heads.tolist()))
    ours = propose(COUNT, specification, Belief(assume="independent"), cuts="privacy")
    theirs = propose(COUNT, specification, Belief(assume="independent"), cuts="privacy", groups=20)
    assert ours.error.total < theirs.error.total


def test_precision_is_monge_in_neither_direction():
    """Quadrangles of both signs, so divide and conquer would be wrong for it."""

    def signs(levels):
        def gain(first, last):
            return ((last - first) * levels[first]) ** 2

        return {
            float(np.sign(gain(a, c) + gain(b, d) - gain(a, d) - gain(b, c)))
            for a, b, c, d in combinations(range(5), 4)
        }

    assert {-1.0} == signs([0.10, 0.11, 0.12, 0.13])
    assert 1.0 in signs([0.01, 0.02, 0.3, 0.9])


def test_rounds_leave_what_the_paper_leaves(golden):
    """The digest's rounds: the leftovers' squares after each."""
    for vector in golden("pdp")["t_rounds"]:
        specification, cohort = Specification.assign([float(Fraction(e)) for e in vector["eps"]])
        for number, expected in enumerate(vector["rounds"], start=1):
            mechanism = propose(COUNT, specification, Belief(), groups=vector["k"], cuts="privacy", rounds=number)
            left = (specification.micro - paid(mechanism.groups, specification))[cohort]
            assert Fraction(expected["sumsq"]) * MICRO**2 == int((left**2).sum())
            assert int((left**2).sum()) <= expected["bound"] * MICRO**2 * (1 + 1e-12)


def test_stratified_groups_never_beat_the_minimum():
    specification = Specification(epsilons=(10_000, 50_000, 500_000), people=(50, 30, 20))
    minimum = MECHANISMS["minimum"](COUNT, specification, Belief()).error.total
    for groups in (1, 2, 3):
        error = propose(COUNT, specification, Belief(), groups=groups, ensemble="stratified").error
        assert 0 == error.bias
        assert error.total >= minimum * (1 - 1e-9)


def test_one_weighted_release_beats_every_partition_of_a_total():
    """Joint noise dominates group noise for linear statistics, but for the grid: noise on whole counts has a variance
    that is smaller by 1/6 than noise on whole micro-ε."""
    rng = simulation(12)
    for _ in range(30):
        specification = Specification.of(
            (int(level), int(people))
            for level, people in zip(rng.integers(5_000, 1e6, 6), rng.integers(1, 300, 6), strict=True)
        )
        for belief in (Belief(), Belief(assume="independent")):
            weighted = MECHANISMS["weighted"](COUNT, specification, belief).error.ranked
            for rounds in (1, 2):
                assert propose(COUNT, specification, belief, rounds=rounds).error.ranked ** 2 >= weighted**2 - 0.2


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("cuts", ["precision", "privacy"])
def test_the_homogeneous_error_is_what_random_preferences_give(cuts, rounds):
    """4,000 random assignments at density ½ with noise: RMSE within 6% of the prediction (standard error 1.5%)."""
    specification = Specification(epsilons=(20_000, 100_000, 300_000, 900_000), people=(300, 400, 200, 100))
    mechanism = propose(
        COUNT, specification, Belief(assume="independent"), groups=3, cuts=cuts, ensemble="homogeneous", rounds=rounds
    )
    rng = simulation(4)
    ones = rng.multivariate_hypergeometric(specification.heads, 500, size=4000)
    answers = np.array([mechanism.release(Statistics(counts=row[None]), rng)[0] for row in ones])
    assert pytest.approx(mechanism.error.total, rel=0.06) == sqrt(np.mean((answers - 500) ** 2))


def test_later_rounds_help_a_little():
    specification = Specification(epsilons=(20_000, 100_000, 300_000, 900_000), people=(300, 400, 200, 100))
    errors = [
        propose(COUNT, specification, Belief(assume="independent"), groups=2, rounds=rounds).error.total
        for rounds in (1, 2, 3)
    ]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    "options",
    [
        {"groups": 0},
        {"groups": 11},
        {"rounds": 0},
        {"cuts": "random"},
        {"ensemble": "vote"},
        {"smallest": 0},
        {"smallest": 11},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InvalidDeclaration):
        propose(COUNT, Specification(epsilons=(MICRO,), people=(10,)), Belief(), **options)


def test_more_groups_than_levels_are_as_many_as_levels():
    specification = Specification(epsilons=(100_000, 500_000), people=(5, 5))
    mechanism = propose(COUNT, specification, Belief(), groups=10, cuts="privacy")
    assert [(0,), (1,)] == [group.cohorts for group in mechanism.groups]


def test_a_mean_of_a_public_number_is_a_total_over_it():
    aggregate = Aggregate(kind="mean", protects="value", upper=4, complete=True, origin=Fraction(10))
    specification = Specification(epsilons=(900_000_000,), people=(4,))
    mechanism = propose(aggregate, specification, Belief())
    statistics = Statistics(counts=np.array([[4]]), totals=np.array([[6]], dtype=object))
    assert pytest.approx(11.5, abs=0.1) == mechanism.release(statistics, simulation(1))[0]


def test_the_noise_is_added_to_whole_numbers_however_large(monkeypatch):
    """A double would round the total first, and neighbouring totals could lie further apart than the sensitivity."""
    monkeypatch.setattr("discretion.noise.discrete_laplace", lambda scale, size, rng: np.full(size, -(2**60)))
    mechanism = propose(Aggregate(kind="sum", protects="value", upper=2**20), Specification.of([(MICRO, 9)]), Belief())
    totals = np.array([[2**60 + 1]], dtype=object)
    assert [1.0] == mechanism.release(Statistics(counts=np.array([[9]]), totals=totals), None).tolist()


def test_a_total_that_cannot_vary_is_answered_too():
    aggregate = Aggregate(kind="sum", protects="value", lower=2, upper=2, complete=True)
    mechanism = propose(aggregate, Specification.of([(1, 1), (MICRO, 1)]), Belief(), ensemble="homogeneous")
    assert 0 == mechanism.error.noise


@pytest.mark.parametrize("how", [{"ensemble": "stratified"}, {"groups": 1}, {"groups": 1, "ensemble": "homogeneous"}])
@pytest.mark.parametrize("people", [(800,), *((n, n + 46, n + 104) for n in range(1, 60, 7))])
def test_groups_that_are_added_up_count_in_whole_numbers(people, how):
    specification = Specification(epsilons=tuple(25_000_000 + n for n in range(len(people))), people=people)
    mechanism = propose(COUNT, specification, Belief(), **how)
    assert {1.0} == {*mechanism.coefficients}
    statistics = Statistics(counts=np.array([[n // 2 for n in people]]))
    answers = [mechanism.release(statistics, simulation(seed))[0] for seed in range(9)]
    assert all(answer == round(answer) for answer in answers)

"""Counts, sums, means, variances and histograms of arrays: right answers, honest errors, clear refusals."""

from math import sqrt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discretion as dn
from discretion.errors import DiscretionError, InvalidDeclaration, InvalidPreference, Unsuitable
from discretion.noise import simulation

N = 4000
EPSILON = np.tile([0.1, 0.5, 1.0, 0.5], N // 4)
AGES = np.arange(N) % 91
INCOME = (np.arange(N) * 37.25) % 1000
QUESTIONS = {
    "count": (lambda **how: dn.count(AGES > 45, epsilon=EPSILON, **how), float((AGES > 45).sum())),
    "sum": (lambda **how: dn.sum(AGES, epsilon=EPSILON, bounds=(0, 90), **how), float(AGES.sum())),
    "sum of floats": (lambda **how: dn.sum(INCOME, epsilon=EPSILON, bounds=(0, 1000), **how), INCOME.sum()),
    "mean": (lambda **how: dn.mean(AGES, epsilon=EPSILON, bounds=(0, 90), **how), AGES.mean()),
    "mean of floats": (lambda **how: dn.mean(INCOME, epsilon=EPSILON, bounds=(0, 1000), **how), INCOME.mean()),
    "variance": (lambda **how: dn.variance(AGES, epsilon=EPSILON, bounds=(0, 90), **how), AGES.var(ddof=1)),
    "variance of floats": (
        lambda **how: dn.variance(INCOME, epsilon=EPSILON, bounds=(0, 1000), **how),
        INCOME.var(ddof=1),
    ),
}


@pytest.mark.parametrize("assume", [None, "independent", 0.2])
@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_as_good_as_predicted(question, protects, assume):
    """25 seeded releases; RMSE at most 1.5 of the predicted one (a standard error is 17%, predictions are bounds)."""
    ask, truth = QUESTIONS[question]
    releases = [ask(protects=protects, assume=assume, rng=simulation(seed)) for seed in range(25)]
    rmse = sqrt(np.mean([(release.value - truth) ** 2 for release in releases]))
    assert rmse <= 1.5 * max(release.error.total for release in releases)


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_intervals_cover(question, protects):
    """95% intervals of 40 releases miss at most 8 times (a fair coin of 5% misses more once in 7,000)."""
    ask, truth = QUESTIONS[question]
    intervals = [ask(protects=protects, rng=simulation(seed)).interval() for seed in range(40)]
    assert sum(not low <= truth <= high for low, high in intervals) <= 8


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_a_variance_of_few_people_divides_by_one_less_than_their_number(protects):
    how = {"epsilon": np.full(4, 1000.0), "bounds": (0, 100), "protects": protects}
    assert pytest.approx(10_000 / 3, rel=0.01) == dn.variance([0, 0, 100, 100], **how).value
    assert pytest.approx(2_500, rel=0.01) == dn.variance([0, 0, 100, 100], population=True, **how).value


@pytest.mark.parametrize("people", [3, 8, 30])
def test_intervals_of_a_sample_variance_cover_few_people(people):
    """95% intervals of 40 releases miss at most 8 times (a fair coin of 5% misses more once in 7,000)."""
    values = np.where(np.arange(40) < people, np.arange(40) % 3 * 50.0, np.nan)
    truth = np.nanvar(values, ddof=1)
    releases = [
        dn.variance(values, epsilon=np.full(40, 20.0), bounds=(0, 100), rng=simulation(seed)) for seed in range(40)
    ]
    assert sum(not r.interval()[0] <= truth <= r.interval()[1] for r in releases) <= 8
    assert all(0 <= r.value <= r.error.limits[1] == 5000 for r in releases)


def test_the_interval_of_a_mean_knows_how_many_people_it_is_about():
    """One person in forty has a value: the error before the release cannot know, the one after it does."""
    values = np.where(np.arange(N) // 4 % 40 == 0, INCOME, np.nan)
    truth = np.nanmean(values)
    releases = [
        dn.mean(values, epsilon=EPSILON, bounds=(0, 1000), assume="independent", rng=simulation(seed))
        for seed in range(40)
    ]
    missed = sum(not r.interval()[0] <= truth <= r.interval()[1] for r in releases)
    assert missed <= 8
    assert all("chose their privacy like everybody" in release.error.assumption for release in releases)
    full = dn.mean(INCOME, epsilon=EPSILON, bounds=(0, 1000), assume="independent", rng=simulation(1))
    assert releases[0].error.total > 10 * full.error.total


def test_a_mean_over_nobody_may_be_anything_and_says_so():
    release = dn.mean(np.full(N, np.nan), epsilon=EPSILON, bounds=(0, 1000), rng=simulation(2))
    assert (0, 1000) == release.interval()


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_a_histogram_counts_every_category_and_no_other(protects):
    colours = np.array(["red", "green", "blue", "mauve"])[np.arange(N) % 4]
    release = dn.histogram(
        colours, categories=["green", "red", "grey"], epsilon=EPSILON, protects=protects, rng=simulation(1)
    )
    assert ("green", "red", "grey") == release.columns["category"]
    for value, error, truth in zip(release.value, release.error, (1000, 1000, 0), strict=True):
        assert pytest.approx(truth, abs=5 * error.total) == value


def test_a_histogram_costs_twice_the_noise_where_values_are_protected():
    """Changing a value moves two bins. The worst case of everybody in one bin is part of neither's noise."""
    colours = np.array(["red", "green"])[np.arange(N) % 2]
    how = {"categories": ["red", "green"], "epsilon": np.full(N, 0.02), "mechanism": "minimum"}
    by_value, by_presence = (dn.histogram(colours, protects=p, **how).error[0].noise for p in ("value", "presence"))
    assert pytest.approx(2, rel=1e-3) == by_value / by_presence


@pytest.mark.parametrize(
    "library", [list, pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values[:9], values[9:]])]
)
def test_every_library_gives_the_same_answer(library):
    """Types that may hold missing values are planned as such, so NumPy's floats are the comparison."""
    expected = dn.sum(INCOME, epsilon=EPSILON, bounds=(0, 1000), rng=simulation(7)).value
    found = dn.sum(library(INCOME), epsilon=library(EPSILON), bounds=(0, 1000), rng=simulation(7)).value
    assert expected == found


def test_a_missing_value_adds_nothing_and_its_person_is_charged_like_everybody():
    values = np.where(AGES % 2 == 0, INCOME, np.nan)
    release = dn.sum(values, epsilon=EPSILON, bounds=(0, 1000), rng=simulation(1))
    assert pytest.approx(np.nansum(values), abs=5 * release.error.total) == release.value
    without = dn.sum(INCOME, epsilon=EPSILON, bounds=(0, 1000), rng=simulation(1))
    assert release.guarantee == without.guarantee
    assert release.error == without.error


def test_the_plan_does_not_depend_on_the_values():
    """Guarantee, mechanism, explanation: the same for any data of the same type."""
    one, other = (
        dn.mean(values, epsilon=EPSILON, bounds=(0, 1000), rng=simulation(1))
        for values in (INCOME, np.where(AGES > 3, np.nan, -1e308))
    )
    assert one.guarantee == other.guarantee
    assert one.explain() == other.explain()


def test_the_plan_for_a_list_does_not_depend_on_what_is_in_it():
    one, other = (
        dn.mean(values, epsilon=[0.5] * 4, bounds=(0, 1000), rng=simulation(1))
        for values in ([1, 2, 3, 4], [1.5, None, 3, 4.25])
    )
    assert one.explain() == other.explain()
    assert one.guarantee == other.guarantee


def test_required_values_make_the_number_public_and_missing_ones_the_bound_nearest_0():
    values = INCOME.copy()
    values[:40] = np.nan
    release = dn.mean(values, epsilon=EPSILON, bounds=(100, 1000), required=True, rng=simulation(1))
    truth = np.clip(np.nan_to_num(values), 100, 1000).mean()
    assert pytest.approx(truth, abs=5 * release.error.total) == release.value
    assert "everybody has one row with a value" not in release.error.assumption


def test_a_required_sum_needs_noise_for_the_width_of_the_bounds_only():
    values = 900 + INCOME / 10
    values[:40] = np.nan
    how = {"epsilon": EPSILON, "bounds": (900, 1000), "rng": simulation(1), "mechanism": "minimum"}
    free, required = dn.sum(values, **how), dn.sum(values, required=True, **how)
    assert pytest.approx(10, rel=1e-3) == free.error.noise / required.error.noise
    truth = np.nan_to_num(values, nan=900).sum()
    assert pytest.approx(truth, abs=8 * required.error.noise) == required.value


def test_values_are_clamped_to_the_bounds():
    release = dn.sum(AGES, epsilon=np.full(N, 100.0), bounds=(10, 20))
    assert pytest.approx(np.clip(AGES, 10, 20).sum(), abs=5) == release.value


def test_whole_numbers_are_not_shifted_by_bounds_between_them():
    release = dn.mean(AGES, epsilon=np.full(N, 900.0), bounds=(-0.5, 90.5))
    assert pytest.approx(AGES.mean(), abs=1e-3) == release.value


def test_large_totals_are_exact_integers_before_the_noise():
    """Sums and squares of nine-digit numbers: a double would lose the last digits."""
    values = np.full(N, 999_999_999)
    release = dn.sum(values, epsilon=np.full(N, 1000.0), bounds=(0, 10**9))
    assert pytest.approx(values.sum(), abs=1e8) == release.value


def test_someone_who_chose_0_is_left_out():
    epsilon = np.where(np.arange(N) < 10, 0.0, 500.0)
    bits = np.arange(N) < 10
    release = dn.count(bits, epsilon=epsilon, mechanism="minimum")
    assert pytest.approx(0, abs=1) == release.value
    assert 10 == release.error.bias
    assert 0 == release.guarantee.losses[0].micro_epsilon


@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "stretch", "partition", "exponential", "weighted"])
def test_every_mechanism_answers_by_name(name):
    release = dn.count(AGES > 45, epsilon=EPSILON, mechanism=name)
    assert name == release.mechanism
    assert not release.simulated
    assert abs(release.value - (AGES > 45).sum()) <= release.error.half_width(1 - 1e-9)  # real noise: one run in 1e9


def test_an_expectation_may_be_any_pair():
    one, other = (
        dn.count(AGES > 45, epsilon=EPSILON, expect=pair, rng=simulation(1))
        for pair in [(0, 0.5), [0, np.float64(0.5)]]
    )
    assert one.error == other.error


def test_options_follow_the_name():
    release = dn.count(AGES > 45, epsilon=EPSILON, mechanism="sample", options={"threshold": "mean"})
    mean = round(EPSILON.mean() * 1e6)
    assert {100_000, 500_000, mean} == {loss.micro_epsilon for loss in release.guarantee.losses.values()}
    assert release.explain().startswith("count: sample\n")


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda: dn.count([True], epsilon=[0.1, 0.2]), InvalidDeclaration, "one epsilon per person"),
        (lambda: dn.count([True], epsilon=[float("nan")]), InvalidPreference, "missing, negative, infinite"),
        (lambda: dn.count([True], epsilon=[-0.1]), InvalidPreference, "missing, negative, infinite"),
        (lambda: dn.count([True], epsilon=[float("inf")]), InvalidPreference, "missing, negative, infinite"),
        (lambda: dn.count([True], epsilon=["strict"]), InvalidPreference, "must be numbers"),
        (lambda: dn.count([True, True], epsilon=[[0.1, 0.1]]), InvalidDeclaration, "one epsilon per person"),
        (lambda: dn.count([True], epsilon={"Ada": 0.1}), InvalidDeclaration, "needs person="),
        (lambda: dn.count([], epsilon=[]), InvalidPreference, "one epsilon per person"),
        (lambda: dn.count([True, True], epsilon=[0, 0]), InvalidPreference, "above 0"),
        (lambda: dn.sum([1.0], epsilon=[1]), InvalidDeclaration, "sum needs bounds="),
        (
            lambda: dn.sum([1.0], epsilon=[1], bonds=(0, 1)),
            InvalidDeclaration,
            "'bonds'. Did you mean 'bounds'",
        ),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=(0, 1), grid=1), InvalidDeclaration, "no option 'grid'"),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=None), InvalidDeclaration, "without looking"),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=(5, 1)), InvalidDeclaration, "below the upper"),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=(1, 1)), InvalidDeclaration, "below the upper"),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=(0, float("inf"))), InvalidDeclaration, "finite"),
        (lambda: dn.median([1.0], epsilon=[1], bounds=(0, 1), grid=0), InvalidDeclaration, "grid must be"),
        (lambda: dn.median([1.0], epsilon=[1], bounds=(0, 1e12), grid=1e-6), InvalidDeclaration, "coarser grid"),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=(0, 1e300)), InvalidDeclaration, "within"),
        (lambda: dn.sum([1.0], epsilon=[1], bounds=(0, 1e-300)), InvalidDeclaration, "closer"),
        (lambda: dn.sum(["a"], epsilon=[1], bounds=(0, 1)), InvalidDeclaration, "must be numbers"),
        (lambda: dn.histogram(["a"], epsilon=[1], categories=[]), InvalidDeclaration, "categories"),
        (lambda: dn.histogram(["a"], epsilon=[1], categories=["a", "a"]), InvalidDeclaration, "different"),
        (lambda: dn.histogram(["a"], epsilon=[1], categories=[1]), InvalidDeclaration, "type"),
        (lambda: dn.count([True], epsilon=[1], protects="both"), InvalidDeclaration, "protects"),
        (
            lambda: dn.mean([1.0], epsilon=[1], bounds=(0, 1), required=True, protects="presence"),
            InvalidDeclaration,
            'needs protects="value"',
        ),
        (
            lambda: dn.median([1.0], epsilon=[1], bounds=(0, 1), required=True, protects="presence"),
            InvalidDeclaration,
            'needs protects="value"',
        ),
        (lambda: dn.count([True], epsilon=[1], assume="maybe"), InvalidDeclaration, "assume"),
        (lambda: dn.count([True], epsilon=[1], assume=2), InvalidDeclaration, "assume"),
        (lambda: dn.count([True], epsilon=[1], expect=(1, 0)), InvalidDeclaration, "expect"),
        (lambda: dn.count([True], epsilon=[1], expect=(2, 3)), InvalidDeclaration, "overlap"),
        (lambda: dn.count([True], epsilon=[1], expect=0.5), InvalidDeclaration, "expect"),
        (lambda: dn.count([True], epsilon=[1], expect=(0, 1, 2)), InvalidDeclaration, "expect"),
        (lambda: dn.count([True], epsilon=[1], expect=("a", "b")), InvalidDeclaration, "expect"),
        (lambda: dn.count([True], epsilon=[1], mechanism="magic"), InvalidDeclaration, "mechanism"),
        (lambda: dn.count([True], epsilon=[1], options={"threshold": 1}), InvalidDeclaration, "need mechanism="),
        (
            lambda: dn.count([True], epsilon=[1], mechanism="threshold", options={"threshold": 2}),
            Unsuitable,
            "leaves everybody out",
        ),
        (
            lambda: dn.count([True], epsilon=[1], mechanism="partition", options={"groups": 9}),
            InvalidDeclaration,
            "groups",
        ),
    ],
)
def test_bad_input_is_refused_clearly(ask, error, says):
    with pytest.raises(error, match=says):
        ask()


def test_errors_never_quote_a_value():
    for values in (["patient zero", 7.25], [7.25, "patient zero"], [{"name": "patient zero"}]):
        with pytest.raises(DiscretionError) as refusal:
            dn.sum(values, epsilon=[1] * len(values), bounds=(0, 1))
        assert "patient" not in str(refusal.value)
        assert "7.25" not in str(refusal.value)


def test_a_release_by_the_secure_source_differs_every_time():
    answers = {dn.sum(AGES, epsilon=EPSILON, bounds=(0, 90)).value for _ in range(5)}
    assert len(answers) > 1


def test_the_number_of_groups_or_levels_may_be_one():
    assert isinstance(dn.count(np.array([True]), epsilon=[1.0]).value, float)
    assert 1 == len(dn.histogram(np.array([3]), categories=[3], epsilon=[1.0]))

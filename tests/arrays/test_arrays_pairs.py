"""Two columns of arrays: covariance, correlation and slope are NumPy's at a huge epsilon, and odd input is refused."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discretion as dn
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation

N = 3_000
HUGE = 1_000.0  # an ε at which answers are the plain ones
DRAW = simulation(5)
X = DRAW.uniform(-20, 110, N)  # some of them are outside the bounds
Y = 3 + 0.5 * np.clip(X, 0, 100) + DRAW.normal(0, 8, N)
BOUNDS = {"x_bounds": (0, 100), "y_bounds": (0, 60)}
QUESTIONS = {
    "covariance": (dn.covariance, lambda x, y: np.cov(x, y)[0, 1]),
    "population": (
        lambda *given, **how: dn.covariance(*given, population=True, **how),
        lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    ),
    "correlation": (dn.correlation, lambda x, y: np.corrcoef(x, y)[0, 1]),
    "slope": (dn.slope, lambda x, y: np.polyfit(x, y, 1)[0]),
}


def truth(statistic, chosen=slice(None), x=X, y=Y):
    """What NumPy says about clamped values, over rows that have both."""
    x, y = x[chosen], y[chosen]
    there = np.isfinite(x) & np.isfinite(y)
    return statistic(np.clip(x[there], 0, 100), np.clip(y[there], 0, 60))


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_numpy_s_at_a_huge_epsilon(question, protects):
    """Each interval misses once in a billion."""
    asked, statistic = QUESTIONS[question]
    x, y = np.where(np.arange(N) % 11 == 0, np.nan, X), np.where(np.arange(N) % 13 == 0, np.inf, Y)
    region, keys = np.array(["N", "S"])[np.arange(N) % 2], ["S", "N"]
    how = {"epsilon": HUGE, "protects": protects, **BOUNDS}
    every = {"all": asked(x, y, **how), "by": asked(x, y, by={"region": region}, keys={"region": keys}, **how)}
    every["people"] = asked(x, y, person=np.arange(N) // 3, rows_per_person=3, **how)
    for name, release in every.items():
        chosen = [region == key for key in keys] if name == "by" else [slice(None)]
        ((column, errors),) = release.errors.items()
        for rows, value, error in zip(chosen, release.columns[column], errors, strict=True):
            exact = truth(statistic, rows, x, y)
            low, high = error.interval(value, 1 - 1e-9)
            assert low <= exact <= high
            assert error.half_width() < 0.02 * abs(exact)
    assert keys == list(every["by"].columns["region"])
    assert {"paired"} == {release.mechanism for release in every.values()}


def test_columns_may_be_of_any_library_and_slope_is_of_y_on_x():
    for library in (list, pd.Series, pl.Series, pa.array):
        release = dn.slope(library(X), library(Y), epsilon=HUGE, **BOUNDS, rng=simulation(1))
        assert truth(QUESTIONS["slope"][1]) == pytest.approx(release.value, rel=0.01)
    turned = dn.slope(Y, X, epsilon=HUGE, x_bounds=(0, 60), y_bounds=(0, 100), rng=simulation(1))
    assert truth(lambda x, y: np.polyfit(y, x, 1)[0]) == pytest.approx(turned.value, rel=0.01)


def test_intervals_cover_with_real_noise():
    """95% intervals; seeded."""
    exact = truth(QUESTIONS["correlation"][1])
    found = [dn.correlation(X, Y, epsilon=1.0, **BOUNDS, rng=simulation(seed)).interval() for seed in range(20)]
    assert sum(low <= exact <= high for low, high in found) >= 17


def test_nobody_who_varies_gives_no_answer_instead_of_a_number():
    nobody = dn.slope(np.full(50, np.nan), np.full(50, np.nan), epsilon=0.01, **BOUNDS, rng=simulation(2))
    assert nobody.value is None
    assert "None" in str(nobody)
    assert (None, None) == (nobody.low, nobody.high)


def test_the_plan_does_not_depend_on_the_values():
    one = dn.slope(X, Y, epsilon=1.0, **BOUNDS, rng=simulation(2))
    other = dn.slope(np.zeros(N), np.full(N, np.nan), epsilon=1.0, **BOUNDS, rng=simulation(2))
    assert one.explain() == other.explain()
    assert one.guarantee == other.guarantee


DATES = (date(2020, 1, 1), date(2021, 1, 1))
REFUSED = {
    "no bounds of x": (lambda: dn.slope(X, Y, epsilon=1, y_bounds=(0, 1)), "slope needs x_bounds=. Give x_bounds="),
    "no bounds of y": (lambda: dn.slope(X, Y, epsilon=1, x_bounds=(0, 1)), "slope needs y_bounds=. Give y_bounds="),
    "one for both": (lambda: dn.slope(X, Y, epsilon=1, bounds=(0, 1)), "no option 'bounds'. Did you mean 'y_bounds'"),
    "backwards": (lambda: dn.slope(X, Y, epsilon=1, x_bounds=(0, 1), y_bounds=(1, 0)), "y_bounds=(1, 0)"),
    "not a pair": (lambda: dn.slope(X, Y, epsilon=1, x_bounds=3, y_bounds=(1, 0)), "x_bounds must be (low, high)"),
    "dates": (lambda: dn.slope(X, Y, epsilon=1, x_bounds=DATES, y_bounds=(0, 1)), "needs numbers, and x_bounds are"),
    "length": (lambda: dn.correlation(X, Y[1:], epsilon=1, **BOUNDS), "y must have one entry per row, got 2999"),
    "rows": (
        lambda: dn.correlation(X, Y, epsilon=1, **BOUNDS, person=np.arange(N), rows_per_person=10**6),
        "correlation needs fewer rows per person than 1,000,000",
    ),
    "person": (lambda: dn.correlation(X, Y, epsilon=1, **BOUNDS, rows_per_person=2), "Give both or neither"),
    "mechanism": (lambda: dn.covariance(X, Y, epsilon=1, **BOUNDS, mechanism="sample"), "no option 'mechanism'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_odd_input_is_refused_with_advice(case):
    ask, says = REFUSED[case]
    with pytest.raises(InvalidDeclaration) as refusal:
        ask()
    assert says in str(refusal.value)

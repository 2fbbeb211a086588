"""Values are put on a grid. Where there is hardly any noise, intervals hold the answer about the values themselves."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discretion as dn
from discretion.mechanisms.rounding import with_rounding
from discretion.noise import simulation
from discretion.release import Error
from discretion.statistics import Aggregate, gridded

PEOPLE = 3_000
RNG = simulation(3)
# between two steps of every grid, so that rounding does not average out
VALUES = np.floor(RNG.random(PEOPLE) * 90) + 0.4449
OTHERS = np.floor(RNG.random(PEOPLE) * 9 + VALUES / 100) / 10 + 0.0449
HUGE = np.full(PEOPLE, 1_000.0)
ARRAYS = {
    "sum": (dn.sum, VALUES.sum(), {}),
    "mean": (dn.mean, VALUES.mean(), {}),
    "variance": (dn.variance, VALUES.var(ddof=1), {}),
    "std": (dn.std, VALUES.std(ddof=1), {}),
    "population std": (dn.std, VALUES.std(), {"population": True}),
    "median": (dn.median, np.sort(VALUES)[PEOPLE // 2 - 1], {"with_interval": True}),
    "coarse median": (dn.median, np.sort(VALUES)[PEOPLE // 2 - 1], {"with_interval": True, "grid": 7}),
    "max": (dn.max, VALUES.max(), {"with_interval": True, "grid": 7}),
}


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("name", list(ARRAYS))
def test_intervals_of_arrays_hold_the_answer_about_unrounded_values(name, protects):
    ask, truth, how = ARRAYS[name]
    release = ask(VALUES, epsilon=HUGE, bounds=(0, 100), protects=protects, rng=simulation(1), **how)
    low, high = release.interval()
    assert low <= truth <= high
    assert high - low < 0.05 * abs(truth) or "grid" in how


@pytest.mark.parametrize("assume", [None, "gradual", "independent"])
def test_intervals_of_sql_hold_the_answer_about_unrounded_values(tmp_path, assume):
    frame = pd.DataFrame({"person": range(PEOPLE), "epsilon": HUGE, "x": VALUES, "y": OTHERS})
    frame.to_parquet(tmp_path / "t.parquet")
    db = dn.connect(str(tmp_path / "t.discretion"))
    db.protect(
        "t", str(tmp_path / "t.parquet"), person="person", epsilon="epsilon", bounds={"x": (0, 100), "y": (0, 1)}
    )
    asked = {
        "SUM(x)": VALUES.sum(),
        "AVG(x)": VALUES.mean(),
        "STDDEV(x)": VALUES.std(ddof=1),
        "VAR_POP(x)": VALUES.var(),
        "COVAR_POP(y, x)": np.cov(VALUES, OTHERS, ddof=0)[0, 1],
        "CORR(y, x)": np.corrcoef(VALUES, OTHERS)[0, 1],
        "REGR_SLOPE(y, x)": np.polyfit(VALUES, OTHERS, 1)[0],
    }
    for sql, truth in asked.items():
        release = db.sql(f"SELECT {sql} AS a FROM t", share=0.1, assume=assume)
        low, high = release.interval(1 - 1e-11)[0] if isinstance(release.value, tuple) else release.interval(1 - 1e-11)
        assert low <= truth <= high, sql
    joint = db.sql("SELECT SUM(x) AS s, AVG(x) AS m, COUNT(x) AS n FROM t", share=0.1, assume=assume)
    ((total, mean, _),) = joint.interval(1 - 1e-11)
    assert total[0] <= VALUES.sum() <= total[1]
    assert mean[0] <= VALUES.mean() <= mean[1]


@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_whole_numbers_are_not_rounded_unless_there_are_too_many(kind):
    assert 0 == gridded(kind, Fraction(0), Fraction(90), whole=True, protects="value").rounding
    coarse = gridded(kind, Fraction(0), Fraction(10**12), whole=True, protects="value")
    assert 1 < coarse.step == 2 * coarse.rounding


def test_intervals_without_rounding_would_be_noticed(monkeypatch):
    monkeypatch.setattr("discretion.plan.with_rounding", lambda aggregate, people, values, errors: errors)
    low, high = dn.std(VALUES, epsilon=HUGE, bounds=(0, 100), rng=simulation(1)).interval()
    assert not low <= VALUES.std(ddof=1) <= high


def test_the_last_candidate_of_a_quantile_may_be_further_from_the_bound_than_half_a_step():
    shape = gridded(
        "quantile", Fraction(0), Fraction(5), whole=False, protects="value", step=Fraction(3), rank=Fraction(1)
    )
    assert (1, 2) == (shape.upper, shape.rounding)


@pytest.mark.parametrize("sample", [False, True])
def test_rounding_moves_a_variance_by_no_more_than_is_said(sample):
    """Also for two people, whose sample variance counts twice."""
    shape = Aggregate(kind="variance", protects="value", upper=10, sample=sample, rounding=Fraction(1, 2))
    for seed in range(200):
        rng = simulation(seed)
        values = rng.random(int(rng.integers(2, 9))) * 10
        found = np.array([np.rint(values).var(ddof=int(sample))])
        (error,) = with_rounding(shape, values.size, found, (Error(bias=0.0, noise=0.0),))
        low, high = error.interval(found[0])
        assert low <= values.var(ddof=int(sample)) <= high


def test_errors_in_ranks_name_the_step_of_the_grid():
    shape = Aggregate(kind="quantile", protects="value", upper=10, rank=Fraction(1, 2), rounding=Fraction(1, 2))
    error = Error(bias=0.1, noise=0.1, unit="rank")
    assert (replace(error, step=1.0),) == with_rounding(shape, 10, np.array([3.0]), (error,))
    wider = with_rounding(shape, 10, np.array([3.0]), (replace(error, unit="value"),))
    assert 0.6 == pytest.approx(wider[0].bias)

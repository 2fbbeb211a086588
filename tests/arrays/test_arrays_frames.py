"""Data frames: several rows of a person, groups, level names, dates and bins give what pandas and NumPy give."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discretion as dn
from discretion.engines.arrays import ArrayRows, compute, limited
from discretion.engines.values import numbers
from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.noise import inclusion_threshold, simulation
from discretion.statistics import Aggregate, Measure, Request

N = 3_000
HUGE = 1_000.0  # an ε at which answers are the plain ones
FRAME = pd.DataFrame(
    {
        "person": np.arange(N) // 3,  # three rows each
        "age": np.arange(N) * 7 % 80,
        "income": np.arange(N) * 37.25 % 1_000,
        "region": np.array(["N", "S", "W"])[np.arange(N) % 3],
        "sex": np.array(["f", "m"])[np.arange(N) // 5 % 2],
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) % 365, unit="D"),
    }
)
OWNED = {"person": FRAME["person"], "rows_per_person": 3}
MONEY = (0, 1_000)


def near(truth, share=1e-3):
    return pytest.approx(truth, rel=share, abs=1e-2)


# What pandas gives ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("owned", [{}, OWNED])
def test_groups_are_those_of_pandas(protects, owned):
    how = {"epsilon": HUGE, "by": FRAME["region"], "keys": ["N", "S", "E"], "protects": protects, **owned}
    truth = FRAME.groupby("region")["income"]
    release = dn.mean(FRAME["income"], bounds=MONEY, **how).to_pandas().set_index("region")
    assert ["N", "S", "E"] == list(release.index)
    for key in ("N", "S"):
        assert near(truth.mean()[key]) == release.loc[key, "mean"]
    total = dn.sum(FRAME["income"], bounds=MONEY, **how).value
    assert [truth.sum()["N"], truth.sum()["S"], 0.0] == pytest.approx(list(total), abs=500)
    middle = dn.median(FRAME["income"], bounds=MONEY, grid=0.25, **how).value
    assert [truth.quantile(0.5, "lower")[key] for key in ("N", "S")] == pytest.approx(middle[:2], abs=1)


def test_two_columns_of_groups_are_crossed():
    release = dn.count(
        FRAME["age"] > 40,
        epsilon=HUGE,
        by={"region": FRAME["region"], "sex": FRAME["sex"]},
        keys={"sex": ["f", "m"], "region": ["N", "S", "W"]},
    )
    truth = FRAME[FRAME["age"] > 40].groupby(["region", "sex"]).size()
    found = release.to_pandas().set_index(["region", "sex"])["count"]
    assert [("N", "f"), ("N", "m"), ("S", "f")] == list(found.index[:3])
    assert near(truth.tolist()) == found.loc[truth.index].tolist()


@pytest.mark.parametrize("library", [pd.Series, pl.Series, pa.array, list])
def test_groups_may_be_of_any_library(library):
    release = dn.count(library(FRAME["age"] > 40), epsilon=HUGE, by=library(FRAME["region"]), keys=["S"])
    assert near([((FRAME["age"] > 40) & (FRAME["region"] == "S")).sum()]) == list(release.value)


@pytest.mark.parametrize("population", [False, True])
def test_a_standard_deviation_is_that_of_numpy(population):
    truth = FRAME["income"].std(ddof=0 if population else 1)
    release = dn.std(FRAME["income"], epsilon=HUGE, bounds=MONEY, population=population)
    assert near(truth) == release.value


def test_the_interval_of_a_standard_deviation_covers():
    """95% intervals of 40 releases miss at most 8 times (a fair coin of 5% misses more once in 7,000)."""
    truth = FRAME["income"].std()
    releases = [dn.std(FRAME["income"], epsilon=0.05, bounds=MONEY, rng=simulation(seed)) for seed in range(40)]
    assert sum(not one.low <= truth <= one.high for one in releases) <= 8
    rmse = np.sqrt(np.mean([(one.value - truth) ** 2 for one in releases]))
    assert rmse <= 1.5 * max(one.error.total for one in releases)
    nothing = dn.std(np.zeros(N), epsilon=0.05, bounds=MONEY, rng=simulation(3))
    assert nothing.low <= 0 <= nothing.high


@pytest.mark.parametrize("edges", [[0, 18, 65, 80], [5.0, 79.0]])
def test_bins_are_those_of_numpy(edges):
    release = dn.histogram(FRAME["age"], bins=edges, epsilon=HUGE)
    truth, _ = np.histogram(FRAME["age"], bins=edges)
    assert near(truth.tolist()) == list(release.value)
    assert (tuple(edges[:-1]), tuple(edges[1:])) == (release.columns["left"], release.columns["right"])


def test_equal_bins_need_bounds():
    release = dn.histogram(FRAME["income"], bins=8, bounds=(0, 1_000), epsilon=HUGE, **OWNED)
    truth, _ = np.histogram(FRAME["income"], bins=8, range=(0, 1_000))
    assert near(truth.tolist()) == list(release.value)


def test_bins_may_be_dates_and_have_groups():
    edges = [date(2020, 1, 1), date(2020, 2, 1), date(2020, 4, 1)]
    release = dn.histogram(FRAME["day"], bins=edges, epsilon=HUGE, by=FRAME["sex"], keys=["f", "m"])
    cut = pd.cut(FRAME["day"], pd.to_datetime(edges), right=False)
    truth = FRAME.groupby(["sex", cut], observed=False).size()
    last = (FRAME["day"] == "2020-04-01") & (FRAME["sex"] == "f")
    assert truth.tolist()[0] == pytest.approx(release.value[0], abs=1e-2)
    assert truth.tolist()[1] + last.sum() == pytest.approx(release.value[1], abs=1e-2)
    assert ["f", "f", "m", "m"] == [row[0] for row in release]


# Dates ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "days",
    [
        FRAME["day"],
        FRAME["day"].to_numpy(),
        FRAME["day"].dt.date.tolist(),
        pa.array(FRAME["day"].dt.date),
        FRAME["day"].to_numpy().astype("datetime64[D]"),
    ],
)
def test_dates_have_medians_and_means(days):
    year = (date(2020, 1, 1), date(2020, 12, 31))
    middle = dn.median(days, epsilon=HUGE, bounds=year)
    assert FRAME["day"].quantile(0.5, "lower").date() == middle.value
    assert type(middle.value) is date
    assert middle.low is None
    truth = FRAME["day"].mean().to_pydatetime()
    assert abs(dn.mean(days, epsilon=HUGE, bounds=year).value - truth) < timedelta(hours=6)
    average = dn.mean(days, epsilon=0.5, bounds=year, rng=simulation(1))
    assert average.low <= truth <= average.high
    assert "2020-" in str(average)
    assert {"mean", "mean_low", "mean_high", "mean_rmse"} == set(average.to_pandas().columns)


def test_an_interval_of_dates_is_in_dates():
    release = dn.median(
        FRAME["day"], epsilon=1.0, bounds=(date(2019, 1, 1), date(2021, 1, 1)), with_interval=True, rng=simulation(1)
    )
    assert release.low <= release.value <= release.high
    assert type(release.low) is type(release.high) is date
    assert f"({release.low} to {release.high})" in str(release)


def test_times_with_a_zone_are_times_in_utc():
    times = FRAME["day"].dt.tz_localize("Europe/Vienna")
    bounds = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC))
    largest = dn.quantile(times, 0.75, epsilon=HUGE, bounds=bounds, grid=timedelta(hours=6))
    truth = times.quantile(0.75).to_pydatetime()
    assert abs(largest.value - truth) < timedelta(days=2)
    assert UTC == largest.value.tzinfo


def test_missing_dates_count_nowhere():
    days = FRAME["day"].where(FRAME["sex"] == "f")
    release = dn.histogram(days, bins=[date(2019, 1, 1), date(2022, 1, 1)], epsilon=HUGE)
    assert near([(FRAME["sex"] == "f").sum()]) == list(release.value)


# Preferences ---------------------------------------------------------------------------------------------------------


def test_one_epsilon_for_everybody_is_one_for_each():
    how = {"bounds": MONEY, "rng": simulation(1)}
    one = dn.sum(FRAME["income"], epsilon=0.5, **how)
    each = dn.sum(FRAME["income"], epsilon=np.full(N, 0.5), **(how | {"rng": simulation(1)}))
    assert (one.value, one.guarantee) == (each.value, each.guarantee)


def test_levels_have_names():
    names = np.where(FRAME["age"] > 40, "strict", "open")
    levels = {"strict": 0.1, "open": 1.0}
    named = dn.count(FRAME["age"] > 40, epsilon=names, levels=levels, rng=simulation(1))
    plain = dn.count(FRAME["age"] > 40, epsilon=np.where(FRAME["age"] > 40, 0.1, 1.0), rng=simulation(1))
    assert (named.value, named.guarantee) == (plain.value, plain.guarantee)
    everybody = dn.count(FRAME["age"] > 40, epsilon="open", levels=levels, rng=simulation(1))
    assert {1_000_000} == {loss.micro_epsilon for loss in everybody.guarantee.losses.values()}


def test_a_person_with_rows_that_disagree_gets_the_strictest():
    epsilon = np.where(np.arange(N) % 3 == 0, 0.1, 1.0)
    release = dn.count(FRAME["age"] > 40, epsilon=epsilon, rng=simulation(1), **OWNED)
    assert [100_000] == [loss.micro_epsilon for loss in release.guarantee.losses.values()]


def test_a_register_names_people_without_rows():
    chosen = dict.fromkeys(range(N), 0.5)  # a third of them have rows
    release = dn.count(FRAME["age"] > 40, epsilon=chosen, protects="presence", rng=simulation(1), **OWNED)
    assert f"{N:,}" in release.explain()  # what people pay
    with pytest.raises(InvalidPreference, match="at least one person has none"):
        dn.count(FRAME["age"] > 40, epsilon={0: 0.5}, **OWNED)


# People with several rows --------------------------------------------------------------------------------------------


def test_no_more_rows_of_a_person_count_than_declared():
    person = np.arange(N) // 3
    column = limited(numbers(np.where(np.arange(N) % 3 == 0, np.nan, 1.0)), person, 1, simulation(4))
    kept = np.bincount(person[column.counted], minlength=N // 3)
    assert {1} == set(kept.tolist())  # of the two that count
    assert 0.4 < (np.arange(N)[column.counted] % 3 == 1).mean() < 0.6  # 1,000 coins, seeded
    assert not limited(numbers(np.ones(4)), np.array([-1, -1, 0, 0]), 2, simulation(1)).counted[:2].any()


def test_a_row_of_nobody_does_not_count():
    person = pd.Series([None, "a", "b", "b"])
    release = dn.count([True] * 4, epsilon=HUGE, person=person, rows_per_person=2)
    assert near(3) == release.value


def test_one_coin_keeps_all_rows_of_a_person_or_none():
    shape = Aggregate(kind="count", protects="value", rows_per_person=3)
    cohort = np.zeros(N // 3, dtype=np.int64)
    rows = ArrayRows(column=numbers(np.ones(N)), cohort=cohort, cohorts=1, person=np.arange(N) // 3)
    measure = Measure(aggregate=shape, inclusion=(inclusion_threshold(100_000, 200_000),))
    (found,) = compute(Request(measures=(measure,), source=rows), simulation(2))
    assert 0 == found.counts[0, 0] % 3
    assert 0 < found.counts[0, 0] < N


# What is refused -----------------------------------------------------------------------------------------------------

AGES = FRAME["age"]
YEAR = (date(2020, 1, 1), date(2021, 1, 1))
REFUSED = {
    "rows_per_person": (lambda: dn.count(AGES > 3, epsilon=1, person=FRAME["person"]), "Give both or neither"),
    "person": (lambda: dn.count(AGES > 3, epsilon=1, rows_per_person=2), "Give both or neither"),
    "no rows": (lambda: dn.count(AGES > 3, epsilon=1, person=AGES, rows_per_person=0), "whole number from 1"),
    "length": (lambda: dn.count(AGES > 3, epsilon=1, person=[1, 2], rows_per_person=1), "one entry per row"),
    "keys": (lambda: dn.count(AGES > 3, epsilon=1, by=FRAME["sex"]), "by= says which group"),
    "names": (
        lambda: dn.count(AGES > 3, epsilon=1, by={"sex": FRAME["sex"], "age": AGES}, keys=["f"]),
        "the same names",
    ),
    "same name": (lambda: dn.count(AGES > 3, epsilon=1, by={"count": AGES}, keys={"count": [1]}), "another name"),
    "short by": (lambda: dn.count(AGES > 3, epsilon=1, by=["f"], keys=["f"]), "one entry per row"),
    "both": (lambda: dn.histogram(AGES, epsilon=1, bins=[0, 1], categories=[1]), "A histogram needs"),
    "neither": (lambda: dn.histogram(AGES, epsilon=1), "A histogram needs"),
    "bins": (lambda: dn.histogram(AGES, epsilon=1, bins=3), r"needs bounds=\(low, high\)"),
    "edges": (lambda: dn.histogram(AGES, epsilon=1, bins=[3, 2]), "ascending"),
    "mixed": (lambda: dn.median(AGES, epsilon=1, bounds=(0, date(2020, 1, 1))), "dates only, or numbers only"),
    "dates": (
        lambda: dn.median(AGES, epsilon=1, bounds=YEAR),
        "must be dates or times",
    ),
    "numbers": (lambda: dn.median(FRAME["day"], epsilon=1, bounds=(0, 1)), "bounds must be dates too"),
    "sum": (lambda: dn.sum(FRAME["day"], epsilon=1, bounds=YEAR), "Dates have no sum"),
    "required": (lambda: dn.sum(AGES, epsilon=1, bounds=(0, 1), required=True, **OWNED), "no person="),
    "levels": (lambda: dn.count(AGES > 3, epsilon="strict"), "names of levels"),
    "level": (lambda: dn.count(AGES > 3, epsilon="lax", levels={"strict": 1.0}), "not in levels, which has"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_with_advice(case):
    ask, says = REFUSED[case]
    with pytest.raises((InvalidDeclaration, InvalidPreference), match=says):
        ask()


def test_a_list_of_quantiles_in_groups_has_a_row_for_each():
    release = dn.quantile(
        FRAME["income"], [0.25, 0.75], epsilon=HUGE, bounds=MONEY, grid=0.25, by=FRAME["region"], keys=["N", "S"]
    )
    assert [(0.25, "N"), (0.25, "S"), (0.75, "N"), (0.75, "S")] == [row[:2] for row in release]
    truth = FRAME.groupby("region")["income"]
    for q, key, value in release:
        assert truth.quantile(q, "lower")[key] == pytest.approx(value, abs=2)

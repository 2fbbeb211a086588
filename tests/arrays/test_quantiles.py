"""Medians, quantiles, extremes and modes of arrays: the same flow, errors in ranks."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discretion as dn
from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.preference import Specification

PEOPLE = 2_000
RNG = noise.simulation(5)
EPSILON = np.round(RNG.uniform(0.05, 1, PEOPLE), 2)
INCOME = np.exp(10.3 + 0.6 * RNG.standard_normal(PEOPLE))
BOUNDS = (0, 200_000)


def share_below(answer):
    return float(np.mean(answer > INCOME))


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("assume", [None, "independent", 0.1])
def test_a_median_has_about_half_of_the_people_below(protects, assume):
    release = dn.median(
        INCOME, epsilon=EPSILON, bounds=BOUNDS, assume=assume, protects=protects, rng=noise.simulation(1)
    )
    low, high = release.interval(0.95)
    assert low <= share_below(release.value) <= high
    assert "rank" == release.error.unit
    assert release.simulated
    assert release.guarantee.protects == protects


@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "sample", "exponential", "weighted_rank"])
def test_every_mechanism_for_ranks_can_be_asked_for_by_name(mechanism):
    release = dn.quantile(INCOME, 0.75, epsilon=EPSILON, bounds=BOUNDS, mechanism=mechanism, rng=noise.simulation(2))
    assert mechanism == release.mechanism
    low, high = release.interval(0.95)
    assert low <= share_below(release.value) <= high


def test_the_planner_prefers_weighted_ranks_when_preferences_are_unrelated_to_values():
    release = dn.median(INCOME, epsilon=EPSILON, bounds=BOUNDS, assume="independent")
    assert "weighted_rank" == release.mechanism
    assert "exponential" in release.explain()
    assert "not public: " in release.explain()


def test_extremes_lie_inside_the_data():
    choices = {"epsilon": EPSILON, "bounds": (0, 10_000_000), "assume": "independent", "rng": noise.simulation(3)}
    assert np.quantile(INCOME, 0.9) < dn.max(INCOME, **choices).value <= 1.02 * INCOME.max()
    assert 0 <= dn.min(INCOME, **choices).value < np.quantile(INCOME, 0.1) + 10_000


def test_the_mode_is_one_of_the_categories():
    letters = RNG.choice(list("abc"), PEOPLE, p=[0.5, 0.3, 0.2])
    release = dn.mode(letters, categories=["c", "b", "a"], epsilon=EPSILON, rng=noise.simulation(4))
    assert "a" == release.value
    assert (0.0, pytest.approx(release.error.half_width())) == release.interval()
    assert "\na (at most " in repr(release)


def test_missing_values_are_left_out():
    holes = np.where(np.arange(PEOPLE) % 2 == 0, np.nan, INCOME)
    release = dn.median(holes, epsilon=EPSILON, bounds=BOUNDS, assume="independent", rng=noise.simulation(6))
    assert 0.4 < share_below(release.value) < 0.6


def test_a_median_of_whole_numbers_is_one_of_them():
    ages = RNG.integers(0, 100, PEOPLE)
    release = dn.median(ages, epsilon=EPSILON, bounds=(0, 120), rng=noise.simulation(7))
    assert release.value == int(release.value)


def test_a_grid_is_kept():
    release = dn.median(INCOME, epsilon=EPSILON, bounds=BOUNDS, grid=2_500, rng=noise.simulation(8))
    assert 0 == release.value % 2_500


@pytest.mark.parametrize("assume", [None, "independent"])
def test_with_interval_gives_an_interval_in_the_units_of_the_values_that_covers(assume):
    """95% is promised and the bounds are far from tight: 30 of 30, where 95% would give it one time in five."""
    rng, truth = noise.simulation(10), float(np.sort(INCOME)[PEOPLE // 2 - 1])
    for _ in range(30):
        release = dn.median(INCOME, epsilon=EPSILON, bounds=BOUNDS, assume=assume, with_interval=True, rng=rng)
        low, high = release.interval(0.95)
        assert low <= truth <= high
        assert "value" == release.error.unit
    assert high - low < 60_000  # and says something: the bounds are 200,000 apart
    assert release.guarantee.honours(Specification.assign(EPSILON)[0])


def test_an_interval_costs_six_parts_and_no_more():
    release = dn.median(INCOME, epsilon=EPSILON, bounds=BOUNDS, mechanism="exponential", with_interval=True)
    charged = [loss.micro_epsilon for loss in release.guarantee.losses.values()]
    levels = Specification.assign(EPSILON)[0].epsilons
    assert all(level - 6 < loss <= level for level, loss in zip(levels, charged, strict=True))


def test_sides_beyond_the_data_are_the_bounds():
    few = dn.median([1.0, 2.0, 3.0], epsilon=[0.1, 0.1, 0.1], bounds=(0, 10), with_interval=True)
    assert (0.0, 10.0) == few.interval()


@pytest.mark.parametrize(("ask", "place"), [(dn.min, 0), (dn.max, 1)])
def test_the_interval_of_an_extreme_ends_at_the_bound(ask, place):
    release = ask(
        INCOME, epsilon=EPSILON, bounds=BOUNDS, assume="independent", with_interval=True, rng=noise.simulation(12)
    )
    assert BOUNDS[place] == release.interval()[place]
    extreme = np.clip((INCOME.min(), INCOME.max()), *BOUNDS)[place]
    assert release.interval()[0] <= extreme <= release.interval()[1]


def test_an_interval_needs_a_quantile_that_knows_its_error():
    with pytest.raises(InvalidDeclaration, match="mean has no option 'with_interval'"):
        dn.mean(INCOME, epsilon=EPSILON, bounds=BOUNDS, with_interval=True)
    with pytest.raises(Unsuitable, match="does not know its error"):
        dn.median(INCOME, epsilon=EPSILON, bounds=BOUNDS, mechanism="smooth", required=True, with_interval=True)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(InvalidDeclaration, match="q must be from 0"):
        dn.quantile(INCOME, 1.5, epsilon=EPSILON, bounds=BOUNDS)
    with pytest.raises(InvalidDeclaration, match="away from them"):
        dn.quantile(INCOME, 0.99999, epsilon=EPSILON, bounds=BOUNDS)
    with pytest.raises(InvalidDeclaration, match="different values"):
        dn.mode(["a"], categories=["a", "a"], epsilon=[1.0])
    with pytest.raises(Unsuitable, match="counts, sums, means and variances only"):
        dn.median(INCOME, epsilon=EPSILON, bounds=BOUNDS, mechanism="stretch")


QUARTERS = (0.25, 0.5, 0.75)


@pytest.mark.parametrize(
    ("protects", "assume"),
    [("presence", None), ("presence", "gradual"), ("presence", "independent"), ("value", "independent")],
)
def test_a_list_of_quantiles_is_one_release_with_one_charge(protects, assume):
    choices = {"epsilon": EPSILON, "bounds": BOUNDS, "assume": assume, "protects": protects}
    release = dn.quantile(INCOME, QUARTERS, rng=noise.simulation(13), **choices)
    assert "nested_rank" == release.mechanism
    assert QUARTERS == release.columns["q"]
    assert sorted(release.value) == list(release.value)
    assert release.guarantee.honours(Specification.assign(EPSILON)[0])
    for answer, (low, high) in zip(release.value, release.interval(), strict=True):
        assert low <= share_below(answer) <= high
    alone = [dn.quantile(INCOME, q, rng=noise.simulation(13), **choices | {"epsilon": EPSILON / 3}) for q in QUARTERS]
    assert all(one.total < other.error.total for one, other in zip(release.error, alone, strict=True))


def test_a_list_of_quantiles_in_sql_is_a_column_each_and_true(tmp_path):
    """At a huge epsilon they are DuckDB's own; with one row a person and no extremes, they are one release."""
    frame = pa.table({"id": np.arange(999), "e": np.full(999, 1e3), "x": RNG.permutation(np.arange(999) // 33)})
    parquet.write_table(frame, tmp_path / "t.parquet")
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", tmp_path / "t.parquet", person="id", epsilon="e", bounds={"x": (0, 300)})
        release = db.sql("SELECT QUANTILE_DISC(x, [0.28, 0.52, 0.77]) AS q, MAX(x) AS m FROM t WHERE x < 30", share=1)
    truth = duckdb.sql("SELECT QUANTILE_DISC(x, [0.28, 0.52, 0.77]) FROM frame WHERE x < 30").fetchall()[0][0]
    assert ["q_0.28", "q_0.52", "q_0.77", "m"] == list(release.columns)
    assert truth == [release.columns[f"q_{q}"][0] for q in (0.28, 0.52, 0.77)]
    assert "nested_rank + weighted_rank" == release.mechanism
    assert "are computed from one release" in release.explain()


def test_a_list_that_would_not_be_clearly_better_is_released_one_by_one():
    release = dn.quantile(INCOME, QUARTERS, epsilon=EPSILON, bounds=BOUNDS, rng=noise.simulation(14))
    assert "exponential" == release.mechanism
    assert release.guarantee.honours(Specification.assign(EPSILON)[0])


def test_a_list_must_have_different_numbers():
    for q in ([], [0.5, 0.5], [0.5, 2], None, "0.5", ["a"], [True, 0.5], [[0.25, 0.5]]):
        with pytest.raises(InvalidDeclaration, match="q must be"):
            dn.quantile(INCOME, q, epsilon=EPSILON, bounds=BOUNDS)


def test_a_list_is_refused_where_it_has_no_place():
    choices = {"epsilon": EPSILON, "bounds": BOUNDS}
    with pytest.raises(InvalidDeclaration, match="one q at a time"):
        dn.quantile(INCOME, QUARTERS, model="individual", acknowledged=True, **choices)
    places = ["N", "S"] * (len(INCOME) // 2)
    with pytest.raises(InvalidDeclaration, match="cannot be called 'q'"):
        dn.quantile(INCOME, QUARTERS, by={"q": places}, keys={"q": ["N", "S"]}, **choices)

"""Statistics of two columns from nine sums: nobody loses more than the charge, answers are true, bugs are noticed."""

from dataclasses import replace
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from contracts import Shifts, Universe, charges_of, violations, worst_losses
from discretion.engines.duckdb import DuckDB
from discretion.errors import QueryRefused, Unsuitable
from discretion.mechanisms import paired
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.joint import Kin
from discretion.noise import simulation
from discretion.preference import MICRO, Specification
from discretion.query import parse
from discretion.statistics import Aggregate, Pair, Statistics
from drawing import UNUSED, check_draws, several
from sql_clinic import declared, rows

POINTS = ((0.0, 0.0), (1.0, 0.0), (0.3, 0.6), (0.5, 0.5), (1.0, 1.0))
STATES = {
    (1, 1): ((), *(((0, point),) for point in range(5))),
    (2, 1): ((), *(((group, point),) for group in (0, 1) for point in (0, 2, 4))),
    (1, 2): ((), ((0, 0),), ((0, 0), (0, 0)), ((0, 2), (0, 3)), ((0, 4), (0, 4))),
}


def rounded(x, y, steps):
    """What a row adds: nine products of positions, each a whole number of steps."""
    of = [np.array([(1 - u) ** 2, 2 * u * (1 - u), u**2]) for u in (x, y)]
    return np.floor(np.outer(*of).ravel() * steps + 0.5).astype(int)


def made(specification, belief=None, steps=1_000, statistic="covariance", **shape):
    aggregate = Aggregate(kind="sum", **{"protects": "value", "upper": steps, **shape})
    pairs = [Pair(part=part, statistic=None if part else statistic, x=(0, 1), y=(0, 1)) for part in range(9)]
    kin = [Kin(aggregate=aggregate, pair=pair) for pair in pairs]
    return paired.propose(kin, specification, belief or Belief())


def statistics_of(mechanism, universe, dataset):
    shape = (mechanism.aggregate.groups, len(universe.specification.epsilons))
    totals = np.zeros((9, *shape), dtype=object)
    for person, state in enumerate(dataset):
        for group, point in state:
            totals[:, group, universe.cohort[person]] += rounded(*POINTS[point], mechanism.aggregate.upper)
    return [Statistics(counts=np.zeros(shape, dtype=np.int64), totals=part) for part in totals]


def losses_of(mechanism, universe, protects=None):
    def law(dataset):
        found = mechanism.centres(statistics_of(mechanism, universe, dataset))
        centres = np.concatenate([np.ravel(part).astype(float) for part in found])
        scales = [float(scale) for scale in mechanism.scales for _ in range(mechanism.aggregate.groups)]
        return Shifts(centres[None], np.ones(1), tuple(scales))

    return worst_losses(law, universe, protects or mechanism.aggregate.protects)


@pytest.mark.parametrize("steps", [7, 1_000])
@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize("shape", STATES, ids=str)
def test_nobody_loses_more_than_the_charge(shape, protects, steps):
    universe = Universe((0.2, 1.0, 1.0), STATES[shape])
    for assume in (None, "gradual", "independent"):
        belief = Belief(assume=assume)
        how = {"protects": protects, "groups": shape[0], "rows_per_person": shape[1], "steps": steps}
        mechanism = made(universe.specification, belief, **how)
        charges, losses = charges_of(mechanism, universe), losses_of(mechanism, universe)
        assert mechanism.guarantee.honours(universe.specification)
        assert not violations(losses, charges)
        if steps == 1_000:
            assert all(loss > 0.98 * charge for loss, charge in zip(losses, charges, strict=True))  # nothing wasted
        found = [statistics_of(mechanism, universe, dataset) for dataset in several(universe)]
        check_draws(mechanism, lambda one, mechanism=mechanism: mechanism.answer(one, None, UNUSED), found)


def test_nine_rounded_numbers_add_up_to_less_than_five_steps_more():
    for steps, x, y in product((1, 2, 7, 10), np.linspace(0, 1, 41), np.linspace(0, 1, 41)):
        assert rounded(x, y, steps).sum() < steps + paired.ROUNDING


# Planted bugs.


def test_noise_without_room_for_rounding_is_noticed(monkeypatch):
    universe = Universe((0.5, 0.5), STATES[1, 1])
    honest = made(universe.specification, steps=7, protects="presence")
    monkeypatch.setattr("test_paired.POINTS", ((0.0, 0.0), (0.91, 0.67), (0.3, 0.6), (0.25, 0.25), (1.0, 1.0)))
    assert max(rounded(*point, 7).sum() for point in POINTS) > 7
    assert not violations(losses_of(honest, universe), universe.epsilons)
    monkeypatch.setattr(paired, "ROUNDING", 0)
    assert violations(losses_of(honest, universe), universe.epsilons)


def test_the_noise_of_presence_does_not_protect_values():
    universe = Universe((0.5, 0.5), STATES[1, 1])
    mechanism = made(universe.specification, protects="presence")
    assert violations(losses_of(mechanism, universe, "value"), universe.epsilons)


def test_one_row_s_noise_for_two_rows_is_noticed():
    universe = Universe((0.5, 0.5), STATES[1, 2])
    mechanism = made(universe.specification, protects="presence", rows_per_person=1)
    assert violations(losses_of(mechanism, universe), universe.epsilons)


# Answers.


def test_no_row_adds_more_than_the_noise_covers():
    """NULL, NaN, infinities and values far outside the bounds, through the SQL that engines run."""
    odd = [None, float("nan"), float("inf"), -float("inf"), -1e300, 1e300, 0.0, 63.7, 33_333.3, 200_000.0, 1e-9]
    t = pa.table({"income": pa.array(odd, pa.float64())})  # noqa: F841  read by DuckDB
    query = parse("SELECT CORR(COALESCE(income, 5), income) FROM patients", declared(DuckDB(), rows()))
    assert 9 == len(query.asked)
    steps = query.asked[0].aggregate.upper
    parts = ", ".join(f"ROUND({one.value.sql('duckdb')} * {steps})" for one in query.asked)
    for income, *found in duckdb.sql(f"SELECT income, {parts} FROM t").fetchall():
        finite = income is not None and np.isfinite(income)
        assert ([None] * 9 == found) != finite
        assert not finite or (min(found) >= 0 and abs(sum(found) - steps) < paired.ROUNDING)


@pytest.mark.parametrize("register", [True, False], ids=["presence", "value"])
def test_statistics_of_two_columns_are_duckdb_s_own(tmp_path, register):
    """At a huge epsilon; the interval is so wide that it misses once in a billion."""
    rng = simulation(3)
    x = rng.uniform(0, 100, 3_000)
    y = np.clip(3 + 0.5 * x + rng.normal(0, 8, 3_000), 0, 80)
    columns = {"x": pa.array(x, mask=rng.random(3_000) < 0.1), "y": pa.array(y, mask=rng.random(3_000) < 0.1)}
    people = {"id": np.arange(3_000), "e": np.full(3_000, 1_000.0)}
    t = pa.table({**people, **columns, "s": rng.choice(["a", "b"], 3_000)})
    asked = "COVAR_POP(y, x) a, COVAR_SAMP(y, x) b, CORR(y, x) c, REGR_SLOPE(y, x) d, REGR_INTERCEPT(y, x) e"
    sql = f"SELECT s, {asked}, CORR(x, y) FILTER (WHERE x > 20) f FROM t WHERE y < 70 GROUP BY s ORDER BY s"
    with dn.connect(tmp_path / "l.discretion") as db:
        how = {"person": "id", "bounds": {"x": (0, 100), "y": (0, 80)}, "keys": {"s": ["a", "b"]}}
        if register:
            db.register("people", pa.table(people), person="id", epsilon="e")
        db.protect("t", t, **how, **({"register": "people"} if register else {"epsilon": "e"}))
        release = db.sql(sql, share=1)
    for row, truths in enumerate(duckdb.sql(sql).fetchall()):
        for name, truth in zip("abcdef", truths[1:], strict=True):
            value, error = release.columns[name][row], release.errors[name][row]
            low, high = error.interval(value, 1 - 1e-9)
            assert low <= truth <= high
            assert error.half_width() < 0.1 * abs(truth) + 0.1
    assert "paired" == release.mechanism


@pytest.mark.parametrize("statistic", ["covariance", "sample covariance", "correlation", "slope", "intercept"])
def test_intervals_hold(statistic):
    """Preferences are dealt out anew in 200 runs: 95% that hold would be fewer than 180 once in a thousand times."""
    rng, held = simulation(8), 0
    specification, cohort = Specification.assign(np.repeat([1.0, 2.5, 5.0], [1_000, 700, 300]))
    u = rng.beta(2, 3, 2_000)
    v = np.clip(0.2 + 0.5 * u + rng.normal(0, 0.1, 2_000), 0, 1)
    mechanism = made(specification, Belief(assume="independent"), steps=10**6, statistic=statistic)
    basis = np.array([rounded(a, b, 10**6) for a, b in zip(u, v, strict=True)])
    pair = mechanism.estimates[0].kin.pair
    truth = paired.statistic_of(pair, basis.sum(axis=0) / 10**6, 1.0)
    for _ in range(200):
        mixed = rng.permutation(cohort)
        totals = [np.array([[int(part[mixed == c].sum()) for c in range(3)]], dtype=object) for part in basis.T]
        statistics = [Statistics(counts=np.zeros((1, 3), dtype=np.int64), totals=one) for one in totals]
        (values, errors), *_ = mechanism.answer(statistics, None, rng)
        low, high = errors[0].interval(float(values[0]))
        held += low <= truth <= high
    assert held >= 180
    assert errors[0].half_width() < {"intercept": 0.5, "slope": 1.0, "correlation": 1.0}.get(statistic, 0.05)


def test_what_cannot_be_told_from_nobody_has_no_error():
    mechanism = made(Specification.of([(MICRO // 100, 20)]), statistic="slope")
    nothing = [Statistics(counts=np.zeros((1, 1), dtype=np.int64), totals=np.zeros((1, 1), dtype=object))] * 9
    (_, errors), *_ = mechanism.answer(nothing, None, simulation(1))
    assert np.inf == errors[0].half_width()


def test_a_mechanism_by_name_is_refused(tmp_path):
    t = pa.table({"id": [1, 2, 3], "e": [1.0, 1.0, 1.0], "x": [1.0, 2.0, 3.0]})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", t, person="id", epsilon="e", bounds={"x": (0, 9)})
        with pytest.raises(Unsuitable, match="Leave mechanism out"):
            db.explain("SELECT CORR(x, x) FROM t", mechanism="weighted")


def test_an_interval_of_a_median_beside_a_correlation_is_as_wide_as_beside_another_aggregate(tmp_path):
    rng = simulation(4)
    t = pa.table({"id": np.arange(2_000), "e": np.full(2_000, 10.0), "x": rng.uniform(0, 100, 2_000)})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", t, person="id", epsilon="e", bounds={"x": (0, 100)})
        plans = [
            db.explain(f"SELECT MEDIAN(x), {other} FROM t WHERE x > 1", with_interval=True)
            for other in ("CORR(x, x)", "COUNT(*)")
        ]
    ranks = [[one.aggregate.rank for one in plan.choices if "from" in one.label] for plan in plans]
    assert ranks[0] == ranks[1]
    assert not any("from below" in line for line in plans[0].comparison)


def test_too_many_rows_a_person_are_refused_before_the_charge():
    specification = Specification.of([(1, 10)])  # a millionth
    with pytest.raises(Unsuitable, match="exact sampler"):
        made(specification, steps=10**6, rows_per_person=10**6)
    visits = declared(DuckDB(), rows())["visits"]
    with pytest.raises(QueryRefused, match="fewer rows per person"):
        parse("SELECT CORR(cost, minutes) FROM visits", {"visits": replace(visits, rows_per_person=10**6)})

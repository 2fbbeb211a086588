"""The same question about the same values gives the same shape and the same whole numbers by array and by SQL."""

from fractions import Fraction
from math import inf, nan, nextafter

import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from discretion.engines import arrays
from discretion.engines.values import numbers
from discretion.plan import flow
from discretion.statistics import gridded

LEVELS = (0.25, 0.5, 1.0)
GRIDS = {  # bounds and the grid declared for quantiles
    "ones": ((0, 10), 1),
    "tenths below 0": ((-7.5, 12.25), 0.1),
    "three tenths": ((-3, 3), 0.3),
    "sevens": ((-1e9, 1e9), 100_000.7),
    "far from 0": ((1e17, 1e17 + 10_000), 16),
    "a thousandth": ((0, 0.7), None),
}
QUESTIONS = {  # SQL -> the same question to an array
    "SUM(x)": dn.sum,
    "AVG(x)": dn.mean,
    "VARIANCE(x)": dn.variance,
    "VAR_POP(x)": lambda values, **how: dn.variance(values, population=True, **how),
    "MIN(x)": dn.min,
    "MEDIAN(x)": dn.median,
    "MAX(x)": dn.max,
    "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x)": lambda values, **how: dn.quantile(values, 0.9, **how),
}


@pytest.fixture
def recorded(monkeypatch):
    """Every aggregate and its statistics, as they come out of an engine."""
    found, draw = [], flow.draw

    def spy(plan, wanted, statistics, rng=None):
        found.extend(zip((choice.aggregate for choice in plan.choices), statistics, strict=True))
        return draw(plan, wanted, statistics, rng)

    monkeypatch.setattr(flow, "draw", spy)
    return found


def awkward(bounds, grid):
    """Values on the grid, halfway between its points and next to both; outside; 0; and none at all."""
    low, high = bounds
    step = grid or (high - low) / 1_000
    ends = [-inf, -1e300, -5e-324, 0.0, 0.49999999999999994, 1e300, inf, nan, None]
    halves = [low + step * k / 2 for k in range(40)] + [high - step * k / 2 for k in range(40)]
    halves += [step * (k + 0.5) for k in range(-20, 20)] + [(low + high) / 2 + step * k / 2 for k in range(-9, 10)]
    return [near for half in halves for near in (nextafter(half, -inf), half, nextafter(half, inf))] + ends


def asked_by_sql(folder, values, bounds, grid, protects, required):
    """Ask every question in SQL, one person a row."""
    who, epsilon = range(len(values)), [LEVELS[person % 3] for person in range(len(values))]
    declared = {"bounds": {"x": bounds}, "grid": {} if grid is None else {"x": grid}}
    declared |= {"required": ["x"]} if required else {}
    with dn.connect(folder / "l.discretion") as db:
        if protects == "value":
            db.protect("t", pa.table({"x": values, "who": who, "e": epsilon}), person="who", epsilon="e", **declared)
        else:
            db.register("people", pa.table({"who": who, "e": epsilon}), person="who", epsilon="e")
            db.protect("t", pa.table({"x": values, "who": who}), person="who", register="people", **declared)
        db.sql(f"SELECT {', '.join(QUESTIONS)} FROM t", share=1.0, mechanism="minimum")


def asked_by_array(values, bounds, grid, protects, required):
    epsilon = [LEVELS[person % 3] for person in range(len(values))]
    how = {"epsilon": epsilon, "bounds": bounds, "protects": protects, "required": required}
    for text, ask in QUESTIONS.items():
        step = {} if text.startswith(("SUM", "AVG", "VAR")) else {"grid": grid}  # only quantiles have a grid
        ask(values, mechanism="minimum", **how, **step)


def plain(aggregate, statistics):
    """What a mechanism reads, as lists."""
    parts = {"counts": statistics.counts, "histogram": statistics.histogram}
    if aggregate.kind != "quantile":
        parts = {"counts": statistics.counts, "totals": statistics.totals}
        parts |= {"squares": statistics.squares} if aggregate.kind == "variance" else {}
    return {name: part.tolist() for name, part in parts.items()}


def differences(recorded, folder, values, *how):
    """Ask both doors; return the kinds of aggregates whose shapes or statistics differ."""
    asked_by_sql(folder, values, *how)
    by_sql = list(recorded)
    recorded.clear()
    asked_by_array(values, *how)
    assert len(QUESTIONS) == len(by_sql) == len(recorded)
    return [
        text
        for text, (shape, found), (other, counted) in zip(QUESTIONS, by_sql, recorded, strict=True)
        if shape != other or plain(shape, found) != plain(other, counted)
    ]


@pytest.mark.parametrize(
    ("protects", "required"),
    [("value", False), ("value", True), ("presence", False)],
    ids=["value", "required", "presence"],
)
@pytest.mark.parametrize("grid", GRIDS)
def test_doubles_give_the_same_statistics(recorded, tmp_path, grid, protects, required):
    values = pa.array(awkward(*GRIDS[grid]), pa.float64())
    assert [] == differences(recorded, tmp_path, values, *GRIDS[grid], protects, required)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.float32(), pa.decimal128(9, 2)], ids=str)
def test_every_type_of_number_gives_the_same_statistics(recorded, tmp_path, kind):
    values = pa.array([None if n % 9 == 0 else n for n in range(-60, 120)], pa.int16()).cast(kind)
    assert [] == differences(recorded, tmp_path, values, (-9.5, 90), 2.5, "value", False)


def test_rounding_half_to_even_would_be_noticed(recorded, tmp_path, monkeypatch):
    """The bug that was here: 2.5 on a grid of 1 was 2 by array and 3 by SQL."""
    monkeypatch.setattr(arrays, "_rounded", np.rint)
    values = pa.array(awkward(*GRIDS["ones"]), pa.float64())
    assert "MEDIAN(x)" in differences(recorded, tmp_path, values, *GRIDS["ones"], "value", False)


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_counts_give_the_same_statistics(recorded, tmp_path, protects):
    keys, people = ["b", "a", "c"], 60
    place = [None if n % 7 == 0 else "abcd"[n % 4] for n in range(people)]
    who, epsilon = range(people), [LEVELS[n % 3] for n in range(people)]
    with dn.connect(tmp_path / "l.discretion") as db:
        if protects == "value":
            table = pa.table({"place": place, "who": who, "e": epsilon})
            db.protect("t", table, person="who", epsilon="e", keys={"place": keys})
        else:
            db.register("people", pa.table({"who": who, "e": epsilon}), person="who", epsilon="e")
            table = pa.table({"place": place, "who": who})
            db.protect("t", table, person="who", register="people", keys={"place": keys})
        db.sql("SELECT place, COUNT(*) FROM t GROUP BY place", share=0.5, mechanism="minimum")
        db.sql("SELECT COUNT(*) FROM t WHERE place = 'a'", share=0.5, mechanism="minimum")
    how = {"epsilon": epsilon, "protects": protects, "mechanism": "minimum"}
    dn.histogram(place, categories=keys, **how)
    dn.count([one == "a" for one in place], **how)
    for (shape, found), (other, counted) in zip(recorded[:2], recorded[2:], strict=True):
        assert shape == other
        assert found.counts.tolist() == counted.counts.tolist()


def pairs_differ(recorded, folder, protects):
    """Ask about two awkward columns by both doors; return the sums whose shapes or statistics differ."""
    (x_bounds, x_grid), (y_bounds, y_grid) = GRIDS["tenths below 0"], GRIDS["three tenths"]
    first, second = awkward(x_bounds, x_grid), awkward(y_bounds, y_grid)
    x, y = pa.array(first + second[::-1], pa.float64()), pa.array(second + first, pa.float64())
    who, epsilon = range(len(x)), [LEVELS[n % 3] for n in range(len(x))]
    place = ["abc"[n % 3] for n in range(len(x))]
    columns, how = {"x": x, "y": y, "place": place, "who": who}, {"person": "who", "keys": {"place": ["b", "a"]}}
    how |= {"bounds": {"x": x_bounds, "y": y_bounds}}
    with dn.connect(folder / "l.discretion") as db:
        if protects == "value":
            db.protect("t", pa.table({**columns, "e": epsilon}), epsilon="e", **how)
        else:
            db.register("people", pa.table({"who": who, "e": epsilon}), person="who", epsilon="e")
            db.protect("t", pa.table(columns), register="people", **how)
        db.sql("SELECT place, CORR(y, x) FROM t GROUP BY place", share=0.1)
    by_sql = list(recorded)
    recorded.clear()
    asked = {"epsilon": epsilon, "x_bounds": x_bounds, "y_bounds": y_bounds, "protects": protects}
    dn.correlation(x, y, **asked, by=place, keys=["b", "a"])
    assert 9 == len(by_sql) == len(recorded)
    return [
        number
        for number, ((shape, found), (other, counted)) in enumerate(zip(by_sql, recorded, strict=True))
        if shape != other or plain(shape, found) != plain(other, counted)
    ]


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_two_columns_give_the_same_statistics(recorded, tmp_path, protects):
    assert [] == pairs_differ(recorded, tmp_path, protects)


@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 2), Fraction(5, 2)])
@pytest.mark.parametrize("low", [Fraction(-9), Fraction(-17, 2)])
def test_a_missing_value_is_rounded_like_the_others(low, step):
    """`Aggregate.nearest` fills in for missing values; on these grids doubles are exact, so both must agree."""
    shape = gridded("quantile", low, Fraction(9), whole=False, protects="value", step=step, rank=Fraction(1, 2))
    values = [n / 4 for n in range(-60, 61)]
    column = numbers(np.array(values))
    assert column.steps(shape).tolist() == [shape.nearest(Fraction(value)) for value in values]

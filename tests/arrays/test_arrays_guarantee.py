"""Array questions from end to end on every small table: whatever holds the values, nobody loses more than the charge.

The law is read off at the sources of noise: what is added to, or chosen among, is recorded on its way there.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discretion as dn
from contracts import ROUNDING, Atoms, Shifts, loss
from discretion import noise
from discretion.arrays import question
from discretion.engines import arrays

EPSILON = (0.1, 1.0)
STATES = (1, 3, None)  # None: has no value; under presence, is absent
BOUNDS = {"bounds": (1, 3)}  # away from 0, where nothing is not the same as the least
COLUMNS = {
    "list": list,
    "numpy": lambda values: np.array(values, dtype=np.float64),
    "masked": lambda values: np.ma.array([v or 0 for v in values], mask=[v is None for v in values]),
    "pandas": lambda values: pd.Series(values, dtype="Int64"),
    "categorical": lambda values: pd.Series(values, dtype=pd.CategoricalDtype([1, 2, 3])),
    "polars": lambda values: pl.Series(values, dtype=pl.Int64),
    "arrow": lambda values: pa.array(values, pa.int64()),
}
QUESTIONS = {
    "count": (dn.count, {}, ["weighted", "exponential"]),
    "histogram": (dn.histogram, {"categories": [1, 3]}, ["weighted", "partition"]),
    "sum": (dn.sum, BOUNDS, ["weighted", "partition"]),
    "mean": (dn.mean, BOUNDS, ["weighted"]),
    "variance": (dn.variance, BOUNDS, ["weighted"]),
    "median": (dn.median, BOUNDS | {"grid": 1}, ["weighted_rank", "exponential"]),
    "maximum": (dn.max, BOUNDS | {"grid": 1}, ["weighted_rank"]),
    "mode": (dn.mode, {"categories": [1, 3]}, ["weighted_rank", "exponential"]),
}


class Recorded:
    """No noise, but a record of what noise would have been added to."""

    __array_ufunc__ = None

    def __init__(self, centres):
        self.centres = centres

    def astype(self, _):
        return self

    def __radd__(self, centre):
        self.centres.extend(np.ravel(centre).astype(np.float64))
        return centre


@pytest.fixture
def law_of(monkeypatch):
    centres, scales, chosen = [], [], []

    def laplace(scale, size, rng=None):
        scales.extend([float(scale)] * size)
        return Recorded(centres)

    def choose(scores, scale, rng=None, rule="exponential"):
        chosen.append(noise.choice_probabilities(scores, scale, rule))
        return 0

    monkeypatch.setattr(noise, "discrete_laplace", laplace)
    monkeypatch.setattr(noise, "choose", choose)

    def law(ask):
        for recorded in (centres, scales, chosen):
            recorded.clear()
        ask()
        if chosen:
            return Atoms(chosen[0])
        return Shifts(np.array([centres]), np.ones(1), tuple(scales))

    return law


def check(law_of, ask, protects, states=STATES):
    charges = [charge.micro_epsilon / 1e6 for charge in ask([states[0]] * 2).guarantee.losses.values()]
    laws = {values: law_of(lambda values=values: ask(values)) for values in product(states, repeat=2)}
    for values, (person, new) in product(laws, product(range(2), states)):
        if protects == "presence" and None not in (values[person], new):
            continue
        neighbour = (*values[:person], new, *values[person + 1 :])
        assert loss(laws[values], laws[neighbour]) <= charges[person] + ROUNDING, (values, neighbour)


CASES = [(q, "numpy", name) for q in QUESTIONS for name in QUESTIONS[q][2]]
CASES += [(q, column, "weighted") for q in ("sum", "histogram") for column in COLUMNS if column != "numpy"]


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize(("question", "column", "mechanism"), CASES)
def test_nobody_loses_more_than_the_charge(law_of, question, column, mechanism, protects):
    asked, shape, _ = QUESTIONS[question]
    how = {"epsilon": EPSILON, "protects": protects, "mechanism": mechanism, **shape}
    check(law_of, lambda values: asked(COLUMNS[column](values), **how), protects)


@pytest.mark.parametrize("question", ["sum", "mean", "variance", "median", "maximum"])
def test_required_values_are_protected_though_some_are_missing(law_of, question):
    asked, shape, (name, *_) = QUESTIONS[question]
    check(law_of, lambda v: asked(v, epsilon=EPSILON, required=True, mechanism=name, **shape), "value")


@pytest.mark.parametrize("question", ["count", "sum", "mean", "variance", "median"])
def test_whole_numbers_that_cannot_be_missing_are_protected(law_of, question):
    asked, shape, (name, *_) = QUESTIONS[question]
    check(law_of, lambda v: asked(np.array(v), epsilon=EPSILON, mechanism=name, **shape), "value", STATES[:2])


# Several rows of one person, and groups -----------------------------------------------------------------------------

ROWS = ((), (1,), (3,), (1, 3), (3, 3))  # what one person may have; two rows at most
PLACED = (
    (),
    (("x", 1),),
    (("y", 3),),
    (("x", 3), ("y", 1)),
    (("x", 3), ("z", 3)),
    (("x", 3), ("x", 3)),
)  # "z" is no declared group


def of_people(asked, protects, **how):
    """Ask about rows that two people have: each state is one person's rows."""

    def ask(states):
        rows = [(name, row) for name, rows in zip("ab", states, strict=True) for row in rows]
        values = pa.array([row[1] if isinstance(row, tuple) else row for _, row in rows], pa.int64())
        groups = {"by": pa.array([row[0] for _, row in rows], pa.string()), "keys": ["x", "y"]} if "by" in how else {}
        return asked(
            values,
            **(how | groups),
            epsilon=dict(zip("ab", EPSILON, strict=True)),
            person=pa.array([name for name, _ in rows], pa.string()),
            rows_per_person=2,
            protects=protects,
        )

    return ask


def check_people(law_of, ask, protects, states):
    """Replace all rows of one person: by any others under value, from or to none under presence."""
    charges = [charge.micro_epsilon / 1e6 for charge in ask((states[1],) * 2).guarantee.losses.values()]
    laws = {rows: law_of(lambda rows=rows: ask(rows)) for rows in product(states, repeat=2)}
    for rows, (person, new) in product(laws, product(range(2), states)):
        if protects == "presence" and rows[person] and new:
            continue
        neighbour = (*rows[:person], new, *rows[person + 1 :])
        assert loss(laws[rows], laws[neighbour]) <= charges[person] + ROUNDING, (rows, neighbour)


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "count"])
def test_nobody_loses_more_than_the_charge_with_several_rows(law_of, question, protects):
    asked, shape, (name, *_) = QUESTIONS[question]
    check_people(law_of, of_people(asked, protects, mechanism=name, **shape), protects, ROWS)


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("question", ["sum", "mean", "histogram", "median"])
def test_nobody_loses_more_than_the_charge_in_groups(law_of, question, protects):
    asked, shape, (name, *_) = QUESTIONS[question]
    check_people(law_of, of_people(asked, protects, mechanism=name, by=True, **shape), protects, PLACED)


# Two columns --------------------------------------------------------------------------------------------------------

PAIRED = (  # bounds are 1 and 3; "z" is no declared group, and a row without a y counts nowhere
    (),
    (("x", (3, 1)),),
    (("y", (2.2, 1.6)), ("z", (3, 3))),
    (("x", (99, -99)), ("y", (1, 3))),
    (("x", (1, 1)), ("x", (1, 1))),
    (("x", (2, None)),),
)


def of_pairs(asked, protects, **how):
    """Ask about two columns of the rows that two people have."""

    def ask(states):
        rows = [(name, *row) for name, rows in zip("ab", states, strict=True) for row in rows]
        x, y = (pa.array([point[place] for *_, point in rows], pa.float64()) for place in (0, 1))
        groups = {"by": pa.array([key for _, key, _ in rows], pa.string()), "keys": ["x", "y"]} if "by" in how else {}
        return asked(
            x,
            y,
            x_bounds=(1, 3),
            y_bounds=(1, 3),
            epsilon=dict(zip("ab", EPSILON, strict=True)),
            person=pa.array([name for name, *_ in rows], pa.string()),
            rows_per_person=2,
            protects=protects,
            **(how | groups),
        )

    return ask


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_nobody_loses_more_than_the_charge_with_two_columns(law_of, protects):
    """All statistics of two columns come from the same nine sums."""
    check_people(law_of, of_pairs(dn.slope, protects, by=True), protects, PAIRED)


def test_two_columns_that_are_not_clamped_would_be_noticed(law_of, monkeypatch):
    """A planted bug: a row outside the bounds adds more than the noise covers."""
    monkeypatch.setattr(arrays, "_position", lambda values, ends: (values - ends[0]) / (ends[1] - ends[0]))
    monkeypatch.setattr(arrays.ArrayColumn, "steps", lambda column, shape: (column.values * shape.upper).astype(int))
    with pytest.raises(AssertionError):
        check_people(law_of, of_pairs(dn.slope, "value"), "value", PAIRED[:4])


# Planted bugs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"by": True}])
def test_noise_for_one_row_would_be_noticed_with_two(law_of, monkeypatch, how):
    """A planted bug: every person has two rows, the noise is for one."""
    shaped = question._shaped
    monkeypatch.setattr(question, "_shaped", lambda *given: replace(shaped(*given), rows_per_person=1))
    monkeypatch.setattr(question, "limited", lambda column, *_: column)
    states = PLACED if how else ROWS
    with pytest.raises(AssertionError):
        check_people(law_of, of_people(dn.sum, "value", mechanism="weighted", **BOUNDS, **how), "value", states)


def test_noise_for_one_group_would_be_noticed_with_two(law_of):
    """A planted bug: where values are protected, a row that changes its group moves both."""
    ask = of_people(dn.histogram, "presence", mechanism="weighted", categories=[1, 3])
    with pytest.raises(AssertionError):
        check_people(law_of, ask, "value", ROWS)


def test_a_category_for_nobody_would_be_noticed(law_of):
    """What `histogram` refuses: under presence, an absence that counts somewhere moves two counts."""

    def ask(values):
        named = ["none" if value is None else str(value) for value in values]
        return dn.histogram(named, categories=["1", "none"], epsilon=EPSILON, protects="presence", mechanism="weighted")

    with pytest.raises(AssertionError):
        check(law_of, ask, "presence")

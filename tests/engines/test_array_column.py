"""Columns of every library say the same, and types decide what may be missing."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discretion.engines.arrays import ArrayRows, compute
from discretion.engines.values import bits, categories_of, numbers
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.statistics import Aggregate, Measure, Request

SAME = {
    "numpy": np.array([1.0, np.nan, 3.0]),
    "list": [1.0, None, 3.0],
    "tuple": (1.0, None, 3.0),
    "pandas": pd.Series([1.0, None, 3.0]),
    "pandas nullable": pd.Series([1, None, 3], dtype="Int64"),
    "pandas arrow": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "polars": pl.Series([1, None, 3]),
    "arrow": pa.array([1, None, 3]),
    "arrow chunks": pa.chunked_array([[1, None], [3]]),
    "infinite": np.array([1.0, np.inf, 3.0]),
    "integers of pandas over NaN": pd.Series([1, np.nan, 3]),
}


@pytest.mark.parametrize("values", SAME.values(), ids=SAME.keys())
def test_missing_values_are_not_present_in_any_library(values):
    column = numbers(values)
    assert [True, False, True] == column.present.tolist()
    assert [1, 3] == column.values[column.present].tolist()
    assert column.nullable


@pytest.mark.parametrize("values", [np.array([1, 2]), pd.Series([1, 2]), np.array([True, False])])
def test_integers_and_booleans_of_numpy_cannot_be_missing(values):
    assert not numbers(values).nullable
    assert numbers(values).whole


@pytest.mark.parametrize("values", [[1, 2], pl.Series([1, 2]), pa.array([1, 2]), np.array([1.0, 2.0])])
def test_everything_else_may_be_missing_whether_or_not_it_is(values):
    assert numbers(values).nullable


@pytest.mark.parametrize(
    "values", [np.array([1, 2]), pl.Series([1, 2]), pa.array([1, 2]), pd.Series([1, 2], dtype="Int64")]
)
def test_whole_numbers_are_known_by_their_type(values):
    assert numbers(values).whole


@pytest.mark.parametrize("values", [[1, 2], (1, 2), np.array([1, 2], dtype=object), pd.Series([1, 2], dtype=object)])
def test_what_the_values_happen_to_be_decides_nothing(values):
    assert not numbers(values).whole


@pytest.mark.parametrize(
    "condition",
    [
        np.array([True, False, True]),
        [True, None, True],
        pl.Series([True, None, True]),
        pd.Series([True, None, True], dtype="boolean"),
        np.array([2, 0, -1]),
        np.array([0.5, np.nan, 1.0]),
    ],
)
def test_conditions_hold_where_they_are_true(condition):
    assert [True, False, True] == bits(condition).present.tolist()


def test_categories_are_numbered_and_others_left_out():
    column = categories_of(pd.Series(["b", "a", "z", None]), ["a", "b"], name="c")
    assert [1, 0, -1, -1] == column.place.tolist()
    assert [0, 1] == categories_of(np.array([10, 20, 30]), [10, 20], name="c").place[:2].tolist()


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["b", "a", None], dtype="category"),
        pd.Categorical(["b", "a", None]),
        pl.Series(["b", "a", None], dtype=pl.Categorical),
        pa.array(["b", "a", None]).dictionary_encode(),
        np.array(["b", "a", "c"]),
    ],
)
def test_categorical_types_are_categories_too(values):
    column = categories_of(values, ["a", "b"], name="c")
    assert [1, 0, -1] == column.place.tolist()


def test_nobody_having_a_category_is_not_an_error():
    assert [-1, -1] == categories_of([None, None], ["a"], name="c").place.tolist()


def test_values_are_clamped_before_they_are_put_on_the_grid():
    aggregate = Aggregate(kind="mean", protects="value", upper=20, origin=Fraction(-1), step=Fraction(1, 10))
    steps = numbers(np.array([-1e300, -1.0, 0.04, 0.06, 1.0, 1e300])).steps(aggregate)
    assert [0, 0, 10, 11, 20, 20] == steps.tolist()


def test_large_integers_do_not_overflow():
    aggregate = Aggregate(kind="sum", protects="value", upper=100)
    assert [0, 100] == numbers(np.array([-(2**63), 2**63 - 1])).steps(aggregate).tolist()
    assert [0, 100] == numbers(np.array([0, 2**64 - 1], dtype=np.uint64)).steps(aggregate).tolist()


@pytest.mark.parametrize(
    "values", [["secret", "words"], [1, "secret"], np.zeros((2, 2)), [[1], [2]], 7, [date(2020, 1, 1)], [{"a": 1}]]
)
def test_what_is_no_column_of_numbers_is_refused_without_quoting_it(values):
    with pytest.raises(InvalidDeclaration) as refusal:
        numbers(values)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_categories_of_another_type_are_refused():
    with pytest.raises(InvalidDeclaration, match="of the values' type"):
        categories_of(np.array([1, 2]), ["a", "b"], name="c")


def test_a_column_never_shows_its_values():
    assert "ArrayColumn(rows=2, private)" == repr(numbers(np.array([41, 42])))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_is_no_category(missing):
    """Under presence an absence must count nowhere: with a category of its own, it would count there."""
    for values in (["a", None], np.array([1.0, np.nan]), pa.array([1.0, float("nan")])):
        with pytest.raises(InvalidDeclaration, match="not None or NaN"):
            categories_of(values, ["a" if isinstance(values, list) else 1.0, missing], name="c")


def test_a_masked_array_may_miss_values_whatever_its_type():
    column = numbers(np.ma.array([1, 2, 3], mask=[False, True, False]))
    assert [True, False, True] == column.present.tolist()
    assert column.nullable


def test_text_is_refused_by_its_type_even_where_it_spells_numbers():
    for values in (["1", "2"], pd.Series(["1", "2"], dtype="category"), pa.array(["1", None])):
        with pytest.raises(InvalidDeclaration, match="must be numbers"):
            numbers(values)


def test_categorical_and_decimal_numbers_are_numbers():
    for values in (pd.Series([1, 2**60 + 1], dtype="category"), [Decimal(1), Decimal(2**60 + 1)]):
        assert [1.0, 2.0**60] == numbers(values).values.tolist()


@pytest.mark.parametrize("large", [2**64, -(2**70), 2**60 + 1, True])
@pytest.mark.parametrize("others", [[1, None], [1, 2.5], [True, False]])
def test_numbers_of_python_are_taken_in_any_size_and_mixture(large, others):
    """Were one of them refused, the refusal would tell who has it."""
    column = numbers([*others, large])
    assert float(large) == column.values[2]
    assert [value is not None for value in [*others, large]] == column.present.tolist()


def test_a_number_beyond_doubles_is_infinite():
    assert [True, False] == numbers([1, 10**400]).present.tolist()


def test_every_measure_tosses_coins_of_its_own():
    """The same people in two samples would lose more than the two losses added up."""
    aggregate = Aggregate(kind="quantile", protects="value", upper=99, rank=Fraction(1, 2))
    sampled = Measure(aggregate=aggregate, histogram=True, inclusion=(2**63,))
    measures = (sampled, Measure(aggregate=aggregate, histogram=True), sampled)
    rows = ArrayRows(column=numbers(np.arange(100)), cohort=np.zeros(100, dtype=np.int64), cohorts=1)
    first, everybody, second = compute(Request(measures=measures, source=rows), simulation(1))
    assert 100 == everybody.counts.sum()
    assert 20 < (first.histogram & second.histogram).sum() < first.counts.sum() < 70
    assert not np.array_equal(first.histogram, second.histogram)

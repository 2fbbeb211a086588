"""Arrays and SQL about the same people give the plain answer, and so each other's."""

from fractions import Fraction
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from asking import answers, unlike
from hypothesis import given, settings
from hypothesis import strategies as st
from questions import Ask
from shapes import AGGREGATED, EPSILON, TEXTS, Column, filled
from test_truth import RUN

import discretion as dn
from discretion.noise import simulation

TENTH = Fraction(9, 10)
BOTH = {  # SQL -> the same question to an array
    "SUM": dn.sum,
    "AVG": dn.mean,
    "VARIANCE": dn.variance,
    "VAR_POP": lambda values, **how: dn.variance(values, population=True, **how),
    "MIN": dn.min,
    "MEDIAN": dn.median,
    "MAX": dn.max,
    "QUANTILE_DISC": lambda values, **how: dn.quantile(values, float(TENTH), **how),
}


def check_numbers(column: Column, folder: str) -> list[str]:
    """Ask both doors for every statistic of a column, each with an equal part of everybody's allowance."""
    rows = pd.DataFrame({"x": pd.Series(column.values, dtype=object)})
    finite = rows.map(lambda one: None if one is not None and not np.isfinite(float(one)) else one)
    grid = 1 if pa.types.is_integer(column.arrow().type) else 0.01
    table = pa.table({"x": column.arrow(), "who": range(len(rows)), "e": [EPSILON] * len(rows)})
    asks = [Ask(name, column, share=TENTH if name == "QUANTILE_DISC" else None) for name in BOTH]
    with dn.connect(f"{folder}/l.discretion") as db:
        db.protect("t", table, person="who", epsilon="e", bounds={"x": column.bounds}, grid={"x": grid})
        sql = ", ".join(f"{ask.sql(column)} AS a{place}" for place, ask in enumerate(asks))
        by_sql = answers(db.sql(f"SELECT {sql} FROM t", share=1.0))
    found = []
    for place, ask in enumerate(asks):
        truth = ask.plain(finite)
        how: dict[str, Any] = {"bounds": column.bounds, "epsilon": EPSILON / len(BOTH)}
        how |= {"grid": grid} if ask.function in ("MIN", "MEDIAN", "MAX", "QUANTILE_DISC") else {}
        release = BOTH[ask.function](table["x"], **how)
        for door, answer in {"SQL": by_sql[f"a{place}"], "array": (release.value, release.error)}.items():
            if truth is not None and (difference := unlike(ask, truth, finite, *answer)):
                found.append(f"{ask.function} by {door}: {difference}")
    return found


def columns(kinds: Any) -> st.SearchStrategy[Column]:
    """Draw a column of 20 to 60 people."""
    return st.builds(
        lambda kind, rows, missing, seed: filled("x", kind, rows, missing, simulation(seed)),
        st.sampled_from(kinds),
        st.integers(20, 60),
        st.sampled_from([0.0, 0.2]),
        st.integers(0, 2**32 - 1),
    )


@settings(max_examples=4, derandomize=True, **RUN)
@given(column=columns(AGGREGATED))
def test_numbers_of_arrays_are_those_of_sql(column):
    with TemporaryDirectory() as folder:
        assert [] == check_numbers(column, folder)


@pytest.mark.slow
@settings(max_examples=40, **RUN)
@given(column=columns(AGGREGATED))
def test_numbers_of_many_more_arrays_are_those_of_sql(column):
    with TemporaryDirectory() as folder:
        assert [] == check_numbers(column, folder)


@settings(max_examples=3, derandomize=True, **RUN)
@given(column=columns(["text", "category"]))
def test_counts_of_arrays_are_those_of_sql(column):
    """At ε = 1,000 for each question a count is wrong with a probability below 1e-100."""
    epsilon = [EPSILON] * len(column.values)
    table = pa.table({"x": column.arrow(), "who": range(len(epsilon)), "e": epsilon})
    truth = {key: column.values.count(key) for key in sorted(TEXTS)}
    with TemporaryDirectory() as folder, dn.connect(f"{folder}/l.discretion") as db:
        db.protect("t", table, person="who", epsilon="e", keys={"x": sorted(TEXTS)})
        by_sql = dict(db.sql("SELECT x, COUNT(*) FROM t GROUP BY x", share=0.5))
        named = db.sql("SELECT COUNT(*) FROM t WHERE x LIKE '%e%'", share=0.5).value
    assert truth == {key: round(n) for key, n in by_sql.items()}
    by_array = dn.histogram(column.values, categories=sorted(TEXTS), epsilon=epsilon)
    assert truth == {key: round(n) for key, n in by_array}
    having = [one is not None and "e" in one for one in column.values]
    assert sum(having) == round(named) == round(dn.count(having, epsilon=epsilon).value)
    assert max(truth.values()) == truth[dn.mode(column.values, categories=sorted(TEXTS), epsilon=epsilon).value]

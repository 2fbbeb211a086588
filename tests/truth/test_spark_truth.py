"""At a huge epsilon Spark's answers are the plain ones, too."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from asking import Protected, protect, wrong, wrong_groups
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import KINDS
from questions import aggregated, condition, counts, numeric, pick
from shapes import Column, shapes
from test_truth import RUN

from discretion.engines.spark import Spark

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
EXAMPLES = 2  # of tables for each kind of source


def asked(protected: Protected, columns: list[Column], rng: Any) -> list[str]:
    """Ask three questions of many parts each, so that few jobs run; return what is not the plain answer."""
    where, numbers = condition(rng, columns), aggregated(columns)
    counted = [counts(rng, columns, one) for one in columns[: 12 // protected.shape.rows_per_person]]
    found = wrong(protected, counted, where, 0.5, by_command=False)
    if numbers:
        asks = list({ask.function: ask for ask in (numeric(rng, numbers), numeric(rng, numbers))}.values())
        found += wrong(protected, asks, "", 0.25, by_command=False)
    if grouped := [one for one in columns if one.type in ("text", "category", "bool")]:
        found += wrong_groups(protected, pick(rng, grouped), 0.2)
    return found


@pytest.mark.parametrize("kind", ["parquet", "parquet folder", "arrow", "csv"])
def test_every_answer_by_spark_is_the_plain_one(kind: str, spark_session: Any) -> None:
    @settings(max_examples=EXAMPLES, derandomize=True, **RUN)
    @given(data=st.data())
    def examine(data: Any) -> None:
        shape = data.draw(shapes(salt=100 + [*KINDS].index(kind)), label="shape")
        with TemporaryDirectory() as folder:
            protected = protect(shape, KINDS[kind], Path(folder), engine=Spark(spark_session))
            try:
                columns = [one for one in shape.columns if one.type not in KINDS[kind].loses][:15]
                assert [] == asked(protected, columns or shape.columns[-1:], shape.rng)
            finally:
                protected.db.close()

    examine()

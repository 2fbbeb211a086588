"""Ten real data sets that nobody here made, through every kind of source: all aggregates are the plain ones."""

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
import palmerpenguins
import pandas as pd
import pytest
import statsmodels.api as sm
from asking import protect, wrong
from kinds import KINDS
from questions import Ask
from shapes import Column, Shape
from sklearn import datasets

DATA = {
    **{name: getattr(datasets, f"load_{name}") for name in ("iris", "diabetes", "wine", "breast_cancer")},
    **{name: getattr(sm.datasets, name) for name in ("fair", "anes96", "star98", "engel", "ccard", "grunfeld")},
    "penguins": palmerpenguins.load_penguins,
}
FUNCTIONS = ("SUM", "AVG", "VARIANCE", "STDDEV", "VAR_POP", "STDDEV_POP")
MOST = 300  # rows of a data set that are used


@dataclass(frozen=True, kw_only=True)
class Real(Column):
    """A column of a real data set; its bounds are around its values, which a steward would never do."""

    @property
    def bounds(self) -> tuple[float, float]:
        numbers = [float(one) for one in self.values if one is not None]
        return floor(min(numbers)), max(ceil(max(numbers)), floor(min(numbers)) + 1)


def frame(name: str) -> pd.DataFrame:
    """Load a data set: scikit-learn's with their target, statsmodels' as they are."""
    load: Any = DATA[name]
    if name == "penguins":
        return load()
    found = load.load_pandas().data if hasattr(load, "load_pandas") else load(as_frame=True).frame
    return found.sample(min(len(found), MOST), random_state=1).reset_index(drop=True)


def shape(name: str) -> Shape:
    data = frame(name)
    columns = [column(str(one), data[one]) for one in data.columns]
    people = Column(name="row number", type="number", values=list(range(len(data))))
    order = [*(one.name for one in columns), "row number", "allowance"]
    return Shape(person=people, columns=columns, order=order, rows_per_person=1, protects="value", epsilon="allowance")


def column(name: str, values: pd.Series) -> Column:
    if not pd.api.types.is_numeric_dtype(values):
        return Column(name=name, type="text", values=[None if pd.isna(one) else str(one) for one in values])
    whole = bool((values.dropna() % 1 == 0).all())
    kind = "int64" if whole else "float"
    return Real(
        name=name, type=kind, values=[None if np.isnan(one) else int(one) if whole else float(one) for one in values]
    )


def check(name: str, kind: str, folder: Any, most: int) -> None:
    asked = protect(shape(name), KINDS[kind], folder)
    counts = [Ask("COUNT", one) for one in asked.shape.columns[:8]]
    found = wrong(asked, counts, "", 0.3, by_command=not KINDS[kind].in_memory)
    numbers = [one for one in asked.shape.columns if isinstance(one, Real)][:most]
    for one in numbers:
        ranks = ("MIN", "MEDIAN", "MAX") if one.type == "int64" and one.bounds[1] - one.bounds[0] <= 1000 else ()
        found += wrong(asked, [Ask(f, one) for f in (*FUNCTIONS, *ranks)], "", 0.6 / most, by_command=False)
    asked.db.close()
    assert [] == found


@pytest.mark.parametrize("name", DATA)
def test_answers_about_real_data_are_the_plain_ones(name, tmp_path):
    check(name, ["parquet", "csv", "json lines", "sqlite", "excel"][list(DATA).index(name) % 5], tmp_path, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(name, marks=[pytest.mark.xdist_group("postgres")] * (name == "postgresql")) for name in KINDS]
)
@pytest.mark.parametrize("name", DATA)
def test_answers_about_real_data_are_the_plain_ones_in_every_kind_of_source(name, kind, tmp_path):
    check(name, kind, tmp_path, 3)

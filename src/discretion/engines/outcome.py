"""Outcome: the table that a statement gave becomes statistics, whole numbers by group and cohort."""

from typing import Any

import numpy as np
import pyarrow as pa

from discretion.engines.column import Column
from discretion.engines.rows import Rows
from discretion.engines.statement import Statement
from discretion.statistics import Measure, Request, Statistics


def statistics_of(answer: pa.Table, stated: Statement, request: Request[Rows]) -> tuple[Statistics, ...]:
    """Return the statistics of every measure, out of what its statement gave."""
    shape = (len(request.source.query.groups), request.source.cohorts.count)
    columns = {column.name: column for column in stated.columns}
    pairs = zip(request.measures, stated.names, strict=True)
    return tuple(_statistics(answer, stated, columns[name], measure, shape) for measure, name in pairs)


def _statistics(
    answer: pa.Table, stated: Statement, column: Column, measure: Measure, shape: tuple[int, int]
) -> Statistics:
    """Return one measure's whole numbers by group and cohort, out of what the SQL gave."""
    several = [other.name for other in stated.columns if other.histogram and f"{other.name}_all" in answer.column_names]
    about = np.ones(answer.num_rows, dtype=bool)
    for name in several:
        mine = measure.histogram and name == column.name
        about &= answer[f"{name}_all"].to_numpy() == (0 if mine else 1)
    if measure.histogram:
        return _histogram(answer.filter(pa.array(about)), column, measure, shape)
    part = answer.filter(pa.array(about))
    counts = _spread(part, f"{column.name}_n", shape)
    if measure.aggregate.kind in ("count", "people"):
        return Statistics(counts=counts.astype(np.int64), totals=counts)
    return Statistics(
        counts=counts.astype(np.int64),
        totals=_spread(part, f"{column.name}_s", shape),
        squares=_spread(part, f"{column.name}_q", shape) if column.squares else None,
    )


def _histogram(part: pa.Table, column: Column, measure: Measure, shape: tuple[int, int]) -> Statistics:
    one = measure.aggregate
    steps = np.arange(one.lower, one.upper + 1)
    part = part.filter(part[column.name].is_valid())
    histogram = np.zeros((*shape, len(steps)), dtype=np.int64)
    places = part["g"].to_numpy(), part["c"].to_numpy(), part[column.name].to_numpy() - one.lower
    np.add.at(histogram, places, part["n"].cast(pa.int64()).to_numpy())
    totals = histogram.astype(object) @ steps.astype(object)
    return Statistics(counts=histogram.sum(axis=2), totals=totals, histogram=histogram)


def _spread(part: pa.Table, name: str, shape: tuple[int, int]) -> Any:
    """Return a column of whole numbers of any size added up by (group, cohort), 0 where there is no row."""
    spread = np.zeros(shape, dtype=object)
    places = part["g"].to_numpy(), part["c"].to_numpy()
    np.add.at(spread, places, np.array([int(number or 0) for number in part[name].to_pylist()], dtype=object))
    return spread

"""Questions and their plain answers: conditions by DuckDB on the original table, numbers by pandas."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from shapes import AGGREGATED, NUMBERS, Column, Shape, cleaned

WHO = "whose row it is"  # no generated column has this name
PLAIN = duckdb.connect()  # a plain database, which no code of the product touches
MARGIN = 32  # a noise of 32 scales or more has a probability of 3e-14


def quoted(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def conditions(column: Column) -> Iterator[str]:
    """Yield what WHERE and FILTER may ask about a column of this type."""
    name, some = column.sql, next(one for one in column.values if one is not None)
    yield f"{name} IS NULL"
    yield f"{name} IS NOT NULL"
    if column.type in (*NUMBERS, "huge"):
        yield from (f"{name} = {some}", f"{name} > {some}", f"{name} <> {some}", f"{name} IN ({some}, {some + 1})")
        yield from (f"{name} BETWEEN {some} AND {some + 2}", f"NOT {name} <= {some}")
    elif column.type in ("decimal", "float", "single"):
        yield from (f"{name} > 2", f"{name} <= 1.5", f"ABS({name}) < 1", f"{name} BETWEEN -1 AND 4.25")
    elif column.type == "bool":
        yield from (name, f"NOT {name}", f"{name} = TRUE")
    elif column.type == "date":
        yield from (f"{name} >= DATE '2020-01-10'", f"EXTRACT(month FROM {name}) = 1", f"{name} = DATE '{some}'")
    elif column.type in ("time", "micro", "zoned"):
        yield from (f"{name} >= TIMESTAMP '2020-01-01 00:00:00'", f"EXTRACT(hour FROM {name}) = {some.hour}")
        yield f"CAST({name} AS DATE) = DATE '{some.date()}'"
    elif column.type in ("text", "category"):
        yield from (
            f"{name} = {quoted(some)}",
            f"{name} <> {quoted(some)}",
            f"{name} LIKE '%e%'",
            f"LENGTH({name}) > 4",
        )
        yield from (
            f"{name} IN ('N', {quoted(some)})",
            f"LOWER({name}) = 'n'",
            f"{name} IS DISTINCT FROM {quoted(some)}",
        )
    elif column.type == "padded":
        yield from (f"{name} = {quoted(some)}", f"{name} IN ('7', '010')")


@dataclass(frozen=True)
class Ask:
    """One aggregate: its SQL, and how the plain answer is computed from the rows it is about."""

    function: str  # COUNT(*), COUNT(c), people, or the name of a function of numbers
    column: Column | None = None
    condition: str = ""
    share: Fraction | None = None

    def sql(self, person: Column) -> str:
        if self.function == "people":
            asked = f"COUNT(DISTINCT {person.sql})"
        elif self.share is not None:
            asked = f"{self.function}({self.column.sql}, {float(self.share)})"
        else:
            asked = f"{self.function}({self.column.sql if self.column else '*'})"
        return f"{asked} FILTER (WHERE {self.condition})" if self.condition else asked

    @property
    def rank(self) -> Fraction:
        return RANKS[self.function] if self.share is None else self.share

    def plain(self, rows: pd.DataFrame) -> float | None:
        """Return the answer from the rows that match; None where there is none to compare."""
        if self.function == "people":
            return rows[WHO].nunique()
        if self.column is None:
            return len(rows)
        found = rows[self.column.name].dropna()
        if self.function == "COUNT":
            return len(found)
        low, high = self.column.bounds
        return number(self.function, np.clip(found.astype(float).to_numpy(), low, high), self.share)


def number(function: str, values: Any, share: Fraction | None = None) -> float | None:
    """Return a statistic of clamped numbers as pandas or NumPy has it."""
    if function == "SUM":
        return float(values.sum())
    if len(values) < 5:
        return None  # too few for an exact ratio
    series = pd.Series(values)
    if function in RANKS or share is not None:
        return float(np.sort(values)[max(0, ceil(RANKS.get(function, share) * len(values)) - 1)])
    return float(MOMENTS[function](series))


RANKS = {"MIN": Fraction(0), "MEDIAN": Fraction(1, 2), "MAX": Fraction(1)}
MOMENTS = {
    "AVG": pd.Series.mean,
    "VARIANCE": pd.Series.var,
    "VAR_SAMP": pd.Series.var,
    "STDDEV": pd.Series.std,
    "STDDEV_SAMP": pd.Series.std,
    "VAR_POP": lambda series: series.var(ddof=0),
    "STDDEV_POP": lambda series: series.std(ddof=0),
}


def matching(shape: Shape, condition: str, *, is_text: bool) -> pd.DataFrame:
    """Return the rows that count and match, as the original table has them: no code of the product is involved."""
    columns = {one.name: pa.array(cleaned(one, is_text=is_text), plain_type(one)) for one in shape.columns}
    table = pa.table({**columns, "the row": np.arange(len(shape.person.values))})
    with PLAIN.cursor() as db:
        db.register("plain", table)
        kept = db.execute(f'SELECT "the row" FROM plain WHERE {condition or "TRUE"}').fetchall()
    chosen = {row for (row,) in kept}
    used = [i for i, counts in enumerate(shape.counted()) if counts and i in chosen]
    frame = {name: pd.Series(array.to_pylist(), dtype=object) for name, array in columns.items()}
    frame[WHO] = pd.Series(shape.person.values, dtype=object)
    return pd.DataFrame(frame).iloc[used]


def plain_type(column: Column) -> pa.DataType:
    """Return the type of a column; a time with a zone is one in UTC."""
    return pa.timestamp("us") if column.type == "zoned" else column.arrow().type


def condition(rng: Any, columns: list[Column]) -> str:
    """Choose a condition on one column, or on two."""
    one, other = (pick(rng, [*conditions(pick(rng, columns))]) for _ in range(2))
    how = pick(rng, ["alone", "alone", "AND", "OR"])
    return one if how == "alone" else f"({one}) {how} ({other})"


SPREADS = [name for name in MOMENTS if name != "AVG"]


def spread(rng: Any, columns: list[Column]) -> Ask:
    """Choose a variance or a standard deviation; of few rows, the sample's is far from the population's."""
    return Ask(pick(rng, SPREADS), pick(rng, columns))


def numeric(rng: Any, columns: list[Column]) -> Ask:
    """Choose a statistic of a column of numbers."""
    function = pick(rng, ["SUM", *MOMENTS, *RANKS, "QUANTILE_CONT", "QUANTILE_DISC"])
    share = pick(rng, [Fraction(1, 10), Fraction(1, 4), Fraction(9, 10)])
    return Ask(function, pick(rng, columns), share=share if function.startswith("Q") else None)


def counts(rng: Any, columns: list[Column], column: Column) -> Ask:
    """Choose a count that this column decides: of its values, or of rows or people with a condition on it."""
    if rng.random() < 0.15:
        return Ask("COUNT", column)
    filtered = pick(rng, [*conditions(column)]) if rng.random() < 0.6 else condition(rng, [column, *columns])
    return pick(rng, [Ask("COUNT", column, filtered), Ask("COUNT", None, filtered), Ask("people", None, filtered)])


def pick(rng: Any, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def aggregated(columns: list[Column]) -> list[Column]:
    return [column for column in columns if column.type in AGGREGATED]

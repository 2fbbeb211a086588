"""MODE and COUNT(DISTINCT x): rows by the number of their value among those that are known in public."""

from datetime import date, datetime, timedelta
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Engine, Rows, column, statement
from discretion.engines.duckdb import DuckDB
from discretion.query import parse
from discretion.statistics import Measure, Request

FIRST = date(2024, 1, 1)
DAYS = [FIRST, FIRST + timedelta(days=39), FIRST + timedelta(days=40), date(1, 1, 1), date(9999, 12, 31), None]
KEYS: dict[str, tuple[Any, ...]] = {
    "word": ("b", "a ", "a", "Ä", "", *(f"nobody says {i}" for i in range(40))),
    "whole": (7, 0, -(2**62), 2**53 + 1),
    "real": (2.5, 0, -3, 1e30),
    "at": ("2024-01-01 00:00:00", "2024-01-01", "2024-01-01 12:00:00"),  # the first two are one value
    "bit": (1, 0),
}
COLUMNS: dict[str, list[Any]] = {
    "word": ["a", "a ", "A", "", None, "Ä"],
    "whole": [7, -(2**62), 2**53, 2**53 + 1, None, 0],
    "real": [2.5, -0.0, nan, inf, None, 1e30],
    "day": DAYS,
    "at": [datetime(2024, 1, 1), datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 12, 0, 1), None, datetime.max, None],
    "bit": [1, 1, 0, None, 1, 5],
    "x": [0.0, 4.99, 5.0, 1e9, None, -2.0],
}
ASKED = {  # an aggregate -> the number of each row's value, None where it has none
    "MODE(word)": [2, 1, None, 4, None, 3],
    "COUNT(DISTINCT word) FILTER (WHERE x >= 0)": [2, 1, None, 4, None, None],
    "MODE(whole)": [0, 2, None, 3, None, 1],
    "MODE(real)": [0, 1, None, None, None, 3],
    "COUNT(DISTINCT day)": [0, 39, None, None, None, None],
    "MODE(at)": [0, 2, None, None, None, None],
    "MODE(bit)": [0, 0, 1, None, 0, None],
    "COUNT(DISTINCT WIDTH_BUCKET(x, 0, 10, 50))": [1, 25, 26, 51, None, 0],
    "MODE(x > 4)": [0, 1, 1, 1, None, 0],
    "COUNT(*)": [1, 1, 1, 1, 1, 1],
    "SUM(bit)": [1, 1, 0, 0, 1, 1],  # its grid is that of MODE(bit), and its numbers are others
}


def found(engine: Engine, sql: str, rows: pa.Table, **declared: Any) -> list[Any]:
    """Return the statistics of every aggregate, as lists by group; everybody is in a cohort of their own."""
    people = len(set(rows["id"].to_pylist()))
    source = engine.attach("t", rows)
    known = {"person": "id", "epsilon": "epsilon", "register": "t", "protects": "value"}
    known |= {"bounds": {"bit": (0, 1), "x": (0, 10)}, "spans": {"day": ("2024-01-01", "2024-02-09")}}
    table = Table(name="t", source=source, columns=engine.schema(source), keys=KEYS, **(known | declared))
    query = parse(sql, {"t": table})
    measures = [Measure(aggregate=one, histogram=one.kind in ("mode", "distinct")) for one in query.aggregates]
    cohorts = Cohorts(count=people, levels={float(p + 1): p for p in range(people)})
    each = engine.compute(Request(measures=tuple(measures), source=Rows(query=query, cohorts=cohorts)))
    return [one.totals if one.histogram is None else one.histogram for one in each]


def people(rows: int = 1) -> pa.Table:
    """Return one person for every row of COLUMNS, who has it `rows` times."""
    number = len(DAYS)
    columns = {name: pa.array([value for value in values for _ in range(rows)]) for name, values in COLUMNS.items()}
    who = np.repeat(np.arange(number), rows)
    return pa.table({"id": who, "epsilon": who + 1.0, **columns})


def differences(engine: Engine) -> list[str]:
    """Return the aggregates that are not as expected, asked together."""
    each = found(engine, f"SELECT {', '.join(ASKED)} FROM t", people())
    return [text for text, one in zip(ASKED, each, strict=True) if by_person(one) != ASKED[text]]


def by_person(statistic: Any) -> list[int | None]:
    """Return everybody's number, of the first group: of a value that is counted once, or a total."""
    if np.asarray(statistic).ndim == 2:
        return [int(total) for total in statistic[0]]
    assert statistic[0].sum(axis=1).max() <= 1
    return [int(row.argmax()) if row.any() else None for row in statistic[0]]


def test_rows_are_counted_by_the_number_of_their_value(engine: Engine) -> None:
    assert [] == differences(engine)


def test_a_mode_and_a_sum_that_share_a_column_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = column._shape
    monkeypatch.setattr(column, "_shape", lambda *given: shape(*given)[:-1])
    assert {"MODE(bit)", "SUM(bit)"} & set(differences(DuckDB()))


def test_rows_that_a_join_of_values_drops_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    join = statement._Build._key_join
    monkeypatch.setattr(statement._Build, "_key_join", lambda *given, side="": join(*given))
    assert {"COUNT(*)"} <= set(differences(DuckDB()))


def test_a_person_with_many_rows_has_so_many_values_at_most(engine: Engine) -> None:
    sql = "SELECT bit, COUNT(DISTINCT day), MODE(word) FROM t GROUP BY bit"
    days, words = found(engine, sql, people(3), rows_per_person=2)
    assert [2, 2, 0, 0, 0, 0] == days[0].sum(axis=1).tolist()
    assert [2, 2, 0, 0, 0, 0] == words[0].sum(axis=1).tolist()
    assert [0, 0, 0, 0, 0, 0] == words[1].sum(axis=1).tolist()  # of person 2, whose word is not declared

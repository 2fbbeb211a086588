"""Times that the database cannot read, in one person's row: every question about that column is answered."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from discretion.connection import connect

FAR = 2**63 - 1
COLUMNS = {
    "ms": pa.timestamp("ms"),
    "z": pa.timestamp("ms", tz="UTC"),
    "s": pa.timestamp("s"),
    "s_z": pa.timestamp("s", tz="Europe/Berlin"),
    "ns": pa.timestamp("ns"),
    "day": pa.date32(),
}
QUESTIONS = (
    "SELECT MONTH({0}) AS month, COUNT(*) AS c FROM t GROUP BY MONTH({0})",
    "SELECT COUNT({0}) AS a, COUNT_IF({0} IS NULL) AS b, COUNT_IF({0} > TIMESTAMP '2024-01-01 10:00:00') AS c FROM t "
    "WHERE DATE_TRUNC('week', {0}) <> DATE '2024-01-01' OR CAST({0} AS VARCHAR) LIKE '2%'",
)


def rows(far: int, names: tuple[str, ...]) -> pa.Table:
    """Thirty people, one of whom has times at this distance from 1970."""
    people = {"id": range(30), "epsilon": [1.0] * 30}
    times = {}
    for name in names:
        day = name == "day"
        limit = 2**31 - 1 if day else FAR
        numbers = pa.array([max(min(far, limit), -limit), *range(29)], pa.int32() if day else pa.int64())
        times[name] = numbers.view(COLUMNS[name])
    return pa.table({**people, **times})


def by_pyarrow(table: pa.Table, folder: Path) -> Any:
    parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def by_duckdb(table: pa.Table, folder: Path) -> Any:
    with duckdb.connect() as writer:
        writer.register("given", table)
        writer.execute(f"COPY (SELECT * FROM given) TO '{folder / 't.parquet'}' (FORMAT parquet)")
    return folder / "t.parquet"


def in_arrow(table: pa.Table, folder: Path) -> Any:
    return table


WRITTEN = {by_pyarrow: ("ms", "z", "ns", "day"), by_duckdb: ("ms", "ns", "day"), in_arrow: tuple(COLUMNS)}


@pytest.mark.parametrize("far", [FAR, -FAR, FAR // 1000 + 1])
@pytest.mark.parametrize("writer", WRITTEN, ids=lambda one: one.__name__)
def test_every_question_about_times_is_answered(writer: Any, far: int, tmp_path: Path) -> None:
    names = WRITTEN[writer]
    with connect(tmp_path / "t.discretion") as db:
        db.protect("t", writer(rows(far, names), tmp_path), person="id", epsilon="epsilon", rows_per_person=1)
        for name in names:
            for number, question in enumerate(QUESTIONS):
                assert db.sql(question.format(name), share=0.001).rows, (name, number)

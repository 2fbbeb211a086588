"""At a huge epsilon Spark's answers are the plain ones, too."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import Protected, protect, wrong, wrong_groups
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import KINDS
from questions import aggregated, condition, counts, numeric, pick
from shapes import Column, shapes
from test_truth import RUN

import discretion as dn
from discretion.engines.spark import Spark
from discretion.noise import simulation

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
EXAMPLES = 2  # of tables for each kind of source
PEOPLE, VISITS = 300, 1_500
PER_PERSON = (
    "SELECT COUNT(*) AS n FROM (SELECT id, SUM(LEAST(GREATEST(x * size, -30), 330)) AS total, COUNT(DISTINCT t.place) "
    "AS places FROM t JOIN sizes ON t.place = sizes.place GROUP BY id) WHERE total > 500 AND places > 1"
)
WRITTEN_OUT = {  # what is put together from other operations -> the same in plain SQL
    "SELECT COUNT(DISTINCT place) AS places, MODE(place) AS usual FROM t": (
        "SELECT COUNT(DISTINCT place), MODE(place) FROM t WHERE place <> 'E'"
    ),
    "SELECT WIDTH_BUCKET(x, 0, 80, 4) AS bucket, COUNT(*) AS n FROM t GROUP BY bucket ORDER BY bucket": (
        "SELECT CASE WHEN x < 0 THEN 0 WHEN x >= 80 THEN 5 ELSE x // 20 + 1 END, COUNT(*) FROM t GROUP BY 1 ORDER BY 1"
    ),
    PER_PERSON: PER_PERSON,
}


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


def near(row: list[Any]) -> list[Any]:
    """Return numbers that are equal to those within 0.9: of noise of a scale of 1/30, one in 10^11 is beyond."""
    return [one if isinstance(one, str) else pytest.approx(one, abs=0.9) for one in row]


def test_what_is_written_out_has_the_plain_answer_by_spark(spark_session: Any, tmp_path: Path) -> None:
    random = simulation(31)
    tables = {
        "t": pa.table(
            {
                "id": [one % PEOPLE for one in range(VISITS)],
                "epsilon": [1e3] * VISITS,
                "x": random.integers(-10, 110, VISITS),
                "place": random.choice(["A", "B", "C", "E"], VISITS, p=[0.2, 0.5, 0.2, 0.1]),  # E is not declared
            }
        ),
        "sizes": pa.table({"place": ["A", "B"], "size": [2, 3]}),
    }
    with duckdb.connect() as plain, dn.connect(tmp_path / "l.discretion", engine=Spark(spark_session)) as db:
        for name, table in tables.items():
            pq.write_table(table, tmp_path / f"{name}.parquet")
            plain.register(name, table)
        db.protect(
            "t",
            tmp_path / "t.parquet",
            person="id",
            epsilon="epsilon",
            rows_per_person=VISITS // PEOPLE,
            bounds={"x": (-10, 110)},
            keys={"place": ["A", "B", "C", "D"]},  # nobody has D
            lookups={"sizes": (tmp_path / "sizes.parquet", "place")},
        )
        for sql, same in WRITTEN_OUT.items():
            found = db.sql(sql, share=0.3)
            assert [*map(list, plain.sql(same).fetchall())] == [near(list(row)) for row in found], sql


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

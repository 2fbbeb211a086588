"""Spark: CPU seconds of an answer against those of the plain question in one run: `python -m benchmarks.spark ROWS`."""

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows
from discretion.engines.spark import Spark
from discretion.query import parse
from discretion.statistics import Measure, Request

ROWS = 1_000_000
LEVELS = {0.1: 0, 0.5: 1, 1.0: 2}
QUESTIONS = {  # name -> (SQL, rows_per_person, most times plain Spark)
    "count": ("SELECT COUNT(*) FROM t WHERE x > 10", 1_000, 2.0),
    "average": ("SELECT AVG(x) FROM t", 1_000, 2.0),
    "group, nobody above k": ("SELECT place, SUM(x) FROM t GROUP BY place", 1_000, 4.0),
    "group, 1 % above k": ("SELECT place, SUM(x) FROM t GROUP BY place", 20, 4.0),
    "median": ("SELECT MEDIAN(x) FROM t", 1_000, 1.0),
}


def started(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder
    for name, setting in settings.items():
        builder = builder.config(name, setting)
    return builder.getOrCreate()


def written(session: Any, rows: int, folder: Path) -> str:
    """Write people with about ten rows each; one in a hundred has three times as many."""
    people = rows // 12
    person = f"CASE WHEN id % 4 = 0 THEN id * 7919 % {people // 100} * 100 ELSE id * 7919 % {people} END"
    frame = session.range(rows).selectExpr(
        f"{person} AS id",
        f"ELEMENT_AT(ARRAY(0.1D, 0.5D, 1.0D), CAST(({person}) % 3 AS INT) + 1) AS epsilon",
        "CAST(id * 31 % 1000 AS DOUBLE) / 10 AS x",
        "ELEMENT_AT(ARRAY('A', 'B', 'C', 'D'), CAST(id % 4 AS INT) + 1) AS place",
    )
    frame.write.parquet(str(folder / "t"))
    return f"{folder}/t/"


def java() -> int:
    """Return the process of Spark's driver, which this program started."""
    from pyspark import SparkContext

    return int(SparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def cpu(process: int) -> float:
    """Return the CPU seconds of this program and of Spark."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = resource.getrusage(resource.RUSAGE_SELF)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + own.ru_utime + own.ru_stime


def cost(process: int, work: Callable[[], Any], times: int = 3) -> float:
    """Return the CPU seconds of the cheapest of some runs; the first compiles."""
    found = []
    for _ in range(times):
        before = cpu(process)
        work()
        found.append(cpu(process) - before)
    return min(found)


def asked(engine: Spark, place: str, sql: str, most: int) -> Callable[[], Any]:
    table = Table(
        name="t",
        source=place,
        person="id",
        epsilon="epsilon",
        register="t",
        protects="value",
        columns=engine.schema(place),
        rows_per_person=most,
        bounds={"x": (0, 100)},
        grid={"x": 0.1},
        keys={"place": ("A", "B", "C", "D")},
    )
    query = parse(sql, {"t": table})
    measures = tuple(Measure(aggregate=one, histogram=one.kind == "quantile") for one in query.aggregates)
    request = Request(measures=measures, source=Rows(query=query, cohorts=Cohorts(count=3, levels=LEVELS)))
    return lambda: engine.compute(request)


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = started(folder)
        place, process = written(session, rows, folder), java()
        engine = Spark(session)
        session.read.parquet(place).createOrReplaceTempView("t")
        print(f"{rows:,} rows; CPU seconds, cheapest of three runs")
        for label, (sql, most, target) in QUESTIONS.items():
            plain = cost(process, lambda sql=sql: session.sql(sql).toArrow())  # type: ignore[misc]
            private = cost(process, asked(engine, place, sql, most))
            print(
                f"{label:24} plain {plain:6.2f}  private {private:6.2f}  {private / plain:5.1f} x (at most {target} x)"
            )
        session.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)

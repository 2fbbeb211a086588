"""Spark: what answers cost against the plain questions, in CPU seconds, memory and bytes that are moved between tasks.

`python -m benchmarks.spark ROWS TIMES`. Plain and private questions are asked in a process each, one after the other,
over the same Parquet files. Each is asked several times, because Spark compiles what it runs; the cheapest counts.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows
from discretion.engines.spark import Spark
from discretion.query import parse
from discretion.statistics import Measure, Request

ROWS, TIMES = 1_000_000, 5
LEVELS = {0.1: 0, 0.5: 1, 1.0: 2}
QUESTIONS = {  # name -> (SQL, rows_per_person, most times plain Spark)
    "count": ("SELECT COUNT(*) FROM t WHERE x > 10", 1_000, 2.0),
    "average": ("SELECT AVG(x) FROM t", 1_000, 2.0),
    "group, nobody above k": ("SELECT place, SUM(x) FROM t GROUP BY place", 1_000, 4.0),
    "group, 1 % above k": ("SELECT place, SUM(x) FROM t GROUP BY place", 20, 4.0),
    "median": ("SELECT MEDIAN(x) FROM t", 1_000, 1.0),
}
MOST_MEMORY = 1.5  # times plain Spark


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
        "spark.eventLog.enabled": "true",  # says how much is moved
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    (folder / "events").mkdir(exist_ok=True)
    builder = SparkSession.builder
    for name, setting in settings.items():
        builder = builder.config(name, setting)
    return builder.getOrCreate()


def written(session: Any, rows: int, folder: Path) -> str:
    """Write people with nine rows each; one in a hundred has a quarter of all rows on top of them."""
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


def peak(process: int) -> int:
    """Return the most memory, in MiB, that this program and Spark have held."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return (int(lines["VmHWM"].split()[0]) + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024


def cost(process: int, work: Callable[[], Any], times: int) -> tuple[float, float]:
    """Return the CPU seconds and the seconds of the cheapest of some runs."""
    found = []
    for _ in range(times):
        before, start = cpu(process), time.monotonic()
        work()
        found.append((cpu(process) - before, time.monotonic() - start))
    return min(found)


def moved(log: Path) -> dict[str, int]:
    """Return the bytes that tasks wrote for other tasks, by the name of the group of jobs they belong to."""
    stages, found = {}, dict[str, int]()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            stages |= dict.fromkeys(event["Stage IDs"], event["Properties"].get("spark.jobGroup.id", ""))
        if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            written = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            found[stages[event["Stage ID"]]] = found.get(stages[event["Stage ID"]], 0) + written
    return found


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


def measured(kind: str, place: str, folder: Path, times: int) -> dict[str, Any]:
    """Ask every question, plain or private, in this process; return its costs, and the memory of all of them."""
    session = started(folder)
    process, engine, found = java(), Spark(session), {}
    session.read.parquet(place).createOrReplaceTempView("t")
    for label, (sql, most, _) in QUESTIONS.items():
        plain = lambda sql=sql: session.sql(sql).toArrow()  # noqa: E731
        work = asked(engine, place, sql, most) if kind == "private" else plain
        session.sparkContext.setJobGroup(f"first {label}", label)
        first = cost(process, work, 1)
        session.sparkContext.setJobGroup(label, label)
        found[label] = [*min(first, cost(process, work, times - 1)), *first]
    found["memory"], log = peak(process), folder / "events" / session.sparkContext.applicationId
    session.stop()
    written = moved(log)
    for label in QUESTIONS:
        found[label] += [written[label] / (times - 1), written[f"first {label}"]]
    return found


def apart(*words: str) -> Any:
    """Return what a process of its own prints last."""
    run = subprocess.run([sys.executable, "-m", "benchmarks.spark", *words], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def main(rows: int, times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = apart("write", str(rows), folder)
        plain, private = (apart(kind, place, folder, str(times)) for kind in ("plain", "private"))
    print(f"{rows:,} rows; CPU seconds (and seconds), cheapest of {times} runs")
    for label, (_, _, target) in QUESTIONS.items():
        (one, took, *_), (two, taken, new, wall, moves, moved_first) = plain[label], private[label]
        costs = f"plain {one:6.2f} ({took:5.1f})  private {two:6.2f} ({taken:5.1f})"
        extra = f"moved {moves / 1e6:7.2f} MB  first {new:6.2f} ({wall:5.1f}), moved {moved_first / 1e6:7.2f} MB"
        print(f"{label:24} {costs}  {two / one:5.1f} x (at most {target} x)  {extra}")
    one, two = plain["memory"], private["memory"]
    print(f"{'peak memory, MiB':24} plain {one:6}  private {two:6}  {two / one:5.2f} x (at most {MOST_MEMORY} x)")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", rows, folder]:
            print(json.dumps(written(started(Path(folder)), int(rows), Path(folder))))
        case ["plain" | "private" as kind, place, folder, times]:
            print(json.dumps(measured(kind, place, Path(folder), int(times))))
        case [rows, times]:
            main(int(rows), int(times))
        case given:
            main(int(given[0]) if given else ROWS, TIMES)

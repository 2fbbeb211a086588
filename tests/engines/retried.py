"""A program for `test_retried.py`: ask in local-cluster mode, then again while executors are killed; print the answers.

Executors are processes of their own. The program kills those that it started, when they have finished a part of a
stage, so that what they had shuffled is lost and computed again somewhere else. With the word `planted`, rows are
chosen by the order in which they arrive, which such a loss changes. With the word `window`, a window ranks them.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession
from sqlglot import exp

sys.path.insert(0, str(Path(__file__).parents[1]))

from discretion.engines import engine as engine_module
from discretion.engines.spark import Spark, ranking
from discretion.engines.spark.dialect import SPARK
from engines.statements import compute, table

QUESTION = "SELECT place, SUM(x), MEDIAN(x) FROM t WHERE x < 9 GROUP BY place"
KILLS, TASKS = 2, 6  # files to read are as many tasks, and no other stage has so many
PEOPLE, ROWS = 300, 9_000


def started(folder: Path) -> SparkSession:
    settings = {
        "spark.master": "local-cluster[2,1,512]",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.task.maxFailures": "20",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.files.maxPartitionBytes": "1000000",  # less than opening a file counts: a task for every file
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # a new executor would compile everything anew
        "spark.sql.codegen.wholeStage": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder
    for name, setting in settings.items():
        builder = builder.config(name, setting)
    return builder.getOrCreate()


def executors() -> list[int]:
    """Return the executors below this program: they and nothing else are killed."""
    parents, found = {}, []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if "CoarseGrainedExecutorBackend" in (process / "cmdline").read_text():
                    found.append(int(process.name))
            except OSError:  # it has ended
                continue
    return sorted(process for process in found if os.getpid() in list(ancestors(process, parents)))


def ancestors(process: int, parents: dict[int, int]) -> Iterator[int]:
    while process in parents:
        process = parents[process]
        yield process


def kill(tracker: Any, done: threading.Event, killed: list[int]) -> None:
    """Kill the oldest executor in the middle of a stage that reads, as often as `KILLS`."""
    seen: set[int] = set()
    while len(killed) < KILLS and not done.wait(0.005):
        for stage in tracker.getActiveStageIds():
            at_work = tracker.getStageInfo(stage)
            if stage not in seen and at_work and at_work.numTasks >= TASKS and at_work.numCompletedTasks > 1:
                seen.add(stage)
                killed.append(executors()[0])
                os.kill(killed[-1], signal.SIGKILL)


def asked(engine: Spark, place: str) -> str:
    declared = table(engine, place, rows_per_person=3, bounds={"x": (0, 10)})
    sums, histograms = compute(engine, QUESTION, declared)
    return f"{sums.totals.tolist()} {histograms.histogram.tolist()}"


def plant() -> None:
    """Choose rows by the order in which they arrive."""
    write = SPARK.text

    def in_any_order(self: Any, tree: exp.Expr) -> str:
        for window in list(tree.find_all(exp.Window)):
            window.args["order"].set("expressions", [exp.Ordered(this=exp.column("who"))])
        return write(tree).replace("SORT_ARRAY(COLLECT_LIST(content))", "COLLECT_LIST(content)")

    type(SPARK).text = in_any_order  # type: ignore[method-assign]


def written(folder: Path) -> str:
    people = [number * 7919 % PEOPLE for number in range(ROWS)]
    data = {
        "id": people,
        "epsilon": [(0.1, 0.5, 1.0)[person % 3] for person in people],
        "x": [float(number // PEOPLE * 5 % 11) for number in range(ROWS)],
        "place": ["AB"[number // 7 % 2] for number in range(ROWS)],
    }
    folder.mkdir()
    for part in range(TASKS):
        pq.write_table(pa.table(data).slice(part * ROWS // TASKS, ROWS // TASKS), folder / f"{part}.parquet")
    return f"{folder}/"


def main(folder: Path) -> None:
    place, session = written(folder / "in"), started(folder)
    context = session.sparkContext
    work = Path(pyspark.__file__).parent / "work" / context.applicationId
    try:
        engine, done, killed = Spark(session), threading.Event(), []
        calm = asked(engine, place)
        disturber = threading.Thread(target=kill, args=(context.statusTracker(), done, killed))
        disturber.start()
        disturbed = asked(engine, place)
        done.set()
        disturber.join()
    finally:
        session.stop()
        shutil.rmtree(work, ignore_errors=True)  # logs of workers: Spark puts them next to itself
    print(calm, disturbed, len(killed), sep="\n")


if __name__ == "__main__":
    engine_module.coin_key = lambda: "the same key"
    if "planted" in sys.argv:
        plant()
    if "window" in sys.argv:
        ranking.TOGETHER = 1
    main(Path(sys.argv[1]))

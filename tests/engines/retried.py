"""A program for `test_spark.py`: ask in local-cluster mode, then again while executors are killed; print both answers.

Executors are processes of their own. The program kills those that it started, as soon as they work on a question.
"""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from discretion.engines import engine as engine_module
from discretion.engines.spark import Spark
from engines.statements import compute, table

QUESTION = "SELECT place, SUM(x), MEDIAN(x) FROM t WHERE x < 9 GROUP BY place"


def started(folder: Path) -> SparkSession:
    settings = {
        "spark.master": "local-cluster[2,1,512]",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.log.level": "OFF",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
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
    return [process for process in found if os.getpid() in list(ancestors(process, parents))]


def ancestors(process: int, parents: dict[int, int]):
    while process in parents:
        process = parents[process]
        yield process


def asked(engine: Spark, place: str) -> str:
    sums, histograms = compute(engine, QUESTION, table(engine, place, rows_per_person=3, bounds={"x": (0, 10)}))
    return f"{sums.totals.tolist()} {histograms.histogram.tolist()}"


def main(folder: Path) -> None:
    session = started(folder)
    engine_module.coin_key = lambda: "the same key"
    people, rows = 4_000, 120_000
    data = {
        "id": [(number * 7919) % people for number in range(rows)],
        "epsilon": [(0.1, 0.5, 1.0)[(number * 7919) % people % 3] for number in range(rows)],
        "x": [float(number % 11) for number in range(rows)],
        "place": ["AB"[number // 7 % 2] for number in range(rows)],
    }
    (folder / "in").mkdir()
    for part in range(8):
        pa.parquet.write_table(pa.table(data).slice(part * rows // 8, rows // 8), folder / "in" / f"{part}.parquet")
    calm = asked(Spark(session), f"{folder}/in/")
    done, killed = threading.Event(), []

    def kill() -> None:
        for pause in (0.3, 0.7, 1.1, 1.5):
            if done.wait(pause):
                return
            for process in executors()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    disturber = threading.Thread(target=kill)
    disturber.start()
    disturbed = asked(Spark(session), f"{folder}/in/")
    done.set()
    disturber.join()
    time.sleep(0.1)
    work = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(work, ignore_errors=True)  # logs of workers: Spark puts them next to itself
    print(calm, disturbed, len(killed), sep="\n")


if __name__ == "__main__":
    import pyarrow.parquet

    main(Path(sys.argv[1]))

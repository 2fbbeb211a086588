"""What a question costs besides reading its rows: milliseconds of CPU, next to the plain question in the same run."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table as Sheet

import discretion as dn
from benchmarks.data import OUTPUT, THREADS, generate

PEOPLE = 1_000_000
COUNT = "SELECT COUNT(*) FROM people WHERE age > {}"
DECLARED: dict[str, Any] = {"person": "person", "epsilon": "epsilon", "bounds": {"age": (0, 120)}}
CONDITIONS = (
    "age < 3",
    "income > 5",
    "NOT smoker",
    "age * 2 > 9",
    "ABS(age) > 4",
    "age BETWEEN 4 AND 8",
    "income + age > 12",
    "smoker OR age > 4",
)
REPEATS = 12


@dataclass(frozen=True)
class Cost:
    """What something took, and the most it may take."""

    label: str
    milliseconds: float
    plain: float = 0.0  # what it is compared with: taken off
    most: float | None = None  # that may be left; None: nothing was promised


def cpu(work: Callable[[int], object], repeats: int = REPEATS) -> float:
    """The median milliseconds of CPU, all threads together; `work` gets a number of its own each time."""
    seconds = []
    for number in range(repeats):
        start = process_time()
        work(number)
        seconds.append(process_time() - start)
    return 1000 * median(seconds)


def questions(db: dn.Connection, source: Path) -> Iterator[Cost]:
    """A question whose form was checked before, others, a plan, a stored answer."""
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute(f"CREATE VIEW people AS SELECT * FROM read_parquet('{source}')")
        plain = cpu(lambda number: connection.sql(COUNT.format(number)).fetchall())
        plain_again = cpu(lambda _: connection.sql(COUNT.format(50)).fetchall())  # it takes longer to tell rows apart
        others = [f"SELECT COUNT(*) FROM people WHERE {condition}" for condition in CONDITIONS]
        plain_others = cpu(lambda number: connection.sql(others[number]).fetchall(), len(others))
    db.sql(COUNT.format(50), share=0.01)
    again = cpu(lambda number: db.sql(COUNT.format(50), share=0.011 + number / 10_000))
    yield Cost("a question asked before, with another share", again, plain_again, 20)
    yield Cost("another number in it", cpu(lambda number: db.sql(COUNT.format(number), share=0.01)), plain, 40)
    found = cpu(lambda number: db.sql(others[number], share=0.01), len(others))
    yield Cost("another form", found, plain_others, 40)
    yield Cost("explain", cpu(lambda number: db.explain(COUNT.format(50), share=0.02 + number / 1_000)), most=10)
    yield Cost("a stored answer", cpu(lambda number: db.sql(COUNT.format(number), share=0.01)))


def starts(ledger: Path) -> Iterator[Cost]:
    """Programs that begin: Python itself is taken off."""
    nothing = process("-c", "pass")
    yield Cost("import discretion", process("-c", "import discretion"), nothing, 400)
    first = "import discretion as dn; dn.mean([1.0, 2.0], epsilon=[1.0, 2.0], bounds=(0, 3))"
    yield Cost("import, and a first mean of an array", process("-c", first), nothing)
    yield Cost("discretion --help", process("-m", "discretion", "--help"), nothing)
    place = ("--ledger", str(ledger))
    yield Cost("discretion tables", process("-m", "discretion", "tables", *place), nothing)
    yield Cost("discretion explain", process("-m", "discretion", "explain", COUNT.format(1), *place), nothing)


def process(*arguments: str) -> float:
    """The least milliseconds of CPU that Python takes for this, of several runs."""
    found = []
    for _ in range(5):
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = getrusage(RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return 1000 * min(found)


def main(people: int = PEOPLE) -> None:
    """Print what each takes, and whether it keeps what the design promises."""
    source = (generate(people) / "people.parquet").resolve()
    kept = OUTPUT / f"question-{people}.discretion"
    if not kept.exists():
        with dn.connect(kept) as db:
            db.protect("people", source, **DECLARED)
    sheet = Sheet(title=f"CPU time besides reading rows, {people:,} people at 100 levels")
    for heading in ("", "plain ms", "ms", "besides it", "at most"):
        sheet.add_column(heading, justify="right" if heading else "left")
    with TemporaryDirectory() as folder:
        ledger = Path(shutil.copy(kept, folder))
        with dn.connect(ledger) as db:
            costs = [*questions(db, source), *starts(ledger)]
    for cost in costs:
        fixed = cost.milliseconds - cost.plain
        over = " (over)" if cost.most is not None and fixed > cost.most else ""
        most = "" if cost.most is None else f"{cost.most:,.0f}"
        sheet.add_row(cost.label, f"{cost.plain:,.1f}", f"{cost.milliseconds:,.1f}", f"{fixed:,.1f}{over}", most)
    Console().print(sheet)


if __name__ == "__main__":
    main()

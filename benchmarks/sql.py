"""Speed and memory of protected questions in DuckDB, as ratios to the same question asked plainly in the same run."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter, process_time

import duckdb
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Sheet

from benchmarks import question
from benchmarks.data import THREADS, generate
from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows
from discretion.engines.duckdb import DuckDB
from discretion.noise import inclusion_threshold
from discretion.query import parse
from discretion.statistics import Measure, Request

LEVELS, REPEATS = 100, 3
FIRST, MEMORY = 2.0, 1.5  # at most: seconds of a first question, and times the memory of the plain one
CHANGES = 10_000
PREFERENCES = {"column": "column", "register": "register", "changed": f"register, {CHANGES:,} changed"}
REGIONS = tuple(f"R{number:02d}" for number in range(50))
BY_PERSON = """SELECT region, SUM(n), SUM(s) FROM (SELECT person, region, COUNT(*) AS n, SUM(amount) AS s FROM visits
    GROUP BY person, region) GROUP BY region"""
BY_REGION = "SELECT region, COUNT(*), SUM(amount) FROM visits GROUP BY region"


@dataclass(frozen=True)
class Case:
    """One protected question, the plain one it is compared with, and the most it may take of its time."""

    label: str
    sql: str
    plain: str
    factor: float
    extra: float = 0.0  # seconds
    rows_per_person: int = 1
    sampled: bool = False


CASES = (
    Case("count with WHERE", "SELECT COUNT(*) FROM people WHERE age > 40 AND smoker", "", 1.5, 0.025),
    Case("average", "SELECT AVG(income) FROM people", "", 1.5, 0.025),
    Case("median, 1,000 values", "SELECT MEDIAN(income) FROM people", "", 1.5, 0.05),
    Case("by region, nobody above 10 rows", BY_REGION, BY_PERSON, 1.0, rows_per_person=10),
    Case("by region, everybody above 5 rows", BY_REGION, BY_PERSON, 2.5, rows_per_person=5),
    Case("count, sampled by coins (exempt)", "SELECT COUNT(*) FROM people", "", float("inf"), sampled=True),
)


@dataclass(frozen=True)
class Measured:
    """What a question took."""

    first: float  # seconds until the first answer, or of CPU if that is less: other programs do not count
    seconds: float  # of CPU later on, all threads together
    memory: float  # at most, in MB


def measure(task: Callable[[], Callable[[], object]]) -> Measured:
    """Ask several times in this process."""
    run = task()
    began, start = perf_counter(), process_time()
    run()
    first = min(perf_counter() - began, process_time() - start)
    seconds = []
    for _ in range(REPEATS):
        start = process_time()
        run()
        seconds.append(process_time() - start)
    return Measured(first, min(seconds), getrusage(RUSAGE_SELF).ru_maxrss / 1024)


@dataclass(frozen=True)
class Plain:
    """The question asked without protection."""

    case: Case
    folder: Path
    blind: bool = False  # with the optimisers of protected questions only: no plan depends on what rows hold

    def __call__(self) -> Callable[[], object]:
        connection = duckdb.connect(config={"threads": THREADS})
        connection.execute("SET enable_progress_bar = false")
        if self.blind:
            others = DuckDB().backend.connections.config["disabled_optimizers"]
            connection.execute(f"SET disabled_optimizers = '{others}'")
        for name in ("people", "visits", "patients"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{self.folder / name}.parquet')")
        return lambda: connection.sql(self.case.plain or self.case.sql).fetchall()


@dataclass(frozen=True)
class Protected:
    """The question as the engine computes its statistics; what enrolment finds out is not timed."""

    case: Case
    folder: Path
    preferences: str  # one of PREFERENCES

    def __call__(self) -> Callable[[], object]:
        engine, apart = DuckDB(threads=THREADS), self.preferences != "column"
        name = "people" if "FROM people" in self.case.sql else "visits"
        source, register = (str(self.folder / f"{file}.parquet") for file in (name, f"{name}_register"))
        table = Table(
            name=name,
            source=source,
            person="person",
            register="register",
            epsilon="" if apart else "epsilon",
            protects="presence" if apart else "value",
            columns=engine.schema(source),
            rows_per_person=self.case.rows_per_person,
            bounds={"income": (0, 100_000)} if name == "people" else {"amount": (0, 1000)},
            keys={} if name == "people" else {"region": REGIONS},
        )
        place = str(self.folder / "patients.parquet")
        patients = replace(
            table, name="patients", source=place, columns=engine.schema(place), rows_per_person=1, bounds={}, keys={}
        )
        query = parse(self.case.sql, {name: table, "patients": patients})
        cohorts = Cohorts(count=LEVELS, levels={(number + 1) / 100: number for number in range(LEVELS)})
        if apart:
            cohorts = replace(cohorts, register=register, person="person", epsilon="epsilon")
        if self.preferences == "changed":
            people = pa.array([str(17 * number) for number in range(CHANGES)])
            moved = pa.array([number % LEVELS for number in range(CHANGES)], pa.int64())
            cohorts = replace(cohorts, changes=pa.table({"person": people, "cohort": moved}))
        inclusion = tuple(inclusion_threshold(10_000 * (number + 1), 500_000) for number in range(LEVELS))
        measures = tuple(
            Measure(aggregate=a, histogram=a.kind == "quantile", inclusion=inclusion if self.case.sampled else None)
            for a in query.aggregates
        )
        request = Request(measures=measures, source=Rows(query=query, cohorts=cohorts))
        return lambda: engine.compute(request)


def main(rows: int = 10_000_000) -> None:
    """Print every ratio, and whether it keeps what the design promises."""
    folder = generate(rows)
    sheet = Sheet(title=f"SQL on {rows:,} rows of Parquet, {THREADS} threads: CPU time, protected against plain")
    for heading in (
        "question",
        "preferences",
        "plain ms",
        "protected ms",
        "ratio",
        "at most",
        "first s",
        "memory ratio",
    ):
        sheet.add_column(heading, justify="left" if heading in ("question", "preferences") else "right")
    for case in CASES:
        plain = alone(Plain(case, folder))
        for preferences, said in PREFERENCES.items():
            found = alone(Protected(case, folder, preferences))
            limit = "exempt" if case.sampled else f"{case.factor:g}x + {1000 * case.extra:.0f} ms"
            sheet.add_row(
                case.label,
                said,
                f"{1000 * plain.seconds:,.0f}",
                f"{1000 * found.seconds:,.0f}",
                marked(found.seconds / plain.seconds, found.seconds > case.factor * plain.seconds + case.extra),
                limit,
                marked(found.first, found.first > FIRST),
                marked(found.memory / plain.memory, found.memory > MEMORY * plain.memory),
            )
    Console().print(sheet)
    question.main()


def marked(number: float, over: bool) -> str:
    """Return a number, marked if it is over its limit."""
    return f"{number:.2f}{' (over)' if over else ''}"


def alone(task: Callable[[], Callable[[], object]]) -> Measured:
    """In a process of its own, so that memory is that question's."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, task).result()


if __name__ == "__main__":
    main()

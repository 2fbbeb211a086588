"""Questions per person and joins: speed against plain DuckDB in the same run, and accuracy of two per person."""

from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as Sheet

import discretion as dn
from benchmarks.data import THREADS, generate
from benchmarks.sql import PREFERENCES, Case, Plain, Protected, alone, marked
from discretion.noise import simulation

_TOTALS = "SELECT person, SUM(amount) AS total FROM visits GROUP BY person"
_COUNTS = "SELECT person, COUNT(*) AS n FROM visits GROUP BY person"
_JOINED = "SELECT SUM(amount) FROM visits JOIN patients ON visits.person = patients.person WHERE age > 40"
CASES = (
    Case("sum of totals", f"SELECT SUM(total) FROM ({_TOTALS})", "", 1.5, rows_per_person=10),
    Case("median of totals", f"SELECT MEDIAN(total) FROM ({_TOTALS})", "", 1.5, rows_per_person=10),
    Case("people with n >= 3", f"SELECT COUNT(*) FROM ({_COUNTS}) WHERE n >= 3", "", 1.2, rows_per_person=10),
    Case("visits and patients, nobody above 10", _JOINED, "", 1.5, rows_per_person=10),
)
PEOPLE, RUNS = 20_000, 40
MENU = (0.1, 0.5, 1.0)
ASKED = {
    "median spending per person": "SELECT MEDIAN(LEAST(total, 1000)) FROM (SELECT SUM(cost) AS total FROM visits "
    "GROUP BY person)",
    "people with three visits or more": "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY person) "
    "WHERE n >= 3",
}


def main(rows: int = 10_000_000) -> None:
    """Print every ratio and every error."""
    speed(rows)
    accuracy()


def speed(rows: int) -> None:
    """Print the CPU time of protected questions as ratios to plain ones.

    "Blind" is the plain question with the optimisers of protected ones only. DuckDB's own plans depend on what rows
    hold: numbers without gaps are joined by position, so one unusual number would decide how long it takes.
    """
    folder = generate(rows)
    sheet = Sheet(title=f"{rows:,} visits of {rows // 10:,} people, {THREADS} threads: CPU time against plain DuckDB")
    for heading in ("question", "preferences", "plain ms", "blind ms", "protected ms", "ratio", "at most", "to blind"):
        sheet.add_column(heading, justify="left" if heading in ("question", "preferences") else "right")
    for case in CASES:
        plain, blind = (alone(Plain(case, folder, blind)).seconds for blind in (False, True))
        for preferences, said in PREFERENCES.items():
            found = alone(Protected(case, folder, preferences)).seconds
            times = [f"{1000 * seconds:,.0f}" for seconds in (plain, blind, found)]
            ratio = marked(found / plain, found > case.factor * plain)
            sheet.add_row(case.label, said, *times, ratio, f"{case.factor:g}x", f"{found / blind:.2f}")
    Console().print(sheet)


def accuracy() -> None:
    """Print how far answers are from the truth, in the middle and at worst of many runs."""
    rng = simulation(17)
    who = np.repeat(np.arange(PEOPLE), rng.poisson(3, PEOPLE))
    visits = pa.table({"person": who, "cost": np.round(rng.gamma(2, 40, len(who)), 2)})
    register = pa.table({"person": np.arange(PEOPLE), "epsilon": rng.choice(MENU, PEOPLE, p=(0.3, 0.4, 0.3))})
    plain = duckdb.connect()
    plain.register("visits", visits)
    sheet = Sheet(
        title=f"{PEOPLE:,} people at ε {', '.join(map(str, MENU))}, {len(who):,} visits, share 0.1, {RUNS} runs"
    )
    for heading in ("question", "truth", "median error", "largest error", "predicted (95%)"):
        sheet.add_column(heading, justify="left" if heading == "question" else "right")
    for asked, sql in ASKED.items():
        truth = float(plain.sql(sql).fetchall()[0][0])
        found = [_ask(sql, visits, register) for _ in range(RUNS)]
        errors = sorted(abs(value - truth) for value, _ in found)
        said = [f"{truth:,.0f}", f"{errors[RUNS // 2]:,.1f}", f"{errors[-1]:,.1f}", found[0][1]]
        sheet.add_row(asked, *said)
    Console().print(sheet)


def _ask(sql: str, visits: pa.Table, register: pa.Table) -> tuple[float, str]:
    """Ask once, of a fresh ledger; return the answer and what it says about its error."""
    with TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("visits.parquet", "register.parquet")]
        for table, place in zip((visits, register), places, strict=True):
            pq.write_table(table, place)
        with dn.connect(Path(folder) / "l.discretion") as db:
            db.register("people", places[1], person="person", epsilon="epsilon")
            db.protect("visits", places[0], person="person", register="people", bounds={"cost": (0, 1000)})
            release = db.sql(sql, share=0.1)
            error = release.error
            width = error.half_width()
            return float(release.value), f"rank ± {width:.1%}" if error.unit == "rank" else f"± {width:,.1f}"


if __name__ == "__main__":
    main()

"""The demonstration: a clinic is invented, protected, asked four questions, and its accuracy is drawn."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from signal import SIGTERM, signal
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.text import Text

from discretion.cli.plot import draw_accuracy
from discretion.cli.serve import load
from discretion.connection import Connection, connect
from discretion.declaration.table import Table
from discretion.errors import QueryRefused, missing
from discretion.noise import simulation
from discretion.render.terminal import show, working

LEVELS = {"strict": 0.1, "medium": 0.5, "open": 1.0}
REGIONS = ("North", "East", "South", "West")
DEPARTMENTS = ("cardiology", "general", "paediatrics", "surgery")
MENU = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)  # free choices are rounded down to it


def invent_clinic(folder: Path, *, people: int = 20_000, seed: int = 2015) -> None:
    """Write patients.parquet (one row each, with their choice) and visits.parquet (several rows each)."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = simulation(seed)
    age = np.clip(rng.normal(47, 21, people), 0, 104).round().astype(np.int64)
    smoker = rng.random(people) < np.where((age > 17) & (age < 70), 0.24, 0.06)
    named = rng.choice([*LEVELS, ""], people, p=[0.40, 0.36, 0.18, 0.06])
    free = rng.choice([f"{level:g}" for level in np.arange(1, 31) / 20], people)  # 0.05, 0.1, ... 1.5, as typed in
    patients = {
        "patient_id": np.arange(1, people + 1),
        "age": age,
        "region": rng.choice(REGIONS, people, p=[0.37, 0.21, 0.28, 0.14]),
        "smoker": smoker,
        "systolic": np.clip(rng.normal(108 + 0.42 * age + 5 * smoker, 14), 70, 230).round(1),
        "privacy": np.where(named == "", free, named),
    }
    parquet.write_table(pa.table(patients), folder / "patients.parquet")
    visits = np.minimum(rng.poisson(0.6 + age / 30), 15)
    owner = np.repeat(patients["patient_id"], visits)
    walk_in = rng.random(owner.size) < 0.01  # nobody's rows: the person is not known
    department = rng.choice(DEPARTMENTS, owner.size, p=[0.18, 0.52, 0.12, 0.18])
    price = np.where(department == "surgery", 6.9, 4.6)
    rows = {
        "patient_id": pa.array(owner, mask=walk_in),
        "department": department,
        "cost": np.round(rng.lognormal(price, 0.7), 2),
        "day": np.datetime64("2025-01-01") + rng.integers(0, 365, owner.size),
    }
    parquet.write_table(pa.table(rows), folder / "visits.parquet")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One question of the demonstration."""

    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def command(self) -> str:
        flags = "".join(f" --{name} {value}" for name, value in self.options.items())
        return f'discretion query "{self.sql}"{flags}'


QUESTIONS = (
    Step(
        sql="SELECT COUNT(DISTINCT patient_id) AS operated FROM visits WHERE department = 'surgery'",
        why="A count of people, over a table with several visits each",
    ),
    Step(
        sql="SELECT region, AVG(systolic) AS pressure FROM patients GROUP BY region",
        options={"share": 0.2, "assume": "gradual"},
        why="An average by region; how choices and values go together is estimated from the release itself",
    ),
    Step(sql="SELECT MEDIAN(age) AS age FROM patients WHERE smoker", why="A median; its error is in ranks"),
    Step(
        sql="SELECT patient_id, systolic FROM patients WHERE age > 90",
        why="Rows of people are refused, with the reason",
    ),
)


def demonstrate(folder: Path, console: Console) -> None:
    """The whole story, printed; everything is written to `folder`, which may be used again."""
    invent_clinic(folder)
    ledger = folder / "clinic.discretion"
    ledger.unlink(missing_ok=True)  # an invented clinic may start anew; a real one never
    with connect(ledger, analyst="demo") as db:
        _protect(db, folder, console)
        for number, step in enumerate(QUESTIONS, 1):
            _ask(db, number, step, console)
        _chapter(console, "Why that mechanism?", f'discretion explain "{QUESTIONS[0].sql}"')
        show(db.explain(QUESTIONS[0].sql).sheets(), console)
        _chapter(console, "Who has spent what?", "discretion balance")
        show(db.balance().sheets(), console)
        _chapter(console, "What does patient 17 get to see?", "discretion receipt 17")
        show(db.receipt(17).sheets(), console)
    console.print(f"The clinic and its ledger are in {folder}. Try a question of your own:", markup=False)
    command = "discretion" if which("discretion") else sys.argv[0]  # `make demo` leaves it out of the path
    hint = Text(f'  {command} query --ledger {ledger} "SELECT MAX(age) FROM patients"', style="bold")
    console.print(hint, soft_wrap=True)
    console.print(_draw(folder), soft_wrap=True, markup=False)
    console.print("See it in a browser, as steward, analyst and patient:")
    console.print(Text(f"  {command} demo --serve", style="bold"), soft_wrap=True)


def serve_clinic(console: Console, port: int) -> None:
    """Serve an invented clinic from a folder that is thrown away afterwards, with a ready link for each role."""
    server, house, pool = load("server"), load("house"), load("pool")

    def greet(opened: Any) -> list[str]:
        links = server.ready_links(opened, "patients", 17)
        told = {"steward": "protects data and oversees", "analyst": "asks", "person": "patient 17, chooses and sees"}
        lines = [f"  {role:<8} ({told[role]}):\n    {link}" for role, link in links.items()]
        return [
            "\nThe clinic is served. Open each link in a browser window of its own (a private one for each role):\n",
            *lines,
            "\nA link works once. Ctrl-C ends the service; nothing is kept.",
        ]

    with TemporaryDirectory(prefix="discretion-clinic-") as kept:
        folder = Path(kept)
        with working("Inventing a clinic with 20,000 patients"):
            invent_clinic(folder)
            invent_survey(folder)
            with connect(folder / "clinic.discretion", analyst="analyst") as db:
                _declare(db, folder)
                for step in QUESTIONS[:3]:
                    db.sql(step.sql, **step.options)
        settings = house.Settings(
            ledger=str(folder / "clinic.discretion"), data=folder, answer_every=0.5, limits=pool.Limits(workers=2)
        )

        def tell(line: str) -> None:
            console.print(Text(line), soft_wrap=True)

        here: dict[str, Any] = {"host": "127.0.0.1", "port": port, "tls": None, "behind_proxy": False}
        signal(SIGTERM, lambda *_: sys.exit(0))  # so that the folder is thrown away then, too
        with suppress(KeyboardInterrupt):
            server.serve(settings, **here, tell=tell, greet=greet, level="WARNING")


def invent_survey(folder: Path, *, people: int = 2_000, seed: int = 2016) -> None:
    """Write survey.parquet, a table of patients that nobody has protected yet: try it on the steward's pages."""
    rng = simulation(seed)
    answers = {
        "patient_id": np.sort(rng.choice(20_000, people, replace=False)) + 1,
        "content": rng.integers(1, 6, people),
        "would_come_again": rng.random(people) < 0.8,
        "day": np.datetime64("2025-06-01") + rng.integers(0, 90, people),
    }
    parquet.write_table(pa.table(answers), folder / "survey.parquet")


def _protect(db: Connection, folder: Path, console: Console) -> None:
    _chapter(
        console,
        "A clinic with 20,000 patients, each of whom chose a level of privacy",
        "discretion protect patients patients.parquet --person patient_id --epsilon privacy --level strict=0.1 ...\n"
        "$ discretion protect visits visits.parquet --person patient_id --register patients --rows-per-person 5 ...",
    )
    show([sheet for table in _declare(db, folder) for sheet in table.sheets()], console)


def _declare(db: Connection, folder: Path) -> tuple[Table, Table]:
    patients = db.protect(
        "patients",
        folder / "patients.parquet",
        person="patient_id",
        epsilon="privacy",
        levels=LEVELS,
        menu=MENU,
        bounds={"age": (0, 120), "systolic": (80, 200)},
        keys={"region": REGIONS},
    )
    visits = db.protect(
        "visits",
        folder / "visits.parquet",
        person="patient_id",
        register="patients",
        rows_per_person=5,
        bounds={"cost": (0, 5_000), "day": ("2025-01-01", "2025-12-31")},
        keys={"department": DEPARTMENTS},
    )
    return patients, visits


def _ask(db: Connection, number: int, step: Step, console: Console) -> None:
    _chapter(console, f"{number}. {step.why}", step.command)
    try:
        show(db.sql(step.sql, **step.options).sheets(), console)
    except QueryRefused as refusal:
        console.print(Text(f"Refused. {refusal}\n", style="red"))


def _chapter(console: Console, title: str, command: str) -> None:
    console.print(Text(f"# {title}", style="bold"), soft_wrap=True)
    console.print(Text(f"$ {command}\n", style="green"), soft_wrap=True)  # to be copied, so never cut in two


def _draw(folder: Path) -> str:
    """Return what the plot is called, or why there is none."""
    if lacking := missing("plots", "The plot"):
        return lacking
    path = folder / "accuracy.png"
    patients = parquet.read_table(folder / "patients.parquet")
    epsilon = np.array([LEVELS.get(chosen) or float(chosen) for chosen in patients["privacy"].to_pylist()])
    with working("Measuring how accurate the mechanisms are"):
        draw_accuracy(path, smoker=patients["smoker"], pressure=patients["systolic"].to_numpy(), epsilon=epsilon)
    return f"How accurate the mechanisms are: {path}"

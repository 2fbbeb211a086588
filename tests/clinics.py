"""A small clinic in files, for tests that go from SQL to an answer."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from discretion.connection import Connection, connect
from discretion.noise import simulation

PEOPLE = 3_000
LEVELS = (0.2, 1.0, 5.0)


def patients(people: int = PEOPLE, seed: int = 1) -> pa.Table:
    """One row each: id, age, region, smoker, income (some missing), epsilon."""
    rng = simulation(seed)
    income = rng.lognormal(10, 0.6, people)
    return pa.table(
        {
            "patient_id": range(people),
            "age": rng.integers(18, 95, people),
            "region": rng.choice(["N", "S"], people, p=[0.7, 0.3]),
            "smoker": rng.random(people) < 0.3,
            "income": pa.array(income, mask=rng.random(people) < 0.1),
            "epsilon": rng.choice(LEVELS, people),
        }
    )


def visits(people: int = PEOPLE, seed: int = 2) -> pa.Table:
    """Up to eight rows each; some belong to nobody, some to people in no register."""
    rng = simulation(seed)
    owner = rng.integers(0, people + 50, 4 * people)
    return pa.table(
        {
            "patient_id": pa.array(owner, mask=rng.random(owner.size) < 0.02),
            "department": rng.choice(["general", "surgery"], owner.size),
            "cost": rng.lognormal(4, 1, owner.size),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    """As Parquet or CSV, by its name."""
    csv.write_csv(table, path) if path.suffix == ".csv" else parquet.write_table(table, path)
    return path


def clinic(folder: Path, **more: Any) -> Connection:
    """patients (protects values) and visits (protects presence), paid by one register."""
    db = connect(folder / "clinic.discretion", analyst="ada")
    db.protect(
        "patients",
        write(patients(), folder / "patients.parquet"),
        person="patient_id",
        epsilon="epsilon",
        bounds={"age": (0, 120), "income": (0, 200_000)},
        keys={"region": ["N", "S"]},
        **more,
    )
    db.protect(
        "visits",
        write(visits(), folder / "visits.parquet"),
        person="patient_id",
        register="patients",
        bounds={"cost": (0, 1_000)},
        keys={"department": ["general", "surgery"]},
        rows_per_person=8,
    )
    return db

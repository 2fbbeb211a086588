"""The demonstration: a clinic is invented, protected, asked four questions, and its accuracy is drawn."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from discretion.noise import simulation

LEVELS = {"strict": 0.1, "medium": 0.5, "open": 1.0}
REGIONS = ("North", "East", "South", "West")
DEPARTMENTS = ("cardiology", "general", "paediatrics", "surgery")


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

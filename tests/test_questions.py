"""Fifty questions of an analyst: docs/questions.md says which are answered."""

import re
from datetime import date, timedelta
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import discretion as dn
from discretion.errors import QueryRefused

PAGE = (Path(__file__).parents[1] / "docs" / "questions.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| [^|]+ \| `([^`]+)` \|", PAGE, re.MULTILINE)
ANSWERED = 44


def tables() -> dict[str, pa.Table]:
    """Return what a made-up clinic of 60 people knows."""
    people = [*range(60)]
    wards = pa.table({"ward": [1, 2, 3], "floor": [1, 1, 2], "name": ["north", "south", "west"]})
    owners = [place % 60 for place in range(150)]
    visits = {
        "patient_id": owners,
        "day": [date(2024, 1, 1) + timedelta(days=2 * place if place < 140 else 130) for place in range(150)],
        "ward": [1 + place % 3 for place in range(150)],
        "kind": [["check", "surgery", "lab"][place % 3] for place in range(150)],
        "emergency": [place % 4 == 0 for place in range(150)],
        "minutes": [place % 90 for place in range(150)],
        "cost": [100.0 * (place % 3) + place for place in range(150)],
    }
    patients = {"patient_id": people, "age": people, "smoker": [one % 3 == 0 for one in people]}
    patients["region"] = ["N" if one % 2 else "S" for one in people]
    return {"visits": pa.table(visits), "patients": pa.table(patients), "wards": wards}


def clinic(folder: Path, epsilon: float = 1.0) -> dn.Connection:
    """Return the clinic, protected."""
    db, known = dn.connect(folder / "l.discretion"), tables()
    register = pa.table({"id": known["patients"]["patient_id"], "epsilon": [epsilon] * 60})
    db.register("people", register, person="id", epsilon="epsilon")
    how: Any = {
        "bounds": {"day": ("2024-01-01", "2024-12-31"), "minutes": (0, 240), "cost": (0, 5_000)},
        "keys": {"kind": ["check", "lab", "surgery"]},
        "lookups": {"wards": (known["wards"], "ward", "public")},
    }
    db.protect("visits", known["visits"], person="patient_id", register="people", rows_per_person=5, **how)
    about: Any = {"bounds": {"age": (0, 120)}, "keys": {"region": ["N", "S"]}}
    db.protect("patients", known["patients"], person="patient_id", register="people", **about)
    return db


def refused(db: dn.Connection, sql: str) -> str:
    try:
        db.explain(sql)
    except QueryRefused as refusal:
        return str(refusal)
    return ""


def test_the_page_says_which_questions_are_answered(tmp_path: Path) -> None:
    assert [str(number) for number in range(1, 51)] == [number for number, _ in ROWS]
    with clinic(tmp_path) as db:
        told = {int(number): refused(db, sql) for number, sql in ROWS}
    assert {} == {number: text for number, text in told.items() if bool(text) != (number > ANSWERED)}


def plain(value: Any) -> Any:
    """Return a value so that a date and its text are equal, and so are all kinds of numbers."""
    if isinstance(value, date):
        return str(value)[:10]
    if isinstance(value, str):
        return value.removesuffix(" 00:00:00")
    return value if value is None or isinstance(value, bool) else float(value)


def off(release: dn.Release, row: int, name: str) -> float:
    """Return how far a number may be from the truth: by its noise, surely, or by a step of a median's grid."""
    error = release.errors[name][row]
    if error.unit == "rank":
        return 6.0  # steps of 5 in costs, of 1 elsewhere; between two values, either is a median
    return 12 * error.half_width() if isfinite(error.half_width()) else 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("number", "sql"), ROWS[:ANSWERED])
def test_every_answered_question_has_its_plain_answer(tmp_path: Path, number: str, sql: str) -> None:
    with duckdb.connect() as database:
        for name, table in tables().items():
            database.register(name, table)
        truth = [tuple(map(plain, row)) for row in database.sql(sql).fetchall()]
    with clinic(tmp_path, epsilon=1_000.0) as db:
        answer = db.sql(sql, share=1.0)
    names = list(answer.columns)
    keys = [place for place, name in enumerate(names) if name not in answer.errors]
    expected = {tuple(row[place] for place in keys): row for row in truth}
    found = {tuple(plain(row[place]) for place in keys): (n, row) for n, row in enumerate(answer)}
    assert len(expected) == len(truth)
    assert {*expected} <= {*found}
    for key, row in expected.items():
        n, values = found[key]
        for name, value, other in zip(names, values, row, strict=True):
            if isinstance(other, str):
                assert other == plain(value)
            elif name in answer.errors and other is not None:
                assert abs(value - other) <= off(answer, n, name) + 1e-6 * abs(other), (key, name, value, other)

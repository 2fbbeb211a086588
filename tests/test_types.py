"""Types: a user's program is checked by mypy, and what is wrong in it is found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RIGHT = """
from datetime import date

import numpy as np
import pandas as pd

import discretion as dn

frame = pd.DataFrame({"age": [1, 2], "day": [date(2020, 1, 1), date(2020, 1, 2)]})
epsilon = np.array([0.1, 1.0])
release: dn.Release = dn.median(frame["age"], epsilon=epsilon, bounds=(0, 120), grid=1, assume="independent")
dn.mean([1.5, None], epsilon=0.5, bounds=(0, 2), by=["a", "b"], keys=["a", "b"])
dn.count(frame["age"] > 3, epsilon={"Ada": 0.1}, person=["Ada", "Ada"], rows_per_person=2)
dn.mean(frame["day"], epsilon="strict", levels={"strict": 0.1}, bounds=(date(2020, 1, 1), date(2021, 1, 1)))
dn.slope(frame["age"], [1.5, None], epsilon=0.5, x_bounds=(0, 120), y_bounds=[0, 2], protects="presence")
dn.histogram(frame["age"], bins=[0, 18, 65], epsilon=1, mechanism="sample", options={"threshold": "mean"})
print(release.low, release.high, release.to_pandas()["median"].sum())
with dn.connect("clinic.discretion") as db:
    db.protect("people", frame, person="id", epsilon="epsilon", bounds={"age": (0, 120)}, keys={"region": ["N"]})
    db.protect("visits", "v.csv", person="id", register="people", lookups={"icd": ("icd.csv", "code", "public")},
               bounds={"day": (date(2020, 1, 1), date(2021, 1, 1))}, types={"day": "DATE"}, delimiter=";", decimal=",")
    answer: dn.Release = db.sql("SELECT AVG(age) FROM people", share=0.1, assume="gradual", params={"a": 3})
    text: str = answer.explain()
    for row in db.balance():
        print(row["spent"], db.receipt("Ada").summary, db.audit().passed)

with dn.connect("https://clinic.example", token="secret") as there:  # the same type as a ledger on disk
    there.register("people", "people.csv", person="id", epsilon="level", levels={"strict": 0.1}, encoding="cp1252")
    there.protect("lab", "lab.csv", person="id", register="people", lookups={"icd": ("icd.csv", "code")})
    print(there.sql("SELECT COUNT(*) FROM lab", within=10).to_pandas().columns, there.history().to_pandas().columns)
    print([table.name for table in there.tables()], there.prefer("Ada", "strict", register="people"))

model = dn.personalize(lambda rows, epsilon: len(rows), [1, 2], epsilon=[0.1, 1.0], algorithm_protects="both",
                       method="partition", cuts="privacy", ensemble="average")
"""
WRONG = {
    "dn.median([1.0], epsilon=1, bonds=(0, 1), bounds=(0, 1))": 'Unexpected keyword argument "bonds"',
    "dn.median([1.0], epsilon=1)": 'Missing named argument "bounds"',
    "dn.correlation([1.0], [2.0], epsilon=1, x_bounds=(0, 1))": 'Missing named argument "y_bounds"',
    'dn.median([1.0], epsilon=1, bounds=(0, 1), mechanism="sampel")': "incompatible type \"Literal['sampel']\"",
    'dn.count([1], epsilon=1, mechanism="sample", options={"treshold": 1.0})': 'expected "Options | None"',
    'dn.count([1], epsilon=1, protects="both")': "incompatible type \"Literal['both']\"",
    'dn.connect("x").sql("SELECT 1", shares=0.1)': 'Unexpected keyword argument "shares"',
    'dn.connect("x").protect("t", "t.csv", bound={})': 'Unexpected keyword argument "bound"',
    'dn.connect("x").refresh("t", seperator=";")': 'Unexpected keyword argument "seperator"',
    'dn.connect("https://x").protect("t", "t.csv", person="p", lookups={"l": "l.csv"})': "incompatible type",
    'dn.personalize(max, [1], epsilon=1, algorithm_protects="both", treshold=1)': 'argument "treshold"',
}


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, str]:
    """One run of mypy over two programs; return what it says about each line."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text("\n".join(["import discretion as dn", *WRONG]))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
    ]  # the cache of the project
    programs = [str(folder / "right.py"), str(folder / "wrong.py")]
    run = subprocess.run([*command, *programs], cwd=ROOT, capture_output=True, text=True)
    told = (line.split(": error: ") for line in run.stdout.splitlines() if ": error: " in line)
    return {Path(place).name: text for place, text in told}


def test_a_right_program_is_accepted(found):
    assert [] == [told for place, told in found.items() if place.startswith("right")]


@pytest.mark.parametrize(("number", "line"), list(enumerate(WRONG, start=2)))
def test_a_mistake_is_found(found, number, line):
    assert WRONG[line] in found.get(f"wrong.py:{number}", "nothing"), line


def test_completion_shows_the_product_and_not_its_modules():
    import discretion.arrays  # loaded, but not shown

    assert set(discretion.__all__) == {name for name in dir(discretion) if not name.startswith("_")}
    assert discretion.arrays is not None

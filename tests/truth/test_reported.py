"""What was reported as wrong is right now, on the command line of a real process as a user types it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from asking import protect
from hypothesis import find, settings
from kinds import KINDS
from questions import conditions
from shapes import Shape, shapes
from test_truth import RUN

import discretion as dn
from discretion.errors import InvalidDeclaration

COMMAND = Path(sys.executable).parent / "discretion"


def discretion(folder: Path, *arguments: str) -> str:
    """Run the command line in a process of its own."""
    told = subprocess.run([COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert 0 == told.returncode, told.stderr
    return told.stdout


def test_500_rows_of_one_patient_count_as_one_on_the_command_line(tmp_path):
    """At ε = 1 an answer exceeds the 1,001 people by 40 or more with a probability below 1e-17; it was 1,499."""
    lines = [*(f"1,1,{value}" for value in range(500)), *(f"{one},1,{1000 + one}" for one in range(2, 1002))]
    (tmp_path / "p2.csv").write_text("\n".join(["patient,epsilon,admission", *lines]) + "\n")
    ledger = ("--ledger", "l.discretion")
    discretion(tmp_path, "protect", "t", "p2.csv", "--person", "patient", "--epsilon", "epsilon", *ledger)
    sql = "SELECT COUNT(*) AS n FROM t WHERE patient >= 0"
    told = json.loads(discretion(tmp_path, "query", sql, "--share", "1", *ledger, "--json"))
    assert 1001 - 40 < told["rows"][0]["n"] < 1001 + 40


TIMES = {  # as people write them -> the hour in UTC
    "seconds": ["2020-01-01 10:00:00", "2020-01-01T11:30:00"],
    "minutes": ["2020-01-01T10:00", "2020-01-01 11:30"],
    "fractions": ["2020-01-01T10:00:00.5", "2020-01-01 11:30:00.123456", "2020-01-01T12:00:00"],
    "nanoseconds": ["2020-01-01T10:00:00.123456789", "2020-01-01 11:30:00"],
    "with days": ["2020-01-01", "2020-01-01 10:15:00", "2020-01-01 11:30:00.25"],
    "zones": ["2020-01-01T10:00:00Z", "2020-01-01 12:30:00+01:00", "2020-01-01T07:15:00.5-0500"],
}


@pytest.mark.parametrize("kind", ["csv", "json", "excel"])
@pytest.mark.parametrize("form", TIMES)
def test_times_are_recognised_as_people_write_them(form, kind, tmp_path):
    rows = [{"id": i, "epsilon": 1000, "seen": TIMES[form][i % len(TIMES[form])]} for i in range(30)]
    with dn.connect(tmp_path / "l.discretion") as db:
        table = db.protect("t", written(rows, kind, tmp_path), person="id", epsilon="epsilon")
        assert "TIMESTAMP" == table.columns["seen"]
        sql = "SELECT COUNT_IF(EXTRACT(hour FROM seen) = 11) FROM t WHERE seen >= TIMESTAMP '2020-01-01 10:00:00'"
        assert sum("11:30" in row["seen"] or "12:30" in row["seen"] for row in rows) == round(
            db.sql(sql, share=1).value
        )


def written(rows: list[dict], kind: str, folder: Path) -> Path:
    """Write rows as CSV, JSON lines or a sheet of texts."""
    if kind == "excel":
        book = openpyxl.Workbook()
        for row in ([*rows[0]], *([*one.values()] for one in rows)):
            book.active.append(row)
        book.save(folder / "t.xlsx")
        return folder / "t.xlsx"
    if kind == "json":
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        return folder / "t.jsonl"
    with (folder / "t.csv").open("w", newline="") as file:
        lines = csv.DictWriter(file, rows[0].keys())
        lines.writeheader()
        lines.writerows(rows)
    return folder / "t.csv"


def test_a_text_of_digits_in_json_stays_a_text(tmp_path):
    rows = [{"id": i, "epsilon": 1000, "code": f"{i:03d}", "number": i - 9, "said": "true"} for i in range(30)]
    with dn.connect(tmp_path / "l.discretion") as db:
        table = db.protect("t", written(rows, "json", tmp_path), person="id", epsilon="epsilon")
        assert ["VARCHAR", "BIGINT", "VARCHAR"] == [table.columns[name] for name in ("code", "number", "said")]
        assert 1 == round(db.sql("SELECT COUNT(*) FROM t WHERE code = '007'", share=1).value)


def is_wide(shape: Shape) -> bool:
    return 8 <= len(shape.columns) < 20 and shape.rows_per_person == 1


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_answers_of_a_text_are_those_of_parquet(protects, tmp_path):
    """At the largest ε there is, each count is wrong with a probability below 1e-16."""
    shape = find(
        shapes(), lambda one: is_wide(one) and one.protects == protects, settings=settings(**RUN, derandomize=True)
    )
    told = []
    for kind in ("parquet", "csv"):
        (tmp_path / kind).mkdir()
        asked = protect(shape, KINDS[kind], tmp_path / kind)
        wheres = [where for column in shape.columns[:8] for where in [*conditions(column)][1:3]]
        counts = ", ".join(f"COUNT(*) FILTER (WHERE {where})" for where in wheres)
        told.append([round(one) for one in next(iter(asked.db.sql(f"SELECT {counts} FROM t", share=1.0)))])
        asked.db.close()
    assert told[0] == told[1]
    assert len(set(told[0])) > 3


@pytest.mark.parametrize("line", ["2,1,5,9", "2,1", "2,1,5,9,9,9", '2,1,"5'])
@pytest.mark.parametrize("place", [1, 400])
def test_a_line_with_more_or_fewer_fields_than_the_header_is_refused(line, place, tmp_path):
    lines = [f"{i},1,{i % 7}" for i in range(600)]
    lines[place] = line
    (tmp_path / "t.csv").write_text("\n".join(["id,epsilon,x", *lines]) + "\n")
    with (
        dn.connect(tmp_path / "l.discretion") as db,
        pytest.raises(InvalidDeclaration, match="has a line with a stray quote, or with more or fewer fields than its"),
    ):
        db.protect("t", tmp_path / "t.csv", person="id", epsilon="epsilon")


@pytest.mark.parametrize("protects", ["value", "presence"])
def test_nan_and_infinities_in_a_required_column_count_as_the_bound_nearest_0(protects, tmp_path):
    """They are missing values; a steward who says that none is missing gets a public count of rows all the same."""
    found = np.tile([np.nan, np.inf, -np.inf, 7.0, 5.0, 99.0], 40)
    rows = pa.table({"id": np.arange(found.size), "epsilon": np.full(found.size, 1_000.0), "x": found})
    truth = np.where(np.isfinite(found), np.clip(found, 2, 10), 2.0)
    with dn.connect(tmp_path / "l.discretion") as db:
        how = {"person": "id", "bounds": {"x": (2, 10)}, "required": ["x"]}
        if protects == "presence":
            db.register("people", rows.drop_columns(["x"]), person="id", epsilon="epsilon")
            db.protect("t", rows.drop_columns(["epsilon"]), register="people", **how)
        else:
            db.protect("t", rows, epsilon="epsilon", **how)
        count, total, mean = next(iter(db.sql("SELECT COUNT(x), SUM(x), AVG(x) FROM t", share=0.9)))
    assert found.size == pytest.approx(count, abs=1)
    assert truth.sum() == pytest.approx(total, abs=2)
    assert truth.mean() == pytest.approx(mean, abs=0.01)

"""Columns of a text are found by their names, in whatever order the file has them."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import pytest
from typer.testing import CliRunner

import discretion as dn
from discretion.cli import app
from discretion.declaration.notice import SWAPPED
from discretion.errors import InvalidDeclaration, SourceChanged

FIXTURES = Path(__file__).parent / "fixtures"
OLD_FOLDER = Path("/tmp/discretion-issue-12")  # where the files of the old ledger were: it knows no other place
PATIENTS = [*((1, value) for value in range(500)), *((patient, 1000 + patient) for patient in range(2, 1002))]
CERTAIN = 40.0  # at this ε a count of whole people is wrong by 1 or more with a probability below 1e-17


def write_csv(path: Path, columns: dict[str, list[object]]) -> Path:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def admissions() -> dict[str, list[object]]:
    """The file of the report: 500 rows of one patient, one row of 1,000 others."""
    return {
        "patient": [patient for patient, _ in PATIENTS],
        "epsilon": [1 for _ in PATIENTS],
        "admission": [value for _, value in PATIENTS],
    }


@contextmanager
def old_folder() -> Iterator[Path]:
    """Give the only folder in which the old ledger looks for its files, to one test of all processes at a time."""
    parent = os.open(OLD_FOLDER.parent, os.O_RDONLY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        shutil.rmtree(OLD_FOLDER, ignore_errors=True)
        OLD_FOLDER.mkdir()
        yield OLD_FOLDER
    finally:
        shutil.rmtree(OLD_FOLDER)
        os.close(parent)  # gives the lock back


@pytest.fixture
def old_ledger(tmp_path: Path) -> Iterator[Path]:
    """A ledger of version 0.1.0 with the wrong answers it gave, and its files where it looks for them."""
    ledger = Path(shutil.copy(FIXTURES / "version-0.1.0.sqlite", tmp_path / "old.discretion"))
    dn.connect(ledger, migrate=True).close()
    with old_folder() as folder:
        write_csv(folder / "p2.csv", admissions())
        (folder / "sorted.csv").write_text("age,epsilon,id\n" + "".join(f"{i % 90},1,s{i}\n" for i in range(50)))
        (folder / "people.csv").write_text("id,epsilon\n" + "".join(f"v{i},1\n" for i in range(50)))
        for name in ("plain.parquet", "visits.parquet"):
            shutil.copy(FIXTURES / name, folder / name)
        yield ledger


def test_rows_of_one_person_never_count_as_rows_of_many(tmp_path: Path) -> None:
    """500 of the 1,500 rows are one patient's: at most 1,001 can be counted. It was 1,499."""
    source = write_csv(tmp_path / "p2.csv", admissions() | {"epsilon": [CERTAIN for _ in PATIENTS]})
    with dn.connect(tmp_path / "t.discretion") as db:
        db.protect("t", source, person="patient", epsilon="epsilon")
        counted = db.sql("SELECT COUNT(*) AS n FROM t WHERE patient >= 0", share=1).columns["n"][0]
    assert 1001 == round(counted)


@pytest.mark.parametrize("order", list(permutations(["patient", "epsilon", "age", "Weight"])))
def test_the_order_of_columns_changes_no_answer(tmp_path: Path, order: tuple[str, ...]) -> None:
    people = range(100)
    columns = {
        "patient": list(people),
        "epsilon": [CERTAIN for _ in people],
        "age": [20 + i % 50 for i in people],
        "Weight": [60 + i % 7 for i in people],
    }
    source = write_csv(tmp_path / "t.csv", {name: columns[name] for name in order})
    with dn.connect(tmp_path / "t.discretion") as db:
        db.protect("t", source, person="patient", epsilon="epsilon")
        found = db.sql('SELECT COUNT(*) FILTER (WHERE age > 40 AND "Weight" < 63) AS n FROM t', share=1)
    truth = sum(age > 40 and weight < 63 for age, weight in zip(columns["age"], columns["Weight"], strict=True))
    assert truth == round(found.columns["n"][0])


def test_files_of_one_source_may_have_their_columns_in_different_order(tmp_path: Path) -> None:
    write_csv(tmp_path / "part-1.csv", {"id": ["a", "b"], "epsilon": [CERTAIN, CERTAIN], "x": [5, 5]})
    write_csv(tmp_path / "part-2.csv", {"x": [5, 6], "epsilon": [CERTAIN, CERTAIN], "id": ["c", "d"]})
    with dn.connect(tmp_path / "t.discretion") as db:
        db.protect("t", tmp_path / "part-*.csv", person="id", epsilon="epsilon")
        assert 3 == round(db.sql("SELECT COUNT(*) AS n FROM t WHERE x = 5", share=1).columns["n"][0])


def test_files_of_one_source_with_other_columns_are_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "part-1.csv", {"id": [1, 2], "epsilon": [1, 1], "x": [5, 5]})
    write_csv(tmp_path / "part-2.csv", {"id": [1, 2], "epsilon": [1, 1], "y": [5, 5]})
    with (
        dn.connect(tmp_path / "t.discretion") as db,
        pytest.raises(InvalidDeclaration, match=r"other columns.*'x', 'y'"),
    ):
        db.protect("t", tmp_path / "part-*.csv", person="id", epsilon="epsilon")


def test_a_wrong_answer_that_is_stored_is_not_served_again(old_ledger: Path) -> None:
    """The ledger holds 1,497.87 for this question; what is left pays for an answer that is noisy by some 6 people.

    It exceeds 1,001 by more than 200 with a probability below 1e-20.
    """
    with dn.connect(old_ledger) as db:
        with pytest.raises(SourceChanged, match="Its steward can admit it with `refresh`"):
            db.sql("SELECT COUNT(*) AS n FROM t WHERE admission >= 0", share=0.25)
        db.refresh("t")
        found = db.sql("SELECT COUNT(*) AS n FROM t WHERE admission >= 0", share=0.25)
    assert "12-2a9802fd03a4" != found.entry
    assert found.columns["n"][0] < 1201


def test_right_answers_of_an_old_ledger_are_still_free(old_ledger: Path) -> None:
    with dn.connect(old_ledger) as db:
        assert "16-d61eddaf0e9a" == db.sql("SELECT COUNT(*) AS n FROM plain WHERE age > 20", share=0.1).entry


def test_a_ledger_tells_its_steward_which_answers_are_wrong(old_ledger: Path) -> None:
    with dn.connect(old_ledger) as db:
        for _ in range(2):
            assert ["10-92610c96d45b", "12-2a9802fd03a4"] == [notice["entry"] for notice in db.notices()]
            db.refresh("t")  # they stay wrong
    outcome = CliRunner().invoke(app, ["refresh", "t", "--ledger", str(old_ledger)])
    assert "gave 2 wrong answers: 10-92610c96d45b, 12-2a9802fd03a4" in outcome.stderr
    shown = CliRunner().invoke(app, ["notices", "--ledger", str(old_ledger), "--json"])
    assert [("t", SWAPPED)] * 2 == [(notice["table"], notice["problem"]) for notice in json.loads(shown.stdout)]


def test_a_table_of_an_old_ledger_keeps_its_type(old_ledger: Path) -> None:
    with dn.connect(old_ledger) as db:
        db.refresh("t")
        (table,) = [one for one in db.tables() if one.name == "t"]
        assert "BIGINT" == table.columns["patient"]
        assert table.origin
        assert 1001 == sum(row["people"] for row in db.balance("t"))
        assert 1001 == sum(row["people"] for row in db.balance("t") if row["in_source"])


def test_a_register_of_an_old_ledger_asks_for_the_type_it_forgot(old_ledger: Path) -> None:
    with dn.connect(old_ledger) as db:
        with pytest.raises(SourceChanged):  # version 0.1 admitted no state of a table that protects presence
            db.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 20", share=0.1)
        with pytest.raises(InvalidDeclaration, match="did not keep the type of 'id'"):
            db.refresh("people")
        db.refresh("people", types={"id": "VARCHAR"})
        assert [(50, True)] == [(row["people"], row["in_source"]) for row in db.balance("people")]
        db.refresh("visits")
        assert db.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 20", share=0.1).entry

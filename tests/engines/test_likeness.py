"""Lookups and registers are compared by what they are: another spelling of the same rows is refused too."""

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from discretion.connection import Connection, connect
from discretion.errors import InvalidDeclaration

HOLDS_PEOPLE = "holds rows of people"
NAMES_PEOPLE = "names most people"


def people(count: int = 40, prefix: str = "p") -> pa.Table:
    return pa.table(
        {
            "id": [f"{prefix}{number}" for number in range(count)],
            "number": range(7_000, 7_000 + count),
            "epsilon": [1.0] * count,
            "age": [30.0] * count,
        }
    )


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with connect(tmp_path / "x.discretion") as opened:
        yield opened


def protect(db: Connection, source: Any, lookup: Any = None, key: str = "id", **more: Any) -> None:
    lookups = {} if lookup is None else {"other": (lookup, key)}
    declared = {"person": "id", "epsilon": "epsilon", "bounds": {"age": (0, 120)}} | more
    db.protect("patients", source, lookups=lookups, **declared)


def spellings(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Sources of one table of people, each with another way to write the same rows."""
    file = folder / "people.parquet"
    parquet.write_table(people(), file)
    parts = folder / "parts"
    parts.mkdir()
    for number in range(2):
        parquet.write_table(people(20, f"{number}-"), parts / f"part-{number}.parquet")
    os.link(file, folder / "hard.parquet")
    (folder / "soft.parquet").symlink_to(file)
    shutil.copy(file, folder / "copy.parquet")
    base = folder / "base.duckdb"
    with duckdb.connect(base) as maker:
        maker.register("given", people())
        maker.execute("CREATE TABLE people AS SELECT * FROM given")
        maker.execute('CREATE VIEW "A view" AS SELECT id, age FROM People')
        maker.execute('CREATE VIEW second AS SELECT * FROM (SELECT id FROM "A view") s')
        maker.execute("CREATE TABLE codes AS SELECT 'c' || range AS id, range AS worth FROM range(5)")
    shutil.copy(base, folder / "copied.duckdb")
    return {
        "a hard link": (file, folder / "hard.parquet"),
        "a symbolic link": (file, folder / "soft.parquet"),
        "a copy": (file, folder / "copy.parquet"),
        "another path": (file, f"{folder}/parts/../people.parquet"),
        "a part of a pattern": (f"{parts}/part-*.parquet", parts / "part-1.parquet"),
        "a pattern": (parts / "part-1.parquet", f"{parts}/*.parquet"),
        "quoted names": (f"{base}#people", f'{base}#"main"."People"'),
        "a view": (f"{base}#people", f'{base}#"A view"'),
        "a view of a view": (f"{base}#people", f"{base}#main.second"),
        "a copied database": (f"{base}#people", f"{folder}/copied.duckdb#people"),
        "the same table in memory": (people(), people()),
    }


@pytest.mark.parametrize(
    "how",
    [
        *("a hard link", "a symbolic link", "a copy", "another path", "a part of a pattern", "a pattern"),
        *("quoted names", "a view", "a view of a view", "a copied database", "the same table in memory"),
    ],
)
def test_another_spelling_of_a_protected_table_is_no_lookup(db, tmp_path, how):
    source, lookup = spellings(tmp_path)[how]
    with pytest.raises(InvalidDeclaration, match=HOLDS_PEOPLE):
        protect(db, source, lookup)
    assert () == db.tables()


def test_other_tables_of_the_same_database_may_be_lookups(db, tmp_path):
    source, _ = spellings(tmp_path)["a view"]
    protect(db, source, f"{tmp_path}/base.duckdb#codes")
    assert db.sql("SELECT COUNT(*) FROM patients JOIN other ON patients.id = other.id").value is not None


def test_a_lookup_that_names_the_people_is_refused(db, tmp_path):
    known = pa.table({"who": [f"p{n}" for n in range(10, 90)], "secret": [True] * 80})  # 30 of 40 people
    with pytest.raises(InvalidDeclaration, match=NAMES_PEOPLE):
        protect(db, people(), known, key="who")
    few = pa.table({"who": [f"p{n}" for n in range(30, 90)], "secret": [True] * 60})
    protect(db, people(), few, key="who")  # 10 of 40


def test_small_numbers_are_not_taken_for_people(db):
    numbered = pa.table({"id": range(1, 151), "epsilon": [1.0] * 150, "age": [30.0] * 150})
    codes = pa.table({"code": range(1, 81), "label": [f"c{n}" for n in range(80)]})
    protect(db, numbered, codes, key="code")
    years = pa.table({"code": range(1, 2025), "label": [f"c{n}" for n in range(2024)]})
    protect(db, numbered, years, key="code")  # all people are in it, but few of its numbers are people
    secrets = pa.table({"code": range(1, 141), "secret": [True] * 140})
    with pytest.raises(InvalidDeclaration, match=NAMES_PEOPLE):
        protect(db, numbered, secrets, key="code")


def test_a_refresh_checks_lookups_again(db, tmp_path):
    parquet.write_table(people(), tmp_path / "people.parquet")
    codes = pa.table({"id": ["a", "b"], "secret": ["x", "y"]})
    parquet.write_table(codes, tmp_path / "codes.parquet")
    protect(db, tmp_path / "people.parquet", tmp_path / "codes.parquet")
    parquet.write_table(people(41), tmp_path / "people.parquet")
    parquet.write_table(people(41).select(["id", "age"]), tmp_path / "codes.parquet")
    with pytest.raises(InvalidDeclaration, match=NAMES_PEOPLE):
        db.refresh("patients")
    shutil.copy(tmp_path / "people.parquet", tmp_path / "codes.parquet")
    with pytest.raises(InvalidDeclaration, match=HOLDS_PEOPLE):
        db.refresh("patients")
    parquet.write_table(codes, tmp_path / "codes.parquet")
    assert db.refresh("patients")


def test_presence_of_a_table_in_its_own_register_is_refused(db, tmp_path):
    file = tmp_path / "people.parquet"
    parquet.write_table(people(), file)
    shutil.copy(file, tmp_path / "copy.parquet")
    db.register("everybody", file, person="id", epsilon="epsilon")
    for source in (file, tmp_path / "copy.parquet"):
        with pytest.raises(InvalidDeclaration, match="presence is no secret"):
            db.protect("patients", source, person="id", register="everybody")
    db.protect("patients", people(7), person="id", register="everybody")


def test_the_same_people_under_two_columns_are_pointed_out(db, tmp_path):
    file = tmp_path / "people.parquet"
    parquet.write_table(people(), file)
    protect(db, file)
    db.register("again", file, person="number", epsilon="epsilon")
    (told,) = db.warnings()
    assert "two allowances" in told["text"]


def test_a_refused_declaration_leaves_nothing_attached(db):
    engine = db._engine
    with pytest.raises(InvalidDeclaration, match="no column"):
        protect(db, people(), bounds={"height": (0, 1)})
    with pytest.raises(InvalidDeclaration, match="no column"):
        db.register("people", people(), person="nobody", epsilon="epsilon")
    with pytest.raises(InvalidDeclaration, match=HOLDS_PEOPLE):
        protect(db, people(), people())
    assert {} == engine._attached
    protect(db, people())
    before = dict(engine._attached)
    with pytest.raises(InvalidDeclaration, match="no column"):
        protect(db, people(9), bounds={"height": (0, 1)})
    assert before == engine._attached  # and so the table that is protected is still there

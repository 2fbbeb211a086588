"""One person has one allowance, however their name, their file or their table is written."""

from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discretion as dn
from discretion.errors import InvalidDeclaration

IDS = [str(number) for number in range(20)]
HUGE = 170141183460469231731687303715884105727
OWNER = {"person": "id", "epsilon": "epsilon"}


def people(blank: str = "") -> pa.Table:
    return pa.table({"id": [f"{blank}{one}{blank}" for one in IDS], "x": [1.0] * 20, "epsilon": [1000.0] * 20})


def written(kind: str, table: pa.Table, folder: Path) -> object:
    if kind == "arrow":
        return table
    if kind == "parquet":
        pq.write_table(table, folder / "b.parquet")
        return folder / "b.parquet"
    with duckdb.connect(str(folder / "b.duckdb")) as db:
        db.register("given", table)
        db.execute("CREATE TABLE kept AS SELECT * FROM given")
    return f"{folder / 'b.duckdb'}#kept"


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0"])
@pytest.mark.parametrize("kind", ["arrow", "parquet", "duckdb"])
def test_blanks_around_a_name_give_nobody_a_second_allowance(tmp_path, kind, blank):
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", people(), **OWNER)
        with pytest.raises(InvalidDeclaration, match=r"already|second allowance"):
            db.protect("again", written(kind, people(blank), tmp_path), **OWNER)
        assert ["t"] == [table.name for table in db.tables()]


def test_blanks_around_a_name_are_not_part_of_it(tmp_path):
    both = pa.concat_tables([people(), people(" ")])
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", written("parquet", both, tmp_path), rows_per_person=1, **OWNER)
        assert 20 == round(db.sql("SELECT COUNT(*) FROM t WHERE x > 0", share=1).value)
        assert 20 == sum(row["people"] for row in db.balance())


def test_the_same_people_of_the_same_file_are_one_register(tmp_path):
    source = written("parquet", people(), tmp_path)
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", source, **OWNER)
        with pytest.raises(InvalidDeclaration, match="second allowance"):
            db.protect("again", source, separate=True, **OWNER)


def test_numbers_beyond_doubles_and_infinities_are_surveyed(tmp_path):
    with duckdb.connect(str(tmp_path / "h.duckdb")) as made:
        made.execute(f"CREATE TABLE t AS SELECT i AS id, 1.0 AS epsilon, {HUGE}::HUGEINT AS h FROM range(5) r(i)")
    frame = pd.DataFrame({"id": range(3), "v": [float("inf"), 5, 60], "epsilon": 1.0})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("h", f"{tmp_path / 'h.duckdb'}#t", bounds={"h": (0, 100)}, **OWNER)
        assert [("outside_bounds", 5)] == [(row["warning"], row["people"]) for row in db.warnings()]
    with dn.connect(tmp_path / "m.discretion") as db:
        db.protect("v", frame, bounds={"v": (0, 10)}, **OWNER)
        assert [("outside_bounds", 1)] == [(row["warning"], row["people"]) for row in db.warnings()]


@pytest.mark.parametrize("key", ["k", "UPPER(k)", "NULLIF(k, 'a')", "LENGTH(k)"])
def test_a_declared_null_is_a_group_of_every_expression(tmp_path, key):
    table = pa.table({"id": range(60), "k": ["a", "b", None] * 20, "epsilon": [1000.0] * 60})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", table, keys={"k": ["a", "b", None]}, **OWNER)
        counted = {one: round(n) for one, n in db.sql(f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", share=1)}
    assert 60 == sum(counted.values())
    assert None in counted


def test_a_file_that_became_a_link_to_the_same_rows_is_answered(tmp_path):
    source = written("parquet", people(), tmp_path)
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", source, **OWNER)
        db.sql("SELECT COUNT(*) FROM t WHERE x > 0")
        source.rename(tmp_path / "moved.parquet")
        source.symlink_to(tmp_path / "moved.parquet")
        assert db.sql("SELECT COUNT(*) FROM t WHERE x > 1").entry


def test_the_steward_is_told_when_as_many_people_come_as_leave(tmp_path):
    source = written("parquet", people(), tmp_path)
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", source, **OWNER)
        renamed = people().set_column(0, "id", pa.array([IDS[0], *(f"n{one}" for one in IDS[1:])]))
        pq.write_table(renamed, source)
        db.refresh("t")
        assert [("turnover", 19)] == [(row["warning"], row["people"]) for row in db.warnings()]
        pq.write_table(renamed.slice(0, 10), source)
        db.refresh("t")
        assert [] == list(db.warnings())

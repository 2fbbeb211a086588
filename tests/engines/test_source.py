"""What a source holds can neither fail a query, nor let a row count twice, nor hide a change."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import discretion as dn
from discretion.connection import Connection
from discretion.engines.duckdb import DuckDB
from discretion.errors import DiscretionError, InvalidDeclaration
from discretion.statistics import Request, Statistics


@pytest.mark.parametrize("smoker", [False, True])
@pytest.mark.parametrize("meets", ["BETWEEN {zero} AND 5", "IN ({zero}, 5)"])
def test_a_cast_that_stands_twice_stays_in_its_try(tmp_path: Path, smoker: bool, meets: str) -> None:
    """DuckDB would share it, outside both, and so fail exactly if person 17 smokes."""
    rows = f"SELECT i AS id, 40 AS age, i = 17 AND {smoker} AS smoker, 1.0 AS epsilon FROM range(50) r(i)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/t.parquet'")
    with dn.connect(tmp_path / "t.discretion") as db:
        db.protect("t", tmp_path / "t.parquet", person="id", epsilon="epsilon")
        condition = meets.format(zero="CAST(age * 0 AS DECIMAL(38, 37))")
        secret = "CASE WHEN id = 17 AND smoker THEN age ELSE 0 END"
        assert db.sql(f"SELECT COUNT(*) FILTER (WHERE {secret} {condition}) FROM t").entry


class Witness(DuckDB):
    """Remembers what was counted."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[int] = []

    def compute(self, request: Request) -> tuple[Statistics, ...]:
        found = super().compute(request)
        self.counted += [int(one.counts.sum()) for one in found]
        return found


def test_texts_are_compared_as_they_are_written(tmp_path: Path) -> None:
    """Ignoring case, each of 20 rows would meet two of the lookup."""
    with duckdb.connect(str(tmp_path / "c.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT i AS id, 1.0::DOUBLE AS epsilon FROM range(20) r(i)")
        made.execute("ALTER TABLE t ADD COLUMN k VARCHAR COLLATE NOCASE")
        made.execute("UPDATE t SET k = 'a'")
        made.execute("CREATE TABLE codes AS SELECT unnest(['a', 'A']) AS code")
    place, engine = f"{tmp_path}/c.duckdb#", Witness()
    with Connection(str(tmp_path / "c.discretion"), engine) as db:
        db.protect("t", f"{place}t", person="id", epsilon="epsilon", lookups={"codes": (f"{place}codes", "code")})
        db.sql("SELECT COUNT(*) FROM t JOIN codes ON k = codes.code")
    assert [20] == engine.counted


def test_what_a_database_holds_in_its_log_only_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT i AS id, 0.1::DOUBLE AS epsilon FROM range(20) r(i)")
    before = DuckDB().fingerprint(f"{path}#t")
    crash = (
        f"import duckdb, os; c = duckdb.connect({str(path)!r}); c.execute(\"SET wal_autocheckpoint = '1TB'\"); "
        "c.execute('UPDATE t SET epsilon = 1.0 WHERE id = 3'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", crash], check=False)
    assert Path(f"{path}.wal").exists()
    assert before != DuckDB().fingerprint(f"{path}#t")


@pytest.mark.parametrize("note", ['"he"llo', '"hello'])
def test_a_stray_quote_never_swallows_the_lines_of_others(tmp_path: Path, note: str) -> None:
    """Which rows such a text holds is in doubt: it is not admitted, and what was admitted before is still answered."""
    lines = ["id,epsilon,note", *(f"{i},1.0,hello" for i in range(100))]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "people.csv").write_text("\n".join([*lines, "100,1.0,hello"]) + "\n")
    with dn.connect(tmp_path / "t.discretion") as db:
        db.register("people", tmp_path / "people.csv", person="id", epsilon="epsilon")
        db.protect("visits", tmp_path / "visits.csv", person="id", register="people")
        lines[50] = f"49,1.0,{note}"
        (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
        with pytest.raises(InvalidDeclaration, match="stray quote"):
            db.refresh("visits")
        assert db.sql("SELECT COUNT(*) FROM visits").entry


def test_the_name_of_a_folder_in_a_pattern_is_no_column(tmp_path: Path) -> None:
    """It could be renamed from epsilon=0.1 to epsilon=1.0, and no content would have changed."""
    kind = "parquet"
    for epsilon, first in ((0.1, 0), (1.0, 20)):
        folder = tmp_path / f"epsilon={epsilon}"
        folder.mkdir()
        duckdb.sql(f"COPY (SELECT i + {first} AS id FROM range(20) r(i)) TO '{folder}/t.{kind}'")
    source = tmp_path / "epsilon=*" / f"t.{kind}"
    assert ["id"] == list(DuckDB().schema(str(source)))
    with dn.connect(tmp_path / "t.discretion") as db, pytest.raises(InvalidDeclaration, match="no column 'epsilon'"):
        db.protect("t", source, person="id", epsilon="epsilon")


@pytest.mark.parametrize("spelling", ["t", "main.t", "T", "MAIN.T"])
def test_rows_of_people_are_no_lookup_however_their_table_is_spelt(tmp_path: Path, spelling: str) -> None:
    with duckdb.connect(str(tmp_path / "c.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT i AS id, 1.0::DOUBLE AS epsilon FROM range(20) r(i)")
    place = f"{tmp_path}/c.duckdb#"
    with dn.connect(tmp_path / "c.discretion") as db, pytest.raises(InvalidDeclaration, match="rows of people"):
        db.protect("t", f"{place}t", person="id", epsilon="epsilon", lookups={"codes": (f"{place}{spelling}", "id")})


def test_a_steward_reads_what_is_wrong_with_a_text(tmp_path: Path) -> None:
    lines = ["id,epsilon,note", *(f"{i},1.0,hello" for i in range(50)), '50,1.0,"he"llo', "51,1.0,hello"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with dn.connect(tmp_path / "t.discretion") as db, pytest.raises(DiscretionError, match="stray quote"):
        db.protect("t", tmp_path / "t.csv", person="id", epsilon="epsilon")

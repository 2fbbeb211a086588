"""What only DuckDB does: files read in place, and what it never says or reaches."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet
import pytest

from discretion.engines import Cohorts
from discretion.engines.duckdb import DuckDB
from discretion.errors import EngineFailed
from engines.asking import ROWS, compute, table


@pytest.mark.parametrize("sql_type", ["FLOAT", "DECIMAL(5, 2)", "INTEGER"])
def test_preferences_match_whatever_number_type_they_have(sql_type: str, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    duckdb.sql(f"COPY (SELECT i AS id, (i / 4)::{sql_type} AS epsilon FROM range(5) t(i)) TO '{path}'")
    engine = DuckDB()
    people = engine.people(str(path), "id", "epsilon").to_pylist()
    found = sorted({row["epsilon"] for row in people})
    declared = table(engine, str(path), bounds={}, grid={}, keys={})
    cohorts = Cohorts(count=len(found), levels={epsilon: i for i, epsilon in enumerate(found)})
    assert 5 == compute(engine, "SELECT COUNT(*) FROM t", declared, cohorts)[0].counts.sum()


def written(kind: str, folder: Path) -> Any:
    """ROWS in one of the forms a source may have."""
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(ROWS, path)
    elif kind == "duckdb#rows":
        path = folder / "rows.duckdb"
        with duckdb.connect(path) as connection:
            connection.register("given", ROWS)
            connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        return f"{path}#rows"
    elif kind == "pattern":
        for part in (0, 1):
            pyarrow.parquet.write_table(ROWS.slice(4 * part, 4), folder / f"part{part}.parquet")
        return str(folder / "part*.parquet")
    else:
        return {"pandas": ROWS.to_pandas, "polars": lambda: pl.from_arrow(ROWS), "arrow": lambda: ROWS}[kind]()
    return str(path)


KINDS = ["parquet", "duckdb#rows", "pattern", "pandas", "polars", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_statistics(kind: str, tmp_path: Path) -> None:
    engine, source = DuckDB(), written(kind, tmp_path)
    declared = table(engine, source)
    assert ["id", "epsilon", "x", "place"] == list(declared.columns)
    (found,) = compute(engine, "SELECT place, MEDIAN(x) FROM t WHERE x > 1 GROUP BY place", declared)
    (expected,) = compute(engine, "SELECT place, MEDIAN(x) FROM t WHERE x > 1 GROUP BY place", table(engine))
    assert 2 == expected.counts.sum()
    assert expected.histogram.tolist() == found.histogram.tolist()
    people = engine.people(declared.source, "id", "epsilon")
    assert {("1", 3, 0.1), ("2", 2, 0.5), ("3", 1, 1.0), ("4", 1, 0.7)} == {
        (row["person"], row["rows"], row["epsilon"]) for row in people.to_pylist()
    }


@pytest.mark.parametrize("kind", ["parquet", "duckdb#rows", "pattern"])
def test_a_fingerprint_changes_with_the_content_and_only_then(kind: str, tmp_path: Path) -> None:
    engine, source = DuckDB(), written(kind, tmp_path)
    before = engine.fingerprint(source)
    assert before == engine.fingerprint(source) == DuckDB().fingerprint(source)
    file = sorted(tmp_path.iterdir())[0]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert before != engine.fingerprint(source)
    file.write_bytes(content)
    assert before == engine.fingerprint(source)


def test_a_missing_file_says_so() -> None:
    with pytest.raises(EngineFailed, match=r"There is no file 'nowhere\.parquet'"):
        DuckDB().schema("nowhere.parquet")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{other}')",
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM '{other}'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY protected TO '{folder}/out.csv'",
        "COPY (SELECT 1) TO '{path}'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/new.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SET enable_external_access = true",
        "SET allowed_paths = ['{other}']",
        "CREATE SECRET (TYPE s3)",
        "SELECT * FROM rows_of_the_program",
        "INSERT INTO protected VALUES (1)",
    ],
)
def test_nothing_but_the_sources_can_be_reached(sql: str, tmp_path: Path) -> None:
    path, other = tmp_path / "t.parquet", tmp_path / "other.csv"
    pyarrow.parquet.write_table(ROWS, path)
    other.write_text("secret\n1\n")
    content = path.read_bytes()
    rows_of_the_program = ROWS  # noqa: F841  DuckDB would find it by its name if it were allowed to
    attack = sql.format(other=other, folder=tmp_path, path=path)
    with DuckDB().backend.connections.connected({"protected": str(path)}, {}) as connection:
        assert 8 == len(connection.sql("SELECT * FROM protected").fetchall())
        with pytest.raises(duckdb.Error):
            connection.execute(attack).fetchall()
    assert content == path.read_bytes()
    assert {path, other} == set(tmp_path.iterdir())


def test_a_database_failure_never_shows_its_own_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 secret-value-123 PAR1")
    with pytest.raises(EngineFailed) as failure:
        DuckDB().schema(str(path))
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__
    assert "secret-value-123" not in str(failure.value) + caplog.text
    assert "DuckDB failed" in caplog.text


def test_limits_of_threads_and_memory_are_kept() -> None:
    engine = DuckDB(threads=1, memory="200MB")
    with engine.backend.connections.connected({}, {}) as connection:
        assert [(1,)] == connection.sql("SELECT current_setting('threads')").fetchall()


def test_no_progress_is_shown() -> None:
    with DuckDB().backend.connections.connected({}, {}) as connection:
        assert [(False,)] == connection.sql("SELECT current_setting('enable_progress_bar')").fetchall()

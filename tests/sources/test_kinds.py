"""Every kind of source gives the same answers, and they are the plain ones."""

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
import sqlalchemy as sa

import discretion as dn
from discretion.engines.duckdb.database import ONE_MOMENT
from discretion.errors import EngineFailed, InvalidDeclaration

PEOPLE = 60
CERTAIN = 1000.0  # noise of a count exceeds one half with a probability below 1e-20
ROWS = pa.table(
    {
        "visit": pa.array([f"v{i}" for i in range(PEOPLE)]),
        "Zip code": [f"{i % 7:03d}" for i in range(PEOPLE)],
        "patient": [f"{i:03d}" for i in range(PEOPLE)],
        "epsilon": [CERTAIN] * PEOPLE,
        "cost": [None if i % 10 == 0 else i + 0.5 for i in range(PEOPLE)],
        "day": pa.array([f"2024-01-{1 + i % 28:02d}" for i in range(PEOPLE)]).cast(pa.date32()),
        "adult": [i % 3 == 0 for i in range(PEOPLE)],
        "note": [None if i % 5 == 0 else f'say "hé", {i}\nbye' for i in range(PEOPLE)],
    }
)
QUESTION = """SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE cost > 20) AS dear, COUNT(note) AS notes,
    COUNT(*) FILTER (WHERE day >= DATE '2024-01-15' AND adult) AS late,
    COUNT(*) FILTER (WHERE "Zip code" = '003') AS zip,
    SUM(cost) AS total, COUNT(*) FILTER (WHERE patient = '007') AS seven FROM t WHERE patient <> '001'"""


def plain() -> dict[str, float]:
    rows = ROWS  # noqa: F841  the name in the query
    found = duckdb.sql(QUESTION.replace("FROM t", "FROM rows")).to_arrow_table().to_pylist()[0]
    return {name: float(value) for name, value in found.items()}


def answers(folder: Path, source: Any, **options: Any) -> dict[str, float]:
    with dn.connect(folder / "l.discretion") as db:
        db.protect("t", source, person="patient", epsilon="epsilon", bounds={"cost": (0, 100)}, **options)
        found = db.sql(QUESTION, share=1).columns
    return {name: values[0] for name, values in found.items()}


def same(truth: dict[str, float], found: dict[str, float]) -> None:
    for name, value in truth.items():
        assert abs(value - found[name]) < (20 if name == "total" else 0.5), name


def csv(folder: Path, name: str, *, delimiter: str = ",", encoding: str = "utf-8", decimal: str = ".") -> Path:
    frame = ROWS.to_pandas()
    path = folder / name
    frame.to_csv(path, index=False, sep=delimiter, encoding=encoding, decimal=decimal)
    return path


def parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(ROWS, folder / "t.parquet")
    return folder / "t.parquet"


def parts(folder: Path) -> list[Path]:
    (folder / "parts").mkdir()
    paths = [folder / "parts" / f"part-{part}.parquet" for part in (0, 1)]
    reordered = ROWS.select(ROWS.column_names[::-1])
    pyarrow.parquet.write_table(ROWS.slice(0, 20), paths[0])
    pyarrow.parquet.write_table(reordered.slice(20), paths[1])
    return paths


def hive(folder: Path) -> Path:
    shape = pyarrow.dataset.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")
    pyarrow.dataset.write_dataset(ROWS, folder / "hive", format="parquet", partitioning=shape)
    return folder / "hive"


def jsonl(folder: Path) -> Path:
    ROWS.to_pandas().to_json(folder / "t.jsonl", orient="records", lines=True, date_format="iso")
    text = (folder / "t.jsonl").read_text().replace("T00:00:00.000Z", "").replace("T00:00:00.000", "")
    (folder / "t.jsonl").write_text(text)
    return folder / "t.jsonl"


def arrow(folder: Path) -> Path:
    pyarrow.feather.write_feather(ROWS, folder / "t.feather")
    return folder / "t.feather"


def excel(folder: Path) -> Path:
    with pd.ExcelWriter(folder / "t.xlsx") as book:
        pd.DataFrame({"nothing": [1]}).to_excel(book, sheet_name="First", index=False)
        ROWS.to_pandas().to_excel(book, sheet_name="Visits", index=False)
    return folder / "t.xlsx"


def sqlite(folder: Path) -> str:
    with sqlite3.connect(folder / "t.db") as db:
        db.execute(
            'CREATE TABLE v (visit TEXT, "Zip code" TEXT, patient TEXT, epsilon REAL, cost REAL, day DATE, '
            "adult BOOLEAN, note TEXT)"
        )
        rows = [tuple(str(x) if name == "day" else x for name, x in row.items()) for row in ROWS.to_pylist()]
        db.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        db.execute("CREATE VIEW t AS SELECT * FROM v")
    db.close()
    return f"{folder}/t.db#t"


def in_duckdb(folder: Path, table: str) -> str:
    with duckdb.connect(folder / "t.duckdb") as db:
        db.register("given", ROWS)
        db.execute("CREATE TABLE rows AS SELECT * FROM given")
        db.execute("CREATE VIEW seen AS SELECT * FROM rows")
    return f"{folder}/t.duckdb#{table}"


KINDS: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "parquet": (parquet, {}),
    "list": (parts, {}),
    "glob": (lambda folder: (parts(folder), folder / "parts" / "*.parquet")[1], {}),
    "folder": (lambda folder: (parts(folder), folder / "parts")[1], {}),
    "hive": (hive, {}),
    "csv": (lambda folder: csv(folder, "t.csv"), {}),
    "tsv": (lambda folder: csv(folder, "t.tsv", delimiter="\t"), {}),
    "csv.gz": (lambda folder: csv(folder, "t.csv.gz"), {}),
    "semicolons": (lambda folder: csv(folder, "t.csv", delimiter=";", decimal=","), {"decimal": ","}),
    "latin-1": (lambda folder: csv(folder, "t.csv", encoding="latin-1"), {"encoding": "latin-1"}),
    "utf-16": (lambda folder: csv(folder, "t.csv.gz", encoding="utf-16"), {"encoding": "utf-16"}),
    "json lines": (jsonl, {}),
    "feather": (arrow, {}),
    "excel": (excel, {"sheet": "Visits"}),
    "excel sheet": (lambda folder: f"{excel(folder)}#Visits", {}),
    "sqlite": (sqlite, {}),
    "duckdb": (lambda folder: in_duckdb(folder, "rows"), {}),
    "duckdb view": (lambda folder: in_duckdb(folder, "seen"), {}),
    "pandas": (lambda _: ROWS.to_pandas(), {}),
    "polars": (lambda _: pl.from_arrow(ROWS), {}),
    "lazy polars": (lambda _: pl.from_arrow(ROWS).lazy(), {}),
    "arrow table": (lambda _: ROWS, {}),
    "arrow reader": (lambda _: ROWS.to_reader(7), {}),
    "arrow dataset": (lambda folder: pyarrow.dataset.dataset(parquet(folder)), {}),
}
IN_PLACE = {"parquet", "list", "glob", "folder", "hive", "duckdb"}
IN_MEMORY = {"pandas", "polars", "lazy polars", "arrow table", "arrow reader", "arrow dataset"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_plain_answers(tmp_path: Path, kind: str) -> None:
    write, options = KINDS[kind]
    same(plain(), answers(tmp_path, write(tmp_path), **options))
    copies = list(tmp_path.glob("*.copy.parquet"))
    assert (0 if kind in IN_PLACE | IN_MEMORY else 1) == len(copies)
    assert all(0o600 == stat.S_IMODE(copy.stat().st_mode) for copy in copies)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.xdist_group("postgres")
def test_postgresql_gives_the_plain_answers(tmp_path: Path, postgres_server: sa.URL) -> None:
    url = postgres_server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute('DROP SCHEMA IF EXISTS "Shop" CASCADE')
        db.execute('CREATE SCHEMA "Shop"')
        db.execute("""CREATE TABLE "Shop".v (visit text, "Zip code" char(3), patient varchar(9), epsilon numeric,
            cost numeric(8,2), day date, adult boolean, note text, far timestamptz, id uuid, j jsonb)""")
        for row in ROWS.to_pylist():
            db.execute(f"INSERT INTO \"Shop\".v VALUES ({', '.join(['%s'] * 8)}, 'infinity')", list(row.values()))
        db.execute('CREATE VIEW "Shop"."Seen" AS SELECT * FROM "Shop".v')
    same(plain(), answers(tmp_path, f'{url}#"Shop"."Seen"'))
    with dn.connect(tmp_path / "l.discretion") as db:
        (table,) = db.tables()
        assert "DECIMAL(8,2)" == table.columns["cost"]
        assert "password" not in table.stored()
        with psycopg.connect(url, autocommit=True) as server:
            server.execute('DELETE FROM "Shop".v WHERE adult')
        db.refresh("t")
        assert 1 == len(list(tmp_path.glob("*.copy.parquet")))


@pytest.mark.xdist_group("postgres")
def test_postgresql_is_read_as_it_is_at_one_moment(postgres_server: sa.URL) -> None:
    """ADBC opens a transaction by itself: else the statement would have no effect but a warning."""
    url = postgres_server.set(drivername="postgresql").render_as_string(hide_password=False)
    with adbc_driver_postgresql.dbapi.connect(url) as db, db.cursor() as cursor:
        cursor.execute(ONE_MOMENT)
        for setting, value in {"isolation": "repeatable read", "read_only": "on"}.items():
            cursor.execute(f"SELECT current_setting('transaction_{setting}')")
            assert (value,) == cursor.fetchone()


@pytest.mark.xdist_group("postgres")
def test_a_ledger_in_postgresql_needs_a_folder_for_copies(tmp_path: Path, postgres_place: str) -> None:
    path = csv(tmp_path, "t.csv")
    with dn.connect(postgres_place) as db, pytest.raises(InvalidDeclaration, match="Say where copies may be kept"):
        db.protect("t", path, person="patient", epsilon="epsilon")
    with dn.connect(postgres_place, copies=tmp_path / "copies") as db:
        db.protect("t", path, person="patient", epsilon="epsilon")
    assert 1 == len(list((tmp_path / "copies").iterdir()))


def test_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    csv(tmp_path, "t.csv")
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", "~/t.csv", person="patient", epsilon="epsilon")


def test_a_copy_is_the_same_file_for_the_same_rows(tmp_path: Path) -> None:
    """Else protecting a text again would look like a change."""
    lines = [f"{i},1,{i % 100},text {i}" for i in range(300_000)]
    (tmp_path / "t.csv").write_text("\n".join(["id,epsilon,x,note", *lines]))
    with dn.connect(tmp_path / "l.discretion") as db:
        first = db.protect("t", tmp_path / "t.csv", person="id", epsilon="epsilon")
        assert first == db.protect("t", tmp_path / "t.csv", person="id", epsilon="epsilon")
        assert "" == db.refresh("t")
        assert first == db.tables()[0]


class OtherFrame:
    """A data frame of a library nobody knows, which speaks the interchange protocol only."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return pa.table({"id": [1, 2], "epsilon": [1.0, 1.0]}).__dataframe__(nan_as_null, allow_copy)


def test_a_data_frame_of_any_library_can_be_given(tmp_path: Path) -> None:
    with dn.connect(tmp_path / "l.discretion") as db:
        assert {"id": "BIGINT", "epsilon": "DOUBLE"} == db.protect(
            "t", OtherFrame(), person="id", epsilon="epsilon"
        ).columns
        mixed = pd.DataFrame({"id": [1, "a"], "epsilon": [1, 1]}, dtype=object)
        with pytest.raises(InvalidDeclaration, match="Column 'id' of 'u' mixes types"):
            db.protect("u", mixed, person="id", epsilon="epsilon")


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame([[1, 1.0, 2, 3]], columns=["id", "epsilon", "x", "x"]), "'t' has two columns named 'x'"),
        (pd.DataFrame({"id": [1], "epsilon": [1.0], "p": pd.period_range("2020", periods=1, freq="D")}), "'p'.*period"),
        (pd.DataFrame({"id": [1], "epsilon": [1.0], "p": pd.interval_range(0, 1)}), "'p'.*interval"),
    ],
)
def test_a_frame_with_columns_that_cannot_be_read_is_refused(frame: pd.DataFrame, said: str) -> None:
    with dn.connect(":memory:") as db, pytest.raises(InvalidDeclaration, match=said):
        db.protect("t", frame, person="id", epsilon="epsilon")


UNUSUAL = [
    ("nothing.csv", {}, "There is no file"),
    ("empty", {}, "has no Parquet file. For files of another kind give a pattern"),
    ("https://example.org/t.parquet", {}, "extension httpfs, which is not installed here"),
    ("latin.csv", {}, "is not written in UTF-8. Give its encoding"),
    ("latin.csv", {"encoding": "rot13"}, "There is no encoding 'rot13'"),
    ("latin.csv", {"encoding": "ascii"}, "is not written in 'ascii'"),
    ("mixed.db#t", {}, "holds integer and text values. Say what it is with types="),
    ("mixed.db#u", {}, "Is there such a table"),
    ("mixed.db", {}, r"is a SQLite file. Say which of its tables is meant: mixed.db#table"),
    ("twice.csv", {}, "names 'a', 'A' twice|names 'A', 'a' twice"),
    ("image.png", {}, "is no file of a known kind"),
    ("part-*.parquet", {}, "has another type or name of column 'x'"),
    ("bad.parquet", {}, "is not valid UTF-8"),
    ("ok.csv", {"types": {"x": "NUMBER"}}, "The type of 'x' must be BOOLEAN"),
    ("ok.csv", {"types": {"y": "DOUBLE"}}, "`types` names 'y'"),
    ("ok.csv", {"types": {"id": "BIGINT"}}, "always named by text"),
    ("ok.csv", {"delimiter": ";;"}, "must be one character"),
    ("ok.csv", {"encoding": "klingon"}, "There is no encoding 'klingon'"),
    ("postgresql://host/db", {}, "Say which table"),
]


@pytest.mark.parametrize(("source", "options", "told"), UNUSUAL)
def test_an_error_says_what_to_do(tmp_path: Path, source: str, options: dict[str, Any], told: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.csv").write_bytes("id,epsilon\né,1\n".encode("latin-1"))
    (tmp_path / "twice.csv").write_text("id,epsilon,a,A\n1,1,1,1\n")
    (tmp_path / "ok.csv").write_text("id,epsilon,x\n1,1,1\n")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n and more")
    with sqlite3.connect(tmp_path / "mixed.db") as db:
        db.execute("CREATE TABLE t (id INTEGER, epsilon REAL)")
        db.executemany("INSERT INTO t VALUES (?, 1.0)", [(1,), ("C12",)])
    db.close()
    pyarrow.parquet.write_table(pa.table({"id": [1], "epsilon": [1.0], "x": [1]}), tmp_path / "part-1.parquet")
    pyarrow.parquet.write_table(pa.table({"id": [2], "epsilon": [1.0], "x": ["a"]}), tmp_path / "part-2.parquet")
    wrong = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0])), pa.py_buffer(b"\xff\xfe")]
    )
    pyarrow.parquet.write_table(pa.table({"id": [1], "epsilon": [1.0], "x": wrong}), tmp_path / "bad.parquet")
    with dn.connect(tmp_path / "l.discretion") as db:
        given = source if "://" in source else str(tmp_path / source)
        with pytest.raises((InvalidDeclaration, EngineFailed), match=told):
            db.protect("t", given, person="id", epsilon="epsilon", **options)
        assert () == db.tables()
    assert not list(tmp_path.glob("*copy*"))

"""What was admitted is answered about, whatever happens to the original; anything else is refused, uncharged."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

import discretion as dn
from discretion.errors import InvalidDeclaration, SourceChanged

CERTAIN = 1000.0  # noise of a count exceeds one half with a probability below 1e-20


def text(path: Path, people: list[str], x: list[Any] | None = None) -> Path:
    values = x if x is not None else [1] * len(people)
    lines = [f"{value},{person},{CERTAIN}" for person, value in zip(people, values, strict=True)]
    path.write_text("\n".join(["x,id,epsilon", *lines]) + "\n")
    return path


def protected(folder: Path, source: Any, **declared: Any) -> Any:
    db = dn.connect(folder / "l.discretion")
    db.protect("t", source, person="id", epsilon="epsilon", **declared)
    return db


def count(db: Any, condition: str, share: float = 0.1) -> int:
    return round(db.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", share=share).columns["n"][0])


def test_questions_read_only_the_copy(tmp_path: Path) -> None:
    """One row appended to a text made every stored answer new: a signal that something changed."""
    path = text(tmp_path / "t.csv", ["a", "b"])
    with protected(tmp_path, path) as db:
        first = db.sql("SELECT COUNT(*) AS n FROM t WHERE x = 1")
        text(path, ["a", "b", "c"])
        assert first == db.sql("SELECT COUNT(*) AS n FROM t WHERE x = 1")
        path.unlink()
        assert 2 == count(db, "x > 0")


@pytest.mark.parametrize("change", ["edited", "gone", "schema"])
def test_another_state_is_refused_uncharged_with_one_sentence(tmp_path: Path, change: str) -> None:
    path = tmp_path / "t.parquet"
    rows = pa.table({"id": ["a", "b"], "epsilon": [CERTAIN] * 2, "x": [1, 1]})
    pa.parquet.write_table(rows, path)
    with protected(tmp_path, path) as db:
        before = db.head()
        if change == "gone":
            path.unlink()
        else:
            other = {"edited": pa.array([1, 2]), "schema": pa.array(["1", "1"])}[change]
            pa.parquet.write_table(rows.set_column(2, "x", other), path)
        with pytest.raises(SourceChanged) as refusal:
            count(db, "x = 1")
        assert (
            "The source of 't' is not in the state that was admitted. Its steward can admit it with `refresh`."
            == str(refusal.value)
        )
        assert before == db.head()


def test_a_table_that_protects_presence_has_an_admitted_state_too(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"id": ["a", "b"], "epsilon": [CERTAIN] * 2}), tmp_path / "people.parquet")
    pa.parquet.write_table(pa.table({"id": ["a", "b"], "x": [1, 1]}), tmp_path / "t.parquet")
    with dn.connect(tmp_path / "l.discretion") as db:
        db.register("people", tmp_path / "people.parquet", person="id", epsilon="epsilon")
        db.protect("t", tmp_path / "t.parquet", person="id", register="people")
        assert 2 == count(db, "x = 1")
        pa.parquet.write_table(pa.table({"id": ["a", "b"], "x": [1, 2]}), tmp_path / "t.parquet")
        with pytest.raises(SourceChanged):
            count(db, "x = 1")
        db.refresh("t")
        assert 1 == count(db, "x = 1")


def test_the_name_of_a_folder_is_part_of_the_state(tmp_path: Path) -> None:
    for year in (2023, 2024):
        (tmp_path / "t" / f"year={year}").mkdir(parents=True)
        rows = {"id": [f"{year}-{i}" for i in range(5)], "epsilon": [CERTAIN] * 5}
        pa.parquet.write_table(pa.table(rows), tmp_path / "t" / f"year={year}" / "part.parquet")
    with protected(tmp_path, tmp_path / "t") as db:
        assert 5 == count(db, "year = 2024")
        (tmp_path / "t" / "year=2024").rename(tmp_path / "t" / "year=2025")
        with pytest.raises(SourceChanged):
            count(db, "year = 2024")


def test_a_folder_that_must_be_copied_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t" / "day=2024-01-01").mkdir(parents=True)
    rows = pa.table({"id": ["a", "b"], "epsilon": [CERTAIN] * 2, "x": [1.0, float("nan")]})
    pa.parquet.write_table(rows, tmp_path / "t" / "day=2024-01-01" / "part.parquet")
    with protected(tmp_path, tmp_path / "t") as db:
        assert "DATE" == db.tables()[0].columns["day"]
        assert 1 == count(db, "day = DATE '2024-01-01' AND x = 1")
    assert list(tmp_path.glob("*.copy.parquet"))


def test_a_refresh_replaces_the_copy(tmp_path: Path) -> None:
    path = text(tmp_path / "t.csv", ["a", "b"])
    with protected(tmp_path, path) as db:
        (before,) = tmp_path.glob("*.copy.parquet")
        assert str(before) == db.tables()[0].source
        text(path, ["a", "b", "c"], [1, 2, "three"])
        db.refresh("t")
        (after,) = tmp_path.glob("*.copy.parquet")
        assert before != after
        assert "BIGINT" == db.tables()[0].columns["x"]  # the type is final: "three" is NULL
        assert 1 == count(db, "x IS NULL")


# People -------------------------------------------------------------------------------------------------------------


def test_people_in_a_text_are_texts(tmp_path: Path) -> None:
    with protected(tmp_path, text(tmp_path / "t.csv", ["007", "  8", "9"])) as db:
        assert "VARCHAR" == db.tables()[0].columns["id"]
        assert CERTAIN == db.receipt("007").allowance
        assert CERTAIN == db.receipt("8").allowance
        for nobody in ("7", "008"):
            with pytest.raises(InvalidDeclaration):
                db.receipt(nobody)
        assert [0, 1, 1] == [count(db, condition) for condition in ("id = 7", "id = 8", "id = '007'")]


def test_one_odd_identifier_gives_nobody_a_second_allowance(tmp_path: Path) -> None:
    path = text(tmp_path / "t.csv", [f"{i:>3}" for i in range(99)])
    with protected(tmp_path, path) as db:
        count(db, "x = 1", share=1)
        text(path, [*(f"{i:>3}" for i in range(99)), "C12"])
        db.refresh("t")
        spent = {row["epsilon"]: row for row in db.balance("t") if row["spent"] == 0}
        assert 1 == sum(row["people"] for row in spent.values())


# Values that could make a question fail -----------------------------------------------------------------------------

FAR = 2**62
HOSTILE = {
    "nan": pa.array([1.0, float("nan")]),
    "milliseconds": pa.array([0, FAR], pa.timestamp("ms")),
    "milliseconds with zone": pa.array([0, FAR], pa.timestamp("ms", "UTC")),
    "microseconds": pa.array([0, FAR], pa.timestamp("us")),
    "dates": pa.array([0, 2**31 - 1], pa.date32()),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("form", ["parquet", "memory"])
def test_a_value_that_could_make_a_question_fail_is_null(tmp_path: Path, kind: str, form: str) -> None:
    rows = pa.table({"id": ["a", "b"], "epsilon": [CERTAIN] * 2, "x": HOSTILE[kind]})
    pa.parquet.write_table(rows, tmp_path / "t.parquet")
    declared = {"bounds": {"x": (0, 10)}} if kind == "nan" else {}
    with protected(tmp_path, rows if form == "memory" else tmp_path / "t.parquet", **declared) as db:
        assert 1 == count(db, "x IS NULL")
        if kind == "nan":
            assert db.sql("SELECT SUM(x) AS s, AVG(x) AS a FROM t WHERE id <> 'c'", share=0.1).entry
    assert (form == "parquet") == bool(list(tmp_path.glob("*.copy.parquet")))


def test_a_person_that_is_no_number_is_nobody(tmp_path: Path) -> None:
    rows = pa.table({"id": [1.0, 2.0, float("nan")], "epsilon": [CERTAIN] * 3, "x": [1, 1, 1]})
    pa.parquet.write_table(rows, tmp_path / "t.parquet")
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", tmp_path / "t.parquet", person="id", epsilon="epsilon")
        assert 2 == count(db, "x = 1")


def test_times_with_a_zone_are_times_in_utc(tmp_path: Path) -> None:
    moment = datetime.fromisoformat("2024-07-01T23:30:00+00:00")
    rows = pa.table({"id": ["a"], "epsilon": [CERTAIN], "at": pa.array([moment], pa.timestamp("us", "Asia/Tokyo"))})
    pa.parquet.write_table(rows, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(f"id,at,epsilon\na,2024-07-02 08:30:00+09:00,{CERTAIN}\n")
    for number, source in enumerate((tmp_path / "t.parquet", rows, tmp_path / "t.csv")):
        with dn.connect(tmp_path / f"{number}.discretion") as db:
            db.protect("t", source, person="id", epsilon="epsilon")
            assert 1 == count(db, "at < TIMESTAMP '2024-07-02 00:00:00'")


# Types --------------------------------------------------------------------------------------------------------------


def test_types_are_guessed_over_the_whole_text(tmp_path: Path) -> None:
    columns = {
        "id": ["a"] * 3000,
        "epsilon": ["1"] * 3000,
        "whole": [*["1"] * 2999, "-20"],
        "late": [*["1"] * 2999, "x"],
        "number": [*["1"] * 2999, "2.5e3"],
        "zero": [*["1"] * 2999, "01"],
        "truth": [*["true"] * 2999, "FALSE"],
        "day": [*["2024-01-01"] * 2999, ""],
        "time": [*["2024-01-01"] * 2999, "2024-01-01 10:00:00"],
        "nothing": [""] * 3000,
        "comma": ["1,5"] * 3000,
    }
    lines = [";".join(row) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([";".join(columns), *lines]))
    with dn.connect(tmp_path / "l.discretion") as db:
        found = db.protect("t", tmp_path / "t.csv", person="id", epsilon="epsilon", types={"whole": "INTEGER"}).columns
        told = {row["text"].split("'")[1] for row in db.warnings() if row["warning"] == "reading"}
    kinds = ["VARCHAR", "BIGINT", "INTEGER", "VARCHAR", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR"]
    assert dict(zip(columns, [*kinds, "VARCHAR"], strict=True)) == dict(found)
    assert {"late", "zero", "comma"} == told


def test_words_that_mean_null_can_be_named(tmp_path: Path) -> None:
    with protected(tmp_path, text(tmp_path / "t.csv", ["a", "b"], ["NA", "5"]), null=["NA"]) as db:
        assert "BIGINT" == db.tables()[0].columns["x"]
        assert 1 == count(db, "x IS NULL")


# Warnings and notices -----------------------------------------------------------------------------------------------


def test_warnings_reach_the_steward_and_nothing_else(tmp_path: Path) -> None:
    rows = {
        "id": ["a", "a", "b", None],
        "epsilon": [1.0, 1.0, None, 1.0],
        "x": [1, 99, 5, 5],
        "k": ["u", "u", "v", "z"],
    }
    with dn.connect(tmp_path / "l.discretion") as db:
        declared: dict[str, Any] = {"bounds": {"x": (0, 10)}, "keys": {"k": ["u", "v", "w"]}}
        table = db.protect("t", pa.table(rows), person="id", epsilon="epsilon", **declared)
        told = {(row["warning"], row["column"]): row["people"] for row in json.loads(db.warnings().to_json())}
        assert {
            ("no_person", "id"): 1,
            ("outside_bounds", "x"): 1,
            ("rows_without_key", "k"): 1,
            ("above_rows_per_person", "id"): 1,
            ("no_preference", "epsilon"): 1,
            ("key_without_rows", "k = w"): None,
        } == told
        assert "warning" not in table.stored()
        assert "outside" not in str(list(db.history()))
    with dn.connect(tmp_path / "l.discretion") as analyst:
        assert 0 == len(analyst.warnings())


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "sqlite", "duckdb"])
def test_the_steward_is_told_how_many_values_do_not_fit_a_declared_type(kind: str, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b", "c", "d"], "epsilon": [CERTAIN] * 4, "x": ["1.5", "two", None, "n/a"]})
    place = str(tmp_path / f"t.{kind}")
    if kind == "csv":
        text(tmp_path / "t.csv", ["a", "b", "c", "d"], ["1.5", "two", "", "n/a"])
    elif kind == "json":
        Path(place).write_text(json.dumps(rows.to_pylist()))
    elif kind == "parquet":
        pa.parquet.write_table(rows, place)
    elif kind == "sqlite":
        with closing(sqlite3.connect(place)) as db:
            db.execute("CREATE TABLE t (id, epsilon, x)")
            db.executemany("INSERT INTO t VALUES (?, ?, ?)", [tuple(row.values()) for row in rows.to_pylist()])
            db.commit()
        place += "#t"
    else:
        with duckdb.connect(place) as made:
            made.register("rows", rows)
            made.execute("CREATE TABLE t AS SELECT * FROM rows")
        place += "#t"
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", place, person="id", epsilon="epsilon", types={"x": "DOUBLE"}, bounds={"x": (0, 9)})
        assert [
            "Column 'x' is declared DOUBLE: 2 values do not fit and are read as NULL. Write such values like 1.5."
        ] == [row["text"] for row in db.warnings()]
        assert 3 == count(db, "x IS NULL")


def test_values_that_stop_fitting_are_told_at_refresh(tmp_path: Path) -> None:
    with protected(tmp_path, text(tmp_path / "t.csv", ["a", "b"], ["1", "2"])) as db:
        assert [] == list(db.warnings())
        text(tmp_path / "t.csv", ["a", "b"], ["1", "unknown"])
        db.refresh("t")
        assert [
            "Column 'x' is declared BIGINT: 1 value does not fit and is read as NULL. Write such values like 42."
        ] == [row["text"] for row in db.warnings()]


@pytest.mark.parametrize(("last", "told"), [(None, []), ("u", ["k = NULL"])])
def test_a_missing_value_is_a_row_of_the_key_null(last: str | None, told: list[str], tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "epsilon": [1.0, 1.0], "k": ["u", last]})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", rows, person="id", epsilon="epsilon", keys={"k": ["u", None]})
        assert told == [row["column"] for row in db.warnings()]


def test_people_without_a_preference_are_told_by_a_register(tmp_path: Path) -> None:
    people = pa.table({"id": ["a", "b", "c"], "epsilon": [1.0, None, None]})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.register("r", people, person="id", epsilon="epsilon")
        assert [("no_preference", "epsilon", 2)] == [(w["warning"], w["column"], w["people"]) for w in db.warnings()]
        db.register("s", people.slice(0, 1), person="id", epsilon="epsilon", separate=True)
        assert [] == list(db.warnings())


def test_people_who_are_not_in_the_register_are_told(tmp_path: Path) -> None:
    with dn.connect(tmp_path / "l.discretion") as db:
        db.register("people", pa.table({"id": [1, 2], "epsilon": [1.0, 1.0]}), person="id", epsilon="epsilon")
        db.protect("t", pa.table({"id": ["1", "3", "4"]}), person="id", register="people")
        assert [("not_in_register", 2)] == [(row["warning"], row["people"]) for row in db.warnings()]

"""The DuckDB engine: sources, bounded rows, cohorts, coins, and what it never says or reaches."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from discretion.declaration.table import Lookup, Table
from discretion.engines import Cohorts, Engine, Rows
from discretion.engines import engine as engine_module
from discretion.engines.duckdb import DuckDB
from discretion.errors import EngineFailed, InvalidDeclaration, InvalidPreference
from discretion.noise import ALWAYS, keyed_coin
from discretion.query import parse
from discretion.statistics import Measure, Request, Statistics

ROWS = pa.table(
    {
        "id": [1, 1, 1, 2, 2, 3, None, 4],
        "epsilon": [0.1, 0.1, 0.1, 0.5, 0.5, 1.0, 1.0, 0.7],
        "x": [1.0, 2.0, 9.0, -5.0, 20.0, None, 7.0, 3.0],
        "place": ["A", "A", "B", "B", "C", "A", "A", "A"],
    }
)
LEVELS = {0.1: 0, 0.5: 1, 1.0: 2}  # nobody offers 0.7: person 4 is left out


def table(engine: DuckDB, rows: Any = ROWS, **declared: Any) -> Table:
    source = rows if isinstance(rows, str) else engine.attach("t", rows)
    known = {"person": "id", "register": "t", "protects": "value", "epsilon": "epsilon", "rows_per_person": 3}
    known |= {"bounds": {"x": (0, 10)}, "grid": {"x": 1}, "keys": {"place": ("A", "B")}}
    return Table(name="t", source=source, columns=engine.schema(source), **(known | declared))


def compute(
    engine: DuckDB, sql: str, declared: Table, cohorts: Cohorts | None = None, **measure: Any
) -> tuple[Statistics, ...]:
    query = parse(sql, {"t": declared})
    known = {"histogram": False, **measure}
    measures = tuple(
        Measure(aggregate=one, **(known | {"histogram": one.kind == "quantile"})) for one in query.aggregates
    )
    rows = Rows(query=query, cohorts=cohorts or Cohorts(count=3, levels=LEVELS))
    return engine.compute(Request(measures=measures, source=rows))


def test_duckdb_is_an_engine() -> None:
    engine: Engine = DuckDB()
    assert isinstance(engine, DuckDB)


def test_rows_are_clamped_put_on_the_grid_and_summed_by_cohort() -> None:
    engine = DuckDB()
    (found,) = compute(engine, "SELECT SUM(x) FROM t", table(engine))
    assert [[3, 2, 0]] == found.counts.tolist()  # the NULL, nobody's row and person 4 are left out
    step = parse("SELECT SUM(x) FROM t", {"t": table(engine)}).aggregates[0].step
    assert [[12, 0 + 10, 0]] == (found.totals * step).tolist()  # −5 and 20 count as 0 and 10


def test_a_histogram_counts_rows_by_grid_value() -> None:
    engine = DuckDB()
    (found,) = compute(engine, "SELECT MEDIAN(x) FROM t", table(engine))
    assert (1, 3, 11) == found.histogram.shape
    assert [(0, 1), (0, 2), (0, 9), (1, 0), (1, 10)] == list(zip(*np.nonzero(found.histogram[0]), strict=True))
    assert [[3, 2, 0]] == found.counts.tolist()
    assert [[12, 10, 0]] == found.totals.tolist()


def test_several_kinds_of_aggregates_come_from_one_text() -> None:
    engine = DuckDB()
    sql = "SELECT place, COUNT(*), AVG(x), VARIANCE(x), MEDIAN(x), MAX(x), COUNT(DISTINCT id) FROM t GROUP BY place"
    count, mean, variance, median, largest, people = compute(engine, sql, table(engine))
    assert [[2, 0, 1], [1, 1, 0]] == count.counts.tolist()  # place C is not declared
    assert [[2, 0, 0], [1, 1, 0]] == mean.counts.tolist() == variance.counts.tolist() == median.counts.tolist()
    assert np.array_equal(median.histogram, largest.histogram)
    assert [[1, 0, 1], [1, 1, 0]] == people.counts.tolist()
    assert variance.squares is not None and variance.squares.sum() > 0  # noqa: PT018


@pytest.mark.parametrize("bad", [nan, inf, -inf, None])
def test_nan_and_infinity_are_null_before_anything_else(bad: float | None) -> None:
    engine = DuckDB()
    declared = table(engine, pa.table({"id": [1, 2], "epsilon": [0.1, 0.1], "x": [bad, 4.0], "place": ["A", "A"]}))
    assert [1] == [s.counts.sum() for s in compute(engine, "SELECT SUM(x) FROM t", declared)]
    for condition, expected in {"x > 1": 1, "x < 1": 0, "x <> 4": 0, "x IS NULL": 1, "NOT x > 100": 1}.items():
        (found,) = compute(engine, f"SELECT COUNT(*) FROM t WHERE {condition}", declared)
        assert expected == found.counts.sum(), condition


def test_a_value_declared_never_null_counts_as_the_bound_nearest_zero() -> None:
    engine = DuckDB()
    rows = pa.table({"id": [1, 2], "epsilon": [0.1, 0.1], "x": [nan, 6.0], "place": ["A", "A"]})
    declared = table(engine, rows, bounds={"x": (5, 9)}, required=("x",), rows_per_person=1)
    query = parse("SELECT AVG(x) FROM t", {"t": declared})
    (found,) = compute(engine, "SELECT AVG(x) FROM t", declared)
    assert query.aggregates[0].complete
    assert 2 == found.counts.sum()
    assert 11 == query.aggregates[0].origin * 2 + query.aggregates[0].step * int(found.totals.sum())


# Bounded rows ------------------------------------------------------------------------------------------------------


def bounded(rows: list[tuple[int, str, int]], k: int, monkeypatch: pytest.MonkeyPatch, key: str) -> Statistics:
    """Counts by place of people's rows, at most k each."""
    monkeypatch.setattr(engine_module, "coin_key", lambda: key)
    engine = DuckDB()
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "place", "x"))}
    data = pa.table({**columns, "epsilon": [0.1] * len(rows)})
    declared = table(engine, data, rows_per_person=k, keys={"place": ("A", "B")})
    (found,) = compute(engine, "SELECT place, MEDIAN(x) FROM t GROUP BY place", declared)
    return found


def test_nobody_keeps_more_than_k_rows_and_nobody_else_loses_any(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(person, "AB"[i % 2], i % 5) for person in range(1, 9) for i in range(person)]
    for k in (1, 2, 3, 7):
        found = bounded(rows, k, monkeypatch, f"key{k}")
        assert sum(min(person, k) for person in range(1, 9)) == found.counts.sum()


def test_which_rows_are_kept_depends_on_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [(1, place, x) for place, x in product("AB", range(5))]
    alone = bounded(mine, 3, monkeypatch, "key")
    for others in ([(2, "A", 0)] * 9, [(0, "B", 4)], [(i, "A", i % 5) for i in range(2, 40)]):
        together = bounded([*others, *mine], 3, monkeypatch, "key")
        without = bounded(others, 3, monkeypatch, "key")
        assert np.array_equal(alone.histogram, together.histogram - without.histogram)
    assert np.array_equal(alone.histogram, bounded(mine[::-1], 3, monkeypatch, "key").histogram)  # nor on their order


def test_rows_that_no_group_shows_take_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 == bounded([(1, "C", 0)] * 50 + [(1, "A", 1), (1, "B", 2)], 2, monkeypatch, "key").counts.sum()


def test_every_row_is_kept_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 of 8 rows of each of 400 people: a row is kept 150 times ± 9.7, so 5 of these fail once in 200,000 keys."""
    rows = [(person, "AB"[i // 5], i % 5) for person in range(400) for i in range(8)]
    kept = bounded(rows, 3, monkeypatch, "key").histogram[:, 0, :5].ravel()[:8]
    assert 1200 == kept.sum()
    assert max(abs(kept - 150)) < 5 * 9.7


def test_people_are_counted_once_without_bounding_their_rows() -> None:
    engine = DuckDB()
    (found,) = compute(engine, "SELECT COUNT(DISTINCT id) FROM t", table(engine, rows_per_person=1))
    assert [[1, 1, 1]] == found.counts.tolist()


# Cohorts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([3, 2, 1, None], pa.int64()), [[3, 2, 1]]),
        (pa.array([3, 2, 1, None], pa.int16()), [[3, 2, 1]]),
        (pa.array(["3", "2", "1", None]), [[3, 2, 1]]),
        (pa.array([3.0, 2.0, 1.0, None]), [[3, 2, 1]]),
        (pa.array([3, 2, 9, None], pa.int64()), [[0, 2, 1]]),  # person 1 is not in the register
        (pa.array([3, 2, 1, 1], pa.int64()), [[3, 2, 1]]),  # person 1 is in it twice: the strictest counts, once
    ],
)
def test_a_register_apart_says_who_is_in_which_cohort(ids: pa.Array, expected: list[list[int]]) -> None:
    engine = DuckDB()
    register = engine.attach("r", pa.table({"who": ids, "eps": [1.0, 0.5, 0.1, 1.0]}))
    declared = table(engine, protects="presence", register="r", epsilon="")
    cohorts = Cohorts(count=3, levels=LEVELS, register=register, person="who", epsilon="eps")
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", declared, cohorts)
    assert expected == found.counts.tolist()


@pytest.mark.parametrize("apart", [False, True])
def test_individual_changes_win(apart: bool) -> None:
    engine = DuckDB()
    register = engine.attach("r", pa.table({"who": [1, 2, 3], "eps": [0.1, 0.5, 1.0]}))
    where = {"register": register, "person": "who", "epsilon": "eps"} if apart else {}
    declared = table(engine, **({"protects": "presence", "register": "r", "epsilon": ""} if apart else {}))
    changes = pa.table({"person": ["1", "2", "4"], "cohort": pa.array([2, -1, 1], pa.int64())})
    cohorts = Cohorts(count=3, levels=LEVELS, changes=changes, **where)
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", declared, cohorts)
    assert [[0, 1, 4]] == found.counts.tolist()


def test_preferences_may_be_names_or_missing() -> None:
    engine = DuckDB()
    rows = pa.table(
        {"id": [1, 2, 3, 4], "epsilon": ["strict", "open", None, "other"], "x": [1.0] * 4, "place": ["A"] * 4}
    )
    cohorts = Cohorts(count=2, levels={"strict": 0, "open": 1, None: 0})
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", table(engine, rows), cohorts)
    assert [[2, 1]] == found.counts.tolist()


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


# Coins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids", [pa.array([5, 17850, 3, -9]), pa.array(["é", "a:b", "", "x'"]), pa.array([1.5, 17850.0, 3.0, 2.0])]
)
def test_the_engine_tosses_the_same_coins_as_python(ids: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "secret")
    engine = DuckDB()
    declared = table(engine, pa.table({"id": ids, "epsilon": [0.1] * 4, "x": [1.0] * 4, "place": ["A"] * 4}))
    people = engine.people(declared.source, "id", "epsilon")["person"].to_pylist()
    for person in people:
        coin = keyed_coin("secretv0", person)
        expected = {t: sum(keyed_coin("secretv0", other) < t for other in people) for t in (0, coin, coin + 1, ALWAYS)}
        for threshold, kept in expected.items():
            inclusion = (threshold, 0, 0)
            for sql in ("SELECT COUNT(*) FROM t", "SELECT SUM(x) FROM t", "SELECT COUNT(DISTINCT id) FROM t"):
                (found,) = compute(engine, sql, declared, inclusion=inclusion)
                assert [[kept, 0, 0]] == found.counts.tolist(), sql


def test_a_coin_keeps_all_rows_of_a_person_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "secret")
    engine = DuckDB()
    declared = table(engine, pa.table({"id": [1, 1, 2, 2], "epsilon": [0.1] * 4, "x": [1.0] * 4, "place": ["A"] * 4}))
    coins = sorted(keyed_coin("secretv0", person) for person in ("1", "2"))
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", declared, inclusion=(coins[1], 0, 0))
    assert 2 == found.counts.sum()


def test_every_sampled_aggregate_tosses_coins_of_its_own() -> None:
    """With 400 people and a fair coin, two aggregates keep the same people with probability 2^-400."""
    engine = DuckDB()
    people = 400
    rows = pa.table(
        {
            "id": range(people),
            "epsilon": [0.1] * people,
            "x": [float(i % 10) for i in range(people)],
            "place": ["A"] * people,
        }
    )
    first, second = compute(
        engine, "SELECT MEDIAN(x), MAX(x) FROM t", table(engine, rows), inclusion=(ALWAYS // 2, 0, 0)
    )
    assert not np.array_equal(first.histogram, second.histogram)


# Lookups -----------------------------------------------------------------------------------------------------------


def test_a_lookup_never_repeats_a_row_whatever_its_file_says() -> None:
    engine = DuckDB()
    source = engine.attach("l", pa.table({"code": ["A", "A", "B", None], "good": [True, False, True, True]}))
    lookup = Lookup(source=source, key="code", columns=dict(engine.schema(source)))
    declared = table(engine, lookups={"l": lookup})
    (inner,) = compute(engine, "SELECT COUNT(*) FROM t JOIN l ON t.place = l.code", declared)
    (left,) = compute(engine, "SELECT COUNT(*) FROM t LEFT JOIN l ON t.place = l.code", declared)
    assert (5, 6) == (inner.counts.sum(), left.counts.sum())


def test_numbers_of_different_types_meet_in_a_lookup_without_failing() -> None:
    engine = DuckDB()
    source = engine.attach("l", pa.table({"k": pa.array([1.0, 2.0]), "good": [True, False]}))
    lookup = Lookup(source=source, key="k", columns=dict(engine.schema(source)))
    declared = table(engine, lookups={"l": lookup})
    (found,) = compute(engine, "SELECT COUNT(*) FROM t JOIN l ON CAST(t.id AS BIGINT) = l.k WHERE l.good", declared)
    assert 3 == found.counts.sum()


# Sources -----------------------------------------------------------------------------------------------------------


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


def test_an_attached_object_is_a_copy() -> None:
    engine, frame = DuckDB(), ROWS.to_pandas()
    source = engine.attach("t", frame)
    before = engine.fingerprint(source)
    frame.loc[:, "x"] = 0.0
    assert before == engine.fingerprint(source)
    assert 42.0 == float(np.nansum(engine._object(source).table["x"].to_numpy())) + 5
    assert before != engine.fingerprint(engine.attach("t", frame))


def test_an_object_that_is_no_table_is_refused() -> None:
    with pytest.raises(InvalidDeclaration, match="must be an Arrow, pandas or Polars table or a file, got int"):
        DuckDB().attach("t", 3)


def test_an_object_of_an_earlier_program_must_be_attached_again() -> None:
    with pytest.raises(EngineFailed, match="'t' was an object of an earlier program"):
        DuckDB().schema("memory:t")


def test_a_missing_file_says_so() -> None:
    with pytest.raises(EngineFailed, match=r"There is no file 'nowhere\.parquet'"):
        DuckDB().schema("nowhere.parquet")


def test_somebody_with_two_preferences_is_an_error_that_names_nobody() -> None:
    engine = DuckDB()
    source = engine.attach("r", pa.table({"id": [77, 77, 8], "epsilon": [0.1, 0.2, None]}))
    with pytest.raises(InvalidPreference, match="Somebody's rows carry different values of 'epsilon'") as refusal:
        engine.people(source, "id", "epsilon")
    assert "77" not in str(refusal.value)


def test_columns_other_than_declared_are_noticed() -> None:
    engine = DuckDB()
    declared = table(engine)
    with pytest.raises(EngineFailed, match="are not those that were declared"):
        compute(engine, "SELECT COUNT(*) FROM t", replace(declared, columns={**declared.columns, "y": "BIGINT"}))


# What it never says or reaches -------------------------------------------------------------------------------------


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


def test_a_source_that_changes_while_it_is_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(ROWS, path)
    engine = DuckDB()
    declared = table(engine, str(path))
    build: Callable[..., Any] = engine_module.statement
    marks = iter(["a", "b"])

    def changing(*arguments: Any) -> Any:
        monkeypatch.setattr(engine, "fingerprint", lambda source: next(marks, "c"))
        return build(*arguments)

    monkeypatch.setattr(engine_module, "statement", changing)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        compute(engine, "SELECT COUNT(*) FROM t", declared)


def test_limits_of_threads_and_memory_are_kept() -> None:
    engine = DuckDB(threads=1, memory="200MB")
    with engine.backend.connections.connected({}, {}) as connection:
        assert [(1,)] == connection.sql("SELECT current_setting('threads')").fetchall()


def test_pandas_text_columns_are_read(tmp_path: Path) -> None:
    engine = DuckDB()
    source = engine.attach("t", pd.DataFrame({"id": ["a", "b"], "epsilon": [0.1, 0.5]}, index=[5, 6]))
    assert {"id": "VARCHAR", "epsilon": "DOUBLE"} == dict(engine.schema(source))


def test_no_progress_is_shown() -> None:
    with DuckDB().backend.connections.connected({}, {}) as connection:
        assert [(False,)] == connection.sql("SELECT current_setting('enable_progress_bar')").fetchall()

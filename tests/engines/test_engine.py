"""The contract of every engine: bounded rows, cohorts, coins, lookups, and what is tried before anybody pays."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sqlglot import exp

from discretion.declaration.source import source_of
from discretion.declaration.table import Lookup
from discretion.engines import Admission, Cohorts, Engine
from discretion.engines import engine as engine_module
from discretion.engines.dialect import NAMED, OPERATIONS
from discretion.engines.duckdb import DuckDB
from discretion.errors import EngineFailed, InvalidDeclaration, InvalidPreference, QueryRefused
from discretion.noise import ALWAYS, keyed_coin
from discretion.query import casting, operation, parse
from discretion.statistics import Statistics
from engines.statements import LEVELS, ROWS, compute, requested, table


def test_rows_are_clamped_put_on_the_grid_and_summed_by_cohort(engine: Engine) -> None:
    (found,) = compute(engine, "SELECT SUM(x) FROM t", table(engine))
    assert [[3, 2, 0]] == found.counts.tolist()  # the NULL, nobody's row and person 4 are left out
    step = parse("SELECT SUM(x) FROM t", {"t": table(engine)}).aggregates[0].step
    assert [[12, 0 + 10, 0]] == (found.totals * step).tolist()  # −5 and 20 count as 0 and 10


def test_a_histogram_counts_rows_by_grid_value(engine: Engine) -> None:
    (found,) = compute(engine, "SELECT MEDIAN(x) FROM t", table(engine))
    assert (1, 3, 11) == found.histogram.shape
    assert [(0, 1), (0, 2), (0, 9), (1, 0), (1, 10)] == list(zip(*np.nonzero(found.histogram[0]), strict=True))
    assert [[3, 2, 0]] == found.counts.tolist()
    assert [[12, 10, 0]] == found.totals.tolist()


def test_several_kinds_of_aggregates_come_from_one_text(engine: Engine) -> None:
    sql = "SELECT place, COUNT(*), AVG(x), VARIANCE(x), MEDIAN(x), MAX(x), COUNT(DISTINCT id) FROM t GROUP BY place"
    count, mean, variance, median, largest, people = compute(engine, sql, table(engine))
    assert [[2, 0, 1], [1, 1, 0]] == count.counts.tolist()  # place C is not declared
    assert [[2, 0, 0], [1, 1, 0]] == mean.counts.tolist() == variance.counts.tolist() == median.counts.tolist()
    assert np.array_equal(median.histogram, largest.histogram)
    assert [[1, 0, 1], [1, 1, 0]] == people.counts.tolist()
    assert variance.squares is not None and variance.squares.sum() > 0  # noqa: PT018


@pytest.mark.parametrize("bad", [nan, inf, -inf, None])
def test_nan_and_infinity_are_null_before_anything_else(engine: Engine, bad: float | None) -> None:
    declared = table(engine, pa.table({"id": [1, 2], "epsilon": [0.1, 0.1], "x": [bad, 4.0], "place": ["A", "A"]}))
    assert [1] == [s.counts.sum() for s in compute(engine, "SELECT SUM(x) FROM t", declared)]
    for condition, expected in {"x > 1": 1, "x < 1": 0, "x <> 4": 0, "x IS NULL": 1, "NOT x > 100": 1}.items():
        (found,) = compute(engine, f"SELECT COUNT(*) FROM t WHERE {condition}", declared)
        assert expected == found.counts.sum(), condition


def test_a_value_declared_never_null_counts_as_the_bound_nearest_zero(engine: Engine) -> None:
    rows = pa.table({"id": [1, 2], "epsilon": [0.1, 0.1], "x": [nan, 6.0], "place": ["A", "A"]})
    declared = table(engine, rows, bounds={"x": (5, 9)}, required=("x",), rows_per_person=1)
    query = parse("SELECT AVG(x) FROM t", {"t": declared})
    (found,) = compute(engine, "SELECT AVG(x) FROM t", declared)
    assert query.aggregates[0].complete
    assert 2 == found.counts.sum()
    assert 11 == query.aggregates[0].origin * 2 + query.aggregates[0].step * int(found.totals.sum())


# Bounded rows ------------------------------------------------------------------------------------------------------


def bounded(
    engine: Engine, rows: list[tuple[int, str, int]], k: int, monkeypatch: pytest.MonkeyPatch, key: str
) -> Statistics:
    """Counts by place of people's rows, at most k each."""
    monkeypatch.setattr(engine_module, "coin_key", lambda: key)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "place", "x"))}
    data = pa.table({**columns, "epsilon": [0.1] * len(rows)})
    declared = table(engine, data, rows_per_person=k, keys={"place": ("A", "B")})
    (found,) = compute(engine, "SELECT place, MEDIAN(x) FROM t GROUP BY place", declared)
    return found


def test_nobody_keeps_more_than_k_rows_and_nobody_else_loses_any(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(person, "AB"[i % 2], i % 5) for person in range(1, 9) for i in range(person)]
    for k in (1, 2, 3, 7):
        found = bounded(engine, rows, k, monkeypatch, f"key{k}")
        assert sum(min(person, k) for person in range(1, 9)) == found.counts.sum()


def test_which_rows_are_kept_depends_on_nobody_elses(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [(1, place, x) for place, x in product("AB", range(5))]
    alone = bounded(engine, mine, 3, monkeypatch, "key")
    for others in ([(2, "A", 0)] * 9, [(0, "B", 4)], [(i, "A", i % 5) for i in range(2, 40)]):
        together = bounded(engine, [*others, *mine], 3, monkeypatch, "key")
        without = bounded(engine, others, 3, monkeypatch, "key")
        assert np.array_equal(alone.histogram, together.histogram - without.histogram)
    assert np.array_equal(
        alone.histogram, bounded(engine, mine[::-1], 3, monkeypatch, "key").histogram
    )  # nor on their order


def test_rows_that_no_group_shows_take_nobodys_place(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 == bounded(engine, [(1, "C", 0)] * 50 + [(1, "A", 1), (1, "B", 2)], 2, monkeypatch, "key").counts.sum()


def test_every_row_is_kept_equally_often(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """3 of 8 rows of each of 400 people: a row is kept 150 times ± 9.7, so 5 of these fail once in 200,000 keys."""
    rows = [(person, "AB"[i // 5], i % 5) for person in range(400) for i in range(8)]
    kept = bounded(engine, rows, 3, monkeypatch, "key").histogram[:, 0, :5].ravel()[:8]
    assert 1200 == kept.sum()
    assert max(abs(kept - 150)) < 5 * 9.7


def test_people_are_counted_once_without_bounding_their_rows(engine: Engine) -> None:
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
def test_a_register_apart_says_who_is_in_which_cohort(engine: Engine, ids: pa.Array, expected: list[list[int]]) -> None:
    register = engine.attach("r", pa.table({"who": ids, "eps": [1.0, 0.5, 0.1, 1.0]}))
    declared = table(engine, protects="presence", register="r", epsilon="")
    cohorts = Cohorts(count=3, levels=LEVELS, register=register, person="who", epsilon="eps")
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", declared, cohorts)
    assert expected == found.counts.tolist()


@pytest.mark.parametrize("apart", [False, True])
def test_individual_changes_win(engine: Engine, apart: bool) -> None:
    register = engine.attach("r", pa.table({"who": [1, 2, 3], "eps": [0.1, 0.5, 1.0]}))
    where = {"register": register, "person": "who", "epsilon": "eps"} if apart else {}
    declared = table(engine, **({"protects": "presence", "register": "r", "epsilon": ""} if apart else {}))
    changes = pa.table({"person": ["1", "2", "4"], "cohort": pa.array([2, -1, 1], pa.int64())})
    cohorts = Cohorts(count=3, levels=LEVELS, changes=changes, **where)
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", declared, cohorts)
    assert [[0, 1, 4]] == found.counts.tolist()


def test_preferences_may_be_names_or_missing(engine: Engine) -> None:
    rows = pa.table(
        {"id": [1, 2, 3, 4], "epsilon": ["strict", "open", None, "other"], "x": [1.0] * 4, "place": ["A"] * 4}
    )
    cohorts = Cohorts(count=2, levels={"strict": 0, "open": 1, None: 0})
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", table(engine, rows), cohorts)
    assert [[2, 1]] == found.counts.tolist()


# Coins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids", [pa.array([5, 17850, 3, -9]), pa.array(["é", "a:b", "", "x'"]), pa.array([1.5, 17850.0, 3.0, 2.0])]
)
def test_the_engine_tosses_the_same_coins_as_python(
    engine: Engine, ids: pa.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "secret")
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


def test_a_coin_keeps_all_rows_of_a_person_or_none(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "secret")
    declared = table(engine, pa.table({"id": [1, 1, 2, 2], "epsilon": [0.1] * 4, "x": [1.0] * 4, "place": ["A"] * 4}))
    coins = sorted(keyed_coin("secretv0", person) for person in ("1", "2"))
    (found,) = compute(engine, "SELECT COUNT(*) FROM t", declared, inclusion=(coins[1], 0, 0))
    assert 2 == found.counts.sum()


def test_every_sampled_aggregate_tosses_coins_of_its_own(engine: Engine) -> None:
    """With 400 people and a fair coin, two aggregates keep the same people with probability 2^-400."""
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


def test_a_lookup_never_repeats_a_row_whatever_its_file_says(engine: Engine) -> None:
    source = engine.attach("l", pa.table({"code": ["A", "A", "B", None], "good": [True, False, True, True]}))
    lookup = Lookup(source=source, key="code", columns=dict(engine.schema(source)))
    declared = table(engine, lookups={"l": lookup})
    (inner,) = compute(engine, "SELECT COUNT(*) FROM t JOIN l ON t.place = l.code", declared)
    (left,) = compute(engine, "SELECT COUNT(*) FROM t LEFT JOIN l ON t.place = l.code", declared)
    assert (5, 6) == (inner.counts.sum(), left.counts.sum())


def test_numbers_of_different_types_meet_in_a_lookup_without_failing(engine: Engine) -> None:
    source = engine.attach("l", pa.table({"k": pa.array([1.0, 2.0]), "good": [True, False]}))
    lookup = Lookup(source=source, key="k", columns=dict(engine.schema(source)))
    declared = table(engine, lookups={"l": lookup})
    (found,) = compute(engine, "SELECT COUNT(*) FROM t JOIN l ON CAST(t.id AS BIGINT) = l.k WHERE l.good", declared)
    assert 3 == found.counts.sum()


# Sources -----------------------------------------------------------------------------------------------------------


def test_an_attached_object_is_a_copy(engine: Engine) -> None:
    frame = ROWS.to_pandas()
    source = engine.attach("t", frame)
    before = engine.fingerprint(source)
    frame.loc[:, "x"] = 0.0
    assert before == engine.fingerprint(source)
    assert 42.0 == float(np.nansum(engine._object(source).table["x"].to_numpy())) + 5
    assert before != engine.fingerprint(engine.attach("t", frame))


def test_an_object_that_is_no_table_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidDeclaration, match="must be an Arrow, pandas or Polars table or a file, got int"):
        engine.attach("t", 3)


def test_an_object_of_an_earlier_program_must_be_attached_again(engine: Engine) -> None:
    with pytest.raises(EngineFailed, match="'t' was an object of an earlier program"):
        engine.schema("memory:t")


def test_somebody_with_two_preferences_is_an_error_that_names_nobody(engine: Engine) -> None:
    source = engine.attach("r", pa.table({"id": [77, 77, 8], "epsilon": [0.1, 0.2, None]}))
    with pytest.raises(InvalidPreference, match="Somebody's rows carry different values of 'epsilon'") as refusal:
        engine.people(source, "id", "epsilon")
    assert "77" not in str(refusal.value)


def test_columns_other_than_declared_are_noticed(engine: Engine) -> None:
    declared = table(engine)
    with pytest.raises(EngineFailed, match="are not those that were declared"):
        compute(engine, "SELECT COUNT(*) FROM t", replace(declared, columns={**declared.columns, "y": "BIGINT"}))


def test_pandas_text_columns_are_read(engine: Engine, tmp_path: Path) -> None:
    source = engine.attach("t", pd.DataFrame({"id": ["a", "b"], "epsilon": [0.1, 0.5]}, index=[5, 6]))
    assert {"id": "VARCHAR", "epsilon": "DOUBLE"} == dict(engine.schema(source))


def test_a_source_that_changes_while_it_is_read_is_noticed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = table(engine)
    build: Callable[..., Any] = engine_module.statement

    def changing(*arguments: Any) -> Any:
        engine.attach("t", ROWS.slice(1))
        return build(*arguments)

    monkeypatch.setattr(engine_module, "statement", changing)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        compute(engine, "SELECT COUNT(*) FROM t", declared)


def test_nothing_is_kept_of_what_was_found_out_while_a_source_changed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a source that changes back would be taken to have no more than one row a person."""
    run, few = engine.backend.run, ROWS.slice(3, 1)
    declared, calls = table(engine, rows_per_person=1), iter(range(9))

    def changing(*given: Any) -> pa.Table:
        if next(calls) == 2:
            raise EngineFailed("planted")
        engine.attach("t", few)
        return run(*given)

    with monkeypatch.context() as patch:
        patch.setattr(engine.backend, "run", changing)
        with pytest.raises(EngineFailed):
            compute(engine, "SELECT COUNT(*) FROM t", declared)
    engine.attach("t", ROWS)
    assert [[1, 1, 1]] == compute(engine, "SELECT COUNT(*) FROM t", declared)[0].counts.tolist()


def test_a_steward_is_told_what_is_odd_about_a_table(engine: Engine) -> None:
    declared = table(engine, rows_per_person=2, keys={"place": ("A", "B", "nowhere")}, protects="presence", epsilon="")
    register = engine.attach("r", pa.table({"who": ["1", "2"]}))
    assert {
        ("no_person", "id"): 1,
        ("outside_bounds", "x"): 2,
        ("rows_without_key", "place"): 1,
        ("above_rows_per_person", "id"): 1,
        ("not_in_register", "id"): 2,
        ("key_without_rows", "place = nowhere"): 1,
    } == engine.survey(declared, register, "who")


UNSOUND = pa.table(
    {
        "id": ["a ", " a", "", None],
        "epsilon": [0.1, 0.1, 0.1, 0.1],
        "x": [nan, 1.0, 2.0, 3.0],
        "place": ["A", "A", "A", "A"],
        "day": pa.array([0, 2**22, -(2**20), None], pa.int32()).cast(
            pa.date32()
        ),  # two of them are in no year 1 to 9999
        "at": pa.array([0, 1, 2, 3], pa.timestamp("us", "Europe/Rome")),
    }
)


@pytest.mark.parametrize("stored", ["memory", "parquet"])
def test_what_could_make_a_question_fail_is_null_and_a_person_has_one_spelling(
    engine: Engine, stored: str, tmp_path: Path
) -> None:
    pyarrow.parquet.write_table(UNSOUND, tmp_path / "t.parquet")
    given = Admission(source=source_of(tmp_path / "t.parquet"), person="id", folder=tmp_path / "copies", label="t")
    place = engine.attach("t", UNSOUND, "id") if stored == "memory" else engine.admit(given)[0]
    assert ("DATE", "TIMESTAMP") == tuple(engine.schema(place)[name] for name in ("day", "at"))
    assert [("a", 2)] == [(row["person"], row["rows"]) for row in engine.people(place, "id").to_pylist()]
    declared = table(engine, place)
    for condition, expected in {
        "day IS NULL": 1,
        "YEAR(day) = 1970": 1,
        "x IS NULL": 1,
        "at < '1971-01-01'": 2,
    }.items():
        (found,) = compute(engine, f"SELECT COUNT(*) FROM t WHERE {condition}", declared)
        assert expected == found.counts.sum(), condition


def test_a_parquet_file_has_the_statistics_of_its_rows_and_another_fingerprint_after_an_edit(
    engine: Engine, tmp_path: Path
) -> None:
    path, sql = tmp_path / "t.parquet", "SELECT place, SUM(x) FROM t GROUP BY place"
    pyarrow.parquet.write_table(ROWS, path)
    place, _ = engine.admit(Admission(source=source_of(path), person="id", folder=tmp_path / "copies", label="t"))
    (found,), (expected,) = compute(engine, sql, table(engine, place)), compute(engine, sql, table(engine))
    assert expected.totals.tolist() == found.totals.tolist()
    before = engine.fingerprint(place)
    assert before == engine.fingerprint(place)
    pyarrow.parquet.write_table(ROWS.set_column(2, "x", pa.array([3.0] * 8)), place)
    assert before != engine.fingerprint(place)


# What is tried before anybody pays ---------------------------------------------------------------------------------

TRIED = (
    "SELECT COUNT(*) FROM t",
    "SELECT place, MEDIAN(x), SUM(x * x), AVG(x) FROM t WHERE x / (x - 1) > SQRT(x) OR id % 3 = 1 GROUP BY place",
    "SELECT COUNT(DISTINCT id) FROM t WHERE CAST(place AS INTEGER) > 3 AND LENGTH(place || 'ß') < 9",
    "SELECT COUNT(*) FROM t JOIN l ON t.place = l.code WHERE l.worth * 2 > id",
)


@pytest.mark.parametrize("sql", TRIED)
@pytest.mark.parametrize("protects", ["value", "presence"])
def test_a_question_with_total_operations_passes_the_rehearsal(engine: Engine, sql: str, protects: str) -> None:
    place = engine.attach("l", pa.table({"code": ["A", "B"], "worth": [1, 2]}))
    lookups = {"l": Lookup(source=place, key="code", columns=dict(engine.schema(place)))}
    apart = {"protects": "presence", "register": "r", "epsilon": ""} if protects == "presence" else {}
    who = engine.attach("r", pa.table({"who": ["1", "2"], "eps": [0.1, 0.5]}))
    separate = {"register": who, "person": "who", "epsilon": "eps"} if apart else {}
    cohorts = Cohorts(count=3, levels=LEVELS, **separate)
    engine.check(requested(sql, table(engine, lookups=lookups, **apart), cohorts))


def test_an_operation_that_some_row_makes_fail_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: a cast that is not total."""
    declared = table(engine)
    monkeypatch.setattr(casting, "try_cast", lambda one, sql_type: exp.cast(one.copy(), sql_type))
    monkeypatch.setattr(operation, "tried", lambda expression: expression)
    if not isinstance(engine, DuckDB):  # Spark's rules are total however an operation is spelled
        planted = "CAST(RAISE_ERROR('planted') AS INT)"
        monkeypatch.setattr("discretion.engines.spark.dialect.cast", lambda *given, **known: planted)
    with pytest.raises(QueryRefused, match="cannot compute this for every row there could be"):
        engine.check(requested("SELECT COUNT(*) FROM t WHERE CAST(place AS INTEGER) > 3", declared))


def test_a_dialect_refuses_what_it_has_no_form_for(engine: Engine) -> None:
    dialect = engine.backend.dialect
    with pytest.raises(QueryRefused, match="no safe form of MD5"):
        dialect.text(exp.select(exp.MD5(this=exp.column("x"))))
    with pytest.raises(QueryRefused, match="no safe form of GETENV"):
        dialect.text(exp.select(exp.Anonymous(this="GETENV", expressions=[exp.column("x")])))
    assert OPERATIONS <= dialect.operations
    assert NAMED <= dialect.named

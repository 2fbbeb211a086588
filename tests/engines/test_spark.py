"""What only Spark does: the same scalars as DuckDB, its sources, secrets that no plan keeps, and settings."""

import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp, parse_one

import discretion as dn
from discretion.declaration.source import source_of
from discretion.declaration.table import Table
from discretion.engines import Admission, Cohorts
from discretion.engines import engine as engine_module
from discretion.engines.dialect import NAMED
from discretion.engines.dialect import OPERATIONS as EVERY_OPERATION
from discretion.engines.duckdb import DuckDB
from discretion.engines.spark import Spark, ranking
from discretion.engines.spark.dialect import OPERATIONS, SPARK
from discretion.engines.spark.inline import inlined
from discretion.engines.spark.session import MEANING
from discretion.errors import EngineFailed, InvalidDeclaration, QueryRefused
from discretion.noise import simulation
from discretion.query.expression import scalar
from discretion.query.scalar import Scalar, Scope, columns_of
from engines.scalars import EXPRESSIONS, LAST_DIGIT, REFUSED, rows
from engines.statements import ROWS, compute, table

pytestmark = pytest.mark.xdist_group("spark")
TOGETHER = 45  # expressions in one SELECT


@pytest.fixture
def engine(spark_session: Any) -> Spark:
    return Spark(spark_session)


# The same scalars ---------------------------------------------------------------------------------------------------


def totals(declared: Table, expressions: tuple[str, ...]) -> dict[str, Scalar]:
    """Return the total form of every expression."""
    scope = Scope({"t": columns_of(declared)})
    return {one: scalar(parse_one(one, dialect="duckdb"), scope).tame for one in expressions}


def differences(
    session: Any, expressions: tuple[str, ...], ulps: int = 0, settings: Mapping[str, str] | None = None
) -> list[tuple[str, Any, Any]]:
    """Return the expressions, with both values, that DuckDB and Spark compute differently over extreme rows."""
    reference = DuckDB()
    source = reference.attach("t", rows())
    declared = Table(
        name="t",
        source=source,
        person="id",
        epsilon="epsilon",
        register="t",
        protects="value",
        columns=dict(reference.schema(source)),
    )
    found, given = totals(declared, expressions), reference._object(source).table
    with duckdb.connect(config=reference.backend.connections.config) as connection:
        connection.register("t", given)
        texts = ", ".join(f"{one.total.sql('duckdb')} AS c{place}" for place, one in enumerate(found.values()))
        expected = connection.sql(f"SELECT {texts} FROM t ORDER BY id").to_arrow_table()
    selects = [f"{SPARK.text(exp.select(one.total.copy())).removeprefix('SELECT ')}" for one in found.values()]
    ours = Spark(session).backend.session
    for name, setting in (settings or {}).items():
        ours.conf.set(name, setting)
    ours.createDataFrame(given).createOrReplaceTempView("t")
    differing = []
    for start in range(0, len(selects), TOGETHER):
        part = [f"{text} AS c{start + place}" for place, text in enumerate(selects[start : start + TOGETHER])]
        answer = ours.sql(f"SELECT id, {', '.join(part)} FROM t").toArrow().sort_by("id")
        for name in answer.column_names[1:]:
            pairs = zip(expected[name].to_pylist(), answer[name].to_pylist(), strict=True)
            wrong = [(one, other) for one, other in pairs if not same(one, other, ulps)]
            differing += [(expressions[int(name[1:])], *wrong[0])] if wrong else []
    ours.catalog.dropTempView("t")
    return differing


def same(one: Any, other: Any, ulps: int) -> bool:
    if ulps and one is not None and other is not None:
        return isclose(one, other, rel_tol=ulps * 2.3e-16)
    return bool(one == other) and type(one) is type(other)


def test_scalars_are_what_they_are_in_duckdb(spark_session: Any) -> None:
    assert len(EXPRESSIONS) > 250
    assert [] == differences(spark_session, EXPRESSIONS)


def test_curves_are_the_same_to_the_last_two_digits(spark_session: Any) -> None:
    assert [] == differences(spark_session, LAST_DIGIT, ulps=2)


@pytest.mark.slow
def test_compiled_scalars_are_what_they_are_in_duckdb(spark_session: Any) -> None:
    settings = {"spark.sql.codegen.factoryMode": "CODEGEN_ONLY", "spark.sql.codegen.wholeStage": "true"}
    assert [] == differences(spark_session, EXPRESSIONS, settings=settings)


def test_a_rule_that_only_translates_would_be_noticed(spark_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: casts as Spark itself does them."""
    monkeypatch.setattr(
        "discretion.engines.spark.dialect.cast",
        lambda value, source, target, of_person=False: f"TRY_CAST({value} AS {target})",
    )
    casts = ("CAST(x AS INTEGER)", "CAST(t AS DOUBLE)", "CAST(d AS INTEGER)", "CAST(t AS BIGINT)")
    assert set(casts) == {one for one, *_ in differences(spark_session, casts)}


def test_what_engines_cannot_agree_on_is_refused() -> None:
    kinds = {"x": "DOUBLE", "i": "BIGINT", "n": "INTEGER", "d": "DECIMAL(9,2)", "id": "BIGINT", "epsilon": "DOUBLE"}
    declared = Table(name="t", source="", person="id", epsilon="epsilon", register="t", protects="value", columns=kinds)
    for one in totals(declared, REFUSED).values():
        with pytest.raises(QueryRefused, match="Spark has no safe form of"):
            SPARK.text(exp.select(one.total.copy()))


def test_every_operation_has_a_rule_and_nothing_else_passes() -> None:
    assert {exp.DateBin} == EVERY_OPERATION - {exp.If} - set(OPERATIONS)  # refused until they have a rule
    assert NAMED == SPARK.named
    for planted in (
        "SELECT x FROM t LIMIT 1",
        "SELECT REGEXP_MATCHES(t, 'a') FROM t",
        "SELECT x FROM t, LATERAL (SELECT 1)",
    ):
        with pytest.raises(QueryRefused, match="no safe form"):
            SPARK.text(parse_one(planted, dialect="duckdb"))


# Secrets and settings -----------------------------------------------------------------------------------------------


def test_neither_the_key_nor_a_person_is_in_the_event_log(
    engine: Spark, spark_session: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "thesecretkey")
    people = [f"person-{number}" for number in range(6)]
    data = pa.table({"id": people * 3, "epsilon": [0.1] * 18, "x": [1.0] * 18, "place": ["A"] * 18})
    declared = table(engine, data, rows_per_person=2)
    changes = pa.table({"person": people[:1], "cohort": pa.array([-1], pa.int64())})
    cohorts = Cohorts(count=3, levels={0.1: 0}, changes=changes)
    (found,) = compute(engine, "SELECT SUM(x) FROM t", declared, cohorts, inclusion=(1 << 64, 0, 0))
    assert [[10, 0, 0]] == found.counts.tolist()  # two rows of each of five people
    folder = Path(spark_session.conf.get("spark.eventLog.dir").removeprefix("file://"))
    logged = "".join(file.read_text() for file in folder.glob("*") if file.is_file())
    assert "discretion_" in logged  # our statements are in it
    assert "thesecretkey" not in logged
    assert "person-" not in logged
    assert "" == caplog.text


def test_the_users_session_keeps_its_settings_and_ours_does_not_follow_it(spark_session: Any) -> None:
    before = {name: spark_session.conf.get(name) for name in MEANING}
    spark_session.conf.set("spark.sql.ansi.enabled", "true")
    spark_session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        ours = Spark(spark_session).backend.session
        assert MEANING == {name: ours.conf.get(name) for name in MEANING}
        assert "Asia/Tokyo" == spark_session.conf.get("spark.sql.session.timeZone")
        assert [] == spark_session.catalog.listTables()
    finally:
        for name, setting in before.items():
            spark_session.conf.set(name, setting)


def test_a_failure_quotes_no_row(
    engine: Spark, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    source = engine.attach("t", pa.table({"id": ["a secret name"]}))
    planted = exp.select(exp.Anonymous(this="RAISE_ERROR", expressions=[exp.column("id")])).from_("protected")
    engine.backend.dialect = type(SPARK)(language="spark", named=frozenset({"RAISE_ERROR"}))
    engine.backend.dialect.text = lambda tree: tree.sql("spark")  # type: ignore[method-assign]
    with pytest.raises(EngineFailed) as failure:
        engine._run(planted, {"protected": source})
    said = capfd.readouterr()
    assert "secret" not in f"{failure.value} {caplog.text} {said.out} {said.err}"
    assert failure.value.__cause__ is None


def test_a_statement_that_spark_cannot_read_is_refused_before_anybody_pays(engine: Spark) -> None:
    declared = table(engine)
    planted = exp.select(exp.Case(ifs=[exp.If(this=exp.Literal.number(12), true=exp.Literal.number(0))]))
    with pytest.raises(QueryRefused, match="cannot compute this for every row"):
        engine.backend.rehearse([planted], {}, {}, declared.source)
    with pytest.raises(EngineFailed, match="The database failed"):
        engine.backend.run(planted, {}, {})


# Sources ------------------------------------------------------------------------------------------------------------


def admitted(engine: Spark, given: str, folder: Path, **how: Any) -> str:
    place, _ = engine.admit(Admission(source=source_of(given, **how), person="id", folder=folder, label="t"))
    return place


def test_a_folder_a_table_a_view_and_a_data_frame_have_the_same_statistics(
    engine: Spark, spark_session: Any, tmp_path: Path
) -> None:
    (tmp_path / "in" / "year=2024").mkdir(parents=True)
    pq.write_table(ROWS, tmp_path / "in" / "year=2024" / "part 1 [a].parquet")
    frame = spark_session.createDataFrame(ROWS)
    spark_session.sql("CREATE DATABASE IF NOT EXISTS clinic")
    frame.write.mode("overwrite").saveAsTable("clinic.visits")
    spark_session.sql("CREATE OR REPLACE VIEW clinic.seen AS SELECT * FROM clinic.visits")
    sources = {
        "folder": admitted(engine, f"{tmp_path}/in", tmp_path),
        "table": admitted(engine, "table:clinic.visits", tmp_path),
        "view": admitted(engine, "table:clinic.seen", tmp_path),
    }
    marks = {name: engine.fingerprint(place) for name, place in sources.items()}
    assert marks == {name: engine.fingerprint(place) for name, place in sources.items()}
    sources["frame"] = engine.attach("f", frame, "id")
    sql = "SELECT place, SUM(x) FROM t GROUP BY place"
    (expected,) = compute(engine, sql, table(engine))
    for place in sources.values():
        (found,) = compute(engine, sql, table(engine, place))
        assert expected.totals.tolist() == found.totals.tolist()
    frame.limit(1).write.mode("append").saveAsTable("clinic.visits")
    assert marks["view"] != engine.fingerprint(sources["view"])
    assert marks["table"] != engine.fingerprint(sources["table"])
    assert marks["folder"] == engine.fingerprint(sources["folder"])
    spark_session.sql("DROP DATABASE clinic CASCADE")


@pytest.mark.parametrize("name", ["nowhere.nothing", "a; DROP TABLE b", "(SELECT 1)"])
def test_what_is_no_table_of_the_catalog_is_refused(engine: Spark, name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDeclaration, match="table"):
        admitted(engine, f"table:{name}", tmp_path)


@pytest.mark.parametrize("how", [{"types": {"x": "DOUBLE"}}, {"zones": {"at": "Europe/Berlin"}}], ids=str)
def test_types_of_a_table_of_the_catalog_are_refused_instead_of_ignored(
    engine: Spark, how: Any, tmp_path: Path
) -> None:
    with pytest.raises(InvalidDeclaration, match="Make a view that casts its columns"):
        admitted(engine, "table:clinic.visits", tmp_path, **how)


def test_only_a_session_of_spark_is_taken() -> None:
    with pytest.raises(InvalidDeclaration, match="must be a SparkSession, got int"):
        Spark(3)


def test_discretion_is_imported_without_spark() -> None:
    program = "import sys, discretion; print([one for one in sys.modules if 'pyspark' in one])"
    assert "[]\n" == subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


# From the front door ------------------------------------------------------------------------------------------------


def test_a_question_by_spark_has_the_plain_answer_and_its_ledger_serves_duckdb_too(
    engine: Spark, tmp_path: Path
) -> None:
    values = simulation(7).uniform(0, 100, 300)
    people = pa.table({"id": range(300), "epsilon": [1e3] * 300, "x": values, "place": list("AB") * 150})
    pq.write_table(people, tmp_path / "t.parquet")
    declared: dict[str, Any] = {"bounds": {"x": (0, 100)}, "keys": {"place": ["A", "B"]}, "person": "id"}
    with dn.connect(tmp_path / "l.discretion", engine=engine) as db:
        db.protect("t", tmp_path / "t.parquet", epsilon="epsilon", **declared)
        means = db.sql("SELECT place, AVG(x) AS mean FROM t GROUP BY place", share=0.4).to_pandas()["mean"]
    assert np.allclose([values[::2].mean(), values[1::2].mean()], means, atol=0.1)
    with dn.connect(tmp_path / "l.discretion") as db:
        assert [300] == db.sql("SELECT COUNT(*) AS n FROM t", share=0.4).to_pandas()["n"].round().tolist()


def test_a_sound_table_of_a_duckdb_file_is_copied_for_spark(engine: Spark, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS id, 1000.0::DOUBLE AS epsilon FROM range(70)")
    with dn.connect(tmp_path / "l.discretion", engine=engine) as db:
        db.protect("t", f"{tmp_path / 'clinic.duckdb'}#t", person="id", epsilon="epsilon")
        assert 70 == round(db.sql("SELECT COUNT(*) FROM t WHERE id >= 0", share=0.4).value)


@pytest.mark.slow
def test_the_accepted_questions_have_the_statistics_that_duckdb_gives(
    engine: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, cohorts, coins and bounded rows: whole numbers that are equal to the last unit."""
    monkeypatch.setattr(engine_module, "coin_key", lambda: "the same key")
    given = rows().rename_columns({"u": "place"})
    reference = DuckDB()
    kinds: dict[str, Any] = {
        "bounds": {"x": (-100, 100), "d": (-50, 50), "n": (0, 100)},
        "grid": {"x": 0.5},
        "rows_per_person": 2,
    }
    people = pa.array([number % 9 for number in range(given.num_rows)])
    given = given.set_column(0, "id", people).set_column(
        1, "epsilon", pa.array([(0.1, 0.5)[n % 9 % 2] for n in range(len(people))])
    )
    keys = {"place": ("abc", "a_b", "\u03a3", "")}
    for sql in ASKED:
        found = [
            compute(one, sql, table(one, given, keys=keys, **kinds), inclusion=inclusion)
            for inclusion in (None, (1 << 63, 1 << 62, 0))
            for one in (reference, engine)
        ]
        for mine, other in (found[:2], found[2:]):
            for one, two in zip(mine, other, strict=True):
                assert one.counts.tolist() == two.counts.tolist(), sql
                assert one.totals.tolist() == two.totals.tolist(), sql


@pytest.mark.parametrize("together", [200_000, pytest.param(10, marks=pytest.mark.slow)], ids=["array", "window"])
def test_a_person_with_more_rows_than_32_bits_can_place_is_bounded_like_in_duckdb(
    engine: Spark, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "the same key")
    monkeypatch.setattr(ranking, "TOGETHER", together)
    rows, most = 50_000, 49_000  # places times rows_per_person exceed 2^31
    given = pa.table(
        {"id": [1] * rows, "epsilon": [0.1] * rows, "x": np.arange(rows) % 11.0, "place": ["A", "B"] * (rows // 2)}
    )
    sql = "SELECT place, SUM(x) FROM t GROUP BY place"
    (expected,), (found,) = (compute(one, sql, table(one, given, rows_per_person=most)) for one in (DuckDB(), engine))
    assert most == found.counts.sum()
    assert expected.totals.tolist() == found.totals.tolist()


@pytest.mark.parametrize(
    ("together", "form"),
    [
        pytest.param(100_000, "REPARTITION(1, who)", id="array", marks=pytest.mark.slow),
        pytest.param(150, "REPARTITION(27, who)", id="arrays in parts"),
        pytest.param(50, "ROW_NUMBER()", id="window", marks=pytest.mark.slow),
    ],
)
def test_rows_that_are_ranked_in_arrays_are_bounded_like_in_duckdb(
    engine: Spark, monkeypatch: pytest.MonkeyPatch, together: int, form: str
) -> None:
    asked, write, random, rows = [], SPARK.text, simulation(6), 4_000
    monkeypatch.setattr(type(SPARK), "text", lambda self, tree: asked.append(write(tree)) or asked[-1])
    monkeypatch.setattr(engine_module, "coin_key", lambda: "the same key")
    monkeypatch.setattr(ranking, "TOGETHER", together)
    given = pa.table(
        {
            "id": np.arange(rows) * 7 % 40,
            "epsilon": np.array([0.1, 0.5, 1.0, 0.7])[np.arange(rows) * 7 % 40 % 4],  # nobody offers 0.7
            "x": pa.array(random.integers(-30, 70, rows) / 4, mask=random.random(rows) < 0.1),
            "place": random.choice(["A", "B", "C"], rows),  # C is not shown
        }
    )
    for sql in (
        "SELECT place, SUM(x), COUNT(*), MEDIAN(x) FROM t WHERE x IS NULL OR x <> 2 GROUP BY place",
        "SELECT AVG(x) FROM t",
    ):
        expected, found = (compute(one, sql, table(one, given, rows_per_person=7)) for one in (DuckDB(), engine))
        assert form in asked[-1]
        assert 7 * 20 <= found[0].counts.sum() <= 7 * 30
        for one, two in zip(expected, found, strict=True):
            assert one.counts.tolist() == two.counts.tolist()
            assert one.totals is None or one.totals.tolist() == two.totals.tolist()
            assert one.histogram is None or one.histogram.tolist() == two.histogram.tolist()


@pytest.mark.parametrize(
    ("bounds", "grid"),
    [
        pytest.param((-3, 7), 0.5, id="narrow", marks=pytest.mark.slow),
        pytest.param((-1e9, 1e9), 1e-6, id="wide"),
        pytest.param((-(2**53), 2**53), 0.25, id="huge", marks=pytest.mark.slow),
    ],
)
def test_rows_that_are_sorted_by_one_number_first_are_bounded_like_in_duckdb(
    engine: Spark, monkeypatch: pytest.MonkeyPatch, bounds: tuple[float, float], grid: float
) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "the same key")
    random, rows = simulation(5), 4_000
    near = random.integers(-30, 70, rows) / 8
    values = np.where(random.random(rows) < 0.5, near, random.uniform(*bounds, rows))
    given = pa.table(
        {
            "id": pa.array([f"a person of a long name {one}" for one in random.integers(0, 40, rows)]),
            "epsilon": [0.1] * rows,
            "x": pa.array(values, mask=random.random(rows) < 0.1),
            "place": random.choice(["A", "B", "C"], rows),
        }
    )
    sql = "SELECT place, SUM(x), COUNT(*), COUNT(DISTINCT id) FROM t WHERE x IS NULL OR x <> 2 GROUP BY place"
    declared = {"bounds": {"x": bounds}, "grid": {"x": grid}, "rows_per_person": 7}
    expected, found = (compute(one, sql, table(one, given, **declared)) for one in (DuckDB(), engine))
    assert 0 < found[1].counts.sum() <= 7 * 40
    for one, two in zip(expected, found, strict=True):
        assert one.counts.tolist() == two.counts.tolist()
        assert one.totals is None or one.totals.tolist() == two.totals.tolist()


def test_texts_are_cut_where_a_key_could_tell_and_only_there(engine: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, write = [], SPARK.text
    monkeypatch.setattr(type(SPARK), "text", lambda self, tree: asked.append(write(tree)) or asked[-1])
    given = pa.table(
        {"id": range(6), "epsilon": [0.1] * 6, "x": [1.0] * 6, "place": ["A", "AB", "ABC", "ABCD", "ABC" * 99, None]}
    )
    sql = "SELECT place, COUNT(*) FROM t GROUP BY place"
    for longest, cut, counts in ((3, True, [1, 3]), (4, False, [1, 1])):
        declared = {"longest_text": longest, "keys": {"place": ("A", "ABC")}}
        for one in (DuckDB(), engine):
            (found,) = compute(one, sql, table(one, given, **declared))
            assert counts == found.counts.sum(axis=-1).tolist()
        assert cut == ("LEFT(" in asked[-1])


def test_tiny_tables_are_written_out_and_others_stay_joined() -> None:
    pairs = pa.table({"value": pa.array(["it's", None]), "place": pa.array([0, 1])})
    many = pa.table({"preference": pa.array(np.arange(99.0)), "cohort": pa.array(range(99))})
    sql = "SELECT keys.place AS g, levels.cohort AS c, SUM(CAST(1 AS BIGINT)) AS n FROM (SELECT 1) AS counted"
    joins = "JOIN keys ON k <=> keys.value JOIN levels ON e <=> levels.preference"
    both = parse_one(f"{sql} {joins} GROUP BY 1, 2", dialect="databricks")
    text = SPARK.text(inlined(both.copy(), {"keys": pairs, "levels": many}))
    assert "JOIN levels" in text
    assert "GROUP BY 1, 2" in text
    assert "JOIN keys" not in text
    assert "CASE WHEN k <=> DECODE(X'69742773', 'UTF-8') THEN 0 WHEN k <=> NULL THEN 1 END" in text
    alone = SPARK.text(inlined(both, {"keys": pairs, "levels": many.slice(0, 3)}))
    assert "JOIN" not in alone
    bare = parse_one("SELECT keys.place FROM t LEFT JOIN keys ON k <=> keys.value", dialect="databricks")
    assert SPARK.text(inlined(bare, {"keys": pairs})).endswith("END) AS place FROM t")
    assert "GROUP BY" not in alone
    assert "SUM" not in alone


ASKED = (
    "SELECT COUNT(*), SUM(x), AVG(d), VARIANCE(n), MEDIAN(x), COUNT(DISTINCT id), COUNT(t) FROM t",
    "SELECT place, COUNT(*), SUM(n), MAX(x) FROM t WHERE x / y > 0 OR t LIKE '1%' GROUP BY place",
    "SELECT b, SUM(LEAST(GREATEST(x * y, -5), 5)) FROM t WHERE at > day GROUP BY b",
    "SELECT AVG(s) FROM (SELECT id, SUM(x) AS s FROM t GROUP BY id) AS q",
    "SELECT place, COUNT(*) FILTER (WHERE i > n) FROM t WHERE MONTH(at) < 7 GROUP BY place",
    "SELECT b, COUNT(*) FROM t WHERE CASE k WHEN 127 THEN 1 WHEN 0 THEN 2 END > 1 GROUP BY b",
)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    left = [Path(name) for name in ("spark-warehouse", "metastore_db", "derby.log")]
    yield
    assert not any(one.exists() for one in left)
    assert not logging.getLogger("SQLQueryContextLogger").disabled

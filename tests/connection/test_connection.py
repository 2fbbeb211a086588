"""The connection keeps its promises: DESIGN's example, refusals, changes of mind and of files."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discretion as dn
from clinics import PEOPLE, clinic, patients, visits, write
from discretion.declaration.table import Policy
from discretion.errors import (
    BudgetExhausted,
    EngineFailed,
    InvalidDeclaration,
    InvalidPreference,
    QueryRefused,
    SourceChanged,
)

COUNT = "SELECT COUNT(*) FROM patients WHERE smoker"
SURE = 1 - 1e-9  # these tests draw real noise: how often each may fail without a mistake


@pytest.fixture
def db(tmp_path):
    with clinic(tmp_path) as opened:
        yield opened


def test_the_example_of_the_design_works_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(patients(), tmp_path / "patients.parquet")
    write(patients().select(["patient_id", "epsilon"]).rename_columns(["id", "epsilon"]), tmp_path / "people.parquet")
    write(visits(), tmp_path / "visits.parquet")
    db = dn.connect("clinic.discretion")
    db.register("people", "people.parquet", person="id", epsilon="epsilon")
    db.protect("visits", "visits.parquet", person="patient_id", register="people", rows_per_person=10)
    sql = "SELECT COUNT(*) FROM visits WHERE cost > 50"
    plan = db.explain(sql, share=0.1)
    assert "COUNT(*)" in str(plan)
    release = db.sql(sql, share=0.1, mechanism="auto", assume=None, expect=None, with_interval=False, partial=False)
    assert 1 == len(release)
    assert 1 == release.to_arrow().num_rows == len(release.to_pandas())
    assert [(release.value,)] == list(release)
    assert {0.2, 1.0, 5.0} == {row["epsilon"] for row in db.balance()}
    assert [sql.replace("50", "?")] == [use.question for use in db.receipt(17).releases]
    db.prefer(17, 0.2)
    assert ["enrolment", "steward"] == [one.by for one in db.receipt(17).statements]
    assert "" == db.refresh("people")
    assert "charge" in [row["kind"] for row in db.history()]
    assert db.audit(head=db.head()).passed


def test_a_table_that_is_its_own_register_protects_values(db):
    release = db.sql("SELECT region, AVG(age) AS age FROM patients WHERE smoker GROUP BY region", share=0.2)
    assert "value" == release.guarantee.protects
    assert ("N", "S") == release.columns["region"]
    assert all(abs(age - 56) < error.half_width(SURE) for age, error in zip(release.value, release.error, strict=True))


def test_an_answer_is_near_the_truth_and_says_how_near(db):
    truth = int(np.sum(patients()["smoker"].to_numpy(zero_copy_only=False)))
    release = db.sql(COUNT, share=1.0)
    assert abs(release.value - truth) <= release.error.half_width(SURE)
    assert release.error.half_width() < 200


def test_everybody_pays_at_most_the_share_of_their_own_allowance(db):
    db.sql(COUNT, share=0.1)
    for row in db.balance():
        assert 0 < row["spent"] <= 0.1 * row["epsilon"] + 1e-9


def test_the_same_question_again_is_free_and_has_the_same_answer(db):
    first = db.sql(COUNT)
    spent = db.balance().to_arrow()
    again = db.sql("select count(*)\nfrom patients where smoker")
    assert first == again
    assert spent == db.balance().to_arrow()


def test_another_share_is_another_question(db):
    assert db.sql(COUNT, share=0.1).entry != db.sql(COUNT, share=0.2).entry


def test_several_aggregates_share_what_one_would_have(db):
    both = db.explain("SELECT COUNT(*), AVG(age) FROM patients WHERE smoker", share=0.2)
    assert [micro // 2 for micro in db.explain(COUNT, share=0.2).specification.epsilons] == [
        *both.specification.epsilons
    ]
    assert 2 == len(both.choices)
    release = db.sql("SELECT COUNT(*) AS n, AVG(age) AS age, STDDEV(age) AS spread FROM patients", share=0.3)
    for row in db.balance():
        assert row["spent"] <= 0.3 * row["epsilon"] + 1e-9
    assert {"n", "age", "spread"} == set(release.columns)


def test_explain_costs_nothing_and_reads_nothing(db, tmp_path):
    before = db.balance().to_arrow(), len(db.history())
    (tmp_path / "patients.parquet").unlink()
    assert "weighted" in str(db.explain(COUNT))
    assert before == (db.balance().to_arrow(), len(db.history()))


def test_what_is_spent_is_refused_with_what_would_still_fit(db):
    db.sql(COUNT, share=1.0, mechanism="exponential")  # charges everybody in full
    with pytest.raises(BudgetExhausted, match="Nobody can pay"):
        db.sql("SELECT COUNT(*) FROM patients WHERE age > 30")


def test_somebody_who_cannot_pay_the_share_stops_the_question_unless_it_may_be_partial(db):
    sql = "SELECT COUNT(*) FROM patients WHERE age > 30"
    db.sql(COUNT, share=0.8, mechanism="exponential")
    with pytest.raises(BudgetExhausted, match=r"at most 0\.2 would still fit"):
        db.sql(sql, share=0.5)
    db.sql(sql, share=0.5, partial=True, mechanism="exponential")
    assert {0.0} == {row["remaining"] for row in db.balance()}


def test_a_person_who_withdraws_is_left_out_and_spent_stays_spent(db):
    db.sql(COUNT, mechanism="exponential")
    db.prefer(3, 0)
    receipt = db.receipt(3)
    assert 0 == receipt.allowance
    assert receipt.spent > 0
    db.sql("SELECT COUNT(*) FROM patients WHERE age > 30")
    assert 1 == len(db.receipt(3).releases)


def test_a_changed_file_is_refused_until_refresh_and_gives_nothing_back(db, tmp_path):
    db.sql(COUNT, share=0.5, mechanism="exponential")
    table = patients()
    generous = table.set_column(5, "epsilon", pa.array([100.0] * PEOPLE))
    write(generous, tmp_path / "patients.parquet")
    with pytest.raises(SourceChanged):
        db.sql("SELECT COUNT(*) FROM patients WHERE age > 30")
    with pytest.raises(SourceChanged):
        db.protect("patients", tmp_path / "patients.parquet", person="patient_id", epsilon="epsilon")
    spent = db.receipt(5).spent
    db.refresh("patients")
    assert spent <= db.receipt(5).spent  # may be rounded up, never down
    assert db.sql("SELECT COUNT(*) FROM patients WHERE age > 30").entry


def test_people_who_come_with_a_refresh_are_asked_too(db, tmp_path):
    more = patients(PEOPLE + 500)
    kept = pa.concat_tables([patients(), more.slice(PEOPLE)])
    write(kept, tmp_path / "patients.parquet")
    db.refresh("patients")
    assert PEOPLE + 500 == sum(row["people"] for row in db.balance())
    plan = db.explain("SELECT COUNT(DISTINCT patient_id) FROM patients")
    assert PEOPLE + 500 == plan.specification.size


def test_a_moved_file_is_found_again(db, tmp_path):
    db.sql(COUNT)
    moved = (tmp_path / "patients.parquet").rename(tmp_path / "moved.parquet")
    with pytest.raises(SourceChanged, match="not in the state that was admitted"):
        db.sql(COUNT, share=0.2)
    db.refresh("patients", moved)
    assert db.sql(COUNT, share=0.2).entry


def test_rows_of_nobody_and_of_strangers_are_left_out(db):
    release = db.sql("SELECT COUNT(*) FROM visits", share=1.0)
    owner = visits()["patient_id"].to_pylist()
    known = sum(person is not None and person < PEOPLE for person in owner)
    assert abs(release.value - known) <= release.error.half_width(SURE)


@pytest.mark.parametrize("kind", ["csv", "arrow", "pandas", "polars"])
def test_files_and_data_frames_of_every_kind_can_be_protected(tmp_path, kind):
    table = patients(500)
    if kind == "csv":
        source = write(table, tmp_path / "patients.csv")
    else:
        source = {"arrow": table, "pandas": pd.DataFrame(table.to_pydict()), "polars": pl.from_arrow(table)}[kind]
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", source, person="patient_id", epsilon="epsilon", bounds={"age": (0, 120)})
        release = db.sql("SELECT AVG(age) FROM t", share=0.5)
        assert abs(release.value - 56) <= release.error.half_width(SURE)
        with pytest.raises(QueryRefused):
            db.sql("SELECT age FROM t")


def test_a_table_in_a_duckdb_file_and_many_files_at_once_can_be_protected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = patients(500)
    with duckdb.connect(tmp_path / "clinic.duckdb") as file:
        file.register("found", table)
        file.execute("CREATE TABLE patients AS SELECT * FROM found")
    for part in range(2):
        write(table.slice(part * 250, 250), tmp_path / f"part{part}.parquet")
    for number, source in enumerate(["clinic.duckdb#patients", "part*.parquet"]):
        with dn.connect(tmp_path / f"{number}.discretion") as db:
            db.protect("t", source, person="patient_id", epsilon="epsilon")
        monkeypatch.chdir("/")
        with dn.connect(tmp_path / f"{number}.discretion") as db:
            assert 500 == db.sql("SELECT COUNT(DISTINCT patient_id) FROM t").value
            release = db.sql("SELECT COUNT(*) FROM t WHERE smoker")
            assert abs(release.value - sum(table["smoker"].to_pylist())) <= release.error.half_width(SURE)
        monkeypatch.chdir(tmp_path)


def test_a_data_frame_is_protected_again_after_a_restart(tmp_path):
    table = patients(500)
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", table, person="patient_id", epsilon="epsilon")
        first = db.sql("SELECT COUNT(*) FROM t WHERE smoker")
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(EngineFailed):
            db.sql("SELECT COUNT(*) FROM t WHERE age > 30")
        db.protect("t", table, person="patient_id", epsilon="epsilon")
        assert first == db.sql("SELECT COUNT(*) FROM t WHERE smoker")


def test_a_person_with_two_preferences_is_refused(tmp_path):
    table = pa.table({"id": [1, 1, 2], "epsilon": [0.1, 0.2, 0.1]})
    with dn.connect(tmp_path / "l.discretion") as db, pytest.raises(InvalidPreference, match="one preference"):
        db.protect("t", table, person="id", epsilon="epsilon", rows_per_person=2)


def test_named_levels_and_missing_preferences(tmp_path):
    table = pa.table({"id": [1, 2, 3, None], "privacy": ["strict", None, "0.7", "open"], "x": [True, True, True, True]})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", table, person="id", epsilon="privacy", levels={"strict": 0.1, "open": 1.0})
        assert {0.1: 2, 0.7: 1} == {row["epsilon"]: row["people"] for row in db.balance()}
        assert db.sql("SELECT COUNT(*) FROM t WHERE x").entry
        db.prefer(3, "strict")
        assert 0.1 == db.receipt(3).allowance
        with pytest.raises(InvalidPreference):
            db.prefer(3, "")


def test_a_register_cannot_be_read_in_another_way_later(db, tmp_path):
    path = tmp_path / "patients.parquet"
    db.protect("patients", path, person="patient_id", epsilon="epsilon", bounds={"age": (18, 99)})
    for other in ({"default": 5.0}, {"menu": (0.1,)}, {"levels": {"open": 9.0}}):
        with pytest.raises(InvalidDeclaration, match="final"):
            db.protect("patients", path, person="patient_id", epsilon="epsilon", **other)
    with pytest.raises(InvalidDeclaration, match="final"):
        db.protect("patients", path, person="age", epsilon="epsilon")


def test_preferences_written_as_text_instead_of_numbers_stay_the_same(db, tmp_path):
    table = patients()
    as_text = pa.array([f"{epsilon:g}" for epsilon in table["epsilon"].to_pylist()])
    write(table.set_column(5, "epsilon", as_text), tmp_path / "patients.parquet")
    before = db.balance().to_arrow()
    db.refresh("patients")
    assert before == db.balance().to_arrow()
    truth = int(np.sum(table["smoker"].to_numpy(zero_copy_only=False)))
    release = db.sql(COUNT, share=1.0)
    assert abs(release.value - truth) <= release.error.half_width(SURE)


def test_a_lookup_can_be_joined_and_is_part_of_the_question(tmp_path):
    table = patients(1_000)
    towns = write(pa.table({"code": ["N", "S"], "coast": [True, False]}), tmp_path / "towns.csv")
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", table, person="patient_id", epsilon="epsilon", lookups={"towns": (towns, "code")})
        sql = "SELECT COUNT(*) FROM t JOIN towns ON t.region = towns.code WHERE towns.coast"
        release = db.sql(sql, share=0.5)
        truth = table["region"].to_pylist().count("N")
        assert abs(release.value - truth) <= release.error.half_width(SURE)
        write(pa.table({"code": ["N", "S"], "coast": [True, True]}), towns)
        assert release.entry == db.sql(sql, share=0.5).entry  # what was admitted is a copy
        db.refresh("t")
        assert release.entry != db.sql(sql, share=0.5).entry
        with pytest.raises(InvalidDeclaration, match="'key'"):
            db.protect("u", table, person="patient_id", epsilon="epsilon", lookups={"towns": (towns, "key")})


def test_a_lookup_has_one_row_for_each_key(tmp_path):
    towns = write(pa.table({"code": ["N", "S", "N"], "coast": [True, False, False]}), tmp_path / "towns.csv")
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(InvalidDeclaration, match="several rows with the same 'code'"):
            db.protect("t", patients(), person="patient_id", epsilon="epsilon", lookups={"towns": (towns, "code")})
        write(pa.table({"code": ["N", "S", None, None], "coast": [True, False, False, True]}), towns)
        db.protect("t", patients(), person="patient_id", epsilon="epsilon", lookups={"towns": (towns, "code")})
        write(pa.table({"code": ["N", "N"], "coast": [True, False]}), towns)
        with pytest.raises(InvalidDeclaration, match="several rows with the same 'code'"):
            db.refresh("t")


def test_the_policy_of_the_steward_holds(tmp_path):
    with clinic(tmp_path, policy=Policy(largest_share=0.2, quotas={"ada": 0.3})) as db:
        with pytest.raises(QueryRefused, match=r"0\.2"):
            db.sql(COUNT, share=0.5)
        db.sql(COUNT, share=0.2)
        with pytest.raises(BudgetExhausted, match="quota"):
            db.sql(COUNT, share=0.19)


def test_a_median_gets_an_interval_in_its_own_units_when_asked_beforehand(db):
    sql = "SELECT MEDIAN(age) AS age FROM patients"
    ranks = db.sql(sql, share=0.3)
    assert "rank" == ranks.error.unit
    release = db.sql(sql, share=0.3, with_interval=True)
    low, high = release.interval()
    assert "value" == release.error.unit
    assert 0 <= low <= release.value <= high <= 120
    assert low < np.median(patients()["age"]) < high
    for row in db.balance():
        assert row["spent"] <= 0.6 * row["epsilon"] + 1e-9


def test_an_unfiltered_count_of_people_is_exact_and_free_under_value(db):
    release = db.sql("SELECT COUNT(DISTINCT patient_id) FROM patients")
    assert PEOPLE == release.value
    assert 0 == release.error.total
    assert {0.0} == {row["spent"] for row in db.balance()}
    both, alone = (
        db.explain(f"SELECT {asked} FROM patients") for asked in ("COUNT(DISTINCT patient_id), AVG(age)", "AVG(age)")
    )
    assert alone.guarantee == both.guarantee  # what costs nothing takes no part of the share
    assert both.choices[1].mechanism.error == alone.choices[0].mechanism.error


def test_a_register_is_named_where_there_are_several(tmp_path):
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(InvalidDeclaration, match="Nobody is enrolled yet"):
            db.receipt(1)
        with pytest.raises(QueryRefused, match="none is protected yet"):
            db.sql("SELECT COUNT(*) FROM patients")
        with pytest.raises(QueryRefused, match="none is protected yet"):
            db.sql("SELECT 1")
        db.register("a", pa.table({"id": [1], "e": [0.1]}), person="id", epsilon="e")
        db.register("b", pa.table({"id": [2], "e": [0.1]}), person="id", epsilon="e")
        with pytest.raises(InvalidDeclaration, match="'a', 'b'"):
            db.receipt(1)
        assert 0.1 == db.receipt(1, register="a").allowance


@pytest.mark.xdist_group("postgres")
def test_the_same_works_with_a_ledger_in_postgresql(postgres_place, tmp_path):
    with dn.connect(postgres_place) as db:
        db.protect("t", patients(500), person="patient_id", epsilon="epsilon")
        first = db.sql("SELECT COUNT(*) FROM t WHERE smoker")
        assert first == db.sql("SELECT COUNT(*) FROM t WHERE smoker")
        db.prefer(3, 0.2)
        assert 1 == len(db.receipt(3).releases)
        assert db.audit(head=db.head()).passed


def test_analysts_who_ask_at_once_cannot_overspend_together(db, tmp_path):
    """Each question takes three tenths of every allowance: three of eight fit."""

    def ask(age):
        with dn.connect(tmp_path / "clinic.discretion") as own:
            try:
                sql = f"SELECT COUNT(*) FROM patients WHERE age > {age}"
                return own.sql(sql, share=0.3, mechanism="exponential").entry
            except BudgetExhausted:
                return ""

    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(ask, range(30, 70, 5)))
    assert 3 == sum(map(bool, entries))
    assert {0.9} == {round(row["spent"] / row["epsilon"], 6) for row in db.balance()}
    assert db.audit().passed


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("shop.duckdb", "is a DuckDB file. Say which of its tables is meant: shop.duckdb#table."),
        ("shop.duckdb#orders", "Is there such a table in that DuckDB file"),
        ("shop.duckdb#", "is no table of a DuckDB file"),
        ("notes.parquet", "is no Parquet file"),
    ],
)
def test_a_source_that_is_no_table_says_so_to_the_steward(tmp_path, source, told):
    with duckdb.connect(tmp_path / "shop.duckdb") as shop:
        shop.execute("CREATE TABLE sales AS SELECT 1 AS id, 0.5 AS epsilon")
    (tmp_path / "notes.parquet").write_text("{}")
    with dn.connect(tmp_path / "l.discretion") as db:
        for enrol in (db.protect, db.register):
            with pytest.raises((InvalidDeclaration, EngineFailed)) as refusal:
                enrol("sales", tmp_path / source, person="id", epsilon="epsilon")
            assert told in str(refusal.value)


def test_a_text_without_the_columns_says_which_it_has(tmp_path):
    (tmp_path / "notes.txt").write_text("notes\n1\n")
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(InvalidDeclaration, match=r"no column 'epsilon'\n.*no column 'id'\nIts columns are notes"):
            db.protect("sales", tmp_path / "notes.txt", person="id", epsilon="epsilon")
        with pytest.raises(InvalidDeclaration, match="'sales' has no column 'epsilon', 'id'; it has 'notes'"):
            db.register("sales", tmp_path / "notes.txt", person="id", epsilon="epsilon")


def test_a_misspelt_option_and_half_a_lookup_are_refused(tmp_path):
    people = pa.table({"id": [1], "e": [0.1]})
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(InvalidDeclaration, match=r"no option 'level'. Did you mean 'levels'"):
            db.register("a", people, person="id", epsilon="e", level={})
        with pytest.raises(InvalidDeclaration, match="no option 'bound'"):
            db.protect("a", people, person="id", epsilon="e", bound={"e": (0, 1)})
        for ask in (db.sql, db.explain):
            with pytest.raises(InvalidDeclaration, match=r"no option 'shar'. Did you mean 'share'"):
                ask("SELECT COUNT(*) FROM a", shar=0.1)
        with pytest.raises(InvalidDeclaration, match=r"must be \(source, its unique key\)"):
            db.protect("a", people, person="id", epsilon="e", lookups={"towns": "towns.csv"})


def test_an_unknown_engine_and_unknown_columns_are_refused(tmp_path):
    with pytest.raises(InvalidDeclaration, match="duckdb"):
        dn.connect(tmp_path / "l.discretion", engine="abacus")
    with dn.connect(tmp_path / "l.discretion") as db, pytest.raises(InvalidDeclaration, match="'name'"):
        db.register("a", pa.table({"id": [1], "e": [0.1]}), person="name", epsilon="e")


def test_a_refresh_that_is_refused_declares_nothing(db, tmp_path):
    found = patients()
    raised = found.set_column(found.column_names.index("epsilon"), "epsilon", pa.array([7.0] * len(found)))
    write(pa.concat_tables([found.slice(0, 1), raised]), tmp_path / "raised.parquet")  # one person has two preferences
    with pytest.raises(InvalidPreference, match="different values"):
        db.refresh("patients", tmp_path / "raised.parquet")
    assert not [table for table in db.tables() if "raised" in table.source]


def test_preferences_are_read_from_what_was_enrolled_wherever_the_table_is_declared(db, tmp_path):
    found = patients()
    raised = found.set_column(found.column_names.index("epsilon"), "epsilon", pa.array([7.0] * len(found)))
    write(raised, tmp_path / "raised.parquet")
    (table,) = [table for table in db.tables() if table.name == "patients"]
    db._ledger.declare(replace(table, source=str(tmp_path / "raised.parquet")))  # as a crash could leave it
    with pytest.raises(SourceChanged):
        db.sql(COUNT)


def test_a_protected_table_never_stands_in_for_a_lookup_of_its_name(tmp_path):
    with dn.connect(tmp_path / "clinic.discretion") as db:
        people = pa.table({"id": range(300), "epsilon": [5.0] * 300})
        db.register("people", people, person="id", epsilon="epsilon")
        rows = pa.table({"who": range(300), "code": [number % 3 for number in range(300)]})
        sites = {"sites": (pa.table({"code": [0, 1, 2], "beds": [1, 2, 3]}), "code")}
        db.protect("visits", rows, person="who", register="people", lookups=sites)
        secret = pa.table({"code": [0, 1, 2], "beds": [77, 77, 77]})
        db.protect("sites", secret, person="code", register="people")
        joined = db.sql("SELECT COUNT(*) AS n FROM visits JOIN sites USING (code) WHERE beds = 77", share=1.0)
        assert 150 > joined.columns["n"][0]  # none and the noise, not all 300


def test_an_edit_that_sets_the_clock_back_is_noticed(db, tmp_path):
    file = tmp_path / "patients.parquet"
    db.sql(COUNT)
    before, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceChanged):
        db.sql(COUNT, share=0.2)


@pytest.mark.parametrize("written", ["DECIMAL(38, 10)", "DECIMAL(9, 0)", "DOUBLE", "VARCHAR"])
def test_identifiers_of_another_type_are_refused(tmp_path, written):
    """As texts, 7 and 007 are two people: a second allowance for one of them."""
    file, made = tmp_path / "few.parquet", "SELECT range::{} AS id, 1.0::DOUBLE AS epsilon, 5 AS x FROM range(30)"
    duckdb.sql(made.format("BIGINT")).write_parquet(str(file))
    with dn.connect(tmp_path / "few.discretion") as db:
        db.protect("few", file, person="id", epsilon="epsilon", bounds={"x": (0, 10)})
        duckdb.sql(made.format(written)).write_parquet(str(file))
        with pytest.raises(InvalidDeclaration, match=r"The person column 'id' is .* now and was BIGINT"):
            db.refresh("few")


@pytest.mark.parametrize("written", ["SMALLINT", "UINTEGER", "UBIGINT"])
def test_whole_numbers_of_another_width_are_the_same_people(tmp_path, written):
    file, made = tmp_path / "few.parquet", "SELECT range::{} AS id, 1.0::DOUBLE AS epsilon, 5 AS x FROM range(30)"
    duckdb.sql(made.format("BIGINT")).write_parquet(str(file))
    with dn.connect(tmp_path / "few.discretion") as db:
        db.protect("few", file, person="id", epsilon="epsilon", bounds={"x": (0, 10)})
        db.sql("SELECT SUM(x) FROM few WHERE x > 1", share=1.0)
        duckdb.sql(made.format(written)).write_parquet(str(file))
        db.refresh("few")
        with pytest.raises(BudgetExhausted):
            db.sql("SELECT SUM(x) FROM few WHERE x > 2")


def test_a_source_without_anybody_known_is_not_a_refresh(db, tmp_path):
    found = patients()
    renamed = pa.array([1_000_000 + number for number in range(len(found))])
    write(found.set_column(0, "patient_id", renamed), tmp_path / "patients.parquet")
    with pytest.raises(InvalidDeclaration, match="Nobody of register"):
        db.refresh("patients")


def test_somebody_who_is_not_in_the_source_joins_a_register_and_counts(tmp_path):
    people = pa.table({"id": [1, 2, 3], "epsilon": [1000.0] * 3})
    db = dn.connect(tmp_path / "l.discretion")
    db.register("people", people, person="id", epsilon="epsilon")
    db.protect("visits", pa.table({"id": [1, 2, 9, 9]}), person="id", register="people", rows_per_person=2)
    assert 2 == round(db.sql("SELECT COUNT(*) FROM visits").value)
    db.join(9, 1000.0)
    assert 4 == round(db.sql("SELECT COUNT(*) FROM visits WHERE TRUE").value)
    with pytest.raises(InvalidDeclaration, match="already"):
        db.join(9, 1000.0)
    assert db.audit().passed


def test_nobody_joins_a_table_that_is_its_own_register(tmp_path):
    db = dn.connect(tmp_path / "l.discretion")
    db.protect("t", pa.table({"id": [1, 2], "epsilon": [1.0, 1.0]}), person="id", epsilon="epsilon")
    with pytest.raises(InvalidDeclaration, match="those in the table itself"):
        db.join(3, 1.0)
    assert 2 == db.sql("SELECT COUNT(*) FROM t").value


def test_equal_identifiers_of_other_people_are_enrolled_as_separate(tmp_path):
    db = dn.connect(tmp_path / "l.discretion")
    people = pa.table({"id": [1, 2], "epsilon": [1.0, 0.5]})
    db.register("patients", people, person="id", epsilon="epsilon")
    staff, rota = (people.append_column(name, pa.array([1, 2])) for name in ("staff", "rota"))
    with pytest.raises(InvalidDeclaration, match="separate=True"):
        db.register("staff", staff, person="id", epsilon="epsilon")
    db.register("staff", staff, person="id", epsilon="epsilon", separate=True)
    db.protect("rota", rota, person="id", epsilon="epsilon", separate=True)
    assert {"patients", "staff", "rota"} == {row["register"] for row in db.balance().to_arrow().to_pylist()}


def test_a_choice_below_every_level_is_told_as_rounded_not_as_withdrawn(tmp_path):
    db = dn.connect(tmp_path / "l.discretion")
    db.protect("t", pa.table({"id": ["a", "c"], "epsilon": [0.5, 1.0]}), person="id", epsilon="epsilon")
    db.prefer("c", 0.3)
    assert "You chose ε = 0.3 on " in db.receipt("c").summary
    db.prefer("c", 0)
    assert "You chose that your data are not used" in db.receipt("c").summary


def test_a_delivered_answer_is_found_by_its_entry(db):
    release = db.sql(COUNT, share=0.1)
    assert release == db.answer(release.entry)
    with pytest.raises(InvalidDeclaration, match="has no answer"):
        db.answer(next(row["entry"] for row in db.history() if row["kind"] == "declare"))
    with pytest.raises(InvalidDeclaration, match="no entry"):
        db.answer("1-000000000000")


def test_a_ledger_in_memory_is_forgotten():
    db = dn.connect(":memory:")
    db.protect("people", pa.table({"id": [1, 2], "e": [1.0, 1.0]}), person="id", epsilon="e")
    assert 2 == db.sql("SELECT COUNT(*) FROM people", share=1.0).value  # how many there are is public
    folder = Path(db._ledger.place).parent
    assert folder.exists()
    assert () == dn.connect(":memory:").tables()
    db.close()
    del db
    gc.collect()
    assert not folder.exists()


def test_tables_are_shown_as_a_table():
    with dn.connect(":memory:") as db:
        people = pa.table({"id": [1, 2], "age": [40, 50], "e": [1.0, 1.0]})
        db.protect("people", people, person="id", epsilon="e", bounds={"age": (0, 120)})
        assert "<td>people</td><td>value</td><td>id</td>" in db.tables()._repr_html_()
        assert "age 0 to 120" in str(db.tables())


def test_a_receipt_reads_as_a_person_would_write_it():
    people = pa.table({"id": ["a", "b", "c"], "choice": ["strict", "open", "open"], "name": ["x", "y", "z"]})
    with dn.connect(":memory:") as db:
        levels = {"strict": 0.1, "open": 1.0}
        db.protect("people", people, person="id", epsilon="choice", levels=levels, keys={"name": ["x", "y"]})
        none = db.receipt("a")
        assert none.summary.startswith("You allow 'strict' (ε = 0.1). No answer so far could have used your data.")
        assert "they can give it at most 11 in 100" in none.summary
        assert str(none).endswith("Answers that could have used your data\nNo answer so far could have used your data.")
        assert "<tbody></tbody>" not in none._repr_html_()
        db.sql("SELECT COUNT(*) FROM people WHERE name = 'Ada Lovelace'", share=0.5)
        one = db.receipt("b")
        assert "One answer so far could have used your data." in one.summary
        assert "Lovelace" not in str(one) + one.to_json()
        assert "strict" == db.receipt("a").statements[0].name
        db.sql("SELECT COUNT(*) FROM people WHERE name = 'y'", share=0.4)
        assert "2 answers so far" in db.receipt("b").summary
        db.prefer("b", "strict")  # below what is spent
        lowered = db.receipt("b")
        assert "Before that you allowed more, and ε = 0.9 was spent then." in lowered.summary
        assert ("register", "allowed", "spent before", "spent since", "left") == lowered.sheets()[0].columns
        assert ("people", "0.1", "0.9", "0", "0") == lowered.sheets()[0].rows[0]
        db.prefer("c", 0, by="person")
        gone = db.receipt("c").summary
        assert gone.startswith("You chose that your data are not used. Nothing has used them since 20")
        assert "2 answers so far could have used your data. That spent ε = 0.9" in gone
        assert ["the steward, from the source", "the steward, for you"] == [row[3] for row in lowered.sheets()[2].rows]
        assert "you" == db.receipt("c").sheets()[2].rows[1][3]
        assert db.audit().passed


def test_the_chances_of_a_receipt_are_those_of_the_promise():
    with dn.connect(":memory:") as db:
        db.protect("t", pa.table({"id": [1, 2], "e": [1.0, 0.1]}), person="id", epsilon="e")
        chances = db.receipt(1).sheets()[1]
        assert ("1 in 10", "10 in 100", "24 in 100", "46 in 100") == chances.rows[1]  # 23.2 % and 45.1 %, upwards

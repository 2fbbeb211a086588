"""Model individual from SQL and every other door: fenced twice, an account of its own, never called private."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discretion as dn
from clinics import patients, write
from discretion.cli import app
from discretion.declaration.table import Policy
from discretion.errors import BudgetExhausted, InvalidDeclaration, QueryRefused, Unsuitable
from discretion.release import IndividualRelease, Release

PEOPLE = 400
MAX = "SELECT MAX(age) FROM patients"
INDIVIDUAL = {"model": "individual"}
CLAIMS = ("differentially private", "personalized differential privacy", "is private", "individual privacy")


def town_of(folder: Path, policy: Policy, epsilon: float | None = None) -> dn.Connection:
    db = dn.connect(folder / "town.discretion", analyst="ada")
    table = patients(PEOPLE)
    if epsilon is not None:
        place = table.column_names.index("epsilon")
        table = table.set_column(place, "epsilon", pa.array(np.full(PEOPLE, epsilon)))
    declared = {"bounds": {"age": (0, 120), "income": (0, 200_000)}, "keys": {"region": ["N", "S"]}}
    source = write(table, folder / "patients.parquet")
    db.protect("patients", source, person="patient_id", epsilon="epsilon", policy=policy, **declared)
    people = table.select(["patient_id", "epsilon"]).rename_columns(["id", "epsilon"])
    db.register("people", write(people, folder / "people.parquet"), person="id", epsilon="epsilon", separate=True)
    there = write(table.slice(0, 300).drop_columns(["epsilon"]), folder / "there.parquet")
    db.protect("there", there, person="patient_id", register="people", policy=policy, **declared)
    return db


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with town_of(tmp_path_factory.mktemp("town"), Policy(individual=True)) as db:
        yield db


@pytest.fixture(scope="module")
def sure(tmp_path_factory):
    """A town where noise is negligible: everybody allows ε = 1,000, a tenth of it a question."""
    with town_of(tmp_path_factory.mktemp("sure"), Policy(individual=True), epsilon=1_000.0) as db:
        yield db


def test_the_steward_and_the_caller_both_opt_in(town, tmp_path):
    assert isinstance(town.sql(MAX, share=0.01, **INDIVIDUAL), IndividualRelease)
    assert not isinstance(town.sql(MAX, share=0.01), IndividualRelease)
    with town_of(tmp_path, Policy()) as db:
        for ask in (db.sql, db.explain):
            with pytest.raises(QueryRefused, match="policy does not allow model `individual`"):
                ask(MAX, **INDIVIDUAL)
        assert not [row for row in db.history() if row["kind"] == "charge"]


def test_it_is_never_chosen_and_never_listed(town):
    assert "local" not in str(town.explain(MAX))
    with pytest.raises(InvalidDeclaration, match="mechanism must be"):
        town.explain(MAX, mechanism="local")


def test_it_has_an_account_of_its_own_and_says_what_it_is(tmp_path):
    with town_of(tmp_path, Policy(individual=True)) as db:
        release = db.sql(MAX, share=0.6, **INDIVIDUAL)
        assert release.entry == db.sql(MAX, share=0.6, **INDIVIDUAL).entry
        assert isinstance(db.sql(MAX, share=0.6, **INDIVIDUAL), IndividualRelease)  # the stored one, too
        balance = next(row for row in db.balance("patients") if row["epsilon"] == 1.0)
        assert (0.0, 0.6) == (balance["spent"], balance["individual_spent"])
        with pytest.raises(BudgetExhausted):
            db.sql("SELECT MIN(age) FROM patients", share=0.6, **INDIVIDUAL)
        db.sql("SELECT MIN(age) FROM patients", share=0.6)  # the other account is untouched
        receipt = db.receipt(17, register="patients")
        assert (1, 1) == (len(receipt.releases), len(receipt.individual))
        assert "NOT differentially private" in receipt.individual[0].promise
        assert db.audit(head=db.head()).passed


def test_no_output_calls_it_private(town):
    release, plan = town.sql(MAX, share=0.01, **INDIVIDUAL), town.explain(MAX, **INDIVIDUAL)
    for text in (repr(release), release.to_json(), release._repr_html_(), release.explain(), str(plan), plan.to_json()):
        assert "NOT differential" in text
        plain = text.lower().replace("not differential privacy", "").replace("not differentially private", "")
        assert not [claim for claim in CLAIMS if claim in plain]
    assert release.error.limits == (0, 120)
    assert np.isinf(release.error.total)


@pytest.mark.parametrize("table", ["patients", "there"])
def test_the_answers_are_the_plain_ones_where_noise_is_negligible(sure, table):
    rows = patients(PEOPLE).to_pandas()
    rows = rows if table == "patients" else rows[:300]
    old = rows[rows.age > 60]
    ages = np.sort(rows.age.to_numpy())

    def ask(what, more="", **how):
        return sure.sql(f"SELECT {what} FROM {table} {more}", share=0.1, **INDIVIDUAL, **how)

    # Noise is beyond these limits less than once in 1e9 runs: their size over the largest scale is 20 and more.
    assert len(old) == ask("COUNT(*)", "WHERE age > 60").value
    assert old.age.sum() == pytest.approx(ask("SUM(age)", "WHERE age > 60").value, abs=60)
    assert old.age.mean() == pytest.approx(ask("AVG(age)", "WHERE age > 60").value, abs=0.5)
    assert ages[(len(ages) + 1) // 2 - 1] == ask("MEDIAN(age)").value
    ends = ask("MAX(age)").value, ask("MIN(age)").value
    assert (ages[-1], ages[0]) == pytest.approx(ends, abs=7)
    assert ages[-2] == pytest.approx(ask("MAX(age)", options={"place": 2}).value, abs=7)
    assert ages[2] == pytest.approx(ask("MIN(age)", options={"place": 3}).value, abs=7)
    by_region = ask("region, COUNT(*), MAX(age)", "GROUP BY region")
    found = rows.groupby("region").agg(n=("age", "size"), oldest=("age", "max"))
    assert list(found.n) == [row[1] for row in by_region]
    assert list(found.oldest) == pytest.approx([row[2] for row in by_region], abs=30)
    middle = rows.income.dropna().sort_values().to_numpy()
    assert middle[(len(middle) + 1) // 2 - 1] == pytest.approx(ask("MEDIAN(income)").value, abs=1_100)


@pytest.mark.parametrize(
    ("sql", "how", "error", "said"),
    [
        (MAX, {"assume": "independent"}, InvalidDeclaration, "have no meaning"),
        (MAX, {"within": 3}, InvalidDeclaration, "have no meaning"),
        (MAX, {"mechanism": "sample"}, InvalidDeclaration, "one mechanism"),
        (MAX, {"options": {"plase": 2}}, InvalidDeclaration, "Did you mean 'place'"),
        (MAX, {"options": {"place": 1.5}}, InvalidDeclaration, "a whole number"),
        (MAX, {"model": "idp"}, InvalidDeclaration, "model must be one of"),
        ("SELECT AVG(age) FROM patients", {"options": {"place": 2}}, Unsuitable, "minimum or a maximum"),
        ("SELECT VARIANCE(age) FROM patients", {}, Unsuitable, "does not answer a variance"),
    ],
)
def test_what_has_no_meaning_is_refused_before_the_charge(town, sql, how, error, said):
    before = len(town.history())
    with pytest.raises(error, match=said):
        town.sql(sql, **{**INDIVIDUAL, **how})
    assert before == len(town.history())


def test_the_command_line_has_the_same_fence(tmp_path):
    source = write(patients(300), tmp_path / "patients.parquet")
    place = ["--ledger", str(tmp_path / "ledger.discretion")]
    told = ["patients", str(source), "--person", "patient_id", "--epsilon", "epsilon", "--bounds", "age=0:120"]

    def run(*command):
        return CliRunner().invoke(app, [*command, *place])

    assert 0 == run("protect", *told).exit_code
    refused = run("query", MAX, "--model", "individual")
    assert 2 == refused.exit_code
    assert "does not allow" in refused.stderr
    assert 0 == run("protect", *told, "--allow-individual").exit_code
    outcome = run("query", MAX, "--model", "individual", "--option", "place=2")
    assert 0 == outcome.exit_code, outcome.output
    assert "NOT differential privacy" in " ".join(outcome.stdout.split())
    answered = json.loads(run("query", MAX, "--model", "individual", "--option", "place=2", "--json").stdout)
    assert "individual" == answered["guarantee"]["model"]


def test_a_stored_answer_comes_back_as_what_it_was(town):
    release = town.sql(MAX, share=0.01, **INDIVIDUAL)
    assert type(release) is type(Release.from_stored(release.stored())) is IndividualRelease
    assert release == Release.from_stored(release.stored())


@pytest.mark.parametrize("table", ["patients", "there"])
def test_a_mode_that_nobody_can_change_is_exact_at_any_epsilon(town, table):
    """Most people live in N, so that no single one decides: the answer is exact, and that is the danger."""
    release = town.sql(f"SELECT MODE(region) FROM {table}", share=0.001, **INDIVIDUAL)
    assert "N" == release.value
    assert isinstance(release, IndividualRelease)

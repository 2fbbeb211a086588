"""Every command prints for people and for programs, and its exit code says what happened."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from clinics import patients, visits, write
from discretion.cli import app

COUNT = "SELECT COUNT(*) AS smokers FROM patients WHERE smoker"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("DISCRETION_LEDGER", raising=False)
    write(patients(500), tmp_path / "patients.csv")
    write(visits(500), tmp_path / "visits.parquet")
    return tmp_path


def run(command, *more):
    return CliRunner().invoke(app, [*command.split(), *more])


def told(command, *more):
    """What a command prints as JSON, having answered."""
    outcome = run(command, *more, "--json")
    assert 0 == outcome.exit_code, outcome.output
    return json.loads(outcome.stdout)


@pytest.fixture
def clinic(folder):
    protect = "protect patients patients.csv --person patient_id --epsilon epsilon --bounds age=0:120 --keys region=N,S"
    assert 0 == run(protect).exit_code
    return folder


def test_protect_shows_what_becomes_public(folder):
    outcome = run("protect patients patients.csv --person patient_id --epsilon epsilon --bounds age=0:120")
    assert 0 == outcome.exit_code
    for text in ("New ledger", "0 to 120", "their preference", "Public", "Protected", "remaining"):
        assert text in outcome.output, text
    assert (folder / "ledger.discretion").exists()


def test_protect_asks_for_everything_missing_in_one_go(folder):
    outcome = run("protect patients patients.csv --bounds size=0:1 --keys colour=red")
    assert 2 == outcome.exit_code
    for text in ("`person`", "`epsilon`", "'size'", "'colour'"):
        assert text in outcome.stderr, text


def test_tables_can_share_a_register(folder):
    people = told("register people patients.csv --person patient_id --epsilon epsilon --menu 0.2,1")
    assert {0.2, 1.0} == {row["epsilon"] for row in people}
    protect = "protect visits visits.parquet --person patient_id --register people --rows-per-person 8"
    assert "presence" == told(protect)["protects"]
    assert ["n"] == list(told("query", "SELECT COUNT(*) AS n FROM visits")["rows"][0])


def test_a_question_is_answered_for_people_and_for_programs(clinic):
    outcome = run("query", COUNT)
    assert 0 == outcome.exit_code
    for text in ("smokers", "±", "personalized differential privacy", "paid by entry"):
        assert text in outcome.stdout, text
    answer = told("query", COUNT)
    (low, high) = answer["errors"]["smokers"][0]["interval"]
    assert 0 <= low <= high <= 500  # what a count can be, wherever the noise puts the answer
    assert isinstance(answer["rows"][0]["smokers"], float)
    assert answer["entry"] in outcome.stdout  # asked again: the same entry paid for it


def test_the_options_of_a_question_reach_it(clinic):
    sql = "SELECT region, MEDIAN(age) AS age FROM patients GROUP BY region"
    answer = told("query", sql, *["--share", "0.3", "--assume", "independent", "--with-interval", "--partial"])
    assert ["N", "S"] == [row["region"] for row in answer["rows"]]
    assert "value" == answer["errors"]["age"][0]["unit"]
    assert any("unrelated" in text for text in answer["assumes"])
    mean = told(
        "explain", "SELECT AVG(age) FROM patients", *["--expect", "30:70", "--assume", "0.1", "--mechanism", "weighted"]
    )
    assert "weighted" == mean["aggregates"][0]["mechanism"]


def test_explain_shows_every_candidate_and_who_would_pay_what(clinic):
    outcome = run("explain", COUNT)
    for text in ("weighted", "minimum", "chosen", "What people pay"):
        assert text in outcome.stdout, text
    plan = told("explain", COUNT)
    assert 500 == sum(level["people"] for level in plan["levels"])
    assert {0.0} == {row["spent"] for row in told("balance")}


def test_an_analyst_sees_what_can_be_asked(clinic):
    assert "0 to 120" in run("tables").stdout
    (table,) = told("tables")
    assert ("patients", {"region": ["N", "S"]}) == (table["name"], table["keys"])


def test_balance_receipt_and_history_agree(clinic):
    entry = told("query", COUNT)["entry"]
    receipt = told("receipt 17")
    assert [entry] == [use["entry"] for use in receipt["releases"]]
    assert receipt["spent"] in {row["spent"] for row in told("balance patients")}
    assert entry in [row["entry"] for row in told("history")]
    for command in ("balance", "receipt 17", "history"):
        outcome = run(command)
        assert 0 == outcome.exit_code
        assert outcome.stdout.strip()


def test_a_change_of_mind_is_recorded(clinic):
    assert told("prefer 17 0.2")["entry"]
    assert 0.2 == told("receipt 17")["allowance"]
    assert "from now on ε = 0 at most; 0 is spent, 0 is left." in run("prefer 17 0").stdout
    assert 2 == run("prefer 17 -- -1").exit_code
    assert 2 == run("prefer 17 often").exit_code
    assert 2 == run("prefer 17_000 1").exit_code


def test_a_changed_text_is_asked_about_after_refresh(clinic):
    assert "Nobody's preference changed." in run("refresh patients").stdout
    write(patients(501), clinic / "patients.csv")
    assert 0 == run("query", COUNT).exit_code  # about the copy that was admitted
    assert " changed." in run("refresh patients").stdout
    assert 0 == run("query", COUNT).exit_code
    write(patients(502), clinic / "patients.csv")
    assert told("refresh patients")["entry"]


def test_the_ledger_is_audited_against_an_earlier_head(clinic):
    head = told("audit ledger")["head"]
    copy = (clinic / "ledger.discretion").read_bytes()
    told("query", COUNT)
    later = told("audit ledger --head", head)["head"]
    (clinic / "ledger.discretion").write_bytes(copy)
    outcome = run("audit ledger --head", later)
    assert 4 == outcome.exit_code
    assert "finding" in outcome.stdout


def test_refused_is_2_with_the_reason(clinic):
    outcome = run("query", "SELECT age FROM patients")
    assert 2 == outcome.exit_code
    assert "QueryRefused" in outcome.stderr
    refusal = run("query", "SELECT age FROM patients", "--json")
    assert 2 == refusal.exit_code
    assert "QueryRefused" == json.loads(refusal.stdout)["error"]


def test_an_exhausted_budget_is_3_with_what_would_fit(clinic):
    told("query", COUNT, "--share", "0.9", "--mechanism", "exponential")
    outcome = run("query", "SELECT COUNT(*) FROM patients WHERE age > 30", "--share", "0.5")
    assert 3 == outcome.exit_code
    assert "would still fit" in outcome.stderr


@pytest.mark.parametrize("command", ["query", "explain"])
def test_no_ledger_is_4_and_creates_none(folder, command):
    outcome = run(command, COUNT)
    assert 4 == outcome.exit_code
    assert not (folder / "ledger.discretion").exists()


def test_a_missing_or_broken_file_is_4(folder):
    assert 4 == run("protect t nothing.parquet --person a --epsilon e").exit_code
    (folder / "broken.parquet").write_text("not a table")
    assert 4 == run("protect t broken.parquet --person a --epsilon e").exit_code


@pytest.mark.parametrize(
    "options",
    [
        ("--bounds", "age"),
        ("--bounds", "age=0"),
        ("--bounds", "age=a:b"),
        ("--level", "strict"),
        ("--level", "strict=low"),
        ("--menu", "a"),
        ("--rows-per-person", "many"),
        ("--largest-delta", "none"),
        ("--default", "low"),
        ("--quota", "ada=much"),
        ("--lookup", "towns=towns.csv"),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(folder, options):
    outcome = run("protect patients patients.csv --person patient_id --epsilon epsilon", *options)
    assert 2 == outcome.exit_code
    assert f"Invalid value for '{options[0]}': expected" in outcome.output
    assert "got '" in outcome.output
    assert not (folder / "ledger.discretion").exists()


def test_every_command_shows_an_example_and_every_option_is_explained():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert len(names) >= 10
    for name in [*names, "audit ledger", "attack idp"]:
        told = run(f"{name} --help").output
        assert "Example" in told, name
        assert "│" not in told, name
        assert max(map(len, told.splitlines())) <= 80, name
    summaries = run("--help").output.partition("Commands:")[2]
    assert "..." not in summaries  # none is cut off


def test_the_version_is_told():
    assert version("discretion") in run("--version").output


def test_the_policy_of_a_table_is_declared_and_shown(folder):
    protect = "protect patients patients.csv --person patient_id --epsilon epsilon"
    policy = "--largest-share 0.5 --quota ada=0.3 --largest-delta 1e-9 --allow-float --allow-individual"
    assert {
        "largest_share": 0.5,
        "quotas": {"ada": 0.3},
        "largest_delta": 1e-9,
        "float_arithmetic": True,
        "individual": True,
        "preferences_are": "public",
    } == told(f"{protect} {policy}")["policy"]
    assert "NOT differential privacy" in run(f"{protect} {policy}").output
    assert 2 == run("query", COUNT, "--share", "0.6").exit_code


def test_keys_with_commas_are_quoted(folder):
    protect = "protect patients patients.csv --person patient_id --epsilon epsilon --keys"
    assert {"region": ["N, E", "S"]} == told(protect, 'region="N, E",S')["keys"]


def test_an_empty_ledger_is_no_surprise(folder):
    assert 2 == run("protect patients patients.csv").exit_code
    for command in ("tables", "balance", "history", "audit ledger"):
        outcome = run(command)
        assert 0 == outcome.exit_code, outcome.output
    assert [] == told("balance")


def test_the_demo_tells_the_whole_story_twice(folder):
    for _ in range(2):
        outcome = run("demo --output clinic")
        assert 0 == outcome.exit_code, outcome.output
    for text in ("operated", "pressure", "rank ±", "Refused", "chosen", "remaining", "Receipt", "accuracy.png"):
        assert text in outcome.output, text
    assert (folder / "clinic" / "accuracy.png").stat().st_size > 10_000


def test_the_demo_says_so_where_plots_cannot_be_drawn(folder, monkeypatch):
    monkeypatch.setattr("discretion.errors.find_spec", lambda name: None)
    assert "pip install 'discretion[plots]'" in run("demo --output clinic").output


def test_a_place_that_cannot_be_written_is_wrong_usage_without_a_traceback(folder):
    (folder / "taken").write_text("a file, not a folder")
    for command in ("demo --output taken", "attack idp --people 2 --plot nowhere/attack.png"):
        outcome = run(command)
        assert (2, True) == (outcome.exit_code, "Cannot use" in outcome.stderr), outcome.output
    outcome = run("attack idp --people 2 --plot attack.xyz --json")
    assert 2 == outcome.exit_code
    assert "png" in json.loads(outcome.stdout)["message"]


def test_an_output_that_knows_no_greek_still_gets_the_answer(clinic):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for more in ([], ["--json"]):
        command = [sys.executable, "-c", "from discretion.cli import main; main()", "query", COUNT, *more]
        outcome = subprocess.run(command, capture_output=True, env=environment, cwd=clinic)
        assert 0 == outcome.returncode, outcome.stderr
        assert b"smokers" in outcome.stdout


def test_a_question_in_a_file_named_minus_is_read_from_standard_input(clinic):
    outcome = CliRunner().invoke(app, ["explain", "-f", "-"], input=COUNT)
    assert 0 == outcome.exit_code


def test_people_without_a_preference_are_told_when_they_are_enrolled(folder):
    (folder / "few.csv").write_text("id,epsilon\n1,0.5\n2,\n3,\n")
    outcome = run("register few few.csv --person id --epsilon epsilon")
    assert "Warning: People without a preference: 2." in outcome.stderr
    assert "People without a preference: 2." in run("refresh few").stderr

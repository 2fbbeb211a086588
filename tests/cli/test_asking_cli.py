"""Questions from the command line: options, parameters, files, formats, and a caret under a mistake."""

import json
from datetime import date

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from clinics import patients, write
from discretion.cli import app

COUNT = "SELECT COUNT(*) AS old FROM patients WHERE age > $age"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asking")
    place = str(folder / "ledger.discretion")
    source = str(write(patients(500), folder / "patients.parquet"))
    told = ["--person", "patient_id", "--epsilon", "epsilon", "--bounds", "age=0:120"]
    assert 0 == CliRunner().invoke(app, ["protect", "patients", source, *told, "--ledger", place]).exit_code
    return place


def run(ledger, command, *more, **how):
    return CliRunner().invoke(app, [command, *more, "--ledger", ledger], **how)


def entry(outcome):
    assert 0 == outcome.exit_code, outcome.output
    return json.loads(outcome.stdout)["entry"]


def test_a_question_comes_as_an_argument_a_file_or_the_standard_input(ledger, tmp_path):
    (tmp_path / "question.sql").write_text(f"{COUNT}\n", encoding="utf-8-sig")
    asked = ("--param", "age=60", "--share", "0.01", "--json")
    first = entry(run(ledger, "query", COUNT.replace("$age", "60"), *asked[2:]))
    assert first == entry(run(ledger, "query", "-f", str(tmp_path / "question.sql"), *asked))
    assert first == entry(run(ledger, "query", "-", *asked, input=f"{COUNT}\n"))
    explained = run(ledger, "explain", "-", *asked, input=COUNT)
    assert 0.01 == json.loads(explained.stdout)["share"]


@pytest.mark.parametrize("given", [[], [COUNT, "-f", "x.sql"]])
def test_a_question_is_given_once(ledger, given):
    outcome = run(ledger, "query", *given)
    assert 2 == outcome.exit_code
    assert "give the question once" in outcome.stderr


def test_options_and_within_are_typed(ledger):
    sql = "SELECT COUNT(*) FROM patients WHERE smoker"
    outcome = run(ledger, "explain", sql, "--mechanism", "sample", "--option", "threshold=mean", "--within", "450")
    assert 0 == outcome.exit_code, outcome.output
    assert "options: threshold = mean" in outcome.stdout
    plan = run(
        ledger, "explain", sql, "--mechanism", "partition", "--option", "groups=2", "--option", "drop=true", "--json"
    )
    assert {"groups": 2, "drop": True} == json.loads(plan.stdout)["options"]
    wrong = run(ledger, "query", sql, "--mechanism", "sample", "--option", "treshold=mean")
    assert 2 == wrong.exit_code
    assert "Did you mean 'threshold'?" in wrong.stderr


def test_a_question_in_another_encoding_is_refused(ledger, tmp_path):
    (tmp_path / "question.sql").write_bytes(f"{COUNT} AND region = 'K\xf6ln'".encode("latin-1"))
    outcome = run(ledger, "query", "-f", str(tmp_path / "question.sql"))
    piped = run(ledger, "query", "-", input=(tmp_path / "question.sql").read_bytes())
    for refused in (outcome, piped):
        assert 2 == refused.exit_code
        assert "is not written in UTF-8" in " ".join(refused.stderr.replace("│", " ").split())


def test_an_answer_is_written_in_the_format_of_the_file(ledger, tmp_path):
    sql = "SELECT COUNT(*) AS n FROM patients WHERE age < 50"
    for name in ("answer.csv", "answer.parquet", "answer.arrow", "answer.json"):
        outcome = run(ledger, "query", sql, "--share", "0.01", "--output", str(tmp_path / name))
        assert 0 == outcome.exit_code, outcome.output
        assert "Answer" in outcome.stdout
    answer = json.loads((tmp_path / "answer.json").read_text())["rows"][0]["n"]
    table = pyarrow.parquet.read_table(tmp_path / "answer.parquet")
    streamed = pa.ipc.open_stream((tmp_path / "answer.arrow").read_bytes()).read_all()
    assert [answer] == table["n"].to_pylist() == streamed["n"].to_pylist()
    assert b"personalized" in table.schema.metadata[b"discretion.release"]
    header, row = (tmp_path / "answer.csv").read_text().splitlines()
    assert header.startswith('"n","n_')
    assert str(answer) == row.partition(",")[0] or answer == float(row.partition(",")[0])
    printed = run(ledger, "query", sql, "--share", "0.01", "--format", "csv")
    assert (tmp_path / "answer.csv").read_text() == printed.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--output", "answer.xls"], "must end with .csv"),
        (["--output", "nowhere/answer.csv"], "folder that exists"),
        (["--format", "parquett"], "Did you mean 'parquet'?"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_charge(ledger, more, said):
    before = len(json.loads(run(ledger, "history", "--json").stdout))
    outcome = run(ledger, "query", "SELECT COUNT(*) FROM patients WHERE age > 1", *more)
    assert 2 == outcome.exit_code
    assert said in outcome.stderr
    assert before == len(json.loads(run(ledger, "history", "--json").stdout))


def test_a_mistake_is_shown_with_a_caret_under_its_place(ledger):
    outcome = run(ledger, "query", "-", input="SELECT COUNT(*)\nFROM patients\nWHERE agge > 40\n")
    assert 2 == outcome.exit_code
    assert "Did you mean 'age'?\nline 3, column 7:\nWHERE agge > 40\n      ^\n" in outcome.stderr
    told = json.loads(run(ledger, "query", "SELECT COUNT(*) FROM patientz", "--json").stdout)
    assert (1, 22) == (told["line"], told["column"])


def test_dates_with_bounds_and_public_lookups_are_keys(tmp_path):
    """Both as they are declared on the command line; the service's client declares them in the same words."""
    days = [date(2024, 1 + who % 3, 1 + who % 28) for who in range(90)]
    rows = {"id": range(90), "epsilon": [500.0] * 90, "day": days, "code": ["a", "b", "c"] * 30}
    source = str(write(pa.table(rows), tmp_path / "visits.parquet"))
    write(pa.table({"code": ["a", "b"], "ward": ["East", "West"]}), tmp_path / "wards.parquet")
    place = str(tmp_path / "ledger.discretion")
    told = ["--person", "id", "--epsilon", "epsilon", "--bounds", "day=2024-01-01:2024-02-29"]
    told += ["--lookup", f"wards={tmp_path / 'wards.parquet'}:code", "--public-lookup", "wards"]
    protected = run(place, "protect", "visits", source, *told)
    assert 0 == protected.exit_code, protected.output
    month = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month"
    ward = "SELECT ward, COUNT(*) AS n FROM visits JOIN wards USING (code) GROUP BY ward"
    for sql, keys in ((month, ["2024-01-01", "2024-02-01"]), (ward, ["East", "West"])):
        found = run(place, "query", sql, "--share", "0.4", "--json")
        assert 0 == found.exit_code, found.output
        rows_found = json.loads(found.stdout)["rows"]
        assert keys == [next(iter(row.values())) for row in rows_found]
        assert all(abs(row["n"] - 30) < 0.5 for row in rows_found)

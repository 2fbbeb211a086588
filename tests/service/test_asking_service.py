"""Questions over HTTP: options, parameters, an error that is small enough, and where a mistake is."""

import pytest

from clinics import patients, write
from discretion.declaration.table import Policy
from discretion.errors import InvalidDeclaration, QueryRefused
from discretion.release import IndividualRelease

COUNT = "SELECT COUNT(*) FROM patients WHERE age > $age"


def test_options_parameters_and_within_go_over_http(town):
    asked = {"sql": COUNT, "params": {"age": 60}, "mechanism": "sample", "options": {"threshold": "mean"}}
    with town.http("ada") as client:
        plan = client.post("/v1/explain", json={**asked, "within": 3_000}).json()
        assert {"threshold": "mean"} == plan["options"]
        assert 0 < plan["share"] < 0.1
        answered = client.post("/v1/query", json={**asked, "share": 0.01}).json()
    with town.connect("ada") as db:
        same = db.sql(COUNT, params={"age": 60}, mechanism="sample", options={"threshold": "mean"}, share=0.01)
        assert answered["entry"] == same.entry
        with town.http("ada") as own, town.http("bob") as other:
            told = [client.get(f"/answers/{same.entry}").text for client in (own, other)]
        assert all(
            part in told[0] for part in ("options={&#39;threshold&#39;: &#39;mean&#39;}", "mechanism=&#39;sample")
        )
        assert "threshold" not in told[1]  # how others asked is theirs
        shown = db.explain(COUNT, params={"age": 60}, within=600)
        assert "of everybody's allowance" in str(shown)
        assert shown.to_dict()["share"] < 0.1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mechanism": "sample", "options": {"treshold": 1}}, "Did you mean 'threshold'?"),
        ({"params": [1, 2]}, "one value for each ?"),
        ({"sql": "SELECT COUNT(*) FROM patients WHERE age > ?", "params": [10**4000]}, "more than 308 digits"),
        ({"within": -3}, "above 0"),
    ],
)
def test_wrong_choices_are_problems_of_the_caller(town, more, said):
    asked = {"sql": "SELECT COUNT(*) FROM patients WHERE smoker", **more}
    with town.http("ada") as client:
        problem = client.post("/v1/query", json=asked)
    assert 422 == problem.status_code
    assert "InvalidDeclaration" == problem.json()["code"]
    assert said in problem.json()["detail"]


def test_a_problem_document_has_the_place_of_the_mistake(town):
    sql = "SELECT COUNT(*)\nFROM patients WHERE agge > 3"
    with town.http("ada") as client:
        problem = client.post("/v1/query", json={"sql": sql}).json()
    assert (2, 21) == (problem["line"], problem["column"])
    assert "FROM patients WHERE agge > 3\n                    ^" == problem["excerpt"]
    with town.connect("ada") as db, pytest.raises(QueryRefused, match="Did you mean 'age'") as refusal:
        db.explain(sql)
    assert (2, 21, problem["excerpt"]) == (refusal.value.line, refusal.value.column, refusal.value.excerpt)
    with town.connect("ada") as db, pytest.raises(InvalidDeclaration, match="must be a list"):
        db.sql(sql, params="x")


def test_model_individual_needs_the_policy_of_the_table_over_http_too(town):
    asked = {"sql": "SELECT MAX(age) FROM patients", "model": "individual"}
    with town.http("ada") as client:
        problem = client.post("/v1/query", json=asked).json()
    assert "QueryRefused" == problem["code"]
    assert "policy does not allow model `individual`" in problem["detail"]
    with town.connect("ada") as db, pytest.raises(QueryRefused, match="policy does not allow"):
        db.explain(asked["sql"], model="individual")


def test_an_answer_under_model_individual_keeps_its_type_over_http(town):
    declared = {"bounds": {"age": (0, 120)}, "policy": Policy(individual=True)}
    write(patients(200, seed=9), town.folder / "fenced.parquet")
    with town.connect("sam") as db:
        db.protect("fenced", "fenced.parquet", person="patient_id", epsilon="epsilon", separate=True, **declared)
    with town.connect("ada") as db:
        release = db.sql("SELECT MAX(age) FROM fenced", model="individual", options={"place": 2}, share=0.01)
    assert isinstance(release, IndividualRelease)
    assert "NOT differential privacy" in repr(release)


def test_a_plan_says_that_an_own_question_was_answered_and_nothing_of_others(town):
    sql = "SELECT COUNT(*) FROM patients WHERE age > 7312.25"
    with town.connect("ada") as db:
        assert not db.explain(sql).to_dict()["answered"]
        db.sql(sql)
        shown = db.explain(sql)
        assert shown.to_dict()["answered"]
        assert "answered before" in str(shown)
    with town.connect("bob") as db:
        assert not db.explain(sql).to_dict()["answered"]
        assert "answered before" not in str(db.explain(sql))

"""Questions over HTTP: options, parameters, an error that is small enough, and where a mistake is."""

import pytest

from discretion.errors import InvalidDeclaration, QueryRefused

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
        shown = db.explain(COUNT, params={"age": 60}, within=600)
        assert "of everybody's allowance" in str(shown)
        assert shown.to_dict()["share"] < 0.1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mechanism": "sample", "options": {"treshold": 1}}, "Did you mean 'threshold'?"),
        ({"params": [1, 2]}, "parameter(s) written ?"),
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

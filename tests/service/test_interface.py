"""The HTTP interface says what it does: OpenAPI, JSON and Arrow, and problem documents."""

import json

import pyarrow as pa
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from discretion import errors
from discretion.service.permission import PERMISSIONS
from discretion.service.problem import STATUS, as_json
from discretion.service.routes import ENDPOINTS
from discretion.service.routes.operation import document
from discretion.service.shown import ARROW
from served import COUNT


def test_the_document_names_every_route_and_who_may_use_it():
    made = document(ENDPOINTS, "http://x")
    assert "3.1.0" == made["openapi"]
    routes = {f"{method.upper()} {path}" for path, methods in made["paths"].items() for method in methods}
    assert set(PERMISSIONS) == routes
    names = [one["operationId"] for methods in made["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))
    assert "For: steward, analyst." == made["paths"]["/v1/query"]["post"]["description"]


def test_the_service_gives_the_document_to_everybody(town):
    with town.http() as client:
        assert document(ENDPOINTS, town.url) == client.get("/v1/openapi.json").json()


def test_every_error_of_the_product_has_a_status():
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert kinds - {"DiscretionError", "PeerRefused"} == set(STATUS)


def test_answers_come_as_json_and_as_arrow(town):
    with town.http("ada") as client:
        plain = client.post("/v1/query", json={"sql": COUNT, "share": 0.01})
        table = client.post("/v1/query", json={"sql": COUNT, "share": 0.01}, headers={"Accept": ARROW})
        listed, history = client.get("/v1/balance", headers={"Accept": ARROW}), client.get("/v1/history")
    found = pa.ipc.open_stream(table.content).read_all()
    assert next(iter(plain.json()["rows"][0].values())) == next(iter(found.to_pylist()[0].values()))
    assert {"rows", "errors", "mechanism", "guarantee", "entry", "remarks", "assumes", "related"} == set(plain.json())
    assert "remaining" in pa.ipc.open_stream(listed.content).read_all().column_names
    assert "create" == history.json()[0]["kind"]
    assert "no-store" == plain.headers["cache-control"]


def test_everything_wrong_with_a_request_is_told_at_once(town):
    with town.http("ada") as client:
        told = client.post("/v1/query", json={"share": "much", "colour": 1}).json()
    assert "InvalidDeclaration" == told["code"]
    assert all(part in told["detail"] for part in ("'colour'", "'sql' is missing", "'share' must be a JSON number"))


def test_health_says_how_many_workers_there_are(town):
    with town.http() as client:
        assert {"status": "ok", "workers": 1, "wanted": 1} == client.get("/health").json()


SLOWLY = [pytest.param(role, 60, marks=pytest.mark.slow) for role in ("sam", "ada", "")]


@pytest.mark.parametrize(("role", "examples"), [("sam", 4), *SLOWLY])
def test_no_request_that_the_document_allows_makes_the_service_fail(town, role, examples):
    """Schemathesis: requests made from the document; not one answer may be 5xx or undocumented."""
    headers = {"Authorization": f"Bearer {town.tokens[role]}"} if role else {}
    schema = schemathesis.openapi.from_dict({**document(ENDPOINTS, town.url), "servers": [{"url": town.url}]})
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        for case in made(operation, examples):
            response = case.call(base_url=town.url, headers=headers)
            tried += 1
            assert response.status_code < 500, (operation.label, case.body, response.text)
            told = document(ENDPOINTS, "")["paths"][operation.path][operation.method]["responses"]
            assert str(response.status_code) in told, (operation.label, response.status_code)
    assert tried > len(PERMISSIONS)


def made(operation, examples: int) -> list:
    """Return requests that the document allows, always the same ones."""
    cases: list = []
    few = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @seed(1)
    @few
    @given(case=operation.as_strategy())
    def collect(case) -> None:
        cases.append(case)

    collect()
    return cases


def test_problems_are_valid_json_without_infinities():
    assert {"a": [None, None, 1.5]} == json.loads(as_json({"a": [float("inf"), float("nan"), 1.5]}))

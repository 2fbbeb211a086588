"""Who may do what: every route is tried by every role and signed out, and compared with the one table."""

import re
from typing import Any

import httpx
import pytest

from discretion.service.permission import PERMISSIONS, ROLES
from discretion.service.routes import ENDPOINTS
from served import Served

CELLS = [(route, role) for route in PERMISSIONS for role in ROLES]
# Written by hand, apart from the table in the source: a line that is changed there by mistake shows here.
FOR_ALL = {"GET /", "GET /health", "GET /metrics", "GET /v1/openapi.json", "GET /sign-in", "POST /sign-in"}
FOR_ALL |= {"GET /promise", "POST /sign-out", "GET /oidc", "GET /oidc/callback"}
FOR_MEMBERS = {"GET /v1/tables", "POST /v1/explain", "POST /v1/query", "GET /v1/answers/{entry}", "GET /v1/balance"}
FOR_MEMBERS |= {"GET /v1/history", "GET /v1/head"}
FOR_MEMBERS |= {"GET /ask", "POST /ask", "POST /ask/explain", "GET /answers/{entry}", "GET /answers/{entry}/download"}
FOR_MEMBERS |= {"GET /tables", "GET /history", "GET /balance"}
FOR_PEOPLE = {"GET /v1/receipt", "GET /v1/levels", "POST /v1/prefer"}
ABOUT_ONESELF = {"GET /me", "GET /me/choose", "POST /me/choose", "GET /me/chosen", "GET /me/answers", "GET /me/print"}


def expected(route: str, role: str) -> bool:
    if route in ABOUT_ONESELF:
        return role == "person"
    if role == "steward" or route in FOR_ALL:
        return True
    if role == "nobody":
        return False
    if route == "GET /v1/me":
        return True
    return route in (FOR_MEMBERS if role == "analyst" else FOR_PEOPLE)


@pytest.fixture(scope="module")
def clients(town: Served) -> Any:
    person = town.browser(town.letter(5))
    person.headers["X-CSRF-Token"] = person.get("/v1/me").json()["csrf"]
    found = {"steward": town.http("sam"), "analyst": town.http("ada"), "person": person, "nobody": town.http()}
    yield found
    for client in found.values():
        client.close()


@pytest.mark.parametrize(("route", "role"), CELLS)
def test_every_route_lets_in_exactly_whom_it_should(clients: dict[str, httpx.Client], route: str, role: str):
    """An empty request is enough: who may not come in is refused before anything else is looked at."""
    method, _, path = route.partition(" ")
    wrong = {"Content-Type": "text/plain"}  # so that nothing is done where it is allowed
    response = clients[role].request(method, re.sub("{.*}", "0", path), headers=wrong if method == "POST" else {})
    refused = response.status_code in (401, 403) and "json" in response.headers["content-type"]
    assert expected(route, role) == (not refused), response.text
    if refused:
        assert (401 if role == "nobody" else 403) == response.status_code
        assert "AccessDenied" == response.json()["code"]


def test_the_table_and_the_routes_name_each_other():
    assert sorted(PERMISSIONS) == sorted(one.route for one in ENDPOINTS)
    assert set(ROLES) >= set().union(*PERMISSIONS.values())


def test_the_walk_would_notice_a_wrong_line(clients, monkeypatch):
    monkeypatch.setitem(PERMISSIONS, "GET /v1/members", frozenset(ROLES))
    assert 200 == clients["nobody"].get("/v1/members").status_code
    with pytest.raises(AssertionError):
        test_every_route_lets_in_exactly_whom_it_should(clients, "GET /v1/members", "nobody")


def test_other_methods_and_paths_do_not_exist(town):
    with town.http("sam") as client:
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            assert 405 == client.request(method, "/v1/tables").status_code
        for path in (
            "/v1",
            "/v1/",
            "/v1/tables/",
            "/v1/unknown",
            f"{town.url}//v1/tables",
            "/static/../app.py",
            "/v1/tables%00",
        ):
            response = client.get(path)
            assert 404 == response.status_code, path
            assert response.headers["cache-control"] == "no-store"

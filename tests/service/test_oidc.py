"""People sign in with an account elsewhere; a real provider, in a process of its own, says who they are."""

import subprocess
import sys
from pathlib import Path
from time import sleep
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from discretion.errors import InvalidDeclaration
from discretion.service.oidc import Provider
from served import Served, free_port, served

WRONG = "This code or token is not valid."


@pytest.fixture(scope="module")
def issuer():
    port = free_port()
    words = [str(Path(sys.executable).parent / "oidc-provider-mock"), "--port", str(port), "--require-nonce", "true"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                found = httpx.get(f"{url}/.well-known/openid-configuration").json()["issuer"]
                break
            except httpx.HTTPError:
                sleep(0.1)
        yield found
        process.terminate()


@pytest.fixture(scope="module")
def town(issuer, tmp_path_factory):
    provider = Provider(issuer=issuer, client="clinic", secret="s", register="patients")
    with served(tmp_path_factory.mktemp("oidc"), provider=provider) as started:
        yield started


def returned(town: Served, browser: httpx.Client, person: str) -> str:
    """Sign in at the provider as somebody; return the address that it sends the browser back to."""
    sent = browser.get("/oidc")
    assert 303 == sent.status_code
    answered = httpx.post(sent.headers["location"], data={"sub": person}, timeout=30)
    assert answered.is_redirect, answered.text
    back = answered.headers["location"]
    assert back.startswith(f"{town.url}/oidc/callback")
    return back


def test_the_provider_names_the_person_who_then_sees_and_changes_only_their_own(town):
    with town.http() as browser:
        assert "/oidc" in browser.get("/sign-in").text
        assert 303 == browser.get(returned(town, browser, "17")).status_code
        told = browser.get("/v1/me").json()
        assert "person" == told["role"]
        chosen = browser.post("/v1/prefer", json={"epsilon": 0}, headers={"X-CSRF-Token": told["csrf"]})
        assert 200 == chosen.status_code
        assert 0 == browser.get("/v1/receipt").json()["allowance"]
        assert 403 == browser.get("/v1/receipt?person=3").status_code


def test_somebody_unknown_gets_the_same_answer_as_a_wrong_code(town):
    with town.http() as browser:
        back = returned(town, browser, "nobody in the register")
        unknown = browser.get(back)
        wrong = browser.get(back.replace("code=", "code=x"))
    assert (403, unknown.text) == (wrong.status_code, wrong.text)
    assert WRONG in wrong.text
    assert "discretion=" not in unknown.headers.get("set-cookie", "")


def test_an_answer_of_the_provider_works_once_and_only_in_the_browser_that_asked(town):
    with town.http() as browser, town.http() as thief:
        back = returned(town, browser, "18")
        assert 403 == thief.get(back).status_code  # no cookie of the way there
        returned(town, thief, "19")
        assert 403 == thief.get(back).status_code  # another state
        assert 303 == browser.get(back).status_code
        assert 403 == browser.get(back).status_code


def test_a_state_or_nonce_of_another_way_is_refused(town):
    with town.http() as browser:
        back = returned(town, browser, "20")
        state = parse_qs(urlsplit(back).query)["state"][0]
        assert 403 == browser.get(back.replace(state, state[::-1])).status_code
        kept = town.house.sessions.unseal("oidc", browser.cookies["discretion-way"])
    sealed = town.house.sessions.seal("oidc", {**kept, "once": "another"}, 60)
    with town.http("", Cookie=f"discretion-way={sealed}") as browser:
        assert 403 == browser.get(back).status_code


def test_the_cookie_of_the_way_is_not_a_session(town):
    with town.http() as browser:
        browser.get("/oidc")
        sealed = browser.cookies["discretion-way"]
    with town.http("", Cookie=f"discretion={sealed}") as client:
        assert 401 == client.get("/v1/me").status_code


def test_a_provider_is_reached_by_https():
    with pytest.raises(InvalidDeclaration, match="https"):
        Provider(issuer="http://portal.example", client="c", secret="s", register="r")

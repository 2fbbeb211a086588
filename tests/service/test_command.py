"""The commands: serve, member, invite; and all others with a service in the place of a ledger."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from datetime import date

import httpx
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from clinics import clinic, write
from discretion.cli import app
from discretion.ledger.audit import audit_ledger
from discretion.service.server import ready_links
from served import free_port

SQL = "SELECT COUNT(*) FROM patients WHERE age > 33"


def run(*words: str, code: int = 0, **environment: str) -> str:
    found = CliRunner().invoke(app, list(words), env=environment)
    assert code == found.exit_code, found.output
    return found.output


def test_a_service_from_start_to_stop(tmp_path):
    """The real command: the steward's link signs in once, a token asks, and a signal stops it."""
    clinic(tmp_path).close()
    ledger, port = str(tmp_path / "clinic.discretion"), free_port()
    words = [sys.executable, "-m", "discretion", "serve", ledger, "--port", str(port), "--workers", "1"]
    with subprocess.Popen(
        [*words, "--answer-every", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            told = [process.stdout.readline(), process.stdout.readline()]
            assert f"http://127.0.0.1:{port}" in told[0]
            code = re.search(r"/sign-in\?code=(\S+)", told[1])[1]
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as browser:  # it listens already
                assert [303, 403] == [browser.post("/sign-in", data={"code": code}).status_code for _ in range(2)]
                assert "/steward" == browser.get("/").headers["location"]
            token = json.loads(run("member", "add", "ada", "--ledger", ledger, "--json"))["token"]
            url = f"http://127.0.0.1:{port}"
            answer = json.loads(run("query", SQL, "--ledger", url, "--json", DISCRETION_TOKEN=token))
            assert answer["entry"]
        finally:
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
    assert -signal.SIGTERM == process.returncode, log  # uvicorn stops in order, then passes the signal on
    assert "Application shutdown complete." in log
    assert code not in log
    assert token not in log
    assert any(json.loads(line).get("route") == "POST /v1/query" for line in log.splitlines())
    assert 0o600 == os.stat(f"{ledger}.key").st_mode & 0o777
    assert audit_ledger(ledger).passed


def test_a_service_that_others_could_listen_to_is_refused(tmp_path):
    told = run("serve", str(tmp_path / "x.discretion"), "--host", "0.0.0.0", code=2)
    assert "Without TLS" in told


def test_members_and_invitations_of_a_ledger(tmp_path):
    clinic(tmp_path).close()
    ledger = ["--ledger", str(tmp_path / "clinic.discretion")]
    token = run("member", "add", "sam", "--role", "steward", *ledger).split()[-1]
    assert len(token) >= 43
    run("member", "add", "sam", *ledger)  # one more token, the same role
    listed = json.loads(run("member", "list", "--json", *ledger))
    assert [{"name": "sam", "role": "steward", "revoked": ""}] == listed["members"]
    assert 2 == len(listed["tokens"])
    assert token not in run("member", "list", *ledger)
    run("member", "revoke", listed["tokens"][0]["id"], "--token", *ledger)
    run("member", "revoke", "sam", *ledger)
    letters = tmp_path / "letters.csv"
    made = json.loads(
        run("invite", "--register", "patients", "--out", str(letters), "--person", "7", "--json", *ledger)
    )
    assert 1 == made["people"]
    (row,) = csv.DictReader(letters.read_text().splitlines())
    assert ("7", True) == (row["person"], row["link"].endswith(row["code"]))
    assert 0o600 == letters.stat().st_mode & 0o777
    run("invite", "--register", "patients", "--out", str(letters), *ledger, code=2)
    run("invite", "--revoke", made["entry"], *ledger)
    assert audit_ledger(ledger[1]).passed


@pytest.mark.parametrize(
    "words",
    [
        ["tables"],
        ["balance"],
        ["history"],
        ["receipt", "3", "--register", "patients"],
        ["explain", SQL],
        ["notices"],
        ["audit", "ledger"],
        ["prefer", "8", "0.2", "--register", "patients"],
        ["refresh", "patients"],
        ["member", "list"],
        ["query", SQL, "--share", "0.02"],
    ],
    ids=lambda words: words[0],
)
def test_a_service_stands_in_for_a_ledger(town, words):
    place = ["--ledger", town.url]
    text = run(*words, *place, DISCRETION_TOKEN=town.tokens["sam"])
    assert text.strip()
    json.loads(run(*words, "--json", *place, DISCRETION_TOKEN=town.tokens["sam"]))


def test_a_steward_protects_and_invites_from_afar(town, tmp_path):
    place, token = ["--ledger", town.url], town.tokens["sam"]
    told = ["protect", "again", "more.parquet", "--person", "patient_id", "--register", "patients", "--bounds"]
    refused = run(*told, "age=0:120", *place, code=2, DISCRETION_TOKEN=token)
    assert "register" in refused  # the same people: told as it is told at home
    out = tmp_path / "letters.csv"
    run("invite", "--register", "patients", "--out", str(out), "--person", "9", *place, DISCRETION_TOKEN=token)
    assert 2 == len(out.read_text().splitlines())
    for words in (["restore", "--unknown"], ["audit", "ledger", "--migrate"]):
        assert "from afar" in run(*words, *place, code=2, DISCRETION_TOKEN=token)
    refused = run("balance", *place, code=2, DISCRETION_TOKEN="")
    assert "needs a token" in refused


@pytest.mark.parametrize("way", ["http", "command"])
def test_dates_with_bounds_and_public_lookups_are_declared_from_afar(town, way):
    first = {"http": 50_000, "command": 60_000}[way]  # other rows are other people
    days = [date(2024, 1 + who % 3, 1 + who % 28) for who in range(90)]
    rows = {"id": range(first, first + 90), "epsilon": [500.0] * 90, "day": days, "code": ["a", "b", "c"] * 30}
    write(pa.table(rows), town.folder / f"{way}.parquet")
    write(pa.table({"code": ["a", "b"], "ward": ["East", "West"]}), town.folder / "wards.parquet")
    if way == "http":
        told = {"name": way, "source": "http.parquet", "person": "id", "epsilon": "epsilon", "separate": True}
        told |= {
            "bounds": {"day": ["2024-01-01", "2024-02-29"]},
            "lookups": {"wards": ["wards.parquet", "code", "public"]},
        }
        with town.http("sam") as client:
            made = client.post("/v1/protect", json=told)
        assert 200 == made.status_code, made.text
    else:
        told = ["protect", way, "command.parquet", "--person", "id", "--epsilon", "epsilon", "--separate"]
        told += ["--bounds", "day=2024-01-01:2024-02-29", "--lookup", "wards=wards.parquet:code"]
        run(*told, "--public-lookup", "wards", "--ledger", town.url, DISCRETION_TOKEN=town.tokens["sam"])
    month = f"SELECT DATE_TRUNC('month', day) AS key, COUNT(*) AS n FROM {way} GROUP BY key"
    ward = f"SELECT ward AS key, COUNT(*) AS n FROM {way} JOIN wards USING (code) GROUP BY key"
    for sql, keys in ((month, ["2024-01-01", "2024-02-01"]), (ward, ["East", "West"])):
        asked = ["query", sql, "--share", "0.4", "--json", "--ledger", town.url]
        found = json.loads(run(*asked, DISCRETION_TOKEN=town.tokens["ada"]))["rows"]
        assert keys == [row["key"] for row in found]
        assert all(abs(row["n"] - 30) < 0.5 for row in found)  # at an ε of 200


def test_ready_links_lead_each_role_to_its_own_pages(town):
    for role, link in ready_links(town.house, "patients", 17).items():
        with town.browser(link.partition("code=")[2]) as client:
            assert role == client.get("/v1/me").json()["role"]
            assert {"steward": "/steward", "analyst": "/ask", "person": "/me"}[role] == client.get("/").headers[
                "location"
            ]


@pytest.mark.slow
def test_the_demonstration_is_served_from_a_folder_that_is_thrown_away(tmp_path):
    port = free_port()
    words = [sys.executable, "-m", "discretion", "demo", "--serve", "--port", str(port)]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(words, env={**os.environ, "TMPDIR": str(tmp_path)}, **kept) as process:
        try:
            told = ""
            while "nothing is kept" not in told and (line := process.stdout.readline()):
                told += line
            codes = re.findall(r"/sign-in\?code=(\S+)", told)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as browser:
                for code, home in zip(codes, ("/steward", "/ask", "/me"), strict=True):
                    assert 303 == browser.post("/sign-in", data={"code": code}).status_code
                    assert home == browser.get("/").headers["location"]
                    assert 200 == browser.get(home).status_code
        finally:
            process.send_signal(signal.SIGTERM)
    assert [] == list(tmp_path.glob("discretion-clinic-*"))

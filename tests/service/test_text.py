"""Who sees which text: literals of a question are for its analyst and the steward; receipts never have any."""

import json
import logging
import re

import pytest

from discretion.query.quotation import HIDDEN, known_names, without_literals
from discretion.release import Error, Release
from discretion.service.log import Lines
from discretion.service.text import shown_release
from served import served

SECRET = (
    'SELECT COUNT(*) AS "Jane Roehampton" FROM patients '
    "WHERE patient_id = 917120021 AND region = 'Nowhereville' AND age > -418873.5"
)
# Long enough that neither noise nor a token holds one by chance.
HINTS = ("Jane", "Roehampton", "917120021", "Nowhereville", "418873.5")
KNOWN = frozenset({"patients", "patient_id", "region", "age", "smoker"})


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with served(tmp_path_factory.mktemp("text"), workers=1) as started:
        with started.connect("ada") as db:
            db.sql(SECRET, share=0.02)
        yield started


def hints(text: str) -> list[str]:
    return [hint for hint in HINTS if hint in text]


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        (SECRET, "SELECT COUNT(*) AS name FROM patients WHERE patient_id = ? AND region = ? AND age > ?"),
        ("SELECT COUNT(*) FROM patients -- for Jane", "SELECT COUNT(*) FROM patients"),
        ("SELECT COUNT(*) FROM patients WHERE age IN (1, 2, 3)", "SELECT COUNT(*) FROM patients WHERE age IN (?)"),
        (
            'WITH "Jane" AS (SELECT age AS "Roe" FROM patients WHERE smoker = TRUE) SELECT AVG("Roe") FROM "Jane"',
            "WITH name AS (SELECT age AS name FROM patients WHERE smoker = ?) SELECT AVG(name) FROM name",
        ),
        ("SELECT COUNT(*) FROM patients WHERE jane(age)", "SELECT COUNT(*) FROM patients WHERE NAME(age)"),
        ("not SQL at all: Jane", HIDDEN),
        ("SELECT (((", HIDDEN),
    ],
)
def test_literals_and_made_up_names_are_removed(sql, plain):
    assert plain == without_literals(sql, KNOWN)


def test_declared_names_are_public(town):
    assert {"patients", "age", "visits", "cost"} <= known_names(town.house.db.tables())


def test_history_shows_analysts_their_own_words_and_those_of_others_without_literals(town):
    seen = {}
    for who in ("ada", "bob", "sam"):
        with town.connect(who) as db:
            (seen[who],) = [row["text"] for row in db.history() if row["kind"] == "charge"]
    assert SECRET == seen["ada"] == seen["sam"]
    assert [] == hints(seen["bob"])
    assert "patient_id = ?" in seen["bob"]


def test_receipts_have_no_literals_for_anybody(town):
    with town.browser(town.letter(3)) as person, town.http("sam") as steward:
        own = person.get("/v1/receipt").json()
        seen = steward.get("/v1/receipt", params={"person": "3"}).json()
    assert own == seen
    assert [] == hints(json.dumps(own["releases"]))
    assert "patient_id = ?" in own["releases"][0]["question"]


def test_a_stored_answer_shows_others_the_numbers_and_not_the_words(town):
    with town.connect("ada") as db:
        own = db.sql(SECRET, share=0.02)
        assert own == db.answer(own.entry)
    with town.connect("sam") as db:
        assert own == db.answer(own.entry)
    with town.connect("bob") as db:
        seen = db.answer(own.entry)
        assert [] == hints(seen.to_json())
        assert own.value == seen.value
    with town.http("bob") as client:
        assert [] == hints(client.get(f"/v1/answers/{own.entry}").text)
        for entry in ("1-000000000000", "x", "99999999999999999999-000000000000", f"{own.entry}0", "0-0"):
            assert client.get(f"/v1/answers/{entry}").status_code in (404, 422), entry


CASES = (
    "SELECT CASE WHEN age = 77 THEN 'Jane' ELSE 'other' END AS k, COUNT(*) FROM patients GROUP BY k",
    "SELECT CASE WHEN age = 77 THEN 'Ja' || 'ne' ELSE region END AS k, COUNT(*) FROM patients GROUP BY k",
    "SELECT CASE WHEN age = 77 THEN -418873.5 ELSE 917120021 END AS k, COUNT(*) FROM patients GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT CASE WHEN smoker THEN 'Roehampton' END AS k FROM patients) AS t GROUP BY k",
    "SELECT CASE WHEN age = 7 THEN 917120000 + 21 ELSE 3 END AS k, COUNT(*) FROM patients GROUP BY k",
    "SELECT k + 1 AS k, COUNT(*) FROM (SELECT CASE WHEN smoker THEN 917120020 END AS k FROM patients) AS t "
    "GROUP BY k + 1",
    "SELECT MODE(CASE WHEN age = 77 THEN 'Roehampton' ELSE 'Jane' END) AS m FROM patients",
)


@pytest.mark.parametrize("sql", CASES)
def test_keys_that_an_analyst_wrote_are_not_shown_to_others(town, sql):
    with town.connect("ada") as db:
        own = db.sql(sql, share=0.01)
    paths = [f"/v1/answers/{own.entry}", f"/answers/{own.entry}"]
    paths += [f"/answers/{own.entry}/download?as={kind}" for kind in ("csv", "json", "parquet")]
    for who in ("ada", "bob", "sam"):
        with town.http(who) as client:
            shown = {path: client.get(path) for path in paths}
            assert {200} == {response.status_code for response in shown.values()}
            texts = [response.content.decode("latin-1") for path, response in shown.items() if "parquet" not in path]
        assert (who != "bob") == any(hints(text) for text in texts), (who, texts)
    with town.connect("bob") as db:
        seen = db.answer(own.entry)
    assert [] == hints(str(seen.to_arrow().to_pylist()))
    assert any("?" in str(value) for value in seen.columns["column 1"])


def test_keys_that_a_steward_declared_are_shown_to_everybody(town):
    with town.connect("ada") as db:
        own = db.sql("SELECT region, COUNT(*) FROM patients WHERE region = 'N' GROUP BY region", share=0.01)
    with town.connect("bob") as db:
        assert own.columns["region"] == db.answer(own.entry).columns["region"]


def test_keys_stay_that_no_literal_goes_into():
    """Where others might find a literal again, they see no key that a steward did not declare."""
    errors = {"n": (Error(bias=0, noise=1, limits=(0.0, 712.0)),) * 2}
    columns = {"k": (0, 10), "n": (1.0, 10.0)}
    release = Release(columns=columns, errors=errors, mechanism="laplace", guarantee=None, within=5.0)  # type: ignore[arg-type]

    def seen(key, aggregate="COUNT(*)"):
        sql = f"SELECT {key} AS k, {aggregate} AS n FROM patients WHERE age > 3 GROUP BY k"
        shown = shown_release(release, sql, ())
        assert shown.within is None
        return shown.columns["column 1"], shown.errors["column 2"][0].limits

    assert ((0, 10), (0.0, 712.0)) == seen("MONTH(day)") == seen("DATE_TRUNC('month', day)")
    assert (("?1", "?2"), (0.0, 712.0)) == seen("FLOOR(age / 10) * 10") == seen("WIDTH_BUCKET(age, 0, 712, 8)")
    assert ((0, 10), None) == seen("age", "SUM(LEAST(GREATEST(income, 0), 712))")


def test_a_rank_that_an_analyst_wrote_is_not_shown_to_others():
    def seen(rank, sql):
        errors = {"q": (Error(bias=0.1, noise=0.1, unit="rank", asked=rank),)}
        release = Release(columns={"q": (3.0,)}, errors=errors, mechanism="exponential", guarantee=None)  # type: ignore[arg-type]
        return shown_release(release, sql, ()).errors["column 1"][0].asked

    assert 0.5 == seen(0.5, "SELECT MEDIAN(age) AS q FROM patients")
    assert 0.25 == seen(0.25, "SELECT QUANTILE_CONT(age, 0.25) AS q FROM patients")
    assert seen(0.712, "SELECT QUANTILE_CONT(age, 0.712) AS q FROM patients") is None


def test_people_do_not_see_who_asked_or_where_rows_are(town):
    with town.browser(town.letter(3)) as person:
        text = person.get("/v1/receipt").text
    assert not re.search(r"\bada\b", text)  # the id of an entry may hold these letters
    with town.http("ada") as analyst, town.http("sam") as steward:
        assert str(town.folder) not in analyst.get("/v1/tables").text
        assert str(town.folder) in steward.get("/v1/tables").text


def test_a_person_sees_and_changes_only_their_own(town):
    with town.browser(town.letter(4)) as person:
        csrf = {"X-CSRF-Token": person.get("/v1/me").json()["csrf"]}
        assert 403 == person.get("/v1/receipt", params={"person": "3"}).status_code
        assert 403 == person.post("/v1/prefer", json={"person": "3", "epsilon": 0}, headers=csrf).status_code
        assert person.get("/v1/levels").json()[0]["levels"]
        assert 200 == person.post("/v1/prefer", json={"epsilon": 0}, headers=csrf).status_code
        assert 0 == person.get("/v1/receipt").json()["allowance"]
    with town.connect("sam") as db:
        assert db.receipt(3).allowance > 0


def test_logs_and_metrics_hold_no_secret(town, caplog):
    code = town.letter(1712)
    with caplog.at_level(logging.DEBUG), town.http("ada") as ada, town.http() as nobody:
        ada.post("/v1/query", json={"sql": SECRET, "share": 0.021})
        ada.post("/v1/query", json={"sql": SECRET + " garbage 917120021"})
        nobody.get("/sign-in", params={"code": code})
        nobody.post("/sign-in", data={"code": code})
        nobody.get("/v1/receipt?person=917120021")
        lines = [
            Lines().format(record) for record in caplog.records if record.name.startswith(("discretion", "uvicorn"))
        ]
        metrics = nobody.get("/metrics").text
    assert any(json.loads(line).get("route") == "POST /v1/query" for line in lines)
    for text in (*lines, metrics):
        assert [] == hints(text), text
        assert code not in text
        assert town.tokens["ada"] not in text
    assert 'discretion_requests_total{method="POST",path="/v1/query",status="200"}' in metrics
    assert "discretion_workers 1" in metrics


def test_an_error_that_nobody_foresaw_tells_nothing(town, monkeypatch, caplog):
    def broken(*_):
        raise ValueError("row of Jane Roehampton")

    monkeypatch.setattr(town.house.db, "head", broken)
    with town.http("ada") as client, caplog.at_level(logging.ERROR):
        response = client.get("/v1/head")
    assert (500, []) == (response.status_code, hints(response.text))
    assert [] == hints(caplog.text)
    assert "ValueError" in caplog.text

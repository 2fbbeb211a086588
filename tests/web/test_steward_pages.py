"""A steward in Chromium: from the printed link to a protected table, an invitation, a stop and a resume."""

import io
import re
from datetime import timedelta
from urllib.parse import urlencode

import pyarrow as pa
import pytest
import segno
from PIL import Image
from pyarrow import parquet

from discretion.errors import TableStopped
from discretion.ledger.audit import audit_ledger
from served import Served, served

HOSTILE = "<img src=x onerror=alert(1)>\"'&amp;"
PAGES = (
    "/steward",
    "/steward/tables",
    "/steward/table?name=patients",
    "/steward/policy?name=patients",
    "/steward/protect",
    "/steward/protect?source=survey.parquet",
    "/steward/people",
    "/steward/choice",
    "/steward/members",
    "/steward/use",
    "/steward/audit",
)


def survey(first: int, people: int = 40) -> pa.Table:
    """People of their own: nobody is in another register."""
    rows = range(people)
    return pa.table(
        {
            "who": [f"p{first + row}" for row in rows],
            "age": [20 + row for row in rows],
            "region": [HOSTILE if row % 2 else "S" for row in rows],
            "choice": ["strict" if row % 3 else "open" for row in rows],
        }
    )


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Served:
    folder = tmp_path_factory.mktemp("steward")
    parquet.write_table(survey(0), folder / "survey.parquet")
    parquet.write_table(survey(1_000), folder / f"{HOSTILE.replace('/', '')}.parquet")
    with served(folder) as started:
        with started.connect("ada") as db:
            db.sql("SELECT region, AVG(age) FROM patients WHERE smoker GROUP BY region", share=0.02)
        yield started


@pytest.fixture
def steward(visit, town):
    """Begin a visit of the steward, with the link that the service prints."""

    def begin(**how):
        here = visit(town=town, **how)
        here.sign_in(town.house.access.link("sam"))
        return here

    return begin


@pytest.fixture(scope="module")
def http(town):
    with town.browser(town.house.access.link("sam")) as client:
        client.headers["X-CSRF-Token"] = client.get("/v1/me").json()["csrf"]
        yield client


def sent(client, path: str, **fields):
    body = urlencode(fields, doseq=True)
    return client.post(path, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})


def protect(page, *, file: str, name: str) -> None:
    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_role("link", name="Protect a table").click()
    page.get_by_label("A file").select_option(file)
    page.get_by_role("button", name="Next: its columns").first.click()
    page.get_by_label("What analysts call the table").fill(name)


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_link_to_a_table_an_invitation_a_stop_and_a_resume(visit, town, steward, scripts):
    name, first = f"survey{scripts}".lower(), 10_000 + 1_000 * scripts
    parquet.write_table(survey(first), town.folder / f"{name}.parquet")
    page = steward(scripts=scripts).page
    assert "No promise is known to be in danger" in page.get_by_role("heading", level=1).inner_text()

    protect(page, file=f"{name}.parquet", name=name)
    page.get_by_label("Smallest").first.fill("50")
    page.get_by_role("button", name="Protect the table").click()
    told = page.get_by_role("alert").inner_text()
    assert all(part in told for part in ("whose row each row is", "preferences come from", "no largest one"))
    assert (name, "50") == (page.input_value("#name"), page.get_by_label("Smallest").first.input_value())

    page.get_by_label("The column that names the person").select_option("who")
    page.get_by_label("From a column of this table").check()
    page.get_by_label("The column with what people chose").select_option("choice")
    page.get_by_label("Names of levels").fill("strict = 0.1\nopen = 1")
    page.get_by_label("Largest").first.fill("120")
    page.get_by_label("Every group of region").fill(f"S\n{HOSTILE}")
    page.get_by_role("button", name="Protect the table").click()
    assert f"{name} is protected" == page.get_by_role("heading", level=1).inner_text()
    assert "outside its bounds: 30" in page.inner_text(".notice.warning")  # for the steward only
    assert HOSTILE in page.inner_text("table")

    page.get_by_role("link", name="Invite its people").click()
    page.get_by_label("Whose people").select_option(name)
    page.get_by_label("Who", exact=True).fill(f"p{first + 1}")
    page.get_by_role("button", name="Make the codes").click()
    assert 1 == page.locator(".letter svg.qr").count()
    code = page.inner_text(".letter .code")
    invited = visit(town=town, scripts=scripts).sign_in(code)
    assert "up to an allowance of 0.1" in invited.get_by_role("heading", level=1).inner_text()

    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("button", name=f"Stop answering questions about {name}").click()
    assert "A steward stopped them" in page.inner_text("main")
    with town.connect("ada") as db, pytest.raises(TableStopped):
        db.sql(f"SELECT COUNT(*) FROM {name} WHERE age > 30")
    page.get_by_role("button", name=f"Answer questions about {name} again").click()
    page.get_by_role("heading", name="Stops that are over").wait_for()
    with town.connect("ada") as db:
        assert 2 == len(db.sql(f"SELECT region, COUNT(*) FROM {name} WHERE age > 30 GROUP BY region"))


def test_pages_are_accessible_and_fit_a_phone(steward, accessible):
    here = steward(phone=True)
    for path in PAGES:
        page = here.go(path)
        accessible(page)
        page.set_viewport_size({"width": 1280, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        assert len(page.content()) < 100_000, path
        page.set_viewport_size({"width": 390, "height": 844})


def test_a_new_letter_replaces_the_earlier_code_and_letters_are_accessible(visit, town, steward, accessible):
    page = steward().page
    codes = []
    for _ in range(2):
        page.goto(f"{town.url}/steward/people")
        page.get_by_label("Whose people").select_option("patients")
        page.get_by_label("Who", exact=True).fill("31\n32")
        page.get_by_role("button", name="Make the codes").click()
        codes.append(page.locator(".letter .code").all_inner_texts())
    accessible(page)
    old = visit(town=town)
    old.go(f"/sign-in?code={codes[0][0]}").get_by_role("button", name="Sign in").click()
    assert "not valid" in old.page.get_by_role("alert").inner_text()
    assert "/me" in visit(town=town).sign_in(codes[1][0]).url


def test_an_audit_shows_its_progress_and_its_result(steward, accessible):
    page = steward().go("/steward/audit")
    page.get_by_label("The head that you wrote down").fill("nonsense")
    page.get_by_role("button", name="Audit the ledger").click()
    assert "A head looks like" in page.get_by_role("alert").inner_text()
    page.get_by_label("The head that you wrote down").fill(page.inner_text("#now-head"))
    page.get_by_role("button", name="Audit the ledger").click()
    page.get_by_text("Every promise on record was kept").wait_for()
    assert "compared with the head" in page.inner_text("#audit")
    accessible(page)


def test_texts_that_anybody_can_enter_are_shown_and_not_run(town, steward):
    """The visit fails if a page runs them: names of members, labels, quotas, file names, keys, questions."""
    access, name = town.house.access, HOSTILE.replace("/", "")
    access.add(name, "analyst")
    access.token(name, label=HOSTILE, lasts=timedelta(days=2))
    quoted = HOSTILE.replace("'", "''").replace('"', '""')
    with town.connect("ada") as db:
        db.sql(f"SELECT COUNT(*) AS \"{quoted}\" FROM patients WHERE region = '{quoted}'", share=0.01)
    here = steward()
    for path in ("/steward", "/steward/members"):
        assert HOSTILE in here.go(path).inner_text("main")
    assert "onerror=alert(1)" in here.go("/history?of=everybody").inner_text("main")
    page = here.go("/steward/protect")
    file = f"{name}.parquet"
    assert file in page.locator("#source option").all_inner_texts()
    page = here.go(f"/steward/protect?{urlencode({'source': file})}")
    page.get_by_label("What analysts call the table").fill(HOSTILE)
    page.get_by_label("Every group of region").fill(HOSTILE)
    page.get_by_label("Quotas").fill(HOSTILE)
    page.get_by_role("button", name="Protect the table").click()
    assert "<img src=x onerror" in page.get_by_role("alert").inner_text()
    assert HOSTILE == page.get_by_label("Every group of region").input_value()


def test_a_form_that_is_sent_twice_acts_once(town, http):
    def entries() -> int:
        return len(http.get("/v1/history").json())

    before = entries()
    for _ in range(2):
        assert 200 == sent(http, "/steward/members", name="cy", role="analyst", once="a").status_code
        made = sent(http, "/steward/tokens", member="cy", kind="token", days="3", once="b").text
    assert before + 2 == entries()
    assert made == sent(http, "/steward/tokens", member="cy", kind="token", days="3", once="b").text
    form = {"register": "patients", "people": "40", "days": "5", "as": "file", "once": "c"}
    first, second = sent(http, "/steward/invite", **form), sent(http, "/steward/invite", **form)
    assert first.text == second.text
    assert "attachment" in first.headers["content-disposition"]
    for path in ("/steward/stop", "/steward/stop", "/steward/resume", "/steward/resume"):
        assert 303 == sent(http, path, register="patients").status_code
    assert before + 5 == entries()
    assert audit_ledger(town.ledger).passed


def test_what_is_wrong_is_told_and_nothing_is_done(town, http):
    before = len(http.get("/v1/history").json())
    answers = {
        "/steward/members": ({"name": "", "role": ""}, "Write the member"),
        "/steward/members/revoke": ({"name": "sam"}, "your own role"),
        "/steward/tokens": ({"member": "nobody", "days": "x"}, "number of days"),
        "/steward/invite": ({"register": "", "people": "", "as": "letters"}, "Choose whose people"),
        "/steward/protect": ({"source": "../x"}, "must be a file below"),
        "/steward/choice": ({"register": "", "person": "", "level": ""}, "Write who chose"),
        "/steward/policy": ({"name": "patients", "largest_share": "200"}, "at most 100"),
    }
    for path, (fields, text) in answers.items():
        response = sent(http, path, **fields)
        assert (422, True) == (response.status_code, text in response.text), path
    for path in ("/steward/stop", "/steward/resume", "/steward/refresh", "/steward/policy"):
        assert sent(http, path, name="none", register="none").status_code in (404, 422)
    assert before == len(http.get("/v1/history").json())


def test_a_policy_is_changed_and_everything_else_stays(town, steward):
    page = steward().go("/steward/policy?name=visits")
    page.get_by_label("The most of an allowance").fill("25")
    page.get_by_label("Quotas").fill("ada = 50")
    page.get_by_role("button", name="Save what is allowed").click()
    assert "What is allowed is saved" in page.inner_text("main")
    table = town.house.ledger.table("visits")
    assert (0.25, {"ada": 0.5}) == (table.policy.largest_share, dict(table.policy.quotas))
    assert {"cost": (0.0, 1_000.0)} == dict(table.bounds)


def test_a_choice_is_entered_for_somebody_and_their_receipt_says_so(town, steward, http):
    page = steward(scripts=False).go("/steward/people")
    page.get_by_role("link", name="Enter a choice").click()
    page.get_by_label("Who", exact=True).fill("nobody there")
    page.get_by_label("Whose people").select_option("patients")
    page.get_by_label("What they chose").fill("0,5")
    page.get_by_role("button", name="Enter this choice").click()
    assert "Nothing was entered" in page.inner_text("main")
    assert "nobody there" == page.input_value("#person")
    page.get_by_label("Who", exact=True).fill("41")
    page.get_by_role("button", name="Enter this choice").click()
    assert "The choice of 41 is entered" in page.inner_text("main")
    said = town.house.ledger.receipt("patients", 41).statements
    assert (0.5, "steward") == (said[-1].epsilon, said[-1].by)
    for _ in range(2):  # sent twice, it acts once
        form = {"register": "patients", "person": "41", "level": "0", "once": "x"}
        assert "data is not used" in sent(http, "/steward/choice", **form).text
    assert len(said) + 1 == len(town.house.ledger.receipt("patients", 41).statements)
    hostile = sent(http, "/steward/choice", register="patients", person=HOSTILE, level=HOSTILE)
    assert (422, False) == (hostile.status_code, "<img" in hostile.text)


def test_types_zones_steps_and_lookups_are_declared_on_the_page(town, http):
    rows = [f"w{row};{row};{row % 2};2025-03-0{row + 1} 23:30:00;1" for row in range(5)]
    (town.folder / "texts.csv").write_text("\n".join(["who;age;ward;at;eps", *rows]))
    (town.folder / "wards.csv").write_text("ward,name\n0,north\n1,south\n")
    columns = ["who", "age", "ward", "at", "eps"]
    form = {"source": "texts.csv", "delimiter": ";", "name": "texts", "person": "who", "whose": "own", "epsilon": "eps"}
    form |= {"column": columns, "type": ["", "DOUBLE", "", "TIMESTAMP", ""], "step": ["", "0.5", "", "", ""]}
    form |= {"low": ["", "0", "", "2025-01-01", ""], "high": ["", "120", "", "2025-12-31", ""], "keys": [""] * 5}
    form |= {"lookups": "wards = wards.csv, ward, public", "separate": "yes", "rows_per_person": "1"}
    shown = sent(http, "/steward/protect", **form, do="read")
    assert 200 == shown.status_code
    assert all(
        part in shown.text for part in ('<span class="tag">double</span>', "Time zone of at", "wards = wards.csv")
    )
    wrong = sent(http, "/steward/protect", **form, zone=["", "", "", "Nowhere", ""])
    assert (422, True) == (wrong.status_code, "Nowhere" in wrong.text)
    made = sent(http, "/steward/protect", **form, zone=["", "", "", "Europe/Berlin", ""])
    assert (200, True) == (made.status_code, "texts is protected" in made.text)
    table = town.house.ledger.table("texts")
    assert {"age": 0.5} == dict(table.grid)
    assert ("DOUBLE", "TIMESTAMP") == (table.columns["age"], table.columns["at"])
    assert "Europe/Berlin" in table.origin
    assert "ward" == table.lookups["wards"].key
    outside = sent(http, "/steward/protect", **{**form, "name": "more", "lookups": "x = ../wards.csv, ward"})
    assert 422 == outside.status_code
    assert "must be a file below" in outside.text


def test_the_picture_of_a_letter_holds_its_link(town, steward):
    """Every square of what Chromium shows is the one that the code of the link has, in dark mode too."""
    page = steward(dark=True, device_scale_factor=4).go("/steward/people")
    page.get_by_label("Whose people").select_option("patients")
    page.get_by_label("Who", exact=True).fill("42")
    page.get_by_role("button", name="Make the codes").click()
    link = f"{town.url}/sign-in?code={page.inner_text('.letter .code')}"
    wanted = segno.make(link, error="m", micro=False)
    shown = Image.open(io.BytesIO(page.locator(".letter svg.qr").screenshot())).convert("L")
    size = len(wanted.matrix) + 6  # three squares of quiet around it
    step = shown.width / size
    found = [
        [shown.getpixel((int((x + 0.5) * step), int((y + 0.5) * step))) < 128 for x in range(size)] for y in range(size)
    ]
    expected = [[bool(one) for one in row] for row in wanted.matrix_iter(border=3)]
    assert expected == found


def waiting(page) -> str:
    """Return what waits; a busy machine may need several looks to check the sources."""
    for _ in range(60):
        told = page.get_by_role("heading", name="What waits for you").locator("..").inner_text()
        if "still being checked" not in told:
            break
        page.reload()
    return told


def test_the_overview_says_what_waits(tmp_path, visit, accessible):
    """Edited data, a stop, a token that ends soon; and after a refresh they are gone."""
    with served(tmp_path) as town:
        town.house.access.token("ada", label="notebook", lasts=timedelta(days=3))
        town.house.ledger.stop("patients", charge="", shape="")
        rows = parquet.read_table(tmp_path / "visits.parquet")
        parquet.write_table(rows.slice(1), tmp_path / "visits.parquet")
        here = visit(town=town)
        page = here.sign_in(town.house.access.link("sam"))
        waits = waiting(page)
        assert all(re.search(part, waits) for part in ("patients and visits", "visits was edited", "“notebook” of ada"))
        accessible(page)
        page.get_by_role("link", name="admit it").click()
        page.get_by_role("button", name="Admit the data as it is now").click()
        assert "The data is admitted as it is now" in page.inner_text("main")
        page.get_by_role("button", name="Answer questions about patients and visits again").click()
        page.get_by_role("link", name="Overview").click()
        waits = waiting(page)
        assert "edited" not in waits.replace("no source was edited", "")
        assert "Nobody can ask" not in waits

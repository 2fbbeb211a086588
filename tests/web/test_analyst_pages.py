"""An analyst in Chromium: from the link to a question, what it would cost, its answer, and the files."""

import json
import re

import pytest
from pyarrow import csv, parquet

from served import Served, served

GROUPED = "SELECT region, AVG(age) AS mean\nFROM patients\nGROUP BY region"
SILENT = "SELECT region, AVG(income) AS income FROM patients GROUP BY region"
COMPOUND = (
    "SELECT n * 2 AS twice FROM (SELECT COUNT(*) AS n FROM patients WHERE smoker)",
    "SELECT (SELECT COUNT(*) FROM patients WHERE smoker) - (SELECT COUNT(*) FROM patients WHERE age > 50) AS more",
    "SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS place, COUNT(*) FROM patients GROUP BY region",
)
HOSTILE = "</textarea></pre><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7654321*1234567 }}"


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Served:
    with served(tmp_path_factory.mktemp("analyst")) as started:
        yield started


@pytest.fixture
def ada(visit, town):
    """An analyst who signed in with a link."""

    def begin(**how):
        here = visit(town=town, **how)
        here.sign_in(town.house.access.link("ada"))
        return here

    return begin


def charges(town) -> int:
    return len(town.house.ledger.askings(most=1_000))


def test_from_the_link_to_the_answer_and_its_files(ada, town):
    page = ada().page
    assert f"{town.url}/ask" == page.url
    page.fill("#sql", GROUPED)
    page.locator("#outlook .headline").wait_for()  # while typing pauses, without a click
    assert re.search(r"This uses .* of everyone’s allowance. 10 such questions are left", page.inner_text("#outlook"))
    assert 0 == charges(town)
    page.get_by_role("button", name="Ask and spend").click()
    page.wait_for_url("**/answers/*")
    assert 1 == charges(town)
    assert 2 == page.locator("svg.chart .whisker").count() == page.locator("table.answer tbody tr").count()
    assert page.get_by_role("columnheader", name="mean: 95 % interval").is_visible()
    found = {}
    for kind, name in (("csv", "CSV"), ("json", "JSON"), ("parquet", "Parquet")):
        with page.expect_download() as started:
            page.get_by_role("link", name=re.compile(f"^{name}")).click()
        found[kind] = started.value.path()
    told = json.loads(found["json"].read_text())
    means = [row["mean"] for row in told["rows"]]
    assert (
        means
        == csv.read_csv(found["csv"])["mean"].to_pylist()
        == parquet.read_table(found["parquet"])["mean"].to_pylist()
    )
    assert ["N", "S"] == [row["region"] for row in told["rows"]]


HOW = {"mechanism": "sample", "options": "threshold = mean", "expect_low": "0", "expect_high": "0.5"}


def test_without_scripts_everything_works(ada, town):
    page = ada(scripts=False).page
    page.fill("#sql", "SELECT COUNT(*) AS n FROM visits WHERE department = 'surgery'")
    page.get_by_text("More options").click()
    page.select_option("#mechanism", HOW["mechanism"])
    for name in ("options", "expect_low", "expect_high"):
        page.fill(f"[name={name}]", HOW[name])
    page.get_by_role("button", name="Explain, free").click()
    assert "of everyone’s allowance" in page.inner_text("#outlook")
    before = charges(town)
    page.get_by_role("button", name="Ask and spend").click()
    assert "With 95 % confidence, n is" in page.inner_text("main")
    assert re.fullmatch(r"[\d,.]+ to [\d,.]+", page.get_by_role("heading", level=1).inner_text())
    assert before + 1 == charges(town)
    page.get_by_role("link", name="Change the question").click()
    assert "surgery" in page.input_value("#sql")
    assert {**HOW, "options": "threshold=mean"} == {name: page.input_value(f"[name={name}]") for name in HOW}
    page.press("#percent", "Enter")  # the free button is the one that Enter presses
    assert before + 1 == charges(town)


def test_what_is_wrong_is_told_next_to_the_question_and_nothing_is_charged(ada, town):
    page = ada().page
    before = charges(town)
    page.fill("#sql", "SELECT patient_id, age FROM patients")
    page.get_by_role("alert").wait_for()
    assert "Nothing was charged" in page.get_by_role("alert").inner_text()
    page.get_by_role("button", name="Ask and spend").click()
    page.wait_for_load_state()
    assert "SELECT patient_id, age FROM patients" == page.input_value("#sql")
    page.fill("#percent", "much")
    page.get_by_text("must be a number of percent").wait_for()
    assert before == charges(town)


@pytest.mark.parametrize("sql", COMPOUND)
def test_sql_above_released_values_has_an_answer_with_an_address(town, sql):
    before = charges(town)
    with town.browser(town.house.access.link("ada")) as ada:

        def asked(sql, path="/ask", do="answer"):
            hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', ada.get("/ask").text))
            return ada.post(path, data={**hidden, "sql": sql, "percent": "1", "do": do})

        assert "Paid by" in (told := asked(sql, "/ask/explain", "").text) or "people" in told
        assert before == charges(town)
        shown = asked(sql)
        assert 303 == shown.status_code
        name = re.search(r"AS (\w+)", sql.replace("AS n ", "")).group(1)
        assert name in ada.get(shown.headers["location"]).text
        assert before + 1 == charges(town)
        assert "You asked this before: asking it again is free." in asked(sql, "/ask/explain", "").text
        other = asked(f"SELECT COUNT(*) AS rows_found FROM ({sql})")  # computed from the same parts, for nothing
        assert 200 == other.status_code
        assert "Nothing was charged. This was computed from what" in other.text
        assert "rows_found" in other.text
    assert before + 1 == charges(town)


def test_names_are_completed_and_words_coloured(ada):
    page = ada().page
    page.click("#sql")
    page.keyboard.type("SELECT AVG(inc")
    page.get_by_role("option", name="income").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.type(") FROM pat")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.input_value("#sql").startswith("SELECT AVG(income) FROM pat")
    assert "SELECT" == page.locator(".editor .word").first.inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".completion").is_hidden()


def test_an_answer_that_says_nothing_says_so_and_offers_three_ways(ada, town):
    page = ada().page
    page.fill("#sql", SILENT)
    page.fill("#percent", "0.01")
    page.get_by_text("would say nothing").wait_for()
    assert 3 == page.locator("#outlook .ways li").count()
    page.get_by_role("button", name="Ask and spend").click()
    page.get_by_text("This answer says nothing").wait_for()
    assert 0 == page.locator("svg.chart").count()
    assert 2 == page.locator("table.answer tbody tr").count()
    before = charges(town)
    page.get_by_role("button", name="Look at this question").first.click()
    page.locator("#outlook .headline").wait_for()
    assert 0 == page.get_by_text("would say nothing").count()
    assert before == charges(town)


def test_a_question_sent_twice_is_charged_once(ada, town):
    page = ada().page
    before = charges(town)
    page.fill("#sql", "SELECT COUNT(*) FROM patients WHERE age > 51")
    page.fill("#percent", "1")
    send = (
        "said = new URLSearchParams(new FormData(document.getElementById('ask'))); said.set('do', 'answer');"
        "Promise.all([1, 2].map(() => fetch('/ask', {method: 'POST', body: said}).then(r => r.url)))"
    )
    first, second = page.evaluate(send)
    assert first == second
    assert "/answers/" in first
    assert before + 1 == charges(town)


def test_back_leads_to_the_editor_and_an_expired_session_spends_nothing(visit, town):
    town.house.access.add("eve", "analyst")
    here = visit(town=town)
    page = here.sign_in(town.house.access.link("eve"))
    page.fill("#sql", "SELECT COUNT(*) FROM patients WHERE age > 52")
    page.get_by_role("button", name="Ask and spend").click()
    page.wait_for_url("**/answers/*")
    page.go_back()
    page.locator("#sql").wait_for()
    assert page.url.endswith("/ask")
    other = here.tab()
    other.goto(f"{town.url}/history")
    assert 1 == other.locator(".asked li").count()
    before = charges(town)
    town.house.access.revoke("eve")
    page.fill("#sql", "SELECT COUNT(*) FROM patients WHERE age > 53")
    page.get_by_role("button", name="Ask and spend").click()
    page.get_by_role("heading", name="You are signed out").wait_for()
    assert before == charges(town)


def test_hostile_texts_stay_texts_on_every_page(ada, visit, town):
    """A literal, a column's name, a member's name and an address that hold markup and templates."""
    quoted = HOSTILE.replace('"', '""')
    page = ada().page
    page.fill(
        "#sql",
        f'SELECT region AS "{quoted}", COUNT(*) AS "n{quoted}" FROM patients WHERE region <> \'{HOSTILE}\' '
        f"GROUP BY region",
    )
    page.get_by_role("button", name="Ask and spend").click()
    page.wait_for_url("**/answers/*")
    entry = page.url.rpartition("/")[2]
    assert 1 == page.get_by_role("columnheader", name=HOSTILE, exact=True).count()
    for path in ("/history", "/history?of=everybody", f"/ask?from={entry}", "/balance", f"/ask?table={HOSTILE}"):
        page.goto(town.url + path)
        assert 0 == page.locator("main img").count()
        assert str(7654321 * 1234567) not in page.locator("main").inner_text()
    name = "<img src=x onerror=alert(3)>"
    town.house.access.add(name, "analyst")
    other = visit(town=town).sign_in(town.house.access.link(name))
    assert name in other.inner_text("header")
    other.goto(f"{town.url}/answers/{entry}")
    assert HOSTILE not in other.content()
    assert "Another analyst asked this" in other.inner_text("main")
    assert "alert(" not in other.locator("main").inner_html()
    other.goto(f"{town.url}/ask")
    other.fill("#sql", f"SELECT {HOSTILE}")
    other.get_by_role("alert").wait_for()


def test_every_page_of_an_analyst_is_accessible(ada, town, accessible):
    with town.connect("ada") as db:
        grouped = db.sql(GROUPED, share=0.1).entry
        median = db.sql("SELECT MEDIAN(age) FROM patients", share=0.05).entry
    for phone in (False, True):
        page = ada(phone=phone).page
        paths = ["/ask", f"/ask?from={grouped}", f"/answers/{grouped}", "/tables"]
        for path in paths if phone else [*paths, f"/answers/{median}", "/history", "/balance"]:
            page.goto(town.url + path)
            accessible(page)


def test_a_stopped_table_is_shown_as_stopped(visit, tmp_path, accessible):
    with served(tmp_path) as town:
        town.house.ledger.stop("patients", charge="", shape="")
        page = visit(town=town).sign_in(town.house.access.link("ada"))
        page.goto(f"{town.url}/ask?table=patients")
        assert "Questions about this table are stopped" in page.get_by_role("alert").inner_text()
        page.goto(f"{town.url}/tables")
        assert 2 == page.get_by_text("stopped", exact=True).count()
        accessible(page)


def test_pages_are_below_a_hundred_kilobytes_with_all_they_load(ada, town):
    here = ada()
    here.page.goto(f"{town.url}/ask?table=patients")
    sizes = here.page.evaluate(
        "performance.getEntries().filter(e => 'decodedBodySize' in e).map(e => e.decodedBodySize)"
    )
    assert 10_000 < sum(sizes) < 100_000


def test_the_program_to_copy_gives_the_same_answer(ada, town, monkeypatch):
    page = ada().page
    page.fill("#sql", "SELECT COUNT(*)\nFROM patients\nWHERE region = 'N' -- it's \"north\"")
    page.fill("#percent", "2")
    page.get_by_text("Copy as Python").wait_for()
    page.locator("#python", has_text="share=0.02").wait_for(state="attached")
    program = page.locator("#python").text_content()
    monkeypatch.setenv("DISCRETION_TOKEN", town.tokens["ada"])
    names: dict = {}
    exec(program, names)
    names["db"].close()
    asked = town.house.ledger.askings(analyst="ada", most=1)[0]
    assert names["answer"].entry == asked.entry
    assert 0.02 == asked.share
    page.goto(f"{town.url}/answers/{asked.entry}")
    exec(page.locator("#python").text_content(), names)
    names["db"].close()
    assert names["answer"].entry == asked.entry

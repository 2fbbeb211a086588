"""A person in Chromium: from the link to the choice, the receipt, every answer, and a copy to keep."""

import json
import re

import pytest
from pyarrow import parquet

from discretion.service.pages.paging import Paging
from served import Served, served

HOSTILE = "</pre><img src=x onerror=alert(1)><script>alert(2)</script>\"'"


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Served:
    """A clinic where questions with hostile texts were asked."""
    with served(tmp_path_factory.mktemp("person")) as started:
        with started.connect("ada") as db:
            db.sql("SELECT region, AVG(age) FROM patients WHERE smoker GROUP BY region", share=0.02)
            quoted = HOSTILE.replace("'", "''").replace('"', '""')
            db.sql(f"SELECT COUNT(*) AS \"{quoted}\" FROM patients WHERE region = '{quoted}'", share=0.01)
        yield started


def choose(page, epsilon: float) -> None:
    page.get_by_role("link", name=re.compile("^(Choose|Change)")).first.click()
    page.locator(f'input[value="{epsilon:g}"]').check()
    page.get_by_role("button", name="Save my choice").click()
    page.get_by_role("heading", name="Your choice is saved").wait_for()


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_link_to_a_choice_and_back_again(visit, town, scripts):
    """Withdrawing takes as many clicks as coming back, and nothing is chosen in advance."""
    here = visit(town=town, scripts=scripts)
    page = here.sign_in(town.letter(21 + scripts))
    assert "You have not chosen here yet" in page.inner_text("main")
    page.get_by_role("link", name="Choose", exact=True).click()
    assert 0 == page.locator("input:checked").count()
    page.get_by_role("button", name="Save my choice").click()
    assert "Choose how your data may be used." in page.get_by_role("alert").inner_text()
    page.get_by_label("Do not use my data").check()
    page.get_by_role("button", name="Save my choice").click()
    assert "Do not use my data" in page.inner_text("main")
    assert "From now on no answer uses your data." in page.inner_text("main")
    page.goto(f"{town.url}/me")
    assert "was used while you allowed more" in page.inner_text("main")  # not "0.15 of 0 is used"
    choose(page, 1)
    assert "An allowance of 1" in page.inner_text("main")
    page.get_by_role("link", name="Go to the overview").click()
    assert "up to an allowance of 1" in page.get_by_role("heading", level=1).inner_text()


def test_before_choosing_each_level_is_shown_next_to_the_one_held(visit, town):
    page = visit(town=town).sign_in(town.letter(23))
    page.goto(f"{town.url}/me/choose")
    for place in range(4):
        page.locator(f"#level-{place}").check()
        shown = page.locator(".meaning:visible")
        assert 1 == shown.count()
        held = "This is the level that you have now" in shown.inner_text()
        assert held or ("Now" in shown.inner_text() and "Then" in shown.inner_text())
    assert 1 == page.get_by_text("you have this now").count()


def test_every_page_of_a_person_is_accessible(visit, town, accessible):
    for phone in (False, True):
        page = visit(town=town, phone=phone).sign_in(town.letter(24))
        choose(page, 5)
        for path in ("/me", "/me/choose", "/me/answers", "/me/print", "/me/chosen"):
            page.goto(town.url + path)
            if path == "/me/choose":
                page.locator("#level-1").check()
            accessible(page)


def test_answers_are_told_in_words_without_what_analysts_wrote(visit, town):
    page = visit(town=town).sign_in(town.letter(25))
    page.get_by_role("link", name="See all answers").click()
    text = page.inner_text("main")
    assert "The average of age by region among patients with a condition on smoker" in text
    assert "16 November" in text or re.search(r"\d{1,2} \w+ 20\d\d", text)
    for path in ("/me", "/me/answers", "/me/print", "/v1/receipt"):
        page.goto(town.url + path)
        assert "alert(" not in page.content()
        assert not re.search(r"\bada\b", page.content())  # the id of an entry may hold these letters


def test_a_choice_sent_twice_is_written_down_once(visit, town):
    here = visit(town=town)
    page = here.sign_in(town.letter(26))
    page.goto(f"{town.url}/me/choose")
    page.locator("#level-1").check()
    page.evaluate(
        "form = document.querySelector('main form'); fetch('/me/choose', {method: 'POST', body: "
        "new URLSearchParams(new FormData(form))}).then(() => form.submit())"
    )
    page.get_by_role("heading", name="Your choice is saved").wait_for()
    assert 2 == len(town.house.ledger.receipt("patients", "26").statements)
    page.go_back()
    page.reload()
    page.locator("#level-2").check()
    page.get_by_role("button", name="Save my choice").click()
    page.get_by_role("heading", name="Your choice is saved").wait_for()
    assert 3 == len(town.house.ledger.receipt("patients", "26").statements)


def test_two_tabs_and_an_old_page_show_what_holds_now(visit, town):
    here = visit(town=town)
    first, second = here.sign_in(town.letter(27)), here.tab()
    second.goto(f"{town.url}/me/choose")
    choose(first, 5)
    second.get_by_label("Do not use my data").check()
    second.get_by_role("button", name="Save my choice").click()
    second.get_by_role("heading", name="Your choice is saved").wait_for()
    first.goto(f"{town.url}/me")
    assert "Your data is not used" in first.get_by_role("heading", level=1).inner_text()


def test_a_session_that_is_over_says_so_and_nothing_was_sent(visit, town, accessible):
    here = visit(town=town)
    entry, letters = town.house.access.invite("patients", [28])
    page = here.sign_in(letters[0][1])
    page.goto(f"{town.url}/me/choose")
    page.locator("#level-0").check()
    town.house.access.withdraw_all(entry)
    page.get_by_role("button", name="Save my choice").click()
    assert "You are signed out" == page.get_by_role("heading", level=1).inner_text()
    accessible(page)
    assert 1 == len(town.house.ledger.receipt("patients", "28").statements)


def test_the_copy_to_keep_is_printable_and_a_file(visit, town):
    page = visit(town=town).sign_in(town.letter(29))
    page.goto(f"{town.url}/me/print")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    told = json.loads(started.value.path().read_text())
    assert "my-receipt.json" == started.value.suggested_filename
    assert 2 == len(told["releases"])
    page.emulate_media(media="print")
    assert not page.get_by_role("link", name="Download").is_visible()
    assert not page.get_by_role("button", name="Sign out").is_visible()


def test_people_who_are_in_the_data_and_people_who_are_not_see_the_same(town):
    """Somebody without a single visit sees byte for byte what somebody with visits sees, except the form's keys."""
    ledger = town.house.ledger
    visited = set(parquet.read_table(town.folder / "visits.parquet")["patient_id"].to_pylist())
    alike = [n for n in range(100, 400) if ledger.receipt("patients", str(n), most=0).allowance == 1.0]
    absent = next(n for n in alike if n not in visited)
    present = next(n for n in alike if n in visited)
    pages = set()
    for person in (absent, present):
        with town.browser(town.letter(person)) as client:
            shown = [client.get(path).text for path in ("/me", "/me/choose", "/me/answers")]
            pages.add(re.sub(r'(name="(csrf|once)" value=)"\w+"', r"\1", "".join(shown)))
    assert 1 == len(pages)


def test_pages_are_small(town):
    with town.browser(town.letter(30)) as client:
        for path in ("/me", "/me/choose", "/me/answers", "/me/print"):
            assert len(client.get(path).content) < 60_000


def test_a_long_list_is_read_in_parts_to_its_end(town, monkeypatch):
    monkeypatch.setattr(Paging, "MOST", 1)
    seen, path = [], "/me/answers"
    with town.browser(town.letter(31)) as client:
        for _ in range(2):
            text = client.get(path).text
            seen += re.findall(r"Entry (\d+-\w+) about", text)
            path = next(iter(re.findall(r'href="(/me/answers\?before=\d+)" rel="next"', text)), "")
        assert "" == path
        assert seen[0] in client.get("/me/answers?before=nonsense").text
        assert 200 == client.get(f"/me/answers?before={'9' * 18}").status_code
        assert "anything more" in client.get("/me/answers?before=1").text
    assert [use.entry for use in reversed(town.house.ledger.receipt("patients", "31").releases)] == seen

"""The way in, and what is shown when something is refused: pages for everybody, with and without scripts."""

import re

import pytest

from discretion.service.pages import STATIC, static

KINDS = {
    "/": "Answers about people",
    "/sign-in": "Sign in",
    "/promise": "What people are promised",
    "/nowhere": "There is no such page",
}


@pytest.mark.parametrize(("path", "title"), KINDS.items())
def test_pages_for_everybody_are_accessible_on_phone_and_desk(visit, accessible, path, title):
    for phone in (True, False):
        page = visit(phone=phone).go(path)
        assert title in page.get_by_role("heading", level=1).inner_text()
        accessible(page)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_link_signs_in_once_and_a_second_time_says_what_to_do(visit, clinic_town, accessible, scripts):
    code = clinic_town.letter(11)
    page = visit(scripts=scripts).sign_in(code)
    assert page.get_by_role("button", name="Sign out").is_visible()
    other = visit(scripts=scripts)
    other.go(f"/sign-in?code={code}").get_by_role("button", name="Sign in").click()
    assert "Ask the data owner for a new one" in other.page.get_by_role("alert").inner_text()
    if scripts:
        accessible(other.page)


def test_signing_out_leads_to_the_start_and_back_shows_nothing_private(visit, clinic_town):
    here = visit()
    page = here.sign_in(clinic_town.letter(12))
    signed_in = page.url
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in").wait_for()
    page.go_back()
    page.reload()
    assert page.url != signed_in or page.get_by_role("button", name="Sign out").count() == 0


def test_a_refused_page_is_a_page_for_browsers_and_a_problem_for_programs(clinic_town):
    with clinic_town.http("", Accept="text/html") as browser, clinic_town.http() as program:
        shown, told = browser.get("/nowhere"), program.get("/nowhere")
    assert (404, 404) == (shown.status_code, told.status_code)
    assert "text/html" in shown.headers["content-type"]
    assert "InvalidDeclaration" == told.json()["code"]


def test_static_files_are_kept_for_good_under_an_address_that_names_their_version(clinic_town):
    with clinic_town.http() as client:
        page = client.get("/").text
        for name in ("style.css", "page.js", "icon.svg"):
            assert static(name) in page
            assert "immutable" in client.get(static(name)).headers["cache-control"]
            assert "immutable" not in client.get(f"/static/{name}?v=0").headers["cache-control"]
        assert 404 == client.get("/static/vendor/nothing.js").status_code


def test_templates_and_scripts_hold_no_inline_code_and_ask_no_other_site():
    folder = STATIC.parent / "templates"
    for path in folder.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\son\w+=|style=|<script(?![^>]*\ssrc=)|<style|javascript:|\|\s*safe", text), path.name
        assert "//" not in text.replace("://", "") or "http" not in text, path.name
    for path in [*STATIC.glob("*.js"), *STATIC.glob("*.css")]:
        assert not re.search(r"https?://|eval\(|innerHTML", path.read_text()), path.name


def test_the_vendored_script_is_the_only_one_and_has_its_licence():
    vendored = sorted(path.name for path in (STATIC / "vendor").iterdir())
    assert ["htmx-2.0.11.min.js", "htmx-LICENSE.txt"] == vendored


def test_a_form_of_an_earlier_session_is_refused_with_a_page_that_says_why(visit, clinic_town):
    here = visit()
    page = here.sign_in(clinic_town.letter(13))
    page.goto(f"{clinic_town.url}/me/choose")
    page.locator("#level-0").check()
    other = here.tab()
    other.goto(f"{clinic_town.url}/sign-in?code={clinic_town.letter(14)}")
    other.get_by_role("main").get_by_role("button", name="Sign in").click()
    other.get_by_role("button", name="Sign out").wait_for()
    page.get_by_role("button", name="Save my choice").click()
    assert "This page is too old" == page.get_by_role("heading", level=1).inner_text()
    for person in ("13", "14"):
        assert 1 == len(clinic_town.house.ledger.receipt("patients", person).statements)

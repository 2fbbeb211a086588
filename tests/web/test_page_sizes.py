"""Every page is small: its HTML and every file that it loads for the first time, without compression, in Chromium."""

import pytest

from served import COUNT

MOST = 100_000  # bytes
PAGES = {
    "": ("/", "/sign-in", "/promise"),
    "person": ("/me", "/me/choose", "/me/answers", "/me/print"),
    "analyst": ("/ask", "/ask?table=patients", "/tables", "/history", "/balance", "{answer}"),
    "steward": (
        *("/steward", "/steward/tables", "/steward/table?name=patients", "/steward/policy?name=patients"),
        *("/steward/protect", "/steward/protect?source=more.parquet", "/steward/people", "/steward/choice"),
        *("/steward/members", "/steward/use", "/steward/audit"),
    ),
}


@pytest.mark.parametrize("role", PAGES)
def test_a_page_is_below_100_kilobytes(visit, clinic_town, role):
    here = visit()
    if role:
        access = clinic_town.house.access
        codes = {"person": lambda: clinic_town.letter(7), "analyst": lambda: access.link("ada")}
        here.sign_in(codes.get(role, lambda: access.link("sam"))())
    with clinic_town.connect("ada") as db:
        answer = db.sql(COUNT, share=0.01).entry
    sizes: dict[str, int] = {}
    for path in PAGES[role]:
        loaded = []
        tab = here.tab()
        tab.on("response", lambda one, loaded=loaded: loaded.append(one))
        tab.route("**/*", lambda route: route.continue_())  # without the browser's cache
        tab.goto(here.url + path.format(answer=f"/answers/{answer}"), wait_until="networkidle")
        sizes[path] = sum(len(one.body()) for one in loaded if one.status == 200)
        tab.close()
    assert {} == {path: size for path, size in sizes.items() if not 1_000 < size < MOST}

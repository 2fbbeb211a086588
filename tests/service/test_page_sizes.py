"""Every page is small: its HTML and every file that it names, without compression."""

import re

import pytest

from served import COUNT, served

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


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """Give a service of its own: others declare more tables, and the page to ask on lists the columns of all."""
    with served(tmp_path_factory.mktemp("sizes")) as started:
        yield started


@pytest.mark.parametrize("role", PAGES)
def test_a_page_is_below_100_kilobytes(town, role):
    with town.connect("ada") as db:
        answer = db.sql(COUNT, share=0.01).entry
    names = {"analyst": "ada", "steward": "sam"}
    code = town.letter(7) if role == "person" else town.house.access.link(names[role]) if role else ""
    with town.browser(code) if role else town.http() as client:
        sizes = {path: _size(client, path.format(answer=f"/answers/{answer}")) for path in PAGES[role]}
    assert {} == {path: size for path, size in sizes.items() if not 1_000 < size < MOST}


def _size(client, path: str) -> int:
    page = client.get(path, headers={"Accept": "text/html"})
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text))
    assert 200 == page.status_code
    assert len(files) >= 3  # a stylesheet, a script, an icon
    return len(page.content) + sum(len(client.get(file).content) for file in files)

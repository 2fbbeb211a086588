"""Every quotation from the four papers is found in the paper's text, where the papers are at hand."""

import re
import unicodedata
from pathlib import Path

import pytest

from discretion.papers import FIGURES

ROOT = Path(__file__).parent.parent.parent
PAPERS = ROOT.parent / "shared" / "papers"
FILES = {"AGK16": "001_*.txt", "SDSM17": "002_*.txt", "LXJJ17": "003_*.txt", "JYC15": "004_*.txt"}
OF_FIGURE = {"hdp": "AGK16", "idp": "SDSM17", "partitioning": "LXJJ17", "pdp": "JYC15"}
PAGES = ["errata.md", "papers.md", "inventory.md"]
QUOTATION = re.compile(r"“([^”]+)”")  # these quotation marks are used for the papers' own words only
HEADING = re.compile(r"^## .*?\[(\w+)\]", flags=re.MULTILINE)
NAMED = {
    "varepsilon": "ε",
    "epsilon": "ε",
    "alpha": "α",
    "gamma": "γ",
    "delta": "δ",
    "sigma": "σ",
    "kappa": "κ",
    "log": "log",
}


def plain(text):
    """Letters and digits only: white space, hyphenation, ligatures, mark-up and punctuation are left out."""
    text = re.sub(r"</?(sup|sub|i|b)>", "", unicodedata.normalize("NFKD", text))
    text = re.sub(r"\\([A-Za-z]+)", lambda command: NAMED.get(command[1], ""), text)
    return "".join(letter for letter in text.lower() if letter.isalnum())


def fragments(quote):
    """The parts between ellipses: each must occur, in this order."""
    return [plain(part) for part in re.split(r"\[?…\]?", quote) if plain(part)]


def contains(text, quote):
    place = 0
    for part in fragments(quote):
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def quoted_pages():
    """(page, paper, quotation) of every quotation in the documentation, by the paper that its heading names."""
    found = []
    for name in PAGES:
        text = (ROOT / "docs" / name).read_text()
        parts = HEADING.split(text)
        assert not QUOTATION.search(parts[0]), f"{name}: a quotation must stand below a heading that names its paper"
        for paper, section in zip(parts[1::2], parts[2::2], strict=True):
            found += [(name, paper, quote) for quote in QUOTATION.findall(section)]
    return found


def quoted_claims():
    return [
        (figure.id, OF_FIGURE[figure.id.split("-")[0]], claim.quote)
        for figure in FIGURES.values()
        for claim in figure.claims
        if claim.quote
    ]


@pytest.fixture(scope="module")
def papers():
    if not PAPERS.is_dir():
        pytest.skip(f"NOT CHECKED: the papers are not at {PAPERS}, so no quotation was compared with its paper.")
    return {key: plain(next(PAPERS.glob(pattern)).read_text()) for key, pattern in FILES.items()}


@pytest.mark.parametrize("quotations", [quoted_pages, quoted_claims], ids=["pages", "claims"])
def test_every_quotation_is_in_its_paper(papers, quotations):
    found = quotations()
    assert len(found) > 50
    missing = [f"{where}: {paper}: {quote}" for where, paper, quote in found if not contains(papers[paper], quote)]
    assert [] == missing


def test_a_quotation_that_nobody_wrote_is_noticed(papers):
    assert not contains(papers["JYC15"], "publishing the scale is harmless")
    assert not contains(papers["JYC15"], "PE is the clear winner … when density is low")  # the other order
    assert contains(papers["JYC15"], "when density is low … PE is the clear winner")


def test_quotations_are_long_enough_to_mean_something():
    for where, _, quote in quoted_pages() + quoted_claims():
        assert max(map(len, fragments(quote))) >= 12, f"{where}: {quote}"


def test_ligatures_hyphens_and_mark_up_do_not_matter():
    assert contains(plain("the eﬃ-\ncient $\\varepsilon$-<sup>1</sup>DP"), "efficient ε-1DP")


def test_every_erratum_quotes_its_paper_and_names_the_section():
    text = (ROOT / "docs" / "errata.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| where")]
    assert len(rows) > 50
    for row in rows:
        where, printed = row.split(" | ")[:2]
        assert QUOTATION.search(printed), f"no quotation: {row[:80]}"
        assert where.strip("| "), f"no section: {row[:80]}"


def test_every_test_that_the_errata_name_exists():
    text = (ROOT / "docs" / "errata.md").read_text()
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    named = set(re.findall(r"::(test_\w+)", text)) | set(re.findall(r"`(test_with_\w+)`", text))
    assert len(named) > 40
    assert [] == [name for name in sorted(named) if f"def {name}(" not in sources]


STATES = ["there", "differs", "weaker", "missing today", "refused", "none"]


def test_the_inventory_counts_its_own_rows_and_nothing_is_missing_without_a_reason():
    text = (ROOT / "docs" / "inventory.md").read_text()
    table, *sections = text.split("\n## ")
    total = [0] * len(STATES)
    for section in sections:
        rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
        assert all(len(row) == 4 and row[2] in STATES and row[3] for row in rows), section.splitlines()[0]
        assert all("issue 16" in row[3] or "as above" in row[3] for row in rows if row[2] == "missing today")
        counts = [sum(row[2] == state for row in rows) for state in STATES]
        assert f"| {section.splitlines()[0]} | {' | '.join(map(str, counts))} |" in table
        total = [a + b for a, b in zip(total, counts, strict=True)]
    assert f"| all | {' | '.join(map(str, total))} |" in table
    assert sum(total) > 130

"""Fill a page with what a run found: everything between `<!-- figure ID -->` and `<!-- end -->` is replaced."""

import re
from collections.abc import Iterable
from pathlib import Path

from discretion.errors import InvalidDeclaration
from discretion.papers.figure import Outcome

PLACE = re.compile(r"(<!-- figure ([\w-]+) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def fill(page: Path, outcomes: Iterable[Outcome], folder: Path) -> None:
    """Put the verdicts and plots of these outcomes in their places; others stay as they are."""
    found = {outcome.figure.id: outcome for outcome in outcomes}
    text = page.read_text()
    missing = found.keys() - {name for _, name, _ in PLACE.findall(text)}
    if missing:
        raise InvalidDeclaration(f"{page.name} needs a place <!-- figure ID --> for {', '.join(sorted(missing))}.")

    def place(match: re.Match[str]) -> str:
        outcome = found.get(match[2])
        if outcome is None:
            return match[0]
        plot = folder.resolve().relative_to(page.parent.resolve()) / f"{outcome.figure.id}.svg"
        return f"{match[1]}{outcome.text()}\n![{outcome.figure.title}]({plot.as_posix()})\n{match[3]}"

    page.write_text(PLACE.sub(place, text))


def count(text: str) -> tuple[int, int]:
    """How many claims a filled page calls reproduced, and how many not."""
    return text.count("- **reproduced**"), text.count("- **not reproduced**")

"""Fill a page with what runs found.

Everything between `<!-- figure ID -->` (or `<!-- summary -->`) and `<!-- end -->` is replaced.
"""

import re
from os.path import relpath
from pathlib import Path

from discretion.errors import InvalidDeclaration

SUMMARY = re.compile(r"(<!-- summary -->\n).*?(<!-- end -->)", flags=re.DOTALL)
PLACE = re.compile(r"(<!-- figure ([\w-]+) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def fill(page: Path, folder: Path) -> None:
    """Put every verdict that the folder holds, and its plot, in its place; places without one stay as they are."""
    text = page.read_text()
    verdicts = {path.stem: path for path in sorted(folder.glob("*.md")) if path.resolve() != page.resolve()}
    missing = verdicts.keys() - {name for _, name, _ in PLACE.findall(text)}
    if missing:
        raise InvalidDeclaration(f"{page.name} needs a place <!-- figure ID --> for {', '.join(sorted(missing))}.")

    def place(match: re.Match[str]) -> str:
        if match[2] not in verdicts:
            return match[0]
        plot = Path(relpath(folder / f"{match[2]}.svg", page.parent)).as_posix()
        return f"{match[1]}{verdicts[match[2]].read_text()}\n![{match[2]}]({plot})\n{match[3]}"

    filled = PLACE.sub(place, text)
    page.write_text(SUMMARY.sub(lambda match: f"{match[1]}{_summary(filled)}\n{match[2]}", filled))


def count(text: str) -> tuple[int, int]:
    """Return how many claims a filled page calls reproduced, and how many not."""
    return text.count("- **reproduced**"), text.count("- **not reproduced**")


def _summary(text: str) -> str:
    """One line for every heading that has claims below it."""
    lines = ["| paper | claims reproduced | not reproduced |", "|---|---|---|"]
    for section in text.split("\n## ")[1:]:
        held, failed = count(section)
        if held + failed:
            lines.append(f"| {section.splitlines()[0]} | {held} | {failed} |")
    return "\n".join(lines)

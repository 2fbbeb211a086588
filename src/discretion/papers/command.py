"""What `discretion reproduce` does: compute figures with a progress bar, write them, and report every claim."""

import json
import re
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from os.path import relpath
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from discretion.errors import InvalidDeclaration, require
from discretion.papers import FIGURES, Job, compute, expected_seconds, plan
from discretion.papers.figure import Computed, Effort, Figure, Point, Points

__all__ = ["catalogue", "plan", "run"]
FOLDER = ".kept"
SUMMARY = re.compile(r"(<!-- summary -->\n).*?(<!-- end -->)", flags=re.DOTALL)
PLACE = re.compile(r"(<!-- figure ([\w-]+) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def catalogue(jobs: list[Job]) -> list[dict[str, Any]]:
    """Return what there is to compute, and how long each takes."""
    return [
        {"figure": figure.id, "title": figure.title, "runs": effort.runs, "seconds": figure.expected_seconds(effort)}
        for figure, effort in jobs
    ]


def run(
    jobs: list[Job], folder: Path, *, page: Path | None = None, processes: int = 2, resume: bool = False
) -> list[dict[str, Any]]:
    """Compute the jobs; write data, verdict and plot of each; fill the page, if there is one. One summary a figure.

    With `resume`, figures that the folder holds from the same settings, data and code are not computed again.
    """
    draw = _plotter()
    console = Console(stderr=True)
    earlier = [found for figure, effort in jobs if (found := kept(folder, figure, effort))] if resume else []
    known = {outcome.figure.id for outcome in earlier}
    jobs = [job for job in jobs if job[0].id not in known]
    if resume:
        console.print(f"{len(earlier)} figures were computed before in the same way.")
    minutes = expected_seconds(jobs, processes) / 60
    console.print(f"{len(jobs)} figures, about {minutes:.1f} minutes with {processes} processes.")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    made: list[Computed] = list(earlier)
    for outcome in earlier:
        outcome.write(folder)
        draw(outcome, folder)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Reproducing", total=sum(figure.expected_seconds(effort) for figure, effort in jobs))
        for outcome in compute(jobs, processes, lambda seconds: progress.advance(task, seconds)):
            outcome.write(folder)
            draw(outcome, folder)
            keep(folder, outcome)
            made.append(outcome)
            progress.console.print(f"{outcome.figure.id}: {outcome.score()}")
    if page is not None:
        fill(page, folder)
    order = list(FIGURES)
    return [outcome.summary() for outcome in sorted(made, key=lambda outcome: order.index(outcome.figure.id))]


def _plotter() -> Any:
    require("plots", "A plot")
    return import_module("discretion.papers.plot").draw


def keep(folder: Path, outcome: Computed) -> None:
    """Write the points of a figure with every digit, whole or not at all."""
    place = _place(folder, outcome.figure)
    place.parent.mkdir(parents=True, exist_ok=True)
    content = {"mark": mark(outcome.figure, outcome.effort), "points": [asdict(one) for one in outcome.points.rows]}
    half = place.with_suffix(".part")
    half.write_text(json.dumps(content, default=lambda number: number.item()))  # NumPy's own numbers
    half.replace(place)


def kept(folder: Path, figure: Figure, effort: Effort) -> Computed | None:
    """Return a figure that was computed before in the same way; None if there is none."""
    try:
        content = json.loads(_place(folder, figure).read_text())
        if content["mark"] != mark(figure, effort):
            return None
        rows = tuple(Point(**one) for one in content["points"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, or not written by us
    return Computed(figure=figure, points=Points(rows=rows), effort=effort)


def mark(figure: Figure, effort: Effort) -> str:
    """Return a text that differs if anything does that the points depend on: settings, data, code."""
    data = "" if effort.data is None else sha256(effort.data.read_bytes()).hexdigest()
    settings = [figure.id, effort.runs, effort.seed, effort.quick, data, _code()]
    return sha256(json.dumps(settings).encode()).hexdigest()


@lru_cache(maxsize=1)
def _code() -> str:
    """Return a digest of the whole package: any change may change a figure."""
    digest = sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _place(folder: Path, figure: Figure) -> Path:
    return folder / FOLDER / f"{figure.id}.json"


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

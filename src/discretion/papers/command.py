"""What `discretion reproduce` does: compute figures with a progress bar, write them, and report every claim."""

from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from discretion.errors import require
from discretion.papers import FIGURES, Job, compute, expected_seconds, plan
from discretion.papers.figure import Computed
from discretion.papers.kept import keep, kept
from discretion.papers.page import fill

__all__ = ["catalogue", "plan", "run"]


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

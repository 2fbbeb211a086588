"""The four papers: every table and figure as a value that can be computed. This file has the one list of them."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from discretion.errors import InvalidDeclaration, did_you_mean
from discretion.papers import (
    hdp,
    hdp_groups,
    hdp_naive,
    hdp_utility,
    idp,
    idp_examples,
    partitioning,
    partitioning_rounds,
    pdp,
    pdp_median,
    regression,
    svm,
)
from discretion.papers.data import recognise
from discretion.papers.figure import Computed, Effort, Figure, Points, reproduce

_MODULES = (
    pdp,
    pdp_median,
    regression,
    idp,
    idp_examples,
    partitioning,
    partitioning_rounds,
    svm,
    hdp,
    hdp_groups,
    hdp_naive,
    hdp_utility,
)
FIGURES: dict[str, Figure] = {figure.id: figure for module in _MODULES for figure in module.FIGURES}
SHORT = 10.0  # seconds of work that are not worth starting processes for

Job = tuple[Figure, Effort]


def plan(
    ids: Iterable[str], *, runs: int | None = None, quick: bool = False, seed: int = 0, data: Path | None = None
) -> list[Job]:
    """The figures with these IDs (all for none), each with its effort; real data goes where it fits."""
    wanted = list(dict.fromkeys(ids)) or list(FIGURES)
    unknown = [name for name in wanted if name not in FIGURES]
    if unknown:
        near = did_you_mean(unknown[0], FIGURES)
        raise InvalidDeclaration(f"There is no figure {unknown[0]!r}.{near} All figures: {', '.join(FIGURES)}.")
    if runs is not None and runs < 2:
        raise InvalidDeclaration(f"A standard error needs at least two runs, got {runs}.")
    kind = recognise(data) if data is not None else None
    return [
        (
            figure,
            Effort(
                runs=(runs or (figure.quick if quick else figure.runs)) if figure.runs else 0,
                seed=seed,
                quick=quick,
                data=data if figure.accepts is not None and figure.accepts == kind else None,
            ),
        )
        for figure in (FIGURES[name] for name in wanted)
    ]


def expected_seconds(jobs: Iterable[Job], processes: int) -> float:
    """About how long the jobs take together."""
    each = [max(figure.expected_seconds(effort) for figure, effort in family) for family in _families(jobs)]
    return max(sum(each) / processes, max(each, default=0.0))


def compute(
    jobs: list[Job], processes: int = 1, advance: Callable[[float], None] = lambda seconds: None
) -> Iterator[Computed]:
    """The outcomes, each as soon as it is there; `advance` is told the expected seconds of what was done."""
    if processes == 1 or len(jobs) == 1 or expected_seconds(jobs, 1) < SHORT:
        for figure, effort in jobs:
            yield reproduce(figure, effort, advance)
        return
    longest_first = sorted(_families(jobs), key=lambda family: -expected_seconds(family, 1))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:  # fork would copy running threads
        running = {pool.submit(_points, [(figure.id, effort) for figure, effort in f]): f for f in longest_first}
        for done in as_completed(running):
            for (figure, effort), points in zip(running[done], done.result(), strict=True):
                advance(figure.expected_seconds(effort))
                yield Computed(figure=figure, points=points, effort=effort)


def _families(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs that share a computation belong in one process, which remembers it."""
    families: dict[str, list[Job]] = {}
    for figure, effort in jobs:
        families.setdefault(figure.family or figure.id, []).append((figure, effort))
    return list(families.values())


def _points(family: list[tuple[str, Effort]]) -> list[Points]:
    """In another process, where a figure's functions cannot be sent but its ID can."""
    return [reproduce(FIGURES[name], effort).points for name, effort in family]


__all__ = ["FIGURES", "Computed", "Effort", "Figure", "Job", "compute", "expected_seconds", "plan", "reproduce"]

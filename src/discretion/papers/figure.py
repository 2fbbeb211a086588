"""A figure of a paper as a value: how to compute it, what the paper says about it, and what was found.

Every figure and table is reduced to points (panel, curve, x, y, standard error), so that one tidy file, one plot and
one verdict format serve them all.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from discretion.errors import InvalidDeclaration
from discretion.noise import Floats, simulation

By = Literal["paper", "auto", "reference"]  # the paper's mechanism, what discretion offers, or no mechanism at all
INDIVIDUAL = "individual"  # the relation of what is not differential privacy and is not compared with what is
Source = Literal["census", "items"]  # kinds of real data a figure can be computed on


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measured number."""

    curve: str
    x: float | str  # a name where bars are drawn
    y: float
    spread: float = 0.0  # standard error of y over the runs; 0 where y is computed exactly
    panel: str = ""
    by: By = "paper"
    relation: str = ""  # which neighbours the guarantee speaks about: presence, value, or individual (no DP at all)

    @classmethod
    def mean(cls, runs: ArrayLike, **place: Any) -> "Point":
        """The mean over the runs, with its standard error."""
        values = np.asarray(runs, dtype=np.float64)
        return cls(y=float(values.mean()), spread=_standard_error(values), **place)

    @classmethod
    def root_mean(cls, squares: ArrayLike, **place: Any) -> "Point":
        """The root of the mean over the runs, with its standard error by the delta method."""
        values = np.asarray(squares, dtype=np.float64)
        root = float(np.sqrt(values.mean()))
        return cls(y=root, spread=_standard_error(values) / (2 * root) if root > 0 else 0.0, **place)


@dataclass(frozen=True, kw_only=True)
class Points:
    """All points of a figure, looked up by curve, x and panel."""

    rows: tuple[Point, ...]

    def at(self, curve: str, x: float | str, panel: str = "") -> Point:
        """The one point there."""
        found = [p for p in self.rows if p.curve == curve and p.panel == panel and p.x == x]
        if len(found) != 1:
            raise InvalidDeclaration(f"There must be one point of {curve!r} at {x!r} in {panel!r}, got {len(found)}.")
        return found[0]

    def y(self, curve: str, x: float | str, panel: str = "") -> float:
        """The number there."""
        return self.at(curve, x, panel).y

    def xs(self, panel: str | None = None) -> list[Any]:
        """Every x of a panel (or of all), in order of appearance."""
        return list(dict.fromkeys(p.x for p in self.rows if panel in (None, p.panel)))

    def curve(self, name: str, panel: str = "") -> list[float]:
        """The numbers of one curve, in order of appearance."""
        return [p.y for p in self.rows if p.curve == name and p.panel == panel]

    def names(self, by: By | None = None, panel: str | None = None) -> list[str]:
        """The curves, in order of appearance."""
        return list(dict.fromkeys(p.curve for p in self.rows if by in (None, p.by) and panel in (None, p.panel)))

    @property
    def panels(self) -> list[str]:
        """The panels, in order of appearance."""
        return list(dict.fromkeys(p.panel for p in self.rows))


@dataclass(frozen=True, kw_only=True)
class Result:
    """Says what a claim comes to when computed."""

    holds: bool | None  # None: this data cannot decide it
    number: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something the paper says, or a question of our own, and the computation that decides it.

    A claim of the paper carries the section and the paper's own words. Without them it is a question of ours: its
    answer is shown next to the claims, and never called reproduced or not.
    """

    text: str
    check: Callable[[Points], Result]
    rule: str  # when it holds: fixed before the numbers are looked at
    section: str = ""
    quote: str = ""

    def __post_init__(self) -> None:
        if not self.rule or bool(self.section) != bool(self.quote):
            raise InvalidDeclaration(f"The claim {self.text!r} needs a rule, and a section and a quotation or neither.")


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Says how a figure is drawn."""

    x: str  # the labels; one for each panel where they differ, separated by |
    y: str
    log_x: bool = False  # where the numbers span a factor that is worth it
    log_y: bool = False
    better: Literal["smaller", "larger", ""] = "smaller"  # which y is the better answer; "": neither
    columns: int = 1  # panels side by side
    key: str = ""  # what short names of curves stand for
    detail: float = 0.0  # above 1: a second panel shows only what is below so many times the smallest y


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Says how hard to try, on what data, and from which seed."""

    runs: int
    seed: int = 0
    quick: bool = False
    data: Path | None = None  # real data; None: generated

    def generator(self, *labels: object) -> Any:
        """A reproducible generator of its own for each set of labels, whatever else is computed."""
        text = ":".join(map(str, (self.seed, *labels)))
        return simulation(int.from_bytes(sha256(text.encode()).digest()[:8], "big"))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure or table of a paper."""

    id: str
    title: str
    compute: Callable[[Effort], Iterator[list[Point]]]  # yields `steps` batches of points
    claims: tuple[Claim, ...]
    axes: Axes
    data: str  # what the generated data is
    runs: int  # a full run; 0 where nothing is random
    quick: int  # a quick run
    steps: int
    seconds: float  # a full run on one core, measured
    thinned: float = 1.0  # the part of a run's places that a quick run visits
    overhead: float = 0.0  # seconds, whatever the runs: making the data
    family: str = ""  # figures of one family are drawn from the same computation
    accepts: Source | None = None  # what --data may replace
    note: str = ""  # what differs from the paper

    def __post_init__(self) -> None:
        if not self.claims or self.steps < 1 or self.quick > self.runs:
            raise InvalidDeclaration(f"Figure {self.id} needs a claim, a step, and a quick run that is no longer.")

    def expected_seconds(self, effort: Effort) -> float:
        """Return how long it takes, about, on one core."""
        if not self.runs:
            return self.seconds
        return self.overhead + self.seconds * effort.runs / self.runs * (self.thinned if effort.quick else 1.0)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One claim and what came of it."""

    claim: Claim
    finding: Result

    def __str__(self) -> str:
        said = f"§{self.claim.section}: “{self.claim.quote}”" if self.claim.quote else "A question of ours"
        return f"**{self.word}**: {self.claim.text} ({self.finding.number}). {said}. Rule: {self.claim.rule}."

    @property
    def word(self) -> str:
        if self.claim.quote:
            return {True: "reproduced", False: "not reproduced", None: "not tested"}[self.finding.holds]
        return {True: "holds", False: "does not hold", None: "not tested"}[self.finding.holds]


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A figure, computed."""

    figure: Figure
    points: Points
    effort: Effort
    verdicts: tuple[Verdict, ...] = field(init=False)

    def __post_init__(self) -> None:
        verdicts = tuple(Verdict(claim=claim, finding=claim.check(self.points)) for claim in self.figure.claims)
        object.__setattr__(self, "verdicts", verdicts)

    @property
    def data(self) -> str:
        """Return which data was used."""
        if self.effort.data is not None:
            return f"real, {self.effort.data.name}"
        return f"generated, {self.figure.data}" if self.figure.runs else self.figure.data

    def gains(self) -> list[str]:
        """Return what `auto` gives beside the best of the paper's mechanisms, by curve."""
        return [line for name in self.points.names("auto") if (line := _gain(self.points, name, self.figure.axes))]

    def score(self) -> str:
        """Return how many claims came out which way."""
        words = [verdict.word for verdict in self.verdicts]
        return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))

    def summary(self) -> dict[str, Any]:
        """For programs: the figure, its data and effort, and every verdict."""
        return {
            "figure": self.figure.id,
            "title": self.figure.title,
            "data": self.data,
            "runs": self.effort.runs,
            "seed": self.effort.seed,
            "claims": [
                {
                    "claim": verdict.claim.text,
                    "verdict": verdict.word,
                    "number": verdict.finding.number,
                    "rule": verdict.claim.rule,
                    "section": verdict.claim.section,
                    "quote": verdict.claim.quote,
                }
                for verdict in self.verdicts
            ],
            "beyond": self.gains(),
        }

    def text(self) -> str:
        """The verdict, as Markdown."""
        if self.figure.runs:
            places = " at fewer places (--quick)" if self.effort.quick and self.figure.thinned < 1 else ""
            effort = f"{self.effort.runs} runs{places}, seed {self.effort.seed}; ± is one standard error over the runs"
        else:
            effort = "computed exactly, nothing is random"
        lines = [f"### {self.figure.title}", "", f"Data: {self.data}. Effort: {effort}.", ""]
        lines += [f"- {verdict}" for verdict in self.verdicts]
        lines += [f"- **beyond the paper**: {gain}" for gain in self.gains()]
        lines += ["", self.figure.note] if self.figure.note else []
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """The tidy CSV and the verdict; the plot is `plot.draw`."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.figure.id}.csv").open("w", newline="") as stream:
            columns = [f.name for f in fields(Point)]
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["figure", *columns])
            writer.writerows([self.figure.id, *(_cell(getattr(p, c)) for c in columns)] for p in self.points.rows)
        (folder / f"{self.figure.id}.md").write_text(self.text())


def reproduce(figure: Figure, effort: Effort, advance: Callable[[float], None] = lambda seconds: None) -> Computed:
    """Compute a figure; `advance` is told the expected seconds of each step done."""
    rows: list[Point] = []
    share = figure.expected_seconds(effort) / figure.steps
    for batch in figure.compute(effort):
        rows += batch
        advance(share)
    return Computed(figure=figure, points=Points(rows=tuple(rows)), effort=effort)


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def _gain(points: Points, name: str, axes: Axes) -> str:
    ratios = []
    for mine in (p for p in points.rows if p.curve == name):
        beside = [p for p in points.rows if (p.x, p.panel) == (mine.x, mine.panel) and p.relation != INDIVIDUAL]
        others = [p.y for p in beside if p.by == "paper" and isfinite(p.y)]
        if others and axes.better == "smaller":
            ratios.append(min(others) / mine.y)
        elif others and axes.better == "larger":
            ratios.append(mine.y - max(others))
    if not ratios:
        return ""
    low, high = min(ratios), max(ratios)
    if axes.better == "larger":
        return f"`{name}`: {low:+.3f} to {high:+.3f} against the best of the paper's mechanisms"
    times = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
    return f"`{name}`: the best of the paper's mechanisms has {times} times its error"


def _cell(value: object) -> object:
    return f"{value:.10g}" if isinstance(value, float) else value

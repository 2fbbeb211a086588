"""Outcomes as pictures (SVG and PNG). The only file that imports Matplotlib, which is an optional package."""

from math import ceil, isfinite
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from discretion.papers.figure import Outcome, Point

# Okabe and Ito's palette, readable with any colour vision; the marker says the same again.
PAPER = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8c6d31", "#7f7f7f"]
MARKERS = "osD^vP*X"
AUTO = ["#6a3d9a", "#b30000", "#000000", "#00695c"]
DASHES = ["--", (0, (5, 1)), "-", ":"]
STYLE: Any = {
    "svg.hashsalt": "discretion",  # the same outcome gives the same file
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def draw(outcome: Outcome, folder: Path) -> None:
    """Write `<id>.svg` and `<id>.png`."""
    with mpl.rc_context(STYLE):
        canvas = _canvas(outcome)
        stem = folder / outcome.figure.id
        canvas.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        canvas.savefig(stem.with_suffix(".png"), metadata={"Software": None})


def _canvas(outcome: Outcome) -> Canvas:
    axes, panels = outcome.figure.axes, outcome.points.panels
    columns = min(axes.columns, len(panels))
    rows = ceil(len(panels) / columns)
    width, height = (7.2, 4.6) if len(panels) == 1 else (1.0 + 3.6 * columns, 1.0 + 2.9 * rows)
    canvas = Canvas(figsize=(width, height), layout="constrained", dpi=130)
    canvas.suptitle(outcome.figure.title, fontsize=11)
    looks = _looks(outcome)
    grid = canvas.subplots(rows, columns, squeeze=False)
    for spare in grid.flat[len(panels) :]:
        spare.set_axis_off()
    for place, panel in zip(grid.flat, panels, strict=False):
        points = [p for p in outcome.points.rows if p.panel == panel]
        (_bars if any(isinstance(p.x, str) for p in points) else _lines)(place, points, looks)
        _label(place, outcome, panel, points)
    handles: dict[str, Any] = {}
    for place in grid.flat:
        handles.update(dict(zip(*reversed(place.get_legend_handles_labels()), strict=True)))
    names = [name for name in looks if name in handles]
    columns = _legend_columns(names, width)
    canvas.legend([handles[name] for name in names], names, loc="outside lower center", ncols=columns)
    return canvas


def _legend_columns(names: list[str], width: float) -> int:
    lengths = [len(name) for name in names] or [1]
    usual = (max(lengths) + sum(lengths) / len(lengths)) / 2  # columns are as wide as their own longest name
    return max(1, min(len(names), int(width / (0.075 * usual + 0.55))))  # inches of a letter, and of a handle


def _looks(outcome: Outcome) -> dict[str, dict[str, Any]]:
    looks: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(outcome.points.names("paper")):
        looks[name] = {"color": PAPER[number % 8], "marker": MARKERS[number % 8], "lw": 1.4, "ms": 4.5, "zorder": 3}
    for number, name in enumerate(outcome.points.names("auto")):
        looks[name] = {"color": AUTO[number % 4], "ls": DASHES[number % 4], "lw": 2.6, "marker": "", "zorder": 2.5}
    for number, name in enumerate(outcome.points.names("reference")):
        looks[name] = {
            "color": "#999999",
            "ls": ["-.", ":", (0, (5, 1)), (0, (1, 1))][number % 4],
            "lw": 1.6,
            "marker": "",
        }
    return looks


def _lines(place: Any, points: list[Point], looks: dict[str, dict[str, Any]]) -> None:
    for name in dict.fromkeys(p.curve for p in points):
        mine = [p for p in points if p.curve == name and isfinite(p.y)]
        look = looks[name] | ({"marker": ""} if len(mine) > 40 else {})
        xs, ys = [p.x for p in mine], [p.y for p in mine]
        if any(p.spread > 0 for p in mine):
            place.errorbar(xs, ys, yerr=[1.96 * p.spread for p in mine], label=name, capsize=2, elinewidth=0.9, **look)
        else:
            place.plot(xs, ys, label=name, **look)


def _bars(place: Any, points: list[Point], looks: dict[str, dict[str, Any]]) -> None:
    names = list(dict.fromkeys(p.curve for p in points))
    xs = list(dict.fromkeys(p.x for p in points))
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        mine = [p for p in points if p.curve == name]
        where = [xs.index(p.x) + (number - (len(names) - 1) / 2) * width for p in mine]
        look = {"color": looks[name]["color"], "zorder": 3}
        spread = [1.96 * p.spread for p in mine]
        place.bar(where, [p.y for p in mine], width * 0.95, label=name, yerr=spread if any(spread) else None, **look)
    place.set_xticks(range(len(xs)), [str(x) for x in xs])


def _label(place: Any, outcome: Outcome, panel: str, points: list[Point]) -> None:
    axes = outcome.figure.axes
    number = outcome.points.panels.index(panel)
    x_labels, y_labels = axes.x.split("|"), axes.y.split("|")
    place.set_xlabel(x_labels[number % len(x_labels)])
    if len(y_labels) > 1 or number % axes.columns == 0:
        place.set_ylabel(y_labels[number % len(y_labels)])
    if len(outcome.points.panels) > 1:
        place.set_title(panel, fontsize=10)
    if all(isinstance(p.x, int) for p in points):
        place.xaxis.set_major_locator(MaxNLocator(integer=True))
    _scale(place.xaxis, [p.x for p in points], axes.log_x)
    _scale(place.yaxis, [p.y for p in points], axes.log_y)


def _scale(axis: Any, values: list[Any], wanted: bool) -> None:
    """Logarithmic where numbers span a factor of eight; with plain labels while they span less than a thousand."""
    positive = [v for v in values if not isinstance(v, str) and isfinite(v) and v > 0]
    if not wanted or len(positive) < 2 or max(positive) < 8 * min(positive):
        return
    axis._set_axes_scale("log")
    if max(positive) < 1_000 * min(positive):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axis.set_minor_locator(NullLocator())

"""Outcomes as pictures (SVG and PNG). The only file that imports Matplotlib, which is an optional package."""

import re
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from discretion.papers.figure import Computed, Point

# Okabe and Ito's palette, readable with any colour vision; the marker says the same again.
PAPER = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8c6d31", "#7f7f7f"]
MARKERS = "osD^vP*X"
AUTO = ["#6a3d9a", "#b30000", "#000000", "#00695c", "#1f3fbf"]
DASHES = ["--", (0, (5, 1)), "-", ":", (0, (3, 1, 1, 1))]
REFERENCE = "#999999"
REFERENCE_DASHES = ["-.", ":", (0, (5, 1)), (0, (1, 1))]
NORMAL_95 = 1.96  # standard errors on either side of a mean
WIDE = 2.5  # the factor that numbers must span to be worth a logarithmic axis
STYLE: Any = {
    "svg.hashsalt": "discretion",  # the same outcome gives the same file
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.formatter.limits": (-3, 7),
    "axes.formatter.use_mathtext": True,
    "mathtext.default": "regular",
    "figure.constrained_layout.w_pad": 0.08,  # inches: labels of neighbouring panels keep apart
}


def draw(outcome: Computed, folder: Path) -> None:
    """Write `<id>.svg` and `<id>.png`."""
    with mpl.rc_context(STYLE):
        canvas = _canvas(outcome)
        stem = folder / outcome.figure.id
        canvas.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        canvas.savefig(stem.with_suffix(".png"), metadata={"Software": None})


def _canvas(outcome: Computed) -> Canvas:
    axes, panels = outcome.figure.axes, outcome.points.panels
    detail = axes.detail > 1
    columns = 2 if detail else min(axes.columns, len(panels))
    rows = ceil((len(panels) + detail) / columns)
    single = len(panels) == 1 and not detail
    width, height = (7.2, 4.6) if single else (1.0 + 3.6 * columns, 1.0 + 2.9 * rows)
    height += 0.2 * (axes.key.count("\n") + 1) if axes.key else 0
    canvas = Canvas(figsize=(width, height), layout="constrained", dpi=130)
    canvas.suptitle(_typeset(outcome.figure.title), fontsize=11)
    looks = _looks(outcome)
    grid = canvas.subplots(rows, columns, squeeze=False)
    for spare in grid.flat[len(panels) + detail :]:
        spare.set_axis_off()
    for place, panel in zip(grid.flat, panels, strict=False):
        points = [p for p in outcome.points.rows if p.panel == panel]
        _label(place, outcome, panel)
        (_bars if any(isinstance(p.x, str) for p in points) else _lines)(place, points, looks)
        _scale(place, "x", [p.x for p in points], axes.log_x)
        _scale(place, "y", [p.y for p in points], axes.log_y)
    if detail:
        _magnify(grid.flat[1], outcome, looks)
    handles: dict[str, Any] = {}
    for place in grid.flat:
        handles.update(dict(zip(*reversed(place.get_legend_handles_labels()), strict=True)))
    names = [name for name in looks if name in handles]
    columns = _legend_columns(names, width)
    legend = canvas.legend([handles[name] for name in names], names, loc="outside lower center", ncols=columns)
    if axes.key:
        legend.set_title(axes.key)
        legend.get_title().set_fontsize(8.5)
    return canvas


def _magnify(place: Any, outcome: Computed, looks: dict[str, dict[str, Any]]) -> None:
    """Draw the crowded curves again, as far as they lie near the smallest y."""
    points = [p for p in outcome.points.rows if isfinite(p.y)]
    low = min(p.y for p in points)
    high = low * outcome.figure.axes.detail
    _label(place, outcome, outcome.points.panels[0])
    place.set_ylabel("")
    place.set_title("the lower curves, magnified", fontsize=10)
    near = {p.curve for p in points if p.y <= high}
    _lines(place, [p for p in points if p.curve in near], looks)
    place.set_ylim(low - 0.05 * (high - low), high)


def _typeset(text: str) -> str:
    """ε_M with its letter as a subscript."""
    return re.sub(r"(\w)_(\w)", r"$\1_{\2}$", text)


def _legend_columns(names: list[str], width: float) -> int:
    lengths = [len(name) for name in names] or [1]
    usual = (max(lengths) + sum(lengths) / len(lengths)) / 2  # columns are as wide as their own longest name
    return max(1, min(len(names), int(width / (0.075 * usual + 0.55))))  # inches of a letter, and of a handle


def _looks(outcome: Computed) -> dict[str, dict[str, Any]]:
    """Return how each curve is drawn: the paper's with markers, ours heavy and without, references grey."""
    looks: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(outcome.points.names("paper")):
        looks[name] = {"color": PAPER[number % 8], "marker": MARKERS[number % 8], "lw": 1.4, "ms": 4.5, "zorder": 3}
    for number, name in enumerate(outcome.points.names("auto")):
        looks[name] = {"color": AUTO[number % 5], "ls": DASHES[number % 5], "lw": 2.6, "marker": "", "zorder": 2.5}
    for number, name in enumerate(outcome.points.names("reference")):
        looks[name] = {"color": REFERENCE, "ls": REFERENCE_DASHES[number % 4], "lw": 1.6, "marker": ""}
    return looks


def _lines(place: Any, points: list[Point], looks: dict[str, dict[str, Any]]) -> None:
    for name in dict.fromkeys(p.curve for p in points):
        mine = [p for p in points if p.curve == name and isfinite(p.y)]
        look = looks[name] | ({"marker": ""} if len(mine) > 40 else {})
        xs, ys = [p.x for p in mine], [p.y for p in mine]
        spread = [NORMAL_95 * p.spread for p in mine]
        if any(spread):
            place.errorbar(xs, ys, yerr=spread, label=name, capsize=2, elinewidth=0.9, **look)
        else:
            place.plot(xs, ys, label=name, **look)
    if all(isinstance(p.x, int) for p in points):
        place.xaxis.set_major_locator(MaxNLocator(integer=True))


def _bars(place: Any, points: list[Point], looks: dict[str, dict[str, Any]]) -> None:
    names = list(dict.fromkeys(p.curve for p in points))
    xs = list(dict.fromkeys(p.x for p in points))
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        mine = [p for p in points if p.curve == name]
        where = [xs.index(p.x) + (number - (len(names) - 1) / 2) * width for p in mine]
        bars = place.bar(where, [p.y for p in mine], width * 0.95, label=name, color=looks[name]["color"], zorder=3)
        place.bar_label(bars, fmt="{:.4g}", padding=2, fontsize=8)
    place.set_xticks(range(len(xs)), [str(x) for x in xs])
    place.grid(visible=False, axis="x")
    place.margins(y=0.12)  # room for the numbers above the bars


def _label(place: Any, outcome: Computed, panel: str) -> None:
    axes, panels = outcome.figure.axes, outcome.points.panels
    number = panels.index(panel)
    x_labels, y_labels = axes.x.split("|"), axes.y.split("|")
    place.set_xlabel(_typeset(x_labels[number % len(x_labels)]))
    if len(y_labels) > 1 or number % axes.columns == 0:
        place.set_ylabel(y_labels[number % len(y_labels)])
    if len(panels) > 1 and all(panels):
        place.set_title(panel, fontsize=10)


def _scale(place: Any, side: str, values: list[Any], wanted: bool) -> None:
    """Logarithmic where it is wanted and worth it; with plain labels while numbers span less than a thousand."""
    numbers = [v for v in values if not isinstance(v, str) and isfinite(v)]
    positive = [v for v in numbers if v > 0]
    axis = getattr(place, f"{side}axis")
    if not wanted or len(positive) < 2 or max(positive) < WIDE * min(positive):
        if max(numbers, default=0) >= 10_000:
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        return
    place.set(**{f"{side}scale": "log"})
    if place.patches and side == "y":  # a bar needs a floor, and some height above it
        place.set_ylim(bottom=10.0 ** floor(log10(min(positive))))
    span = max(positive) / min(positive)
    if span < 1_000:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span > 8 else (1, 1.5, 2, 3, 4, 5, 6, 8)))
        tiny = max(positive) < 0.001
        axis.set_major_formatter(FuncFormatter(lambda value, position: _power(value) if tiny else _decimal(value)))
        axis.set_minor_locator(NullLocator())


def _decimal(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _power(value: float) -> str:
    exponent = floor(log10(value) + 1e-9)
    return f"${value / 10.0**exponent:.3g}\\cdot10^{{{exponent}}}$"

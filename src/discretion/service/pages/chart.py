"""Chart: an answer by groups becomes bars with error bars, or a line over dates. Every group is drawn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

from discretion.release import Release
from discretion.service.pages import words

MOST_GROUPS = 200  # that are drawn; of more, the page shows the table only
MOST_CHARTS = 4
DATE = re.compile(r"[1-9]\d{3}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?([ T].*)?")
WIDTH, ROW = 520, 28
LETTER, LONGEST_NAME = 9.2, 22  # on a phone letters are larger, measured in the units of the picture
HEIGHT, LEFT, RIGHT = 280, 76, 12


@dataclass(frozen=True, kw_only=True)
class ChartPoint:
    """One group: its name, its value, and where the truth lies."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One answered column, drawn."""

    title: str
    picture: Markup


def chart(release: Release) -> list[Chart]:
    """Return a chart of every answered column of an answer by groups; none without groups, or with too many."""
    keys = [name for name in release.columns if name not in release.errors]
    if not keys or not 1 < len(release) <= MOST_GROUPS:
        return []
    names = [" · ".join(words.key(release.columns[key][row]) for key in keys) for row in range(len(release))]
    is_dated = len(keys) == 1 and all(DATE.fullmatch(str(value)) for value in release.columns[keys[0]])
    made = []
    for column in list(release.errors)[:MOST_CHARTS]:
        if points := _points(release, column, names):
            made.append(Chart(title=column, picture=(_line if is_dated else _bars)(points, column)))
    return made


def _points(release: Release, column: str, names: Sequence[str]) -> list[ChartPoint]:
    found = []
    for name, value, error in zip(names, release.columns[column], release.errors[column], strict=True):
        if not isinstance(value, int | float) or not isfinite(value):
            return []  # a category, or a group without a value: the table tells
        low, high = error.interval(value) if error.unit == "value" else (value, value)
        found.append(ChartPoint(name=name, value=value, low=low, high=high))
    return found


def _span(points: Sequence[ChartPoint], *, zero: bool) -> tuple[float, float]:
    ends = [end for point in points for end in (point.value, point.low, point.high) if isfinite(end)]
    ends += [0.0] if zero else []
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low - 1, high + 1)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that span an interval."""
    raw = (high - low) / about
    size = 10.0 ** floor(log10(raw))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= raw)
    return [place * step for place in range(floor(low / step), ceil(high / step) + 1)]


def _bars(points: Sequence[ChartPoint], title: str) -> Markup:
    marks = ticks(*_span(points, zero=True), about=4)
    low, high = marks[0], marks[-1]
    labels = 20 + LETTER * min(LONGEST_NAME, max(len(point.name) for point in points))

    def x(value: float) -> float:
        return labels + (WIDTH - labels - 24) * (min(max(value, low), high) - low) / (high - low)

    tall = ROW * len(points) + 30
    parts = [
        Markup('<line class="rule" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(x(mark), tall - 24)
        + Markup('<text class="soft" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            x(mark), tall - 6, _tick(mark)
        )
        for mark in marks
    ]
    for place, point in enumerate(points):
        top = ROW * place + 4
        parts.append(_label(point.name, labels - 10, top + 14))
        from_, to = sorted((x(0), x(point.value)))
        bar = '<rect class="part soft" x="{:.1f}" y="{}" width="{:.1f}" height="18"/>'
        parts.append(Markup(bar).format(from_, top, max(to - from_, 1)))
        parts.append(_whisker(x(point.low), x(point.high), top + 9, along=True))
    return _svg(parts, tall, f"{title}: bars with 95 % intervals for {len(points)} groups")


def _line(points: Sequence[ChartPoint], title: str) -> Markup:
    marks = ticks(*_span(points, zero=False))
    low, high = marks[0], marks[-1]
    inside = HEIGHT - 40

    def y(value: float) -> float:
        return 8 + inside * (high - min(max(value, low), high)) / (high - low)

    points = sorted(points, key=lambda point: point.name)
    days = [_day(point.name) for point in points]
    span = max(1, days[-1] - days[0])
    xs = [LEFT + (WIDTH - LEFT - RIGHT) * (day - days[0]) / span for day in days]
    parts = [
        Markup('<line class="rule" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
            LEFT, WIDTH - RIGHT, y(mark), y(mark)
        )
        + Markup('<text class="soft" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
            LEFT - 8, y(mark) + 4, _tick(mark)
        )
        for mark in marks
    ]
    way = " ".join(f"{x:.1f},{y(point.value):.1f}" for x, point in zip(xs, points, strict=True))
    parts.append(Markup('<polyline class="way" points="{}"/>').format(way))
    every = ceil(len(points) / 4)
    for place, (x, point) in enumerate(zip(xs, points, strict=True)):
        parts.append(_whisker(y(point.low), y(point.high), x, along=False))
        parts.append(Markup('<circle class="part" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(x, y(point.value)))
        if place % every == 0:
            anchor = "end" if x > WIDTH - 60 else "middle"
            text = '<text class="soft" x="{:.1f}" y="{}" text-anchor="{}">{}</text>'
            parts.append(Markup(text).format(x, HEIGHT - 6, anchor, point.name[:10]))
    return _svg(parts, HEIGHT, f"{title}: a line over dates with 95 % intervals for {len(points)} dates")


def _day(text: str) -> int:
    """Return the number of a day written 2024-12-31, or of the first of a month written 2024-12."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10] or 1)
    return date(year, month, 1).toordinal() + day - 1


def _whisker(first: float, second: float, across: float, *, along: bool) -> Markup:
    """Return an error bar: a line with two ends, along the axis of values or across it."""
    a, b = sorted((first, second))
    if along:
        way = f"M{a:.1f} {across:.1f}H{b:.1f}M{a:.1f} {across - 4:.1f}v8M{b:.1f} {across - 4:.1f}v8"
    else:
        way = f"M{across:.1f} {a:.1f}V{b:.1f}M{across - 4:.1f} {a:.1f}h8M{across - 4:.1f} {b:.1f}h8"
    return Markup('<path class="whisker" d="{}"/>').format(way)


def _label(name: str, x: float, y: float) -> Markup:
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return Markup('<text x="{}" y="{}" text-anchor="end">{}<title>{}</title></text>').format(x, y, short, name)


def _tick(mark: float) -> str:
    return words.digits(mark) if abs(mark) < 100_000 else f"{mark:,.0f}"


def _svg(parts: Sequence[Markup], tall: float, label: str) -> Markup:
    head = '<svg class="chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    return Markup(head).format(WIDTH, tall, WIDTH, tall, label, Markup("").join(parts))

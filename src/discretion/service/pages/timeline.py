"""Timeline: days of a register become two pictures: what was used of allowances, and who holds which level."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from markupsafe import Markup

from discretion.ledger.timeline import Day
from discretion.service.pages import words

WIDTH, HEIGHT, LEFT, BELOW = 480, 220, 68, 30
MOST_BANDS = 6  # levels that have a shade of their own; more are put together


def used_picture(days: Sequence[Day]) -> Markup:
    """Return how much of everybody's allowances was used, on average, as steps over time."""
    xs, end = _places(days)
    top = max(0.1, *(day.used for day in days))
    top = next(mark for mark in (0.1, 0.2, 0.5, 1.0) if top <= mark)
    ys = [_y(day.used / top) for day in days]
    way = _steps(xs, ys, end)
    area = f"{way}V{_y(0):.1f}H{xs[0]:.1f}Z"
    parts = [
        *_scale(top),
        Markup('<path class="part soft" d="{}"/><path class="way" d="{}"/>').format(area, way),
    ]
    label = f"{words.percent(days[-1].used)} of allowances is used, on average"
    return _svg([*parts, *_dates(days)], label)


def levels_picture(days: Sequence[Day]) -> Markup:
    """Return which part of the people holds which level, as bands over time; strict ones are at the bottom."""
    xs, end = _places(days)
    levels = sorted({level for day in days for level in day.people})
    bands = _bands(levels)
    parts, below = [], [0.0 for _ in days]
    for number, band in enumerate(bands):
        above = [low + _part(day, set(band)) for low, day in zip(below, days, strict=True)]
        way = _steps(xs, [_y(part) for part in above], end)
        back = "".join(f"V{_y(low):.1f}H{x:.1f}" for x, low in reversed(list(zip(xs, below, strict=True))))
        parts.append(Markup('<path class="band b{}" d="{}{}Z"/>').format(number, way, back))
        below = above
    label = "Which part of the people holds which level, over time; the table has the numbers"
    return _svg([*_scale(1.0), *parts, *_dates(days)], label)


def band_names(days: Sequence[Day]) -> list[str]:
    """Return what the bands of `levels_picture` stand for, from the bottom up."""
    levels = sorted({level for day in days for level in day.people})
    return [f"{b[0]:g}" if len(b) == 1 else f"{b[0]:g} to {b[-1]:g}" for b in _bands(levels)]


def _bands(levels: Sequence[float]) -> list[Sequence[float]]:
    size = -(-len(levels) // MOST_BANDS)
    return [levels[start : start + size] for start in range(0, len(levels), size)]


def _steps(xs: Sequence[float], ys: Sequence[float], end: float) -> str:
    """Return a way through all days: each value holds until the next one."""
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(xs[1:], ys[1:], strict=True))
    return f"M{xs[0]:.1f} {ys[0]:.1f}{steps}H{end}"


def _part(day: Day, levels: set[float]) -> float:
    whole = sum(day.people.values())
    return sum(count for level, count in day.people.items() if level in levels) / whole if whole else 0.0


def _places(days: Sequence[Day]) -> tuple[list[float], int]:
    """Return where each day is, from the first one until today."""
    first, today = date.fromisoformat(days[0].day), max(datetime.now(UTC).date(), date.fromisoformat(days[-1].day))
    span = max(1, (today - first).days + 1)
    return [LEFT + (WIDTH - LEFT) * (date.fromisoformat(day.day) - first).days / span for day in days], WIDTH


def _y(part: float) -> float:
    return 8 + (HEIGHT - BELOW - 8) * (1 - part)


def _scale(top: float) -> list[Markup]:
    text = '<line class="rule" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text class="soft" x="{}" y="{:.1f}" '
    text += 'text-anchor="end">{}</text>'
    return [
        Markup(text).format(LEFT, WIDTH, _y(part), _y(part), LEFT - 8, _y(part) + 4, words.percent(part * top))
        for part in (0.0, 0.5, 1.0)
    ]


def _dates(days: Sequence[Day]) -> list[Markup]:
    first = date.fromisoformat(days[0].day)
    text = '<text class="soft" x="{}" y="{}" text-anchor="{}">{}</text>'
    return [
        Markup(text).format(LEFT, HEIGHT - 6, "start", f"{first.day} {first:%B %Y}"),
        Markup(text).format(WIDTH, HEIGHT - 6, "end", "today"),
    ]


def _svg(parts: Sequence[Markup], label: str) -> Markup:
    head = '<svg class="chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    return Markup(head).format(WIDTH, HEIGHT, WIDTH, HEIGHT, label, Markup("").join(parts))

"""Words: numbers and times as pages show them. Templates use these as filters."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Any

from markupsafe import Markup, escape

NONE = "–"


def digits(number: float, most: int = 3) -> str:
    """Return three significant digits, or all of those left of the point: 34,360 and 0.0123."""
    if not isfinite(number):
        return "no bound"
    if number == 0 or abs(number) >= 10 ** (most - 1):
        return f"{number:,.0f}"
    return f"{number:.{max(0, most - 1 - floor(log10(abs(number))))}f}".rstrip("0").rstrip(".")


def percent(share: float, most: int = 2) -> str:
    """Return a part of a whole with two significant digits: 5 %, 0.12 %."""
    return f"{digits(100 * share, most)}\N{NO-BREAK SPACE}%"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 answer, 2,000 answers."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def moment(time: str, *, day: bool = False) -> Markup:
    """Return a time of the ledger with the date written out; a script shows it in the reader's own zone."""
    found = datetime.fromisoformat(time)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    text = f"{found.day} {found:%B %Y}" + ("" if day else f", {found:%H:%M} UTC")
    kind = "day" if day else "minute"
    return Markup('<time datetime="{}" data-show="{}">{}</time>').format(f"{found:%Y-%m-%dT%H:%M:%SZ}", kind, text)


def value(content: Any) -> str:
    """Return a value of a key or an answer as text."""
    if content is None:
        return NONE
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, int):
        return f"{content:,}"
    return digits(content, 6) if isinstance(content, float) else str(content)


def key(content: Any) -> str:
    """Return a value of a key as text: a year or a code has no separators."""
    return str(content) if isinstance(content, int) and not isinstance(content, bool) else value(content)


def listed(names: Iterable[str]) -> str:
    """Return names as a sentence has them: one, two and three."""
    *first, last = map(str, names) if (names := list(names)) else [""]
    return f"{', '.join(first)} and {last}" if first else last


def lines(text: str) -> Markup:
    """Return a text with its line breaks kept."""
    return Markup("<br>").join(escape(line) for line in text.split("\n"))


def pair(text: str) -> tuple[str, str]:
    """Return a choice of a list whose value is its text."""
    return text, text


FILTERS: Mapping[str, Callable[..., Any]] = {
    "digits": digits,
    "percent": percent,
    "counted": counted,
    "moment": moment,
    "value": value,
    "lines": lines,
    "listed": listed,
    "pair": pair,
}

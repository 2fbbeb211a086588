"""Numbers as text, with as many digits as their error leaves."""

from collections.abc import Mapping
from math import ceil, floor, inf, log10

KEPT = 1.0001  # an error that is larger than the one asked for by less than this factor has kept to it
MOST_DIGITS = 6


def rounded(value: float, error: float, within: float = inf) -> str:
    """Return two digits of the error, and the value to the same place; never less error than there is.

    More digits are shown where two would show an error above the one asked for, `within`, that was not missed.
    """
    if error == 0:
        return f"{number(value)} ± 0"
    place = _place(value, error, within)
    near, decimals = round(value, -place) + 0.0, max(0, -place)  # no -0
    return f"{near:,.{decimals}f} ± {_wide(value, error, place):,.{decimals}f}"


def between(
    value: float,
    half: float,
    interval: tuple[float, float],
    limits: tuple[float, float] | None,
    within: float = inf,
) -> str:
    """Return the value and where the truth lies, to two digits of the error; never a narrower interval than it is."""
    low, high = interval
    place = _place(value, half, within)
    decimals, size = max(0, -place), 10.0**place
    ends = floor(low / size + 1e-6) * size, ceil(high / size - 1e-6) * size
    limits = limits or (-inf, inf)
    shown = [
        f"{limit:,.12g}" if beyond else f"{end + 0.0:,.{decimals}f}"  # a limit has all its digits
        for limit, end, beyond in zip(limits, ends, (ends[0] <= limits[0], ends[1] >= limits[1]), strict=True)
    ]
    return f"{round(value, -place) + 0.0:,.{decimals}f} ({shown[0]} to {shown[1]})"


def _place(value: float, error: float, within: float) -> int:
    """Return the power of ten of the last digit to show."""
    places = [max(floor(log10(error)) - digits, -12) for digits in range(1, MOST_DIGITS)]
    return _first({place: _wide(value, error, place) for place in places}, within)


def _wide(value: float, error: float, place: int) -> float:
    """Return the error of the value as it is shown, rounded up."""
    moved = abs(value - round(value, -place))
    return max(1, ceil((error + moved) / 10.0**place - 1e-6)) * 10.0**place


def _first(shown: Mapping[int, float], within: float) -> int:
    """Return the first place whose error is shown as at most the one asked for, or as hardly more; else the first."""
    found = (place for limit in (within, KEPT * within) for place, one in shown.items() if one <= limit * (1 + 1e-9))
    return next(found, next(iter(shown)))


def percent(share: float, within: float = inf) -> str:
    """Return the size of an error as a percentage: rounded up to a tenth, at most 100%; finer as in `rounded`."""
    shown = {places: _upwards(100 * min(share, 1.0), places) for places in range(1, MOST_DIGITS)}
    places = _first(shown, 100 * within)
    return f"{shown[places]:.{places}f}%"


def _upwards(number: float, places: int) -> float:
    return ceil(number * 10.0**places - 1e-6) / 10.0**places


def ends(interval: tuple[float, float]) -> str:
    """Return both ends with all their digits: a rounded end could lie inside the interval."""
    return f"{interval[0]:,.12g} to {interval[1]:,.12g}"


def upwards(number: float, digits: int) -> float:
    """Return the next number of so many digits: 40 for 39.999999."""
    if not number > 0:
        return number
    unit = 10.0 ** (floor(log10(number)) - digits + 1)
    return ceil(number / unit - 1e-9) * unit


def number(value: float) -> str:
    """Return six digits of a number, or all of those left of the point."""
    return f"{value:,.6g}" if isinstance(value, float) and abs(value) < 1e6 else f"{value:,.0f}"

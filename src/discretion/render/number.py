"""Numbers as text, with as many digits as their error leaves."""

from math import ceil, floor, inf, log10


def rounded(value: float, error: float) -> str:
    """Return two digits of the error, and the value to the same place; never less error than there is."""
    if error == 0:
        return f"{number(value)} ± 0"
    place = max(floor(log10(error)) - 1, -12)
    near = round(value, -place) + 0.0  # no -0
    wide = max(1, ceil((error + abs(value - near)) / 10.0**place - 1e-6)) * 10.0**place
    decimals = max(0, -place)
    return f"{near:,.{decimals}f} ± {wide:,.{decimals}f}"


def between(value: float, half: float, interval: tuple[float, float], limits: tuple[float, float] | None) -> str:
    """Return the value and where the truth lies, to two digits of the error; never a narrower interval than it is."""
    low, high = interval
    place = max(floor(log10(half)) - 1, -12)
    decimals, size = max(0, -place), 10.0**place
    ends = floor(low / size + 1e-6) * size, ceil(high / size - 1e-6) * size
    limits = limits or (-inf, inf)
    shown = [
        f"{limit:,.12g}" if beyond else f"{end + 0.0:,.{decimals}f}"  # a limit has all its digits
        for limit, end, beyond in zip(limits, ends, (ends[0] <= limits[0], ends[1] >= limits[1]), strict=True)
    ]
    return f"{round(value, -place) + 0.0:,.{decimals}f} ({shown[0]} to {shown[1]})"


def percent(share: float) -> str:
    """Return the size of an error as a percentage: rounded up to a tenth, at most 100%."""
    return f"{ceil(1000 * min(share, 1.0) - 1e-6) / 1000:.1%}"


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

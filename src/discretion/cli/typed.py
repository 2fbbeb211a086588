"""Typed: what is typed behind an option becomes a value, or wrong usage that says what was expected."""

import csv
import json
import re
from collections.abc import Callable
from typing import Any

import typer


def level(text: str) -> tuple[str, float]:
    """NAME=EPSILON."""
    return _pair(text, "NAME=EPSILON", number)


def bounds(text: str) -> tuple[str, tuple[float, float] | tuple[str, str]]:
    """COLUMN=LOW:HIGH, two numbers or two dates."""
    return _pair(text, "COLUMN=LOW:HIGH", _ends)


def step(text: str) -> tuple[str, float]:
    """COLUMN=STEP."""
    return _pair(text, "COLUMN=STEP", number)


def keys(text: str) -> tuple[str, list[str]]:
    """COLUMN=A,B,...; a value with a comma goes in double quotes, as in a CSV file."""
    return _pair(text, "COLUMN=A,B,...", lambda values: next(csv.reader([values])))


def lookup(text: str) -> tuple[str, tuple[str, str]]:
    """NAME=FILE:KEY; the last colon counts, a file's name may have one, too."""
    return _pair(text, "NAME=FILE:KEY", _last_colon)


def quota(text: str) -> tuple[str, float]:
    """ANALYST=SHARE."""
    return _pair(text, "ANALYST=SHARE", number)


def sql_type(text: str) -> tuple[str, str]:
    """COLUMN=TYPE."""
    return _pair(text, "COLUMN=TYPE", str)


def zone(text: str) -> tuple[str, str]:
    """COLUMN=ZONE."""
    return _pair(text, "COLUMN=ZONE", str)


def menu(text: str) -> tuple[float, ...]:
    """E,E,..."""
    return tuple(map(number, text.split(",")))


def value(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a number, true, false or null as JSON writes them, or "a text"; anything else is a text, too."""

    def typed(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return _pair(text, "NAME=VALUE", typed)


def interval(text: str) -> tuple[float, float]:
    """LOW:HIGH."""
    low, colon, high = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"expected LOW:HIGH, got {text!r}.")
    return number(low), number(high)


def _ends(text: str) -> tuple[float, float] | tuple[str, str]:
    """LOW:HIGH, two numbers or two dates."""
    dates = re.fullmatch(r"(\d{4}-\d{2}-\d{2}):(\d{4}-\d{2}-\d{2})", text, re.ASCII)
    return (dates[1], dates[2]) if dates else interval(text)


def number(text: str) -> float:
    """One number."""
    return number_or(text, "a number such as 0.5")


def whole(text: str | int) -> int:
    """One whole number."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, got {text!r}.") from None


def assumption(text: str) -> Any:
    """`gradual`, `independent`, or how far levels may differ."""
    if text in ("gradual", "independent"):
        return text
    return number_or(text, "`gradual`, `independent` or a number from 0 to 1")


def _pair(text: str, form: str, value: Callable[[str], Any]) -> tuple[str, Any]:
    name, _, typed = text.partition("=")
    if not (name and typed):
        raise typer.BadParameter(f"expected {form}, got {text!r}.")
    return name, value(typed)


def _last_colon(text: str) -> tuple[str, str]:
    before, _, behind = text.rpartition(":")
    if not (before and behind):
        raise typer.BadParameter(f"expected FILE:KEY, got {text!r}.")
    return before, behind


def number_or(text: str | float, expected: str, where: str | None = None) -> float:
    """Return a number; what else is `expected` is said if it is not one."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected {expected}, got {text!r}.", param_hint=where) from None

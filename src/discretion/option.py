"""Option: what is typed behind the options of a command becomes values, or wrong usage."""

from collections.abc import Sequence
from typing import Any

import typer


def choices(level: Sequence[str], menu: str, default: str) -> dict[str, Any]:
    """How preferences are read: named levels, a menu, a default."""
    levels = {name: number(epsilon) for name, epsilon in pairs(level, "NAME=EPSILON").items()}
    chosen = (default if default in levels else number(default)) if default else None
    return {"levels": levels, "menu": tuple(map(number, menu.split(","))) if menu else (), "default": chosen}


def pairs(texts: Sequence[str], form: str) -> dict[str, str]:
    """NAME=VALUE, any number of them."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name and value):
            raise typer.BadParameter(f"expected {form}, got {text!r}.")
        found[name] = value
    return found


def interval(text: str) -> tuple[float, float]:
    """LOW:HIGH."""
    low, colon, high = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"expected LOW:HIGH, got {text!r}.")
    return number(low), number(high)


def last_colon(text: str) -> tuple[str, str]:
    """What is before and behind the last colon: a file's name may have one, too."""
    before, colon, behind = text.rpartition(":")
    if not (colon and before and behind):
        raise typer.BadParameter(f"expected FILE:KEY, got {text!r}.")
    return before, behind


def number(text: str) -> float:
    """One number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text!r}.") from None


def assumption(text: str) -> Any:
    """Nothing, `independent`, or how far levels may differ."""
    return text if text == "independent" else number(text) if text else None

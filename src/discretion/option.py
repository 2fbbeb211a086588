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
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name and value):
            raise typer.BadParameter(f"expected {form}, got {text!r}.")
        found[name] = value
    return found


def interval(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"expected LOW:HIGH, got {text!r}.")
    return number(low), number(high)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text!r}.") from None


def assumption(text: str) -> Any:
    return text if text == "independent" else number(text) if text else None

"""Option: what a mechanism is told by name is checked against the types of its own parameters, before any charge."""

from collections.abc import Mapping
from functools import lru_cache
from inspect import signature
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from discretion.errors import InvalidDeclaration, did_you_mean
from discretion.mechanisms import MECHANISMS, TOGETHER

POSITIONS = {"aggregate", "specification", "belief"}  # what every mechanism is proposed with; the rest are options
WORDS: dict[Any, str] = {
    float: "a finite number",
    int: "a whole number",
    bool: "true or false",
    NoneType: "nothing",
}


@lru_cache(maxsize=64)
def options_of(mechanism: str) -> Mapping[str, Any]:
    """Return the options of a mechanism with their types; they are the parameters of its `propose`."""
    propose = MECHANISMS.get(mechanism)
    if propose is None:  # one of TOGETHER
        return {}
    hints = get_type_hints(propose)
    return {name: hints[name] for name in signature(propose).parameters if name not in POSITIONS}


def checked(mechanism: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of a mechanism, numbers in one form; refuse unknown names and values of another type."""
    names = (*MECHANISMS, *TOGETHER)
    if mechanism != "auto" and mechanism not in names:
        raise InvalidDeclaration(
            f"mechanism must be 'auto' or one of {', '.join(map(repr, names))}, got {mechanism!r}."
            f"{did_you_mean(mechanism, names)}"
        )
    if not options:
        return {}
    if mechanism == "auto":
        raise InvalidDeclaration(
            f"Options of a mechanism ({', '.join(options)}) need mechanism= to say which one they are for."
        )
    known = options_of(mechanism)
    if unknown := sorted(set(options) - set(known)):
        raise InvalidDeclaration(
            f"{mechanism!r} has no option {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(map(repr, sorted(known))) or 'none'}.{did_you_mean(unknown[0], known)}"
        )
    return {name: as_type(name, value, known[name]) for name, value in sorted(options.items())}


def as_type(name: str, value: Any, hint: Any) -> Any:
    """Return a value that fits a type; a whole number becomes a double where a number is meant."""
    if not _fits(value, hint):
        raise InvalidDeclaration(f"Option {name!r} must be {_words(hint)}, got {value!r}.")
    whole = isinstance(value, int) and not isinstance(value, bool) and int not in (hint, *get_args(hint))
    return float(value) if whole else value


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _words(hint: Any) -> str:
    """Return a type in words."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_words, get_args(hint)))
    if get_origin(hint) is Literal:
        return " or ".join(f'"{one}"' for one in get_args(hint))
    return WORDS[hint]


def told(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return options as a line of a plan."""
    return (f"options: {', '.join(f'{name} = {value}' for name, value in options.items())}",) if options else ()

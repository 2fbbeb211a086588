"""Refuse options that a function does not have, and say which one was probably meant."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from discretion.errors import InvalidDeclaration, did_you_mean

P = ParamSpec("P")
T = TypeVar("T")
ADVICE = {
    "bounds": " Give bounds=(low, high): what values can be, known without looking at the data.",
    "x_bounds": " Give x_bounds=(low, high): what x can be, known without looking at the data.",
    "y_bounds": " Give y_bounds=(low, high): what y can be, known without looking at the data.",
    "epsilon": " Give one number per person, or one for everybody: how much each person allows.",
    "categories": " Give categories=[...]: every value to look for, known without looking at the data.",
}


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function refuse unknown and forgotten options in plain words, before it does anything."""
    parameters = signature(function).parameters
    needed = [
        one.name for one in parameters.values() if one.kind is Parameter.KEYWORD_ONLY and one.default is one.empty
    ]

    @wraps(function)
    def called(*arguments: P.args, **named: P.kwargs) -> T:
        for name in named:
            if name not in parameters:
                raise InvalidDeclaration(f"{function.__name__} has no option {name!r}.{did_you_mean(name, parameters)}")
        for name in needed:
            if name not in named:
                raise InvalidDeclaration(f"{_asked(function, arguments)} needs {name}=.{ADVICE.get(name, '')}")
        return function(*arguments, **named)

    return called


def _asked(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """Return what was asked for, with the name of its column if it has one: mean of 'age'."""
    column = getattr(arguments[0], "name", None) if arguments else None
    return f"{function.__name__} of {column!r}" if isinstance(column, str) and column else function.__name__


def given(**options: object) -> dict[str, Any]:
    """Return the options that are not None: those that somebody gave."""
    return {name: value for name, value in options.items() if value is not None}

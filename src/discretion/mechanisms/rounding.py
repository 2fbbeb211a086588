"""Rounding: values are put on a grid before anything else; this says how far that can move an answer."""

from dataclasses import replace
from math import isfinite, sqrt

from discretion.noise import Floats
from discretion.release import Error
from discretion.statistics import Aggregate


def with_rounding(aggregate: Aggregate, people: int, values: Floats, errors: tuple[Error, ...]) -> tuple[Error, ...]:
    """Return the errors of released answers, wider by what the grid can have moved them; ranks name the grid's step."""
    if not aggregate.rounding:
        return errors
    return tuple(
        replace(error, step=float(aggregate.step))
        if error.unit == "rank"
        else _wider(error, _moved(aggregate, people, value, error))
        for value, error in zip(values.tolist(), errors, strict=True)
    )


def _moved(aggregate: Aggregate, people: int, value: float, error: Error) -> float:
    """Return by how much the answer about the rounded values can differ from that about the values themselves.

    A deviation is a norm of the values' distances from their mean, so rounding moves it by at most that of what was
    rounded away, r (for a sample of two, √2 times that). Then s² moves by at most r(2s + r).
    """
    each = float(aggregate.rounding)
    if aggregate.kind == "sum":
        return each * people * aggregate.rows_per_person
    if aggregate.kind == "variance":
        away = each * (sqrt(2) if aggregate.sample else 1)
        return away * (2 * sqrt(max(error.interval(value)[1], 0.0)) + away)
    return each


def _wider(error: Error, by: float) -> Error:
    if not isfinite(by):
        return error
    return replace(
        error,
        bias=error.bias + by,
        quantiles=tuple((tail, low - by, high + by) for tail, low, high in error.quantiles),
    )

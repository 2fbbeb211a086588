"""Numbers and dates between bounds that are known without looking at the data."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from discretion.arrays.question import ArrayChoices, answer
from discretion.engines.values import Column, dates, numbers
from discretion.errors import InvalidDeclaration
from discretion.release import Release
from discretion.release.calendar import days, moment
from discretion.statistics import CANDIDATES, MOST_CELLS, Kind, gridded

LARGEST_BOUND = 1e100  # beyond it doubles overflow, and the noise too
NumberBounds = tuple[float, float] | Sequence[float]
Bounds = NumberBounds | tuple[date, date]
Grid = float | timedelta | None


def numeric(
    name: str,
    kind: Kind,
    values: Column,
    asking: ArrayChoices,
    *,
    bounds: Bounds,
    required: bool = False,
    grid: Grid = None,
    ranks: Sequence[Fraction | None] = (None,),
    sample: bool = False,
) -> Release:
    """Ask about clamped values. Where they are required, a missing one becomes a value: it is not absent any more."""
    if required and (asking.protects == "presence" or asking.person is not None):
        raise InvalidDeclaration(
            'required declares that everybody has a value in one row: it needs protects="value" and no person=.'
        )
    like = _like(bounds, kind)
    column = numbers(values) if like is None else dates(values, whole=not isinstance(like, datetime))
    low, high = bounds_of(bounds)
    step = _step(grid, like, high - low)
    shape = gridded(kind, low, high, protects="value", whole=column.whole, step=step, rank=ranks[0])
    if kind == "quantile" and shape.upper >= MOST_CELLS:
        raise InvalidDeclaration(f"{shape.upper + 1:,} candidate answers are too many. Use a coarser grid.")
    column = column.filled() if required else column
    shape = replace(shape, sample=sample, complete=not column.nullable)
    release = answer(name, [replace(shape, rank=rank) for rank in ranks], column, asking)
    return release if like is None else _dated(release, name, like, kind)


def bounds_of(bounds: Any, name: str = "bounds") -> tuple[Fraction, Fraction]:
    """Return both bounds, in days since 1970 if they are dates; refuse what cannot bound anything."""
    try:
        low, high = map(_exactly, bounds)
    except (TypeError, ValueError, OverflowError):
        raise InvalidDeclaration(
            f"{name} must be (low, high): two finite numbers or dates that you know without looking at the data. Got "
            f"{bounds!r}."
        ) from None
    if not low < high:
        raise InvalidDeclaration(f"The lower bound must be below the upper one, got {name}=({bounds[0]}, {bounds[1]}).")
    if max(-low, high) > LARGEST_BOUND or high - low < 1 / LARGEST_BOUND:
        raise InvalidDeclaration(
            f"{name} must be within ±1e100 and not closer than 1e-100, got {bounds[0]} to {bounds[1]}."
        )
    return low, high


def is_dates(values: Sequence[Any]) -> bool:
    """Return whether all of these are dates or times; refuse a mixture."""
    found = [isinstance(value, date) for value in values]
    if any(found) and not all(found):
        raise InvalidDeclaration("Give dates only, or numbers only.")
    return bool(found) and all(found)


def _exactly(bound: Any) -> Fraction:
    return days(bound) if isinstance(bound, date) else Fraction(str(float(bound)))


def _like(bounds: Any, kind: Kind) -> date | None:
    """Return a bound that says what kind of date the values are, None for numbers. The values do not decide."""
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or not is_dates(bounds):
        return None
    if kind not in ("mean", "quantile"):
        raise InvalidDeclaration(f"Dates have no {kind}. Ask for a mean, a median or another quantile.")
    return next((bound for bound in bounds if isinstance(bound, datetime)), bounds[0])


def _step(grid: Grid, like: date | None, width: Fraction) -> Fraction | None:
    """Return the step between candidates; between plain dates, whole days."""
    if grid is None:
        plain = like is not None and not isinstance(like, datetime)
        return Fraction(max(1, ceil(width / CANDIDATES))) if plain else None
    step = grid / timedelta(days=1) if isinstance(grid, timedelta) else grid
    if not 0 < step < np.inf:
        raise InvalidDeclaration(f"grid must be a step above 0, got {grid!r}.")
    return Fraction(str(step))


def _dated(release: Release, name: str, like: date, kind: Kind) -> Release:
    """Return the release with its days as dates; the mean of plain dates has a time too."""
    shown = datetime(1970, 1, 1) if kind == "mean" and not isinstance(like, datetime) else like
    answers = tuple(moment(float(value), shown) for value in release.columns[name])
    return replace(release, columns={**release.columns, name: answers})

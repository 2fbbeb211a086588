"""Features: rows become vectors of a public size, by public bounds alone, and coefficients become the caller's again.

Nothing here looks at more than one row at a time: no minimum, mean or scale is learned from the data.
"""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.noise import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """Says how columns with public bounds are placed in [−1, 1], and rows in the unit ball.

    With an intercept a column's bounds become −1 and 1 and a constant 1 is appended; without, zero stays zero and the
    bound further from it becomes ±1. For the ball, a row longer than `norm` is shortened to it and all are divided by
    it: `norm` is public, and without one it is the longest possible, so that no row is shortened.
    """

    centre: Floats  # (column)
    half: Floats  # (column): from the centre to the bound
    intercept: bool
    norm: float

    @classmethod
    def declared(cls, bounds: Any, columns: int, *, intercept: bool, norm: float | None = None) -> "Features":
        """From bounds=(lower, upper): two numbers, or two sequences with one number a column."""
        lower, upper = _bounds(bounds, columns)
        centre = (lower + upper) / 2 if intercept else np.zeros(columns)
        half = (upper - lower) / 2 if intercept else np.maximum(np.abs(lower), np.abs(upper))
        longest = sqrt(columns + intercept)
        if norm is not None and not (isfinite(norm) and norm > 0):
            raise InvalidDeclaration(f"norm must be a finite number above 0, got {norm!r}.")
        return cls(centre=centre, half=half, intercept=intercept, norm=min(norm or longest, longest))

    @property
    def size(self) -> int:
        """Return how many coefficients there are, the intercept included."""
        return self.centre.size + self.intercept

    def cube(self, X: Floats) -> Floats:
        """(row, coefficient) in [−1, 1]; values outside the bounds count as the bound."""
        placed = np.clip((X - self.centre) / self.half, -1.0, 1.0)
        return np.hstack([placed, np.ones((len(X), 1))]) if self.intercept else np.asarray(placed)

    def ball(self, X: Floats) -> tuple[Floats, Floats]:
        """(row, coefficient) of length at most 1, and by how much each row was shortened (1: not at all)."""
        placed = self.cube(X)
        lengths = np.linalg.norm(placed, axis=1)
        shortened = np.minimum(1.0, self.norm / np.maximum(lengths, 1e-300))
        return placed * (shortened / self.norm * (1 - 1e-12))[:, None], shortened  # a hair inside the ball

    def original(self, coefficients: Floats) -> tuple[Floats, float]:
        """Coefficients over the cube as coefficients of the caller's columns, and the intercept."""
        slopes = coefficients[: self.centre.size] / self.half
        constant = float(coefficients[-1]) if self.intercept else 0.0
        return np.asarray(slopes), constant - float(slopes @ self.centre)


def _bounds(bounds: Any, columns: int) -> tuple[Floats, Floats]:
    wanted = "bounds=(lower, upper): two numbers, or two sequences with one number a column"
    if bounds is None:
        raise InvalidDeclaration(
            f"Public bounds are needed, {wanted}. They are never taken from the data: minimum and maximum are "
            "somebody's values."
        )
    try:
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in bounds)
    except (TypeError, ValueError):
        raise InvalidDeclaration(f"There must be {wanted} ({columns} columns), got something else.") from None
    if not bool(np.all(np.isfinite(lower) & np.isfinite(upper) & (lower < upper))):
        raise InvalidDeclaration(
            "Bounds must be finite and ascend in every column, got some that do not. A column that can take one "
            "value only tells nothing: leave it out."
        )
    return lower, upper

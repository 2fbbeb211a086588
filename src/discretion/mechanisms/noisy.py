"""Noisy: how far the noise of released sums moves a mean or a variance, by the delta method."""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from discretion.mechanisms.form import Form, moments, sizes
from discretion.noise import Floats
from discretion.preference import MICRO
from discretion.statistics import Aggregate


@dataclass(frozen=True, kw_only=True, eq=False)
class Noisy:
    """Moments of positions from −1 to 1, per row, as they are released: how far noise moves what is made of them."""

    lines: tuple[tuple[float, float, float], ...]  # for each part: how far its noise moves rows, Σx and Σx²
    weight: float  # of all rows together, in micro-ε

    @classmethod
    def of(cls, aggregate: Aggregate, form: Form, weight: float) -> "Noisy":
        """Return those of a form where the rows have so much weight together."""
        return cls(lines=_lines(form, aggregate), weight=weight)

    def deviation(self, rows: Floats | float, first: Floats | float, second: Floats | float) -> Any:
        """Return the standard deviation of so many times each moment, added up."""
        parts = (rows * by_rows + first * by_first + second * by_second for by_rows, by_first, by_second in self.lines)
        return np.sqrt(sum(part * part for part in parts)) / self.weight

    def mean(self, away: float) -> float:
        """Return that of a mean at most so far from the middle: Σx − m·rows."""
        return float(self.deviation(-away, 1.0, 0.0))

    def variance(self, nearest: float, furthest: float) -> float:
        """Return the largest that a variance v can have around a mean m so far from the middle.

        The slope of Σx²/n − (Σx/n)² is Σx² − 2m·Σx + (m² − v)·rows. For a given m its size is convex in v, so an end
        attains it: 0, or 1 − m², the most that values from −1 to 1 can vary.
        """
        m = np.linspace(nearest, furthest, 65)[:, None]
        v = np.array([0.0, 1.0]) * (1 - m**2)
        return float(self.deviation(m**2 - v, -2 * m, 1.0).max())

    def reach(self, ends: tuple[float, float], near: float | None, unsure: float) -> tuple[float, float]:
        """Return the least and the most that a mean between these ends can be from the middle.

        With a and b the noise of Σx and of the rows, a released mean that is `near` from the middle is off by at most
        3(a + d·b) where the true one is d away, and by `unsure` if not everybody weighs the same.
        """
        nearest, furthest = max(0.0, ends[0], -ends[1]), max(-ends[0], ends[1])
        first, rows = self.mean(0.0), float(self.deviation(1.0, 0.0, 0.0))
        if near is None or 3 * rows >= 1:
            return nearest, furthest
        furthest = min(furthest, (near + 3 * first) / (1 - 3 * rows))
        return min(max(nearest, (near - unsure - 3 * first) / (1 + 3 * rows)), furthest), furthest


@lru_cache(maxsize=1024)
def _lines(form: Form, aggregate: Aggregate) -> tuple[tuple[float, float, float], ...]:
    """Return how far the noise of each part moves the moments, at a weight of one micro-ε."""
    scales = np.array([float(part.scale) for part in form]) / sizes(form, aggregate)
    moved = moments(form, aggregate) * scales * (sqrt(2) * MICRO)  # (moment, part)
    return tuple((rows, first, second) for rows, first, second in moved.T.tolist())

"""A ratio of two pooled totals, by Fieller's argument: numerator − m·denominator is a total too, for any m."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discretion.mechanisms.small_area import Design, Posterior, posterior
from discretion.noise import Floats

SCAN = 81  # values that are tried at once
OUTSIDE = (1e-4, 1 - 1e-4)  # a second scan is between these


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratio:
    """A mean m of x, from −1 to 1, over a private number of rows; observed by (row, band), each a person's average."""

    design: Design
    top: Floats  # Σ x
    bottom: Floats  # rows
    top_noise: Floats  # variances
    bottom_noise: Floats
    density: Floats  # (row): estimated rows a person
    most: float  # rows of one person

    def solve(self, probabilities: Sequence[float]) -> tuple[Floats, Floats, Floats]:
        """Medians, root mean squared distances from them, and quantiles at `probabilities`, by row."""
        grid = np.broadcast_to(np.linspace(-1.0, 1.0, SCAN), (len(self.top), SCAN))
        for _ in range(2):  # the second time where the first has put nearly everything
            ends = _inverted(grid, self._below(grid)[0], OUTSIDE)
            grid = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * np.linspace(0, 1, SCAN)
        below, answer = self._below(grid)
        values = _inverted(grid, answer, (0.5,))[:, 0]
        weight = np.diff(below, axis=1, prepend=0.0)
        weight[:, -1] += 1 - below[:, -1]
        deviations = np.sqrt((weight * (grid - values[:, None]) ** 2).sum(axis=1))
        return values, deviations, _inverted(grid, below, probabilities)

    def residual(self, grid: Floats, design: Design | None = None) -> Posterior:
        """The posterior of Σ (x − m), a person, for every m of a grid by (row, m); the result is flat over both.

        It varies by at most k·density·(1 − m²) a person of k rows: Σ over j ≤ k rows squared is at most j·Σ squares.
        """
        m, inside = grid[:, :, None], np.maximum(1 - grid**2, 1e-6)
        observed = self.top[:, None] - m * self.bottom[:, None]
        noise = self.top_noise[:, None] + m**2 * self.bottom_noise[:, None]
        return posterior(
            self.design if design is None else design,
            observed.reshape(grid.size, -1),
            noise.reshape(grid.size, -1),
            variance=(self.most * self.density[:, None] * inside).ravel(),
            reach=np.repeat(2 * self.density, grid.shape[1]),
            centre=0.0,
        )

    def _below(self, grid: Floats) -> tuple[Floats, Floats]:
        """P(mean ≤ m) for every m of the grid, made to ascend: cautiously, and as the answer is computed."""
        found, zero = self.residual(grid, self.design.only(1)), np.zeros((grid.size, 1))
        cautious, plain = (
            np.maximum.accumulate(found.below(zero, cautious=how).reshape(grid.shape), axis=1) for how in (True, False)
        )
        return np.asarray(cautious), np.asarray(plain)


def _inverted(grid: Floats, below: Floats, probabilities: Sequence[float]) -> Floats:
    """Return where each row reaches these probabilities; an end of the grid if nowhere."""
    return np.array([np.interp(probabilities, row, at) for row, at in zip(below, grid, strict=True)])

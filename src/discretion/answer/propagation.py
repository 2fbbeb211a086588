"""Propagation: the errors of numbers that are linear in released values, without draws.

Every released value is moved alone, which shows how much of it is in each number. A number is linear if in all other
worlds it is what these moves add up to. Then biases add up at their worst. So do the noises of one group, because
aggregates that were released together may share theirs; noises of different groups and parts are independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from discretion.noise import Floats
from discretion.release import Error

MOST = 100  # released values that are moved one by one; of more, errors are simulated
CLOSE = 1e-9  # doubles that differ by less, next to what was added up, are the same


@dataclass(frozen=True, kw_only=True)
class ReleasedValue:
    """One released value with a known error, by its place among the parts."""

    part: int
    row: int
    column: int
    error: Error

    @property
    def step(self) -> float:
        """Return how far it is moved: as far as it may be off."""
        return self.error.noise + self.error.bias + self.error.pull


@dataclass(frozen=True, kw_only=True)
class Moves:
    """Says how far released values are from the answer's in other worlds."""

    cells: Sequence[ReleasedValue]
    drawn: Floats  # (world, cell)

    def error(self, value: float, alone: Sequence[float], others: Sequence[float]) -> Error | None:
        """Return the error of a number; None if it is not linear.

        `alone` has it in the worlds where one value was moved, `others` in those where all were.
        """
        slopes = np.array([(one - value) / cell.step for one, cell in zip(alone, self.cells, strict=True)])
        moved, sizes = self.drawn @ slopes, np.abs(self.drawn) @ np.abs(slopes) + abs(value)
        if not np.all(np.abs(np.asarray(others) - value - moved) <= CLOSE * sizes):
            return None
        noises: dict[tuple[int, int], float] = {}
        for cell, slope in zip(self.cells, np.abs(slopes), strict=True):
            group = cell.part, cell.row
            noises[group] = noises.get(group, 0.0) + float(slope) * cell.error.noise
        bias = sum(
            float(abs(slope)) * (one.error.bias + one.error.pull) for one, slope in zip(self.cells, slopes, strict=True)
        )
        return Error(bias=bias, noise=sqrt(sum(noise**2 for noise in noises.values())))

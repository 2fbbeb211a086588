"""Losses of a margin z = y θᵀx: how badly it is decided, with slope at most 1 and bounded curvature."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from discretion.noise import Floats


class LossFunction(Protocol):
    """A convex loss ℓ(z) with −1 ≤ ℓ' ≤ 0 and 0 ≤ ℓ'' ≤ `curvature`."""

    @property
    def curvature(self) -> float:
        """c, the most ℓ'' can be."""

    def value(self, z: Floats) -> Floats: ...

    def slope(self, z: Floats) -> Floats: ...

    def bend(self, z: Floats) -> Floats:
        """ℓ''."""


@dataclass(frozen=True)
class Logistic:
    """ln(1 + e^−z)."""

    @property
    def curvature(self) -> float:
        return 0.25

    def value(self, z: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -z))

    def slope(self, z: Floats) -> Floats:
        return np.asarray(-special.expit(-z))

    def bend(self, z: Floats) -> Floats:
        return np.asarray(special.expit(z) * special.expit(-z))


@dataclass(frozen=True)
class Huber:
    """The hinge, rounded off within `width` (h) of its corner ([CMS11])."""

    width: float = 0.5

    @property
    def curvature(self) -> float:
        return 1 / (2 * self.width)

    def value(self, z: Floats) -> Floats:
        short = np.clip(1 + self.width - z, 0.0, 2 * self.width)  # how far into the rounded part
        return np.asarray(short**2 / (4 * self.width) + np.maximum(1 - self.width - z, 0.0))

    def slope(self, z: Floats) -> Floats:
        return np.asarray(-np.clip((1 + self.width - z) / (2 * self.width), 0.0, 1.0))

    def bend(self, z: Floats) -> Floats:
        return np.asarray(np.where(np.abs(1 - z) <= self.width, self.curvature, 0.0))

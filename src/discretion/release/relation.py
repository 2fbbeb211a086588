"""Relation: how people's choices and their values go together, as a pooled release estimated it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Band:
    """People of similar ε, and their estimated mean with a 95% interval."""

    epsilon: tuple[float, float]  # the smallest and the largest ε that they spend
    people: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Relation:
    """Estimated means by band, strictest first. It is computed from released numbers, so it costs nothing more."""

    of: str  # what the means are of
    bands: tuple[Band, ...]
    difference: float  # mean of the less strict half of the people minus mean of the stricter half, chance left out
    low: float  # 95% interval of the difference
    high: float

    @property
    def is_visible(self) -> bool:
        """Tell whether the interval of the difference excludes 0: then `independent` would have been wrong."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        span = f"{self.low:.3g} to {self.high:.3g}"
        if not self.is_visible:
            return f"related: not visible; the halves differ by {span} ({self.of})"
        way = "higher" if self.difference > 0 else "lower"
        least, most = sorted((abs(self.low), abs(self.high)))
        return (
            f"related: yes; the {self.of} of the less strict half of the people is {abs(self.difference):.3g} {way} "
            f"({least:.3g} to {most:.3g})"
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Relation":
        """Restore what `dataclasses.asdict` made plain."""
        bands = tuple(Band(**{**band, "epsilon": tuple(band["epsilon"])}) for band in plain["bands"])
        return cls(**{**plain, "bands": bands})


def draw(axis: Any, relation: Relation) -> None:
    """Draw the bands' means against ε, with their intervals, on a Matplotlib axis."""
    centres = [(band.epsilon[0] * band.epsilon[1]) ** 0.5 for band in relation.bands]
    means = [band.mean for band in relation.bands]
    below = [band.mean - band.low for band in relation.bands]
    above = [band.high - band.mean for band in relation.bands]
    axis.errorbar(centres, means, yerr=[below, above], fmt="o", color="#2b6cb0", capsize=4)
    for band in relation.bands:
        axis.plot(band.epsilon, (band.mean, band.mean), color="#2b6cb0", alpha=0.4, linewidth=3)
    axis.set(xscale="log", xlabel="ε spent on this answer", ylabel=relation.of, title=str(relation).split(";")[0])
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)

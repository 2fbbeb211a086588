"""One checker for every release with Laplace noise: the worst log-ratio of two exact laws over half-line events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, inf, log, log1p


@dataclass(frozen=True)
class Law:
    """Output (steps + Z)·unit with P(Z = z) ∝ e^(−|z|/scale): every release on a grid, post-processed by a factor."""

    steps: int
    scale: float
    unit: float = 1.0

    def log_at_least(self, threshold: float) -> float:
        return log_tail(ceil(threshold / self.unit) - self.steps, self.scale)

    def log_at_most(self, threshold: float) -> float:
        return log_tail(self.steps - floor(threshold / self.unit), self.scale)


def log_tail(least: int, scale: float) -> float:
    """ln P(Z ≥ least), exactly."""
    ratio = exp(-1 / scale)
    if least > 0:
        return -least / scale - log1p(ratio)
    return log1p(-exp(-(1 - least) / scale) / (1 + ratio))


def worst_log_ratio(first: Law, second: Law) -> float:
    """sup over half-lines beyond and between the centres; for equal units the supremum over all events."""
    centres = [first.steps * first.unit, second.steps * second.unit]
    reach = 30 * max(first.scale * first.unit, second.scale * second.unit)
    middle = sum(centres) / 2
    thresholds = [*centres, middle, middle - reach, middle + reach, middle - reach / 10, middle + reach / 10]
    return max(
        max(
            abs(first.log_at_least(t) - second.log_at_least(t)),
            abs(first.log_at_most(t) - second.log_at_most(t)),
        )
        for t in thresholds
    )


def worst_finite_log_ratio(
    first: Mapping[object, Fraction | float], second: Mapping[object, Fraction | float]
) -> float:
    """The same for finitely many outcomes: the worst single outcome is the worst event."""
    worst = 0.0
    for outcome in {*first, *second}:
        a, b = first.get(outcome, 0), second.get(outcome, 0)
        if a != b:
            worst = inf if min(a, b) == 0 else max(worst, abs(log(a) - log(b)))
    return worst


def close(expected: Iterable[float], actual: Iterable[float], tolerance: float = 1e-9) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(expected, actual, strict=True))

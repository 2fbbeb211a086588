"""Chance: an allowance becomes what somebody can believe at most, in natural frequencies. Always rounded up."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log

BEFORE = (0.01, 0.1, 0.5)  # what somebody thought before anything was published
BEFORE_IN_WORDS = {0.01: "1 in 100", 0.1: "1 in 10", 0.5: "fifty-fifty"}
WHOLES = (100, 1_000, 10_000, 1_000_000)
DIGITS = 1e-9  # below what rounding errors of a double reach


def after(before: float, epsilon: float) -> float:
    """Return the most that somebody can believe who believed `before`: odds grow by at most a factor of e^ε."""
    if not 0 < before < 1:
        return before
    return 1 / (1 + exp(min(700.0, log(1 / before - 1) - epsilon)))


@dataclass(frozen=True, kw_only=True)
class Chance:
    """Count a chance as so many of a whole: 24 in 100."""

    many: int
    whole: int

    def __str__(self) -> str:
        return f"{self.many:,} in {self.whole:,}" if self.many < self.whole else "certain"


def chance(before: float, epsilon: float, *, least: int = 100) -> Chance:
    """Return `after` as a natural frequency, rounded up, of the smallest whole of which it is not all."""
    most = after(before, epsilon)
    found = [
        Chance(many=min(whole, ceil(most * whole - DIGITS * whole)), whole=whole) for whole in WHOLES if whole >= least
    ]
    fine = [one for one in found if before * one.whole >= 10 - DIGITS and one.many < one.whole]
    return fine[0] if fine else found[-1]


def chances(epsilons: Sequence[float]) -> list[tuple[float, tuple[Chance, ...]]]:
    """Return the table of chances: for every allowance, what can be believed for every belief of `BEFORE`."""
    return [(epsilon, tuple(chance(before, epsilon) for before in BEFORE)) for epsilon in epsilons]

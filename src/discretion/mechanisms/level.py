"""Which level a threshold or a cap is set to: a name, a number, or the one of least predicted error."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Literal, Protocol, TypeVar

import numpy as np

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.preference import Specification, allowance
from discretion.release import Error

Level = Literal["max", "mean", "best"] | float


class Tuned(Protocol):
    """Anything with a predicted error."""

    @property
    def error(self) -> Error: ...


L = TypeVar("L", bound=Tuned)
TRIED = 12  # levels in a round of the search


def refuse_nobody(specification: Specification) -> None:
    """Refuse a register in which nobody (any more) has anything to spend: there is nothing to tune to."""
    if not int(specification.heads @ specification.micro):
        raise Unsuitable("It would leave nobody to answer about.")


def best_level(level: Level, specification: Specification, at: Callable[[int], L], among: Sequence[int] = ()) -> L:
    """The mechanism at this level, in micro-ε; for "best", at the best of `among`, or of everything between.

    All levels come from the register. The search is a grid refined around its best point: a level that it misses
    costs accuracy, never privacy.
    """
    if level != "best":
        return at(fixed_level(level, specification))
    nobody = {micro for micro, people in zip(specification.epsilons, specification.people, strict=True) if not people}
    allowed = [micro for micro in among if micro > 0 and micro not in nobody]
    if not allowed:
        low, high = specification.strictest, specification.epsilons[-1]
        allowed = sorted({round(micro) for micro in np.geomspace(low, high, TRIED**2)})
    first, last = 0, len(allowed) - 1
    made: dict[int, L] = {}
    while True:
        tried: list[int] = np.unique(np.linspace(first, last, TRIED).astype(int)).tolist()
        made |= {index: at(allowed[index]) for index in tried if index not in made}
        best = min(tried, key=lambda index: made[index].error.ranked)
        if len(tried) == last - first + 1:
            return made[best]
        place = tried.index(best)
        first, last = tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]


def fixed_level(level: Literal["max", "mean"] | float, specification: Specification) -> int:
    """Return a level in micro-ε: the largest, the mean over the register, or the number given."""
    if level == "max":
        return max(specification.epsilons[-1], specification.strictest)
    if level == "mean":
        return max(1, int(specification.heads @ specification.micro) // specification.size)
    if isinstance(level, str) or not (isfinite(level) and allowance(max(level, 0.0)) > 0):
        raise InvalidDeclaration(
            f'A cap or threshold must be "max", "mean", "best" or an epsilon of at least a millionth, got {level!r}.'
        )
    return int(allowance(level))

"""Run: how each method honours everybody's ε by running an algorithm with one ε on some people, once or more.

Everything here follows from what each cohort may spend and from its head-count over the register: both public.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from math import inf
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms.cuts import privacy_cuts, utility_cuts
from discretion.noise import ALWAYS
from discretion.preference import MICRO, Integers, allowance

Utility = Callable[[float, float], float]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the algorithm: with which ε, on whose rows, at what cost to whom, and how much it counts."""

    micro_epsilon: int
    inclusion: tuple[int, ...]  # coin threshold of each cohort: ALWAYS, never (0), or in between
    charge: tuple[int, ...]  # micro-ε each cohort pays
    people: float  # how many it is expected to have, from the register
    weight: float = 1.0  # in the ensemble


def plan(budget: Integers, heads: Integers, method: str, **options: Any) -> tuple[Run, ...]:
    """The runs of a method, from what each cohort may spend (micro-ε) and its public head-count."""
    if method not in _METHODS:
        raise InvalidDeclaration(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}.")
    if not bool(np.any(budget > 0)):
        raise Unsuitable("Somebody must have an epsilon above 0 to spend; nobody has.")
    known = set(signature(_METHODS[method]).parameters) - {"budget", "heads"}
    if not set(options) <= known:
        raise InvalidDeclaration(
            f"method={method!r} takes the options {', '.join(sorted(known)) or 'none'}, got {', '.join(options)}."
        )
    return _METHODS[method](budget, heads, **options)


def minimum(budget: Integers, heads: Integers) -> tuple[Run, ...]:
    """[JYC15] Definition 7: everybody at the smallest ε; those with ε = 0 are left out."""
    smallest = int(budget[budget > 0].min())
    return threshold(budget, heads, threshold=smallest / MICRO)


def threshold(
    budget: Integers, heads: Integers, *, threshold: float | str = "max", utility: Utility | None = None
) -> tuple[Run, ...]:
    """[JYC15] Definition 8: those with at least t, at t; everybody else is left out and pays nothing."""
    t = _threshold(budget, heads, threshold, utility, lambda level: budget >= level)
    stays = budget >= t
    if not bool(stays.any()):
        raise Unsuitable(f"Nobody has an epsilon of at least the threshold {t / MICRO:g}.")
    return (
        Run(
            micro_epsilon=t,
            inclusion=tuple(ALWAYS if stay else 0 for stay in stays),
            charge=tuple(t if stay else 0 for stay in stays),
            people=float(stays @ heads),
        ),
    )


def sample(
    budget: Integers, heads: Integers, *, threshold: float | str = "max", utility: Utility | None = None
) -> tuple[Run, ...]:
    """[JYC15] Definition 9: person u stays with probability (e^ε − 1)/(e^t − 1), or surely if ε ≥ t; pays min(ε, t).

    Both directions hold (../docs/learning.md): a ratio of e^t inside becomes 1 − π + π e^t = e^ε outside, and under
    value too if the algorithm is t-private for added, removed and changed rows.
    """

    def rates(level: int) -> Any:
        epsilon, t = np.minimum(budget, level) / MICRO, level / MICRO
        return np.exp(epsilon - t) * np.expm1(-epsilon) / np.expm1(-t)

    t = _threshold(budget, heads, threshold, utility, rates)
    return (
        Run(
            micro_epsilon=t,
            inclusion=tuple(noise.inclusion_threshold(int(level), t) for level in budget),
            charge=tuple(min(int(level), t) for level in budget),
            people=float(rates(t) @ heads),
        ),
    )


def partition(
    budget: Integers,
    heads: Integers,
    *,
    cuts: str = "utility",
    parts: int = 5,
    smallest: int = 1,
    rounds: int = 1,
    utility: Utility | None = None,
) -> tuple[Run, ...]:
    """[LXJJ17]: groups of similar ε, each run at its smallest; `rounds` repeats it on what people have left.

    `cuts` are those of most summed utility, or of least wasted privacy ("privacy"; of 1 to `parts` groups the number
    of most summed utility). Groups of a round are disjoint, so a person pays their group's ε, once a round.
    """
    if cuts not in ("utility", "privacy") or parts < 1 or rounds < 1:
        raise InvalidDeclaration("cuts must be 'utility' or 'privacy', parts and rounds at least 1.")
    measure, left, runs = utility or precision, budget.copy(), []
    while rounds and left.max() > 0:
        levels, place = np.unique(left, return_inverse=True)
        people = np.bincount(place, weights=heads).astype(np.int64)
        skip = int(levels[0] == 0)  # those with nothing left
        starts = _starts(levels[skip:], people[skip:], cuts, parts, smallest, measure)
        group = np.searchsorted(np.array(starts) + skip, place, side="right") - 1  # of each cohort; −1: none
        for number, start in enumerate(starts):
            inside, level = group == number, int(levels[start + skip])
            runs.append(_group(inside, level, heads, measure))
            left = left - level * inside
        rounds -= 1
    return tuple(runs)


def precision(people: float, epsilon: float) -> float:
    """(n ε)²: of a group's average, where the noise decides."""
    return (people * epsilon) ** 2


def _starts(levels: Integers, heads: Integers, cuts: str, parts: int, smallest: int, utility: Utility) -> list[int]:
    """Where groups of the sorted levels begin."""
    if cuts == "utility":
        return utility_cuts(levels, heads, parts, utility, smallest)

    def worth(starts: list[int]) -> float:
        people = np.add.reduceat(heads, starts)
        if people.min() < smallest:
            return -inf
        return sum(utility(int(n), levels[start] / MICRO) for n, start in zip(people, starts, strict=True))

    tried = [privacy_cuts(levels, heads, count) for count in range(1, min(parts, len(levels)) + 1)]
    best = max(tried, key=worth)
    if worth(best) == -inf:
        raise Unsuitable(f"No group of people with an epsilon has {smallest:,} members.")
    return best


def _group(inside: Any, level: int, heads: Integers, utility: Utility) -> Run:
    people = float(inside @ heads)
    return Run(
        micro_epsilon=level,
        inclusion=tuple(ALWAYS if member else 0 for member in inside),
        charge=tuple(level if member else 0 for member in inside),
        people=people,
        weight=utility(people, level / MICRO),
    )


_METHODS: dict[str, Callable[..., tuple[Run, ...]]] = {
    "minimum": minimum,
    "threshold": threshold,
    "sample": sample,
    "partition": partition,
}


def _threshold(budget: Integers, heads: Integers, chosen: float | str, utility: Utility | None, rates: Any) -> int:
    """t in micro-ε: a number, "max", "mean" (over the register), or the level of most utility."""
    if chosen == "max":
        return int(budget.max())
    if chosen == "mean":
        return max(1, int(budget @ heads // heads.sum()))
    if chosen == "best":
        if utility is None:
            raise InvalidDeclaration('threshold="best" needs utility=, a function of (people, epsilon).')
        levels = [int(level) for level in budget if level > 0]
        return max(levels, key=lambda level: utility(float(rates(level) @ heads), level / MICRO))
    if isinstance(chosen, str):
        raise InvalidDeclaration(f'threshold must be a number, "max", "mean" or "best", got {chosen!r}.')
    t = int(allowance(chosen))
    if t <= 0:
        raise InvalidDeclaration(f"A threshold must be at least a millionth, got {chosen!r}.")
    return t

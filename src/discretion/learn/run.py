"""Run: how each method honours everybody's ε by running an algorithm with one ε on some people, once or more.

Everything here follows from what each cohort may spend and from its head-count over the register: both public.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from math import isfinite, log
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms.cuts import privacy_cuts_each, utility_cuts
from discretion.noise import ALWAYS
from discretion.preference import MICRO, Integers, allowance

Utility = Callable[[float, float], float]
MOST_PARTS = 1_000  # groups that are tried at most


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
    parts: int | None = None,
    smallest: int = 1,
    rounds: int = 1,
    drop: bool = False,
    utility: Utility | None = None,
) -> tuple[Run, ...]:
    """[LXJJ17]: groups of similar ε, each run at its smallest; `rounds` repeats it on what people have left.

    `cuts` are those of most summed utility, or of least wasted privacy ("privacy"). Without `parts`, every number of
    groups from 1 to n/T is tried, T = `smallest`, and the one of most summed utility taken: O(k levels²), or
    O(k levels log levels) for privacy, k at most 1,000. Groups of a round are disjoint, so a person pays their group's
    ε, once a round. `drop=True` leaves out a group if another one of the round has as many people and a larger ε
    ([LXJJ17] 4.4); it is not run, so it pays nothing.
    """
    if cuts not in ("utility", "privacy") or (parts is not None and parts < 1) or min(rounds, smallest) < 1:
        raise InvalidDeclaration("cuts must be 'utility' or 'privacy', parts, smallest and rounds at least 1.")
    measure, left, runs = utility or precision, budget.copy(), []
    for number in range(rounds):
        if left.max() <= 0 or (number and heads[left > 0].sum() < smallest):
            break
        made = _round(left, heads, cuts, parts or MOST_PARTS, smallest, measure)
        kept = _without_dominated(made) if drop else made
        runs += kept
        left = left - np.sum([run.charge for run in kept], axis=0)
    return tuple(runs)


def _round(left: Integers, heads: Integers, cuts: str, parts: int, smallest: int, utility: Utility) -> list["Run"]:
    """Return the groups of one round, for what each cohort has left."""
    levels, place = np.unique(left, return_inverse=True)
    people = np.bincount(place, weights=heads).astype(np.int64)
    skip = int(levels[0] == 0)  # those with nothing left
    if people[skip:].sum() < smallest:
        raise Unsuitable(f"No group of people with an epsilon has {smallest:,} members.")
    starts = _starts(levels[skip:], people[skip:], cuts, parts, smallest, utility)
    group = np.searchsorted(np.array(starts) + skip, place, side="right") - 1  # of each cohort; −1: none
    return [_group(group == number, int(levels[start + skip]), heads, utility) for number, start in enumerate(starts)]


def _without_dominated(runs: list["Run"]) -> list["Run"]:
    """Leave out a run if another has exactly as many people and a larger ε. Sizes are those of the register."""
    best: dict[float, int] = {}
    for run in runs:
        best[run.people] = max(best.get(run.people, 0), run.micro_epsilon)
    return [run for run in runs if run.micro_epsilon == best[run.people]]


def precision(people: float, epsilon: float) -> float:
    """Return (n ε)²: the precision of a group's average, where the noise decides."""
    return (people * epsilon) ** 2


def risk_utility(
    dimensions: int, *, length: float = 1.0, smoothness: float = 0.25, slack: float = 0.1, failure: float = 0.05
) -> Utility:
    """Return a utility of (people, ε) for empirical risk minimisation: one over the bound of [LXJJ17] Equation (2).

    The bound on the excess loss is 16 ‖f‖⁴ d² ln²(d/σ) (c + e/‖f‖²) / (n e ε)² + ‖f‖² ln(1/σ)/(n e) + e/2, for d
    `dimensions`, ‖f‖ the `length` of the best model, c the `smoothness` of the loss (1/4: logistic), e the `slack`
    (generalisation error) and σ the chance of `failure`. The paper maximises the bound itself, which is an error.
    """
    if dimensions < 1 or not all(isfinite(x) and x > 0 for x in (length, smoothness, slack, failure)) or failure >= 1:
        raise InvalidDeclaration("dimensions must be at least 1, the others finite and above 0, and failure below 1.")
    noisy = 16 * length**4 * (dimensions * log(dimensions / failure)) ** 2 * (smoothness + slack / length**2) / slack**2
    sampled = length**2 * log(1 / failure) / slack

    def utility(people: float, epsilon: float) -> float:
        if people <= 0:
            return 0.0
        return 1 / (noisy / (people * epsilon) ** 2 + sampled / people + slack / 2)

    return utility


def _starts(levels: Integers, heads: Integers, cuts: str, parts: int, smallest: int, utility: Utility) -> list[int]:
    """Where groups of the sorted levels begin."""
    if cuts == "utility":
        return utility_cuts(levels, heads, parts, utility, smallest)

    def worth(starts: list[int]) -> float:
        people = np.add.reduceat(heads, starts)
        return sum(utility(int(n), levels[start] / MICRO) for n, start in zip(people, starts, strict=True))

    return max(privacy_cuts_each(levels, heads, parts, smallest), key=worth)


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

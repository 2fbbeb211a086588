"""Run: how each method honours everybody's ε by running an algorithm with one ε on some people, once or more.

Everything here follows from what each cohort may spend and from its head-count over the register: both public.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import isfinite, log
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms import scheme
from discretion.mechanisms.cuts import privacy_cuts_each, utility_cuts
from discretion.mechanisms.level import Level, fixed_level
from discretion.mechanisms.scheme import Ladder, Scheme
from discretion.preference import MICRO, Specification

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

    @classmethod
    def of(cls, used: Scheme, specification: Specification, utility: Utility | None = None) -> "Run":
        """Return the run of a scheme; it counts as much as its utility, or 1."""
        level, people = max(used.prices), float(used.rates @ specification.heads)
        weight = 1.0 if utility is None else utility(people, level / MICRO)
        return cls(micro_epsilon=level, inclusion=used.coins, charge=used.charges, people=people, weight=weight)


def plan(
    specification: Specification, method: str, options: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Run, ...]:
    """Return the runs of a method, from what each cohort may spend and its public head-count."""
    if method not in _METHODS:
        raise InvalidDeclaration(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}.")
    if specification.epsilons[-1] <= 0:
        raise Unsuitable("Somebody must have an epsilon above 0 to spend; nobody has.")
    known = set(signature(_METHODS[method]).parameters) - {"specification"}
    if not set(options) <= known:
        raise InvalidDeclaration(
            f"method={method!r} takes the options {', '.join(sorted(known)) or 'none'}, got {', '.join(options)}."
        )
    return _METHODS[method](specification, **options)


def minimum(specification: Specification) -> tuple[Run, ...]:
    """Run once, at the strictest ε above 0."""
    return (Run.of(scheme.minimum(specification), specification),)


def threshold(
    specification: Specification, *, threshold: Level = "max", utility: Utility | None = None
) -> tuple[Run, ...]:
    """Run once, on those who allow t."""
    return (_at_level(scheme.threshold, specification, threshold, utility),)


def sample(
    specification: Specification, *, threshold: Level = "max", utility: Utility | None = None
) -> tuple[Run, ...]:
    """Run once, at t on those whose coins keep them; see ../docs/learning.md for both directions of the proof."""
    return (_at_level(scheme.sample, specification, threshold, utility),)


def partition(
    specification: Specification,
    *,
    cuts: Literal["utility", "privacy"] = "utility",
    parts: int | None = None,
    smallest: int = 1,
    rounds: int = 1,
    drop: bool = False,
    utility: Utility | None = None,
) -> tuple[Run, ...]:
    """Run once for each group of similar ε; `rounds` repeats it on what people have left.

    `cuts` are those of most summed utility, or of least wasted privacy ("privacy"). Without `parts`, every number of
    groups from 1 to n/T is tried, T = `smallest`, and the one of most summed utility taken: O(k levels²), or
    O(k levels log levels) for privacy, k at most 1,000. `drop=True` leaves out a group if another one of the round has
    as many people and a larger ε ([LXJJ17] 4.4).
    """
    if cuts not in ("utility", "privacy") or (parts is not None and parts < 1) or min(rounds, smallest) < 1:
        raise InvalidDeclaration("cuts must be 'utility' or 'privacy', parts, smallest and rounds at least 1.")
    most, measure = parts or MOST_PARTS, utility or precision

    def cut(ladder: Ladder) -> Sequence[int]:
        if cuts == "utility":
            return utility_cuts(ladder.levels, ladder.heads, most, measure, smallest)
        found = privacy_cuts_each(ladder.levels, ladder.heads, most, smallest)
        return max(found, key=lambda starts: _worth(ladder, starts, measure))

    groups = scheme.partition(specification, cut, rounds=rounds, smallest=smallest, drop=drop)
    return tuple(Run.of(group.scheme(specification), specification, measure) for group in groups)


def _worth(ladder: Ladder, starts: Sequence[int], utility: Utility) -> float:
    people = np.add.reduceat(ladder.heads, starts)
    return sum(utility(int(n), ladder.levels[start] / MICRO) for n, start in zip(people, starts, strict=True))


def _at_level(
    scheme_at: Callable[[Specification, int], Scheme],
    specification: Specification,
    level: Level,
    utility: Utility | None,
) -> Run:
    """Return the run at a level: a number, "max", "mean" (over the register), or the level of most utility."""
    if level != "best":
        return Run.of(scheme_at(specification, fixed_level(level, specification)), specification)
    if utility is None:
        raise InvalidDeclaration('threshold="best" needs utility=, a function of (people, epsilon).')
    runs = [Run.of(scheme_at(specification, micro), specification) for micro in specification.epsilons if micro > 0]
    return max(runs, key=lambda run: utility(run.people, run.micro_epsilon / MICRO))


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


_METHODS: dict[str, Callable[..., tuple[Run, ...]]] = {
    "minimum": minimum,
    "threshold": threshold,
    "sample": sample,
    "partition": partition,
}

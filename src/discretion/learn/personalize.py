"""Personalize: any algorithm that is private with one ε for all becomes one that honours everybody's own ε.

Whatever the method, the algorithm is run one or more times, each time with one ε on the rows of some people: a `Run`.
Which people, and with which ε, follows from the public specification alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from discretion import noise
from discretion.errors import InvalidDeclaration, QueryRefused, Unsuitable
from discretion.guarantee import Arithmetic, Protects
from discretion.learn.ensemble import Rule, combine
from discretion.learn.people import People, people
from discretion.noise import ALWAYS, Rng
from discretion.preference import MICRO, Integers, Specification, allowance
from discretion.release import Error, Release

Algorithm = Callable[[Any, float], Any]
Utility = Callable[[float, float], float]
Method = Literal["minimum", "threshold", "sample", "partition"]
Safety = Literal["presence", "value", "both"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the algorithm: with which ε, on whose rows, at what cost to whom, and how much it counts."""

    micro_epsilon: int
    inclusion: tuple[int, ...]  # coin threshold of each cohort: ALWAYS, never (0), or in between
    charge: tuple[int, ...]  # micro-ε each cohort pays
    people: float  # how many it is expected to have, from the register
    weight: float = 1.0  # in the ensemble


def personalize(
    algorithm: Algorithm,
    data: Any,
    *,
    epsilon: ArrayLike,
    algorithm_protects: Safety,
    method: Method = "sample",
    protects: Protects = "value",
    groups: ArrayLike | None = None,
    rows_per_person: int = 1,
    register: Specification | ArrayLike | None = None,
    arithmetic: Arithmetic = "float",
    rng: Rng = None,
    **options: Any,
) -> Release:
    """Run `algorithm(rows, epsilon)` so that nobody loses more than their own epsilon.

    `algorithm_protects` is what the caller vouches for: the algorithm is ε-differentially private when one row is
    added or removed and the number of rows is secret ("presence"), when one row changes and their number is public
    ("value"), or either way ("both"). It must accept any number of rows, none included.

    Options: threshold= for `threshold` and `sample` (a number, "max", "mean", or "best" with utility=); cuts=,
    parts=, smallest=, rounds=, utility=, ensemble= for `partition`. `utility(people, epsilon)` is larger the better.
    """
    rows = _length(data)
    owners = people(epsilon, rows, protects=protects, groups=groups, register=register)
    steps = _steps(algorithm_protects, owners, method, rows_per_person)
    ensemble: Rule = options.pop("ensemble", "average")
    runs = plan(owners.budget, owners.specification.heads, method, **options)
    if min(run.micro_epsilon for run in runs) < steps:
        raise Unsuitable(f"There is too little epsilon to divide it by {steps}: use fewer rows_per_person.")
    bounded = owners.bounded(rows_per_person, rng)

    def one(rows_kept: Any, run: Run) -> Any:
        return algorithm(rows_kept, run.micro_epsilon // steps / MICRO)

    output = execute(one, data, owners, runs, ensemble, rng, within=bounded)
    charged = np.sum([run.charge for run in runs], axis=0)
    return Release(
        columns={"output": (output,)},
        errors={"output": (Error(bias=0.0, noise=inf),)},
        mechanism=method,
        guarantee=owners.guarantee(charged, arithmetic=arithmetic, note=_note(algorithm_protects)),
        simulated=rng is not None,
        explanation=_explain(runs, owners.specification, charged),
    )


def execute(
    algorithm: Callable[[Any, Run], Any],
    data: Any,
    owners: People,
    runs: tuple[Run, ...],
    ensemble: Rule = "average",
    rng: Rng = None,
    within: Integers | None = None,
) -> Any:
    """Run the algorithm as planned, on each run's people, and combine the outputs."""
    outputs = []
    for run in runs:
        kept = owners.kept(run.inclusion, rng)
        kept = kept if within is None else np.intersect1d(kept, within, assume_unique=True)
        outputs.append(algorithm(_rows(data, kept), run))
    return combine(outputs, [run.weight for run in runs], ensemble)


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
        return np.minimum(1.0, np.expm1(budget / MICRO) / np.expm1(level / MICRO))

    t = _threshold(budget, heads, threshold, utility, rates)
    return (
        Run(
            micro_epsilon=t,
            inclusion=tuple(noise.inclusion_threshold(int(level), t) for level in budget),
            charge=tuple(min(int(level), t) for level in budget),
            people=float(rates(t) @ heads),
        ),
    )


_METHODS: dict[str, Callable[..., tuple[Run, ...]]] = {
    "minimum": minimum,
    "threshold": threshold,
    "sample": sample,
}


def _threshold(budget: Integers, heads: Integers, chosen: float | str, utility: Utility | None, rates: Any) -> int:
    """t in micro-ε: a number, "max", "mean" (over the register), or the level of most utility."""
    if chosen == "max":
        return int(budget.max())
    if chosen == "mean":
        return int(budget @ heads // heads.sum())
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


def _steps(safety: Safety, owners: People, method: str, rows_per_person: int) -> int:
    """By how much the algorithm's ε is divided so that one person, not one row at a time, is protected by ε.

    One person changes up to k rows. Under value a changed row is one step for an algorithm that protects values, two
    (remove, add) for one that protects presence only. Rows may also just come or go, so with groups, with sampling
    and under presence an algorithm that protects values only protects nobody: its number of rows gives people away.
    """
    if safety not in ("presence", "value", "both"):
        raise InvalidDeclaration(f"algorithm_protects must be 'presence', 'value' or 'both', got {safety!r}.")
    if rows_per_person < 1 or (rows_per_person > 1 and not owners.several):
        raise InvalidDeclaration(f"rows_per_person must be 1 without groups, and at least 1, got {rows_per_person!r}.")
    if safety == "value" and (method == "sample" or owners.protects == "presence" or owners.several):
        why = "sampling" if method == "sample" else "a secret number of rows"
        raise QueryRefused(
            f"An algorithm that treats the number of rows as public is not private under {why}: whether a person's "
            "row is there shows in that number. Use one that is private when a row is added or removed and declare "
            "algorithm_protects='both' (or 'presence'); without groups, method='partition', 'threshold' or 'minimum' "
            "with protects='value' also work."
        )
    per_row = 2 if owners.protects == "value" and safety == "presence" else 1
    return per_row * rows_per_person


def _rows(data: Any, index: Integers) -> Any:
    """These rows of an array, a data frame, an Arrow table, or a tuple of them."""
    if isinstance(data, tuple):
        return tuple(_rows(part, index) for part in data)
    if hasattr(data, "iloc"):
        return data.iloc[index]
    if hasattr(data, "take") and not isinstance(data, np.ndarray):
        return data.take(index)
    return data[index] if hasattr(data, "shape") else np.asarray(data)[index]


def _length(data: Any) -> int:
    lengths = {len(part) for part in data} if isinstance(data, tuple) else {len(data)}
    if len(lengths) != 1:
        raise InvalidDeclaration(f"All parts of the data must have the same number of rows, got {sorted(lengths)}.")
    return lengths.pop()


def _note(safety: Safety) -> str:
    return f"rests on the algorithm: declared to protect {'presence and value' if safety == 'both' else safety}"


def _explain(runs: tuple[Run, ...], specification: Specification, charged: Integers) -> str:
    lines = [
        f"run {number} of {len(runs)} with ε = {run.micro_epsilon / MICRO:g}, weight {run.weight:.3g}"
        for number, run in enumerate(runs, 1)
    ]
    lines += [
        f"{people:,} people with ε = {level / MICRO:g} pay {spent / MICRO:g}"
        for level, people, spent in zip(specification.epsilons, specification.people, charged, strict=True)
    ]
    return "\n".join(lines)

"""Personalize: any algorithm that is private with one ε for all becomes one that honours everybody's own ε.

Whatever the method, the algorithm is run one or more times, each time with one ε on the rows of some people: a `Run`.
Which people, and with which ε, follows from the public specification alone.
"""

from collections.abc import Callable
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from discretion.declaration.parameter import checked, given
from discretion.errors import InvalidDeclaration, QueryRefused, Unsuitable
from discretion.guarantee import Arithmetic, Guarantee, Protects
from discretion.learn.ensemble import Rule, combine
from discretion.learn.people import People, people
from discretion.learn.run import Run, Utility, plan
from discretion.mechanisms.level import Level
from discretion.noise import Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error, Release

Algorithm = Callable[[Any, float], Any]
Method = Literal["minimum", "threshold", "sample", "partition"]
Safety = Literal["presence", "value", "both"]


@checked
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
    threshold: Level | None = None,
    utility: Utility | None = None,
    cuts: Literal["utility", "privacy"] | None = None,
    parts: int | None = None,
    smallest: int | None = None,
    rounds: int | None = None,
    drop: bool | None = None,
    ensemble: Rule = "average",
) -> Release:
    """Run `algorithm(rows, epsilon)` so that nobody loses more than their own epsilon.

    `algorithm_protects` is what the caller vouches for: the algorithm is ε-differentially private when one row is
    added or removed and the number of rows is secret ("presence"), when one row changes and their number is public
    ("value"), or either way ("both"). It must accept any number of rows, none included.

    Options: threshold= for `threshold` and `sample` (a number, "max", "mean", or "best" with utility=); cuts=,
    parts=, smallest=, rounds=, drop=, utility=, ensemble= for `partition`. `utility(people, epsilon)` is larger the
    better (`learn.risk_utility` for empirical risk minimisation). `ensemble` is "average", "vote" (weighted),
    "majority" (one vote each), "models" or a function.
    """
    owners = people(epsilon, _length(data), protects=protects, groups=groups, register=register)
    steps = _steps(algorithm_protects, owners, method, rows_per_person)
    options = given(
        threshold=threshold, utility=utility, cuts=cuts, parts=parts, smallest=smallest, rounds=rounds, drop=drop
    )
    runs = plan(owners.spends, method, options)
    if min(run.micro_epsilon for run in runs) < steps:
        raise Unsuitable(f"There is too little epsilon to divide it by {steps}: use fewer rows_per_person.")
    bounded = owners.bounded(rows_per_person, rng)

    def one(rows: Any, run: Run) -> Any:
        return algorithm(rows, run.micro_epsilon // steps / MICRO)

    output = execute(one, data, owners, runs, ensemble, rng, within=bounded)
    charged = np.sum([run.charge for run in runs], axis=0)
    guarantee = owners.guarantee(charged, arithmetic=arithmetic, note=_note(algorithm_protects))
    return _release(output, method, guarantee, rng, _explain(runs, owners.specification, charged))


def _release(output: Any, method: str, guarantee: Guarantee, rng: Rng, explanation: str) -> Release:
    """Nothing is known about the error of a black box."""
    return Release(
        columns={"output": (output,)},
        errors={"output": (Error(bias=0.0, noise=inf),)},
        mechanism=method,
        guarantee=guarantee,
        simulated=rng is not None,
        explanation=explanation,
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

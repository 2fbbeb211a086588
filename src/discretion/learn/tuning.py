"""Tuning: the sampling threshold t from old, public data, or from a part of the budget ([JYC15] section IV-B)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discretion.arrays import count
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.learn.people import people
from discretion.learn.personalize import Algorithm, execute
from discretion.learn.run import Run, plan
from discretion.noise import Rng
from discretion.preference import MICRO, Integers, Specification, allowance
from discretion.release import Release

Spent = tuple[Guarantee, Integers]  # of a release, and what each person in it could spend, in micro-ε


def tune_threshold(
    algorithm: Algorithm,
    old: Any,
    *,
    epsilon: ArrayLike,
    error: Callable[[Any], float],
    thresholds: Sequence[float] | None = None,
    runs: int = 20,
    rng: Rng = None,
) -> float:
    """Return the threshold t whose samples of old rows give the least mean error.

    The old rows must be public ("old data that is no longer sensitive"): everything about them is read, and nothing is
    charged. `epsilon` are preferences like those of the people to come, one for each old row. `error(output)` says how
    wrong an output is, the smaller the better. `thresholds` defaults to up to 20 of the levels of epsilon.
    """
    owners = people(epsilon, len(old))
    levels = [level / MICRO for level in owners.specification.epsilons if level > 0]
    tried = list(thresholds) if thresholds is not None else levels[:: max(1, len(levels) // 20)]
    if not tried or runs < 1:
        raise InvalidDeclaration("There must be at least one threshold to try, and one run.")

    def mean_error(t: float) -> float:
        planned = plan(owners.spends, "sample", {"threshold": t})

        def one(rows: Any, run: Run) -> Any:
            return algorithm(rows, run.micro_epsilon / MICRO)

        return float(np.mean([error(execute(one, old, owners, planned, rng=rng)) for _ in range(runs)]))

    return min(tried, key=mean_error)


def count_with_pilot(condition: Any, *, epsilon: ArrayLike, portion: float = 0.1, rng: Rng = None) -> Release:
    """Count by Sample, its t tuned from a first, small release that the stricter half of the people pay for.

    Everybody whose epsilon is below the mean spends `portion` of it on a noisy count among themselves. Its interval is
    what the count is expected to be when t is tuned; then Sample is run with what everybody has left. Nobody pays more
    than their epsilon: the two charges add up, and both are in the guarantee.
    """
    if not 0 < portion < 1:
        raise InvalidDeclaration(f"portion must be between 0 and 1, got {portion!r}.")
    ones = np.asarray(condition) != 0
    micro = np.broadcast_to(allowance(epsilon), ones.shape).astype(np.int64)
    strict = micro < micro.mean()
    if not bool((micro[strict] * portion >= 1).any()):
        raise InvalidDeclaration("A pilot needs people of different epsilon: nobody's is below the mean.")
    offered = np.where(strict, np.floor(micro * portion).astype(np.int64), 0)
    pilot = count(ones[strict], epsilon=offered[strict] / MICRO, mechanism="weighted", rng=rng)
    low, high = pilot.interval(0.95)
    people_asked = int(strict.sum())
    expected = float(np.clip(low / people_asked, 0, 1)), float(np.clip(high / people_asked, 0, 1))
    left = _left(micro, offered)
    final = count(ones, epsilon=left / MICRO, mechanism="sample", expect=expected, rng=rng)
    return replace(
        final,
        guarantee=_together(micro, strict, (pilot.guarantee, offered[strict]), (final.guarantee, left)),
        mechanism="sample, t from a pilot",
        explanation=f"a pilot among {people_asked:,} people found a share of {expected[0]:.3g} to {expected[1]:.3g}; "
        f"then: {final.explanation}",
    )


def _left(micro: Integers, offered: Integers) -> Integers:
    """Return what everybody has after the pilot, in micro-ε."""
    return micro - offered


def _together(micro: Integers, strict: NDArray[np.bool_], pilot: Spent, final: Spent) -> Guarantee:
    """Return what both releases cost, by the epsilon that people chose; only the strict were in the pilot."""
    paid = _paid(*final)
    paid[strict] += _paid(*pilot)
    specification, cohort = Specification.assign(micro / MICRO)
    first = np.unique(cohort, return_index=True)[1]  # everybody in a cohort paid the same
    return Guarantee.of(specification, paid[first], protects=final[0].protects)


def _paid(guarantee: Guarantee, micro: Integers) -> Integers:
    """Return what each person pays for a release about people with these micro-ε."""
    charged = np.array([loss.micro_epsilon for loss in guarantee.losses.values()])
    return np.asarray(charged[Specification.assign(micro / MICRO)[1]])

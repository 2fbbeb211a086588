"""Local: noise scaled to what people can do to this very data. Model `individual`, which is NOT differential privacy.

[SDSM17] calls it individual differential privacy. It bounds each person's odds only around the data there is, with
noise that follows the data, so whoever sees the answer can tell neighbouring data apart: where nobody alone could
move the answer there is no noise at all, and seeing that is seeing the secret (docs/errata.md; `discretion attack
idp`). It is here because it was published. It is in no list of mechanisms, no planner chooses it, and it must be
asked for twice.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Arithmetic, Guarantee, Protects
from discretion.mechanisms.effect import Effect, Statistic, effect_of, with_departures
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification, allowance
from discretion.release import Error, IndividualRelease

FEW = 10  # people of whom each one's departure is tried
WARNING = (
    "NOT differential privacy: the noise follows the data, and where no single person could move the answer there is "
    "none: the answer is then exact, and that it is exact tells. Whoever sees several such answers can reconstruct "
    "secrets at almost no ε (discretion attack idp)."
)


def release_individual(
    values: Any,
    *,
    statistic: Statistic,
    epsilon: Any,
    bounds: tuple[float, float],
    model: str = "personalized",
    acknowledged: bool = False,
    protects: Protects = "value",
    q: float | None = None,
    inside: tuple[float, float] | None = None,
    group_epsilon: Sequence[float] = (),
    discrete: bool = False,
    rng: Rng = None,
) -> IndividualRelease:
    """An answer plus Laplace noise of scale max over people of (their effect on it / their ε).

    Definition  [SDSM17] Proposition 5 and Theorem 5, with one ε per person; `discrete` for whole values on the
                integers; `group_epsilon` (ε_1, ε_2, ...) bounds groups of i people by ε_i: scale max_i Δ_i/ε_i.
                `q` is the rank of a quantile (or, for "rank", the place counted from 1), `inside` the range of a count.
    Guarantee   model `individual` only: see WARNING. People who chose 0 are left out.
    Neighbours  of the actual data: value (a missing value is the bound nearest 0) or presence (it is an absence).
    Tested by   tests/mechanisms/test_local.py
    """
    fence(model, acknowledged)
    everybody, micro = _checked(values, epsilon, bounds, statistic, discrete)
    levels, people = np.unique(micro, return_counts=True)
    specification = Specification(epsilons=tuple(levels.tolist()), people=tuple(people.tolist()))
    there = np.isfinite(everybody)
    used = (micro > 0) & (there if protects == "presence" else np.True_)
    data = np.clip(np.where(there, everybody, 0), *bounds)[used]
    data = np.rint(data) if discrete else data

    def of(rest: Floats) -> Effect:
        return effect_of(statistic, rest, bounds, protects, q=q, inside=inside)

    effect = of(data)
    if protects == "presence" and len(data) <= FEW:
        effect = with_departures(effect, data, of)
    scale = scale_of(effect, micro[used], specification.strictest, group_epsilon)
    error = Error(bias=0.0, noise=inf, limits=_limits(statistic, bounds, protects, len(everybody)))
    return IndividualRelease(
        columns={statistic: tuple(noisy(effect.truth, scale, discrete, rng).tolist())},
        errors={statistic: (error,) * len(effect.truth)},
        mechanism="local",
        guarantee=_guarantee(specification, protects, group_epsilon, discrete),
        simulated=rng is not None,
    )


def fence(model: str, acknowledged: bool) -> None:
    """Refuse model `individual` unless it is asked for twice."""
    if model != "individual" or acknowledged is not True:
        raise InvalidDeclaration(
            f'Pass model="individual" and acknowledged=True, got {model!r} and {acknowledged!r}. {WARNING}'
        )


def _checked(
    values: Any, epsilon: Any, bounds: tuple[float, float], statistic: str, discrete: bool
) -> tuple[Floats, Integers]:
    if not (np.isfinite(bounds).all() and bounds[0] < bounds[1]):
        raise InvalidDeclaration(f"bounds must be finite and ascend, got {bounds[0]!r} to {bounds[1]!r}.")
    if discrete and (statistic in ("mean", "midpoint") or any(bound != round(bound) for bound in bounds)):
        raise InvalidDeclaration("Discrete noise is for whole answers: whole bounds, and no mean or midpoint.")
    everybody, micro = np.asarray(values, dtype=np.float64), np.atleast_1d(allowance(epsilon))
    if everybody.shape != micro.shape or everybody.ndim != 1:
        raise InvalidDeclaration("There must be one value and one epsilon per person.")
    return everybody, micro


def _limits(statistic: str, bounds: tuple[float, float], protects: Protects, people: int) -> tuple[float, float]:
    """Return where the truth can lie, from what is declared: the scale of the noise is data and never shown."""
    if statistic in ("count", "histogram"):
        return 0.0, float(people)
    if statistic != "sum":
        return bounds
    low, high = bounds if protects == "value" else (min(bounds[0], 0.0), max(bounds[1], 0.0))
    return low * people, high * people


def _guarantee(
    specification: Specification, protects: Protects, group_epsilon: Sequence[float], discrete: bool
) -> Guarantee:
    """Everybody pays their own ε, or that of a group of one."""
    charged = specification.micro
    if group_epsilon:
        charged = np.where(charged > 0, int(allowance(group_epsilon[0])), 0)
    arithmetic: Arithmetic = "exact" if discrete else "float"
    return Guarantee.of(
        specification, charged, protects=protects, model="individual", arithmetic=arithmetic, note=WARNING
    )


def scale_of(effect: Effect, micro: Integers, strictest: int, group_epsilon: Sequence[float] = ()) -> Fraction:
    """Of the noise. A group's ε replaces everybody's own."""
    if group_epsilon:
        if min(group_epsilon) <= 0 or allowance(group_epsilon[0]) > strictest:
            raise InvalidDeclaration(
                "Every ε of a group must be above 0, and that of one person at most anybody's own."
            )
        return max(Fraction(effect.by_group(i)) / Fraction(e) for i, e in enumerate(group_epsilon, start=1))
    levels, cohort = np.unique(micro, return_inverse=True)
    largest = np.zeros(len(levels))
    np.maximum.at(largest, cohort, effect.by_person)
    needed = [Fraction(move) * MICRO / int(level) for move, level in zip(largest, levels, strict=True)]
    return max([*needed, Fraction(effect.newcomer) * MICRO / strictest])


def noisy(truth: Floats, scale: Fraction, discrete: bool, rng: Rng) -> Floats:
    """Return the truth with Laplace noise, or discrete Laplace noise, of this scale."""
    if discrete:
        return np.asarray(truth + noise.discrete_laplace(scale, truth.size, rng))
    uniform = noise.uniform(2 * truth.size, rng).reshape(2, -1)
    return np.asarray(truth + float(scale) * np.log(uniform[0] / uniform[1]))  # a difference of exponentials

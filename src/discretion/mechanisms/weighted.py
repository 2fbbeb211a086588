"""Weighted: influence min(ε, κ) with the best κ. Our own, and the best of its kind for linear statistics."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discretion.errors import Unsuitable
from discretion.mechanisms import occurrence
from discretion.mechanisms.accuracy import believed, centre, tuned, usual_variance
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.level import best_level, refuse_nobody
from discretion.mechanisms.linear import Linear, is_affine, parts
from discretion.mechanisms.occurrence import Occurrence, counts_keys
from discretion.mechanisms.scheme import capped
from discretion.noise import Floats
from discretion.preference import LARGEST_EPSILON, MICRO, Specification
from discretion.statistics import Aggregate


@dataclass(frozen=True, kw_only=True)
class Weighted(Linear):
    """Give everybody the influence min(ε, κ), κ tuned to the predicted error.

    Definition  Weights w_u = min(ε_u, κ); release Σ w_u x_u + Laplace noise of scale Δ.
                Nothing assumed: the total is the noisy sum over κ, everybody's missing part (1 − w_u/κ) counted as the
                middle of the range, κ from `worst_case_cap`. Preferences unrelated to values (or nearly, by β): the
                noisy sum is divided by Σ w_u / n, κ from `saturation` (or a search, where β > 0 or the answer is a
                ratio of totals).
    Guarantee   min(ε_u, κ): the sum moves by at most w_u Δ.
    Neighbours  presence or value, as the aggregate says; Δ is its sensitivity.
    Tested by   tests/mechanisms/test_linear.py::test_nobody_loses_more_than_the_charge,
                tests/mechanisms/test_weighted.py
    """


def propose(
    aggregate: Aggregate, specification: Specification, belief: Belief, *, cap: float | None = None
) -> Weighted | Occurrence:
    refuse_nobody(specification)
    if cap is not None and not cap > 0:
        raise Unsuitable(f"cap must be above 0, got {cap!r}.")
    if counts_keys(aggregate):
        return best_level(
            cap or "best",
            specification,
            lambda kappa: occurrence.tuned(aggregate, specification, capped(specification, kappa)),
        )
    forms = [_rescaled] if not is_affine(aggregate) else [_shrunk] if belief.beta is None else [_shrunk, _rescaled]
    given = None if cap is None else max(1, int(min(cap, LARGEST_EPSILON) * MICRO))
    return min((form(aggregate, specification, belief, given) for form in forms), key=lambda made: made.error.ranked)


def _shrunk(aggregate: Aggregate, specification: Specification, belief: Belief, cap: int | None) -> Weighted:
    """v_u = min(1, ε_u/κ); what is missing is counted as the centre."""
    middle, means = centre(aggregate, belief), believed(aggregate, belief)
    half = max(float(middle) - means.low, means.high - float(middle))  # the most a person is off the centre
    kappa = cap or worst_case_cap(specification, 2 * float(parts(aggregate)[0].scale) ** 2, half)
    weights = capped(specification, kappa)
    missing = specification.size - Fraction(int(specification.heads @ weights), kappa)
    return tuned(Weighted, aggregate, specification, belief, weights, divisor=Fraction(kappa), offset=middle * missing)


def _rescaled(aggregate: Aggregate, specification: Specification, belief: Belief, cap: int | None) -> Weighted:
    """Weights over their mean: nobody's value is preferred if preferences say nothing about values."""
    if cap is None and is_affine(aggregate) and belief.beta == 0:
        variance = usual_variance(aggregate, belief)
        cap = saturation(specification, 2 * float(parts(aggregate)[0].scale) ** 2 / max(variance, 1e-12))
    if cap is not None:
        return tuned(Weighted, aggregate, specification, belief, capped(specification, cap))
    return best_level(
        "best",
        specification,
        lambda kappa: tuned(Weighted, aggregate, specification, belief, capped(specification, kappa)),
    )


def worst_case_cap(specification: Specification, noise: float, half: float) -> int:
    """κ in micro-ε minimising half²·(Σ (1 − ε_u/κ)₊)² + noise/κ² (noise: its variance at a weight of one ε).

    Convex in t = 1/κ; with m people at or below κ who have A of ε together, t = mA/(noise/half² + A²), and the
    right m is the first whose t lies between its levels (math: mean of a bounded quantity, affine minimax).
    """
    levels, heads = specification.micro / MICRO, specification.heads
    if half <= 0:
        return int(specification.micro[-1])
    people, owned = np.cumsum(heads), np.cumsum(heads * levels)
    with np.errstate(divide="ignore"):
        stationary = (noise / half**2 + owned**2) / (people * owned)  # κ = 1/t
    above = np.append(levels[1:], np.inf)
    caps = np.clip(stationary, levels, above)
    return _nearest_micro(float(caps[np.argmin(_worst_case(caps, levels, heads, noise, half))]))


def _worst_case(caps: Floats, levels: Floats, heads: np.ndarray, noise: float, half: float) -> Floats:
    last = np.searchsorted(levels, caps, side="right")
    people = np.append(0, np.cumsum(heads))[last]
    owned = np.append(0, np.cumsum(heads * levels))[last]
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = half**2 * (people - owned / caps) ** 2 + noise / caps**2
    return np.where(np.isfinite(worst), worst, np.inf)


def saturation(specification: Specification, ratio: float) -> int:
    """κ in micro-ε with Σ_{ε_u<κ} ε_u (κ − ε_u) = ratio (noise variance over value variance), at most the largest ε.

    Minimises (Σ w² + ratio)/(Σ w)² over w = min(ε, κ): its derivative in κ has the sign of the left side minus the
    right, which ascends in κ.
    """
    levels, heads = specification.micro / MICRO, specification.heads
    owned, squared = np.cumsum(heads * levels), np.cumsum(heads * levels**2)
    with np.errstate(divide="ignore", invalid="ignore"):  # levels that nobody has
        kappa = (ratio + squared) / owned
    reached = np.flatnonzero(kappa[:-1] <= levels[1:])
    return _nearest_micro(float(kappa[reached[0]]) if reached.size else float(levels[-1]))


def _nearest_micro(cap: float) -> int:
    return max(1, round(cap * MICRO))

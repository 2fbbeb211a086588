"""How far a weighted answer can be from the truth, from public information and the analyst's belief.

An affine estimate of a total is Σ_u v_u x_u + offset + noise, v the same within a cohort. Everything here is in grid
steps per person until `error` turns it into the units of the answer.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import exp, expm1, hypot, sqrt
from typing import Any, TypeVar

import numpy as np

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.linear import Linear, bessel, is_affine, parts, unit_of
from discretion.noise import Floats
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate

L = TypeVar("L", bound=Linear)
RATIO_ASSUMES = "everybody has a value and groups are equally large"
GROUP_ASSUMES = "those with a value have preferences like everybody's"


@dataclass(frozen=True, kw_only=True)
class Means:
    """Where the cohorts' means are believed to lie, in steps: all in low..high, no two further apart than `spread`."""

    low: float
    high: float
    spread: float
    variance: float  # the most one person's value can vary around such a mean
    square: float  # the most its mean square can be
    at_random: bool  # whether preferences are believed to fall on people (nearly) at random
    lopsided: float = 0.0  # range² − 4·variance: 0 where a value may be anything, range² where it is nearly always one

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


@lru_cache(maxsize=256)
def believed(aggregate: Aggregate, belief: Belief) -> Means:
    """What the belief says about this aggregate; without one, all that its bounds allow."""
    least, most = aggregate.person_range if is_affine(aggregate) else (aggregate.lower, aggregate.upper)
    low, high = float(least), float(most)
    if belief.expect is not None:
        steps = [(value - float(aggregate.origin)) / float(aggregate.step) for value in belief.expect]
        low, high = max(low, steps[0]), min(high, steps[1])
        if low > high:
            raise InvalidDeclaration(
                f"expect must overlap the bounds, got {belief.expect[0]:g} to {belief.expect[1]:g}."
            )
    spread = high - low if belief.beta is None else min(belief.beta * (most - least), high - low)
    peak = min(max((least + most) / 2, low), high)  # (m − least)(most − m) bounds the variance around a mean m
    variance = (peak - least) * (most - peak)
    return Means(
        low=low,
        high=high,
        spread=spread,
        variance=variance,
        lopsided=max(0.0, (most - least) ** 2 - 4 * variance),
        square=max((least + most) * end - least * most for end in (low, high)),  # the chord above x²
        at_random=belief.beta is not None,
    )


def centre(aggregate: Aggregate, belief: Belief) -> Fraction:
    """What a person left out is counted as, in steps.

    The middle of what is believed; with no belief, the middle of the range where values are protected and there is
    one group; else 0, because most people of a register are usually absent, and absent from most groups.
    """
    if belief.expect is None and (aggregate.protects == "presence" or aggregate.groups > 1):
        return Fraction(0)
    return Fraction(believed(aggregate, belief).middle).limit_denominator(10**6)


def bias(share: Floats, heads: Integers, means: Means, offset: float) -> float:
    """max |Σ N_c (v_c − 1) μ_c + offset| over all cohort means μ the belief allows.

    With μ_c = μ + δ_c, |δ_c| ≤ spread/2, the two terms separate; the first is convex in μ, so an end attains it.
    """
    missing = over(heads, share - 1)
    if abs(missing) < 1e-9 * int(heads.sum()):  # weights rescaled to add up to everybody, but for rounding
        missing = 0.0
    ends = (means.low + means.spread / 2, means.high - means.spread / 2)
    common = max(abs(missing * ends[0] + offset), abs(missing * ends[1] + offset))
    return common + means.spread / 2 * over(heads, np.abs(share - 1))


def assignment(share: Floats, heads: Integers, means: Means) -> float:
    """Variance of Σ (v_u − 1) x_u, over that of one x, if preferences fall on people at random; else bias covers it."""
    people, left = int(heads.sum()), share - 1
    if people < 2 or not means.at_random:
        return 0.0
    squared, total = over(heads, left**2), over(heads, left)
    return max(0.0, squared - total**2 / people) * people / (people - 1)


def lump(share: Floats, heads: Integers, means: Means) -> float:
    """How much further than by its variance Σ (v_u − 1) x_u may stray if preferences fall on people at random.

    Where few people have a value and few people's weights multiply it, the sum is a Poisson number of such weights.
    One weight more than `Error.half_width` gives its variance covers any Poisson law, at 50% to 99.9%.
    """
    if not means.at_random:
        return 0.0
    return sqrt(means.lopsided) * float(np.abs(share - 1)[heads > 0].max(initial=0.0))


def over(heads: Integers, values: Floats) -> float:
    """Σ over people of a value by cohort. (A matrix product would wake threads, which takes longer.)"""
    return float((heads * values).sum())


def laplace_variance(scale: float) -> float:
    """Variance of discrete Laplace noise: 2q/(1−q)², q = e^(−1/scale)."""
    return 2 * exp(-1 / scale) / expm1(-1 / scale) ** 2 if scale > 0 else 0.0


def total_error(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    share: Floats,
    *,
    offset: float = 0.0,
    variance: float,
) -> Error:
    """The error of an affine estimate whose people count `share` and whose noise has this variance, in steps².

    A number β adds scatter to a bias nearly as bad as the worst: where the worst case is better, it holds, and is used.
    """
    unit = float(aggregate.step) / (specification.size if aggregate.kind == "mean" else 1)
    heads, parts_of_error = specification.heads, []
    for used in [belief, Belief()] if belief.beta else [belief]:
        means = believed(aggregate, used)
        drawn = sqrt(variance + means.variance * assignment(share, heads, means))
        off, further = bias(share, heads, means, offset), lump(share, heads, means)
        parts_of_error.append((unit * off, unit * drawn, unit * further, used))
    off, drawn, further, used = min(parts_of_error, key=lambda found: hypot(found[0], found[1]))
    within = limits(aggregate, specification)
    return Error(bias=off, noise=drawn, pull=further, assumption=str(used), limits=within)


def limits(aggregate: Aggregate, specification: Specification) -> tuple[float, float]:
    """Where the truth can lie at all, in the units of the answer."""
    step, origin, people = float(aggregate.step), float(aggregate.origin), specification.size
    if aggregate.kind == "mean":
        return origin + step * aggregate.lower, origin + step * aggregate.upper
    if aggregate.kind == "variance":
        fewest = people if aggregate.size_is_public else 2  # a sample variance is largest for the fewest rows
        factor = float(bessel(fewest)) if aggregate.sample else 1.0
        return 0.0, factor * (step * (aggregate.upper - aggregate.lower)) ** 2 / 4
    low, high = aggregate.person_range
    fixed = origin * people if aggregate.size_is_public else 0.0
    return fixed + step * low * people, fixed + step * high * people


def ratio_error(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    weights: Floats,
    coins: float = 0.0,
    part: float | None = None,
    near: float | None = None,
) -> Error:
    """The error of a mean or variance over a private number of people, by the delta method.

    How many people have a value is secret: before the release the error is stated for a full register, evenly spread
    over the groups; after it for those who have `part` of all weight in a group. Either way they are taken to have
    preferences like everybody's. τ = Σ|w/Σw − 1/n|/2 is how far the weights shift one person's share to another: a
    mean moves by at most τ·spread. `coins`: Σ Var(weight) / (Σ weight)², where weights are drawn. A wrong denominator
    moves a mean in proportion to its distance from the middle, and `near` is that of the released one, in steps.
    """
    means, heads, people = believed(aggregate, belief), specification.heads, specification.size
    within, assumes = limits(aggregate, specification), RATIO_ASSUMES if part is None else GROUP_ASSUMES
    part = 1 / aggregate.groups if part is None else part
    if part <= 0:  # not told apart from nobody: the answer may be anything
        return Error(bias=within[1] - within[0], noise=0.0, assumption=str(belief), limits=within)
    total = max(1.0, over(heads, weights))
    share = np.asarray(weights * (people / total), dtype=np.float64)
    moved = over(heads, np.abs(share - 1)) / people / 2  # τ
    scatter = (assignment(share, heads, means) / people**2 + coins) / part
    noises = [sqrt(2) * float(one.scale) * MICRO / (total * part) for one in parts(aggregate)]
    middle = (aggregate.lower + aggregate.upper) / 2
    away = max(middle - means.low, means.high - middle)  # from the middle, in steps
    if near is not None and 3 * noises[-1] < 1:  # d ≤ near + 3(a + d·b), a and b the noise of numerator, denominator
        away = min(away, (near + 1.5 * noises[0]) / (1 - 3 * noises[-1]))
    mean_noise = noises[0] / 2 if aggregate.size_is_public else hypot(noises[0] / 2, away * noises[-1])
    if aggregate.kind == "mean":
        shifted, drawn, unit = moved * means.spread, sqrt(mean_noise**2 + means.variance * scatter), aggregate.step
    else:
        moved *= 1.0 if belief.beta is None else belief.beta
        shifted, drawn = _variance_error(aggregate, noises, mean_noise, moved, away)
        unit = aggregate.step**2
        drawn = hypot(drawn, (aggregate.upper - aggregate.lower) ** 2 * sqrt(scatter / 12))
        if aggregate.sample:
            unsure = 0.0 if aggregate.size_is_public else hypot(noises[-1], sqrt(scatter))
            shifted, drawn = _sample_error(aggregate, people * part, unsure, shifted, drawn)
    return Error(
        bias=float(unit) * shifted,
        noise=float(unit) * drawn,
        assumption="; ".join(filter(None, [str(belief), "" if aggregate.size_is_public else assumes])),
        limits=within,
    )


def ratio_errors(
    aggregate: Aggregate, specification: Specification, belief: Belief, weights: Floats, coins: float = 0.0
) -> dict[str, Any]:
    """The fields `error` and `error_at` of a ratio: before and after its release."""
    at = partial(ratio_error, aggregate, specification, belief, weights, coins)
    return {"error": at(), "error_at": at}


def _variance_error(
    aggregate: Aggregate, noises: list[float], mean_noise: float, moved: float, away: float
) -> tuple[float, float]:
    """Bias and noise of second moment − mean², in squared steps.

    The variance is half the mean squared distance of two people, who are a shifted pair with probability at most
    2τ − τ²; squaring a noisy mean adds its variance. (Randomly assigned weights add at most width⁴/12 times their
    own scatter: (x − mean)² varies by at most V(M² − V), M the larger distance to a bound, V ≤ mean·(range − mean).)
    """
    width = aggregate.upper - aggregate.lower
    square = noises[1] / 4 if aggregate.size_is_public else hypot(noises[1], width**2 * noises[-1]) / 8
    shifted = (2 * moved - moved**2) * width**2 / 2
    return shifted + mean_noise**2, hypot(square, 2 * away * mean_noise)


def _sample_error(
    aggregate: Aggregate, rows: float, unsure: float, shifted: float, drawn: float
) -> tuple[float, float]:
    """Return bias and noise of a sample variance, given those of the population variance, in squared steps.

    Both grow by n/(n − 1), `rows` being n. Where n is released with the relative error `unsure`, the factor moves by
    n·unsure/(n − 1)², and never by more than 1, its whole range. The variance it multiplies is at most width²/4.
    """
    factor, known = float(bessel(rows)), max(rows, 2.0)
    moved = min(known * unsure / (known - 1) ** 2, 1.0) * (aggregate.upper - aggregate.lower) ** 2 / 4
    return factor * shifted, hypot(factor * drawn, moved)


def _affine_error(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    weights: Integers,
    divisor: Fraction,
    offset: Fraction,
) -> Error:
    unit = unit_of(weights)
    scale = float(parts(aggregate)[0].scale) * MICRO / unit
    return total_error(
        aggregate,
        specification,
        belief,
        weights / float(divisor),
        offset=float(offset),
        variance=laplace_variance(scale) * (unit / float(divisor)) ** 2,
    )


def tuned(
    kind: type[L],
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    weights: Integers,
    *,
    divisor: Fraction | None = None,
    offset: Fraction = Fraction(0),
) -> L:
    """The mechanism with these weights; without a divisor, weights are rescaled to add up to everybody."""
    asked = int(specification.heads @ weights)
    if asked == 0:
        raise Unsuitable("It would leave nobody to answer about.")
    if divisor is None:
        divisor = Fraction(asked, specification.size)
    shape: dict[str, Any] = {"aggregate": aggregate, "specification": specification, "weights": tuple(weights.tolist())}
    if is_affine(aggregate):
        error = _affine_error(aggregate, specification, belief, weights, divisor, offset)
        return kind(**shape, divisor=divisor, offset=offset, error=error)
    return kind(**shape, **ratio_errors(aggregate, specification, belief, weights.astype(np.float64)))

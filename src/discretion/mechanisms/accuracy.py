"""How far a weighted answer can be from the truth, from public information and the analyst's belief.

An affine estimate of a total is Σ_u v_u x_u + offset + noise, v the same within a cohort. Everything here is in grid
steps per person until `error` turns it into the units of the answer.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import exp, expm1, hypot, sqrt
from typing import Any, TypeVar

import numpy as np

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.form import Form, forms, is_affine, parts
from discretion.mechanisms.linear import Linear, bessel, unit_of
from discretion.mechanisms.noisy import Noisy
from discretion.noise import Floats
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate

L = TypeVar("L", bound=Linear)
RATIO_ASSUMES = "everybody has one row with a value and groups are equally large"
GROUP_ASSUMES = "people with a value here chose their privacy like everybody"
NARROWED = 8  # times that a released value narrows what may vary around it


@dataclass(frozen=True, kw_only=True)
class Means:
    """Says where the cohorts' means are believed to lie, in steps: in low..high, no two further apart than `spread`."""

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
    """Return what the belief says about this aggregate; without one, all that its bounds allow."""
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


def usual_variance(aggregate: Aggregate, belief: Belief) -> float:
    """Return the variance to tune to: half of the largest, if a mean may be anywhere, else the largest.

    Jeffreys' prior of a share m expects m(1 − m) to be 1/8, where the largest is 1/4.
    """
    return believed(aggregate, belief).variance / (2 if belief.expect is None else 1)


def _narrowed(aggregate: Aggregate, means: Means, between: tuple[float, float]) -> Means:
    """Return the same, with no more variance than the mean of all people, between these, leaves."""
    least, most = aggregate.person_range
    low, high = max(float(least), between[0]), min(float(most), between[1])
    if low > high:  # noise took the estimate where no mean can be
        return means
    peak = min(max((least + most) / 2, low), high)
    variance = min(means.variance, (peak - least) * (most - peak))
    return replace(means, variance=variance, lopsided=max(0.0, (most - least) ** 2 - 4 * variance))


def centre(aggregate: Aggregate, belief: Belief) -> Fraction:
    """Return what a person left out is counted as, in steps.

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
    left = heads * (share - 1)
    missing = float(left.sum())
    if abs(missing) < 1e-9 * int(heads.sum()):  # weights rescaled to add up to everybody, but for rounding
        missing = 0.0
    half = means.spread / 2
    common = max(abs(missing * (means.low + half) + offset), abs(missing * (means.high - half) + offset))
    return common + half * float(np.abs(left).sum()) if half else common


def assignment(share: Floats, heads: Integers, means: Means) -> float:
    """Variance of Σ (v_u − 1) x_u, over that of one x, if preferences fall on people at random; else bias covers it."""
    people, left = int(heads.sum()) if means.at_random else 0, share - 1
    if people < 2:
        return 0.0
    squared, total = over(heads, left**2), over(heads, left)
    return max(0.0, squared - total**2 / people) * people / (people - 1)


def lump(share: Floats, heads: Integers, means: Means) -> float:
    """Return how much further than by its variance Σ (v_u − 1) x_u may stray if preferences fall on people at random.

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
    value: float | None = None,
) -> Error:
    """The error of an affine estimate whose people count `share` and whose noise has this variance, in steps².

    A number β adds scatter to a bias nearly as bad as the worst: where the worst case is better, it holds, and is used.
    After the release, `value` is what was estimated: it says how much people's values can vary at most. A mean is
    surely no further away than three deviations at its own variance. Whatever bounds that variance bounds the distance,
    which bounds the variance again: repeated, this ends at the means that are no further away than that.
    """
    error = _total_error(aggregate, specification, belief, share, offset, variance)
    if value is None or belief.beta is None or not error.noise:
        return error
    unit, fixed = _unit(aggregate, specification.size)
    for _ in range(NARROWED):
        reach, half = error.bias + error.pull + 3 * error.noise, error.half_width()
        low, high = ((end - fixed) / unit / specification.size for end in (value - reach, value + reach))
        after = _total_error(aggregate, specification, belief, share, offset, variance, (low, high))
        error = min(error, after, key=lambda found: found.half_width())
        if error.half_width() > 0.99 * half:
            break
    return error


@lru_cache(maxsize=256)
def _unit(aggregate: Aggregate, people: int) -> tuple[float, float]:
    """Return what a step of the total of so many people is in the answer, and what is added to it."""
    step, origin = float(aggregate.step), float(aggregate.origin)
    if aggregate.kind == "mean":
        return step / people, origin
    return step, origin * people if aggregate.size_is_public else 0.0


def _total_error(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    share: Floats,
    offset: float,
    variance: float,
    between: tuple[float, float] | None = None,
) -> Error:
    """Return the error, where the mean of all people surely lies `between` these, in steps."""
    unit, _ = _unit(aggregate, specification.size)
    heads, parts_of_error = specification.heads, []
    for used in [belief, Belief()] if belief.beta else [belief]:
        means = believed(aggregate, used)
        if between is not None:
            means = _narrowed(aggregate, means, between)
        usual, scatter = None, assignment(share, heads, means)
        if means.at_random and used.expect is None:
            usual = variance + usual_variance(aggregate, used) * scatter
        drawn = sqrt(variance + means.variance * scatter)
        off, further = bias(share, heads, means, offset), lump(share, heads, means)
        expected = None if usual is None else unit * sqrt(off**2 + usual)
        parts_of_error.append((unit * off, unit * drawn, unit * further, used, expected))
    off, drawn, further, used, expected = min(parts_of_error, key=lambda found: hypot(found[0], found[1]))
    within = limits(aggregate, specification)
    return Error(bias=off, noise=drawn, pull=further, assumption=str(used), limits=within, expected=expected)


def limits(aggregate: Aggregate, specification: Specification) -> tuple[float, float]:
    """Return where the truth can lie at all, in the units of the answer."""
    return _limits(aggregate, specification.size)


@lru_cache(maxsize=256)
def _limits(aggregate: Aggregate, people: int) -> tuple[float, float]:
    step, origin = float(aggregate.step), float(aggregate.origin)
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
    form: Form,
    coins: float = 0.0,
    part: float | None = None,
    near: float | None = None,
) -> Error:
    """The error of a mean or variance over a private number of people, by the delta method.

    How many people have a value is secret: before the release the error is stated for a full register, evenly spread
    over the groups; after it for those who have `part` of all weight in a group. Either way they are taken to have
    preferences like everybody's. τ = Σ|w/Σw − 1/n|/2 is how far the weights shift one person's share to another: a
    mean moves by at most τ·spread. `coins`: Σ Var(weight) / (Σ weight)², where weights are drawn. `near` is how far
    the released mean is from the middle, as a position from −1 to 1: noise of the number of rows moves a mean in
    proportion to that, and values around a mean m vary by at most (m − lower)(upper − m): both cannot be at their
    worst.
    """
    means, heads, people = believed(aggregate, belief), specification.heads, specification.size
    within, assumes = limits(aggregate, specification), RATIO_ASSUMES if part is None else GROUP_ASSUMES
    part = 1 / aggregate.groups if part is None else part
    if part <= 0:  # not told apart from nobody: the answer may be anything
        return Error(bias=within[1] - within[0], noise=0.0, assumption=str(belief), limits=within)
    total = max(1.0, over(heads, weights))
    share = np.asarray(weights * (people / total), dtype=np.float64)
    moved = over(heads, np.abs(share - 1)) / people / 2  # τ
    scatter = max(0.0, (assignment(share, heads, means) / people**2 + coins) / part)  # rounding can make it negative
    noisy = Noisy.of(aggregate, form, total * part)
    half = (aggregate.upper - aggregate.lower) / 2
    shifted = moved * means.spread  # in steps
    unsure = 3 * sqrt(scatter) + shifted / max(half, 0.5)
    middle, side = (aggregate.lower + aggregate.upper) / 2, max(half, 0.5)
    nearest, furthest = noisy.reach(((means.low - middle) / side, (means.high - middle) / side), near, unsure)
    mean_noise, expected = half * noisy.mean(furthest), None
    if aggregate.kind == "mean":
        # In m² a straight line: the worst is at an end, what Jeffreys' prior expects in the middle.
        ends = [(half * noisy.mean(m)) ** 2 + half**2 * (1 - m**2) * scatter for m in (nearest, furthest)]
        drawn, unit = sqrt(max(ends)), aggregate.step
        if means.at_random:
            expected = float(unit) * sqrt(shifted**2 + sum(ends) / 2)
    else:
        moved *= 1.0 if belief.beta is None else belief.beta
        # The variance is half the mean squared distance of two people, who are a shifted pair with probability at most
        # 2τ − τ²; squaring a noisy mean adds its variance. Randomly assigned weights add at most width⁴/12 times their
        # scatter: (x − mean)² varies by at most V(M² − V), M the larger distance to a bound, V ≤ mean·(range − mean).
        shifted = (2 * moved - moved**2) * 2 * half**2 + mean_noise**2
        drawn = hypot(half**2 * noisy.variance(nearest, furthest), 4 * half**2 * sqrt(scatter / 12))
        unit = aggregate.step**2
        if aggregate.sample:
            rows = 0.0 if aggregate.size_is_public else hypot(float(noisy.deviation(1.0, 0.0, 0.0)), sqrt(scatter))
            shifted, drawn = _sample_error(aggregate, people * part, rows, shifted, drawn)
    return Error(
        bias=float(unit) * shifted,
        noise=float(unit) * drawn,
        assumption="; ".join(filter(None, [str(belief), "" if aggregate.size_is_public else assumes])),
        limits=within,
        expected=expected,
    )


def ratio_errors(
    aggregate: Aggregate, specification: Specification, belief: Belief, weights: Floats, coins: float = 0.0
) -> dict[str, Any]:
    """Return the fields of a ratio: the form of least predicted error, and that error before and after the release."""
    found = []
    for form in forms(aggregate):
        error_at = partial(ratio_error, aggregate, specification, belief, weights, form, coins)
        found.append({"form": form, "error": error_at(), "error_at": error_at})
    return min(found, key=lambda fields: fields["error"].ranked)


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


def _grained_error(
    grain: float, aggregate: Aggregate, specification: Specification, *what: Any, variance: float, **how: Any
) -> Error:
    """The error of a total whose noise is a whole number of grains, in steps: told if nothing else is random."""
    error = total_error(aggregate, specification, *what, variance=variance, **how)
    unit, _ = _unit(aggregate, specification.size)
    is_all = 0 < error.noise <= (1 + 1e-9) * unit * sqrt(variance)
    return replace(error, grain=unit * grain) if is_all else error


def _affine_errors(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    weights: Integers,
    divisor: Fraction,
    offset: Fraction,
) -> dict[str, Any]:
    """Return the fields `error` and `error_at` of a total: before and after its release."""
    unit = unit_of(weights)
    scale = float(parts(aggregate)[0].scale) * MICRO / unit
    at = partial(
        _grained_error,
        unit / float(divisor),
        aggregate,
        specification,
        belief,
        weights / float(divisor),
        offset=float(offset),
        variance=laplace_variance(scale) * (unit / float(divisor)) ** 2,
    )
    return {"error": at(), "error_at": None if belief.beta is None else at}


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
        errors = _affine_errors(aggregate, specification, belief, weights, divisor, offset)
        return kind(**shape, divisor=divisor, offset=offset, **errors)
    return kind(**shape, **ratio_errors(aggregate, specification, belief, weights.astype(np.float64)))

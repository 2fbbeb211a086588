"""Stretching: shrink each item by the weight its owner chose, then add noise for the whole function [AGK16].

Definition  release f(diag(w) d) + noise of scale S(f)/ε; w_i is the largest a in [0, 1] (to one part in 2^52,
            rounded down) with S_i(f ∘ diag(1, .., a, .., 1)) ≤ v_i S(f).
Guarantee   item i loses at most ε·v_i, also when item and weight change together (then ε·max(v_i, v_i')): w is
            non-decreasing in v, so both shrunk profiles lie in diag(w_max) D and differ in item i only. The answer is
            put on a grid of S(f)/10^6 first: a move of at most v_i·S(f) is at most v_i·10^6 whole steps, because
            ⌊x + m⌋ − ⌊x⌋ ≤ m for whole m, and the noise is discrete Laplace of scale 10^6/ε steps.
Neighbours  two profiles that differ in one item (and possibly in its weight).
Tested by   tests/social/test_stretching.py::test_no_item_loses_more_than_its_weight_allows
"""

from collections.abc import Iterable
from fractions import Fraction
from math import exp, floor, isfinite, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.noise import Rng, discrete_laplace
from discretion.preference import MICRO, allowance
from discretion.release import Error, Release
from discretion.social.function import Function
from discretion.social.weight import WHOLE, promise, thousandths

STEPS = 1_000_000  # grid steps in one S(f); a multiple of WHOLE, so that v·STEPS is whole
BITS = 52  # a shrinking factor is a multiple of 2^-52


def shrinkage(function: Function, weights: ArrayLike) -> tuple[Fraction, ...]:
    """The factor w_i of each item for its privacy weight v_i, by bisection, always on the private side.

    a ↦ S_i(f ∘ diag(1, .., a, .., 1)) is non-decreasing on a box that contains 0 ([AGK16] Corollary 3, proved in
    docs/social.md), so the allowed factors form an interval that starts at 0.
    """
    levels = _levels(function, weights)
    return tuple(_largest(function, item, Fraction(level, WHOLE)) for item, level in enumerate(levels))


def stretch(function: Function, profile: ArrayLike, weights: ArrayLike, *, epsilon: float, rng: Rng = None) -> Release:
    """Answer `function` on one profile so that item i loses at most ε·v_i. Values outside their bounds are clamped."""
    micro_epsilon = _micro(epsilon)
    _refuse_jumps(function)
    factors = shrinkage(function, weights)
    steps = on_grid(function, profile, factors) + int(
        discrete_laplace(Fraction(STEPS * MICRO, micro_epsilon), 1, rng)[0]
    )
    worst = _worst_bias(function)
    return Release(
        columns={"value": (float(steps * function.overall / STEPS),)},
        errors={"value": (Error(bias=worst, noise=_deviation(function, micro_epsilon), assumption=""),)},
        mechanism="stretch",
        guarantee=promise(micro_epsilon, arithmetic="exact" if function.exact else "float"),
        simulated=rng is not None,
        explanation=f"stretching of {function.name}: noise scale {float(function.overall * MICRO / micro_epsilon):g}; "
        f"the weights are private, so the bias is bounded by {worst:g} only (distortion() buys a better bound)",
    )


def on_grid(function: Function, profile: ArrayLike, factors: Iterable[Fraction]) -> int:
    """f(diag(w) d) in whole grid steps of S(f)/STEPS, rounded down. Private until noise is added."""
    values = np.asarray(profile, dtype=np.float64)
    if values.shape != (function.items,):
        raise InvalidDeclaration(f"A profile for {function.name} needs {function.items} items, got {values.shape}.")
    clamped = (
        min(max(Fraction(value) if isfinite(value) else Fraction(0), low), high)
        for value, (low, high) in zip(values.tolist(), function.bounds, strict=True)
    )
    answer = function.evaluate([w * d for w, d in zip(factors, clamped, strict=True)])
    if isinstance(answer, float) and not isfinite(answer):
        raise InvalidDeclaration(f"{function.name} must be finite on its whole box. Tighten the bounds.")
    return floor(Fraction(answer) * STEPS / function.overall)


def distortion(
    function: Function, weights: ArrayLike, *, epsilon: float, confidence: float = 0.95, rng: Rng = None
) -> Release:
    """A bound on |f(diag(w) d) − f(d)| that holds with this confidence; costs item i another ε·v_i.

    |f(diag(w) d) − f(d)| ≤ Σ L_i (1 − w_i) M_i along the path that changes one item at a time (L_i slope, M_i largest
    |d_i|) ≤ Σ L_i M_i − U with U = Σ min(w_i L_i M_i, v_i S). U reads the weights only, and item i moves it by at most
    max(v_i, v_i') S, whatever its weight changes to; so U + noise of scale S/ε costs what stretching costs.
    """
    if function.slopes is None:
        raise Unsuitable(f"A distortion bound needs the slopes of {function.name}. Declare them, or use lipschitz().")
    if not 0 < confidence < 1:
        raise InvalidDeclaration(f"A confidence must be between 0 and 1, got {confidence!r}.")
    micro_epsilon = _micro(epsilon)
    scale = Fraction(STEPS * MICRO, micro_epsilon)
    noisy = used_steps(function, weights) + int(discrete_laplace(scale, 1, rng)[0])
    margin = _upper_quantile(float(scale), 1 - confidence)
    bound = _worst_bias(function) - float((noisy - margin) * function.overall / STEPS)
    return Release(
        columns={"bound": (min(max(bound, 0.0), _worst_bias(function)),)},
        errors={"bound": (Error(bias=0.0, noise=_deviation(function, micro_epsilon)),)},
        mechanism="stretch (distortion)",
        guarantee=promise(micro_epsilon, note=f"a bound that holds with confidence {confidence:g}"),
        simulated=rng is not None,
        explanation=f"above the true distortion with probability {confidence:g}",
    )


def used_steps(function: Function, weights: ArrayLike) -> int:
    """U of `distortion` in whole grid steps, rounded down item by item: item i adds at most v_i·STEPS."""
    slopes = function.slopes or ()
    return sum(
        min(floor(w * slopes[i] * function.magnitude(i) * STEPS / function.overall), int(v) * (STEPS // WHOLE))
        for i, (w, v) in enumerate(zip(shrinkage(function, weights), _levels(function, weights), strict=True))
    )


def bias_bound(function: Function, weights: ArrayLike, profile: ArrayLike) -> float:
    """ρ = Σ L_i (1 − w_i) |d_i| ≥ |bias|. For the owner: it reads profile and weights."""
    if function.slopes is None:
        raise Unsuitable(f"A bias bound needs the slopes of {function.name}. Declare them, or use lipschitz().")
    shrunk = 1 - np.array([float(w) for w in shrinkage(function, weights)])
    return float(np.abs(np.asarray(profile, dtype=np.float64)) * shrunk @ np.array([float(s) for s in function.slopes]))


def tail(distance: float, *, bias: float, scale: float, step: float = 0.0) -> float:
    """P(|error| > distance), exactly, for this bias; noise Laplace of this scale, on multiples of `step` if given.

    [AGK16] Theorem 3 drops a term and is too small by up to a factor 2 (docs/errata.md).
    """
    if step > 0:
        above = floor((distance - bias) / step) + 1  # the least z with bias + step·z > distance
        below = floor((distance + bias) / step) + 1  # the least z with bias − step·z < −distance
        return min(1.0, _discrete_tail(above, step / scale) + _discrete_tail(below, step / scale))
    if abs(bias) < distance:
        return exp((abs(bias) - distance) / scale) * (1 + exp(-2 * abs(bias) / scale)) / 2  # e^(−k/b) cosh(r/b)
    near, far = (distance - abs(bias)) / scale, (-distance - abs(bias)) / scale
    return 1 - (exp(near) - exp(far)) / 2  # 1 − e^(−|r|/b) sinh(k/b)


def tail_bound(distance: float, *, bias_bound: float, scale: float) -> float:
    """P(|error| > distance) for any |bias| ≤ bias_bound: e^(−k/b) cosh(ρ/b), in place of Theorem 3 as printed."""
    if bias_bound >= distance:
        return 1.0
    return tail(distance, bias=bias_bound, scale=scale)


def _discrete_tail(least: int, rate: float) -> float:
    """P(Z ≥ least) for P(Z = z) ∝ e^(−rate·|z|)."""
    if least > 0:
        return exp(-rate * least) / (1 + exp(-rate))
    return 1 - exp(-rate * (1 - least)) / (1 + exp(-rate))


def _upper_quantile(scale: float, chance: float) -> int:
    """The least m ≥ 0 with P(Z > m) ≤ chance."""
    return max(0, int(np.ceil(scale * -(log(chance) + log1p(exp(-1 / scale))))))


def _largest(function: Function, item: int, weight: Fraction) -> Fraction:
    allowed = weight * function.overall
    if function.moves(item, Fraction(1)) <= allowed:
        return Fraction(1)
    private, too_far = 0, 1 << BITS
    while too_far - private > 1:
        middle = (private + too_far) // 2
        if function.moves(item, Fraction(middle, 1 << BITS)) <= allowed:
            private = middle
        else:
            too_far = middle
    return Fraction(private, 1 << BITS)


def _refuse_jumps(function: Function) -> None:
    """A function that no factor above 0 calms (a count of non-zeros in disguise) is refused; looks at no profile."""
    for item in range(function.items):
        if 10 * function.moves(item, Fraction(1, 1 << BITS)) > function.moves(item, Fraction(1)):
            raise Unsuitable(
                f"Stretching cannot answer {function.name}: however far item {item} is shrunk it moves the answer as "
                "far as before, so every weight below 1 becomes 0. Use a function without jumps at 0."
            )


def _levels(function: Function, weights: ArrayLike) -> list[int]:
    levels = thousandths(weights)
    if levels.shape != (function.items,):
        raise InvalidDeclaration(f"{function.name} needs one weight for each of {function.items} items.")
    return [int(level) for level in levels]


def _micro(epsilon: float) -> int:
    micro_epsilon = int(allowance(epsilon))
    if micro_epsilon <= 0:
        raise InvalidDeclaration(f"A release needs an epsilon of at least one millionth, got {epsilon!r}.")
    return micro_epsilon


def _worst_bias(function: Function) -> float:
    """The bias if every weight were 0: all that a reader knows before buying a distortion bound."""
    if function.slopes is None:  # moving the items to 0 one at a time moves f by S_i each
        return float(sum(function.moves(item, Fraction(1)) for item in range(function.items)))
    return float(sum(slope * function.magnitude(item) for item, slope in enumerate(function.slopes)))


def _deviation(function: Function, micro_epsilon: int) -> float:
    """Standard deviation of the discrete Laplace noise: √2 times its scale, to within the grid."""
    return sqrt(2) * float(function.overall) * MICRO / micro_epsilon

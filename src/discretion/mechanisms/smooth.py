"""Smooth: the answer plus heavy-tailed noise scaled to its smooth sensitivity, calibrated by the exact loss."""

from dataclasses import dataclass
from functools import lru_cache
from math import asinh, exp, expm1, inf, sinh, sqrt

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.rank import histograms
from discretion.mechanisms.sensitivity import Ordered, log_smooth
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

USEFUL_EPSILON = 30.0  # a larger ε is treated as this: nothing more is gained, and doubles overflow
SHARE = {2.0: 0.65, 3.0: 0.28}  # β over ε, the best on evenly spread values; elsewhere 1/(2γ − 2)


@dataclass(frozen=True, kw_only=True)
class Smooth:
    """Release an order statistic plus (S/α)·Z, Z with density ∝ 1/(1 + |z|^γ), S its β-smooth sensitivity.

    Definition  [NRS07] with noise of polynomial tails, as compared with in [SDSM17]: S = max_k e^(−βk) A_k, A_k the
                largest local sensitivity within k changes. The answer is then rounded to the grid and to the bounds.
    Guarantee   the strictest ε for everybody above 0: ordinary differential privacy, because α is the largest with
                `exact_loss`(γ, α, β) ≤ ε. As printed in [SDSM17] (β = ε, α = ε/4γ) it loses 2.01 at ε = 1, γ = 3.
                Arithmetic is float: no exact sampler is known.
    Neighbours  value, everybody has one: their number enters the sensitivity and must be public.
    Tested by   tests/mechanisms/test_smooth.py
    """

    aggregate: Aggregate
    specification: Specification
    gamma: float
    alpha: float
    beta: float
    error: Error

    @property
    def guarantee(self) -> Guarantee:
        charged = np.where(self.specification.micro > 0, self.specification.strictest, 0)
        return Guarantee.of(self.specification, charged, protects="value", arithmetic="float")

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, histogram=True)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        """One answer. Neither S nor the noise is shown: both are data."""
        aggregate, asked = self.aggregate, self.specification.micro > 0
        grid = np.arange(aggregate.lower, aggregate.upper + 1)
        counts = histograms(statistics)[0, asked].sum(axis=0)
        data = Ordered(values=np.repeat(grid, counts).astype(float), low=aggregate.lower, high=aggregate.upper)
        rank = order(aggregate, len(data))
        scale = exp(log_smooth(data, rank, self.beta)) / self.alpha
        noisy = float(data.at(rank)) + scale * float(noise.heavy_tailed(self.gamma, 1, rng)[0])
        steps = round(min(max(noisy, aggregate.lower), aggregate.upper))
        return np.array([float(aggregate.value(steps))])


def order(aggregate: Aggregate, people: int) -> int:
    """Return which of so many values is asked for: ⌈qn⌉, at least the first."""
    rank = aggregate.rank or 0
    return max(1, -int(-rank * people // 1))


def propose(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    *,
    gamma: float = 3.0,
    beta: float | None = None,
) -> Smooth:
    """Only by name, where the table's policy allows float arithmetic: its error has no bound but the declared ones."""
    if aggregate.kind != "quantile" or aggregate.groups > 1:
        raise Unsuitable("It answers one quantile, without groups.")
    if not aggregate.complete:
        raise Unsuitable("Its noise depends on how many people there are, which is secret here (see `required`).")
    epsilon = min(specification.strictest / MICRO, USEFUL_EPSILON)
    if not 1 < gamma < inf:
        raise InvalidDeclaration(f"gamma must be above 1 and finite, got {gamma!r}.")
    beta = epsilon * SHARE.get(gamma, 1 / (2 * max(1.0, gamma - 1))) if beta is None else beta
    if not 0 < max(1.0, gamma - 1) * beta < epsilon:
        raise InvalidDeclaration(f"beta must be above 0 and below ε / max(1, γ − 1), got {beta!r} at ε = {epsilon:g}.")
    bounds = float(aggregate.value(aggregate.lower)), float(aggregate.value(aggregate.upper))
    return Smooth(
        aggregate=aggregate,
        specification=specification,
        gamma=gamma,
        alpha=largest_alpha(gamma, beta, epsilon),
        beta=beta,
        error=Error(bias=0.0, noise=inf, limits=bounds),
    )


def exact_loss(gamma: float, alpha: float, beta: float) -> float:
    """G: the largest log ratio of two such releases whose S differ by at most e^β and answers by at most the lesser S.

    With z ≥ 0 the place, l the log ratio of the S and D = α·min(1, e^(−l)) the shift, both of one sign without loss,
    G = sup ln(1 + (e^l (z + D))^γ) − ln(1 + z^γ) − l. In l it falls, then rises, on either side of 0: its derivative
    is γ y^γ/(1 + y^γ) − 1, times (1 − α/y) where l > 0, and both factors ascend. So l is −β, 0 or β; what is left is
    a search for z. For γ = 2 it is the hyperbolic distance of (location, scale): a closed form.
    """
    if gamma == 2:  # acosh(1 + 2x²) = 2 asinh(x), which keeps the digits of a small ε
        slid, stretched = (alpha / 2) ** 2, sinh(beta / 2) ** 2 + exp(-beta) * (alpha / 2) ** 2
        return 2 * asinh(sqrt(max(slid, stretched)))
    return max(_largest(gamma, alpha, log_ratio) for log_ratio in (-beta, 0.0, beta))


def _largest(gamma: float, alpha: float, log_ratio: float) -> float:
    """sup over z ≥ 0, on the scale t = z/(1 + z)."""
    from scipy.optimize import minimize_scalar  # slow to load, and only asked for by name

    shift, stretch = alpha * min(1.0, exp(-log_ratio)), exp(log_ratio)

    def value(t: Floats) -> Floats:
        z = t / (1 - t)
        return np.asarray(np.log1p((stretch * (z + shift)) ** gamma) - np.log1p(z**gamma) - log_ratio)

    grid = np.linspace(0, 1, 2_001)[:-1]
    peak = int(np.argmax(value(grid)))
    around = (grid[max(peak - 1, 0)], grid[min(peak + 1, len(grid) - 1)])
    refined = minimize_scalar(lambda t: -float(value(np.asarray(t))), bounds=around, method="bounded")
    return max(float(value(grid[peak])), -float(refined.fun), (gamma - 1) * log_ratio)  # the last: z → ∞


@lru_cache(maxsize=256)
def largest_alpha(gamma: float, beta: float, epsilon: float) -> float:
    """α with `exact_loss` = ε, from below: G ascends in α."""
    if gamma == 2:
        between = 2 * sinh((epsilon + beta) / 2) * sinh((epsilon - beta) / 2)  # cosh ε − cosh β, to the last digit
        return min(2 * sinh(epsilon / 2), sqrt(2 * exp(beta) * between)) * (1 - 1e-12)
    low, high = 0.0, expm1(epsilon) ** (1 / gamma)  # G ≥ ln(1 + α^γ): l = 0, z = 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exact_loss(gamma, middle, beta) <= epsilon else (low, middle)
    return low * (1 - 1e-9)

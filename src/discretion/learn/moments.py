"""Moments: Σ w x xᵀ and Σ w x y over people of weight w, released with noise; then a linear model from them.

Two domains. In the cube every |x_j| and |y| is at most 1; in the ball ‖x‖₂ and |y| are. Two releases: `Whole` (both
domains, discrete Laplace noise on whole numbers, exact) and `gaussian` (ball, δ > 0, float).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd, isqrt, log, sqrt
from typing import Any, Literal

import numpy as np
from scipy import special

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Protects
from discretion.noise import LARGEST_SCALE, Floats, Rng
from discretion.preference import MICRO, Integers

Domain = Literal["cube", "ball"]
FINEST = 2**15  # steps from 0 to 1: more would be lost in the noise
EXACT = 2**53  # below it doubles add and multiply whole numbers exactly, in any order
DIGIT = 2**10  # weights are taken apart into digits of this base


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Released moments of people whose largest weight is 1, and the standard deviation of their noise."""

    products: Floats  # (coefficient, coefficient), symmetric
    cross: Floats  # (coefficient)
    products_noise: Floats  # standard deviation of each entry of `products`
    cross_noise: float

    def covariance(self, inverse: Floats, coefficients: Floats) -> Floats:
        """To first order, that of the noise in coefficients = inverse @ cross."""
        variance = self.products_noise**2
        direct = variance @ coefficients**2 + self.cross_noise**2  # of (E θ)_j + e_j
        mirrored = variance * np.outer(coefficients, coefficients)  # E is symmetric: E_jk serves rows j and k
        np.fill_diagonal(mirrored, direct)
        return np.asarray(inverse @ mirrored @ inverse)


def sensitivity(domain: Domain, size: int, protects: Protects, steps: int) -> int:
    """Return how far one person can move the whole-number moments (L1), `steps` to the unit, `size` coefficients.

    Cube, the polynomial's coefficients x_j², 2 x_j x_k, 2 x_j y ([ZZX+12], without their factor 2). With z = (x, y),
    ‖zzᵀ − z'z'ᵀ‖₁ ≤ ‖z − z'‖₁ ‖z + z'‖₁ ≤ (Σ max(|z_i|, |z'_i|))² ≤ (d + 1)², for |a − b| + |a + b| = 2 max(|a|, |b|)
    and by the means' inequality. For one row that comes or goes, ‖zzᵀ‖₁ less y²: d² + 2d.
    Ball, the entries x_j x_k (j ≤ k) and x_j y. For a row that comes or goes, ((Σ|x_j|)² + Σ x_j²)/2 + Σ|x_j| |y| ≤
    (d + 1)/2 + √d, because Σ|x_j| ≤ √d. For a row that changes, y = y' = 1 is the worst case (x' may change sign).
    With M = xxᵀ − x'x'ᵀ, its d diagonal and d(d − 1)/2 other entries, which count twice in ‖M‖², add up to at most
    ‖M‖·√(d + d(d − 1)/4) by Cauchy and Schwarz, and |x_j − x'_j| to √d ‖x − x'‖. Rows of length 1 at the angle 2φ have
    ‖M‖ = √2 sin 2φ and ‖x − x'‖ = 2 sin φ: the maximum of √(d(d + 3)/2) sin 2φ + 2√d sin φ, rounded up. No shorter
    rows are worse: for lengths a ≥ b both norms ascend in a, so a = 1; and at the cosine −s, s ≥ 0, rows of length 1
    at the cosine −max(0, bs − (1 − b²)/2) have no smaller norms. For d = 1 angles are 0 or π: 1 − b² + 1 + b ≤ 9/4.
    A person with several rows adds their average (or, by rounding down, a part of it): a point of the convex hull of
    one row's moments and zero, so the bounds hold for them too.
    """
    if domain == "cube":
        return ((size + 1) ** 2 if protects == "value" else size**2 + 2 * size) * steps**2
    if protects == "presence":
        return (size + 1) * steps**2 // 2 + steps * isqrt(size * steps**2)
    factor = sqrt(size * (size + 3) / 2)
    cosine = (sqrt(size + 8 * factor**2) - sqrt(size)) / (4 * factor)  # of φ where the maximum is
    most = 2 * sqrt(1 - cosine**2) * (factor * cosine + sqrt(size)) if size > 1 else 9 / 4
    return ceil(most * (1 + 1e-9) * steps**2)


def on_grid(domain: Domain, points: Floats, steps: int) -> Floats:
    """Whole numbers of steps; in the ball no row may become longer than the radius by rounding."""
    nearest = np.rint(points * steps)
    if domain == "cube":
        return np.asarray(nearest)
    inside = np.trunc(points * steps)
    placed = np.where(((nearest**2).sum(axis=1) <= steps**2)[:, None], nearest, inside)
    return np.asarray(placed * ((placed**2).sum(axis=1) <= steps**2)[:, None])


@dataclass(frozen=True, kw_only=True)
class Whole:
    """Moments in whole numbers plus discrete Laplace noise.

    Definition  Rows on a grid of `steps` to the unit; Σ_u w_u m_u + DiscreteLaplace(scale), m_u the person's moments
                (averaged over their rows in `shares` equal parts), w_u their weight in micro-ε.
    Guarantee   w_u micro-ε exactly: m_u moves by at most `sensitivity`·shares, so the sum over its scale by w_u.
    Neighbours  as `protects` says.
    Tested by   tests/learn/test_moments.py
    """

    domain: Domain
    size: int
    protects: Protects
    weights: tuple[int, ...]  # by cohort, micro-ε
    shares: int = 1  # parts a person's weight is divided into
    published: bool = False  # as in [ZZX+12]'s code: twice the sensitivity, noise off the diagonal not halved

    @property
    def unit(self) -> int:
        """The largest whole number of micro-ε that divides every weight."""
        return gcd(*self.weights)

    @property
    def steps(self) -> int:
        """The finest grid on which the noise still fits the sampler."""
        steps = FINEST
        while self._scale(steps) > LARGEST_SCALE:
            steps //= 2
            if steps < 16:
                raise Unsuitable(
                    f"{self.size} coefficients with so little epsilon leave no useful grid. Use fewer columns, or "
                    "round the epsilons to hundredths."
                )
        return steps

    @property
    def scale(self) -> Fraction:
        """Of the noise, in units of weight times squared steps."""
        return self._scale(self.steps)

    def _scale(self, steps: int) -> Fraction:
        moved = (1 + self.published) * self.shares * sensitivity(self.domain, self.size, self.protects, steps)
        return Fraction(moved * MICRO, self.unit)

    def total(self, x: Floats, y: Floats, cohort: Integers, parts: Integers) -> Any:
        """(coefficient + 1, coefficient + 1) Σ w z zᵀ, z = (x, y), in Python integers, before the noise. Private."""
        z = on_grid(self.domain, x, self.steps)
        z = np.hstack([z, np.rint(np.clip(y, -1, 1) * self.steps)[:, None]])
        weight = np.array(self.weights, dtype=np.int64) // self.unit
        return _gram(z, weight[cohort] * parts, self.steps)

    def release(self, x: Floats, y: Floats, cohort: Integers, parts: Integers, rng: Rng) -> Moments:
        """The noisy moments of rows in the domain; `parts` of `shares` belong to each row."""
        total = self.total(x, y, cohort, parts)
        rows, columns = np.triu_indices(self.size)
        is_polynomial = self.domain == "cube" and not self.published
        double = np.where((rows != columns) & is_polynomial, 2, 1)  # x_j x_k has the coefficient 2 in (θᵀx)²
        upper = total[rows, columns] * double + noise.discrete_laplace(self.scale, rows.size, rng).astype(object)
        twice = 2 if self.domain == "cube" else 1
        cross = total[-1, :-1] * twice + noise.discrete_laplace(self.scale, self.size, rng).astype(object)
        one = max(self.weights) // self.unit * self.shares * self.steps**2  # what a person of full weight adds
        spread = sqrt(2) * float(self.scale / one)
        return Moments(
            products=_symmetric(rows, columns, upper.astype(np.float64) / double / one, self.size),
            cross=cross.astype(np.float64) / twice / one,
            products_noise=_symmetric(rows, columns, spread / double, self.size),
            cross_noise=spread / twice,
        )


def gaussian(x: Floats, y: Floats, weight: Floats, protects: Protects, mu: float, rng: Rng) -> Moments:
    """[Wang18]'s moments in the ball with normal noise: a person of weight v (1 at most) gets v·mu-GDP.

    With c the cosine of x and x', both of length 1, the squared change is (2 − 2c²) + (2 + 2|c|) ≤ 9/2, at c = 1/2;
    shorter rows change less (the derivative in a length is not negative). A row that comes or goes: at most 2. Noise
    of s on the diagonal and s/√2 mirrored off it is spherical in that (Frobenius) norm.
    """
    size, used = x.shape[1], weight > 0  # rows that do not count must not even move a rounding error
    x, y, weight = x[used], y[used], weight[used]
    spread = sqrt(4.5 if protects == "value" else 2.0) / mu
    rows, columns = np.triu_indices(size)
    off = np.where(rows != columns, sqrt(0.5), 1.0) * spread
    products = (x * weight[:, None]).T @ x + _symmetric(rows, columns, off * noise.gaussian(1.0, rows.size, rng), size)
    return Moments(
        products=products,
        cross=x.T @ (weight * y) + noise.gaussian(spread, size, rng),
        products_noise=_symmetric(rows, columns, off, size),
        cross_noise=spread,
    )


def gaussian_mu(epsilon: Floats, delta: float) -> Floats:
    """The largest μ for which μ-GDP is (ε, δ)-DP, rounded down; 0 for ε = 0.

    [DRS22]: μ-GDP is (ε, δ(ε))-DP with δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), which ascends in μ.
    """
    epsilon = np.asarray(epsilon, dtype=np.float64)
    low, high = np.zeros_like(epsilon), 2 * np.sqrt(epsilon + 1) + 40.0
    for _ in range(200):
        mu = (low + high) / 2
        tail = np.exp(epsilon + special.log_ndtr(-epsilon / mu - mu / 2))
        fits = special.ndtr(-epsilon / mu + mu / 2) - tail <= delta * (1 - 1e-9)
        low, high = np.where(fits, mu, low), np.where(fits, high, mu)
    return np.asarray(np.where(epsilon > 0, low, 0.0))


def ridge(moments: Moments, intercept: bool) -> tuple[Floats, Floats]:
    """[Wang18] AdaSSP: as much ridge as the noise calls for, less where the data are strong; also (A + ridge)⁻¹.

    The intercept, the last coefficient, is spared but for one standard deviation of the noise: pulling it to zero
    would pull every prediction to the middle of the target's bounds.
    """
    size, spread = moments.cross.size, float(np.sqrt(np.mean(moments.products_noise**2)))
    values, vectors = np.linalg.eigh(moments.products)
    needed = spread * sqrt(size * log(2 * size**2 / 0.05)) - max(0.0, values[0] - 2 * spread)
    penalty = np.full(size, max(needed, 1e-9))
    penalty[-1] = min(penalty[-1], max(spread, 1e-9)) if intercept else penalty[-1]
    positive = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
    inverse = np.linalg.inv(positive + np.diag(penalty))
    return inverse @ moments.cross, inverse


def spectral(moments: Moments) -> tuple[Floats, Floats]:
    """[ZZX+12]'s repair: a ridge of five standard deviations, then only the directions with a positive curvature."""
    values, vectors = np.linalg.eigh(moments.products + 5 * moments.products_noise.max() * np.eye(moments.cross.size))
    kept = vectors[:, values > 1e-8]
    inverse = kept @ np.diag(1 / values[values > 1e-8]) @ kept.T
    return inverse @ moments.cross, inverse


def _gram(z: Floats, weight: Integers, steps: int) -> Any:
    """Σ weight z zᵀ in Python integers. Doubles are exact while no sum reaches 2^53: so weights go digit by digit."""
    total = np.zeros((z.shape[1], z.shape[1]), dtype=object)
    chunk = EXACT // (steps**2 * DIGIT)
    for start in range(0, len(z), chunk):
        rows, left, place = z[start : start + chunk], weight[start : start + chunk], 1
        while left.any():
            digit = (rows * (left % DIGIT)[:, None]).T @ rows
            total = total + place * digit.astype(np.int64).astype(object)
            left, place = left // DIGIT, place * DIGIT
    return total


def _symmetric(rows: Integers, columns: Integers, upper: Floats, size: int) -> Floats:
    matrix = np.zeros((size, size))
    matrix[rows, columns] = upper
    matrix[columns, rows] = upper
    return matrix

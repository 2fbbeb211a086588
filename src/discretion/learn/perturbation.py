"""Perturbation: empirical risk minimisation made private by a random linear term, or by noise on its minimiser.

Everywhere rows are in the unit ball, multiplied by their label, and the risk is the sum
    Σ_u v_u ℓ(θᵀx_u) + (λ/2)‖θ‖²,
with a public λ and public weights v_u ≤ 1. With λ = nΛ it is [CMS11]'s average form, multiplied by n. A person with
several rows has the average of their losses.
"""

from dataclasses import dataclass, replace
from math import expm1, log1p, sqrt
from typing import Any, Literal

import numpy as np

from discretion import noise
from discretion.errors import QueryRefused, Unsuitable
from discretion.guarantee import Protects
from discretion.learn.loss import LossFunction
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers

CLOSE = 1e-9  # the minimiser is found to within CLOSE of the true one
LEAST_RIDGE = 1e-5  # λ for each person: below it, doubles cannot find the minimiser that exactly
ROUNDING = 1e-12  # of the terms of a risk: what their sum can be wrong by, generously
MOST_STEPS, MOST_HALVINGS = 100, 30  # of Newton's method
MOST_ROOTS = 100  # steps of Nesterov's method, in √κ: e^−100 is far below what doubles can tell
SHARE = 100  # one part in so many of the smallest ε pays for the minimiser being inexact
Kind = Literal["objective", "output"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbation:
    """Everything a private minimisation needs, all of it public."""

    weights: Floats  # v of each cohort, at most 1
    ridge: float  # λ
    linear: float  # scale of the random linear term b, density ∝ exp(−‖b‖/linear); 0: none
    blur: float  # scale of the noise on the minimiser, density ∝ exp(−‖b‖/blur)

    def release(self, loss: LossFunction, x: Floats, weight: Floats, rng: Rng) -> Floats:
        """The perturbed minimiser of rows x (each times its label) with these weights."""
        size, used = x.shape[1], weight > 0  # rows that do not count must not even move a rounding error
        tilt = noise.spherical(self.linear, size, rng) if self.linear else np.zeros(size)
        risk = Risk(loss=loss, x=x[used], weight=weight[used], ridge=self.ridge, tilt=tilt)
        return minimise(risk) + noise.spherical(self.blur, size, rng)


def times(protects: Protects) -> int:
    """By how many gradients of length 1 a person moves the sum: two if a row changes, one if it comes or goes."""
    return 2 if protects == "value" else 1


def correction(weight: float | Floats, ridge: float, curvature: float, rank: int) -> float | Floats:
    """The loss from how a person bends the objective: rank·ln(1 + v c / (rank λ)).

    The density of the minimiser θ has the factor det(M + a), M ⪰ λI the Hessian of the others and the ridge, a the
    person's: 0 ⪯ a, tr a ≤ v c. So det(M + a)/det(M + a') ≤ det(I + M^−1/2 a M^−1/2) ≤ (1 + v c/(rank λ))^rank by the
    means' inequality, rank being that of a: 1 for one row, at most the number of coefficients for several.
    """
    return rank * np.log1p(weight * curvature / (rank * ridge))


def objective(
    epsilon: float, loss: LossFunction, ridge: float, protects: Protects, rank: int = 1
) -> tuple[float, float]:
    """[CMS11] Algorithm 2 for one ε: the scale of the linear term, and λ, raised if the correction eats too much.

    Value: the average form's ε' = ε − ln(1 + 2c/λ + c²/λ²), the square of what is needed. Presence: one logarithm.
    If ε' would not be positive, λ is raised until half of ε is left ([CMS11]'s Δ).
    """
    logarithms = times(protects)
    if rank > 1:  # rank·ln(1 + c/(rank λ)) ≤ c/λ for any rank; [CMS11] has one row a person
        left = epsilon - loss.curvature / ridge
        raised = 2 * loss.curvature / epsilon
    else:
        left = epsilon - logarithms * log1p(loss.curvature / ridge)
        raised = loss.curvature / expm1(epsilon / (2 * logarithms))
    if left > 0:
        return times(protects) / left, ridge
    return 2 * times(protects) / epsilon, max(raised, ridge)


def uniform(
    micro_epsilon: int, kind: Kind, loss: LossFunction, ridge: float, protects: Protects, rank: int = 1
) -> Perturbation:
    """[CMS11] Algorithms 1 and 2 with one ε for everybody, an inexact minimiser accounted for."""
    spare = max(1, micro_epsilon // SHARE)
    if micro_epsilon <= spare:
        raise Unsuitable("There is too little epsilon to minimise anything with.")
    weights = np.ones(1)
    if kind == "output":  # the minimiser moves by at most times/λ, and is missed by CLOSE on either side
        scale = (times(protects) / ridge + 2 * CLOSE) / (micro_epsilon / MICRO)
        return Perturbation(weights=weights, ridge=ridge, linear=0.0, blur=scale)
    linear, ridge = objective((micro_epsilon - spare) / MICRO, loss, ridge, protects, rank)
    return Perturbation(weights=weights, ridge=ridge, linear=linear, blur=2 * CLOSE / (spare / MICRO))


def weighted(charge: Integers, loss: LossFunction, ridge: float, protects: Protects, rank: int = 1) -> Perturbation:
    """Objective perturbation with weights: cohort c loses at most charge_c, in micro-ε.

    Definition  minimise Σ v_u ℓ + (λ/2)‖θ‖² + bᵀθ, b of density ∝ exp(−‖b‖/β); add noise for the inexact minimiser.
    Guarantee   m v_u/β + rank·ln(1 + v_u c/(rank λ)) + spare ≤ ε_u: b moves by at most m v_u between neighbours for
                the same θ, the Jacobian by `correction`, and an inexact minimiser is within CLOSE of the exact one
                on either side, so `spare` = 2·CLOSE/blur pays for the difference (composition, given θ).
    Neighbours  m = 2 if a row changes, 1 if it comes or goes.
    Tested by   tests/learn/test_perturbation.py
    """
    spare = max(1, int(charge[charge > 0].min()) // SHARE)
    epsilon = np.maximum(charge - spare, 0) / MICRO
    most = float(epsilon.max())
    if most <= 0:
        raise Unsuitable("There is too little epsilon to minimise anything with.")
    ridge = max(ridge, 2 * loss.curvature / most)  # then the correction takes at most half
    linear = times(protects) / (most - float(correction(1.0, ridge, loss.curvature, rank)))
    low, high = np.zeros_like(epsilon), np.ones_like(epsilon)
    for _ in range(60):
        middle = (low + high) / 2
        spent = times(protects) * middle / linear + correction(middle, ridge, loss.curvature, rank)
        low, high = np.where(spent <= epsilon, middle, low), np.where(spent <= epsilon, high, middle)
    return Perturbation(weights=low, ridge=ridge, linear=linear, blur=2 * CLOSE / (spare / MICRO))


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """Σ weight ℓ(xθ) + (ridge/2)‖θ‖² + tiltᵀθ. Private."""

    loss: LossFunction
    x: Floats  # (row, coefficient), each row times its label
    weight: Floats  # (row)
    ridge: float
    tilt: Floats

    def at(self, theta: Floats) -> float:
        ridge = self.ridge / 2 * (theta @ theta)
        return float(self.weight @ self.loss.value(self.x @ theta) + ridge + self.tilt @ theta)

    def with_precision(self, precision: type[np.floating[Any]]) -> "Risk":
        """Return the same risk, computed in numbers of this type."""
        x, weight, tilt = (one.astype(precision, copy=False) for one in (self.x, self.weight, self.tilt))
        return replace(self, x=x, weight=weight, tilt=tilt)

    def terms(self, theta: Floats) -> float:
        """Return the sum of the sizes of what `at` adds up: its rounding error is in proportion to it."""
        ridge = self.ridge / 2 * (theta @ theta)
        return float(self.weight @ self.loss.value(self.x @ theta) + ridge + abs(self.tilt) @ abs(theta))

    def gradient(self, theta: Floats) -> Floats:
        slopes = self.weight * self.loss.slope(self.x @ theta)
        return np.asarray(self.x.T @ slopes + self.ridge * theta + self.tilt)

    def is_close(self, theta: Floats, gradient: Floats) -> bool:
        """Return whether theta is within CLOSE of the minimiser, whatever was rounded off its gradient on the way."""
        length = float(np.linalg.norm(theta))
        moved = float(self.weight.sum()) * (1 + self.loss.curvature * length)
        rounded = float(np.finfo(theta.dtype).eps) * (moved + self.ridge * length + float(np.linalg.norm(self.tilt)))
        return float(np.linalg.norm(gradient)) + rounded <= self.ridge * CLOSE / 2

    def hessian(self, theta: Floats) -> Floats:
        bends = self.weight * self.loss.bend(self.x @ theta)
        return np.asarray((self.x * bends[:, None]).T @ self.x + self.ridge * np.eye(theta.size))


def minimise(risk: Risk) -> Floats:
    """Return the minimiser to within CLOSE, by Newton's method with halved steps.

    The risk is ridge-strongly convex, so ‖θ − θ*‖ ≤ ‖gradient‖/ridge; half of CLOSE is left for rounding θ. No data may
    make this fail: where doubles are too coarse, long doubles go on, and should Newton's method ever stall,
    `_descended` needs no comparison that rounding can spoil.
    """
    theta = np.zeros_like(risk.tilt)
    for precision in (np.float64, np.longdouble):
        finer, theta = risk.with_precision(precision), theta.astype(precision)
        for _ in range(MOST_STEPS):
            gradient = finer.gradient(theta)
            if finer.is_close(theta, gradient):
                return np.asarray(theta, float)
            step = _newton_step(finer, theta, gradient)
            if not step.any():
                break
            theta = theta - step
    return np.asarray(_descended(finer, theta), float)


def _newton_step(risk: Risk, theta: Floats, gradient: Floats) -> Floats:
    """Return Newton's step, halved until the risk falls; or, where rounding hides a fall, the gradient gets shorter."""
    step = np.linalg.solve(np.asarray(risk.hessian(theta), float), np.asarray(gradient, float))
    here, fall, length = risk.at(theta), float(gradient @ step), float(np.linalg.norm(gradient))
    hidden = ROUNDING * risk.terms(theta)
    for halvings in range(MOST_HALVINGS):
        size = 0.5**halvings
        there = theta - size * step
        change = risk.at(there) - here
        shorter = float(np.linalg.norm(risk.gradient(there))) <= (1 - size / 4) * length
        if change <= -1e-4 * size * fall or (abs(change) <= hidden and shorter):
            return size * step
    return np.zeros_like(step)


def _descended(risk: Risk, theta: Floats) -> Floats:
    """Return the minimiser by Nesterov's method for strongly convex functions, which compares no values.

    With κ the largest bend over the ridge, n steps bring the risk to within (1 − 1/√κ)^n of its first distance. κ is at
    most 1 + c/LEAST_RIDGE, because rows are in the unit ball and the ridge is at least LEAST_RIDGE for each person.
    """
    largest = risk.loss.curvature * float(risk.weight @ (risk.x**2).sum(axis=1)) + risk.ridge
    root = sqrt(largest / risk.ridge)
    ahead = theta
    for _ in range(int(MOST_ROOTS * min(root, sqrt(1 + risk.loss.curvature / LEAST_RIDGE)))):
        gradient = risk.gradient(ahead)
        if risk.is_close(ahead, gradient):
            return ahead
        before, theta = theta, ahead - gradient / largest
        ahead = theta + (root - 1) / (root + 1) * (theta - before)
    raise QueryRefused("The minimiser was not found exactly enough to be released. Use a larger regularization.")

"""Perturbation: empirical risk minimisation made private by a random linear term, or by noise on its minimiser.

Everywhere rows are in the unit ball, multiplied by their label, and the risk is the sum
    Σ_u v_u ℓ(θᵀx_u) + (λ/2)‖θ‖²,
with a public λ and public weights v_u ≤ 1. With λ = nΛ it is [CMS11]'s average form, multiplied by n. A person with
several rows has the average of their losses.
"""

from dataclasses import dataclass
from math import expm1, log1p
from typing import Literal

import numpy as np

from discretion import noise
from discretion.errors import QueryRefused, Unsuitable
from discretion.guarantee import Protects
from discretion.learn.loss import LossFunction
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers

CLOSE = 1e-9  # the minimiser is found to within CLOSE of the true one
LEAST_RIDGE = 1e-5  # λ for each person: below it, doubles cannot find the minimiser that exactly
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

    def gradient(self, theta: Floats) -> Floats:
        slopes = self.weight * self.loss.slope(self.x @ theta)
        return np.asarray(self.x.T @ slopes + self.ridge * theta + self.tilt)

    def hessian(self, theta: Floats) -> Floats:
        bends = self.weight * self.loss.bend(self.x @ theta)
        return np.asarray((self.x * bends[:, None]).T @ self.x + self.ridge * np.eye(theta.size))


def minimise(risk: Risk) -> Floats:
    """The minimiser to within CLOSE, by Newton's method with halved steps.

    The risk is ridge-strongly convex, so ‖θ − θ*‖ ≤ ‖gradient‖/ridge; half of CLOSE is left for rounding. Newton's
    method with halving converges on it from anywhere; were it ever to stall, nothing is released.
    """
    theta = np.zeros_like(risk.tilt)
    for _ in range(500):
        gradient = risk.gradient(theta)
        if float(np.linalg.norm(gradient)) <= risk.ridge * CLOSE / 2:
            return theta
        step = np.linalg.solve(risk.hessian(theta), gradient)
        here, fall, size = risk.at(theta), float(gradient @ step), 1.0
        rounding = 1e-13 * abs(here)  # near the end it hides the fall
        while size > 1e-9 and risk.at(theta - size * step) > here - 1e-4 * size * fall + rounding:
            size /= 2
        theta = theta - size * step
    raise QueryRefused("The minimiser was not found exactly enough to be released. Use a larger regularization.")

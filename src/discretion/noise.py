"""Exact samplers over the system's secure source; the only file that draws randomness.

What is exact: discrete Laplace on the integers, both choice rules (all three by OpenDP, whose proofs and exact
arithmetic we rely on), and coins. What is not: `uniform`, `gaussian`, `spherical` and `heavy_tailed` are doubles
computed from secure random bits; a guarantee that rests on them says `arithmetic: float`.

Every sampler takes `rng`: None for the secure source, or a generator from `simulation(seed)`, whose results
are reproducible and therefore protect nobody: releases made with one are marked `simulated`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import count
from math import inf, nextafter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discretion.errors import InvalidDeclaration
from discretion.preference import MICRO, Integers

Rng = np.random.Generator | None
Floats = NDArray[np.float64]
Rule = Literal["exponential", "permute_and_flip"]

LARGEST_SCALE = 2**50  # a draw leaves 64 bits with probability below e^-8192
ALWAYS = 2**64  # a coin, a 64-bit number, is always below this
_repeatable: ContextVar[Iterator[str] | None] = ContextVar("repeatable", default=None)
DIGITS = Context(prec=60)  # leaves the margin of `inclusion_threshold` far above the rounding error


def simulation(seed: int) -> np.random.Generator:
    """A reproducible generator, for experiments on data that needs no protection."""
    return np.random.default_rng(seed)


def discrete_laplace(scale: Fraction | int, size: int, rng: Rng = None) -> Integers:
    """`size` draws with P(z) ∝ exp(−|z| / scale) on the integers, exactly ([CKS20] Algorithm 2, by OpenDP)."""
    if not 0 <= scale <= LARGEST_SCALE:
        raise InvalidDeclaration(
            f"The noise scale must be from 0 to {LARGEST_SCALE:,}, got about {float(scale):.3g} grid steps. "
            "Use tighter bounds, a coarser grid or fewer rows per person."
        )
    if scale == 0:
        return np.zeros(size, dtype=np.int64)
    if rng is not None:
        probability = -np.expm1(-1 / float(scale))
        return np.asarray(rng.geometric(probability, size) - rng.geometric(probability, size), dtype=np.int64)
    return np.asarray(_laplace(_double_above(scale))(np.zeros(size, dtype=np.int64)), dtype=np.int64)


def choose(scores: Sequence[int] | Integers, scale: Fraction | int, rng: Rng = None, rule: Rule = "exponential") -> int:
    """Pick one index, better scores likelier: P(i) ∝ exp(score_i / scale), or by permute-and-flip.

    Exact for both rules: OpenDP adds lazily refined Gumbel noise (exponential) or exponential noise
    (permute-and-flip, [MS20]; the equivalence is [DKS21]) and returns the largest. If no score moves by more than d
    between two databases, no probability moves by more than a factor exp(2d / scale).
    """
    scores = np.asarray(scores, dtype=np.int64)
    if scores.size == 0 or scale <= 0:
        raise InvalidDeclaration("A choice needs at least one candidate and a scale above 0.")
    if rng is not None:
        return int(rng.choice(scores.size, p=choice_probabilities(scores, scale, rule)))
    shifted = scores - scores.max()  # only differences matter; keeps the arithmetic small
    return int(_noisy_max(rule, _double_above(scale))(shifted))


def choice_probabilities(scores: Sequence[int] | Integers, scale: Fraction | int, rule: Rule = "exponential") -> Floats:
    """The distribution `choose` samples from."""
    exponents = (np.asarray(scores, dtype=np.float64) - max(scores)) / float(scale)
    if rule == "exponential":
        weights = np.exp(exponents)
        return np.asarray(weights / weights.sum(), dtype=np.float64)
    accept = np.exp(exponents)
    # [MS20] Theorem 6: P(r) = q_r ∫_0^1 ∏_{j≠r} (1 − t q_j) dt, a polynomial, so Gauss quadrature is exact.
    nodes, weights = np.polynomial.legendre.leggauss(accept.size // 2 + 1)
    survive = 1 - np.outer((nodes + 1) / 2, accept)  # (node, candidate)
    others = _products_without_each(survive)
    raw = accept * (weights / 2 @ others)
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def inclusion_threshold(micro_epsilon: int, micro_threshold: int) -> int:
    """[JYC15] Definition 9's rate π = (e^ε − 1)/(e^t − 1) as a 64-bit coin threshold, rounded down.

    A person is kept when their coin is below it. Rounding down only lowers the rate, hence the loss.
    """
    if micro_threshold <= 0:
        raise InvalidDeclaration(f"A sampling threshold must be above 0, got {micro_threshold / MICRO:g}.")
    if micro_epsilon >= micro_threshold:
        return ALWAYS
    kept = DIGITS.divide(_expm1(micro_epsilon), _expm1(micro_threshold))
    return max(0, int(DIGITS.subtract(DIGITS.multiply(kept, Decimal(ALWAYS)), Decimal("1e-20"))))


def coins(size: int, rng: Rng = None) -> NDArray[np.uint64]:
    """`size` independent uniform 64-bit numbers."""
    if rng is not None:
        return rng.integers(0, 2**64, size, dtype=np.uint64, endpoint=False)
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def keep(coin: NDArray[np.uint64], threshold: Sequence[int], cohort: Integers) -> NDArray[np.bool_]:
    """Return which people their coin keeps, each against the threshold of their cohort."""
    last_kept = np.array([max(t, 1) - 1 for t in threshold], dtype=np.uint64)
    possible = np.array([t > 0 for t in threshold])
    kept: NDArray[np.bool_] = (coin <= last_kept[cohort]) & possible[cohort]
    return kept


def coin_key() -> str:
    """A fresh secret for the keyed coins and row choices of one release, as hexadecimal text."""
    given = _repeatable.get()
    return os.urandom(32).hex() if given is None else next(given)


@contextmanager
def repeatable_coins(secret: bytes) -> Iterator[None]:
    """Take coin keys from a secret: if the process dies, another one can compute the same release with the same coins.

    The secret must be as random as a key, used for one release only, and known to nobody who sees the release.
    """
    token = _repeatable.set(sha256(secret + number.to_bytes(8, "big")).hexdigest() for number in count())
    try:
        yield
    finally:
        _repeatable.reset(token)


def secret_bytes(size: int = 32) -> bytes:
    """Return fresh random bytes for a token, a link, a code or a signing key."""
    return os.urandom(size)


def keyed_coin(key: str, person: str) -> int:
    """The coin of one person under one key: the first 64 bits of SHA-256, which any SQL engine can compute too."""
    return int.from_bytes(sha256(f"{key}:{person}".encode()).digest()[:8], "big")


def uniform(size: int, rng: Rng = None) -> Floats:
    """Doubles in (0, 1), never an endpoint. Float arithmetic."""
    return np.asarray(((coins(size, rng) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def gaussian(scale: float, size: int, rng: Rng = None) -> Floats:
    """Normal draws with this standard deviation. Float arithmetic."""
    from scipy import special  # slow to load, and few draw from this law

    return np.asarray(scale * special.ndtri(uniform(size, rng)))


def spherical(scale: float, dimension: int, rng: Rng = None) -> Floats:
    """One vector with density ∝ exp(−‖b‖ / scale): Gamma norm, uniform direction. Float arithmetic."""
    direction = gaussian(1.0, dimension, rng)
    norm = -scale * np.log(uniform(dimension, rng)).sum()
    return np.asarray(direction * (norm / np.linalg.norm(direction)))


def heavy_tailed(gamma: float, size: int, rng: Rng = None) -> Floats:
    """Draws with density ∝ 1 / (1 + |z|^γ), γ > 1. Float arithmetic.

    |Z|^γ / (1 + |Z|^γ) ~ Beta(1/γ, 1 − 1/γ); inverted from the tail that keeps the digits.
    """
    if not 1 < gamma < inf:
        raise InvalidDeclaration(f"gamma must be above 1 and finite, got {gamma!r}.")
    from scipy import special  # slow to load, and few draw from this law

    a, b, u = 1 / gamma, 1 - 1 / gamma, uniform(2 * size, rng)
    below, above = special.betaincinv(a, b, u[:size]), special.betaincinv(b, a, 1 - u[:size])
    odds = below / above
    return np.asarray(np.where(u[size:] < 0.5, -1.0, 1.0) * odds ** (1 / gamma))


def _double_above(scale: Fraction | int) -> float:
    """The scale as a double, never below it: rounding may add noise, not take it away."""
    rounded = float(scale)
    return rounded if Fraction(rounded) >= scale else nextafter(rounded, inf)


@lru_cache(maxsize=256)
def _laplace(scale: float) -> Any:
    from opendp import domains, measurements, metrics, mod  # slow to load, and plans draw nothing

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l1_distance(T="i64")
    return measurements.make_laplace(*space, scale=scale)


@lru_cache(maxsize=256)
def _noisy_max(rule: Rule, scale: float) -> Any:
    from opendp import domains, measurements, measures, metrics, mod  # not opendp.prelude: it loads far more

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.linf_distance(T="i64")
    law = measures.zero_concentrated_divergence() if rule == "exponential" else measures.max_divergence()
    return measurements.make_noisy_max(*space, law, scale=scale)


@lru_cache(maxsize=4096)
def _expm1(micro_epsilon: int) -> Decimal:
    return DIGITS.subtract(DIGITS.exp(DIGITS.divide(Decimal(micro_epsilon), Decimal(MICRO))), Decimal(1))


def _products_without_each(factors: Floats) -> Floats:
    """For each column, the product of all the other columns, without dividing."""
    ones = np.ones((factors.shape[0], 1))
    before = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(before * after)

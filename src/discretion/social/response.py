"""Randomised response: everybody publishes a noisy copy of their profile once; all similarities are then free.

Definition  With public weights (known for every item, held or not): item i is reported with the truth flipped with
            probability p = 1/(1 + e^(ε v_i)); b̂ = (b̃ − p)/(1 − 2p) is unbiased, items of weight 0 say nothing.
            With private weights: an item not held is reported with the one public probability r, an item held with
            weight v with a(v) = min(r e^(ε v), 1 − (1 − r) e^(−ε v)); b̂ = (b̃ − r)/(a(1) − r) is unbiased for items
            of weight 1 and too small for others. r = 1/(1 + e^(ε·pivot)) serves items of weight `pivot` best: the
            signal to noise ratio (a(v) − r)²/(r(1 − r)) rises with r up to 1/(1 + e^(ε v)) and falls beyond.
Guarantee   item i loses ε·v_i, once. Public: (1 − p)/p = e^(ε v). Private: r ≤ a(v) ≤ r e^(ε v) and
            1 − r ≥ 1 − a(v) ≥ (1 − r) e^(−ε v), so against an item not held ε·v; and if item and weight change
            together, the law with the smaller weight lies between the one with the larger and "not held", because a
            is non-decreasing: ε·max(v, v'). Thresholds are 64-bit; p is rounded up and a down: both only lower losses.
Neighbours  one item of one profile (private weights: and its weight) changes.
Tested by   tests/social/test_response.py::test_no_item_loses_more_than_its_weight_to_randomised_response
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.noise import ALWAYS, DIGITS, Floats, Rng, coins, inclusion_threshold, keep
from discretion.preference import MICRO, Integers, allowance
from discretion.social.profile import Profiles
from discretion.social.similarity import Draw
from discretion.social.weight import WHOLE, promise, thousandths

CELLS = 1 << 22  # (pair, item) cells handled at once
MOST_CELLS = 1 << 29  # (person, item) cells of the noisy copies: 2 GB


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """Everybody publishes a noisy profile on joining; the score of a pair is the product of their unbiased estimates.

    `public_weights` broadcasts to (people, items); without them weights stay private.
    """

    profiles: Profiles
    joining: int  # micro-ε that publishing costs an item of weight 1
    public_weights: ArrayLike | None = None
    pivot: int = WHOLE // 2  # in thousandths
    pulled: bool = False  # see `shrunk`
    micro_epsilon: int = 0

    @classmethod
    def publish(
        cls,
        profiles: Profiles,
        *,
        epsilon: float,
        public_weights: ArrayLike | None = None,
        pivot: float = 0.5,
    ) -> "Response":
        """Report every bit of every profile, at this ε for an item of weight 1: once it is joined, not before."""
        micro, middle = int(allowance(epsilon)), int(thousandths(pivot))
        if micro <= 0 or middle <= 0 or profiles.people * profiles.items > MOST_CELLS:
            raise InvalidDeclaration(
                f"Randomised response needs epsilon and pivot above 0 and at most {MOST_CELLS:,} cells, "
                f"got {epsilon!r}, {pivot!r} and {profiles.people:,} people times {profiles.items:,} items. "
                "Hash the items into fewer."
            )
        return cls(profiles=profiles, joining=micro, public_weights=public_weights, pivot=middle)

    def shrunk(self) -> "Response":
        """Estimates pulled towards each item's estimated popularity: better for ranking, no longer unbiased. Free."""
        return replace(self, pulled=True)

    @property
    def people(self) -> int:
        return self.profiles.people

    def promise(self, micro_epsilon: int) -> Guarantee:
        """Return what everybody is promised who has paid this much."""
        return promise(micro_epsilon)

    def join(self, rng: Rng) -> Draw:
        """Everybody publishes."""
        return partial(_products, self.estimates(rng))

    def estimates(self, rng: Rng) -> NDArray[np.float32]:
        """(person, item): b̂ of every bit, from a fresh report of it; this draw is what `joining` pays for."""
        profiles, rows = self.profiles, max(1, CELLS // self.profiles.items)
        estimates = np.empty((profiles.people, profiles.items), dtype=np.float32)
        for start in range(0, profiles.people, rows):
            part = slice(start, start + rows)
            if self.public_weights is None:
                bits = report(profiles.weights[part], self.joining, self.pivot, rng)
                estimates[part] = estimate(bits, self.joining, self.pivot)
            else:
                levels = np.broadcast_to(thousandths(self.public_weights), estimates.shape)[part]
                estimates[part] = _flipped(profiles.held[part].toarray() > 0, levels, self.joining, rng)
        return _pulled(estimates) if self.pulled else estimates


def _pulled(estimates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Towards each item's estimated popularity: the linear posterior, by signal over total variance."""
    mean = np.clip(estimates.mean(axis=0), 1 / len(estimates), 1.0)
    signal = mean * (1 - mean)
    pull = signal / np.maximum(estimates.var(axis=0), signal)
    return np.asarray(mean + pull * (estimates - mean), dtype=np.float32)


def _products(estimates: NDArray[np.float32], left: Integers, right: Integers, rng: Rng) -> Floats:
    """Σ_i b̂_i b̂'_i for each pair: two different people's noise is independent, so this is unbiased too."""
    scores = np.empty(left.size)
    step = max(1, CELLS // estimates.shape[1])
    for start in range(0, left.size, step):
        part = slice(start, start + step)
        scores[part] = np.einsum("pi,pi->p", estimates[left[part]], estimates[right[part]])
    return scores


def flip_threshold(micro_epsilon: int) -> int:
    """1/(1 + e^ε) as a 64-bit coin threshold, rounded up: (e^ε − 1)/(e^2ε − 1) is the same number."""
    return ALWAYS // 2 if micro_epsilon == 0 else inclusion_threshold(micro_epsilon, 2 * micro_epsilon) + 1


def report_threshold(micro_epsilon: int, absent: int) -> int:
    """a = min(r e^ε, 1 − (1 − r) e^−ε) as a 64-bit coin threshold for r = absent/2^64, rounded down, never below r."""
    grown = DIGITS.exp(DIGITS.divide(Decimal(micro_epsilon), Decimal(MICRO)))
    rest = DIGITS.subtract(Decimal(ALWAYS), DIGITS.divide(Decimal(ALWAYS - absent), grown))
    least = min(DIGITS.multiply(Decimal(absent), grown), rest)
    return max(absent, int(DIGITS.subtract(least, Decimal("1e-20"))))  # the margin is far above the rounding error


def _flipped(bits: NDArray[np.bool_], levels: Integers, micro_epsilon: int, rng: Rng) -> Floats:
    """Unbiased estimates of `bits`, each flipped at the rate of its public level (in thousandths)."""
    found, level = _numbered(levels)
    thresholds = [flip_threshold(int(micro_epsilon * v // WHOLE)) for v in found]
    noisy = bits.ravel() ^ keep(coins(bits.size, rng), thresholds, level)
    rate = np.array([threshold / ALWAYS for threshold in thresholds])
    silent = rate >= 0.5  # weight 0, or too small an ε for a millionth
    gain = np.where(silent, 0.0, 1 / np.where(silent, 1.0, 1 - 2 * rate))
    return np.asarray((noisy - rate[level]) * gain[level]).reshape(bits.shape)


def report(weights: Any, micro_epsilon: int, pivot: int, rng: Rng) -> NDArray[np.bool_]:
    """Return noisy bits of who holds what; held items are reported at the rate of their private weight."""
    absent = flip_threshold(int(micro_epsilon * pivot // WHOLE))
    found, level = _numbered(weights.data)
    held = [report_threshold(int(micro_epsilon * v // WHOLE), absent) for v in found]
    kind = np.zeros(weights.shape, dtype=np.int64)  # 0: not held; else the number of its level, from 1
    kind[np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr)), weights.indices] = level + 1
    return keep(coins(kind.size, rng), [absent, *held], kind.ravel()).reshape(kind.shape)


def estimate(bits: NDArray[np.bool_], micro_epsilon: int, pivot: int) -> Floats:
    """Return b̂ of each reported bit: unbiased for items of weight 1, too small for others."""
    absent = flip_threshold(int(micro_epsilon * pivot // WHOLE))
    rate, whole = absent / ALWAYS, report_threshold(micro_epsilon, absent) / ALWAYS
    return np.asarray((bits - rate) / (whole - rate))


def _numbered(levels: Integers) -> tuple[Integers, Integers]:
    """The levels that occur, and which of them each entry is (np.unique without sorting)."""
    found = np.flatnonzero(np.bincount(levels.ravel(), minlength=WHOLE + 1))
    number = np.zeros(WHOLE + 1, dtype=np.int64)
    number[found] = np.arange(found.size)
    return found, number[levels.ravel()]

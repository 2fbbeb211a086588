"""Privacy weights of items: whole thousandths from 0 (never use) to 1,000 (full ε), and what they promise.

A weight v means that item may lose ε·v; a large weight is weak privacy. An item nobody declared has weight 0.
Weights are whole numbers so that everything that meets noise is a whole number.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.guarantee import Arithmetic, Guarantee, Loss
from discretion.noise import Rng, coins
from discretion.preference import MICRO, Integers, allowance

WHOLE = 1_000  # thousandths in a weight of 1

WESTIN: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"unconcerned": (1_000,), "pragmatists": (500, 750, 1_000), "fundamentalists": (0, 500, 1_000)}
)  # [AGK16] section 4: each group's weights, drawn uniformly


def thousandths(weights: ArrayLike) -> Integers:
    """Weights in [0, 1] as whole thousandths, rounded down: towards more privacy."""
    values = np.asarray(weights, dtype=np.float64)
    if not bool(np.all((values >= 0) & (values <= 1))):  # also false for NaN
        raise InvalidPreference("Every privacy weight must be from 0 (never use) to 1, got at least one that is not.")
    return allowance(values) // (MICRO // WHOLE)


def declare(items: int, weights: Mapping[int, float]) -> list[float]:
    """One weight per item from those somebody declared; all others are 0: never used."""
    if any(not 0 <= item < items for item in weights):
        raise InvalidPreference(f"Weights must be declared for items 0 to {items - 1}, got at least one other.")
    return [weights.get(item, 0.0) for item in range(items)]


def slices(lower: float, upper: float, count: int) -> Integers:
    """`count` equally spaced weights from `lower` to `upper`, both included, in thousandths."""
    if count < 2 or not 0 <= lower < upper <= 1:
        raise InvalidDeclaration(
            f"Slices need at least two levels and 0 ≤ lower < upper ≤ 1, got {count} from {lower:g} to {upper:g}."
        )
    return thousandths(np.linspace(lower, upper, count))


def draw(levels: Sequence[int] | Integers, size: int, rng: Rng = None) -> Integers:
    """`size` weights drawn uniformly from `levels` (a 64-bit remainder: uniform to within 2^-60)."""
    return np.asarray(levels, dtype=np.int64)[(coins(size, rng) % np.uint64(len(levels))).astype(np.int64)]


def westin(shares: Mapping[str, float], people: int, rng: Rng = None) -> Integers:
    """The group of each person, numbered as in WESTIN: exact shares up to rounding, in random order."""
    if not set(shares) <= set(WESTIN) or abs(sum(shares.values()) - 1) > 1e-9 or min(shares.values()) < 0:
        raise InvalidDeclaration(f"Shares must sum to 1 over {', '.join(WESTIN)}, got {dict(shares)}.")
    ends = np.rint(np.cumsum([shares.get(name, 0.0) for name in WESTIN]) * people)
    ordered = np.searchsorted(ends, np.arange(people), side="right")
    return ordered[np.argsort(coins(people, rng))].astype(np.int64)


def loss(micro_epsilon: int, weight: Integers) -> Integers:
    """Return what an item of this weight loses when an item of weight 1 loses `micro_epsilon`, rounded up."""
    return -(-micro_epsilon * weight // WHOLE)


@lru_cache(maxsize=64)
def promise(
    micro_epsilon: int, *, note: str = "", arithmetic: Arithmetic = "exact", weighted: bool = True
) -> Guarantee:
    """The guarantee (ε, v): an item of weight v loses at most ε·v (ε if not `weighted`), whatever v its owner chose.

    Losses are listed for every possible weight, because which weights occur is private. The key of weight v is
    v in millionths: what the item would have available for a total of ε = 1. So releases with different ε add up.
    """
    every = np.arange(WHOLE + 1)
    lost = loss(micro_epsilon, every if weighted else np.full_like(every, WHOLE))
    losses = {int(v) * (MICRO // WHOLE): Loss(int(each)) for v, each in zip(every, lost, strict=True)}
    return Guarantee(protects="value", unit="item", losses=losses, arithmetic=arithmetic, note=note)

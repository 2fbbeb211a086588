"""Similarities of two profiles that keep every item's weight, on both sides.

A similarity has two prices: `micro_epsilon`, what one answered pair costs an item of weight 1 on either side, and
`joining`, what taking part at all costs it, once. `promise` turns the sum of what was paid into a guarantee. Nothing is
drawn before it is paid: `join`, called once `joining` is, draws what everybody publishes and gives what draws noisy
scores of unordered pairs. Everything that reads a score afterwards is free.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from scipy import sparse

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.noise import Floats, Rng, discrete_laplace
from discretion.preference import MICRO, Integers, allowance
from discretion.social.profile import Profiles
from discretion.social.weight import WHOLE, promise

Coefficient = Literal["min", "product"]
ENTRIES = 4_000_000  # stored entries handled at once: bounds the memory of a batch of pairs
TABLE = 1_024  # people up to which all pairs may be computed at once


Measure = Literal["cosine", "jaccard", "dice", "overlap"]
RATIOS: Mapping[Measure, Callable[[Any, Any, Any], Any]] = MappingProxyType(
    {  # product and both sizes, each at least 1 -> similarity; none of them falls where the product rises
        "cosine": lambda product, a, b: product / np.sqrt(a * b),
        "jaccard": lambda product, a, b: product / np.maximum(1.0, a + b - product),
        "dice": lambda product, a, b: 2 * product / (a + b),
        "overlap": lambda product, a, b: product / np.minimum(a, b),
    }
)
Draw = Callable[[Integers, Integers, Rng], Floats]  # the two sides of each pair -> their noisy scores


class Similarity(Protocol):
    """Noisy scores of pairs, and what they cost."""

    @property
    def people(self) -> int: ...
    @property
    def micro_epsilon(self) -> int: ...
    @property
    def joining(self) -> int: ...
    def promise(self, micro_epsilon: int) -> Guarantee | None: ...
    def join(self, rng: Rng) -> Draw: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class ScalarProduct:
    """Says how many items two people share, each counted by a coefficient of its two weights, plus noise.

    Definition  Σ_i c(v_i^x, v_i^y) x_i y_i + discrete Laplace of scale 1/ε on the coefficient's own grid;
                c = v^x·v^y ("product", [AGK16] section 4) or min(v^x, v^y) ("min", never smaller).
    Guarantee   both owners: item i loses ε·c_i ≤ ε·v_i, on both sides, because c ≤ min(v^x, v^y); if item and weight
                change together both values lie in [0, max(v_i, v_i')], so ε·max(v_i, v_i').
    Neighbours  one item of one of the two profiles appears, disappears or changes its weight.
    Tested by   tests/social/test_similarity.py::test_no_item_loses_more_than_its_weight_to_a_scalar_product

    The noise must be drawn inside the computation that joins the two profiles: who draws it alone can remove it.
    Without such a place both sides add noise of this scale: `draws=2`, as between peers (docs/peers.md).
    """

    profiles: Profiles
    micro_epsilon: int
    coefficient: Coefficient = "min"
    joining: int = 0
    draws: int = 1  # 2: each side adds the noise that protects itself

    def __post_init__(self) -> None:
        if self.micro_epsilon <= 0 or self.coefficient not in ("min", "product") or self.draws not in (1, 2):
            raise InvalidDeclaration(
                "A scalar product needs an epsilon of at least one millionth, the coefficient min or product and one "
                f"or two draws, got {self.micro_epsilon / MICRO:g}, {self.coefficient!r} and {self.draws}."
            )

    @property
    def people(self) -> int:
        return self.profiles.people

    @property
    def whole(self) -> int:
        """Grid steps in one fully counted item."""
        return WHOLE if self.coefficient == "min" else WHOLE**2

    @property
    def scale(self) -> Fraction:
        """Of the noise, in grid steps."""
        return Fraction(self.whole * MICRO, self.micro_epsilon)

    def promise(self, micro_epsilon: int) -> Guarantee:
        """Return what everybody is promised who has paid this much."""
        return promise(micro_epsilon)

    def steps(self, left: Integers, right: Integers) -> Integers:
        """The weighted products in whole grid steps. Private until noise is added."""
        if self._table is not None:
            return self._table[left, right]
        return shared(self.profiles.weights, left, right, self.coefficient)

    @cached_property
    def _table(self) -> Integers | None:
        """All pairs at once where that is quicker: few people, full profiles, few weights."""
        weights = self.profiles.weights
        crowded = weights.nnz * 20 >= weights.shape[0] * weights.shape[1]
        if weights.shape[0] > TABLE or not crowded or weights.shape[1] > 2**20:
            return None
        return _all_shared(weights.toarray(), self.coefficient)

    def join(self, rng: Rng) -> Draw:
        """Nothing is published beforehand."""
        return self.draw

    def draw(self, left: Integers, right: Integers, rng: Rng) -> Floats:
        """Noisy products, in items."""
        noise = discrete_laplace(self.scale, self.draws * left.size, rng).reshape(self.draws, left.size).sum(axis=0)
        return np.asarray((self.steps(left, right) + noise) / self.whole)


@dataclass(frozen=True, kw_only=True, eq=False)
class RatioSimilarity:
    """A noisy scalar product divided by sizes that are public or were released; never by exact ones.

    Definition  P̃ = a noisy scalar product; ã, b̃ = max(1, Σ v_i x_i + discrete Laplace of scale 1/ε₂) of both sides,
                drawn once per person. The score is a function of P̃, ã and b̃ (RATIOS).
    Guarantee   item i loses ε₂·v_i once, for the size of its owner, and ε·v_i for each compared pair, because it moves
                Σ v_i x_i by v_i at most; the division reads released numbers only. With the weight changing too:
                max(v_i, v_i').
    Neighbours  one item of one profile appears, disappears or changes its weight. With sizes declared public: one item
                is swapped for another, at ε·max(v_i, v_j).
    Tested by   tests/social/test_ratio.py::test_no_item_loses_more_than_its_weight_to_a_ratio

    Dividing by the true sizes is not post-processing: an item of weight 0 would change the answer ([AGK16] section 4
    does it; docs/errata.md).
    """

    measure: ClassVar[Measure]
    product: ScalarProduct
    joining: int  # what releasing sizes costs; 0: they are declared public

    @classmethod
    def charged(cls, product: ScalarProduct, *, size_epsilon: float) -> Self:
        """Everybody releases Σ v_i x_i + noise once; joining costs an item of weight v another size_epsilon·v."""
        micro = int(allowance(size_epsilon))
        if micro <= 0:
            raise InvalidDeclaration(f"Released sizes need an epsilon of at least one millionth, got {size_epsilon!r}.")
        return cls(product=product, joining=micro)

    @classmethod
    def public(cls, product: ScalarProduct) -> Self:
        """Sizes declared public: neighbours then swap one item for another, which costs ε·max(v_i, v_j)."""
        return cls(product=product, joining=0)

    @property
    def people(self) -> int:
        return self.product.people

    @property
    def micro_epsilon(self) -> int:
        return self.product.micro_epsilon

    @property
    def size_scale(self) -> Fraction:
        """Of the noise of a released size, in thousandths of an item."""
        return Fraction(WHOLE * MICRO, self.joining)

    def promise(self, micro_epsilon: int) -> Guarantee:
        """With public sizes, swapping item i for item j costs ε·max(v_i, v_j): up to ε, whatever the weight of i."""
        if self.joining:
            return promise(micro_epsilon)
        note = "profile sizes are public: holds for swapping items i and j, at ε·max(v_i, v_j)"
        return promise(micro_epsilon, weighted=False, note=note)

    def join(self, rng: Rng) -> Draw:
        """Everybody's size is released, or known."""
        return partial(self._draw, self.sizes(rng))

    def sizes(self, rng: Rng) -> Floats:
        """Per person, at least 1; not exact unless public: this draw is what `joining` pays for."""
        if not self.joining:
            return np.maximum(1.0, self.product.profiles.sizes)
        noisy = self.product.profiles.stretched_sizes + discrete_laplace(self.size_scale, self.people, rng)
        return np.maximum(1.0, noisy / WHOLE)

    def _draw(self, sizes: Floats, left: Integers, right: Integers, rng: Rng) -> Floats:
        """Return noisy ratios; they can be negative or above 1."""
        return np.asarray(RATIOS[self.measure](self.product.draw(left, right, rng), sizes[left], sizes[right]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cosine(RatioSimilarity):
    """P̃ / √(ã b̃)."""

    measure: ClassVar[Measure] = "cosine"
    squared: bool = False  # as in the released simulator of [AGK16]: loses the sign, so bad noise looks like likeness

    @classmethod
    def public(cls, product: ScalarProduct, *, squared: bool = False) -> Self:
        """Sizes declared public: neighbours then swap one item for another, which costs ε·max(v_i, v_j)."""
        return cls(product=product, joining=0, squared=squared)

    def _draw(self, sizes: Floats, left: Integers, right: Integers, rng: Rng) -> Floats:
        cosines = super()._draw(sizes, left, right, rng)
        return cosines**2 if self.squared else cosines


class Jaccard(RatioSimilarity):
    """P̃ / (ã + b̃ − P̃): shared items of all items that one of the two holds."""

    measure = "jaccard"


class Dice(RatioSimilarity):
    """2 P̃ / (ã + b̃): shared items of the mean size."""

    measure = "dice"


class Overlap(RatioSimilarity):
    """P̃ / min(ã, b̃): shared items of the smaller profile."""

    measure = "overlap"


@dataclass(frozen=True, kw_only=True, eq=False)
class Exact:
    """The true similarity: a baseline for experiments that protects nobody."""

    profiles: Profiles
    measure: Literal["product"] | Measure = "product"
    micro_epsilon: int = 0
    joining: int = 0

    @property
    def people(self) -> int:
        return self.profiles.people

    def promise(self, micro_epsilon: int) -> None:
        """Nothing."""
        return

    def join(self, rng: Rng) -> Draw:
        """Nothing is published beforehand."""
        return self.draw

    def draw(self, left: Integers, right: Integers, rng: Rng) -> Floats:
        """True products or ratios."""
        common = shared(self.profiles.held, left, right, "min").astype(np.float64)
        if self.measure == "product":
            return common
        sizes = np.maximum(1, self.profiles.sizes)
        return np.asarray(RATIOS[self.measure](common, sizes[left], sizes[right]))


def _all_shared(dense: Any, coefficient: Coefficient) -> Integers | None:
    """Σ_i c over all pairs of rows by matrix products of doubles, exact because every sum is below 2^53."""
    if coefficient == "product":
        whole = dense.astype(np.float64)
        return np.asarray(whole @ whole.T, dtype=np.int64)
    levels = np.unique(dense[dense > 0])
    if levels.size > 12:
        return None
    total = np.zeros((dense.shape[0], dense.shape[0]))
    for below, level in pairwise([0, *levels.tolist()]):  # min(a, b) = Σ of the steps between levels that both reach
        reached = (dense >= level).astype(np.float32)  # counts of items, below 2^24: exact in single precision
        total += (level - below) * (reached @ reached.T)
    return total.astype(np.int64)


def shared(matrix: Any, left: Integers, right: Integers, coefficient: Coefficient) -> Integers:
    """Σ_i c(matrix[left, i], matrix[right, i]) for each pair, in batches of bounded size."""
    sizes = np.diff(matrix.indptr)
    batch = np.cumsum(sizes[left] + sizes[right], dtype=np.int64) // ENTRIES
    cuts = np.flatnonzero(np.diff(batch)) + 1
    parts = [
        _shared(matrix[a], matrix[b], coefficient)
        for a, b in zip(np.split(left, cuts), np.split(right, cuts), strict=True)
        if a.size
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _shared(left: sparse.csr_array, right: sparse.csr_array, coefficient: Coefficient) -> Integers:
    both = left.minimum(right) if coefficient == "min" else left.multiply(right)
    return np.asarray(both.sum(axis=1), dtype=np.int64)

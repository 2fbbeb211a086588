"""Profiles: which person holds which item, and the privacy weight each gave it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from discretion.errors import InvalidDeclaration
from discretion.noise import Rng
from discretion.preference import Integers
from discretion.social.weight import WESTIN, WHOLE, draw, thousandths, westin

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Profiles:
    """A sparse (person, item) matrix; a stored entry is a held item, its value the weight in thousandths.

    A held item of weight 0 is stored too: its owner has it, and nobody else may ever notice.
    """

    weights: Any  # scipy.sparse.csr_array of whole numbers
    groups: Integers | None = None  # each person's Westin group, numbered as in WESTIN

    def __post_init__(self) -> None:
        held = sparse.csr_array(self.weights, dtype=np.int32)
        held.sum_duplicates()
        if held.shape[0] < 2 or held.shape[1] < 1:
            raise InvalidDeclaration(f"Profiles need at least two people and one item, got shape {held.shape}.")
        if held.nnz and not 0 <= held.data.min() <= held.data.max() <= WHOLE:
            raise InvalidDeclaration(f"Every weight must be from 0 to {WHOLE} thousandths; were pairs given twice?")
        if self.groups is not None and self.groups.shape != held.shape[:1]:
            raise InvalidDeclaration("There must be one group per person.")
        object.__setattr__(self, "weights", held)

    @classmethod
    def of(cls, person: ArrayLike, item: ArrayLike, weight: ArrayLike | None = None, **shape: int) -> "Profiles":
        """From pairs numbered from 0; weights in [0, 1], or 0 (never used). `people` and `items` fix the shape."""
        rows, columns = np.asarray(person, dtype=np.int64), np.asarray(item, dtype=np.int64)
        levels = np.zeros(rows.size, dtype=np.int64) if weight is None else thousandths(weight)
        size = shape.get("people", int(rows.max(initial=-1)) + 1), shape.get("items", int(columns.max(initial=-1)) + 1)
        if levels.shape != rows.shape or columns.shape != rows.shape:
            raise InvalidDeclaration("There must be one item and one weight for each person in the pairs.")
        _, first = np.unique(rows * size[1] + columns, return_index=True)  # a pair given twice counts once
        return cls(weights=sparse.csr_array((levels[first], (rows[first], columns[first])), shape=size))

    @classmethod
    def from_arrow(cls, table: pa.Table, *, person: str, item: str, weight: str | None = None) -> "Profiles":
        """From a table of (person, item) rows, with the weight in a column if there is one."""
        codes = [pc.dictionary_encode(table[name]).combine_chunks().indices.to_numpy() for name in (person, item)]
        return cls.of(codes[0], codes[1], table[weight].to_numpy() if weight is not None else None)

    @property
    def people(self) -> int:
        return int(self.weights.shape[0])

    @property
    def items(self) -> int:
        return int(self.weights.shape[1])

    @property
    def sizes(self) -> Integers:
        """How many items each person holds. Private unless declared public."""
        return np.asarray(np.diff(self.weights.indptr), dtype=np.int64)

    @property
    def stretched_sizes(self) -> Integers:
        """Σ v_i over everybody's items, in thousandths. Private: an item of weight v moves it by v."""
        return np.asarray(self.weights.sum(axis=1), dtype=np.int64)

    @property
    def held(self) -> Any:
        """1 where a person holds an item."""
        return self._with(np.ones(self.weights.nnz, dtype=np.int32))

    def weigh(self, levels: Integers | int) -> "Profiles":
        """The same items with these weights: one for all, or one per held item in stored order."""
        data = np.broadcast_to(np.asarray(levels, dtype=np.int32), self.weights.data.shape)
        return replace(self, weights=self._with(data))

    def sliced(self, levels: Integers, rng: Rng = None) -> "Profiles":
        """Every held item draws its weight from `levels` (see weight.slices)."""
        return self.weigh(draw(levels, self.weights.nnz, rng))

    def westin(self, shares: Mapping[str, float], rng: Rng = None, *, per: str = "item") -> "Profiles":
        """Groups in these shares; weights drawn from the group's levels for each item, or once `per` person."""
        if per not in ("item", "person"):
            raise InvalidDeclaration(f"Weights are drawn per item or per person, got {per!r}.")
        group = westin(shares, self.people, rng)
        owner = np.repeat(np.arange(self.people), self.sizes)
        data = np.empty(self.weights.nnz, dtype=np.int64)
        for number, levels in enumerate(WESTIN.values()):
            chosen = group[owner] == number
            drawn = draw(levels, self.weights.nnz if per == "item" else self.people, rng)
            data[chosen] = drawn[chosen] if per == "item" else drawn[owner[chosen]]
        return replace(self.weigh(data), groups=group)

    def keep(self, people: Mask) -> "Profiles":
        """Only these people."""
        groups = None if self.groups is None else self.groups[people]
        return replace(self, weights=self.weights[np.flatnonzero(people)], groups=groups)

    def entries(self, chosen: Mask) -> Any:
        """Some of the held entries (in stored order) as a matrix of the same shape."""
        owner = np.repeat(np.arange(self.people), self.sizes)[chosen]
        columns, data = self.weights.indices[chosen], self.weights.data[chosen]
        return sparse.csr_array((data, (owner, columns)), shape=self.weights.shape)

    def _with(self, data: Any) -> Any:
        return sparse.csr_array((data, self.weights.indices, self.weights.indptr), shape=self.weights.shape)

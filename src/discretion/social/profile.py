"""Profiles: which person holds which item, and the privacy weight each gave it."""

from collections.abc import Mapping, Sequence
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
    def of(
        cls, person: ArrayLike, item: ArrayLike, weight: ArrayLike | None = None, *, people: int, items: int
    ) -> "Profiles":
        """Return the profiles of `people` over a catalogue of `items`, from pairs numbered from 0.

        Both numbers are declared and public. They must not be counted from the pairs: an item that only one person
        holds, at weight 0, would then show. Pairs of other people or of items outside the catalogue are left out.
        Weights are in [0, 1]; without them every item has weight 0 (never used).
        """
        rows, columns = np.asarray(person, dtype=np.int64), np.asarray(item, dtype=np.int64)
        levels = np.zeros(rows.size, dtype=np.int64) if weight is None else thousandths(weight)
        if levels.shape != rows.shape or columns.shape != rows.shape:
            raise InvalidDeclaration("There must be one item and one weight for each person in the pairs.")
        declared = (rows >= 0) & (rows < people) & (columns >= 0) & (columns < items)
        rows, columns, levels = rows[declared], columns[declared], levels[declared]
        _, first = np.unique(rows * items + columns, return_index=True)  # a pair given twice counts once
        return cls(weights=sparse.csr_array((levels[first], (rows[first], columns[first])), shape=(people, items)))

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        *,
        person: str,
        item: str,
        weight: str | None = None,
        people: Sequence[Any],
        catalogue: Sequence[Any],
    ) -> "Profiles":
        """Return profiles from a table of (person, item) rows, with the weight in a column if there is one.

        `people` and `catalogue` list everybody who takes part and every item there is. Both are public. People and
        items are numbered as in these lists, and rows about others are left out.
        """
        rows, columns = _numbered(table[person], people, "people"), _numbered(table[item], catalogue, "catalogue")
        weights = None if weight is None else table[weight].to_numpy()
        return cls.of(rows, columns, weights, people=len(people), items=len(catalogue))

    @property
    def people(self) -> int:
        return int(self.weights.shape[0])

    @property
    def items(self) -> int:
        return int(self.weights.shape[1])

    @property
    def sizes(self) -> Integers:
        """Return how many items each person holds. Private unless declared public."""
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


def _numbered(column: pa.ChunkedArray, declared: Sequence[Any], name: str) -> Integers:
    """Return the place of each value in the declared list, -1 where it is not in the list."""
    try:
        listed = pa.array(list(declared)).cast(column.type)
    except pa.ArrowException:
        raise InvalidDeclaration(f"The declared {name} must have the type of the column, {column.type}.") from None
    if listed.null_count or len(listed.unique()) != len(listed):
        raise InvalidDeclaration(f"The declared {name} must list every value once, without missing values.")
    return np.asarray(pc.fill_null(pc.index_in(column, value_set=listed), -1).to_numpy(), dtype=np.int64)

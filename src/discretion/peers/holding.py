"""Holding: the profile of one peer over the declared catalogue, and the terms that a network agrees on."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet
from scipy import sparse

from discretion.errors import InvalidDeclaration, PeerRefused
from discretion.noise import Floats, Rng
from discretion.peers.message import MOST_ITEMS
from discretion.preference import MICRO, Integers, allowance
from discretion.social.response import estimate, report
from discretion.social.weight import WHOLE, thousandths

Method = Literal["response", "product"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Says what everybody in a network must agree on. Only peers with the same terms talk to one another."""

    catalogue: str  # hash of the list of items
    items: int
    method: Method
    comparison: int  # micro-ε that one comparison costs an item of weight 1; 0 for responses
    publication: int  # micro-ε that publishing a noisy profile costs it, once; 0: nobody publishes
    pivot: int = WHOLE // 2  # of the responses (social/response.py)

    @classmethod
    def of(cls, catalogue: Sequence[str], *, method: Method, epsilon: float, publish: float = 0.0) -> "Terms":
        """Return the terms at this ε for a comparison, or for the publication if the method is `response`."""
        price, published = int(allowance(epsilon)), int(allowance(publish))
        if method not in ("response", "product") or price <= 0:
            raise InvalidDeclaration(
                f"A network compares by 'response' or 'product' and needs an epsilon of at least one millionth, got "
                f"{method!r} and {epsilon!r}."
            )
        if method == "product" and len(catalogue) > MOST_ITEMS:
            raise InvalidDeclaration(
                f"Encrypted products need a catalogue of at most {MOST_ITEMS:,} items, got {len(catalogue):,}. Use the "
                "method 'response', or group the items."
            )
        prices = {"comparison": 0, "publication": price} if method == "response" else {"comparison": price}
        digest = sha256(json.dumps(list(catalogue)).encode()).hexdigest()
        return cls(catalogue=digest, items=len(catalogue), method=method, **{"publication": published, **prices})

    @cached_property
    def digest(self) -> str:
        """The hash that peers compare."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def scale(self) -> Fraction:
        """Of the noise each side adds to a product, in steps of a millionth of an item."""
        return Fraction(WHOLE**2 * MICRO, self.comparison)

    def pack(self, bits: NDArray[np.bool_]) -> bytes:
        return np.packbits(bits).tobytes()

    def unpack(self, packed: bytes) -> NDArray[np.bool_]:
        """Return the bits of a publication, one per item of the catalogue."""
        if len(packed) != -(-self.items // 8):
            raise PeerRefused(f"A publication must have one bit for each of {self.items} items.")
        return np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=self.items).astype(bool)

    def estimates(self, packed: bytes) -> Floats:
        """Return how much of each item a peer holds, estimated from its publication."""
        return estimate(self.unpack(packed), self.publication, self.pivot)


@dataclass(frozen=True, kw_only=True, eq=False)
class Holding:
    """Says which items of the catalogue one person holds, and the weight of each in thousandths (0 where not held)."""

    catalogue: tuple[str, ...]
    held: NDArray[np.bool_]
    weights: Integers

    @classmethod
    def of(cls, catalogue: Sequence[str], items: Sequence[str], weights: Sequence[float]) -> "Holding":
        """Return the profile with these items; items outside the catalogue are left out, the first of equals counts."""
        place = {item: number for number, item in enumerate(catalogue)}
        if not place or len(place) != len(catalogue):
            raise InvalidDeclaration("A catalogue must list at least one item, and every item once.")
        levels = thousandths(weights)
        if levels.shape != (len(items),):
            raise InvalidDeclaration("Every item of a profile needs one weight.")
        held, chosen = np.zeros(len(place), dtype=bool), np.zeros(len(place), dtype=np.int64)
        for item, level in zip(items, levels.tolist(), strict=True):
            if item in place and not held[place[item]]:
                held[place[item]], chosen[place[item]] = True, level
        return cls(catalogue=tuple(catalogue), held=held, weights=chosen)

    @classmethod
    def read(cls, profile: Path, catalogue: Path, *, weight: float | None = None) -> "Holding":
        """Read the columns `item` and `weight` of a Parquet or CSV file; `weight` is for files without weights."""
        table = _table(profile)
        if "weight" not in table.column_names and weight is None:
            raise InvalidDeclaration(
                f"{str(profile)!r} has no column 'weight'. Add one from 0 (never use) to 1, or give --weight for all."
            )
        items = _texts(table, profile)
        chosen = [weight] * len(items) if "weight" not in table.column_names else table["weight"].to_pylist()
        return cls.of(_texts(_table(catalogue), catalogue), items, [np.nan if v is None else float(v) for v in chosen])

    def report(self, terms: Terms, rng: Rng) -> bytes:
        """Return a noisy copy of the profile: the release that `terms.publication` pays for."""
        column = np.flatnonzero(self.held)
        row = sparse.csr_array((self.weights[column], (np.zeros_like(column), column)), shape=(1, self.held.size))
        return terms.pack(report(row, terms.publication, terms.pivot, rng)[0])


def _table(path: Path) -> pa.Table:
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"item": pa.string()}))
    except pa.ArrowException:
        raise InvalidDeclaration(f"{str(path)!r} cannot be read as Parquet or CSV. Check the file.") from None


def _texts(table: pa.Table, path: Path) -> list[str]:
    if "item" not in table.column_names:
        raise InvalidDeclaration(f"{str(path)!r} must have a column 'item'.")
    if table["item"].null_count:
        raise InvalidDeclaration(f"{str(path)!r} has rows without an item. Remove them.")
    return [str(item) for item in table["item"].cast(pa.string()).to_pylist()]

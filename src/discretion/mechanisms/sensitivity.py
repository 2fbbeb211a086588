"""How far an order statistic can move: by one change, by i changes, by one change after k others. All of it is private.

X(j) is the j-th smallest of n values, the lower bound for j < 1 and the upper for j > n; the bounds are public. The
two notions of distance are different things: `group` is what i changes can do to the answer (for groups of people),
`after` is the largest one-change effect within k changes (for smooth sensitivity). [SDSM17] gives both the same name.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discretion.noise import Floats
from discretion.preference import Integers

RankOf = Callable[[int], int]  # how many values there are -> which of them is asked for


@dataclass(frozen=True, kw_only=True, eq=False)
class Ordered:
    """Values in ascending order, between bounds."""

    values: Floats
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats, bounds: tuple[float, float]) -> "Ordered":
        low, high = bounds
        return cls(values=np.sort(np.clip(np.asarray(values, dtype=np.float64), low, high)), low=low, high=high)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Ordered(values={len(self)}, private)"

    def at(self, place: int | Integers) -> Floats:
        """X(place)."""
        padded = np.concatenate([[self.low], self.values, [self.high]])
        return np.asarray(padded[np.clip(place, 0, len(self) + 1)])


def changed(data: Ordered, rank: int, changes: int) -> float:
    """Δ_i under value: how far `changes` people can move X(rank) by changing theirs. One is the local sensitivity."""
    middle = data.at(rank)
    return float(max(data.at(rank + changes) - middle, middle - data.at(rank - changes)))


def midpoint_changed(data: Ordered, changes: int) -> float:
    """Δ_i of (X(m) + X(m+1))/2 under value, n = 2m."""
    m = len(data) // 2

    def pair(place: int) -> float:
        return float(data.at(place) + data.at(place + 1))

    return max(pair(m + changes) - pair(m), pair(m) - pair(m - changes)) / 2


def appeared(data: Ordered, rank_of: RankOf, changes: int = 1, least: int = 1) -> float:
    """Δ_i under presence: how far X(rank_of(n)) moves when up to i people come or go and at least `least` stay."""
    people, middle = len(data), float(data.at(rank_of(len(data))))
    moved = [0.0]
    for come in range(changes + 1):
        for go in range(changes + 1 - come):
            if people + come - go >= least and go <= people:
                rank = rank_of(people + come - go)
                moved += [abs(float(data.at(place)) - middle) for place in (rank - come, rank + go)]
    return max(moved)


def log_smooth(data: Ordered, rank: int, beta: float) -> float:
    """ln S, S = max over k of e^(−βk) A_k, the β-smooth sensitivity of X(rank) under value, in O(n log n).

    S is the maximum of e^(−β(j−i−1)) (X(j) − X(i)) over i ≤ rank ≤ j, i < j. For a given i the better of two j is
    the larger one from some X(i) on, so the best j ascends with i, and halving the i's halves the j's to look at. Of
    equal values only the last below and the first above can be best. Logarithms, because e^(−βn) is no double.
    """
    places = np.arange(len(data) + 2)
    below, i = (found[::-1] for found in _distinct(data.at(places[rank::-1]), places[rank::-1]))  # ascending
    above, j = _distinct(data.at(places[rank:]), places[rank:])

    def score(low: Integers, high: Integers) -> Floats:
        with np.errstate(divide="ignore"):  # equal values: ln 0
            return np.asarray(np.log(above[high] - below[low]) - beta * (j[high] - i[low] - 1))

    parts = np.array([[0, len(i) - 1, 0, len(j) - 1]])  # first and last of the i's, of the j's
    best = -np.inf
    while parts.size:
        middle = (parts[:, 0] + parts[:, 1]) // 2
        top, found = _best_in_ranges(score, middle, parts[:, 2], parts[:, 3])
        best = max(best, float(top.max()))
        left = np.column_stack([parts[:, 0], middle - 1, parts[:, 2], found])
        right = np.column_stack([middle + 1, parts[:, 1], found, parts[:, 3]])
        parts = np.vstack([left, right])
        parts = parts[parts[:, 0] <= parts[:, 1]]
    return best


def _best_in_ranges(
    score: Callable[[Integers, Integers], Floats], key: Integers, first: Integers, last: Integers
) -> tuple[Floats, Integers]:
    """For every key and its range first..last, the largest score(key, place) and the first place that has it."""
    lengths = last - first + 1
    starts = np.cumsum(lengths) - lengths
    part = np.repeat(np.arange(len(first)), lengths)
    place = np.arange(len(part)) - starts[part] + first[part]
    found = score(key[part], place)
    top = np.maximum.reduceat(found, starts)
    hits = np.flatnonzero(found == top[part])
    return top, place[hits[np.searchsorted(part[hits], np.arange(len(first)))]]


def _distinct(values: Floats, places: Integers) -> tuple[Floats, Integers]:
    """The first place of each run of equal values."""
    new = np.concatenate([[True], values[1:] != values[:-1]])
    return values[new], places[new]

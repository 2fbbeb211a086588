"""Cut sorted budgets into consecutive groups, each at the budget of its strictest member ([LXJJ17]).

Everything works on levels: distinct budgets ascending, with head-counts. Ties never need splitting, for either
objective. Cuts are starting indices of groups, 0 first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.noise import Floats
from discretion.preference import MICRO, Integers

FEW = 1_000  # levels that a dynamic program over all pairs of them handles at once
GRID = 1.01  # ratio of the geometric grid that more levels are rounded down to, for precision cuts


def privacy_cuts(levels: Integers, heads: Integers, groups: int) -> list[int]:
    """The cuts of least wasted privacy, W = Σ (ε_u − ε of the group)², in whole micro-ε: exact.

    W is Monge: for a ≤ b ≤ c ≤ d, W(a,d) − W(a,c) = Σ_{c<l≤d} (ε_l − ε_a)² ≥ Σ (ε_l − ε_b)² = W(b,d) − W(b,c). So the
    best last cut moves right with the end, and a layer of the recurrence C_q(j) = min_i C_{q−1}(i) + W(i, j) takes
    O(n log n) by divide and conquer, here one whole depth of the recursion at a time.
    """
    _check(levels, heads, groups)
    waste = _Waste(levels, heads)
    layers = [waste.of(np.zeros(len(levels) + 1, dtype=np.int64), np.arange(len(levels) + 1))]  # C_1(j)
    chosen: list[Integers] = []
    for _ in range(min(groups, len(levels)) - 2):
        best, argument = _monotone_layer(layers[-1], waste)
        layers.append(best)
        chosen.append(argument)
    return _walk_back(layers, chosen, waste, min(groups, len(levels)))


class _Waste:
    """W(i, j) of the levels i..j−1 as one group, from prefix sums: B − 2ε_i A + ε_i² N, each over i..j−1."""

    def __init__(self, levels: Integers, heads: Integers) -> None:
        fits = 8 * int(levels[-1]) ** 2 * int(heads.sum()) < 2**63
        exact: Any = np.int64 if fits else np.float64  # beyond 64 bits, exact but for the rounding of doubles
        level, head = levels.astype(exact), heads.astype(exact)
        self.people = np.append(0, np.cumsum(head))
        self.owned = np.append(0, np.cumsum(head * level))
        self.squared = np.append(0, np.cumsum(head * level**2))
        self.slope = np.append(-2 * level, 0)  # of owned[j]
        self.square = np.append(level**2, 0)  # of people[j]
        self.start = -self.squared - self.slope * self.owned - self.square * self.people  # what i alone adds
        self.infinite = np.iinfo(np.int64).max // 2 if fits else np.inf

    def of(self, i: Any, j: Any) -> Any:
        return self.squared[j] + self.start[i] + self.slope[i] * self.owned[j] + self.square[i] * self.people[j]


def _monotone_layer(before: Any, waste: _Waste) -> tuple[Any, Integers]:
    """C_q and its best last cuts from C_{q−1}: for all middles of one recursion depth together."""
    count = len(before) - 1  # number of levels
    best = np.full(count + 1, waste.infinite, dtype=before.dtype)
    argument = np.zeros(count + 1, dtype=np.int64)
    start = before + waste.start
    first, last = np.array([1]), np.array([count])  # ends j still to do, as intervals
    low, high = np.array([0]), np.array([count - 1])  # where their best cuts lie
    while first.size:
        middle = (first + last) // 2
        right = np.minimum(high, middle - 1)
        value, where = _row_minima(start, waste, middle, low, right)
        best[middle], argument[middle] = value + waste.squared[middle], where
        left_side, right_side = first < middle, middle < last
        first, last = (
            np.concatenate([first[left_side], middle[right_side] + 1]),
            np.concatenate([middle[left_side] - 1, last[right_side]]),
        )
        low, high = (
            np.concatenate([low[left_side], where[right_side]]),
            np.concatenate([where[left_side], high[right_side]]),
        )
    return best, argument


def _row_minima(start: Any, waste: _Waste, ends: Integers, low: Integers, high: Integers) -> tuple[Any, Integers]:
    """For each end j, the least start_i + slope_i·owned_j + square_i·people_j over i = low..high, and where."""
    widths = high - low + 1
    offsets = np.append(0, np.cumsum(widths))
    cut = np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], widths)
    value = np.repeat(waste.owned[ends], widths)
    value *= waste.slope[cut]
    people = np.repeat(waste.people[ends], widths)
    people *= waste.square[cut]
    value += people
    value += start[cut]
    least = np.minimum.reduceat(value, offsets[:-1])
    hits = np.flatnonzero(value == np.repeat(least, widths))
    row = np.searchsorted(offsets, hits, side="right") - 1
    firsts = np.append(True, row[1:] != row[:-1])  # the leftmost of equals
    return least, cut[hits[firsts]]


def _walk_back(layers: list[Any], chosen: list[Integers], waste: _Waste, groups: int) -> list[int]:
    """The cuts of `groups` groups over all levels; only the last layer's last entry is ever needed."""
    count = len(layers[0]) - 1
    if groups == 1:
        return [0]
    ends = np.arange(1, count)
    cuts = [int(ends[np.argmin(layers[-1][ends] + waste.of(ends, count))])]
    for argument in reversed(chosen):
        cuts.append(int(argument[cuts[-1]]))
    return [0, *reversed(cuts)]


def precision_cuts(levels: Integers, heads: Integers, groups: int, variance: float) -> list[list[int]]:
    """For every number of groups up to `groups`, the cuts of greatest summed precision Σ 1/v_i, at most that many.

    v_i = S²/n_i + 2/(n_i ε_i)², the variance of a group's mean: S² (`variance`) of the values, noise for one ε. It is
    not Monge in either direction, so this is the full dynamic program; more than 1,000 levels are first rounded down
    to a geometric grid, which keeps at least 1/1.01² of the precision.
    """
    _check(levels, heads, groups)
    kept = _thinned(levels)
    people = np.add.reduceat(heads, kept).astype(np.float64)
    ends = np.append(0, np.cumsum(people))
    size = ends[None, 1:] - ends[:-1, None]  # (first, last): people of the group
    lowest = levels[kept][:, None] / MICRO
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(size > 0, 1 / (variance / size + 2 / (size * lowest) ** 2), -np.inf)
    return [[int(kept[cut]) for cut in cuts] for cuts in _most(gain, min(groups, len(kept)))]


def utility_cuts(
    levels: Integers, heads: Integers, groups: int, utility: Callable[[float, float], float], smallest: int = 1
) -> list[int]:
    """The cuts of greatest summed utility(people, ε) of at most `groups` groups, none of fewer than `smallest` people.

    The same dynamic program for any utility, the larger the better.
    """
    _check(levels, heads, groups)
    kept = _thinned(levels)
    ends = np.append(0, np.cumsum(np.add.reduceat(heads, kept)))
    if ends[-1] < smallest:
        raise InvalidDeclaration(f"A group of at least {smallest:,} people needs as many to choose from.")
    gain = np.full((len(kept), len(kept)), -np.inf)
    for first, last in zip(*np.triu_indices(len(kept)), strict=True):
        if (people := int(ends[last + 1] - ends[first])) >= smallest:
            gain[first, last] = utility(people, levels[kept[first]] / MICRO)
    return [int(kept[cut]) for cut in _most(gain, min(groups, len(kept)))[-1]]


def _most(gain: Floats, groups: int) -> list[list[int]]:
    """For q = 1..groups, the cuts that maximise the summed gain with at most q groups."""
    best, cuts = gain[0].copy(), [[0] for _ in range(gain.shape[1])]  # by last level
    answers = [cuts[-1]]
    for _ in range(groups - 1):
        joined = best[:-1, None] + gain[1:, 1:]  # (last level before the cut, last level) -> gain
        where = np.argmax(joined, axis=0)
        better = np.append(False, joined[where, np.arange(len(where))] > best[1:])
        best = np.append(best[:1], np.maximum(best[1:], joined[where, np.arange(len(where))]))
        cuts = [
            [*cuts[where[last - 1]], int(where[last - 1]) + 1] if better[last] else cuts[last]
            for last in range(len(cuts))
        ]
        answers.append(cuts[-1])
    return answers


def _thinned(levels: Integers) -> Integers:
    """Indices of the levels at which a group may start."""
    if len(levels) <= FEW:
        return np.arange(len(levels))
    ratio = max(GRID, float(levels[-1] / levels[0]) ** (1 / FEW))
    cell = np.floor(np.log(levels / levels[0]) / np.log(ratio))
    return np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))


def _check(levels: Integers, heads: Integers, groups: int) -> None:
    if groups < 1 or len(levels) == 0:
        raise InvalidDeclaration(f"There must be at least one group and one level, got {groups!r} groups.")
    if len(levels) != len(heads) or levels[0] <= 0 or bool(np.any(np.diff(levels) <= 0)):
        raise InvalidDeclaration("Levels must be above 0 and ascend, with one head-count each.")

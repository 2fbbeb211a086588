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


def privacy_cuts(levels: Integers, heads: Integers, groups: int, smallest: int = 1) -> list[int]:
    """Return the cuts of least wasted privacy, W = Σ (ε_u − ε of the group)², into at most `groups` groups.

    W never grows with more groups, so without a minimum size there are as many groups as asked for, or as levels.
    """
    found = privacy_cuts_each(levels, heads, groups, smallest)
    return min(found, key=lambda cuts: (_wasted(levels, heads, cuts), -len(cuts)))


def privacy_cuts_each(levels: Integers, heads: Integers, groups: int, smallest: int = 1) -> list[list[int]]:
    """Return, for every number of groups up to `groups` that is possible, the cuts of least waste. Exact.

    W is Monge: for a ≤ b ≤ c ≤ d, W(a,d) − W(a,c) = Σ_{c<l≤d} (ε_l − ε_a)² ≥ Σ (ε_l − ε_b)² = W(b,d) − W(b,c). So the
    best last cut moves right with the end, and a layer of the recurrence C_q(j) = min_i C_{q−1}(i) + W(i, j) takes
    O(n log n) by divide and conquer, here one whole depth of the recursion at a time: O(k n log n) for k layers. A
    minimum size T makes W infinite for groups that are too small. W stays Monge, because (b,c) is the smallest of the
    four groups, so the right side is infinite whenever the left one is.
    """
    _check(levels, heads, groups, smallest)
    waste = _Waste(levels, heads)
    everything = np.arange(len(levels) + 1)
    layers = [waste.within(np.zeros(len(levels) + 1, dtype=np.int64), everything, smallest)]  # C_1(j)
    chosen: list[Integers] = []
    most = max(1, min(groups, len(levels), int(heads.sum()) // smallest))
    for _ in range(most - 2):
        best, argument = _monotone_layer(layers[-1], waste, smallest)
        layers.append(best)
        chosen.append(argument)
    found = [[0]]
    for count in range(2, most + 1):
        cuts = _walk_back(layers[count - 2], chosen[: count - 2], waste, smallest)
        if cuts is not None:
            found.append(cuts)
    return found


def _wasted(levels: Integers, heads: Integers, cuts: list[int]) -> int:
    """Return W of the cuts, as a whole number of any size."""
    ends = [*cuts[1:], len(levels)]
    return sum(
        int(head) * (int(level) - int(levels[first])) ** 2
        for first, last in zip(cuts, ends, strict=True)
        for level, head in zip(levels[first:last], heads[first:last], strict=True)
    )


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

    def within(self, i: Any, j: Any, smallest: int) -> Any:
        """Return W(i, j), infinite for fewer than `smallest` people."""
        return np.where(self.people[j] - self.people[i] >= smallest, self.of(i, j), self.infinite)


def _monotone_layer(before: Any, waste: _Waste, smallest: int) -> tuple[Any, Integers]:
    """Return C_q and its best last cuts from C_{q−1}, for all middles of one recursion depth together.

    Ends for which no cut is possible come first; their leftmost cut is returned, which restricts nobody to the right.
    """
    count = len(before) - 1  # number of levels
    best = np.full(count + 1, waste.infinite, dtype=before.dtype)
    argument = np.zeros(count + 1, dtype=np.int64)
    start = before + waste.start
    first, last = np.array([1]), np.array([count])  # ends j still to do, as intervals
    low, high = np.array([0]), np.array([count - 1])  # where their best cuts lie
    while first.size:
        middle = (first + last) // 2
        right = np.minimum(high, middle - 1)
        value, where = _row_minima(start, waste, middle, low, right, smallest)
        best[middle] = np.minimum(value + waste.squared[middle], waste.infinite)
        argument[middle] = where
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


def _row_minima(
    start: Any, waste: _Waste, ends: Integers, low: Integers, high: Integers, smallest: int
) -> tuple[Any, Integers]:
    """Return for each end j, the least start_i + slope_i·owned_j + square_i·people_j over i = low..high, and where."""
    widths = high - low + 1
    offsets = np.append(0, np.cumsum(widths))
    cut = np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], widths)
    value = np.repeat(waste.owned[ends], widths)
    value *= waste.slope[cut]
    people = np.repeat(waste.people[ends], widths)
    people *= waste.square[cut]
    value += people
    value += start[cut]
    if smallest > 1:
        size = np.repeat(waste.people[ends], widths) - waste.people[cut]
        value = np.where(size >= smallest, value, waste.infinite)
    least = np.minimum.reduceat(value, offsets[:-1])
    hits = np.flatnonzero(value == np.repeat(least, widths))
    row = np.searchsorted(offsets, hits, side="right") - 1
    firsts = np.append(True, row[1:] != row[:-1])  # the leftmost of equals
    return least, cut[hits[firsts]]


def _walk_back(layer: Any, chosen: list[Integers], waste: _Waste, smallest: int) -> list[int] | None:
    """Return the cuts over all levels whose last group follows C_q = `layer`; None if no group may be that small."""
    count = len(layer) - 1
    ends = np.arange(1, count)
    total = np.minimum(layer[ends] + waste.within(ends, count, smallest), waste.infinite)
    where = int(np.argmin(total))
    if not total[where] < waste.infinite:
        return None
    cuts = [int(ends[where])]
    for argument in reversed(chosen):
        cuts.append(int(argument[cuts[-1]]))
    return [0, *reversed(cuts)]


def precision_cuts(
    levels: Integers, heads: Integers, groups: int, variance: float, smallest: int = 1
) -> list[list[int]]:
    """Return, for every number of groups up to `groups`, the cuts of greatest summed precision, at most that many.

    The precision of a group's mean is 1/v_i, v_i = S²/n_i + 2/(n_i ε_i)²: S² (`variance`) of the values, noise for one
    ε. It is not Monge in either direction, so this is the full dynamic program, O(k levels²) for k numbers of groups.
    It ends at the first number that no prefix of the levels gains from: all later ones gain nothing either. More than
    1,000 levels are first rounded down to a geometric grid, which keeps at least 1/1.01² of the precision.
    """
    _check(levels, heads, groups, smallest)
    kept = _thinned(levels)
    people = np.add.reduceat(heads, kept).astype(np.float64)
    ends = np.append(0, np.cumsum(people))
    size = ends[None, 1:] - ends[:-1, None]  # (first, last): people of the group
    lowest = levels[kept][:, None] / MICRO
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(size >= max(smallest, 1), 1 / (variance / size + 2 / (size * lowest) ** 2), -np.inf)
    return [[int(kept[cut]) for cut in cuts] for cuts in _most(gain, min(groups, len(kept)))]


def utility_cuts(
    levels: Integers, heads: Integers, groups: int, utility: Callable[[float, float], float], smallest: int = 1
) -> list[int]:
    """Return the cuts of greatest summed utility(people, ε) of at most `groups` groups of at least `smallest` people.

    The same dynamic program for any utility, the larger the better.
    """
    _check(levels, heads, groups, smallest)
    kept = _thinned(levels)
    ends = np.append(0, np.cumsum(np.add.reduceat(heads, kept)))
    gain = np.full((len(kept), len(kept)), -np.inf)
    for first, last in zip(*np.triu_indices(len(kept)), strict=True):
        if (people := int(ends[last + 1] - ends[first])) >= smallest:
            gain[first, last] = utility(people, levels[kept[first]] / MICRO)
    return [int(kept[cut]) for cut in _most(gain, min(groups, len(kept)))[-1]]


def _most(gain: Floats, groups: int) -> list[list[int]]:
    """Return, for q = 1..groups, the cuts that maximise the summed gain with at most q groups."""
    best, last = gain[0].copy(), gain.shape[1] - 1  # by last level
    came_from: list[Integers] = []  # for each layer: the last level before the cut; −1: one group less is as good
    answers = [[0]]
    for _ in range(groups - 1):
        joined = best[:-1, None] + gain[1:, 1:]  # (last level before the cut, last level) -> gain
        where = np.argmax(joined, axis=0)
        value = joined[where, np.arange(len(where))]
        better = value > best[1:]
        if not better.any():  # a fixed point: more groups gain nothing, for any prefix of the levels
            break
        came_from.append(np.append(-1, np.where(better, where, -1)))
        best = np.append(best[:1], np.maximum(best[1:], value))
        answers.append(_path(came_from, last))
    return answers


def _path(came_from: list[Integers], last: int) -> list[int]:
    """Return the starts of the groups that lead to the last level, from the latest layer backwards."""
    starts = []
    for layer in reversed(came_from):
        if layer[last] >= 0:
            last = int(layer[last])
            starts.append(last + 1)
    return [0, *reversed(starts)]


def _thinned(levels: Integers) -> Integers:
    """Indices of the levels at which a group may start."""
    if len(levels) <= FEW:
        return np.arange(len(levels))
    ratio = max(GRID, float(levels[-1] / levels[0]) ** (1 / FEW))
    cell = np.floor(np.log(levels / levels[0]) / np.log(ratio))
    return np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))


def _check(levels: Integers, heads: Integers, groups: int, smallest: int = 1) -> None:
    if groups < 1 or len(levels) == 0:
        raise InvalidDeclaration(f"There must be at least one group and one level, got {groups!r} groups.")
    if len(levels) != len(heads) or levels[0] <= 0 or bool(np.any(np.diff(levels) <= 0)):
        raise InvalidDeclaration("Levels must be above 0 and ascend, with one head-count each.")
    if smallest < 1 or heads.sum() < smallest:
        raise InvalidDeclaration(f"A group of at least {smallest:,} people needs as many to choose from.")

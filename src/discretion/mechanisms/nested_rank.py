"""Nested rank: several quantiles of one column, the middle one first, then those on either side of it. Our own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, exp, hypot, log, log2, sqrt
from typing import NamedTuple

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.joint import Answers, Derived, Kin
from discretion.mechanisms.level import best_level, refuse_nobody
from discretion.mechanisms.rank import histograms
from discretion.mechanisms.scheme import capped
from discretion.mechanisms.stray import LARGEST_SCORE, Stray, candidates, rank_error
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import MOST_CELLS, Aggregate, Statistics

MOST_PLACES = 2**16  # candidates of one choice: grid values times the pieces that each is cut into
GROWTHS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5)  # of what a level spends, from one level to the next
TINY = 1e-300  # instead of an error of 0
CLEARLY = 0.9  # of the errors alone: the interval of a list is wider for bad data, so a list must be clearly better


class Node(NamedTuple):
    """One quantile, chosen between the answers of two earlier ones."""

    place: int  # in the list of quantiles
    below: int | None  # the place of the answer it must not go below; None: the lower bound
    above: int | None
    part: Fraction  # the share of the weight between these two that should lie below it
    level: int
    is_last: bool  # no other quantile is chosen beside it

    @property
    def reach(self) -> Fraction:
        """Return how far a row of weight 1 that comes or goes moves a score: at most the larger of both parts."""
        return max(self.part, 1 - self.part)


@dataclass(frozen=True, kw_only=True)
class NestedRank:
    """Choose several quantiles of one column, level by level, each between its neighbours of the levels before.

    Definition  Everybody has the influence u = min(ε, κ). Every grid value is cut into `pieces` equal pieces, and a
                row's influence is spread evenly over those of its value, so that there are no ties. A node's candidates
                are the pieces between the answers of its neighbours, or whole values where no other quantile is chosen
                beside it; the piece of a neighbour belongs to both of its sides, half of its weight to each. With W the
                weight between the two and T = part·W, a score is −dist(T, [weight below a candidate, weight up to it]);
                P(candidate) ∝ exp(score/scale).
    Guarantee   u, once for all of them: the levels' shares of u add up to u, and a level's nodes together cost its
                share. A row has the parts f_i of its weight in the nodes i of a level, Σf_i ≤ 1. If it comes or goes, T
                moves by part·f_i and the weight below a value by something from 0 to f_i: scores move by at most
                reach·f_i, up and down. If it changes from f to g, then min(f_i, g_i) of it moves within the node, which
                leaves T alone and moves scores by at most that, and |f_i − g_i| of it comes or goes. Scales are twice
                the `spread` over the level's share. Presence: spread = reach, and Σ reach·f_i/reach ≤ 1. Value: spread
                = max(1, 2·reach), and Σ (min(f_i, g_i) + reach·|f_i − g_i|)/spread ≤ Σ (f_i + g_i)/2 ≤ 1. In the only
                node of the first level of one group a row that stays has f = g = 1, and one that does not costs reach
                ≤ 1, so there spread = 1. `rows_per_person` rows add up. A later level's nodes follow from released
                answers, so losses add up over levels.
    Neighbours  presence or value.
    Tested by   tests/mechanisms/test_nested_rank.py
    """

    aggregate: Aggregate  # the column's grid; its rank says nothing
    specification: Specification
    influence: tuple[int, ...]  # by cohort, in micro-ε: what each member pays
    nodes: tuple[Node, ...]  # neighbours first
    shares: tuple[int, ...]  # by level: its part of what is spent, over the sum of all
    pieces: int
    estimates: tuple[Derived, ...]

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.influence, protects=self.aggregate.protects)

    def scale(self, node: Node) -> Fraction:
        """Return what a choice divides scores by; scores are whole multiples of 1 / (2·pieces·denominator)."""
        return scale(node, self.shares, self.aggregate) * 2 * self.pieces * node.part.denominator * MICRO

    def step(self, node: Node) -> int:
        """Return how many pieces a candidate has: those of a value are told apart only where others need its place."""
        return self.pieces if node.is_last else 1

    def scores(self, weights: Integers, node: Node, below: int | None, above: int | None) -> tuple[Integers, int]:
        """Return the scores of the candidates between two answers (pieces), and the first piece. Private."""
        size = self.pieces * len(weights)
        upto = np.append(0, np.cumsum(weights))
        edges = (2 * self.pieces * upto[:-1, None] + 2 * weights[:, None] * np.arange(self.pieces)).ravel()
        edges = np.append(edges, 2 * self.pieces * upto[-1])  # the weight below each piece, and below the end
        low = 0 if below is None else (edges[below] + edges[below + 1]) // 2
        high = edges[-1] if above is None else (edges[above] + edges[above + 1]) // 2
        step = self.step(node)
        first, last = 0 if below is None else below // step, (size - 1 if above is None else above) // step
        between = np.clip(edges[::step][first : last + 2], low, high) - low
        part, whole = node.part, high - low
        target = part.numerator * whole
        distance = np.minimum(target - part.denominator * between[:-1], part.denominator * between[1:] - target)
        return np.minimum(distance, 0), first * step

    def weights(self, statistics: Statistics) -> Integers:
        """(group, grid value) -> influence, in micro-ε. Private."""
        found: Integers = np.einsum("c,gcv->gv", np.array(self.influence), histograms(statistics))
        return found

    def answer(self, statistics: Statistics, rows: object, rng: Rng) -> Answers:
        """Return the answers and errors of all quantiles, in their order."""
        picks = np.array([self._descend(weights, rng) for weights in self.weights(statistics)])  # (group, quantile)
        steps = self.aggregate.lower + picks // self.pieces
        values = [np.array([float(self.aggregate.value(int(step))) for step in column]) for column in steps.T]
        return [(found, (one.error,) * len(found)) for found, one in zip(values, self.estimates, strict=True)]

    def _descend(self, weights: Integers, rng: Rng) -> list[int]:
        picked: dict[int | None, int | None] = {None: None}
        for node in self.nodes:
            scores, first = self.scores(weights, node, picked[node.below], picked[node.above])
            picked[node.place] = first + noise.choose(scores, self.scale(node), rng) * self.step(node)
        return [picked[place] or 0 for place in range(len(self.nodes))]


def tree(ranks: Sequence[Fraction]) -> tuple[Node, ...]:
    """Return the nodes of as few levels as possible; of several that could be first, the one that halves best."""
    order = sorted(range(len(ranks)), key=lambda place: ranks[place])
    nodes: list[Node] = []

    def grow(first: int, last: int, below: int | None, above: int | None, level: int) -> None:
        if first >= last:
            return
        start = Fraction(0) if below is None else ranks[below]
        width = (Fraction(1) if above is None else ranks[above]) - start
        most = 2 ** (ceil(log2(last - first + 1)) - 1) - 1  # nodes that fit below one of these levels
        middle = [i for i in range(first, last) if i - first <= most and last - 1 - i <= most]
        best = min(middle, key=lambda i: abs((ranks[order[i]] - start) / width - Fraction(1, 2)))
        place = order[best]
        nodes.append(Node(place, below, above, (ranks[place] - start) / width, level, last - first == 1))
        grow(first, best, below, place, level + 1)
        grow(best + 1, last, place, above, level + 1)

    grow(0, len(order), None, None, 0)
    return tuple(sorted(nodes, key=lambda node: node.level))


def scale(node: Node, shares: Sequence[int], aggregate: Aggregate) -> Fraction:
    """Return the scale of a node's choice for an influence of 1: twice its spread, over its level's share."""
    reach = node.reach
    if aggregate.protects == "value":
        reach = Fraction(1) if aggregate.groups == 1 and node.level == 0 else max(Fraction(1), 2 * reach)
    return 2 * aggregate.rows_per_person * reach * Fraction(sum(shares), shares[node.level])


def propose(
    kin: Sequence[Kin], grid: Aggregate, specification: Specification, belief: Belief, alone: Sequence[Error]
) -> NestedRank:
    """Tune the cap, the levels' shares and the pieces, compared with the errors that the quantiles have alone."""
    ranks = [one.aggregate.rank or Fraction(0) for one in kin]
    if any(one.aggregate.kind != "quantile" for one in kin) or not all(0 < rank < 1 for rank in ranks):
        raise Unsuitable("It chooses several quantiles; a minimum, a maximum and other aggregates are asked alone.")
    if len(set(ranks)) != len(ranks) or len(ranks) < 2:
        raise Unsuitable("It chooses at least two different quantiles.")
    refuse_nobody(specification)
    belief = replace(belief, assume=None) if belief.assume == "gradual" else belief  # only pooled releases use it
    nodes = tree(ranks)
    best = best_level("best", specification, partial(_tried, kin, grid, specification, belief, alone, nodes))
    if best.error.noise > CLEARLY:
        raise Unsuitable("It would not be clearly better than every quantile by itself.")
    tried = [
        _made(kin, grid, specification, belief, nodes, best, pieces)
        for pieces in _pieces(grid, specification, best.influence, nodes)
    ]
    return min(tried, key=lambda one: max(each.error.half_width() for each in one.estimates))


class _Capped(NamedTuple):
    influence: Integers
    shares: tuple[int, ...]
    error: Error  # noise: see `_compared`


def _tried(
    kin: Sequence[Kin],
    grid: Aggregate,
    specification: Specification,
    belief: Belief,
    alone: Sequence[Error],
    nodes: tuple[Node, ...],
    kappa: int,
) -> _Capped:
    """Return the best shares of the levels for a cap."""
    influence = capped(specification, kappa)
    weight = _weight(grid, specification, influence)
    levels = 1 + max(node.level for node in nodes)
    still = [rank_error(one.aggregate, specification, belief, influence, Stray(0.0, 0.0)) for one in kin]
    found = []
    for growth in GROWTHS:
        shares = tuple(round(100 * growth**level) for level in range(levels))
        scales = {node.place: float(scale(node, shares, grid)) for node in nodes}
        noises = [sqrt(2) * float(np.linalg.norm(each)) / weight for each in _inherited(nodes, scales)]
        errors = [hypot(error.total, noised) for error, noised in zip(still, noises, strict=True)]
        found.append((_compared(errors, [max(other.ranked, TINY) for other in alone]), shares))
    least, shares = min(found)
    return _Capped(influence, shares, Error(bias=0.0, noise=least))


def _compared(errors: Sequence[float], alone: Sequence[float]) -> float:
    """Return the worst ratio to the error of a quantile alone; once all are clearly better, the ratio of all errors."""
    worst = max(mine / other for mine, other in zip(errors, alone, strict=True))
    return worst if worst > CLEARLY else CLEARLY * hypot(*errors) / hypot(*alone)


def _weight(grid: Aggregate, specification: Specification, influence: Integers) -> float:
    """Return the influence in one group, if people are spread evenly over the groups."""
    return float(specification.heads @ influence) / MICRO * grid.rows_per_person / grid.groups


def _pieces(grid: Aggregate, specification: Specification, influence: Integers, nodes: Sequence[Node]) -> list[int]:
    """Return the numbers of pieces that whole 64-bit numbers and the time of a choice allow: powers of 2."""
    denominator = max(node.part.denominator for node in nodes)
    total = int(specification.heads.astype(object) @ influence.astype(object)) * grid.rows_per_person * denominator
    most = min(MOST_PLACES // candidates(grid), 4 * MOST_CELLS // (grid.groups * candidates(grid)))
    allowed = [2**power for power in range(17) if 2**power <= most and 8 * 2**power * total < LARGEST_SCORE]
    if not allowed:
        raise Unsuitable("There are too many candidate answers, or the scores would not fit 64 bits.")
    return allowed


def _inherited(nodes: Sequence[Node], scales: dict[int, float]) -> list[Floats]:
    """Return for every quantile how much each choice's error counts in it, times that choice's scale.

    Between two answers that are off by a and b, the target is off by (1 − part)·a + part·b.
    """
    found: dict[int | None, Floats] = {None: np.zeros(len(nodes))}
    for node in nodes:
        own = np.zeros(len(nodes))
        own[node.place] = scales[node.place]
        part = float(node.part)
        found[node.place] = own + (1 - part) * found[node.below] + part * found[node.above]
    return [found[place] for place in range(len(nodes))]


def _made(
    kin: Sequence[Kin],
    grid: Aggregate,
    specification: Specification,
    belief: Belief,
    nodes: tuple[Node, ...],
    tried: _Capped,
    pieces: int,
) -> NestedRank:
    influence = tried.influence
    scales = {node.place: float(scale(node, tried.shares, grid)) for node in nodes}
    strays = _strays(grid, nodes, scales, _weight(grid, specification, influence), pieces)
    estimates = tuple(
        Derived(kin=one, error=rank_error(one.aggregate, specification, belief, influence, stray))
        for one, stray in zip(kin, strays, strict=True)
    )
    return NestedRank(
        aggregate=grid,
        specification=specification,
        influence=tuple(influence.tolist()),
        nodes=nodes,
        shares=tried.shares,
        pieces=pieces,
        estimates=estimates,
    )


def _strays(
    grid: Aggregate, nodes: Sequence[Node], scales: dict[int, float], weight: float, pieces: int
) -> list[Stray]:
    """Return how far each answer may stray, as a share of the weight, for any data.

    A choice of scale s is off by d with a probability of at most N·e^(−d/s)/S: N candidates, S the sum of e^(−d/s) over
    those of the value that holds the target. A whole value has S = 1. Pieces lie at most w = weight/pieces apart, so
    theirs is at least (1 − e^(−weight/s))/(1 − e^(−w/s)). An answer that others are chosen beside is the middle of a
    piece, which is off by w/2 more. Sums of exponential noises have a 95% quantile below that of one with the sum of
    the scales.
    """
    pulls = {}
    for node in nodes:
        size = scales[node.place]
        apart = 1.0 if node.is_last else pieces * (1 - exp(-weight / size / pieces)) / (1 - exp(-weight / size))
        pulls[node.place] = size * log(candidates(grid) * apart)
    found = []
    for place, each in enumerate(_inherited(nodes, scales)):
        times = {node.place: each[node.place] / scales[node.place] for node in nodes}
        pull = sum(times[other] * pulls[other] for other in scales) / weight
        pull += sum(times[other] for other in scales if other != place) / (2 * pieces)
        together, apart = float(each.sum()), float(np.linalg.norm(each))
        found.append(Stray(pull + log(20) * (together - apart) / weight, sqrt(2) * apart / weight))
    return found

"""What every mechanism must keep: on small universes, nobody's odds move by more than they are charged.

The check is exact. A mechanism exposes the law of what it releases, before any arithmetic on it: either
`probabilities(statistics)`, one vector (or one a group) over finitely many answers, or `centres(statistics)` and
`scales`, whole numbers to which discrete Laplace noise is added. Coins (`measure.inclusion`) are enumerated here.

Between two neighbouring breakpoints a mixture of shifted Laplace laws is A·e^(z/s) + B·e^(−z/s), so the ratio of two
such mixtures is a Möbius function of e^(2z/s), hence monotone; beyond the outermost breakpoints it is constant. Its
extremes are therefore at breakpoints, coordinate by coordinate, and looking there is looking everywhere.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import inf
from typing import Any

import numpy as np
from scipy.special import logsumexp

from discretion.noise import ALWAYS
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

Row = tuple[int, int]  # (group, grid step)
State = tuple[Row, ...]  # one person's rows; () is absence, or having no row with a value
Dataset = tuple[State, ...]  # one state a person

ROUNDING = 1e-9  # of the floating-point arithmetic in here


@dataclass(frozen=True)
class Universe:
    """A few people and everything that each of them may be."""

    epsilons: tuple[float, ...]
    states: tuple[State, ...]

    @cached_property
    def specification(self) -> Specification:
        return Specification.assign(self.epsilons)[0]

    @cached_property
    def cohort(self) -> np.ndarray:
        return Specification.assign(self.epsilons)[1]

    def datasets(self) -> Iterable[Dataset]:
        return product(self.states, repeat=len(self.epsilons))


@dataclass(frozen=True)
class Atoms:
    """A law over finitely many answers."""

    probabilities: np.ndarray


@dataclass(frozen=True)
class Shifts:
    """A mixture of discrete Laplace laws (products of them, in many dimensions) with different centres."""

    centres: np.ndarray  # (part of the mixture, dimension)
    weights: np.ndarray  # (part of the mixture)
    scales: tuple[float, ...]  # by dimension


Law = Atoms | Shifts


def loss(one: Law, other: Law) -> float:
    """The largest |log ratio| of the two laws' probabilities, over all answers."""
    if isinstance(one, Atoms) and isinstance(other, Atoms):
        p, q = one.probabilities, other.probabilities
        if p.shape != q.shape or not np.array_equal(p > 0, q > 0):
            return inf
        return float(np.max(np.abs(np.log(p[p > 0]) - np.log(q[p > 0])), initial=0.0))
    if isinstance(one, Shifts) and isinstance(other, Shifts):
        if one.scales != other.scales:  # the ratio is unbounded in the tails
            return inf
        if len(one.weights) == len(other.weights) == 1:  # one shift, attained beyond both centres
            return float((np.abs(one.centres - other.centres) / np.maximum(one.scales, 1e-200)).sum())
        both = np.vstack([one.centres, other.centres])
        points = np.array(list(product(*(np.unique(both[:, d]) for d in range(both.shape[1])))))
        p, q = _log_density(one, points), _log_density(other, points)
        possible = (p > -inf) | (q > -inf)
        return float(np.max(np.abs(p[possible] - q[possible])))
    return inf


def _log_density(law: Shifts, points: np.ndarray) -> np.ndarray:
    used = law.weights > 0
    distance = np.abs(points[:, None, :] - law.centres[None, used, :]) / np.maximum(law.scales, 1e-200)
    return np.asarray(logsumexp(np.log(law.weights[used]) - distance.sum(axis=2), axis=1))


def statistics_of(aggregate: Aggregate, universe: Universe, dataset: Dataset, kept: Iterable[int]) -> Statistics:
    """What an engine would compute from the rows of the people kept."""
    shape = (aggregate.groups, len(universe.specification.epsilons))
    values = max(1, aggregate.upper - aggregate.lower + 1)
    counts, totals, squares = (np.zeros(shape, dtype=object) for _ in range(3))
    histogram = np.zeros((*shape, values), dtype=np.int64)
    for person in kept:
        cohort = universe.cohort[person]
        for group, step in dataset[person]:
            counts[group, cohort] += 1
            totals[group, cohort] += step
            squares[group, cohort] += step**2
            histogram[group, cohort, step - aggregate.lower] += 1
    return Statistics(counts=counts.astype(np.int64), totals=totals, squares=squares, histogram=histogram)


def law_of(mechanism: Any, aggregate: Aggregate, universe: Universe, dataset: Dataset) -> Law:
    """The exact law of what the mechanism releases about a dataset, coins included."""
    everybody = range(len(dataset))
    inclusion = mechanism.measure.inclusion
    if inclusion is None:
        return _plain_law(mechanism, [(1.0, statistics_of(aggregate, universe, dataset, everybody))])
    rates = [min(inclusion[universe.cohort[person]], ALWAYS) / ALWAYS for person in everybody]
    mixture = []
    for size in range(len(dataset) + 1):
        for kept in combinations(everybody, size):
            weight = np.prod([rates[p] if p in kept else 1 - rates[p] for p in everybody])
            if weight > 0:
                mixture.append((float(weight), statistics_of(aggregate, universe, dataset, kept)))
    return _plain_law(mechanism, mixture)


def _plain_law(mechanism: Any, mixture: list[tuple[float, Statistics]]) -> Law:
    if hasattr(mechanism, "probabilities"):
        return Atoms(sum(weight * _joint(mechanism.probabilities(statistics)) for weight, statistics in mixture))
    centres = [
        np.concatenate([np.ravel(part).astype(np.float64) for part in mechanism.centres(statistics)])
        for _, statistics in mixture
    ]
    lengths = [np.size(part) for part in mechanism.centres(mixture[0][1])]
    scales = [float(s) for s, length in zip(mechanism.scales, lengths, strict=True) for _ in range(length)]
    return Shifts(np.array(centres), np.array([weight for weight, _ in mixture]), tuple(scales))


def _joint(probabilities: Any) -> np.ndarray:
    """Independent answers for several groups, as one law over their combinations."""
    vectors = np.atleast_2d(np.asarray(probabilities, dtype=np.float64))
    joint = np.ones(1)
    for vector in vectors:
        joint = np.multiply.outer(joint, vector).ravel()
    return joint


def worst_losses(laws: Callable[[Dataset], Law], universe: Universe, protects: str) -> list[float]:
    """For each person, the largest loss over all pairs of datasets that differ in that person.

    Presence: the person's rows appear or disappear. Value: they change into any other state.
    """
    known = {dataset: laws(dataset) for dataset in universe.datasets()}
    worst = [0.0] * len(universe.epsilons)
    for dataset in known:
        for person, state in enumerate(dataset):
            for other in universe.states:
                if other <= state or (protects == "presence" and other != () and state != ()):
                    continue  # each unordered pair once
                neighbour = (*dataset[:person], other, *dataset[person + 1 :])
                worst[person] = max(worst[person], loss(known[dataset], known[neighbour]))
    return worst


def losses_of(mechanism: Any, universe: Universe) -> list[float]:
    """`worst_losses` of a mechanism that was tuned from public information."""
    aggregate = mechanism.measure.aggregate
    return worst_losses(lambda dataset: law_of(mechanism, aggregate, universe, dataset), universe, aggregate.protects)


def charges_of(mechanism: Any, universe: Universe) -> list[float]:
    """What each person is charged, in ε."""
    return [mechanism.guarantee.losses[cohort].micro_epsilon / MICRO for cohort in universe.cohort]


def check_nobody_loses_more_than_the_charge(mechanism: Any, universe: Universe) -> list[float]:
    """Every person's worst loss is at most their charge, and their charge at most what they chose."""
    charges, losses = charges_of(mechanism, universe), losses_of(mechanism, universe)
    assert mechanism.guarantee.honours(universe.specification)
    for worst, charge in zip(losses, charges, strict=True):
        assert worst <= charge + ROUNDING, f"someone charged {charge} loses {worst}"
    return losses


def violations(losses: list[float], epsilons: Iterable[float]) -> list[int]:
    """Who loses more than allowed."""
    return [person for person, (worst, e) in enumerate(zip(losses, epsilons, strict=True)) if worst > e + ROUNDING]

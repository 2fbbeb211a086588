"""Partition: groups of similar budgets are answered apart, then combined. The partitioning paper's mechanism."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import believed, laplace_variance, total_error
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.cuts import precision_cuts, privacy_cuts
from discretion.mechanisms.level import refuse_nobody
from discretion.mechanisms.linear import is_affine, parts, refuse_scale, tally
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

Cuts = Literal["precision", "privacy"]
Ensemble = Literal["homogeneous", "stratified"]
MOST_GROUPS = 12  # tried when their number is not given: more never helped a total


class Group(NamedTuple):
    """Some cohorts answered together, once."""

    cohorts: tuple[int, ...]
    micro_epsilon: int


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Cut the people into groups of similar ε, answer each group with its smallest, combine.

    Definition  [LXJJ17] privacy-aware (`cuts="privacy"`: least Σ (ε_u − ε of the group)²) or utility-based
                (`cuts="precision"`: greatest summed precision; the paper maximises an error instead) partitions into at
                most `groups` groups; without it, the number of least predicted error. `rounds` repeats it on what each
                person has left. Group totals are added up (`ensemble="stratified"`) or each speaks for everybody,
                weighted by precision (`"homogeneous"`); rounds are combined by generalised least squares.
    Guarantee   The sum over rounds of the smallest ε in u's group: groups of a round are disjoint.
    Neighbours  presence or value. Cuts, sizes and minima come from the register: absent people stay in their group.
    Tested by   tests/mechanisms/test_partition.py
    """

    aggregate: Aggregate
    specification: Specification
    groups: tuple[Group, ...]  # of all rounds
    coefficients: tuple[float, ...]  # of the groups' noisy totals in the answer
    error: Error

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(
            self.specification, charges(self.groups, self.specification), protects=self.aggregate.protects
        )

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate)

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The noise scale of each group's total, in steps."""
        (part,) = parts(self.aggregate)
        return tuple(part.scale * MICRO / group.micro_epsilon for group in self.groups)

    def centres(self, statistics: Statistics) -> tuple[Any, ...]:
        """The groups' totals before the noise, one array of whole numbers each. Private."""
        (part,) = parts(self.aggregate)
        totals = tally(part.quantity, statistics, self.aggregate)
        return tuple(totals[:, list(group.cohorts)].sum(axis=1) for group in self.groups)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        aggregate, people = self.aggregate, self.specification.size
        noisy = [  # whole numbers of any size: a rounded centre would move by more than its sensitivity
            centre + noise.discrete_laplace(scale, aggregate.groups, rng).astype(object)
            for centre, scale in zip(self.centres(statistics), self.scales, strict=True)
        ]
        steps = np.array(self.coefficients) @ np.array(noisy, dtype=np.float64)
        if aggregate.kind == "mean":
            return np.asarray(float(aggregate.origin) + float(aggregate.step) * steps / people)
        origin = float(aggregate.origin) * people if aggregate.size_is_public else 0.0
        return np.asarray(origin + float(aggregate.step) * steps)


def propose(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    *,
    groups: int | None = None,
    cuts: Cuts = "precision",
    ensemble: Ensemble | None = None,
    rounds: int = 1,
) -> Partition:
    if not is_affine(aggregate):
        raise Unsuitable(f"It adds up totals of groups, which is not enough for this {aggregate.kind}.")
    if cuts not in ("precision", "privacy") or ensemble not in (None, "homogeneous", "stratified"):
        raise InvalidDeclaration('cuts must be "precision" or "privacy", ensemble "homogeneous" or "stratified".')
    if rounds < 1 or (groups is not None and not 1 <= groups <= specification.size):
        raise InvalidDeclaration("rounds must be at least 1, and groups from 1 to the number of people.")
    refuse_nobody(specification)
    refuse_scale(aggregate, specification.strictest)
    (part,) = parts(aggregate)
    variance = believed(aggregate, belief).variance / max(float(part.scale) ** 2, 1e-12)
    ensembles: list[Ensemble] = ["homogeneous", "stratified"] if ensemble is None else [ensemble]
    tried = [
        _combined(aggregate, specification, belief, found, how)
        for found in _partitions(specification, groups, cuts, rounds, variance)
        for how in ensembles
    ]
    return min(tried, key=lambda mechanism: mechanism.error.total)


def charges(groups: Sequence[Group], specification: Specification) -> Integers:
    """What each cohort has paid, in micro-ε."""
    paid = np.zeros(len(specification.epsilons), dtype=np.int64)
    for group in groups:
        paid[list(group.cohorts)] += group.micro_epsilon
    return paid


def _partitions(
    specification: Specification, groups: int | None, cuts: Cuts, rounds: int, variance: float
) -> list[tuple[Group, ...]]:
    """The partition for the given number of groups, or one for each number that may be best."""
    most = min(groups or MOST_GROUPS, len(specification.epsilons))
    if rounds == 1 and groups is None and cuts == "precision":  # one dynamic program serves every number
        return list(dict.fromkeys(_cut(specification, specification.micro, most, cuts, variance)))
    found = []
    for count in [most] if groups is not None else range(1, most + 1):
        spent: tuple[Group, ...] = ()
        for _ in range(rounds):
            left = specification.micro - charges(spent, specification)
            if left.max() <= 0:
                break
            spent += _cut(specification, left, count, cuts, variance)[-1]
        found.append(spent)
    return found


def _cut(
    specification: Specification, left: Integers, count: int, cuts: Cuts, variance: float
) -> list[tuple[Group, ...]]:
    """One round for people who have `left`: the groups for 1..count (precision) or for count alone (privacy)."""
    levels, place = np.unique(left, return_inverse=True)
    heads = np.bincount(place, weights=specification.heads).astype(np.int64)
    skip = int(levels[0] == 0)  # people with nothing left are in no group
    if cuts == "precision":
        found = precision_cuts(levels[skip:], heads[skip:], count, variance)
    else:
        found = [privacy_cuts(levels[skip:], heads[skip:], count)]
    partitions = []
    for starts in found:
        edges = [start + skip for start in starts] + [len(levels)]
        partitions.append(
            tuple(
                Group(tuple(np.flatnonzero((place >= first) & (place < last)).tolist()), int(levels[first]))
                for first, last in pairwise(edges)
            )
        )
    return partitions


def _combined(
    aggregate: Aggregate, specification: Specification, belief: Belief, groups: tuple[Group, ...], how: Ensemble
) -> Partition:
    (part,) = parts(aggregate)
    noises = np.array([laplace_variance(float(part.scale) * MICRO / group.micro_epsilon) for group in groups])
    member = np.zeros((len(specification.epsilons), len(groups)))  # (cohort, group)
    for number, group in enumerate(groups):
        member[list(group.cohorts), number] = 1
    if how == "stratified":
        coefficients = _stratified(member, noises)
    else:
        coefficients = _homogeneous(member, noises, specification, believed(aggregate, belief).variance)
    return Partition(
        aggregate=aggregate,
        specification=specification,
        groups=groups,
        coefficients=tuple(coefficients.tolist()),
        error=total_error(
            aggregate, specification, belief, member @ coefficients, variance=float(coefficients**2 @ noises)
        ),
    )


def _stratified(member: Floats, noises: Floats) -> Floats:
    """Least variance among all combinations that count everybody who pays exactly once."""
    codes, first = np.unique(member @ 2.0 ** np.arange(member.shape[1]), return_index=True)
    pattern = member[first[codes > 0]]  # cohorts that are always together are one equation
    precise = pattern.T / np.maximum(noises, 1e-300)[:, None]
    return np.asarray(precise @ np.linalg.pinv(pattern @ precise) @ np.ones(len(pattern)))


def _homogeneous(member: Floats, noises: Floats, specification: Specification, variance: float) -> Floats:
    """Generalised least squares for one common mean: groups are random parts of one population.

    The covariance of two groups' means is S²·overlap/(n_a n_b), less S²/N for all alike, which changes no weight.
    """
    heads = specification.heads.astype(np.float64)
    sizes = np.maximum(heads @ member, 1)
    overlap = member.T @ (member * heads[:, None])
    covariance = variance * overlap / np.outer(sizes, sizes) + np.diag(noises / sizes**2)
    ridge = covariance.max() * 1e-14 or 1.0
    weights = np.linalg.solve(covariance + np.eye(len(sizes)) * ridge, np.ones(len(sizes)))
    return np.asarray(specification.size * weights / weights.sum() / sizes)

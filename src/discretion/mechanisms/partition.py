"""Partition: answer groups of similar budgets separately, then combine. The partitioning paper's mechanism."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import believed, laplace_variance, total_error
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.committee import Committee, committee
from discretion.mechanisms.cuts import precision_cuts, privacy_cuts, privacy_cuts_each
from discretion.mechanisms.level import refuse_nobody
from discretion.mechanisms.linear import is_affine, parts, refuse_scale, tally
from discretion.mechanisms.occurrence import refuse_keys
from discretion.mechanisms.scheme import Group, Ladder, paid, partition, without_dominated
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

Cuts = Literal["precision", "privacy"]
Ensemble = Literal["homogeneous", "stratified"]
MOST_GROUPS = 1_000  # the largest number of privacy-aware groups that is tried


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Cut the people into groups of similar ε, answer each group with its smallest, combine.

    Definition  [LXJJ17] privacy-aware (`cuts="privacy"`: least Σ (ε_u − ε of the group)²) or utility-based
                (`cuts="precision"`: greatest summed precision; the paper maximises an error instead) partitions into at
                most `groups` groups of at least `smallest` people (T). Without `groups`, every number from 1 to n/T is
                tried (privacy-aware: to 1,000) and the one of least predicted error taken. `rounds` repeats it on what
                each person has left. Group totals are added up (`ensemble="stratified"`) or each speaks for everybody,
                weighted by precision (`"homogeneous"`); rounds are combined by generalised least squares.
                `drop=True` leaves out a group if another one of a round has as many people and a larger ε ([LXJJ17]
                4.4); it is not asked, so it pays nothing. Ranks, modes and ratios: see `committee`.
    Guarantee   The sum over rounds of the smallest ε in u's group: groups of a round are disjoint.
    Neighbours  presence or value. Cuts, sizes and minima come from the register: absent people stay in their group.
    Tested by   tests/mechanisms/test_partition.py
    """

    aggregate: Aggregate
    specification: Specification
    groups: tuple[Group, ...]  # of all rounds
    coefficients: tuple[float, ...]  # of the groups' noisy totals in the answer
    error: Error
    error_at: Callable[..., Error] | None = field(default=None, repr=False, compare=False)  # of a released value

    @property
    def guarantee(self) -> Guarantee:
        charged = paid(self.groups, self.specification)
        return Guarantee.of(self.specification, charged, protects=self.aggregate.protects)

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
        if set(self.coefficients) == {1.0}:
            steps = sum(noisy[1:], noisy[0]).astype(np.float64)  # exactly: a count is a whole number
        else:
            steps = np.array(self.coefficients) @ np.array(noisy, dtype=np.float64)
        if aggregate.kind == "mean":
            return np.asarray(float(aggregate.origin) + float(aggregate.step) * steps / people)
        origin = float(aggregate.origin) * people if aggregate.size_is_public else 0.0
        return np.asarray(origin + float(aggregate.step) * steps)

    def answer(self, statistics: Statistics, rng: Rng) -> tuple[Floats, tuple[Error, ...]]:
        """The private answers and their errors, by group."""
        values = self.release(statistics, rng)
        if self.error_at is None:
            return values, (self.error,) * len(values)
        return values, tuple(self.error_at(value=value) for value in values.tolist())


def propose(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    *,
    groups: int | None = None,
    cuts: Cuts = "precision",
    ensemble: Ensemble | None = None,
    rounds: int = 1,
    smallest: int = 1,
    drop: bool = False,
) -> "Partition | Committee":
    _refuse_options(specification, groups, cuts, ensemble, rounds, smallest)
    refuse_keys(aggregate)
    refuse_nobody(specification)
    plan = _Plan(specification=specification, groups=groups, cuts=cuts, rounds=rounds, smallest=smallest, drop=drop)
    if not is_affine(aggregate):
        if ensemble == "stratified" or rounds > 1:
            raise Unsuitable(f"Groups of a {aggregate.kind} cannot be added up, and are answered in one round only.")
        return committee(aggregate, specification, belief, plan.partitions(0.0))
    refuse_scale(aggregate, specification.strictest)
    (part,) = parts(aggregate)
    variance = believed(aggregate, belief).variance / max(float(part.scale) ** 2, 1e-12)
    ensembles: list[Ensemble] = ["homogeneous", "stratified"] if ensemble is None else [ensemble]
    tried = [
        _combined(aggregate, specification, belief, found, how)
        for found in plan.partitions(variance)
        for how in ensembles
    ]
    return min(tried, key=lambda mechanism: mechanism.error.ranked)


def _refuse_options(
    specification: Specification,
    groups: int | None,
    cuts: str,
    ensemble: str | None,
    rounds: int,
    smallest: int,
) -> None:
    if cuts not in ("precision", "privacy") or ensemble not in (None, "homogeneous", "stratified"):
        raise InvalidDeclaration('cuts must be "precision" or "privacy", ensemble "homogeneous" or "stratified".')
    if rounds < 1 or (groups is not None and not 1 <= groups <= specification.size):
        raise InvalidDeclaration("rounds must be at least 1, and groups from 1 to the number of people.")
    if not 1 <= smallest <= max(specification.size, 1):
        raise InvalidDeclaration(f"smallest must be from 1 to the number of people, got {smallest!r}.")


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Says how people are to be cut into groups: from public information only."""

    specification: Specification
    groups: int | None
    cuts: Cuts
    rounds: int
    smallest: int
    drop: bool

    def partitions(self, variance: float) -> list[tuple[Group, ...]]:
        """Return the partition for the given number of groups, or one for each number that may be best."""
        specification, levels = self.specification, len(self.specification.epsilons)
        most = min(self.groups or MOST_GROUPS, levels, max(1, specification.size // self.smallest))
        if self.rounds == 1 and self.groups is None:  # one dynamic program serves every number
            ladder = Ladder.of(specification.micro, specification.heads)
            every = map(ladder.groups, self._cuts(ladder, most, variance, every=True))
            return list(dict.fromkeys(without_dominated(one, specification) if self.drop else one for one in every))
        counts = [most] if self.groups is not None else range(1, most + 1)
        return list(dict.fromkeys(self._rounds(count, variance) for count in counts))

    def _rounds(self, count: int, variance: float) -> tuple[Group, ...]:
        """Return all rounds, of so many groups at most."""
        return partition(
            self.specification,
            lambda ladder: self._cuts(ladder, count, variance)[-1],
            rounds=self.rounds,
            smallest=self.smallest,
            drop=self.drop,
        )

    def _cuts(self, ladder: Ladder, count: int, variance: float, every: bool = False) -> list[list[int]]:
        """Return where groups start, for each number of groups up to `count` or for it alone."""
        if self.cuts == "precision":
            return precision_cuts(ladder.levels, ladder.heads, count, variance, self.smallest)
        if every:
            return privacy_cuts_each(ladder.levels, ladder.heads, count, self.smallest)
        return [privacy_cuts(ladder.levels, ladder.heads, count, self.smallest)]


def _combined(
    aggregate: Aggregate, specification: Specification, belief: Belief, groups: tuple[Group, ...], how: Ensemble
) -> Partition:
    (part,) = parts(aggregate)
    noises = np.array([laplace_variance(float(part.scale) * MICRO / group.micro_epsilon) for group in groups])
    member = np.zeros((len(specification.epsilons), len(groups)))  # (cohort, group)
    for number, group in enumerate(groups):
        member[list(group.cohorts), number] = 1
    disjoint = bool(member.sum(axis=1).max() <= 1)
    if how == "stratified":
        coefficients = np.ones(len(groups)) if disjoint else _stratified(member, noises)
    else:
        coefficients = _homogeneous(member, noises, specification, believed(aggregate, belief).variance, disjoint)
    coefficients = np.where(np.abs(coefficients - 1) < 1e-12, 1.0, coefficients)  # 1, but for how it was computed
    at = partial(
        total_error,
        aggregate,
        specification,
        belief,
        member @ coefficients,
        variance=float(coefficients**2 @ noises),
    )
    return Partition(
        aggregate=aggregate,
        specification=specification,
        groups=groups,
        coefficients=tuple(coefficients.tolist()),
        error=at(),
        error_at=None if belief.beta is None else at,
    )


def _stratified(member: Floats, noises: Floats) -> Floats:
    """Least variance among all combinations that count everybody who pays exactly once."""
    codes, first = np.unique(member @ 2.0 ** np.arange(member.shape[1]), return_index=True)
    pattern = member[first[codes > 0]]  # cohorts that are always together are one equation
    precise = pattern.T / np.maximum(noises, 1e-300)[:, None]
    return np.asarray(precise @ np.linalg.pinv(pattern @ precise) @ np.ones(len(pattern)))


def _homogeneous(
    member: Floats, noises: Floats, specification: Specification, variance: float, disjoint: bool
) -> Floats:
    """Return the generalised least squares estimate of one common mean: groups are random parts of one population.

    The covariance of two groups' means is S²·overlap/(n_a n_b), less S²/N for all alike, which changes no weight. For
    groups without overlap it is diagonal, so many of them cost little.
    """
    heads = specification.heads.astype(np.float64)
    sizes = np.maximum(heads @ member, 1)
    if disjoint:
        own = variance / sizes + noises / sizes**2
        weights = 1 / (own + (own.max() * 1e-14 or 1.0))
    else:
        overlap = member.T @ (member * heads[:, None])
        covariance = variance * overlap / np.outer(sizes, sizes) + np.diag(noises / sizes**2)
        ridge = covariance.max() * 1e-14 or 1.0
        weights = np.linalg.solve(covariance + np.eye(len(sizes)) * ridge, np.ones(len(sizes)))
    return np.asarray(specification.size * weights / weights.sum() / sizes)

"""Scheme: who takes part in an answer, at which ε, and at what charge. Each scheme is defined here and nowhere else.

Totals weigh everybody by their price, ranks charge it for a change, and black boxes are run at it on whoever takes
part. Everything is by cohort, in the order of the specification, and follows from public information.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.noise import ALWAYS, Floats
from discretion.preference import MICRO, Integers, Specification


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """Says who takes part in one answer, at which ε, and what they pay: one number a cohort, in micro-ε."""

    prices: tuple[int, ...]  # the ε at which members are used; 0: they are left out
    charges: tuple[int, ...]  # what members pay
    threshold: int = 0  # above 0: members take part only if their coin says so, see `sample`

    @property
    def inclusion(self) -> tuple[int, ...] | None:
        """Return the coin thresholds of the cohorts; None where nobody is sampled."""
        if not self.threshold:
            return None
        return tuple(noise.inclusion_threshold(charge, self.threshold) for charge in self.charges)

    @property
    def coins(self) -> tuple[int, ...]:
        """Return the coin thresholds of the cohorts: always and never where nobody is sampled."""
        return self.inclusion or tuple(ALWAYS if price else 0 for price in self.prices)

    @property
    def rates(self) -> Floats:
        """Return how likely members take part, as doubles, for predictions; coins use the exact thresholds."""
        if not self.threshold:
            return np.array([float(price > 0) for price in self.prices])
        level, top = np.array(self.charges) / MICRO, self.threshold / MICRO
        rates = np.exp(level - top) * np.expm1(-level) / np.expm1(-top)  # (e^ε − 1)/(e^t − 1) would overflow
        return np.where(level < top, np.minimum(rates, 1.0), 1.0)  # exactly 1, or rounding would make it a little more


def minimum(specification: Specification) -> Scheme:
    """[JYC15] Definition 7: everybody above 0 takes part at the strictest ε above 0, and pays it."""
    return threshold(specification, specification.strictest)


def threshold(specification: Specification, t: int) -> Scheme:
    """[JYC15] Definition 8: those who allow t take part at t and pay it; everybody else is left out, for nothing."""
    if t > specification.epsilons[-1]:
        raise Unsuitable(f"Nobody allows an epsilon of {t / MICRO:g}: the threshold leaves everybody out.")
    return _at(np.where(specification.micro >= t, t, 0))


def sample(specification: Specification, t: int) -> Scheme:
    """[JYC15] Definition 9: u takes part at t with probability (e^ε_u − 1)/(e^t − 1), or surely if ε_u ≥ t.

    Everybody pays min(ε_u, t). A ratio of e^t inside becomes 1 − π + π e^t = e^ε_u outside; under value too, if the
    answer inside is t-private for rows that appear, disappear or change.
    """
    prices, charges = np.where(specification.micro > 0, t, 0), np.minimum(specification.micro, t)
    return Scheme(prices=tuple(prices.tolist()), charges=tuple(charges.tolist()), threshold=t)


def weights(specification: Specification, cap: int | None = None) -> Scheme:
    """Return influences: everybody takes part with min(ε_u, κ) and pays it; without a cap, with their ε."""
    return _at(specification.micro if cap is None else capped(specification, cap))


def capped(specification: Specification, cap: int) -> Integers:
    """Return the influence min(ε, cap), by cohort, in micro-ε."""
    return np.minimum(specification.micro, cap)


def _at(prices: Integers) -> Scheme:
    """Return the scheme in which everybody pays the ε they are used at."""
    exact = tuple(prices.tolist())
    return Scheme(prices=exact, charges=exact)


# Partitions: several schemes side by side ---------------------------------------------------------------------------


class Group(NamedTuple):
    """Some cohorts answered together, once, at the ε of the strictest of them ([LXJJ17])."""

    cohorts: tuple[int, ...]
    micro_epsilon: int

    def people(self, specification: Specification) -> int:
        """Return how many people of the register it has."""
        return int(specification.heads[list(self.cohorts)].sum())

    def scheme(self, specification: Specification) -> Scheme:
        """Members take part at the group's ε and pay it; everybody else is left out."""
        return _at(paid((self,), specification))


def paid(groups: Sequence[Group], specification: Specification) -> Integers:
    """Return what each cohort has paid for these groups, in micro-ε."""
    total = np.zeros(len(specification.epsilons), dtype=np.int64)
    for group in groups:
        total[list(group.cohorts)] += group.micro_epsilon
    return total


def without_dominated(groups: tuple[Group, ...], specification: Specification) -> tuple[Group, ...]:
    """Leave out a group if another has exactly as many people and a larger ε ([LXJJ17] 4.4). Sizes are public."""
    best: dict[int, int] = {}
    for group in groups:
        size = group.people(specification)
        best[size] = max(best.get(size, 0), group.micro_epsilon)
    return tuple(group for group in groups if group.micro_epsilon == best[group.people(specification)])


class Ladder(NamedTuple):
    """The levels above 0 that people have left, with their head-counts, and the step of each cohort (below 0: none)."""

    levels: Integers
    heads: Integers
    step: Integers

    @classmethod
    def of(cls, left: Integers, heads: Integers) -> "Ladder":
        levels, step = np.unique(left, return_inverse=True)
        people = np.bincount(step, weights=heads).astype(np.int64)
        skip = int(levels[0] == 0)  # people with nothing left are in no group
        return cls(levels[skip:], people[skip:], step - skip)

    def groups(self, starts: Sequence[int]) -> tuple[Group, ...]:
        """Return the groups that begin at these steps."""
        return tuple(
            Group(tuple(np.flatnonzero((self.step >= first) & (self.step < last)).tolist()), int(self.levels[first]))
            for first, last in pairwise([*starts, len(self.levels)])
        )


def partition(
    specification: Specification,
    cut: Callable[[Ladder], Sequence[int]],
    *,
    rounds: int = 1,
    smallest: int = 1,
    drop: bool = False,
) -> tuple[Group, ...]:
    """[LXJJ17]: groups of similar ε, each at its smallest; every round cuts what people have left.

    The groups of a round are disjoint, so a person pays their group's ε once a round. A group that `drop` leaves out
    is not asked, so it pays nothing.
    """
    made: tuple[Group, ...] = ()
    for number in range(rounds):
        ladder = Ladder.of(specification.micro - paid(made, specification), specification.heads)
        if ladder.heads.sum() < smallest:
            if not number:
                raise Unsuitable(f"No group of people with an epsilon has {smallest:,} members.")
            break
        groups = ladder.groups(cut(ladder))
        made += without_dominated(groups, specification) if drop else groups
    return made

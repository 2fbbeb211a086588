"""Committee: each group answers a rank, a mode or a ratio by itself; the answers are averaged, or vote."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import tuned
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.rank import Rank, is_ranked
from discretion.mechanisms.rank import tuned as tuned_rank
from discretion.mechanisms.scheme import Group, paid
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics


@dataclass(frozen=True, kw_only=True)
class Committee:
    """Answer each group with its own smallest ε, then combine the answers.

    Definition  [LXJJ17] Definition 3 with the ensemble of section 4.4. Quantiles (medians, minima, maxima), variances
                and means with a secret denominator: the average of the groups' answers with weights (n_i ε_i)². Modes:
                the category with most such weight behind it. Each group is answered by the exponential mechanism, or by
                a ratio of noisy totals, at ε_i.
    Guarantee   The ε of u's group. A person is in one group, so changes one group's input, and the groups' noises are
                independent: the joint law of all answers changes by what that one mechanism loses.
    Neighbours  presence or value, as the aggregate says. Groups come from the register.
    Tested by   tests/mechanisms/test_partition.py::test_nobody_loses_more_than_their_group
    """

    aggregate: Aggregate
    specification: Specification
    groups: tuple[Group, ...]
    members: tuple[Rank, ...] | tuple[Linear, ...]  # one mechanism a group
    error: Error

    @property
    def guarantee(self) -> Guarantee:
        charged = paid(self.groups, self.specification)
        return Guarantee.of(self.specification, charged, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return self.members[0].measure

    @cached_property
    def shares(self) -> Floats:
        """The weights (n_i ε_i)² of the groups, adding up to 1."""
        return shares(self.groups, self.specification)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        answers = np.array([member.release(statistics, rng) for member in self.members])  # (group of people, key)
        if self.aggregate.kind == "mode":
            return np.array([_elected(column, self.shares) for column in answers.T])
        return np.asarray(self.shares @ answers)


@dataclass(frozen=True, kw_only=True)
class ChoosingCommittee(Committee):
    """A committee whose members choose among grid values."""

    members: tuple[Rank, ...]

    def probabilities(self, statistics: Statistics) -> Floats:
        """Return (group of people and key, grid value) -> the probability that it is what this group answers."""
        return np.vstack([member.probabilities(statistics) for member in self.members])


@dataclass(frozen=True, kw_only=True)
class RatioCommittee(Committee):
    """A committee whose members release noisy totals."""

    members: tuple[Linear, ...]

    @property
    def scales(self) -> tuple[Fraction, ...]:
        return tuple(scale for member in self.members for scale in member.scales)

    def centres(self, statistics: Statistics) -> tuple[Any, ...]:
        """Return the weighted totals of every group before the noise. Private."""
        return tuple(centre for member in self.members for centre in member.centres(statistics))


def committee(
    aggregate: Aggregate, specification: Specification, belief: Belief, partitions: Sequence[tuple[Group, ...]]
) -> Committee:
    """Return the committee whose groups have most precision together, Σ (n_i ε_i)²."""
    groups = max(partitions, key=lambda found: _weights(found, specification).sum())
    schemes = [group.scheme(specification) for group in groups]
    shape: dict[str, Any] = {"aggregate": aggregate, "specification": specification, "groups": groups}
    if is_ranked(aggregate):
        chosen = tuple(tuned_rank(aggregate, specification, belief, scheme) for scheme in schemes)
        worst = max((member.error for member in chosen), key=lambda error: error.total + error.pull)
        return ChoosingCommittee(**shape, members=chosen, error=worst)
    made = tuple(tuned(Linear, aggregate, specification, belief, np.array(scheme.prices)) for scheme in schemes)
    errors, share = [member.error for member in made], shares(groups, specification)
    bias = float(share @ [error.bias for error in errors])  # an average is off by at most the average of what is off
    noise = float(np.sqrt(share @ np.square([error.noise for error in errors])))
    return RatioCommittee(**shape, members=made, error=replace(errors[0], bias=bias, noise=noise))


def shares(groups: Sequence[Group], specification: Specification) -> Floats:
    """Return the weights of the groups' answers: (n_i ε_i)², adding up to 1."""
    weights = _weights(groups, specification)
    return np.asarray(weights / weights.sum())


def _weights(groups: Sequence[Group], specification: Specification) -> Floats:
    return np.array([(max(group.people(specification), 1) * group.micro_epsilon / MICRO) ** 2 for group in groups])


def _elected(answers: Floats, weights: Floats) -> float:
    """Return the answer with most weight behind it; of equals, the smallest."""
    candidates, place = np.unique(answers, return_inverse=True)
    return float(candidates[np.argmax(np.bincount(place, weights=weights))])

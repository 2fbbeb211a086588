"""Public: what needs no noise because everybody may know it."""

from dataclasses import dataclass

import numpy as np

from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.belief import Belief
from discretion.noise import Floats, Rng
from discretion.preference import Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics


@dataclass(frozen=True, kw_only=True)
class Public:
    """The number of people, where who they are is public.

    Definition  The size of the register. No row is looked at.
    Guarantee   0 for everybody: the answer does not depend on anybody's values.
    Neighbours  value only, and only for a count of everybody (each has one row, none filtered away).
    Tested by   tests/mechanisms/test_public.py
    """

    aggregate: Aggregate
    specification: Specification

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, [0] * len(self.specification.epsilons), protects="value")

    @property
    def error(self) -> Error:
        return Error(bias=0.0, noise=0.0)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate)

    def probabilities(self, statistics: Statistics) -> Floats:
        """The one answer, certain."""
        return np.ones(1)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        return np.array([float(self.specification.size)])


def propose(aggregate: Aggregate, specification: Specification, belief: Belief) -> Public:
    if aggregate.kind not in ("count", "people") or not aggregate.size_is_public:
        raise Unsuitable("The answer depends on values, which are not public.")
    return Public(aggregate=aggregate, specification=specification)

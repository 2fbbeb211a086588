"""Threshold: only people who allow t are asked, all at ε = t. The paper's second baseline."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discretion.mechanisms import occurrence, rank, scheme
from discretion.mechanisms.accuracy import tuned
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.level import Level, best_level
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.occurrence import Occurrence, counts_keys
from discretion.mechanisms.rank import Rank, is_ranked
from discretion.preference import Specification
from discretion.statistics import Aggregate


@dataclass(frozen=True, kw_only=True)
class Threshold(Linear):
    """Leave out everybody who allows less than t and answer with t.

    Definition  [JYC15] Definition 8: release a total over {u : ε_u ≥ t} plus Laplace noise of scale Δ/t. `threshold`
                is "max" (the paper's experiments), "mean", a number, or "best": the level of least predicted error.
                Totals count those left out as 0; means, and totals where preferences are believed unrelated to values,
                speak for them too.
    Guarantee   t if ε_u ≥ t, else 0.
    Neighbours  presence or value, as the aggregate says; Δ is its sensitivity. t comes from the register: a t computed
                from the people present is a leak.
    Tested by   tests/mechanisms/test_linear.py::test_nobody_loses_more_than_the_charge
    """


def propose(
    aggregate: Aggregate, specification: Specification, belief: Belief, *, threshold: Level = "best"
) -> Threshold | Rank | Occurrence:
    if is_ranked(aggregate):
        return rank.at_level(threshold, aggregate, specification, belief, scheme.threshold, specification.epsilons)

    def at(t: int) -> Threshold | Occurrence:
        weights = np.array(scheme.threshold(specification, t).prices)
        if counts_keys(aggregate):
            return occurrence.tuned(aggregate, specification, weights)
        rescales = aggregate.kind == "mean" or belief.beta is not None
        return tuned(Threshold, aggregate, specification, belief, weights, divisor=None if rescales else Fraction(t))

    return best_level(threshold, specification, at, among=specification.epsilons)

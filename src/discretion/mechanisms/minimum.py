"""Minimum: everybody gets the strictest ε anybody chose. The baseline, which is ordinary differential privacy."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discretion.mechanisms import occurrence, rank, scheme
from discretion.mechanisms.accuracy import tuned
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.occurrence import Occurrence, counts_keys
from discretion.mechanisms.rank import Rank, is_ranked
from discretion.preference import Specification
from discretion.statistics import Aggregate


@dataclass(frozen=True, kw_only=True)
class Minimum(Linear):
    """Answer with the smallest ε above 0 for all.

    Definition  [JYC15] Definition 7: α = min ε_u over the register, release a total plus Laplace noise of scale Δ/α.
                People who chose 0 are left out and counted as 0.
    Guarantee   α for everybody whose ε is above 0, 0 for the others: their rows have the weight 0.
    Neighbours  presence or value, as the aggregate says; Δ is its sensitivity.
    Tested by   tests/mechanisms/test_linear.py::test_nobody_loses_more_than_the_charge
    """


def propose(aggregate: Aggregate, specification: Specification, belief: Belief) -> Minimum | Rank | Occurrence:
    used = scheme.minimum(specification)
    if is_ranked(aggregate):
        return rank.tuned(aggregate, specification, belief, used)
    if counts_keys(aggregate):
        return occurrence.tuned(aggregate, specification, np.array(used.prices))
    # A mean is over the people who are in it.
    divisor = None if aggregate.kind == "mean" else Fraction(specification.strictest)
    return tuned(Minimum, aggregate, specification, belief, np.array(used.prices), divisor=divisor)

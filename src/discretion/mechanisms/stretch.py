"""Stretch: everybody's value shrinks in proportion to their ε. The heterogeneous-privacy paper's mechanism."""

from dataclasses import dataclass
from fractions import Fraction

from discretion.mechanisms import occurrence
from discretion.mechanisms.accuracy import tuned
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.level import Level, best_level
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.occurrence import Occurrence, counts_keys
from discretion.mechanisms.scheme import capped
from discretion.preference import Specification
from discretion.statistics import Aggregate


@dataclass(frozen=True, kw_only=True)
class Stretch(Linear):
    """Multiply everybody's value by min(ε_u, κ)/κ and answer with κ.

    Definition  [AGK16] Algorithm 1, as [JYC15] compares with it ("Alag."): release Σ (w_u/κ) x_u plus Laplace noise of
                scale Δ/κ, w_u = min(ε_u, κ). `cap` is κ: "max" is the paper; "mean", "best" or a number are ours. The
                shrunken total is released as it is, biased towards 0; `weighted` repairs that.
    Guarantee   min(ε_u, κ): the total moves by at most (w_u/κ) Δ.
    Neighbours  presence or value, as the aggregate says; Δ is its sensitivity.
    Tested by   tests/mechanisms/test_linear.py::test_nobody_loses_more_than_the_charge
    """


def propose(
    aggregate: Aggregate, specification: Specification, belief: Belief, *, cap: Level = "max"
) -> Stretch | Occurrence:
    def at(kappa: int) -> Stretch | Occurrence:
        rescales = aggregate.kind == "mean"
        weights = capped(specification, kappa)
        if counts_keys(aggregate):
            return occurrence.tuned(aggregate, specification, weights)
        return tuned(Stretch, aggregate, specification, belief, weights, divisor=None if rescales else Fraction(kappa))

    return best_level(cap, specification, at)

"""Exponential: choose an answer by whom it would take to make it the true one. The paper's PE, here for counts."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms import rank, scheme
from discretion.mechanisms.accuracy import limits
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.rank import Rank, is_ranked
from discretion.noise import Floats, Rng, Rule
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

MOST_CANDIDATES = 1_000_000  # an exact choice looks at every candidate


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """Pick a count, likelier the less it would cost to make it the true one.

    Definition  [JYC15] Definition 10 (PE) for counts: P(r) ∝ exp(−c(r)/2) over r = 0..n, n the size of the register;
                c(r) is the sum of the r − x smallest ε among people who do not count (or the x − r smallest among those
                who do), x the true count. Somebody absent is somebody who does not count.
    Guarantee   ε_u: c is a distance, so u's change moves every c(r) by at most ε_u, and the normaliser makes up the
                other half. [JYC15] Theorem 6, with c the cheapest change for every X.
    Neighbours  presence and value alike, because absence is a state and the candidates do not depend on the data.
                (With n taken from the data, as printed, presence is not protected at all.)
    Tested by   tests/mechanisms/test_exponential.py
    """

    aggregate: Aggregate
    specification: Specification
    error: Error
    rule: Rule = "exponential"

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.specification.epsilons, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate)

    def costs(self, statistics: Statistics) -> Integers:
        """c(r) in micro-ε for r = 0..n. Private."""
        counted: Any = statistics.totals if self.aggregate.kind == "sum" else statistics.counts
        heads = self.specification.heads
        ones = np.minimum(np.asarray(counted)[0].astype(np.int64), heads)  # what the rows are must never be an error
        down, up = (cheapest(self.specification.micro, people) for people in (ones, heads - ones))
        return np.concatenate([down[:0:-1], up])

    def probabilities(self, statistics: Statistics) -> Floats:
        """The law of the answer, for r = 0..n."""
        return noise.choice_probabilities(-self.costs(statistics), 2 * MICRO, self.rule)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        return np.array([float(noise.choose(-self.costs(statistics), 2 * MICRO, rng, self.rule))])


def cheapest(micro_epsilon: Integers, people: Integers) -> Integers:
    """Return what changing 0, 1, 2, ... of these people costs at least, in micro-ε."""
    return np.append(0, np.cumsum(np.repeat(micro_epsilon, people)))


def propose(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    *,
    rule: Rule | None = None,
    upper: bool = False,
) -> Exponential | Rank:
    """`upper`, for quantiles: the upper median instead of the lower."""
    if is_ranked(aggregate):
        return rank.tuned(aggregate, specification, belief, scheme.weights(specification), rule=rule, upper=upper)
    bits = aggregate.kind == "people" or (
        aggregate.kind in ("count", "sum")
        and aggregate.rows_per_person == 1
        and (aggregate.lower, aggregate.upper) == (0, 1)
        and (aggregate.origin, aggregate.step) == (Fraction(0), Fraction(1))
    )
    if not bits or aggregate.groups > 1:
        raise Unsuitable("It answers only an ungrouped count of people.")
    if specification.size > MOST_CANDIDATES:
        raise Unsuitable(f"An exact choice among more than {MOST_CANDIDATES:,} counts takes too long.")
    return Exponential(
        aggregate=aggregate,
        specification=specification,
        error=_error(aggregate, specification),
        rule=rule or "exponential",
    )


@lru_cache(maxsize=8)  # under every belief it is the same
def _error(aggregate: Aggregate, specification: Specification) -> Error:
    """The root mean squared error is at most that of P(j) ∝ exp(−C(j)/2), j = −n..n, C(j) the |j| smallest ε of all.

    On each side of the truth the cost of j changes ascends at least as fast as C, because it takes people from a part
    of all: the true law of |j|, over this one, is a descending likelihood ratio, so it is stochastically smaller. Bias
    is part of it; the two cannot be told apart without the data. (Permute-and-flip is not worse by cost [MS20].)
    """
    levels, heads = specification.micro, specification.heads
    enough = 120 * MICRO // np.maximum(levels, 1) + 1  # people beyond whom the weights are below e^−60
    used = np.append(0, np.cumsum(levels * heads))[:-1] < 120 * MICRO
    weights = np.exp(np.cumsum(np.repeat(levels[used], np.minimum(heads, enough)[used])) / (-2 * MICRO))  # of ±1, ±2 …
    squares = np.arange(1.0, weights.size + 1) ** 2
    mean_square = 2 * float((weights * squares).sum()) / (1 + 2 * float(weights.sum()))
    return Error(bias=0.0, noise=sqrt(mean_square), limits=limits(aggregate, specification))

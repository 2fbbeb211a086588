"""One run of an experiment: people, their preferences, their values; and how far a mechanism is off on them.

Noise is not drawn where its effect is known: the squared error given the data is computed exactly and averaged over
the runs, so that far fewer of them are needed. Estimates from noisy totals (`pooled`) are drawn a few times a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from discretion.engines.arrays import ArrayColumn, ArrayRows, compute
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.mechanisms import MECHANISMS, Belief, Mechanism
from discretion.mechanisms.accuracy import laplace_variance
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.partition import Partition
from discretion.mechanisms.pooled import Pooled
from discretion.noise import ALWAYS, Floats, discrete_laplace
from discretion.papers.figure import By
from discretion.plan import choose
from discretion.preference import Integers, Specification
from discretion.statistics import Aggregate, Measure, Request, Statistics

DRAWN = 4  # noises a run, where the error has no closed form


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """The people of one run and the true answer about them."""

    specification: Specification
    cohort: Integers
    column: ArrayColumn
    truth: float

    def statistics(self, measure: Measure, rng: Any = None) -> Statistics:
        """Return what an engine would compute from these people's rows."""
        rows = ArrayRows(column=self.column, cohort=self.cohort, cohorts=len(self.specification.epsilons))
        return compute(Request(measures=(measure,), source=rows), rng)[0]


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A curve of a figure: a mechanism, the relation it protects, and its options."""

    curve: str
    mechanism: str  # a name of MECHANISMS, or "auto"
    protects: Protects
    by: By = "paper"
    assume: Assume = None
    expect: tuple[float, float] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def legend(self) -> dict[str, Any]:
        """Return what every point of the curve says about itself."""
        return {"curve": self.curve, "by": self.by, "relation": self.protects}

    def tuned(self, aggregate: Aggregate, specification: Specification) -> Mechanism:
        """The mechanism for these people, from public information."""
        belief = Belief(assume=self.assume, expect=self.expect)
        if self.mechanism == "auto":
            return choose([aggregate], specification, belief).choices[0].mechanism
        return MECHANISMS[self.mechanism](aggregate, specification, belief, **self.options)


@runtime_checkable
class Choosing(Protocol):
    """A mechanism with finitely many answers, whose distribution is known."""

    @property
    def measure(self) -> Measure: ...
    def probabilities(self, statistics: Statistics) -> Floats: ...


def squared_error(mechanism: Mechanism, trial: Trial, rng: Any) -> float:
    """E[(answer − truth)²] given the data; where a sample is chosen from, given its coins too."""
    if isinstance(mechanism, Linear):
        everybody = trial.statistics(replace(mechanism.measure, inclusion=None))
        return _linear(mechanism, everybody.counts[0], trial.truth)
    if isinstance(mechanism, Partition):
        everybody = trial.statistics(mechanism.measure)
        return _partitioned(mechanism, everybody.counts[0], trial.truth)
    if isinstance(mechanism, Pooled):
        return _pooled(mechanism, trial, rng)
    law, answers = _law(mechanism, trial, rng)
    return float(law @ (answers - trial.truth) ** 2)


def absolute_error(mechanism: Mechanism, trial: Trial, rng: Any = None) -> float:
    """E|answer − truth| given the data, for a mechanism that chooses."""
    law, answers = _law(mechanism, trial, rng)
    return float(law @ np.abs(answers - trial.truth))


def _law(mechanism: Mechanism, trial: Trial, rng: Any) -> tuple[Floats, Floats]:
    """The probabilities of a choosing mechanism's answers, and the answers."""
    if not isinstance(mechanism, Choosing):
        raise InvalidDeclaration(f"The error of {type(mechanism).__name__} has no closed form here.")
    aggregate = mechanism.measure.aggregate
    law = np.atleast_2d(mechanism.probabilities(trial.statistics(mechanism.measure, rng)))[0]
    first = 0 if aggregate.kind == "count" else aggregate.lower  # a count is chosen from 0..n, a rank from the grid
    return law, float(aggregate.origin) + float(aggregate.step) * np.arange(first, first + law.size)


def _linear(mechanism: Linear, counts: Integers, truth: float) -> float:
    """Bias² + variance of the noise and, where people are sampled, of their coins: for a count, exactly."""
    share = np.array(mechanism.weights) / float(mechanism.divisor)
    kept = np.ones_like(share)
    if mechanism.measure.inclusion is not None:
        kept = np.array([threshold / ALWAYS for threshold in mechanism.measure.inclusion])
    bias = float(counts @ (share * kept)) + float(mechanism.offset) - truth
    coins = float(counts @ (share**2 * kept * (1 - kept)))
    noise = laplace_variance(float(mechanism.scales[0])) * (mechanism.unit / float(mechanism.divisor)) ** 2
    return bias**2 + coins + noise


def _partitioned(mechanism: Partition, counts: Integers, truth: float) -> float:
    """Bias² + variance of the groups' noise, for a count, exactly."""
    coefficients = np.array(mechanism.coefficients)
    totals = np.array([counts[list(group.cohorts)].sum() for group in mechanism.groups])
    noise = np.array([laplace_variance(float(scale)) for scale in mechanism.scales])
    return float((coefficients @ totals - truth) ** 2 + coefficients**2 @ noise)


def _pooled(mechanism: Pooled, trial: Trial, rng: Any) -> float:
    """Return the mean of a few squared errors: estimates have no closed form."""
    counts = trial.statistics(mechanism.measure).counts.repeat(DRAWN, axis=0)
    found = mechanism.pool.estimate(mechanism.noisy(Statistics(counts=counts), rng), sides=())
    return float(np.mean((found.values - trial.truth) ** 2))


def drawn_errors(mechanism: Mechanism, counts: Integers, draws: int, rng: Any) -> Floats:
    """(draw, query) -> answer − truth, for a count asked of many queries: their counts are (query, cohort)."""
    truth = counts.sum(axis=1)
    if isinstance(mechanism, Partition):
        member = np.array([np.isin(np.arange(counts.shape[1]), group.cohorts) for group in mechanism.groups])
        noisy = [discrete_laplace(scale, draws * len(counts), rng) for scale in mechanism.scales]
        totals = (counts @ member.T)[None] + np.stack(noisy, axis=-1).reshape(draws, len(counts), -1)
        return np.asarray(totals @ np.array(mechanism.coefficients) - truth)
    if not isinstance(mechanism, Linear):
        raise InvalidDeclaration(f"The law of {type(mechanism).__name__} is not that of a total with noise.")
    kept = np.broadcast_to(counts, (draws, *counts.shape))
    if mechanism.measure.inclusion is not None:  # a coin each: a binomial number of every cohort
        kept = rng.binomial(kept, [threshold / ALWAYS for threshold in mechanism.measure.inclusion])
    noise = discrete_laplace(mechanism.scales[0], draws * len(counts), rng).reshape(draws, len(counts))
    totals = kept @ np.array(mechanism.weights) + noise * mechanism.unit
    return np.asarray(totals / float(mechanism.divisor) + float(mechanism.offset) - truth)

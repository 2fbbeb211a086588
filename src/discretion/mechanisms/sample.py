"""Sample: people are kept by a coin that favours those who allow more, then all are answered with one ε."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discretion.guarantee import Guarantee
from discretion.mechanisms import rank, scheme
from discretion.mechanisms.accuracy import believed, laplace_variance, over, ratio_errors, total_error
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.level import Level, best_level, refuse_nobody
from discretion.mechanisms.linear import Linear, is_affine, parts
from discretion.mechanisms.occurrence import refuse_keys
from discretion.mechanisms.rank import Rank, is_ranked
from discretion.mechanisms.scheme import Scheme
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Measure


@dataclass(frozen=True, kw_only=True)
class Sample(Linear):
    """Keep each person at a rate set by their ε, then answer with ε = t.

    Definition  [JYC15] Definition 9: person u is kept with probability π_u = (e^ε_u − 1)/(e^t − 1) if ε_u < t, else 1;
                release a total over those kept plus Laplace noise of scale Δ/t. `threshold` is "max" (the paper's S),
                "mean" (S-avg), a number, or "best": least predicted error from public information. Raw totals count
                people not kept as 0; where preferences are believed unrelated to values they are divided by the mean
                rate. Means and variances are ratios of what was kept.
    Guarantee   min(ε_u, t): with a, b, b' the probabilities of an answer without u and with u's two values, all within
                e^t of one another, ((1−π)a + πb) / ((1−π)a + πb') ≤ 1 − π + π e^t = e^ε_u.
    Neighbours  presence or value. Both need an inner answer that is t-DP under both and does not take the number of
                people for public, so Δ is always that of an unknown number.
    Tested by   tests/mechanisms/test_sample.py
    """

    threshold: int  # t, in micro-ε

    @cached_property
    def scheme(self) -> Scheme:
        return scheme.sample(self.specification, self.threshold)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.scheme.charges, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, inclusion=self.scheme.inclusion)

    @property
    def full_weight(self) -> float:
        """Return what is expected to be kept of everybody."""
        return self.threshold * over(self.specification.heads, self.scheme.rates)


def propose(
    aggregate: Aggregate,
    specification: Specification,
    belief: Belief,
    *,
    threshold: Level = "best",
    rescaled: bool | None = None,
) -> Sample | Rank:
    if is_ranked(aggregate):
        return rank.at_level(threshold, aggregate, specification, belief, scheme.sample)
    refuse_keys(aggregate)
    refuse_nobody(specification)
    inner = replace(aggregate, complete=False) if aggregate.complete else aggregate
    rescale = belief.beta is not None if rescaled is None else rescaled
    return best_level(threshold, specification, lambda t: _tuned(inner, specification, belief, t, rescale))


def _tuned(inner: Aggregate, specification: Specification, belief: Belief, t: int, rescale: bool) -> Sample:
    used = scheme.sample(specification, t)
    kept = used.rates
    shape: dict[str, Any] = {
        "aggregate": inner,
        "specification": specification,
        "weights": used.prices,
        "threshold": t,
    }
    coins = over(specification.heads, kept * (1 - kept))  # Σ π(1 − π): coins that fall either way
    if not is_affine(inner):
        variance = coins / over(specification.heads, kept) ** 2
        return Sample(**shape, **ratio_errors(inner, specification, belief, t * kept, variance))
    mean_rate = over(specification.heads, kept) / specification.size if rescale else 1.0
    drawn = laplace_variance(float(parts(inner)[0].scale) * MICRO / t)
    drawn += believed(inner, belief).square * coins
    error = total_error(inner, specification, belief, kept / mean_rate, variance=drawn / mean_rate**2)
    return Sample(**shape, divisor=Fraction(t) * Fraction(mean_rate), error=error)

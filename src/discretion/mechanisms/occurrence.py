"""Occurrence: how many declared keys occur, each counted by the largest weight of anybody who has it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, log, log1p, sqrt
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import laplace_variance
from discretion.mechanisms.form import Part
from discretion.mechanisms.linear import refuse_scale, unit_of
from discretion.mechanisms.rank import histograms
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

TAILS = (0.25, 0.0005)  # between and beyond which ends of intervals are found by a straight line


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """Add up, over keys, the largest weight of anybody who has the key.

    Definition  S = Σ over keys of max{w_u : u has the key}, 0 for a key that nobody has; release S plus Laplace noise
                of scale Δ, over the largest weight. Weights are everybody's ε up to a cap (weighted, stretch), one ε
                for all (minimum), or one ε for those who allow it (threshold). With one weight S counts keys.
    Guarantee   w_u. Next to the others' rows, u's row raises the maximum of its own key, by at most w_u, and no other.
                With k rows and m keys u raises S by 0 to min(k, m)·w_u, so two states of u are no further apart than
                one state is from absence: Δ = min(k, m) for presence and for value. In several groups S is a vector;
                u touches at most min(k, cells) cells by presence and min(2k, cells) by value, cells = groups·m.
    Neighbours  presence or value.
    Tested by   tests/mechanisms/test_occurrence.py
    """

    aggregate: Aggregate
    specification: Specification
    weights: tuple[int, ...]  # by cohort, in micro-ε: what each member pays

    def __post_init__(self) -> None:
        if not max(self.weights):
            raise Unsuitable("It would leave nobody to answer about.")
        refuse_scale(self.aggregate, self.unit, (Part("count", Fraction(self.aggregate.sensitivity)),))

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.specification, self.weights, protects=self.aggregate.protects)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, histogram=True)

    @cached_property
    def unit(self) -> int:
        """Return the largest whole number of micro-ε that divides every weight: sums and noise are counted in it."""
        return unit_of(np.array(self.weights))

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """Return the scale of the noise, in units."""
        return (Fraction(self.aggregate.sensitivity * MICRO, self.unit),)

    def centres(self, statistics: Statistics) -> tuple[Any, ...]:
        """Return S by group before the noise, in units. Private."""
        weights = np.array(self.weights, dtype=np.int64) // self.unit
        occurs = histograms(statistics) > 0  # (group, cohort, key)
        return ((occurs * weights[:, None]).max(axis=1).sum(axis=1),)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        (centre,), (scale,) = self.centres(statistics), self.scales
        noisy = centre.astype(object) + noise.discrete_laplace(scale, self.aggregate.groups, rng).astype(object)
        return np.array([float(Fraction(int(total) * self.unit, max(self.weights))) for total in noisy])

    @cached_property
    def error(self) -> Error:
        """Return how far it may be off: by its noise, and by keys that only people of small weight have."""
        deviation = sqrt(laplace_variance(float(self.scales[0]))) * self.unit / max(self.weights)
        return Error(
            bias=self._missed(),
            noise=deviation,
            limits=(0.0, float(keys_of(self.aggregate))),
            quantiles=tuple(map(self._ends, TAILS)),
            assumable=False,  # who has a key that nobody else has is no matter of averages
        )

    def _ends(self, tail: float) -> tuple[float, float, float]:
        """Return a tail, and by how much the truth is below and above the answer unless the noise is in both tails.

        The truth less the answer is s − N with 0 ≤ s ≤ B, B the bias. Discrete Laplace noise of scale b units has
        P(N > x) ≤ C·e^(−x/b), C = 1/(1 + e^(−1/b)), for every x. So it lies outside B/2 ± h with a chance of at most
        2C·e^(−h/b)·cosh(B/2b), which is 2·tail for h = b·(ln(C/tail) + ln cosh(B/2b)): in ln(tail) a straight line.
        """
        scale, middle = float(self.scales[0]), self._missed() / 2
        unit = self.unit / max(self.weights)
        times = middle / (scale * unit)
        cosh = times + log1p(exp(-2 * times)) - log(2)
        half = scale * unit * (cosh - log(tail) - log1p(exp(-1 / scale)))
        return tail, middle - half, middle + half

    def _missed(self) -> float:
        """Return the most that the count falls short: every key's is 1 − w/κ, w the largest weight of who has it.

        Each person has at most min(k, m) keys, so at worst the people of smallest weights have all keys to themselves.
        """
        keys, largest = keys_of(self.aggregate), max(self.weights)
        room = min(self.aggregate.rows_per_person, keys)
        levels = sorted(zip(self.weights, self.specification.heads.tolist(), strict=True))
        missed, left = 0.0, keys
        for weight, people in levels:
            taken = min(left, people * room)
            missed, left = missed + taken * (1 - weight / largest), left - taken
        return missed


def counts_keys(aggregate: Aggregate) -> bool:
    """Return whether the answer is a number of keys that occur."""
    return aggregate.kind == "distinct"


def keys_of(aggregate: Aggregate) -> int:
    """Return how many keys there are."""
    return aggregate.upper - aggregate.lower + 1


def tuned(aggregate: Aggregate, specification: Specification, weights: Integers) -> Occurrence:
    """Return the mechanism with these weights."""
    return Occurrence(aggregate=aggregate, specification=specification, weights=tuple(weights.tolist()))


def refuse_keys(aggregate: Aggregate) -> None:
    """Refuse a number of keys, which is not a sum over people."""
    if counts_keys(aggregate):
        raise Unsuitable(
            "A number of different keys is not a sum over people: weighted, minimum and threshold count them."
        )

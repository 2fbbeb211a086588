"""Individual: the mechanism of model `individual` for an engine's statistics. NOT differential privacy: see `local`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, inf
from typing import Literal

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee, Protects
from discretion.mechanisms.effect import Effect, effect_of, order_effect, with_departures
from discretion.mechanisms.local import WARNING, scale_of
from discretion.noise import LARGEST_SCALE, Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import CANDIDATES, Aggregate, Measure, Statistics

KINDS = ("count", "people", "sum", "mean", "quantile", "mode")
FINER = 1_000  # a mean is rounded to this part of a grid step
Relation = Literal["presence", "value", "either"]  # rows come and go; values change; both may happen


@dataclass(frozen=True, kw_only=True)
class Local:
    """Answer plus discrete noise for what people can do to the data there is; a mode is chosen among what they can do.

    Definition  [SDSM17] Theorem 5, with one ε per person: each group's answer, in whole grid steps, plus discrete
                Laplace noise of scale max over people of (their effect on it / their ε). Somebody who is not counted
                now may come, at the strictest ε of the register. `place` 2 of a maximum is the second largest value,
                and so on. A mode: the true one with weight e^ε, every other one that a single person could make true
                with weight 1, ε the strictest; if nobody can change it, it is exact.
    Guarantee   model `individual` only: see `local`. Everybody pays their ε. Groups are disjoint parts: where rows come
                and go a person moves one of them; where values are secret a person may move from one to another, so
                each group's answer uses half of their ε.
    Neighbours  of the actual data: presence; value; under value with a filter, missing values or groups, both.
    Tested by   tests/mechanisms/test_individual.py
    """

    aggregate: Aggregate
    specification: Specification
    place: int = 1

    @property
    def guarantee(self) -> Guarantee:
        spent, protects = self.specification.epsilons, self.aggregate.protects
        return Guarantee.of(self.specification, spent, protects=protects, model="individual", note=WARNING)

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, histogram=self.aggregate.kind not in ("count", "people"))

    @property
    def relation(self) -> Relation:
        """Return what may happen to one person's row."""
        if self.aggregate.protects == "presence":
            return "presence"
        return "value" if self.aggregate.size_is_public else "either"

    @property
    def error(self) -> Error:
        """Return where the truth can lie, from what is declared: the noise follows the data and is never shown."""
        one, people = self.aggregate, self.specification.size
        low, high = (float(one.value(step)) for step in (one.lower, one.upper))
        if one.kind in ("count", "people"):
            low, high = 0.0, float(people)
        elif one.kind == "sum":
            low, high = (people * float(one.step) * side for side in one.person_range)
        return Error(bias=0.0, noise=inf, limits=(low, high))

    def centres(self, statistics: Statistics) -> list[tuple[int, Fraction]]:
        """Return for each group the answer before the noise, in whole steps, and the scale of the noise. Private."""
        shared = 2 if self.aggregate.protects == "value" and self.aggregate.groups > 1 else 1
        return [(truth, shared * scale) for truth, scale in self._centres(statistics)]

    def _centres(self, statistics: Statistics) -> Iterator[tuple[int, Fraction]]:
        one, strictest = self.aggregate, self.specification.strictest
        used = np.flatnonzero(self.specification.micro > 0)
        if one.kind in ("count", "people"):
            scale = Fraction(0) if one.size_is_public else Fraction(MICRO, strictest)
            yield from ((int(counts[used].sum()), scale) for counts in statistics.counts)
            return
        finer = FINER if one.kind == "mean" else 1
        for by_cohort in _histogram(statistics):
            data, micro = self._people(by_cohort[used], used)
            effect = self._effect(data)
            if finer > 1:  # rounding a mean may move it by one more
                moved = np.ceil(effect.by_person * finer + 1e-6) + 1
                effect = replace(effect, by_person=moved, newcomer=ceil(effect.newcomer * finer + 1e-6) + 1)
                effect = effect if self.relation != "value" else replace(effect, newcomer=0.0)
            yield round(float(effect.truth[0]) * finer), scale_of(effect, micro, strictest)

    def _people(self, by_cohort: Integers, used: Integers) -> tuple[Floats, Integers]:
        """Return everybody's grid step and ε, in any order."""
        one = self.aggregate
        steps = np.arange(one.lower, one.upper + 1, dtype=np.float64)
        data = np.repeat(np.tile(steps, len(used)), by_cohort.ravel())
        return data, np.repeat(self.specification.micro[used], by_cohort.sum(axis=1))

    def _effect(self, data: Floats) -> Effect:
        if self.relation == "value":
            return self._of(data, "value")
        coming = self._of(data, "presence")
        if len(data) <= self.place + 1:  # so few that the one who goes may leave too few to have an answer
            coming = with_departures(coming, data, lambda rest: self._of(rest, "presence"))
        if self.relation == "presence":
            return coming
        changed = self._of(data, "value")
        return replace(coming, by_person=np.maximum(coming.by_person, changed.by_person))

    def _of(self, data: Floats, protects: Protects) -> Effect:
        one, place = self.aggregate, self.place
        bounds = float(one.lower), float(one.upper)
        if one.kind == "sum":
            return effect_of("sum", data, bounds, protects)
        if one.kind == "mean":
            return effect_of("mean", data, bounds, protects)
        rank = one.rank or Fraction(0)
        if rank == 1:
            return order_effect(data, bounds, protects, lambda n: (n - place + 1,), place)
        if rank == 0:
            return order_effect(data, bounds, protects, lambda n: (place,), place)
        return order_effect(data, bounds, protects, lambda n: (min(n, max(1, ceil(rank * n))),), 1)

    def reachable(self, counts: Integers) -> list[int]:
        """Return the modes that this data, or data in which one person's row differs, can have; the true one first.

        Only somebody of the true mode can lower it, and the row that comes or changes can raise any one by 1.
        """
        truth = int(np.argmax(counts))
        found = {truth: None}
        lowered = counts - (np.arange(len(counts)) == truth) * bool(counts[truth])
        for start in (counts, lowered):
            found |= dict.fromkeys([int(np.argmax(start))])
            first, best = int(np.argmax(start)), int(start.max())
            places = np.arange(len(counts))
            raised = (start + 1 > best) | ((start + 1 == best) & (places < first))
            found |= dict.fromkeys(np.flatnonzero(raised).tolist())
        return list(found)

    def scores(self, statistics: Statistics) -> tuple[list[int], list[int]]:
        """Return the modes that may be answered and the score of each, in micro-ε. Private."""
        used = np.flatnonzero(self.specification.micro > 0)
        modes = self.reachable(_histogram(statistics)[0][used].sum(axis=0))
        return modes, [0] + [-self.specification.strictest] * (len(modes) - 1)

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        one = self.aggregate
        if one.kind == "mode":
            modes, scores = self.scores(statistics)
            return np.array([float(modes[noise.choose(scores, MICRO, rng)] + one.lower)])
        noisy = [truth + int(noise.discrete_laplace(scale, 1, rng)[0]) for truth, scale in self.centres(statistics)]
        if one.kind in ("count", "people"):
            return np.array(noisy, dtype=np.float64)
        if one.kind == "mean":
            return np.array([float(one.value(Fraction(steps, FINER))) for steps in noisy])
        return np.array([float(one.value(steps)) for steps in noisy])


def _histogram(statistics: Statistics) -> Integers:
    if statistics.histogram is None:
        raise Unsuitable("The engine did not count values.")
    return statistics.histogram


def propose(aggregate: Aggregate, specification: Specification, *, place: int = 1) -> Local:
    """Return the mechanism; refuse, from public information, what it cannot answer."""
    if aggregate.kind not in KINDS:
        named = {"distinct": "number of different keys"}.get(aggregate.kind, aggregate.kind)
        raise Unsuitable(f"Model `individual` does not answer a {named}.")
    if aggregate.rows_per_person > 1:
        raise Unsuitable("Model `individual` answers about tables in which everybody has one row (rows_per_person 1).")
    if aggregate.kind == "mode" and aggregate.groups > 1:
        raise Unsuitable("Model `individual` answers one mode, without groups.")
    if place < 1 or (place > 1 and aggregate.rank not in (0, 1)):
        raise Unsuitable(f"place counts from 1 and is for a minimum or a maximum, got {place!r}.")
    most = 4 * FINER * max(1, aggregate.upper - aggregate.lower, abs(aggregate.lower), abs(aggregate.upper))
    if most * MICRO > LARGEST_SCALE * specification.strictest:
        raise Unsuitable("The noise for the strictest people would be too large to draw. Ask with a larger share.")
    return Local(aggregate=aggregate, specification=specification, place=place)


def coarser(aggregate: Aggregate) -> Aggregate:
    """Return a sum or mean on a grid of about 1,000 steps, whose values can be counted one by one."""
    times = -(-(aggregate.upper - aggregate.lower) // CANDIDATES)
    if aggregate.kind not in ("sum", "mean") or times <= 1:
        return aggregate
    lower, upper = floor(Fraction(aggregate.lower, times)), ceil(Fraction(aggregate.upper, times))
    return replace(aggregate, step=aggregate.step * times, lower=lower, upper=upper)

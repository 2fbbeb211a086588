"""Bands: how the levels of a register are released by `pooled`, from public information only."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from discretion.noise import Floats
from discretion.preference import MICRO, Integers, Specification

MOST_STEPS = 512  # of the ladder that the model is computed on: more levels are merged
FEW = 8  # levels: each is a band of its own, so that no relation hides within one
COUNTS = (3, 4, 5, 6, 8, 12, 16, 24)  # of bands that are tried: two do not show whether a relation is gradual
LAYERS = (3, 4, 5)  # of layers that are tried
POWERS = (0.5, 0.65, 0.8, 0.95)  # bands have equal Σ ε^power: 0 is equal numbers of people, 1 equal budgets
Span = tuple[int, int]  # cohorts from the first up to, not including, the second


@dataclass(frozen=True, kw_only=True)
class Bands:
    """Spans of cohorts, strictest first; people who chose 0 are in none. Each has one release.

    Separate: a span's release is about its own people, each with their ε.
    Layered: it is about them and all less strict people, each with as much of their ε as lies between the largest ε of
    the span before and that of this one. What a person has in all layers together is again their ε.
    """

    spans: tuple[Span, ...]
    layered: bool = False

    def __len__(self) -> int:
        return len(self.spans)

    def weights(self, micro: Integers) -> list[Integers]:
        """Return by release what each cohort gives of its micro-ε. Over all releases it adds up to the cohort's ε."""
        if self.layered:
            tops = [int(micro[last - 1]) for _, last in self.spans]
            return [np.minimum(micro, top) - np.minimum(micro, floor) for floor, top in pairwise([0, *tops])]
        found = []
        for span in self.spans:
            own = np.zeros_like(micro)
            own[slice(*span)] = micro[slice(*span)]
            found.append(own)
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """The levels, merged where there are very many: what the model is computed on. Accuracy only."""

    starts: Integers  # the first cohort of each step
    heads: Integers
    owned: Floats  # ε of all its people together
    cohorts: int

    @cached_property
    def epsilon(self) -> Floats:
        """One person's."""
        return np.asarray(self.owned / np.maximum(self.heads, 1))


@lru_cache(maxsize=64)
def steps_of(specification: Specification) -> Steps:
    """One step a level, or about 512 of equal Σ √ε; people who chose 0 are on one of their own."""
    micro, heads = specification.micro, specification.heads
    starts = np.arange(micro.size)
    if micro.size > MOST_STEPS:
        mass = np.cumsum(heads * np.sqrt(micro))
        place = (mass * (MOST_STEPS / mass[-1])).astype(int)
        starts = np.flatnonzero((np.diff(place, prepend=-1) > 0) | (np.diff(micro == 0, prepend=False)))
    return Steps(
        starts=starts,
        heads=np.add.reduceat(heads, starts),
        owned=np.add.reduceat(heads * micro, starts) / MICRO,
        cohorts=micro.size,
    )


def choices(specification: Specification, bands: int | None = None) -> list[Bands]:
    """Return the different ways to release the levels that are tried, or those with so many bands."""
    return list(dict.fromkeys(_choices(specification, bands)))


def _choices(specification: Specification, bands: int | None) -> Iterator[Bands]:
    steps = steps_of(specification)
    used = np.flatnonzero(steps.owned > 0)
    if bands is None and used.size <= max(COUNTS):
        yield Bands(spans=_spans(steps, used))
        yield _layers(_spans(steps, used), specification)
    if bands is None and used.size <= FEW:
        return
    for count in [count for count in COUNTS if count < used.size] if bands is None else [bands]:
        for power in POWERS:
            mass = steps.heads[used] * steps.epsilon[used] ** power
            place = (np.cumsum(mass) - mass / 2) / mass.sum()
            band = np.minimum((place * count).astype(int), count - 1)
            spans = _spans(steps, used[np.flatnonzero(np.diff(band, prepend=-1))])
            yield Bands(spans=spans)
            if count in LAYERS or bands is not None:
                yield _layers(spans, specification)


def _spans(steps: Steps, firsts: Integers) -> tuple[Span, ...]:
    """The bands that start at these steps, as spans of cohorts."""
    starts = steps.starts[firsts].tolist()
    return tuple(pairwise([*starts, steps.cohorts]))


def _layers(spans: tuple[Span, ...], specification: Specification) -> Bands:
    """Return layers for these spans; one that nobody would have a part in belongs to the one before."""
    micro, heads = specification.micro, specification.heads
    kept = [spans[0]]
    for first, last in spans[1:]:
        floor = micro[kept[-1][1] - 1]
        if micro[last - 1] > floor and heads[micro > floor].any():
            kept.append((first, last))
        else:
            kept[-1] = (kept[-1][0], last)
    return Bands(spans=tuple(kept), layered=True)

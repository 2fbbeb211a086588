"""Pooled joint: every band releases the sums of one column once; count, sum and mean are estimated from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.bands import Bands, choices
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.form import FIRST, ROWS, Form, Part, is_affine, moments, sizes
from discretion.mechanisms.joint import Answers, Derived, Kin, form_choices, line, refuse_ranks
from discretion.mechanisms.level import refuse_nobody
from discretion.mechanisms.linear import refuse_scale
from discretion.mechanisms.pooled import Pooled, deviations, pool_of
from discretion.mechanisms.pooling import Pool
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Statistics


@dataclass(frozen=True, kw_only=True)
class PooledJoint:
    """Release the sums of one column for each band of similar ε, and estimate several aggregates of it from them.

    Definition  The bands of `pooled`; every band releases what `joint` releases with κ = its largest ε. Count, sum and
                mean are what `pooled` makes of the bands' totals.
    Guarantee   ε_u, once for all of them: the theorem of `pooled`, with the law of `joint` in every band.
    Neighbours  presence or value, as the aggregates say.
    Tested by   tests/mechanisms/test_joint.py
    """

    base: Pooled
    missing: Part | None = None  # what rows without a value add, where they are counted
    estimates: tuple[Derived, ...]

    def __post_init__(self) -> None:
        for unit in self.base.units if self.missing is not None else ():
            refuse_scale(self.base.aggregate, unit, self._lacking)

    @property
    def _lacking(self) -> Form:
        return () if self.missing is None else (self.missing,)

    @property
    def guarantee(self) -> Guarantee:
        return self.base.guarantee

    @property
    def scales(self) -> tuple[Any, ...]:
        """Return the noise scale of every part of every band, in the band's units."""
        return (*self.base.scales, *(part.scale * MICRO / unit for part in self._lacking for unit in self.base.units))

    def centres(self, statistics: Statistics, rows: Any = None) -> tuple[Any, ...]:
        """Return the weighted sums of every band before the noise; `rows` counts all rows. Private."""
        if self.missing is None:
            return self.base.centres(statistics)
        lacking = np.asarray(rows).astype(object) - np.asarray(statistics.counts).astype(object)
        return (*self.base.centres(statistics), *self.base.by_band(lacking * self._size))

    @property
    def _size(self) -> int:
        """Return what a row without a value adds: the L1 norm of one with a value."""
        return self.base.aggregate.upper - self.base.aggregate.lower

    def answer(self, statistics: Statistics, rows: Any, rng: Rng) -> Answers:
        """Return the answers and errors of all aggregates, in their order, from one draw."""
        noisy = [
            centre + noise.discrete_laplace(scale, self.base.aggregate.groups, rng).astype(object)
            for centre, scale in zip(self.centres(statistics, rows), self.scales, strict=True)
        ]
        totals = self.base.totals(np.array(noisy, dtype=np.float64).T)
        return [
            pool.answer(self._totals(one.kin, totals)) for one, pool in zip(self.estimates, self.pools, strict=True)
        ]

    def _totals(self, kin: Kin, totals: Floats) -> Floats:
        """Return what one aggregate's pool needs of all noisy totals, by (group, part and band)."""
        bands, form, base = len(self.base.bands), self.base.released, self.base.aggregate
        own = totals[:, : len(form) * bands]
        if not is_affine(kin.aggregate):
            return own
        shaped = own.reshape(len(own), len(form), bands) / sizes(form, base)[:, None]
        found = moments(form, base) @ shaped  # (group, moment, band)
        counted = np.broadcast_to(self.base.pool.owned, found[:, ROWS].shape) if base.size_is_public else found[:, ROWS]
        if kin.wide:
            counted = counted + totals[:, len(form) * bands :] / self._size
        rows, first = line(kin.aggregate, base)
        return np.asarray(rows * counted + first * found[:, FIRST])

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Return what turns the totals into each of the answers."""
        base = self.base
        return tuple(
            _pool(one.kin, base.aggregate, base.released, self.missing, base.specification, base.belief, base.bands)
            for one in self.estimates
        )


def _pool(
    kin: Kin,
    base: Aggregate,
    form: Form,
    missing: Part | None,
    specification: Specification,
    belief: Belief,
    bands: Bands,
) -> Pool:
    if not is_affine(kin.aggregate):
        return pool_of(base, specification, belief, bands, form)
    rows, first = line(kin.aggregate, base)
    lines = moments(form, base) / sizes(form, base)
    factors = np.abs(rows * lines[ROWS] + first * lines[FIRST])
    each = np.array(deviations(form, specification, bands)).reshape(len(form), -1)
    drawn = np.sqrt(np.square(factors[:, None] * each).sum(axis=0))
    if kin.wide and missing is not None:
        more = np.array(deviations((missing,), specification, bands)) / (base.upper - base.lower)
        drawn = np.array([hypot(*pair) for pair in zip(drawn, more, strict=True)])
    return replace(
        pool_of(kin.aggregate, specification, belief, bands, (Part("total", form[0].scale),)),
        deviations=tuple(drawn.tolist()),
    )


def propose(
    kin: Sequence[Kin], grid: Aggregate, specification: Specification, belief: Belief, alone: Sequence[Error]
) -> PooledJoint:
    """Tune a pooled joint release, compared with the errors that the aggregates have alone."""
    refuse_ranks(kin)
    refuse_nobody(specification)
    if belief.assume != "gradual" or any(one.aggregate.kind == "variance" for one in kin):
        raise Unsuitable("It estimates a gradual relation of choices with counts, sums and means.")
    base = replace(grid, kind="mean")
    best: tuple[float, PooledJoint] | None = None
    for form, missing in form_choices(base, any(one.wide for one in kin)):
        for bands in choices(specification):
            pools = [_pool(one, base, form, missing, specification, belief, bands) for one in kin]
            worst = max(
                pool.predicted.ranked / max(error.ranked, 1e-300) for pool, error in zip(pools, alone, strict=True)
            )
            if best is None or worst < best[0]:
                law = Pooled(
                    aggregate=base,
                    specification=specification,
                    bands=bands,
                    belief=belief,
                    form=form,
                    error=pools[0].predicted,
                )
                estimates = tuple(Derived(kin=one, error=pool.predicted) for one, pool in zip(kin, pools, strict=True))
                best = worst, PooledJoint(base=law, missing=missing, estimates=estimates)
    if best is None:
        raise Unsuitable("There are no bands to estimate from.")
    return best[1]

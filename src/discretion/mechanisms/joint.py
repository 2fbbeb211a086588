"""Joint: the sums of one column are released once; its count, sum, mean and variance are all computed from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import hypot
from typing import Any, Protocol

import numpy as np

from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms.accuracy import believed, centre, over, ratio_error, total_error
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.form import FIRST, ROWS, Form, Part, forms, is_affine, shared
from discretion.mechanisms.level import best_level, refuse_nobody
from discretion.mechanisms.linear import Linear, refuse_scale
from discretion.mechanisms.noisy import Noisy
from discretion.mechanisms.scheme import capped
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Pair, Statistics, weigh

Answers = list[tuple[Floats, tuple[Error, ...]]]


@dataclass(frozen=True, kw_only=True)
class Kin:
    """One of the aggregates that are released together."""

    aggregate: Aggregate
    wide: bool = False  # a count of all rows, also of those without a value
    pair: Pair | None = None  # one of nine sums about two columns


@dataclass(frozen=True, kw_only=True)
class Derived:
    """Says how one of them is computed from the noisy moments."""

    kin: Kin
    divisor: float = 1.0  # of a total: micro-ε of weight that count a person once
    offset: float = 0.0  # of a total: steps added for what the weights leave out
    error: Error
    error_at: Callable[..., Error] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Release the weighted sums of one column, and compute several aggregates of it from them.

    Definition  Weights w_u = min(ε_u, κ), κ of the least predicted error, compared with separate releases. Released are
                the sums of a form of the column's mean, or variance if that is asked for too, with the noise of that
                form. If all rows are to be counted and some may have no value, every row without one adds R (R² beside
                Bernstein sums) to a sum of its own, with the same noise. Count, sum, mean and variance are arithmetic
                on these.
    Guarantee   min(ε_u, κ), once for all of them. Theorem: the form's own law (`form.py`), and a row without a value
                has the same L1 norm as one with a value, so it comes, goes or changes at the same cost.
    Neighbours  presence or value, as the aggregates say. With rows without a value, value in one group is as in many:
                a row that changes costs at most what leaves and what comes together, 2R.
    Tested by   tests/mechanisms/test_joint.py
    """

    base: Linear  # the moments: a mean or a variance on the grid that all share
    missing: Part | None = None  # what rows without a value add, where they are counted
    estimates: tuple[Derived, ...]

    @property
    def guarantee(self) -> Guarantee:
        return self.base.guarantee

    @property
    def scales(self) -> tuple[Any, ...]:
        """Return the noise scale of each part, in units."""
        lacking = () if self.missing is None else (self.missing.scale * MICRO / self.base.unit,)
        return (*self.base.scales, *lacking)

    def centres(self, statistics: Statistics, rows: Any = None) -> tuple[Any, ...]:
        """Return the weighted sums before the noise; `rows` counts all rows by (group, cohort). Private."""
        if self.missing is None:
            return self.base.centres(statistics)
        lacking = np.asarray(rows).astype(object) - np.asarray(statistics.counts).astype(object)
        weights = np.array(self.base.weights, dtype=np.int64) // self.base.unit
        return (*self.base.centres(statistics), weigh(lacking * self._size, weights))

    @property
    def _size(self) -> int:
        """Return what a row without a value adds: the L1 norm of one with a value."""
        width = self.base.aggregate.upper - self.base.aggregate.lower
        return width if self.base.aggregate.kind == "mean" else width**2

    def answer(self, statistics: Statistics, rows: Any, rng: Rng) -> Answers:
        """Return the answers and errors of all aggregates, in their order, from one draw."""
        groups = self.base.aggregate.groups
        noisy = [
            np.asarray((centre + noise.discrete_laplace(scale, groups, rng).astype(object)) * self.base.unit, float)
            for centre, scale in zip(self.centres(statistics, rows), self.scales, strict=True)
        ]
        found = self.base.moments(np.array(noisy[: len(self.base.released)]))
        lacking = noisy[-1] / self._size if self.missing is not None else np.zeros(groups)
        return [self._answer(one, found, lacking) for one in self.estimates]

    def _answer(self, one: Derived, found: Floats, lacking: Floats) -> tuple[Floats, tuple[Error, ...]]:
        asked = one.kin.aggregate
        if not is_affine(asked):
            grid = replace(self.base.aggregate, kind=asked.kind, sample=asked.sample)
            return replace(self.base, aggregate=grid, error=one.error, error_at=one.error_at).ratio(found)
        rows, first = line(asked, self.base.aggregate)
        totals = rows * (found[ROWS] + lacking * one.kin.wide) + first * found[FIRST]
        steps = totals / one.divisor + one.offset
        people = self.base.specification.size
        if asked.kind == "mean":
            values = float(asked.origin) + float(asked.step) * steps / people
        else:
            values = float(asked.origin) * people * asked.size_is_public + float(asked.step) * steps
        if one.error_at is None:
            return values, (one.error,) * len(values)
        return values, tuple(one.error_at(value=value) for value in values.tolist())


class Released(Protocol):
    """A release that several aggregates are computed from."""

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def estimates(self) -> tuple[Derived, ...]: ...

    def answer(self, statistics: Any, rows: Any, rng: Rng) -> Answers: ...


@dataclass(frozen=True, kw_only=True)
class JointMember:
    """One aggregate's view of a joint release: its error and what the engine must compute for it."""

    joint: Released
    place: int

    @property
    def guarantee(self) -> Guarantee:
        """Return that of the whole release, which is charged once."""
        return self.joint.guarantee

    @property
    def aggregate(self) -> Aggregate:
        return self.joint.estimates[self.place].kin.aggregate

    @property
    def measure(self) -> Measure:
        return Measure(aggregate=self.aggregate, histogram=self.aggregate.kind == "quantile")

    @property
    def error(self) -> Error:
        return self.joint.estimates[self.place].error

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        raise Unsuitable("It is released together with others: releasing it alone would draw, and cost, again.")


def line(asked: Aggregate, base: Aggregate) -> tuple[float, float]:
    """Return a count's or total's steps as so many times the rows, and so many times Σx, x on the grid of `base`."""
    if asked.kind == "count":
        return 1.0, 0.0
    middle = base.value(base.lower) + base.value(base.upper)
    half = base.step * (base.upper - base.lower)
    return float((middle / 2 - asked.origin) / asked.step), float(half / 2 / asked.step)


def propose(
    kin: Sequence[Kin], grid: Aggregate, specification: Specification, belief: Belief, alone: Sequence[Error]
) -> Joint:
    """Tune a joint release on the grid of `grid`, compared with the errors that the aggregates have alone."""
    refuse_ranks(kin)
    refuse_nobody(specification)
    varies = any(one.aggregate.kind == "variance" for one in kin)
    base = replace(grid, kind="variance" if varies else "mean", sample=False)
    if base.upper == base.lower:
        raise Unsuitable("Nothing can vary within these bounds.")
    tried = [
        best_level("best", specification, partial(_scored, kin, base, form, lacking, specification, belief, alone))
        for form, lacking in form_choices(base, any(one.wide for one in kin))
    ]
    return min(tried, key=lambda found: found.error.total).joint


def refuse_ranks(kin: Sequence[Kin]) -> None:
    """Refuse quantiles: no sum says where they lie."""
    if any(one.aggregate.kind == "quantile" for one in kin):
        raise Unsuitable("It releases sums, and no quantile follows from those.")


def form_choices(base: Aggregate, wide: bool) -> list[tuple[Form, Part | None]]:
    """Return what may be released, and the part of rows without a value if they are counted."""
    if wide:
        form = shared(base)
        return [(form, Part("count", form[0].scale))]
    if base.kind == "mean" and base.size_is_public:
        return [((Part("centred", 2 * forms(base)[0][0].scale),), None)]  # 2z − lower − upper moves twice as far as z
    return [(form, None) for form in forms(base)]


@dataclass(frozen=True, kw_only=True)
class _Scored:
    joint: Joint
    error: Error  # noise: the worst ratio to the error of an aggregate alone


def _scored(
    kin: Sequence[Kin],
    base: Aggregate,
    form: Form,
    lacking: Part | None,
    specification: Specification,
    belief: Belief,
    alone: Sequence[Error],
    kappa: int,
) -> _Scored:
    weights = capped(specification, kappa)
    law = Linear(
        aggregate=base,
        specification=specification,
        weights=tuple(weights.tolist()),
        form=form,
        error=Error(bias=0.0, noise=0.0),
    )
    if lacking is not None:
        refuse_scale(base, law.unit, (lacking,))
    estimates = tuple(_estimate(one, law, lacking, belief, weights) for one in kin)
    ratios = [one.error.ranked / max(error.ranked, 1e-300) for one, error in zip(estimates, alone, strict=True)]
    joint = Joint(base=law, missing=lacking, estimates=estimates)
    return _Scored(joint=joint, error=Error(bias=0.0, noise=max(ratios)))


def _estimate(kin: Kin, law: Linear, lacking: Part | None, belief: Belief, weights: Integers) -> Derived:
    asked, base, specification = kin.aggregate, law.aggregate, law.specification
    rounding = float(base.step) / 2 if base.step > asked.step and asked.kind != "count" else 0.0
    if not is_affine(asked):
        grid = replace(base, kind=asked.kind, sample=asked.sample)
        at = partial(_ratio_error, grid, specification, belief, weights.astype(np.float64), law.released, rounding)
        return Derived(kin=kin, error=at(), error_at=at)
    noisy = Noisy.of(base, law.released, 1.0)  # at a weight of one micro-ε
    rows, first = line(asked, base)
    deviation = float(noisy.deviation(rows, first, 0.0))
    if kin.wide and lacking is not None:
        deviation = hypot(deviation, float(lacking.scale) * 2**0.5 * MICRO / _norm(base))
    people, owned = specification.size, over(specification.heads, weights.astype(np.float64))
    middle, means = float(centre(asked, belief)), believed(asked, belief)
    half = max(middle - means.low, means.high - middle)
    # As `weighted.worst_case_cap` for given weights: whoever is above the cap counts once at most.
    least = (deviation**2 / half**2 + owned**2) / (people * owned) if half > 0 else 0.0
    shrunk = max(float(weights.max()), least)
    tried = [(shrunk, middle * (people - owned / shrunk))]
    if belief.beta is not None:
        tried.append((owned / people, 0.0))
    rounding *= 1 if asked.kind == "mean" else people
    found = []
    for divisor, offset in tried:
        at = partial(
            _total_error,
            rounding,
            asked,
            specification,
            belief,
            weights / divisor,
            offset=offset,
            variance=(deviation / divisor) ** 2,
        )
        told = None if belief.beta is None else at
        found.append(Derived(kin=kin, divisor=divisor, offset=offset, error=at(), error_at=told))
    return min(found, key=lambda one: one.error.ranked)


def _total_error(rounding: float, *what: Any, **how: Any) -> Error:
    """Return a total's error; on a grid coarser than its own it may be off by half a step a person more."""
    return _rounded(total_error(*what, **how), rounding)


def _rounded(error: Error, rounding: float) -> Error:
    expected = None if error.expected is None else error.expected + rounding
    return replace(error, bias=error.bias + rounding, expected=expected)


def _norm(base: Aggregate) -> float:
    return float(base.upper - base.lower) ** (1 if base.kind == "mean" else 2)


def _ratio_error(
    grid: Aggregate,
    specification: Specification,
    belief: Belief,
    weights: Floats,
    form: Form,
    rounding: float,
    part: float | None = None,
    near: float | None = None,
) -> Error:
    """Return a ratio's error; a mean on a grid coarser than its own may be off by half a step more."""
    error = ratio_error(grid, specification, belief, weights, form, 0.0, part, near)
    return _rounded(error, rounding * (grid.kind == "mean"))

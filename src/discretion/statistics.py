"""What is asked of the engine and what it answers: whole numbers by group and cohort, never rows."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10, sqrt
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.preference import Integers

Kind = Literal["count", "people", "sum", "mean", "variance", "quantile", "mode", "distinct"]
Described = TypeVar("Described", covariant=True)  # how an engine describes rows
KINDS: tuple[Kind, ...] = ("count", "people", "sum", "mean", "variance", "quantile", "mode", "distinct")

MOST_STEPS = 10**6  # grid steps a sum is rounded to: far finer than any noise
LARGEST_MOVE = 10**9  # the most steps one person may move a total, so that the noise stays in range
FINEST_PAIR, COARSEST_PAIR = 10**6, 10**3  # steps of the grid of a sum about two columns
CANDIDATES = 1_000  # answers a quantile chooses among, unless a grid is declared
MOST_CELLS = 1_000_000  # of a histogram, groups times candidates


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One aggregate as planner and mechanisms see it: its public shape, no column and no data.

    A row's value is put on a grid before anything else: step number z stands for origin + step·z. A value goes to the
    nearest step, half a step away from 0, and z is clamped to lower..upper. A count is the sum of ones (lower 0, upper
    1).
    """

    kind: Kind
    protects: Protects
    lower: int = 0
    upper: int = 1
    origin: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    groups: int = 1
    rows_per_person: int = 1
    complete: bool = False  # everybody in the register has exactly one row with a value: n is public
    rank: Fraction | None = None  # for a quantile: 0 is the minimum, 1/2 the median, 1 the maximum
    sample: bool = False  # for a variance: divide by n − 1 instead of n
    rounding: Fraction = Fraction(0)  # the most by which the grid moves a value; 0 if all values are on it

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidDeclaration(f"An aggregate must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        if self.lower > self.upper:
            raise InvalidDeclaration(
                f"Bounds must ascend, got {float(self.value(self.lower)):g} to {float(self.value(self.upper)):g}."
            )
        if self.groups < 1 or self.rows_per_person < 1 or self.step <= 0:
            raise InvalidDeclaration("An aggregate needs at least one group, one row a person and a step above 0.")
        if (self.rank is None) == (self.kind == "quantile") or not 0 <= (self.rank or 0) <= 1:
            raise InvalidDeclaration(f"A quantile needs a rank from 0 to 1, and only a quantile, got {self.rank}.")
        if self.sample and self.kind != "variance":
            raise InvalidDeclaration(f"Only a variance has a sample version, got a {self.kind}.")
        if self.complete and (self.protects != "value" or self.rows_per_person != 1):
            raise InvalidDeclaration("Only a table that protects values, one row a person, has a public size.")

    def __hash__(self) -> int:
        """Return the hash of the whole numbers alone: plans look an aggregate up often, and fractions are slow."""
        return hash((self.kind, self.protects, self.lower, self.upper, self.groups, self.rows_per_person))

    def value(self, steps: Fraction | int) -> Fraction:
        """Return what a number of grid steps stands for."""
        return self.origin + self.step * steps

    def nearest(self, value: Fraction | int) -> int:
        """Return the grid step of a value: rounded half away from 0, like ROUND in SQL, then clamped."""
        steps = (value - self.origin) / self.step
        rounded = floor(abs(steps) + Fraction(1, 2)) * (1 if steps >= 0 else -1)
        return min(max(rounded, self.lower), self.upper)

    @property
    def size_is_public(self) -> bool:
        """Return whether the number of rows is public: everybody counts once, and there is one group."""
        return self.complete and self.groups == 1

    @property
    def person_range(self) -> tuple[int, int]:
        """The least and the most one person can add to one group's total, in steps."""
        if self.kind == "people":
            return 0, 1
        if self.size_is_public:
            return self.lower, self.upper
        return self.rows_per_person * min(self.lower, 0), self.rows_per_person * max(self.upper, 0)

    @property
    def sensitivity(self) -> int:
        """The most one person can move the vector of group totals, in steps (L1); DESIGN: sensitivities."""
        low, high = self.person_range
        if self.kind == "people":
            touched = min(self.rows_per_person, self.groups)
            return touched if self.protects == "presence" else min(2 * touched, self.groups)
        if self.kind == "distinct":  # keys that occur: see mechanisms/occurrence.py
            moves = self.rows_per_person * (2 if self.protects == "value" and self.groups > 1 else 1)
            return min(moves, self.groups * (self.upper - self.lower + 1))
        if self.groups == 1:
            return max(-low, high) if self.protects == "presence" else high - low
        largest = self.rows_per_person * max(abs(self.lower), abs(self.upper))
        return largest if self.protects == "presence" else 2 * largest


def gridded(
    kind: Kind, low: Fraction, high: Fraction, *, whole: bool, step: Fraction | None = None, **shape: Any
) -> Aggregate:
    """Return the aggregate about numbers clamped to `low`..`high`, with the grid that every engine uses.

    `whole`: the values are whole numbers by their type. `step` is declared for the candidate answers of a quantile;
    the other kinds choose one so fine that rounding is negligible.
    """
    if kind == "quantile":
        every = whole and low.denominator == 1 and high - low <= CANDIDATES
        origin, step = low, step or (Fraction(1) if every else (high - low) / CANDIDATES)
        lower, upper = 0, max(1, floor((high - low) / step))
    else:
        # A sum starts at 0, where a missing value adds nothing; a mean or variance is taken around the middle, where
        # steps are smallest.
        middle = (low + high) / 2
        origin = Fraction(0) if kind == "sum" else Fraction(floor(middle)) if whole else middle
        step = _sum_step(kind, whole, low - origin, high - origin, shape.get("rows_per_person", 1))
        lower, upper = floor((low - origin) / step), ceil((high - origin) / step)
    exact = whole and (1 / step).denominator == 1 and (origin / step).denominator == 1
    rounding = Fraction(0) if exact else max(step / 2, high - origin - step * upper)  # the last step may not reach it
    return Aggregate(kind=kind, lower=lower, upper=upper, origin=origin, step=step, rounding=rounding, **shape)


def _sum_step(kind: Kind, whole: bool, low: Fraction, high: Fraction, rows_per_person: int) -> Fraction:
    """Return a power of ten, or half or a fifth of one: fine next to the noise, coarse enough for the sampler."""
    room = LARGEST_MOVE / (2 * rows_per_person)  # twice: under value a person leaves one group for another
    # The width is twice the largest number. The noise of a mean spans up to 2.4 times the width, times rows_per_person;
    # that of a variance up to five times its square (linear._rates).
    most = min(10 * MOST_STEPS, {"mean": room / 4, "variance": sqrt(room / 10)}.get(kind, room))
    finest = max(float(max(abs(low), abs(high))) / most, float(high - low) / (10 * MOST_STEPS))
    step = Fraction(10) ** ceil(log10(finest))
    if kind == "variance":  # rounding adds to it, so no room is given away
        step = next((step / part for part in (5, 2) if step / part >= finest), step)
    return max(step, Fraction(1)) if whole else step


PairStatistic = Literal["covariance", "sample covariance", "correlation", "slope", "intercept"]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One of nine sums about two columns, and the statistic that is shown in its place, computed from all nine."""

    part: int
    statistic: PairStatistic | None = None
    x: tuple[float, float]  # bounds
    y: tuple[float, float]


def pair_sum(*, protects: Protects, groups: int = 1, rows_per_person: int = 1) -> Aggregate | None:
    """Return the shape of each of nine sums about two columns; None if one person has too many rows for its grid."""
    steps = min(FINEST_PAIR, LARGEST_MOVE // (4 * rows_per_person))
    if steps < COARSEST_PAIR:
        return None
    return Aggregate(
        kind="sum",
        protects=protects,
        upper=steps,
        step=Fraction(1, steps),
        groups=groups,
        rows_per_person=rows_per_person,
    )


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One aggregate of a question: what the question calls it, and its public shape."""

    text: str
    aggregate: Aggregate
    pair: Pair | None = None  # for a sum about two columns: which, and what for


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Says what one mechanism needs of the engine for one aggregate."""

    aggregate: Aggregate
    histogram: bool = False  # counts by grid value too; otherwise counts, totals and, for a variance, squares
    inclusion: tuple[int, ...] | None = None  # coin thresholds by cohort, where the mechanism samples people


@dataclass(frozen=True, kw_only=True)
class Request(Generic[Described]):
    """Says what the engine must compute, in one pass where it can: statistics for every measure."""

    measures: tuple[Measure, ...]
    source: Described  # which rows: of a database, an `engines.Rows`


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistics:
    """Says what the engine computed for one measure. Private until a mechanism has released it."""

    counts: Integers  # (group, cohort): rows with a value; for `people`, people
    totals: Any = None  # (group, cohort): sum of grid steps, Python integers
    squares: Any = None  # (group, cohort): sum of squared grid steps, Python integers
    histogram: Integers | None = None  # (group, cohort, grid value from lower to upper): rows

    def __repr__(self) -> str:
        return f"Statistics(groups={self.counts.shape[0]}, cohorts={self.counts.shape[1]}, private)"


def weigh(matrix: Any, weights: Integers) -> Any:
    """Σ_c weight_c · matrix[..., c] in whole numbers of any size."""
    return np.asarray(matrix).astype(object) @ weights.astype(object)

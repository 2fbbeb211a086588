"""What is asked of the engine and what it answers: whole numbers by group and cohort, never rows."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.preference import Integers

Kind = Literal["count", "people", "sum", "mean", "variance", "quantile", "mode"]
Described = TypeVar("Described", covariant=True)  # how an engine describes rows
KINDS: tuple[Kind, ...] = ("count", "people", "sum", "mean", "variance", "quantile", "mode")


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One aggregate as planner and mechanisms see it: its public shape, no column and no data.

    A row's value is put on a grid before anything else: step number z stands for origin + step·z, and z is
    clamped to lower..upper. A count is the sum of ones (lower 0, upper 1).
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
    rank: Fraction | None = None  # for a quantile: 0 is the minimum, 1/2 the lower median, 1 the maximum
    sample: bool = False  # for a variance: divide by n − 1 instead of n

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

    def value(self, steps: Fraction | int) -> Fraction:
        """What a number of grid steps stands for."""
        return self.origin + self.step * steps

    @property
    def size_is_public(self) -> bool:
        """Whether everybody known counts once in the one group; how many are in each of many groups is secret."""
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
        if self.groups == 1:
            return max(-low, high) if self.protects == "presence" else high - low
        largest = self.rows_per_person * max(abs(self.lower), abs(self.upper))
        return largest if self.protects == "presence" else 2 * largest


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What one mechanism needs of the engine for one aggregate."""

    aggregate: Aggregate
    histogram: bool = False  # counts by grid value too; otherwise counts, totals and, for a variance, squares
    inclusion: tuple[int, ...] | None = None  # coin thresholds by cohort, where the mechanism samples people


@dataclass(frozen=True, kw_only=True)
class Request(Generic[Described]):
    """What the engine must compute, in one pass where it can: statistics for every measure."""

    measures: tuple[Measure, ...]
    source: Described  # which rows: of a database, an `engines.Rows`


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistics:
    """What the engine computed for one measure. Private until a mechanism has released it."""

    counts: Integers  # (group, cohort): rows with a value; for `people`, people
    totals: Any = None  # (group, cohort): sum of grid steps, Python integers
    squares: Any = None  # (group, cohort): sum of squared grid steps, Python integers
    histogram: Integers | None = None  # (group, cohort, grid value from lower to upper): rows

    def __repr__(self) -> str:
        return f"Statistics(groups={self.counts.shape[0]}, cohorts={self.counts.shape[1]}, private)"


def weigh(matrix: Any, weights: Integers) -> Any:
    """Σ_c weight_c · matrix[..., c] in whole numbers of any size."""
    return np.asarray(matrix).astype(object) @ weights.astype(object)

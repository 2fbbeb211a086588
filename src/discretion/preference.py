"""Preferences: what people chose, and how many chose the same.

Money is whole micro-ε from here on: an allowance is rounded down when it enters, a charge is rounded up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discretion.errors import InvalidPreference

MICRO = 1_000_000  # micro-ε in one ε
LARGEST_EPSILON = 1_000.0  # an ε beyond this protects nobody and only invites overflow

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Preference:
    """A privacy choice people can make: the most ε all releases together may cost them."""

    name: str
    epsilon: float

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon) and 0 <= self.epsilon <= LARGEST_EPSILON):  # 0: never use my data
            raise InvalidPreference(
                f"Preference {self.name!r} must have an epsilon from 0 to {LARGEST_EPSILON:g}, got {self.epsilon!r}."
            )


def allowance(epsilon: ArrayLike) -> Integers:
    """Whole micro-ε, rounded down; 0.29 is 290,000 although its double lies a hair below."""
    values = epsilons(epsilon)
    if not bool(np.all(np.isfinite(values) & (values >= 0) & (values <= LARGEST_EPSILON))):
        raise InvalidPreference(
            f"Every epsilon must be a number from 0 (never use my data) to {LARGEST_EPSILON:g}. At least one is "
            "missing, negative, infinite or too large. Give everybody a value, or set a default level."
        )
    scaled = values * MICRO
    nearest = np.rint(scaled)
    is_decimal = np.abs(scaled - nearest) <= 4 * np.spacing(np.maximum(scaled, 1.0))
    return np.where(is_decimal, nearest, np.floor(scaled)).astype(np.int64)


def epsilons(chosen: ArrayLike | Sequence[str] | str, levels: Mapping[str, float] | None = None) -> NDArray[np.float64]:
    """Return what one person or everybody chose as numbers; `levels` says what the names of levels stand for."""
    given = np.asarray(chosen)
    if levels is not None:
        return np.array(_named(given.ravel().tolist(), levels), dtype=np.float64).reshape(given.shape)
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidPreference(
            "epsilon must be numbers or names of levels. Say what each name is worth: levels={'strict': 0.1, ...}."
        ) from None


def round_down(micro_epsilon: Integers, menu: Iterable[float]) -> Integers:
    """The largest level of `menu` that nobody's choice exceeds; below them all, 0: left out."""
    levels = np.unique(np.concatenate([[0], allowance(sorted(menu))]))
    return levels[np.searchsorted(levels, micro_epsilon, side="right") - 1]


@dataclass(frozen=True, kw_only=True)
class Specification:
    """The preferences in force: cohorts of people who have the same ε available.

    It comes from the register, never from the rows present, and is public. A cohort is named by its place: amounts
    that were divided and rounded down may be equal.
    """

    epsilons: tuple[int, ...]  # micro-ε available to each cohort, ascending
    people: tuple[int, ...]  # head-count of each cohort over the register

    def __post_init__(self) -> None:
        if not self.epsilons or len(self.epsilons) != len(self.people):
            raise InvalidPreference(
                f"A specification needs one head-count per cohort and at least one cohort, got "
                f"{len(self.epsilons)} cohorts and {len(self.people)} head-counts."
            )
        if any(a > b for a, b in zip(self.epsilons, self.epsilons[1:], strict=False)):
            raise InvalidPreference("The cohorts of a specification must ascend in epsilon.")
        if self.epsilons[0] < 0 or min(self.people) < 0:
            raise InvalidPreference("A specification must have no negative epsilon and no negative head-count.")

    @classmethod
    def of(cls, cohorts: Iterable[tuple[int, int]]) -> "Specification":
        """From (micro-ε available, head-count) pairs in any order; equal levels are merged."""
        heads: dict[int, int] = {}
        for micro_epsilon, people in cohorts:
            heads[micro_epsilon] = heads.get(micro_epsilon, 0) + people
        levels = sorted(heads)
        return cls(epsilons=tuple(levels), people=tuple(heads[level] for level in levels))

    @classmethod
    def assign(
        cls,
        epsilon: ArrayLike | Sequence[str],
        *,
        levels: Mapping[str, float] | None = None,
        menu: Iterable[float] | None = None,
    ) -> tuple["Specification", Integers]:
        """From one ε (or one name of `levels`) per person; also each person's cohort, by number."""
        micro_epsilon = allowance(epsilons(epsilon, levels))
        if micro_epsilon.ndim != 1 or micro_epsilon.size == 0:
            raise InvalidPreference(
                f"There must be one epsilon per person in one dimension, got shape {micro_epsilon.shape}."
            )
        if menu is not None:
            micro_epsilon = round_down(micro_epsilon, menu)
        found, cohort, people = _grouped(micro_epsilon)
        specification = cls(epsilons=tuple(found.tolist()), people=tuple(people.tolist()))
        return specification, cohort

    def divided(self, parts: int) -> "Specification":
        """Return the same people with one of so many equal parts to spend, rounded down."""
        return self if parts == 1 else replace(self, epsilons=tuple(level // parts for level in self.epsilons))

    def times(self, weight: int) -> "Specification":
        """The same people with `weight` times as much to spend."""
        return self if weight == 1 else replace(self, epsilons=tuple(weight * level for level in self.epsilons))

    @cached_property
    def size(self) -> int:
        """Return how many people the register holds, those who chose 0 included."""
        return sum(self.people)

    @cached_property
    def micro(self) -> Integers:
        """The cohorts' ε as an array, in micro-ε."""
        return _frozen(self.epsilons)

    @cached_property
    def heads(self) -> Integers:
        """The cohorts' head-counts as an array."""
        return _frozen(self.people)

    @property
    def strictest(self) -> int:
        """The smallest ε above 0, in micro-ε: plain DP would have to use it for everybody."""
        positive = [level for level in self.epsilons if level > 0]
        if not positive:
            raise InvalidPreference(
                "Somebody must have an epsilon above 0; everybody's is 0 (never use my data), spent, or below a "
                "millionth for each part of the question."
            )
        return positive[0]

    def __str__(self) -> str:
        shown = ", ".join(
            f"{people:,} at ε={micro_epsilon / MICRO:g}"
            for micro_epsilon, people in list(zip(self.epsilons, self.people, strict=True))[:6]
        )
        more = f", ... ({len(self.epsilons)} levels)" if len(self.epsilons) > 6 else ""
        return f"{self.size:,} people: {shown}{more}"


def _grouped(micro_epsilon: Integers) -> tuple[Integers, Integers, Integers]:
    """The levels, each person's place among them, and their head-counts; by counting where ε is small, else sorting."""
    if micro_epsilon.max() > 4 * MICRO:
        found, cohort, people = np.unique(micro_epsilon, return_inverse=True, return_counts=True)
        return found, cohort.astype(np.int64), people
    heads = np.bincount(micro_epsilon)
    found = np.flatnonzero(heads)
    return found, (np.cumsum(heads > 0) - 1)[micro_epsilon], heads[found]


def _frozen(values: Sequence[int]) -> Integers:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array


def _named(names: Any, levels: Mapping[str, float]) -> list[float]:
    preferences = {name: Preference(name=name, epsilon=epsilon).epsilon for name, epsilon in levels.items()}
    try:
        return [preferences[str(name)] for name in names]
    except KeyError:
        raise InvalidPreference(
            f"epsilon has a name that is not in levels, which has {', '.join(map(repr, preferences))}."
        ) from None

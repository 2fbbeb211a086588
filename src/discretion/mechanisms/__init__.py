"""Mechanisms turn statistics into a private answer. This file has the protocol and the one list of them.

A mechanism's file defines a frozen class whose docstring states Definition, Guarantee, Neighbours and Tested by, and
a function `propose(aggregate, specification, belief, **options)` that tunes it from public information only: it
returns a mechanism that is complete, or raises `Unsuitable` with the reason.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms import (
    exponential,
    joint,
    minimum,
    nested_rank,
    partition,
    pooled,
    pooled_joint,
    public,
    sample,
    smooth,
    stretch,
    threshold,
    weighted,
    weighted_rank,
)
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.joint import Kin, Released
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.partition import Partition
from discretion.mechanisms.pooled import Pooled
from discretion.noise import Floats, Rng
from discretion.preference import Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Measure, Statistics

TINY = 1e-300  # instead of an error of 0


class Mechanism(Protocol):
    """Statistics in, private answer out. Knows mathematics; knows nothing of SQL, rows or balances."""

    @property
    def guarantee(self) -> Guarantee:
        """Return what it costs each cohort: exactly what is charged."""

    @property
    def measure(self) -> Measure:
        """Return what the engine must compute for it."""

    @property
    def error(self) -> Error:
        """Return how good the answer will be, from public information only."""

    def release(self, statistics: Statistics, rng: Rng) -> Floats:
        """The private answer, one number a group, in the units of the data."""


# Tune one mechanism for one aggregate, or raise `Unsuitable`: (aggregate, specification, belief, **its own options).
Propose = Callable[..., Mechanism]

MECHANISMS: dict[str, Propose] = {
    "public": public.propose,
    "weighted": weighted.propose,
    "pooled": pooled.propose,
    "weighted_rank": weighted_rank.propose,
    "stretch": stretch.propose,
    "sample": sample.propose,
    "threshold": threshold.propose,
    "exponential": exponential.propose,
    "minimum": minimum.propose,
    "partition": partition.propose,  # after those it equals where there is one level only
    "smooth": smooth.propose,
}

# Mechanisms without exact arithmetic: only used by name, so they are not tuned for "auto".
BY_NAME = {"smooth"}

# Tune one release for several aggregates: (aggregates, the one whose grid they share, specification, belief, errors).
JOINT: dict[str, Callable[..., Released]] = {
    "joint": joint.propose,
    "pooled_joint": pooled_joint.propose,
    "nested_rank": nested_rank.propose,
}

TOGETHER = (*JOINT, "paired")  # by name, for all aggregates of a question


def answer(mechanism: Mechanism, statistics: Statistics, rng: Rng = None) -> tuple[Floats, tuple[Error, ...]]:
    """The private answers and their errors, one a group; the release itself may tell more than was predicted."""
    if isinstance(mechanism, Linear | Pooled | Partition):
        return mechanism.answer(statistics, rng)
    released = mechanism.release(statistics, rng)
    return released, (mechanism.error,) * len(released)


def together(
    kin: Sequence[Kin],
    grid: Aggregate,
    specification: Specification,
    belief: Belief,
    alone: Sequence[Error],
    forced: str = "",
) -> tuple[str, Released] | None:
    """Return the joint release of least predicted errors by its name, or None if an aggregate is as good alone.

    `forced` names the only one that is wanted, better or not.
    """
    found: list[tuple[float, str, Released]] = []
    for name, propose in JOINT.items():
        if forced not in ("", name):
            continue
        with suppress(Unsuitable):
            made = propose(kin, grid, specification, belief, alone)
            pairs = zip(made.estimates, alone, strict=True)
            found.append((max(one.error.ranked / max(error.ranked, TINY) for one, error in pairs), name, made))
    worst, name, best = min(found, default=(1.0, "", None), key=lambda one: one[0])
    return (name, best) if (worst < 1 or forced) and best is not None else None


__all__ = ["BY_NAME", "JOINT", "MECHANISMS", "TOGETHER", "Belief", "Mechanism", "Propose", "answer", "together"]

"""People: whose rows these are, and what each of their owners may lose. No row's values are read here."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discretion import noise
from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.guarantee import Arithmetic, Guarantee, Loss, Protects
from discretion.noise import Floats, Rng
from discretion.preference import Integers, Specification, allowance


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """The owners of the rows at hand, and the public specification their allowances belong to.

    Under value the owners present are the register. Under presence the register is larger and given apart, so that
    nothing public depends on who is there.
    """

    specification: Specification  # public
    protects: Protects
    cohort: Integers  # of each person present, by number
    person: Integers  # the owner of each row, by number
    several: bool  # a person may own any number of rows; otherwise each owns at most one
    fits: int = 1  # how many releases share the allowance

    @cached_property
    def spends(self) -> Specification:
        """Return what each cohort may spend on one release."""
        return self.specification.divided(self.fits)

    @property
    def row_cohort(self) -> Integers:
        """The cohort of each row's owner."""
        return np.asarray(self.cohort[self.person])

    @property
    def rows_each(self) -> Integers:
        """For each row, how many rows its owner has. Private."""
        return np.asarray(np.bincount(self.person, minlength=self.cohort.size)[self.person])

    @property
    def votes(self) -> Floats:
        """One vote a person, shared equally by their rows: a person moves a sum of votes as far as one row can."""
        return np.asarray(1.0 / self.rows_each)

    def guarantee(
        self, micro_epsilon: Any, *, arithmetic: Arithmetic, pico_delta: int = 0, note: str = ""
    ) -> Guarantee:
        """Return what it costs to spend these micro-ε, by cohort; δ only where there is an ε."""
        losses = {cohort: Loss(int(spent), pico_delta if spent else 0) for cohort, spent in enumerate(micro_epsilon)}
        return Guarantee(protects=self.protects, losses=losses, arithmetic=arithmetic, note=note)

    def owning(self, rows: NDArray[np.bool_]) -> "People":
        """Return the same people as owners of these rows only; what is public about them stays."""
        return replace(self, person=self.person[rows])

    def kept(self, inclusion: tuple[int, ...], rng: Rng) -> Integers:
        """The rows of the people their coins keep; one coin a person, against the threshold of their cohort."""
        stays = noise.keep(noise.coins(self.cohort.size, rng), inclusion, self.cohort)
        return np.flatnonzero(stays[self.person])

    def bounded(self, rows_per_person: int, rng: Rng) -> Integers:
        """At most so many rows of each person, chosen at random."""
        order = np.lexsort((noise.coins(self.person.size, rng), self.person))
        owner = self.person[order]
        place = np.arange(owner.size) - np.searchsorted(owner, owner)  # of the row among its owner's
        return np.sort(order[place < rows_per_person])


def people(
    epsilon: ArrayLike,
    rows: int,
    *,
    protects: Protects = "value",
    groups: ArrayLike | None = None,
    register: Specification | ArrayLike | None = None,
    fits: int = 1,
) -> People:
    """From one ε a row (or one for everybody), and the owner of each row where somebody owns several."""
    if protects not in ("value", "presence"):
        raise InvalidDeclaration(f"protects must be 'value' or 'presence', got {protects!r}.")
    if not (isinstance(fits, int) and fits >= 1):
        raise InvalidDeclaration(f"fits must be a whole number of 1 or more, got {fits!r}.")
    micro_epsilon = allowance(epsilon)
    if micro_epsilon.ndim == 0:
        micro_epsilon = np.full(rows, micro_epsilon)
    if micro_epsilon.shape != (rows,):
        raise InvalidPreference(
            f"There must be one epsilon per row, {rows:,} in one dimension, got shape {micro_epsilon.shape}."
        )
    person, first = _owners(groups, rows)
    choices = micro_epsilon[first]
    if bool(np.any(choices[person] != micro_epsilon)):
        raise InvalidPreference("All rows of a person must carry the same epsilon, got somebody with two or more.")
    specification, cohort = _cohorts(choices, protects, register)
    return People(
        specification=specification,
        protects=protects,
        cohort=cohort,
        person=person,
        several=groups is not None,
        fits=fits,
    )


def _owners(groups: ArrayLike | None, rows: int) -> tuple[Integers, Integers]:
    """The number of each row's owner, and each owner's first row."""
    if groups is None:
        return np.arange(rows), np.arange(rows)
    owners = np.asarray(groups)
    if owners.shape != (rows,):
        raise InvalidDeclaration(f"groups must name the person of each of the {rows:,} rows, got shape {owners.shape}.")
    _, first, person = np.unique(owners, return_index=True, return_inverse=True)
    return person.astype(np.int64), first.astype(np.int64)


def _cohorts(
    choices: Integers, protects: Protects, register: Specification | ArrayLike | None
) -> tuple[Specification, Integers]:
    if protects == "value":
        if register is not None:
            raise InvalidDeclaration("register is for protects='presence': under value the people present are public.")
        levels, cohort, heads = np.unique(choices, return_inverse=True, return_counts=True)
        return Specification(epsilons=tuple(levels.tolist()), people=tuple(heads.tolist())), cohort.astype(np.int64)
    if register is None:
        raise InvalidDeclaration(
            "protects='presence' needs register=: the epsilon of everybody who could be in the data. The people "
            "present are secret, so nothing may be tuned to them."
        )
    known = register if isinstance(register, Specification) else Specification.assign(register)[0]
    cohort = np.searchsorted(known.micro, choices)
    if bool(np.any(known.micro[np.minimum(cohort, known.micro.size - 1)] != choices)):
        raise InvalidPreference("Every epsilon must be one that the register offers, got at least one other.")
    return known, cohort.astype(np.int64)

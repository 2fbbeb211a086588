"""Guarantee: what a release promises to whom, which is also what it costs them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import ceil
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from discretion.errors import InvalidDeclaration
from discretion.preference import MICRO, Specification

Model = Literal["personalized", "individual"]
Protects = Literal["presence", "value"]
Unit = Literal["person", "row", "item"]
Arithmetic = Literal["exact", "float"]

PICO = 1_000_000_000_000  # pico-δ in one δ: a useful δ is far below one in a million


class Loss(NamedTuple):
    """Says what one member of a cohort loses, in whole units, rounded up."""

    micro_epsilon: int
    pico_delta: int = 0

    @classmethod
    def up(cls, epsilon: float, delta: float = 0.0) -> "Loss":
        """Round a real loss up to whole units."""
        return cls(ceil(epsilon * MICRO), ceil(delta * PICO))


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """For two neighbouring databases, nobody's odds move by more than e^ε of their cohort (up to δ)."""

    protects: Protects
    losses: Mapping[int, Loss]  # the cohort, by its place in the specification -> the loss of each of its members
    model: Model = "personalized"
    unit: Unit = "person"
    arithmetic: Arithmetic = "exact"
    note: str = field(default="", compare=False)  # what else the reader of the promise must know
    also: str = field(default="", compare=False)  # what it hides besides: "and whether you are in visits"

    def __post_init__(self) -> None:
        if any(loss.micro_epsilon < 0 or loss.pico_delta < 0 for loss in self.losses.values()):
            raise InvalidDeclaration("A guarantee cannot promise a loss below 0.")
        ordered = {cohort: self.losses[cohort] for cohort in sorted(self.losses)}
        object.__setattr__(self, "losses", MappingProxyType(ordered))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with a plain dictionary: the read-only view of the losses cannot be."""
        stated = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(type(self), **stated | {"losses": dict(self.losses)}), ()

    @classmethod
    def of(
        cls,
        specification: Specification,
        micro_epsilon: Iterable[int],
        *,
        protects: Protects,
        model: Model = "personalized",
        arithmetic: Arithmetic = "exact",
        note: str = "",
    ) -> "Guarantee":
        """Return the pure guarantee that costs the cohorts of `specification` these micro-ε, in their order."""
        spent = [Loss(int(loss)) for loss in micro_epsilon]
        places = range(len(specification.epsilons))
        losses = dict(zip(places, spent, strict=True))
        return cls(protects=protects, losses=losses, model=model, arithmetic=arithmetic, note=note)

    def __add__(self, other: "Guarantee") -> "Guarantee":
        """Both releases together: losses add up, cohort by cohort."""
        mine = (self.protects, self.model, self.unit)
        if mine != (other.protects, other.model, other.unit):
            raise InvalidDeclaration(
                f"Guarantees of different kinds do not add up: {mine} and "
                f"{(other.protects, other.model, other.unit)}. Account for them apart."
            )
        nothing = Loss(0)
        total = {
            cohort: Loss(
                *map(sum, zip(self.losses.get(cohort, nothing), other.losses.get(cohort, nothing), strict=True))
            )
            for cohort in {*self.losses, *other.losses}
        }
        arithmetic: Arithmetic = "exact" if self.arithmetic == other.arithmetic == "exact" else "float"
        return replace(self, losses=total, arithmetic=arithmetic)

    def honours(self, specification: Specification, *, pico_delta: int = 0) -> bool:
        """Return whether everybody in `specification` loses at most what they have available."""
        available = dict(enumerate(specification.epsilons))
        return all(
            cohort in available and loss.micro_epsilon <= available[cohort] and loss.pico_delta <= pico_delta
            for cohort, loss in self.losses.items()
        )

    @property
    def is_differential_privacy(self) -> bool:
        """False for model `individual`, which an observer can see through."""
        return self.model == "personalized"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**plain, "losses": [[cohort, *loss] for cohort, loss in self.losses.items()]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Guarantee":
        """The guarantee `to_dict` made plain."""
        return cls(**{**plain, "losses": {cohort: Loss(*loss) for cohort, *loss in plain["losses"]}})

    def __str__(self) -> str:
        spent = [loss.micro_epsilon / MICRO for loss in self.losses.values()]
        delta = max((loss.pico_delta for loss in self.losses.values()), default=0) / PICO
        low, high = f"{min(spent):g}", f"{max(spent):g}"
        span = f"ε from {low} to {high}, by what people chose" if low != high else f"ε = {high} for everybody"
        kind = (
            "personalized differential privacy"
            if self.is_differential_privacy
            else "model `individual` (NOT differential privacy)"
        )
        also = f", {self.also}" if self.also else ""
        return (
            f"{kind}, protects {self.protects} of each {self.unit}{also}: {span}"
            f"{f', δ = {delta:g}' if delta else ''}, arithmetic {self.arithmetic}"
        )


def in_parallel(parts: Sequence[Guarantee], protects: Protects = "presence") -> Guarantee:
    """Return what releases about disjoint parts of the data promise together, where everybody has one row.

    Each part's release protects presence: nobody learns whether somebody is in that part. Where being in the data at
    all is secret, a person comes to or leaves one part only, so they lose the most that any part costs them. Where
    values are secret, a person may leave one part and come to another, or to the same one again: that is two releases,
    so they lose twice the most. ([SDSM17] Theorems 2 and 4 print once, for records that are modified: docs/errata.md.)
    """
    if not parts or any(part.protects != "presence" or part.unit != "person" for part in parts):
        raise InvalidDeclaration('Each part must have a release that protects presence: ask with protects="presence".')
    if len({part.model for part in parts}) > 1:
        raise InvalidDeclaration("Releases of different models do not add up. Account for them separately.")
    times, nothing = 1 if protects == "presence" else 2, Loss(0)
    every = {cohort: [part.losses.get(cohort, nothing) for part in parts] for part in parts for cohort in part.losses}
    if times == 2 and any(loss.pico_delta for losses in every.values() for loss in losses):
        raise InvalidDeclaration("Parallel releases with a δ are accounted for where presence is protected only.")
    most = {
        cohort: Loss(times * max(loss.micro_epsilon for loss in losses), max(loss.pico_delta for loss in losses))
        for cohort, losses in every.items()
    }
    arithmetic: Arithmetic = "exact" if all(part.arithmetic == "exact" for part in parts) else "float"
    return replace(parts[0], protects=protects, losses=most, arithmetic=arithmetic)

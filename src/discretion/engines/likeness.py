"""Likeness: refuse lookups and registers that are the same rows, or the same people, as something protected."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from discretion.declaration.concern import Concern
from discretion.declaration.enrolment import Enrolment
from discretion.declaration.source import Source
from discretion.declaration.table import COPY, Lookup, Table
from discretion.engines.engine import Engine
from discretion.errors import EngineFailed, InvalidDeclaration
from discretion.query.kind import NEVER_PEOPLE

Held = Table | Lookup | Enrolment  # what has a source, and may have an origin

FEWEST_NUMBERS = 100  # whole numbers in common: a list of codes and a register both begin at 1


@dataclass(frozen=True)
class Likeness:
    """Compares sources by what they are, as an engine finds them."""

    engine: Engine

    def refuse_people(self, public: Iterable[Lookup], people: Iterable[Held]) -> None:
        """Refuse a lookup that holds rows of a protected table or of a register, in any spelling."""
        protected = frozenset().union(*map(self._marks, people))
        for lookup in public:
            if self._marks(lookup) & protected:
                raise InvalidDeclaration(
                    f"{_shown(lookup)!r} holds rows of people, so it cannot be a lookup: everything it says about "
                    "somebody could be asked without a charge. Join it before protecting, or give a table without "
                    "people."
                )

    def refuse_own_register(self, table: Table, register: Enrolment) -> None:
        """Refuse a table that protects presence and is its own register: who is in it would be public."""
        if self._marks(table) & self._marks(register):
            raise InvalidDeclaration(
                f"Table {table.name!r} is the source of its own register {table.register!r}, so everybody in the "
                "register is in the table: their presence is no secret. Give `epsilon` instead of `register` to "
                "protect values, or enrol a register with more people."
            )

    def refuse_identifiers(self, name: str, lookup: Lookup, register: Enrolment) -> None:
        """Refuse a lookup if one of its columns names at least half of the people of the register.

        Whole numbers are often equal by coincidence. They are refused only if FEWEST_NUMBERS of them are people, and
        those are at least half of the column's different values.
        """
        people = self.engine.people(register.source, register.person)["person"].combine_chunks()
        for column, kind in lookup.columns.items():
            if not kind.upper().startswith(NEVER_PEOPLE) and self._names(lookup.source, column, people):
                raise InvalidDeclaration(
                    f"Column {column!r} of lookup {name!r} names most people of the register, so it cannot be a "
                    "lookup: everything it says about them could be asked without a charge. Join it before "
                    "protecting, or leave that column out."
                )

    def same_people(self, name: str, choices: Enrolment, others: Mapping[str, Enrolment]) -> tuple[Concern, ...]:
        """Return what to tell the steward of a register that another one holds under another column."""
        mine = self._marks(choices)
        if again := [o for o, known in others.items() if known.person == choices.person and mine & self._marks(known)]:
            raise InvalidDeclaration(
                f"Register {name!r} has the source and the person column of register {again[0]!r}: these are the same "
                f"people, who would get a second allowance. Use register={again[0]!r} instead."
            )
        return tuple(
            Concern(
                kind="same_people",
                column=choices.person,
                text=f"Register {name!r} ({choices.person}) and register {other!r} ({known.person}) come from the same "
                "source. If they are the same people, each has two allowances: use one register for both.",
            )
            for other, known in others.items()
            if known.person != choices.person and mine & self._marks(known)
        )

    def _names(self, source: str, column: str, people: pa.Array) -> bool:
        values = self.engine.people(source, column)["person"].combine_chunks()
        values = values.filter(values.is_valid())
        common = pc.sum(pc.is_in(people, value_set=values)).as_py() or 0
        if 2 * common < len(people) or not common:
            return False
        whole = bool(pc.all(pc.match_substring_regex(values, r"^-?\d{1,18}$")).as_py())
        return not whole or (common >= FEWEST_NUMBERS and 2 * common >= len(values))

    def _marks(self, held: Held) -> frozenset[str]:
        """Return the marks of rows, and of what they were copied from; a source that is gone now has its name."""
        found = self._marks_of(held.source)
        if not held.source.endswith(COPY) or not held.origin:
            return found
        origin = Source.from_json(held.origin)
        part = f"#{origin.table}" if origin.table else ""
        return found.union(*(self._marks_of(f"{place}{part}") for place in origin.places))

    def _marks_of(self, place: str) -> frozenset[str]:
        try:
            return self.engine.identity(place)
        except EngineFailed:
            return frozenset({place.lower()})


def _shown(lookup: Lookup) -> str:
    """Return what the steward gave as a lookup."""
    return str(Source.from_json(lookup.origin)) if lookup.origin else lookup.source

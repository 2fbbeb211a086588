"""Protection: what a steward declares becomes enrolled people and protected tables in the ledger, or is refused."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from discretion.declaration.concern import Concern, concerns, hints, turnover, unstated
from discretion.declaration.declare import declare, refuse_unfit
from discretion.declaration.enrolment import Enrolment
from discretion.declaration.table import Lookup, Table
from discretion.engines import Engine, is_object
from discretion.engines.likeness import Likeness
from discretion.engines.steward import Admitted, Earlier, Steward
from discretion.errors import EngineFailed, InvalidDeclaration, SourceChanged
from discretion.ledger import Ledger

PUBLIC = "public"  # what a steward adds to a lookup that was not made from people's rows


@dataclass(frozen=True, kw_only=True)
class Protection:
    """A steward's work on one ledger. Each step also returns what seems wrong with the rows, for the steward only."""

    engine: Engine
    ledger: Ledger
    steward: Steward

    def register(
        self,
        name: str,
        source: Any,
        options: Mapping[str, Any],
        *,
        person: str,
        epsilon: str,
        separate: bool,
        chosen: Mapping[str, Any],
    ) -> tuple[Concern, ...]:
        """Enrol the people of a source; `options` say how it is read, `chosen` how preferences are understood."""
        with self._admitting() as places:
            found = self.steward.admit(name, source, person=person, known=self._known(name, person), options=options)
            places.append(found.place)
            if unknown := sorted({person, epsilon} - set(found.columns)):
                raise InvalidDeclaration(
                    f"Register {name!r} has no column {', '.join(map(repr, unknown))}; it has "
                    f"{', '.join(map(repr, found.columns))}."
                )
            same = self._enrol(name, self._enrolment(found, person=person, epsilon=epsilon, **chosen), separate)
            return (*hints(found.hints), *same, *self._unstated(name))

    def _unstated(self, register: str) -> tuple[Concern, ...]:
        """Return how many people of a register stated no preference, if anybody did not."""
        enrolled = Enrolment.from_json(self.ledger.register(register).source)
        if not enrolled.has_unstated:
            return ()
        people = self.engine.people(enrolled.source, enrolled.person, enrolled.epsilon)
        return unstated(enrolled.epsilon, enrolled.unstated(people))

    def columns(self, source: Any, options: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the columns of a source with their types, as `protect` would read it; nothing is kept."""
        with self._admitting() as places:
            found = self.steward.admit("columns", source, options=options)
            places.append(found.place)
            return dict(found.columns)

    def changed(self) -> tuple[str, ...]:
        """Return the tables and registers whose sources are not in the state that was admitted."""
        states = {table.name: [(table.source, table.admitted)] for table in self.ledger.tables()}
        for table in self.ledger.tables():
            states[table.name] += [(lookup.source, lookup.admitted) for lookup in table.lookups.values()]
        for one in self.ledger.registers():
            states.setdefault(one.name, []).append((Enrolment.from_json(one.source).source, one.fingerprint))
        return tuple(
            name
            for name, kept in states.items()
            if any(admitted and not is_object(place) and not self._is_in(place, admitted) for place, admitted in kept)
        )

    def _is_in(self, place: str, admitted: str) -> bool:
        try:
            return self.engine.fingerprint(place) == admitted
        except (OSError, EngineFailed):
            return False  # it is gone

    def protect(
        self,
        name: str,
        source: Any,
        options: Mapping[str, Any],
        declared: dict[str, Any],
        *,
        person: str,
        epsilon: str,
        register: str,
        separate: bool,
        chosen: Mapping[str, Any],
    ) -> tuple[Table, tuple[Concern, ...]]:
        """Declare a table; `chosen` says how its own preferences are read if it is its own register."""
        with self._admitting() as places:
            found = self.steward.admit(name, source, person=person, known=self._known(name, person), options=options)
            places.append(found.place)
            lookups = (declared.get("lookups") or {}).items()
            declared["lookups"] = {key: self._lookup(name, key, value, places) for key, value in lookups}
            known = [one.name for one in self.ledger.registers()]
            owner: dict[str, Any] = {"person": person, "epsilon": epsilon, "register": register}
            table = replace(
                declare(name, found.place, found.columns, known, **owner, **declared),
                origin=found.origin,
                admitted=found.fingerprint,
            )
            self._keep_apart(table)
            same: tuple[Concern, ...] = ()
            if not register:
                same = self._enrol(name, self._enrolment(found, person=person, epsilon=epsilon, **chosen), separate)
            if table not in self.ledger.tables():
                self.ledger.declare(table)
            return table, (*hints(found.hints), *same, *self._surveyed(table))

    def refresh(self, name: str, source: Any, options: Mapping[str, Any]) -> tuple[str, tuple[Concern, ...]]:
        """Admit the state that a source is in now; return the ledger's entry about people, "" if nobody changed."""
        table = next((one for one in self.ledger.tables() if one.name == name), None)
        with self._admitting() as places:
            if table is not None and table.register != name:
                return self._renew_table(table, source, options, places)
            enrolled = Enrolment.from_json(self.ledger.register(name).source)
            earlier = Earlier.table(table) if table else Earlier.register(enrolled)
            found = self.steward.again(name, earlier, source, options)
            places.append(found.place)
            here = {"origin": found.origin, "person_type": found.columns.get(enrolled.person, "")}
            enrolled = enrolled.at(found.place, **here)
            renewed = self._renewed(table, found, places) if table is not None else None
            for one in self.ledger.tables():
                if one.register == name:
                    self._keep_apart(renewed if renewed and one.name == name else one, enrolled)
            # Renew the register first: if that fails, the declaration must stay as it was.
            entry = self._renew(name, enrolled)
            seen = (*hints(found.hints), *(turnover(*self.ledger.turnover(entry)) if entry else ()))
            if renewed is not None:
                return entry, (*seen, *self._surveyed(self._redeclared(table, renewed)))
            return entry, (*seen, *self._unstated(name))

    @contextmanager
    def _admitting(self) -> Iterator[list[str]]:
        """Collect places that are admitted. Afterwards, delete copies that nothing refers to.

        A refusal leaves no copy either, and nothing attached to the engine.
        """
        with self.engine.tentative():
            before, places = self._used(), list[str]()
            try:
                yield places
            finally:
                self.steward.discard([*before, *places], used=self._used())

    def _used(self) -> set[str]:
        tables = self.ledger.tables()
        registers = {Enrolment.from_json(one.source).source for one in self.ledger.registers()}
        lookups = {lookup.source for table in tables for lookup in table.lookups.values()}
        return registers | lookups | {table.source for table in tables}

    def _known(self, name: str, person: str) -> Mapping[str, str]:
        """Return the types that are final because the source was admitted before."""
        table = next((one for one in self.ledger.tables() if one.name == name and one.person == person), None)
        if table is not None:
            return table.columns
        registers = (Enrolment.from_json(one.source) for one in self.ledger.registers() if one.name == name)
        return {one.person: one.person_type for one in registers if one.person_type}

    def _enrolment(
        self,
        found: Admitted,
        *,
        person: str,
        epsilon: str,
        levels: Mapping[str, float] | None = None,
        menu: Sequence[float] = (),
        default: float | str | None = None,
    ) -> Enrolment:
        """Return how the preferences of an admitted source are read."""
        admitted: dict[str, Any] = {"source": found.place, "origin": found.origin, "person_type": found.columns[person]}
        offered: dict[str, Any] = {"levels": levels or {}, "menu": tuple(menu), "default": default}
        return Enrolment(person=person, epsilon=epsilon, **admitted, **offered)

    def _enrol(self, name: str, choices: Enrolment, separate: bool) -> tuple[Concern, ...]:
        """Enrol people, or accept that they were; return what their steward should know."""
        known = next((one for one in self.ledger.registers() if one.name == name), None)
        if known is not None and known.fingerprint == self.engine.fingerprint(choices.source):
            enrolled = Enrolment.from_json(known.source)
            if not choices.reads_like(enrolled):
                raise InvalidDeclaration(
                    f"Register {name!r} was enrolled with another person or epsilon column, other levels, another menu "
                    "or default, and that is final. Change preferences in the source and `refresh`, or with `prefer`."
                )
            here = {"origin": choices.origin, "person_type": choices.person_type}
            self._renew(name, enrolled.at(choices.source, **here))  # the same people, maybe elsewhere
            return ()
        choices, people, fingerprint = self._read(choices)
        others = {one.name: Enrolment.from_json(one.source) for one in self.ledger.registers() if one.name != name}
        same = Likeness(self.engine).same_people(name, choices, others)
        self.ledger.enroll(
            name,
            people,
            source=choices.to_json(),
            fingerprint=fingerprint,
            menu=choices.offered,
            separate=separate,
        )
        return same

    def _renew(self, name: str, choices: Enrolment) -> str:
        choices, people, fingerprint = self._read(choices)
        return self.ledger.refresh(name, people, fingerprint=fingerprint, source=choices.to_json())

    def _read(self, choices: Enrolment) -> tuple[Enrolment, pa.Table, str]:
        """Return what everybody's preference is worth, and the fingerprint of the very content that says so."""
        fingerprint = self.engine.fingerprint(choices.source)
        appraised = choices.appraise(self.engine.people(choices.source, choices.person, choices.epsilon))
        if fingerprint != self.engine.fingerprint(choices.source):
            raise SourceChanged("Preferences changed while they were read. Try again when nobody writes to them.")
        return *appraised, fingerprint

    def _lookup(self, table: str, name: str, declared: Sequence[Any], places: list[str]) -> Lookup:
        # Attached as its table's own: a protected table of the same name must never stand in for it.
        if isinstance(declared, str) or len(declared) not in (2, 3) or list(declared[2:]) not in ([], [PUBLIC]):
            raise InvalidDeclaration(
                f"Lookup {name!r} must be (source, its unique key), or (source, key, {PUBLIC!r}) if you confirm that "
                f"it was not made from people's rows, so that GROUP BY may show its values; got {declared!r}."
            )
        found, key = self.steward.admit(f"{table}.{name}", declared[0]), declared[1]
        places.append(found.place)
        if key not in found.columns:
            raise InvalidDeclaration(
                f"Lookup {name!r} has no column {key!r}; it has {', '.join(map(repr, found.columns))}."
            )
        return self.steward.looked_up(key, found, public=len(declared) == 3)

    def _keep_apart(self, table: Table, enrolled: Enrolment | None = None) -> None:
        """Refuse rows of people as a lookup: joined ON 17 = id, one person's row would meet everybody's."""
        others = [one for one in self.ledger.tables() if one.name != table.name]
        registers = {one.name: Enrolment.from_json(one.source) for one in self.ledger.registers()}
        if enrolled is not None:
            registers[table.register] = enrolled
        same = Likeness(self.engine)
        public = [lookup for one in (table, *others) for lookup in one.lookups.values()]
        same.refuse_people(public, [table, *others, *registers.values()])
        known = registers.get(table.register)
        if table.protects == "presence" and known is not None:
            same.refuse_own_register(table, known)
        owners = known or Enrolment(source=table.source, person=table.person, epsilon=table.epsilon)
        for name, lookup in table.lookups.items():
            same.refuse_identifiers(name, lookup, owners)
        self.steward.refuse_repeated_keys(table.lookups)

    def _renewed(self, table: Table, found: Admitted, places: list[str]) -> Table:
        """Return a table in its new state; its lookups are admitted anew, too."""
        state: dict[str, Any] = {"source": found.place, "origin": found.origin, "admitted": found.fingerprint}
        lookups = {name: self._lookup_again(f"{table.name}.{name}", one, places) for name, one in table.lookups.items()}
        renewed = replace(table, columns=dict(found.columns), lookups=lookups, **state)
        refuse_unfit(renewed)
        return renewed

    def _redeclared(self, table: Table | None, renewed: Table) -> Table:
        if renewed != table:
            self.ledger.declare(renewed)
        return renewed

    def _renew_table(
        self, table: Table, source: Any, options: Mapping[str, Any], places: list[str]
    ) -> tuple[str, tuple[Concern, ...]]:
        """Admit a table whose people are enrolled elsewhere: nobody changes, so there is no entry about people."""
        found = self.steward.again(table.name, Earlier.table(table), source, options)
        places.append(found.place)
        renewed = self._renewed(table, found, places)
        self._keep_apart(renewed)
        return "", (*hints(found.hints), *self._surveyed(self._redeclared(table, renewed)))

    def _lookup_again(self, name: str, lookup: Lookup, places: list[str]) -> Lookup:
        earlier = Earlier.lookup(lookup)
        if not earlier.is_file:
            return lookup  # an object is in the state it was given in
        found = self.steward.again(name, earlier, None, {})
        places.append(found.place)
        return self.steward.looked_up(lookup.key, found, public=lookup.public)

    def _surveyed(self, table: Table) -> tuple[Concern, ...]:
        register = Enrolment.from_json(self.ledger.register(table.register).source)
        return concerns(table, self.engine.survey(table, register.source, register.person))

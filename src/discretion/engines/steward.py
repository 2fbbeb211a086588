"""Steward: what a steward gives is admitted, kept as a copy where it must be, and looked over for what seems wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from discretion.declaration.enrolment import Enrolment
from discretion.declaration.source import Source, files_of, is_place, source_of
from discretion.declaration.table import COPY, MOST_GROUPS, Lookup, Table
from discretion.engines import Admission, Engine, is_object
from discretion.errors import InvalidDeclaration, SourceChanged
from discretion.query.kind import INTEGERS

_LISTED = ("VARCHAR", "BOOLEAN", "DATE", *(name for name in INTEGERS if "HUGE" not in name and name != "UBIGINT"))
RENEWED_TYPE = (
    "The person column {person!r} is {now} now and was {before}: everybody could get a second allowance under another "
    "spelling. Write it as {before} again, or protect the source under a new name for other people."
)
FORGOTTEN_TYPE = (
    "{name!r} was enrolled from a text by version 0.1, which did not keep the type of {person!r}, and the text has "
    "changed since. Say what it was: types={{{person!r}: 'BIGINT'}} if people were read as numbers (007 is 7), or "
    "'VARCHAR' if they were read as texts."
)


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A state of a source that may be asked about."""

    place: str  # where questions read it, in the engine's words
    columns: Mapping[str, str]
    fingerprint: str
    origin: str = ""  # what the steward gave
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Steward:
    """An engine that admits sources, and the folder that keeps copies of them; none for a ledger in PostgreSQL."""

    engine: Engine
    folder: Path | None
    prefix: str  # of the names of copies
    ledger: str = ""  # the ledger's own file, which is never a source

    def admit(
        self,
        name: str,
        given: Any,
        *,
        person: str = "",
        known: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Admitted:
        """Admit a file, a table or an object as it is now; types that are `known` are final."""
        self._refuse_ledger(given)
        if isinstance(given, Source) or is_place(given):
            source = given if isinstance(given, Source) else source_of(given, **(options or {}))
            return self._copied(name, source, person, known or {})
        if options:
            raise InvalidDeclaration(f"{next(iter(options))!r} is for files, but {name!r} is an object in memory.")
        return self._found(self.engine.attach(name, given, person))

    def again(self, name: str, earlier: "Earlier", given: Any, options: Mapping[str, Any]) -> Admitted:
        """Admit what was admitted before, as it is now or where it is now; the type of the person column is final."""
        self._refuse_ledger(given)
        options = dict(options)
        kept = self._kept_type(name, earlier, options)
        if given is None and not options and not earlier.is_file:
            return self._found(earlier.place)
        old = earlier.source if earlier.is_file else None
        if given is None or is_place(given):
            place = given if given is not None else list(old.places) if old else ""
            source = old.at(place, options) if old else source_of(place, **options)
            new = self._copied(name, source, earlier.person, {**earlier.columns, **kept})
        else:
            new = self.admit(name, given, person=earlier.person, options=options)
        now, before = new.columns.get(earlier.person, ""), kept.get(earlier.person, "")
        if now and before and now != before and not {now, before} <= set(INTEGERS):
            self.discard([new.place], used=[])
            raise InvalidDeclaration(RENEWED_TYPE.format(person=earlier.person, now=now, before=before))
        return new

    def refuse_repeated_keys(self, lookups: Mapping[str, Lookup]) -> None:
        """Refuse a lookup with two rows of one key."""
        for name, lookup in lookups.items():
            if any(self.engine.people(lookup.source, lookup.key)["rows"].to_numpy() > 1):
                raise InvalidDeclaration(
                    f"Lookup {name!r} has several rows with the same {lookup.key!r}, so it is unclear which is meant. "
                    "Give it one row for each key."
                )

    def looked_up(self, key: str, found: Admitted, *, public: bool) -> Lookup:
        """Return the declaration of a lookup in the state that was admitted; if it is public, with its values."""
        state: dict[str, Any] = {"source": found.place, "origin": found.origin, "admitted": found.fingerprint}
        listed = [name for name, kind in found.columns.items() if kind in _LISTED] if public else []
        keys = {name: self.engine.distinct(found.place, name, MOST_GROUPS) for name in listed}
        kept = {name: tuple(map(_plain, values)) for name, values in keys.items() if values}
        return Lookup(key=key, columns=dict(found.columns), public=public, keys=kept, **state)

    def discard(self, places: Iterable[str], *, used: Iterable[str]) -> None:
        """Delete copies that nothing refers to any more."""
        for place in set(places) - set(used):
            if place.endswith(COPY):
                Path(place).unlink(missing_ok=True)

    def _refuse_ledger(self, given: Any) -> None:
        """Refuse the ledger's own file: reading it would also cancel the ledger's locks."""
        for file in files_of(given) if is_place(given) else ():
            if _is_same_file(file, Path(self.ledger)):
                raise InvalidDeclaration(f"{str(given)!r} is the ledger itself, so it cannot be a source.")

    def _copied(self, name: str, source: Source, person: str, known: Mapping[str, str]) -> Admitted:
        label = f"{self.prefix}.{name}"
        place, hints = self.engine.admit(
            Admission(source=source, person=person, known=known, folder=self.folder, label=label)
        )
        return replace(self._found(place), origin=source.to_json(), hints=hints)

    def _found(self, place: str) -> Admitted:
        fingerprint = self.engine.fingerprint(place)
        columns = dict(self.engine.schema(place))
        if fingerprint != self.engine.fingerprint(place):
            raise SourceChanged("The source changed while it was read. Try again when nobody writes to it.")
        return Admitted(place=place, columns=columns, fingerprint=fingerprint)

    def _kept_type(self, name: str, earlier: "Earlier", options: dict[str, Any]) -> dict[str, str]:
        """Return the final type of the person column; a register of version 0.1 did not keep it."""
        if earlier.columns.get(earlier.person):
            return {earlier.person: earlier.columns[earlier.person]}
        if not (earlier.person and earlier.is_file and earlier.source.is_text):
            return {}
        types = dict(options.get("types") or {})
        if said := types.pop(earlier.person, ""):
            options["types"] = types
            return {earlier.person: str(said).upper()}
        raise InvalidDeclaration(FORGOTTEN_TYPE.format(name=name, person=earlier.person))


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Says what is known of a source that was admitted before."""

    place: str
    origin: str
    person: str
    columns: Mapping[str, str]  # the types known: of a whole table, or only of a register's person

    @property
    def is_file(self) -> bool:
        """Tell whether the source can be read again; an object in memory must be given again."""
        return not is_object(self.place)

    @property
    def source(self) -> Source:
        """Return what the steward gave; version 0.1 kept only the place."""
        return Source.from_json(self.origin) if self.origin else source_of(self.place)

    @classmethod
    def table(cls, table: Table) -> "Earlier":
        """Return what a table's declaration says."""
        return cls(place=table.source, origin=table.origin, person=table.person, columns=table.columns)

    @classmethod
    def register(cls, enrolment: Enrolment) -> "Earlier":
        """Return what an enrolment says."""
        types = {enrolment.person: enrolment.person_type} if enrolment.person_type else {}
        return cls(place=enrolment.source, origin=enrolment.origin, person=enrolment.person, columns=types)

    @classmethod
    def lookup(cls, lookup: Lookup) -> "Earlier":
        """Return what a lookup's declaration says."""
        return cls(place=lookup.source, origin=lookup.origin, person="", columns=lookup.columns)


def copies_of(place: str, folder: str | Path | None) -> dict[str, Any]:
    """Return where copies are kept, and what their names begin with: the ledger's folder and name."""
    path = Path(place.removeprefix("sqlite:///"))
    if "://" in str(place.removeprefix("sqlite:///")):
        return {"folder": None if folder is None else Path(folder).expanduser().resolve(), "prefix": "ledger"}
    kept = path.resolve().parent if folder is None else Path(folder).expanduser().resolve()
    return {"folder": kept, "prefix": path.name}


def _plain(value: Any) -> Any:
    """Return a value as declarations keep it: dates are texts."""
    return value.isoformat() if isinstance(value, date) else value


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them does not exist, or is not a path
        return False

"""A companion: everybody's preference in the order of a table's rows, found out once.

Joining ten million rows to a register, or to those who changed their mind, takes ten times as long as counting them.
A table whose rows are numbered needs that join only once. Its outcome, one small number a row, is then read next to
the table. Every row of a companion says which row it is about, and counts for no other. If the two were ever read out
of step, rows would be missing, but nobody would be taken for somebody else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from discretion.engines.buffer import is_known, numbers, stored, table_of
from discretion.engines.column import not_null, number
from discretion.engines.gathering import Whose
from discretion.engines.person import preference, same_person
from discretion.engines.statement import Beside
from discretion.query.kind import INTEGERS

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
NUMBERED = "numbered"  # a view of the table with the two columns below
FILE, ROW_NUMBER, FOUND = "file of the row", "row in the file", "preference found"


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A number for every row: the place of its owner's preference in `found`, or what they changed it to since.

    The numbers after the last place: who is left out, then the cohorts of those who changed their mind.
    """

    found: tuple[Any, ...]  # the different preferences, as `Engine.people` gives them
    files: tuple[int, ...]  # rows of each
    numbers: NDArray[np.unsignedinteger[Any]]  # of all their rows, file after file
    pieces: int  # read one by a thread
    most_rows: int | None = None  # that anybody has, where that was found out at the same time
    owners: NDArray[np.unsignedinteger[Any]] | None = None  # the place in `directory` of each row's owner, if asked for
    directory: "Directory | None" = None

    @classmethod
    def empty(cls, files: Iterable[int], found: Iterable[Any], pieces: int) -> "Companion":
        """Return a companion that leaves everybody out."""
        found, files = tuple(found), tuple(files)
        numbers = np.full(sum(files), len(found), dtype=np.min_scalar_type(len(found)))
        return cls(found=found, files=files, numbers=numbers, pieces=pieces)

    def with_places(self, rows: Iterable[pa.RecordBatch]) -> "Companion | None":
        """Add what `Owners.places` found; return None if somebody's rows were found twice."""
        places, known = self.numbers.copy(), 0
        for batch in rows:
            places[self._where(batch)] = numbers(batch["place"])
            known += len(batch)
        return replace(self, numbers=places) if known == np.count_nonzero(places < len(self.found)) else None

    def with_owners(self, rows: Iterable[pa.RecordBatch], directory: "Directory", named: bool = False) -> "Companion":
        """Add the preference of each row's owner, as a directory lists it, and find out how many rows anybody has.

        If `named`, every row's number says its owner, too.
        """
        places, owners = self.numbers.copy(), 0
        whose = np.zeros(places.size if named else 0, dtype=np.min_scalar_type(directory.places.size))
        owned = np.zeros(directory.places.size, dtype=np.uint8)  # rows of each person
        for batch in rows:
            who, people = batch["person"], directory.found(batch["person"])
            places[self._where(batch)] = np.where(people < 0, directory.nobody, directory.places[people])
            if named:
                whose[self._where(batch)] = np.maximum(people, 0)  # rows of strangers are left out by their number
            np.add.at(owned, people[people >= 0], np.uint8(1))  # a plain 1 would take ten times as long
            owners += len(who) - who.null_count
        # The sum is smaller if somebody is a stranger, or has so many rows that their number began again at 0.
        most = int(owned.max()) if int(owned.sum(dtype=np.int64)) == owners else None
        found = replace(self, numbers=places, most_rows=most)
        return replace(found, owners=whose, directory=directory) if named else found

    def with_changes(self, rows: Iterable[pa.RecordBatch], cohorts: int) -> "Companion":
        """Add what `Owners.changes` found: cohorts, or −1 for who is left out."""
        places = self.numbers.astype(np.min_scalar_type(len(self.found) + cohorts))
        for batch in rows:
            places[self._where(batch)] = len(self.found) + 1 + numbers(batch["cohort"])
        return replace(self, numbers=places)

    def beside(self, levels: Mapping[Any, int], count: int, met: Mapping[str, pa.Array]) -> Beside:
        """Return the table's rows with their numbers, and the cohort of each number that has one.

        `met` are columns of other tables, in the order of the rows (see `Meetings`).
        """
        places = {place: levels[preference] for place, preference in enumerate(self.found) if preference in levels}
        cohorts = places | {len(self.found) + 1 + cohort: cohort for cohort in range(count)}
        rows, tables = self.rows(met)
        whose = None
        if self.directory is not None:
            whose = Whose(self.directory.first, self.directory.places.size, len(self.found))
        number = FOUND if self.found else ""
        return Beside(rows=rows, number=number, cohorts=cohorts, tables=tables, whose=whose, met=frozenset(met))

    def rows(self, met: Mapping[str, pa.Array]) -> tuple[exp.Subquery, dict[str, pa.Table]]:
        """Return the table's rows with what is next to each, in pieces, and the small tables that hold it."""
        rows, tables = [], dict[str, pa.Table]()
        size, starts = 1 + self.numbers.size // self.pieces, np.cumsum([0, *self.files])
        for file, (start, end) in enumerate(pairwise(starts.tolist())):
            for low, high in pairwise([*range(0, end - start, size), end - start]):
                name, piece = f"companion{len(tables)}", slice(start + low, start + high)
                found = {"row": self._order[low:high], "found": self._told[piece]}
                tables[name] = table_of(**found, **{one: column[piece] for one, column in met.items()})
                rows.append(_piece(name, file, low, high, met))
        together = rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False)
        return together.subquery(), tables

    @cached_property
    def _order(self) -> NDArray[np.uint32]:
        return np.arange(max(self.files), dtype=np.uint32)

    @cached_property
    def _told(self) -> NDArray[np.unsignedinteger[Any]]:
        """Return the number next to each row: its preference's, and in the same number its owner's if they are known.

        Rows are then grouped by one small number, and nothing else is carried along (see `Whose`).
        """
        if self.owners is None or self.directory is None:
            return self.numbers
        people = self.directory.places.size
        kind = np.min_scalar_type((np.iinfo(self.numbers.dtype).max + 1) * people)  # whatever numbers occur
        told: NDArray[np.unsignedinteger[Any]] = self.numbers.astype(kind) * kind.type(people) + self.owners
        return told

    def _where(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        starts = np.cumsum([0, *self.files])
        return np.asarray(starts[numbers(batch["file"])] + numbers(batch["row"]))


def _piece(name: str, file: int, low: int, high: int, met: Iterable[str]) -> exp.Select:
    """Return consecutive rows of one file, each next to its own row of `name`."""
    in_file, in_row = exp.column(FILE, quoted=True), exp.column(ROW_NUMBER, quoted=True)
    own = exp.and_(in_file.eq(number(file)), exp.Between(this=in_row, low=number(low), high=number(high - 1)))
    rows = exp.select("own.*", exp.column("found", table=name).as_(FOUND, quoted=True))
    rows = rows.select(*(exp.column(one, table=name, quoted=True) for one in met), copy=False)
    rows = rows.from_(exp.select("*").from_(NUMBERED).where(own).subquery("own"))
    rows.append("joins", exp.Join(this=exp.to_table(name), method="POSITIONAL"))
    return rows.where(exp.column(ROW_NUMBER, table="own", quoted=True).eq(exp.column("row", table=name)))


@dataclass(frozen=True, kw_only=True)
class Directory:
    """Everybody in a register by their own number, where these lie close together: much quicker than a join."""

    first: int  # the smallest number
    places: NDArray[np.unsignedinteger[Any]]  # of preferences, one for each number from `first` on
    nobody: int  # the place of those who are not in the register

    @classmethod
    def of(cls, first: int, last: int, nobody: int, register: Iterable[pa.RecordBatch]) -> "Directory | None":
        """Return the directory of a register; None if somebody is in it twice."""
        places, rows = np.full(last - first + 1, nobody, dtype=np.min_scalar_type(nobody)), 0
        for batch in register:
            places[numbers(batch["person"]) - first] = numbers(batch["place"])
            rows += len(batch)
        return cls(first=first, places=places, nobody=nobody) if rows == np.count_nonzero(places != nobody) else None

    def found(self, people: pa.Array) -> NDArray[np.int64]:
        """Return where each person stands in `places`; −1 for rows of nobody and of strangers."""
        last = self.first + self.places.size - 1
        known, who = is_known(people), stored(people)
        known &= (who >= self.first) & (who <= last)
        return np.where(known, np.clip(who, self.first, last) - self.first, -1)


@dataclass(frozen=True, kw_only=True)
class Owners:
    """Say how rows find their owner's preference: in a column of their own, or in a register. Columns and types."""

    person: str
    person_type: str
    epsilon: str
    epsilon_type: str
    register_person: str = ""
    register_type: str = ""
    named: bool = False  # rows are numbered by their owner, too, where a directory can be made

    @property
    def preferences(self) -> exp.Select:
        """Return the SELECT of the different preferences there are."""
        return exp.select(self._preference.as_("preference")).distinct().from_(self._stated_in)

    def places(self, part: int = 0, parts: int = 1) -> exp.Select:
        """Select file, row and the place of the preference in table `found`; of a register, a part of the people."""
        known = exp.NullSafeEQ(this=self._preference, expression=exp.column("preference", table="found"))
        rows = numbered(exp.column("place", table="found"))
        if not self.register_person:
            return rows.join("found", on=known)
        theirs = exp.column(self.register_person, table="register", quoted=True)
        sides = same_person(self.person_column, theirs, self.person_type, self.register_type)
        rows = rows.join("register", on=sides[0].eq(sides[1])).join("found", on=known)
        return rows if parts == 1 else rows.where(*((self._hash(side) % parts).eq(part) for side in sides))

    @property
    def are_whole(self) -> bool:
        """Tell whether people are whole numbers of 64 bits at most, in the table and in the register."""
        return {self.person_type, self.register_type} <= _WHOLE

    @property
    def span(self) -> exp.Select:
        """Return the SELECT of the smallest and the largest person of a register, and how many there are."""
        who = exp.column(self.register_person, table="register", quoted=True)
        found = {"first": exp.Min(this=who), "last": exp.Max(this=who.copy()), "people": exp.Count(this=who.copy())}
        return exp.select(*(one.as_(name) for name, one in found.items())).from_("register")

    @property
    def listed(self) -> exp.Select:
        """Return the SELECT of everybody in a register, with the place of their preference in table `found`."""
        who = exp.column(self.register_person, table="register", quoted=True)
        known = exp.NullSafeEQ(this=self._preference, expression=exp.column("preference", table="found"))
        everybody = exp.select(_as_bigint(who).as_("person"), exp.column("place", table="found")).from_("register")
        return everybody.join("found", on=known).where(not_null(who))

    @property
    def owned(self) -> exp.Select:
        """Return the SELECT of file, row and owner of every row."""
        return numbered(_as_bigint(self.person_column).as_("person"))

    def changes(self, who: exp.Expr) -> exp.Select:
        """Select file, row and cohort of those in table `changes`; `who` is the person as written there."""
        return numbered(exp.column("cohort", table="changes")).join(
            "changes", on=who.eq(exp.column("person", table="changes"))
        )

    @property
    def person_column(self) -> exp.Expr:
        """Return the owner of a row."""
        return exp.column(self.person, table=NUMBERED, quoted=True)

    @property
    def _stated_in(self) -> str:
        return "register" if self.register_person else NUMBERED

    @property
    def _preference(self) -> exp.Expr:
        return preference(exp.column(self.epsilon, table=self._stated_in, quoted=True), self.epsilon_type)

    def _hash(self, person: exp.Expr) -> exp.Expr:
        """Return a hash of a person. It is of a type's bytes, so whole numbers of two types are hashed as one type."""
        types = {self.person_type, self.register_type}
        mixed = len(types) > 1 and types <= {*INTEGERS}
        return exp.Anonymous(this="HASH", expressions=[exp.cast(person, "HUGEINT") if mixed else person.copy()])


def _as_bigint(person: exp.Expr) -> exp.Expr:
    return exp.cast(person, "BIGINT")


def numbered(found: exp.Expr) -> exp.Select:
    """Return the SELECT of file, row and something found."""
    file, row = (exp.column(name, table=NUMBERED, quoted=True) for name in (FILE, ROW_NUMBER))
    return exp.select(file.as_("file"), row.as_("row"), found).from_(NUMBERED)

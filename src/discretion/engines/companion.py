"""A companion: a register's preferences in the order of a table's rows, found out once.

Joining ten million rows to a register takes ten times as long as counting them. A table whose rows are numbered needs
that join once only: its outcome, one small number a row, is then read beside the table. Every row of a companion says
which row it is about, and counts beside no other: were the two ever read out of step, rows would be missing, but
nobody would be taken for somebody else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discretion.engines.column import number
from discretion.engines.person import INTEGERS, preference, same_person

NUMBERED = "numbered"  # a view of the table with the two columns below
FILE, ROW_NUMBER, FOUND = "file of the row", "row in the file", "preference found"
PART = 1 << 20  # rows joined at a time: many enough to be quick, few enough to stay small


@dataclass(frozen=True, kw_only=True)
class Companion:
    """The owner's preference beside every row, as a place in `found`; strangers' rows have the place after the last."""

    found: tuple[Any, ...]  # the different preferences, as `Engine.people` gives them
    pieces: tuple["Piece", ...]

    @property
    def tables(self) -> dict[str, pa.Table]:
        """What `rows` reads beside the table."""
        return {f"companion{place}": piece.rows for place, piece in enumerate(self.pieces)}

    @property
    def rows(self) -> exp.Subquery:
        """The table's rows with their owner's preference. Pieces, since one is read by one thread."""
        selects = [piece.select(f"companion{place}") for place, piece in enumerate(self.pieces)]
        together = selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False)
        return together.subquery()

    def cohorts(self, levels: Mapping[Any, int]) -> dict[int, int]:
        """The cohort of each place, for those preferences that have one."""
        return {place: levels[preference] for place, preference in enumerate(self.found) if preference in levels}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Consecutive rows of one file, and the preferences of their owners."""

    file: int
    rows: pa.Table  # row, found

    def select(self, name: str) -> exp.Select:
        """These rows of the table, each beside its own row of `name`."""
        first, last = self.rows["row"][0].as_py(), self.rows["row"][-1].as_py()
        in_file, in_row = exp.column(FILE, quoted=True), exp.column(ROW_NUMBER, quoted=True)
        own = exp.and_(in_file.eq(self.file), exp.Between(this=in_row, low=number(first), high=number(last)))
        beside = exp.Join(this=exp.to_table(name), method="POSITIONAL")
        rows = exp.select("own.*", exp.alias_(exp.column("found", table=name), FOUND, quoted=True))
        rows = rows.from_(exp.select("*").from_(NUMBERED).where(own).subquery("own"))
        rows.append("joins", beside)
        return rows.where(exp.column(ROW_NUMBER, table="own", quoted=True).eq(exp.column("row", table=name)))


@dataclass(frozen=True, kw_only=True)
class Owners:
    """How the rows of a table find their owners in a register: columns and their SQL types."""

    person: str
    person_type: str
    register_person: str
    register_type: str
    epsilon: str
    epsilon_type: str

    @property
    def preferences(self) -> exp.Select:
        """The different preferences found in the register."""
        return exp.select(exp.alias_(self._preference, "preference")).distinct().from_("register")

    @property
    def _preference(self) -> exp.Expr:
        return preference(exp.column(self.epsilon, table="register", quoted=True), self.epsilon_type)

    def part(self, part: int, parts: int) -> exp.Select:
        """File, row and place in table `found` for the rows of every so manieth person."""
        mine, theirs = same_person(
            exp.column(self.person, table=NUMBERED, quoted=True),
            exp.column(self.register_person, table="register", quoted=True),
            self.person_type,
            self.register_type,
        )
        # A hash is of a type's bytes; numbers of two types are compared, and so hashed, as one.
        types = {self.person_type, self.register_type}
        mixed = len(types) > 1 and types <= {*INTEGERS}
        hashed = [exp.cast(side.copy(), "HUGEINT") if mixed else side.copy() for side in (mine, theirs)]
        these = [exp.Anonymous(this="HASH", expressions=[side]) % number(parts) for side in hashed]
        known = exp.NullSafeEQ(this=self._preference, expression=exp.column("preference", table="found"))
        file, row = (exp.column(name, table=NUMBERED, quoted=True) for name in (FILE, ROW_NUMBER))
        joined = (
            exp.select(file.as_("file"), row.as_("row"), "found.place")
            .from_(NUMBERED)
            .join("register", on=mine.eq(theirs))
            .join("found", on=known)
        )
        return joined.where(*(one.eq(part) for one in these)) if parts > 1 else joined


def accompany(
    files: Sequence[int], found: Sequence[Any], join: Callable[[int, int], pa.Table], pieces: int
) -> Companion | None:
    """The companion of a table in files of so many rows, if it has any and nobody is in the register twice.

    `join(part, parts)` gives what `Owners.part` selects.
    """
    starts = np.concatenate([[0], np.cumsum(files)])
    rows = int(starts[-1])
    places = np.full(rows, len(found), dtype=np.min_scalar_type(len(found)))
    parts, owned = 1 + rows // PART, 0
    for part in range(parts):
        joined = join(part, parts)
        places[starts[joined["file"].to_numpy()] + joined["row"].to_numpy()] = joined["place"].to_numpy()
        owned += len(joined)
    if rows == 0 or owned != np.count_nonzero(places < len(found)):
        return None
    size = 1 + rows // pieces
    cut = [
        Piece(file=file, rows=pa.table({"row": np.arange(low, high, dtype=np.uint32), "found": whole[low:high]}))
        for file, whole in enumerate(places[low:high] for low, high in pairwise(starts))
        for low, high in pairwise([*range(0, len(whole), size), len(whole)])
    ]
    return Companion(found=tuple(found), pieces=tuple(cut))

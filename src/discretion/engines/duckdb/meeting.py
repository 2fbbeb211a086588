"""Meetings: for every row of a table, the row of the same person in another one; found out once per state of both.

Rows are numbered, so a join on the person is a number next to each row. The database reads a column of the other table
through these numbers, as it reads any column that lists its values once. So nothing is joined when a question is asked,
and what a row holds cannot change how two tables are joined.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines.backend import Held
from discretion.engines.dialect import Dialect
from discretion.engines.duckdb.companion import FILE, NUMBERED, ROW_NUMBER, numbered
from discretion.engines.duckdb.connections import Connections
from discretion.engines.duckdb.place import is_numbered, stamps
from discretion.engines.duckdb.repetition import BATCH
from discretion.engines.partnership import beside_name, used_columns
from discretion.engines.person import same_person
from discretion.engines.rows import Rows
from discretion.query import Partner
from discretion.query.kind import FLOATS, INTEGERS

MOST_KEPT = 16  # columns
# Types that a column keeps when it is read through Arrow; with any other one, the tables are joined.
_KEPT = {*INTEGERS, *FLOATS, "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR"} - {"HUGEINT"}


class Meetings:
    """The columns that were last read next to rows, by the state of all that they were found from."""

    def __init__(self, connections: Connections, dialect: Dialect) -> None:
        self._connections, self._dialect = connections, dialect
        self.kept: dict[tuple[Any, ...], pa.Array] = {}

    def columns(self, rows: Rows, held: Held, single: Collection[str], files: Sequence[int]) -> dict[str, pa.Array]:
        """Return columns of partners in the order of rows in `files`; none of a partner that is to be joined.

        In the tables `single` nobody has two rows.
        """
        found: dict[str, pa.Array] = {}
        for partner in rows.query.partners:
            used = [*sorted(used_columns(rows.query, partner))]
            if partner.name in single and _is_readable(rows.query.table, partner, used, held):
                found |= self._met(rows.query.table, partner, used, held, files)
        return found

    def _met(
        self, table: Table, partner: Partner, used: Sequence[str], held: Held, files: Sequence[int]
    ) -> dict[str, pa.Array]:
        """Return the place of the row that each row meets, NULL for none, and its values."""
        theirs = partner.table.person
        mine = (held.states["protected"], *stamps(held.places["protected"]), table.person)
        other = (held.states[partner.name], *stamps(held.places[partner.name]), theirs)
        people = self._once((other, theirs), lambda: self._read(partner, theirs, held))
        places = self._once((mine, other), lambda: self._places(table, partner, people, held, files))
        found = {beside_name(partner.name): places}
        for name in used:
            values = self._once((other, name), lambda name=name: self._read(partner, name, held))  # type: ignore[misc]
            found[beside_name(partner.name, name)] = pa.DictionaryArray.from_arrays(places, values, safe=False)
        return found

    def _read(self, partner: Partner, name: str, held: Held) -> pa.Array:
        """Return a column of a partner's table in the order of its rows."""
        order = [exp.column(one, quoted=True) for one in (FILE, ROW_NUMBER)]
        select = exp.select(exp.column(name, quoted=True).as_("value")).from_(NUMBERED).order_by(*order)
        with self._connections.connected({"protected": held.places[partner.name]}, {}) as connection:
            values = connection.sql(self._dialect.text(select)).to_arrow_table()["value"]
        if pa.types.is_string(values.type):  # of which one array holds 2 GB
            values = values.cast(pa.large_string())
        return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)

    def _places(self, table: Table, partner: Partner, people: pa.Array, held: Held, files: Sequence[int]) -> pa.Array:
        """Return the place of the same person's row for every row."""
        kind = np.int32 if len(people) < 2**31 else np.int64
        listed = pa.table({"person": people, "place": np.arange(len(people), dtype=kind)})
        columns = exp.column(table.person, table=NUMBERED, quoted=True), exp.column("person", table="people")
        types = table.columns[table.person], partner.table.columns[partner.table.person]
        mine, theirs = same_person(*columns, *types)
        select = numbered(exp.column("place", table="people")).join("people", on=mine.eq(theirs))
        with self._connections.connected({"protected": held.places["protected"]}, {"people": listed}) as connection:
            batches = connection.sql(self._dialect.text(select)).to_arrow_reader(BATCH)
            return _scattered(batches, files, kind)

    def _once(self, mark: tuple[Any, ...], make: Callable[[], pa.Array]) -> pa.Array:
        """Return what `make` makes; it is made once for a mark, as long as few others are."""
        kept = self.kept
        if mark not in kept:
            made = make()
            kept = self.kept = {**dict(list(self.kept.items())[1 - MOST_KEPT :]), mark: made}
        return kept[mark]


def _scattered(batches: Iterable[pa.RecordBatch], files: Sequence[int], kind: type[np.integer[Any]]) -> pa.Array:
    """Return places in the order of rows, from batches of file, row and place."""
    starts = np.cumsum([0, *files])
    places = np.full(starts[-1], -1, dtype=kind)
    for batch in batches:
        places[starts[batch["file"].to_numpy()] + batch["row"].to_numpy()] = batch["place"].to_numpy()
    return pa.array(places, mask=places < 0)


def _is_readable(table: Table, partner: Partner, used: Sequence[str], held: Held) -> bool:
    """Tell whether a partner's columns can be read next to the rows, by their types and where they are."""
    types = partner.table.columns
    names = {beside_name(partner.name), *(beside_name(partner.name, name) for name in used)}
    if partner.summary is not None or partner.after or names & {*table.columns}:
        return False
    place = held.places.get(partner.name, "")
    kept = (types[name] in _KEPT or types[name].startswith("DECIMAL") for name in (partner.table.person, *used))
    return bool(place) and is_numbered(place, types) and all(kept)

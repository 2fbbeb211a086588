"""Companions of tables in Parquet files: found once per state of the table, the register and its changes."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from discretion.engines import survey
from discretion.engines.backend import Held
from discretion.engines.buffer import table_of
from discretion.engines.dialect import Dialect
from discretion.engines.duckdb.companion import Companion, Directory, Owners
from discretion.engines.duckdb.connections import Connections
from discretion.engines.duckdb.meeting import Meetings
from discretion.engines.duckdb.place import is_numbered, paths, stamps
from discretion.engines.duckdb.repetition import BATCH
from discretion.engines.memory import packed
from discretion.engines.person import among_texts
from discretion.engines.rows import Rows
from discretion.engines.statement import Beside

MOST_KEPT = 4
SPARSE = 8  # times as many numbers as people that a directory may span
Connected = AbstractContextManager[duckdb.DuckDBPyConnection]


class Companions:
    """The last few companions, by the state of all that they were found from."""

    def __init__(self, connections: Connections, dialect: Dialect) -> None:
        self._connections, self._dialect = connections, dialect
        self.meetings = Meetings(connections, dialect)
        self.kept: dict[tuple[Any, ...], Companion | None] = {}
        self._most_rows: dict[tuple[Any, ...], int | None] = {}  # see `most_rows`: of one column in one state

    def beside(self, rows: Rows, register: Mapping[str, str], held: Held, single: Collection[str]) -> Beside | None:
        """Return cohorts, and columns of partners, next to the rows; None if the rows have no numbers, or need none."""
        table, cohorts, place = rows.query.table, rows.cohorts, held.places.get("protected", "")
        if not (place and is_numbered(place, table.columns)):
            return None
        if register or cohorts.changes is not None:
            found = self._found(rows, register, held)
        elif rows.query.partners:
            found = self._once((place, *stamps(place)), lambda: self._unnumbered(place))
        else:
            return None
        if found is None:
            return None
        met = self.meetings.columns(rows, held, single, found.files)
        return found.beside(cohorts.levels, cohorts.count, met) if found.found or met else None

    def _found(self, rows: Rows, register: Mapping[str, str], held: Held) -> Companion | None:
        """Return the companion of a table whose preferences are in a register, or were changed."""
        table, cohorts, place = rows.query.table, rows.cohorts, held.places["protected"]
        owners = Owners(
            person=table.person,
            person_type=table.columns[table.person],
            epsilon=cohorts.epsilon or table.epsilon,
            epsilon_type=register[cohorts.epsilon] if register else table.columns[table.epsilon],
            register_person=cohorts.person,
            register_type=register.get(cohorts.person, ""),
            named=rows.query.gathered is not None,
        )
        names = ("protected", "register") if register else ("protected",)
        sources = {name: held.places[name] for name in names if name in held.places}
        tables = {name: held.tables[name] for name in names if name in held.tables}
        files = {name: tuple(stamps(one)) for name, one in sources.items()}  # before any of them is read
        mark: tuple[Any, ...] = (str(owners), *(held.states[name] for name in names), *files.values())
        found = self._once(mark, lambda: self._enrolled(owners, sources, tables))
        if found is not None:
            self._most_rows = {(table.person, place, files["protected"]): found.most_rows}
        if found is not None and cohorts.changes is not None:
            enrolled, (who, few) = found, among_texts(owners.person_column, owners.person_type, cohorts.changes)
            mark = (*mark, hashlib.sha256(packed(cohorts.changes)).hexdigest(), cohorts.count)
            connected = self._connections.connected(sources, tables | {"changes": few})
            text = self._dialect.text(owners.changes(who))
            found = self._once(mark, lambda: _changed(connected, text, enrolled, cohorts.count))
        return found

    def _unnumbered(self, place: str) -> Companion | None:
        """Return the companion of a table that has its own preferences; None if it has no rows."""
        with self._connections.connected({"protected": place}, {}) as connection:
            sizes = _sizes(connection, place)
            return Companion.empty(sizes, (), _threads(connection)) if any(sizes) else None

    def most_rows(self, person: str, place: str) -> int | None:
        """Return how many rows somebody has at most, if the last companion was found in the same files."""
        return self._most_rows.get((person, place, tuple(stamps(place))))

    def _once(self, mark: tuple[Any, ...], make: Callable[[], Companion | None]) -> Companion | None:
        """Return what `make` makes; it is made once for a mark."""
        kept = self.kept
        if mark not in kept:
            made = make()
            kept = self.kept = {**dict(list(self.kept.items())[1 - MOST_KEPT :]), mark: made}
        return kept[mark]

    def _enrolled(self, owners: Owners, sources: Mapping[str, str], tables: Mapping[str, pa.Table]) -> Companion | None:
        """Return the preferences of all rows, file by file; None for a table without rows."""
        with self._connections.connected(sources, tables) as connection:
            sizes, threads = _sizes(connection, sources["protected"]), _threads(connection)
            found = connection.sql(self._dialect.text(owners.preferences)).to_arrow_table()["preference"]
            places = np.arange(len(found), dtype=np.min_scalar_type(len(found)))
            connection.register("found", table_of(preference=found, place=places))
            empty = Companion.empty(sizes, found.to_pylist(), threads)
            if not any(sizes):
                return None
            if (directory := self._directory(connection, owners, len(found))) is not None:
                owned = connection.sql(self._dialect.text(owners.owned)).to_arrow_reader(BATCH)
                return empty.with_owners(owned, directory, owners.named)
            parts = 1 + sum(sizes) // survey.PART if owners.register_person else 1
            texts = (self._dialect.text(owners.places(part, parts)) for part in range(parts))
            batches = (batch for text in texts for batch in connection.sql(text).to_arrow_reader(BATCH))
            return empty.with_places(batches)

    def _directory(self, connection: duckdb.DuckDBPyConnection, owners: Owners, nobody: int) -> Directory | None:
        """Return a directory of a register whose people are whole numbers that lie close together."""
        if not (owners.register_person and owners.are_whole):
            return None
        ((first, last, people),) = connection.sql(self._dialect.text(owners.span)).fetchall()
        if not people or last - first >= SPARSE * people:
            return None
        listed = connection.sql(self._dialect.text(owners.listed)).to_arrow_reader(BATCH)
        return Directory.of(first, last, nobody, listed)


def _changed(connected: Connected, changes: str, enrolled: Companion, cohorts: int) -> Companion:
    with connected as connection:
        return enrolled.with_changes(connection.sql(changes).to_arrow_reader(BATCH), cohorts)


def _threads(connection: duckdb.DuckDBPyConnection) -> int:
    return int(connection.sql("SELECT current_setting('threads')").fetchall()[0][0])


def _sizes(connection: duckdb.DuckDBPyConnection, place: str) -> list[int]:
    """Return how many rows each file has, in the order in which `file_index` counts them."""
    told = connection.sql(f"SELECT file_name, num_rows FROM parquet_file_metadata([{paths(place)}])").fetchall()
    return [dict(told)[stamp[0]] for stamp in stamps(place)]

"""DuckDB as a backend: it reads Parquet files and tables of DuckDB files in place, and everything else from a copy."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from tempfile import NamedTemporaryFile

import duckdb
import pyarrow as pa
from sqlglot import exp

from discretion.engines.backend import Admission, Backend, Held
from discretion.engines.dialect import Dialect
from discretion.engines.duckdb.admission import admit, sound_table
from discretion.engines.duckdb.beside import Companions
from discretion.engines.duckdb.connections import GUESSED, MEMORY_LIMIT, TIME_LIMIT, Connections, described
from discretion.engines.duckdb.identity import Contents, marks
from discretion.engines.duckdb.place import ZONED, content_names, is_database, is_table
from discretion.engines.duckdb.rehearsal import in_file, in_table
from discretion.engines.duckdb.repetition import BATCH, MOST_SORTED, hashed, repeats
from discretion.engines.rehearsal import MadeUp
from discretion.engines.rows import Rows
from discretion.engines.statement import Beside
from discretion.errors import QueryRefused


class DuckDBBackend(Backend):
    """The embedded database."""

    dialect = Dialect(language="duckdb")

    def __init__(
        self, *, threads: int | None = None, memory: str = MEMORY_LIMIT, timeout_seconds: float = TIME_LIMIT
    ) -> None:
        self.connections = Connections(threads=threads, memory=memory, timeout_seconds=timeout_seconds)
        self.companions = Companions(self.connections, self.dialect)
        self.contents = Contents()

    def admit(self, admission: Admission) -> tuple[str, tuple[str, ...]]:
        """Return where questions read a source, and hints for the steward."""
        return admit(admission)

    def sound(self, table: pa.Table, person: str) -> pa.Table:
        """Return a table in memory with NULL for every value that could make a question fail."""
        return sound_table(table, person)

    def columns(self, source: str | pa.Table) -> Mapping[str, str]:
        """Return the columns of a place or a table in memory with their types; times with a zone are read in UTC."""
        if isinstance(source, str):
            types = self.connections.stored_types(source)
        else:
            with self.connections.connected({}, {GUESSED: source}) as connection:
                types = described(connection)
        return {name: "TIMESTAMP" if kind == ZONED else kind for name, kind in types.items()}

    def fingerprint(self, place: str) -> str:
        """Return a digest of the whole content of all files of a place."""
        covered = [*content_names(place), *(digest for _, digest in self.contents.of(place))]
        return hashlib.sha256("\n".join(covered).encode()).hexdigest()

    def identity(self, place: str) -> frozenset[str]:
        """Return the marks of a place, however it is spelled: two places that share one hold the same rows."""
        file, _, table = place.rpartition("#")
        if is_table(place) and not is_database(file):  # a sheet, or a table that was copied from another database
            return frozenset(f"{mark}#{table.lower()}" for mark in self.identity(file))
        return marks(place, dict(self.contents.of(place)), self._views(place) if is_table(place) else {})

    def run(self, select: exp.Expr, sources: Mapping[str, str], tables: Mapping[str, pa.Table]) -> pa.Table:
        """Run a SELECT over places and tables in memory, both by the names it uses."""
        text = self.dialect.text(select)
        with self.connections.connected(sources, tables) as connection:
            return connection.sql(text).to_arrow_table()

    def rehearse(
        self, selects: Iterable[exp.Expr], rows: Mapping[str, MadeUp], tables: Mapping[str, pa.Table], like: str
    ) -> None:
        """Run every SELECT over made-up rows, in a Parquet file if the rows of `like` are; refuse one that fails."""
        with (
            self.connections.connected({}, tables, staging=True) as connection,
            NamedTemporaryFile(dir=self.connections.stage, suffix=".parquet") as file,
        ):
            commands = [command for name, one in rows.items() for command in in_table(name, one)]
            for command in [*commands, *(in_file(file.name) if like and not is_table(like) else ())]:
                connection.execute(command)
            try:
                for select in selects:
                    connection.execute(self.dialect.text(select)).fetchall()
            except duckdb.Error as failure:  # it can only quote types, made-up values and what the analyst wrote
                reason = str(failure).splitlines()[0].rstrip(".")
                raise QueryRefused(
                    f"The database cannot compute this for every row there could be: {reason}."
                ) from None

    def exceeds(self, person: exp.Expr, most: int, rows: int, held: Held) -> bool | None:
        """Tell whether somebody has more than `most` rows, by sorting what their identifiers hash to.

        Two people of one hash look like one person: rows are then bounded that did not need to be. Nothing is sorted
        if the rows were counted while each was looked up in a register.
        """
        place = held.places.get("protected", "")
        if place and (found := self.companions.most_rows(person.name, place)) is not None:
            return found > most
        if rows > MOST_SORTED:
            return None
        with self.connections.connected(held.places, held.tables) as connection:
            parts = (connection.sql(self.dialect.text(one)).to_arrow_reader(BATCH) for one in hashed(person, rows))
            return max([repeats(batches, rows, most) for batches in parts])  # all are read, whatever is found

    def beside(self, rows: Rows, register: Mapping[str, str], held: Held, single: Collection[str]) -> Beside | None:
        """Return the cohorts, and columns of tables that are joined, next to the rows of Parquet files."""
        return self.companions.beside(rows, register, held, single)

    def _views(self, place: str) -> dict[tuple[str, str], str]:
        """Return the views of a DuckDB file, by schema and name in lower case."""
        text = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = ? AND NOT internal"
        with self.connections.connected({GUESSED: place}, {}) as connection:
            found = connection.execute(text, [f"in_{GUESSED}"]).fetchall()
        return {(schema.lower(), name.lower()): sql for schema, name, sql in found}

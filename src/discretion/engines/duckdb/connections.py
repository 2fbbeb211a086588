"""Connections to DuckDB that see the sources of a statement, and let nothing else in or out."""

import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from threading import Event, RLock, Thread
from typing import Any
from weakref import finalize

import duckdb
import pyarrow as pa

from discretion.engines.backend import CHANGED
from discretion.engines.duckdb.companion import FILE, NUMBERED, ROW_NUMBER
from discretion.engines.duckdb.place import in_database, in_parquet, is_numbered, is_table, quoted, stamps
from discretion.errors import EngineFailed, InvalidDeclaration

logger = logging.getLogger(__name__)

GUESSED = "guessed"  # the name of a source whose types are being found out
TIME_LIMIT = 3_600.0  # seconds that a statement may take
MEMORY_LIMIT = "50%"  # of what the machine has, or of what this program may use of it
MOST_OPEN = 8  # databases that keep what they have read
# No network, no extensions, no objects of the calling program, no files beyond the declared sources (see _open).
_LOCKED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "max_temp_directory_size": "32GB",
}
# All other optimisers are off. Some decide by the data's statistics, which ignore NaN; some take a cast out of its TRY.
# These two leave out columns that nobody asks for, and filter rows earlier. A condition in a statement never fails as a
# whole, so it may be tested anywhere; its check for NaN and infinity is inside it and moves with it. Filters by the
# joined keys (join_filter_pushdown) would make joins twice as fast, but then the rows found decide how two tables are
# joined: by meeting a condition or not, one person with an unusual number would decide how long it takes.
# Of two tables joined, DuckDB holds the second in memory: statements name the larger one first.
_OPTIMIZERS = ("unused_columns", "filter_pushdown")
_MEMORY = re.compile(r"[1-9]\d{0,8} ?([KMGT]i?B|%)")


class Connections:
    """Databases in memory, one for each set of sources in a state, with limits of memory and time."""

    def __init__(self, *, threads: int | None, memory: str, timeout_seconds: float) -> None:
        if not _MEMORY.fullmatch(memory):
            raise InvalidDeclaration(f"memory must be a size or a share, such as '4GB' or '50%', got {memory!r}.")
        limits = {"threads": threads, "memory_limit": memory}
        limits |= {"disabled_optimizers": ",".join(_others(_OPTIMIZERS))}
        self.config: Any = _LOCKED | {name: str(limit) for name, limit in limits.items() if limit is not None}
        self.stage = tempfile.mkdtemp(prefix="discretion-")  # for files of made-up rows
        finalize(self, shutil.rmtree, self.stage, ignore_errors=True)
        self._timeout = timeout_seconds
        self._types: dict[tuple[Any, ...], dict[str, str]] = {}  # a place in a state -> its columns
        self._opened: dict[
            tuple[Any, ...], tuple[duckdb.DuckDBPyConnection, set[str]]
        ] = {}  # see `_states`; names shown
        self._lock = RLock()  # opening a place asks for its columns, which opens it too

    @contextmanager
    def connected(
        self, sources: Mapping[str, str], tables: Mapping[str, pa.Table], *, staging: bool = False
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a connection that sees these places and tables, and nothing else; files of made-up rows if `staging`.

        It fails if a place is in another state after the block, so that nothing is kept of what was read.
        """
        try:
            mark = (staging, *_states(sources))
            with self._lock:
                if mark not in self._opened:
                    self._opened = dict(list(self._opened.items())[1 - MOST_OPEN :])
                    self._opened[mark] = self._open(sources, staging), set()
                database, shown = self._opened[mark]
                for name in [one for one in sources if one not in shown]:
                    self._show(database, name, sources[name])
                    shown.add(name)
                connection = database.cursor()
            with closing(connection):
                for name, table in tables.items():
                    connection.register(name, table)
                with limited(connection, self._timeout):
                    yield connection
            if mark != (staging, *_states(sources)):
                raise EngineFailed(CHANGED)
        except (duckdb.Error, pa.ArrowException, OSError) as failure:  # the last two: of a reader
            logger.error("DuckDB failed: %s", type(failure).__name__)  # its own words may quote a private value
            raise EngineFailed("The database failed; the operator's log names the kind of failure.") from None

    def stored_types(self, place: str) -> Mapping[str, str]:
        """Return the columns of a place with their types as stored, before times with a zone become times in UTC."""
        mark = (place, *stamps(place))
        if mark not in self._types:
            with self.connected({GUESSED: place}, {}) as connection:
                self._types[mark] = described(connection)
        return self._types[mark]

    def _open(self, sources: Mapping[str, str], staging: bool) -> duckdb.DuckDBPyConnection:
        # Made-up rows are too few for a second thread, which would only wait.
        limits = self.config | {"threads": "1"} if staging else self.config
        connection = duckdb.connect(":memory:", config=limits)
        files = [stamp[0] for place in sources.values() for stamp in stamps(place)]
        for name, place in sources.items():
            if is_table(place):
                connection.execute(f"ATTACH {quoted(place.rpartition('#')[0])} AS in_{name} (READ_ONLY)")
        connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, files))}]")
        if staging:
            connection.execute(f"SET allowed_directories = [{quoted(self.stage)}]")
        connection.execute("SET enable_external_access = false")
        silence(connection)
        connection.execute("SET TimeZone = 'UTC'")  # not the machine's
        connection.execute("SET lock_configuration = true")
        return connection

    def _show(self, connection: duckdb.DuckDBPyConnection, name: str, place: str) -> None:
        """Let a place be seen under a name."""
        types = {} if name == GUESSED else self.stored_types(place)
        reading = in_database(place, f"in_{name}", types) if is_table(place) else in_parquet(place, types)
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS {reading}")
        if name == "protected" and is_numbered(place, types):
            numbers = f', file_index AS "{FILE}", file_row_number AS "{ROW_NUMBER}"'
            connection.execute(f"CREATE OR REPLACE VIEW {NUMBERED} AS {in_parquet(place, types, numbers)}")


def _states(sources: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """Return what a database is kept for: one file can have any name in it, several have those of the question."""
    if len(sources) == 1:
        ((name, place),) = sources.items()
        return [(name if is_table(place) else "", place, *stamps(place))]
    return [(name, place, *stamps(place)) for name, place in sources.items()]


def silence(connection: duckdb.DuckDBPyConnection) -> None:
    """Switch the progress bar off: it would print how far a query is.

    In a notebook without ipywidgets it is off already, and DuckDB refuses any change of the setting.
    """
    ((shown,),) = connection.sql("SELECT current_setting('enable_progress_bar')").fetchall()
    if shown:
        connection.execute("SET enable_progress_bar = false")


def described(connection: duckdb.DuckDBPyConnection, rows: str = GUESSED) -> dict[str, str]:
    """Return the columns of a view or SELECT and their types."""
    return {row[0]: row[1] for row in connection.sql(f"DESCRIBE {rows}").fetchall()}


@contextmanager
def limited(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what still runs on a connection after so many seconds, statement after statement."""
    done = Event()

    def interrupt() -> None:
        late = not done.wait(seconds)
        while late and not done.wait(0.05):
            connection.interrupt()

    watch = Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


@cache
def _others(kept: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of all optimisers but these."""
    with duckdb.connect(":memory:") as connection:
        found = connection.sql("SELECT name FROM duckdb_optimizers() ORDER BY name").fetchall()
    return tuple(name for (name,) in found if name not in kept)

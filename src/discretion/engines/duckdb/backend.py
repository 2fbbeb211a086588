"""DuckDB as the engine: opens sources read-only, runs one SQL text, and lets nothing else in or out."""

import hashlib
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event, RLock, Thread
from typing import Any
from weakref import finalize

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines import Admission, Rows
from discretion.engines.column import Column
from discretion.engines.duckdb.admission import admit, sound_table
from discretion.engines.duckdb.companion import FILE, NUMBERED, PART, ROW_NUMBER, Companion, Owners
from discretion.engines.duckdb.identity import marks
from discretion.engines.duckdb.place import (
    MEMORY,
    ZONED,
    content_names,
    in_database,
    in_parquet,
    is_numbered,
    is_object,
    is_parquet,
    is_table,
    paths,
    quoted,
    stamps,
)
from discretion.engines.memory import arrow_table
from discretion.engines.person import among_texts, person_text, preference
from discretion.engines.rehearsal import commands, in_file, shape, unguarded
from discretion.engines.statement import Facts, Statement, statement
from discretion.engines.survey import distinct_texts, keys_without_rows, people_survey, rows_survey
from discretion.errors import EngineFailed, InvalidDeclaration, InvalidPreference, QueryRefused
from discretion.noise import coin_key
from discretion.statistics import Measure, Request, Statistics

logger = logging.getLogger(__name__)

GUESSED = "guessed"  # the name of a source whose types are being found out
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
# whole, so it may be tested anywhere; its check for NaN and infinity is inside it and moves with it.
# Of two tables joined, DuckDB holds the second in memory: statements name the larger one first.
_OPTIMIZERS = ("unused_columns", "filter_pushdown")
TIME_LIMIT = 3_600.0  # seconds that reading a source may take: a statement, or what is found out before it
_MEMORY = re.compile(r"[1-9]\d{0,8} ?([KMGT]i?B|%)")
MEMORY_LIMIT = "50%"  # of what the machine has, or of what this program may use of it


class DuckDB:
    """The embedded engine. It reads Parquet files, tables of DuckDB files and attached objects; others are copied."""

    def __init__(
        self, *, threads: int | None = None, memory: str = MEMORY_LIMIT, timeout_seconds: float = TIME_LIMIT
    ) -> None:
        if not _MEMORY.fullmatch(memory):
            raise InvalidDeclaration(f"memory must be a size or a share, such as '4GB' or '50%', got {memory!r}.")
        limits = {"threads": threads, "memory_limit": memory}
        limits |= {"disabled_optimizers": ",".join(_others(_OPTIMIZERS))}
        self._config: Any = _LOCKED | {name: str(limit) for name, limit in limits.items() if limit is not None}
        self._timeout = timeout_seconds
        self._rehearsed: set[Any] = set()  # statements that made-up rows did not make fail
        self._attached: dict[str, tuple[pa.Table, str]] = {}  # a copy of our own, and its digest
        self._digests: dict[tuple[Any, ...], str] = {}  # path, size and time of change -> digest
        self._counted: dict[tuple[Any, ...], tuple[bool, bool]] = {}  # a source and its people -> see `_count`
        self._types: dict[str, dict[str, str]] = {}  # fingerprint -> schema
        self._companions: dict[tuple[str, ...], Companion | None] = {}  # fingerprints and columns -> preferences by row
        self._opened: dict[tuple[Any, ...], duckdb.DuckDBPyConnection] = {}  # sources as they are now -> connection
        self._stage = tempfile.mkdtemp(prefix="discretion-")  # for files of made-up rows
        finalize(self, shutil.rmtree, self._stage, ignore_errors=True)
        self._lock = RLock()  # opening a source asks for its schema, which opens it too

    def attach(self, name: str, table: Any, person: str = "") -> str:
        """Take an Arrow, pandas or Polars object as a source; returns its name in the engine's words."""
        copy = _packed(sound_table(arrow_table(name, table), person))  # whoever owns the object may write to it later
        self._attached[name] = (pa.ipc.open_stream(copy).read_all(), hashlib.sha256(copy).hexdigest())
        return f"{MEMORY}{name}"

    def admit(self, request: Admission) -> tuple[str, tuple[str, ...]]:
        """Return where questions read a source, in the engine's words, and hints for the steward."""
        return admit(request)

    def schema(self, source: str) -> Mapping[str, str]:
        """The columns of a source and their SQL types."""
        mark = self.fingerprint(source)
        types = self._types.get(mark)
        if types is None:
            with self._connected({GUESSED: source}, {}) as connection:
                described = connection.sql(f"DESCRIBE {GUESSED}").to_arrow_table().to_pylist()
            types = self._types[mark] = {row["column_name"]: row["column_type"] for row in described}
        return {name: "TIMESTAMP" if kind == ZONED else kind for name, kind in types.items()}

    def fingerprint(self, source: str) -> str:
        """A digest of the whole content: of files, or of an attached table."""
        if is_object(source):
            return self._table(source)[1]
        files = stamps(source)
        for stamp in files:
            if stamp not in self._digests:
                with Path(stamp[0]).open("rb") as file:
                    self._digests[stamp] = hashlib.file_digest(file, "sha256").hexdigest()
        covered = [*content_names(source), *(self._digests[stamp] for stamp in files)]
        return hashlib.sha256("\n".join(covered).encode()).hexdigest()

    def identity(self, source: str) -> frozenset[str]:
        """Return the marks of a source, however it is spelled: two sources that share one hold the same rows."""
        whole = self.fingerprint(source)
        if is_object(source):
            return frozenset({whole})
        digests = {stamp[0]: self._digests[stamp] for stamp in stamps(source)}
        return marks(source, digests, self._views(source) if "#" in source else {})

    def _views(self, source: str) -> dict[tuple[str, str], str]:
        """The views of a DuckDB file, by schema and name in lower case."""
        text = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = ? AND NOT internal"
        with self._connected({GUESSED: source}, {}) as connection:
            found = connection.execute(text, [f"in_{GUESSED}"]).fetchall()
        return {(schema.lower(), name.lower()): sql for schema, name, sql in found}

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Forget what was attached inside the block if it fails."""
        before = dict(self._attached)
        try:
            yield
        except BaseException:
            self._attached = before
            raise

    def people(self, source: str, person: str, epsilon: str = "") -> pa.Table:
        """Everybody in a source once: person (text), rows, and epsilon (a number or a name) where it is asked for."""
        types, who = self.schema(source), exp.column(person, quoted=True)
        select = exp.select(exp.alias_(person_text(who, types[person]), "person"), "COUNT(*) AS rows")
        if epsilon:
            chosen = preference(exp.column(epsilon, quoted=True), types[epsilon])
            several = f"MIN({chosen}) IS DISTINCT FROM MAX({chosen}) OR COUNT({chosen}) NOT IN (0, COUNT(*))"
            select = select.select(f"MIN({chosen}) AS epsilon", f"{several} AS several", dialect="duckdb")
        select = select.from_("source").where(exp.Not(this=exp.Is(this=who, expression=exp.Null()))).group_by(who)
        with self._connected({"source": source}, {}) as connection:
            people = connection.sql(select.sql("duckdb")).to_arrow_table()
        if epsilon:
            if any(people["several"].to_numpy()):
                raise InvalidPreference(
                    f"Somebody's rows carry different values of {epsilon!r}. Give each person one preference."
                )
            people = people.drop_columns(["several"])
        return people

    def survey(self, table: Table, register: str, person: str) -> Mapping[tuple[str, str], int]:
        """Return counts about a table that its steward should know: (measure, column or key) -> count."""
        apart = {} if table.protects == "value" else self.schema(register)
        sources = {"protected": table.source} | ({"register": register} if apart else {})
        counts: dict[tuple[str, str], int] = {}
        with self._connected(sources, {}) as connection:
            for names, text in (rows_survey(table), people_survey(table, apart, person)):
                counts |= dict(zip(names, connection.sql(text).fetchall()[0], strict=True))
            values = {
                column: {row[0] for row in connection.sql(distinct_texts(column, table.keys[column])).fetchall()}
                for column in table.keys
            }
        return {name: count for name, count in {**counts, **keys_without_rows(table, values)}.items() if count}

    def check(self, request: Request) -> None:
        """Run the statement over made-up rows with the extremes of every type, and refuse it if one makes it fail."""
        rows: Rows = request.source
        apart = self.schema(rows.cohorts.register) if rows.cohorts.register else {}
        in_files = is_parquet(rows.query.table.source)
        mark = (in_files, *shape(request, apart))
        if mark in self._rehearsed:
            return
        usual = _types(rows, apart)
        known = (usual, replace(usual, owned=True, bounded=True, unique=True))
        stated = [statement(rows, request.measures, facts, "") for facts in known]
        tables = {name: table for one in stated for name, table in one.tables.items()}
        with self._connected({}, tables) as connection, NamedTemporaryFile(dir=self._stage, suffix=".parquet") as file:
            made_up = [*commands(rows, apart, stated[0]), *(in_file(file.name) if in_files else ())]
            for command in made_up:
                connection.execute(command)
            try:
                for text in (*(one.select.sql("duckdb") for one in stated), unguarded(rows)):
                    connection.sql(text).to_arrow_table()
            except duckdb.Error as failure:  # it can only quote types, made-up values and what the analyst wrote
                reason = str(failure).splitlines()[0].rstrip(".")
                raise QueryRefused(
                    f"The database cannot compute this for every row there could be: {reason}."
                ) from None
        self._rehearsed = {*list(self._rehearsed)[-1_000:], mark}

    def compute(self, request: Request) -> tuple[Statistics, ...]:
        """Statistics for every measure, by one SQL text."""
        rows: Rows = request.source
        table, register = rows.query.table, [rows.cohorts.register] if rows.cohorts.register else []
        with self._unchanged([table.source, *register]):  # what is found out about them holds for what is read
            stated = statement(rows, request.measures, self._facts(rows), coin_key())
            with self._connected(stated.sources, stated.tables, table.columns) as connection:
                answer = connection.sql(stated.select.sql("duckdb")).to_arrow_table()
        shape = (len(rows.query.groups), rows.cohorts.count)
        columns = {column.name: column for column in stated.columns}
        pairs = zip(request.measures, stated.names, strict=True)
        return tuple(_statistics(answer, stated, columns[name], measure, shape) for measure, name in pairs)

    def _facts(self, rows: Rows) -> Facts:
        table, cohorts = rows.query.table, rows.cohorts
        types = dict(table.columns)
        if types != self.schema(table.source):
            raise EngineFailed(f"The columns of table {table.name!r} are not those that were declared. Refresh it.")
        owned, bounded = self._count(table.source, table.person, types, table.rows_per_person)
        apart = self.schema(cohorts.register) if cohorts.register else {}
        companion = self._companion(rows, apart)
        return replace(
            _types(rows, apart),
            owned=owned,
            bounded=bounded,
            unique=not apart or companion is not None or self._count(cohorts.register, cohorts.person, apart, 1)[1],
            companion=companion,
        )

    def _companion(self, rows: Rows, register: Mapping[str, str]) -> Companion | None:
        """The preferences beside the rows, unless the rows say them themselves: once per state of all there is."""
        table, cohorts = rows.query.table, rows.cohorts
        if not is_numbered(table.source, table.columns) or not (register or cohorts.changes is not None):
            return None
        owners = Owners(
            person=table.person,
            person_type=table.columns[table.person],
            epsilon=cohorts.epsilon or table.epsilon,
            epsilon_type=register[cohorts.epsilon] if register else table.columns[table.epsilon],
            register_person=cohorts.person,
            register_type=register.get(cohorts.person, ""),
        )
        sources = {"protected": table.source} | ({"register": cohorts.register} if register else {})
        mark = (str(owners), *(self.fingerprint(source) for source in sources.values()))
        enrolled = self._kept(mark, lambda: self._enrolled(owners, sources, table.columns))
        changes, count = cohorts.changes, cohorts.count
        if enrolled is None or changes is None:
            return enrolled
        mark = (*mark, hashlib.sha256(_packed(changes)).hexdigest(), str(count))
        return self._kept(mark, lambda: self._changed(enrolled, owners, sources, table.columns, changes, count))

    def _enrolled(self, owners: Owners, sources: Mapping[str, str], types: Mapping[str, str]) -> Companion | None:
        with self._connected(sources, {}, types) as connection:
            return _accompany(connection, owners, sources["protected"])

    def _changed(
        self,
        enrolled: Companion,
        owners: Owners,
        sources: Mapping[str, str],
        types: Mapping[str, str],
        changes: pa.Table,
        cohorts: int,
    ) -> Companion:
        who, few = among_texts(owners.person_column, owners.person_type, changes)
        with self._connected(sources, {"changes": few}, types) as connection:
            return enrolled.with_changes(
                connection.sql(owners.changes(who).sql("duckdb")).to_arrow_reader(PART), cohorts
            )

    def _kept(self, mark: tuple[str, ...], make: Callable[[], Companion | None]) -> Companion | None:
        """What `make` made, from the last few."""
        kept = self._companions
        if mark not in kept:
            made = make()
            kept = self._companions = {**dict(list(self._companions.items())[-3:]), mark: made}
        return kept[mark]

    def _count(self, source: str, person: str, types: Mapping[str, str], most: int) -> tuple[bool, bool]:
        """Whether every row has an owner, and whether nobody has more than `most`: once per state of the source."""
        mark = (self.fingerprint(source), person, str(types), most)
        counted = self._counted.get(mark)
        if counted is None:
            with self._connected({"protected": source}, {}, types) as connection:
                counted = _count(connection, exp.column(person, quoted=True), most)
            self._counted[mark] = counted
        return counted

    @contextmanager
    def _unchanged(self, sources: Iterable[str]) -> Iterator[None]:
        """What is read meanwhile is one state of these sources, or nothing of it is used or kept."""
        before = {source: self.fingerprint(source) for source in sources}
        yield
        if before != {source: self.fingerprint(source) for source in before}:
            self._opened, self._counted, self._types, self._companions = {}, {}, {}, {}
            raise EngineFailed("A source changed while it was read. Ask again when nobody writes to it.")

    @contextmanager
    def _connected(
        self, sources: Mapping[str, str], tables: Mapping[str, pa.Table], types: Mapping[str, str] | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that sees these sources and small tables, and nothing else; the sources stay as they are."""
        try:
            with self._unchanged(sources.values()):
                states = ((name, source, self.fingerprint(source), _places(source)) for name, source in sources.items())
                mark = (*states, str(types))
                with self._lock:
                    if mark not in self._opened:
                        self._opened = dict(list(self._opened.items())[-7:])  # the last few keep what they have read
                        self._opened[mark] = self._open(sources)
                    connection = self._opened[mark].cursor()
                with closing(connection):
                    found = {name: self._table(source)[0] for name, source in sources.items() if is_object(source)}
                    for name, table in {**found, **tables}.items():
                        connection.register(name, table)
                    with _limited(connection, self._timeout):
                        yield connection
        except (duckdb.Error, pa.ArrowException, OSError) as failure:  # the last two: of a reader
            logger.error("DuckDB failed: %s", type(failure).__name__)  # its own words may quote a private value
            raise EngineFailed("The database failed; the operator's log names the kind of failure.") from None

    def _open(self, sources: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:", config=self._config)
        kept = {name: source for name, source in sources.items() if not is_object(source)}
        files = [stamp[0] for source in kept.values() for stamp in stamps(source)]
        for name, source in kept.items():
            if is_table(source):
                connection.execute(f"ATTACH {quoted(source.rpartition('#')[0])} AS in_{name} (READ_ONLY)")
        connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, files))}]")
        if not sources:
            connection.execute(f"SET allowed_directories = [{quoted(self._stage)}]")  # made-up rows alone
        connection.execute("SET enable_external_access = false")
        connection.execute("SET enable_progress_bar = false")  # it would print how far a query is
        for name, source in kept.items():
            self._show(connection, name, source)
        connection.execute("SET lock_configuration = true")
        return connection

    def _show(self, connection: duckdb.DuckDBPyConnection, name: str, source: str) -> None:
        """Let a source be seen under a name."""
        types = {} if name == GUESSED else self._stored_types(source)
        reading = in_database(source, f"in_{name}", types) if is_table(source) else in_parquet(source, types)
        connection.execute(f"CREATE VIEW {name} AS {reading}")
        if name == "protected" and is_numbered(source, types):
            numbers = f', file_index AS "{FILE}", file_row_number AS "{ROW_NUMBER}"'
            connection.execute(f"CREATE VIEW {NUMBERED} AS {in_parquet(source, types, numbers)}")

    def _stored_types(self, source: str) -> Mapping[str, str]:
        """Return the types as they are stored, before times with a zone become times in UTC."""
        self.schema(source)
        return self._types[self.fingerprint(source)]

    def _table(self, source: str) -> tuple[pa.Table, str]:
        name = source.removeprefix(MEMORY)
        if name not in self._attached:
            raise EngineFailed(f"{name!r} was an object of an earlier program. Attach it again, or protect a file.")
        return self._attached[name]


@contextmanager
def _limited(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
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
    """The names of all optimisers but these."""
    with duckdb.connect(":memory:") as connection:
        found = connection.sql("SELECT name FROM duckdb_optimizers() ORDER BY name").fetchall()
    return tuple(name for (name,) in found if name not in kept)


def _places(source: str) -> tuple[str, ...]:
    """Return where the files of a source are now: a link may lead elsewhere than when it was opened."""
    return () if is_object(source) else tuple(stamp[0] for stamp in stamps(source))


def _types(rows: Rows, register: Mapping[str, str]) -> Facts:
    """What the declaration says, before anything was found out."""
    types, cohorts = rows.query.table.columns, rows.cohorts
    return Facts(
        person=types[rows.query.table.person],
        epsilon=register[cohorts.epsilon] if register else types.get(rows.query.table.epsilon, ""),
        register_person=register[cohorts.person] if register else "",
    )


def _count(connection: duckdb.DuckDBPyConnection, person: exp.Expr, most: int) -> tuple[bool, bool]:
    """A part of the people at a time: a table of everybody can be many times the source."""
    who = person.sql("duckdb")
    ((rows, owned),) = connection.sql(f"SELECT COUNT(*), COUNT({who}) FROM protected").fetchall()
    parts, bounded = 1 + rows // PART, True
    for part in range(parts):
        these = f"FROM protected WHERE NOT {who} IS NULL AND HASH({who}) % {parts} = {part}"
        busier = f"SELECT COUNT(*) FROM (SELECT {who} {these} GROUP BY {who} HAVING COUNT(*) > {most})"
        ((busy,),) = connection.sql(busier).fetchall()
        bounded &= busy == 0
    return rows == owned, bounded


def _accompany(connection: duckdb.DuckDBPyConnection, owners: Owners, source: str) -> Companion | None:
    """What the preferences found are, file by file; none for a table without rows."""
    ((threads,),) = connection.sql("SELECT current_setting('threads')").fetchall()
    told = connection.sql(f"SELECT file_name, num_rows FROM parquet_file_metadata([{paths(source)}])").fetchall()
    sizes = [dict(told)[stamp[0]] for stamp in stamps(source)]  # file_index counts them in the order they were given
    found = connection.sql(owners.preferences.sql("duckdb")).to_arrow_table()["preference"]
    places = np.arange(len(found), dtype=np.min_scalar_type(len(found)))
    connection.register("found", pa.table({"preference": found, "place": places}))
    parts = 1 + sum(sizes) // PART
    texts = (owners.places(part, parts).sql("duckdb") for part in range(parts if owners.register_person else 1))
    batches = (batch for text in texts for batch in connection.sql(text).to_arrow_reader(PART))
    return Companion.beside(sizes, found.to_pylist(), threads).with_places(batches) if any(sizes) else None


def _packed(table: pa.Table) -> pa.Buffer:
    """A copy of a table in one stretch of bytes."""
    copy = pa.BufferOutputStream()
    with pa.ipc.new_stream(copy, table.schema) as writer:
        writer.write_table(table)
    return copy.getvalue()


def _statistics(
    answer: pa.Table, stated: Statement, column: Column, measure: Measure, shape: tuple[int, int]
) -> Statistics:
    """One measure's whole numbers by group and cohort, out of what the SQL gave."""
    several = [other.name for other in stated.columns if other.histogram and f"{other.name}_all" in answer.column_names]
    about = np.ones(answer.num_rows, dtype=bool)
    for name in several:
        mine = measure.histogram and name == column.name
        about &= answer[f"{name}_all"].to_numpy() == (0 if mine else 1)
    if measure.histogram:
        return _histogram(answer.filter(pa.array(about)), column, measure, shape)
    part = answer.filter(pa.array(about))
    counts = _spread(part, f"{column.name}_n", shape)
    if measure.aggregate.kind in ("count", "people"):
        return Statistics(counts=counts.astype(np.int64), totals=counts)
    return Statistics(
        counts=counts.astype(np.int64),
        totals=_spread(part, f"{column.name}_s", shape),
        squares=_spread(part, f"{column.name}_q", shape) if column.squares else None,
    )


def _histogram(part: pa.Table, column: Column, measure: Measure, shape: tuple[int, int]) -> Statistics:
    one = measure.aggregate
    steps = np.arange(one.lower, one.upper + 1)
    part = part.filter(part[column.name].is_valid())
    histogram = np.zeros((*shape, len(steps)), dtype=np.int64)
    places = part["g"].to_numpy(), part["c"].to_numpy(), part[column.name].to_numpy() - one.lower
    np.add.at(histogram, places, part["n"].cast(pa.int64()).to_numpy())
    totals = histogram.astype(object) @ steps.astype(object)
    return Statistics(counts=histogram.sum(axis=2), totals=totals, histogram=histogram)


def _spread(part: pa.Table, name: str, shape: tuple[int, int]) -> Any:
    """A column of whole numbers of any size as (group, cohort), 0 where there is no row."""
    spread = np.zeros(shape, dtype=object)
    spread[part["g"].to_numpy(), part["c"].to_numpy()] = [int(number or 0) for number in part[name].to_pylist()]
    return spread

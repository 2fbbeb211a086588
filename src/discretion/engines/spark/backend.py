"""Spark as a backend: it reads Parquet files and catalog tables where they are, and other sources from a copy."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from discretion.declaration.source import TABLE
from discretion.engines.backend import Admission, Backend, Held
from discretion.engines.choice import SECRET
from discretion.engines.duckdb.admission import admit as admitted
from discretion.engines.duckdb.admission import sound_table
from discretion.engines.duckdb.lakehouse import KINDS, files_of
from discretion.engines.duckdb.rehearsal import in_table
from discretion.engines.rehearsal import MadeUp
from discretion.engines.spark import place as places
from discretion.engines.spark.dialect import SPARK
from discretion.engines.spark.inline import inlined
from discretion.engines.spark.memory import FrameCopy, PeopleList, arrow_types, checkpointed, listed, spark_table
from discretion.engines.spark.ranking import in_arrays
from discretion.engines.spark.safe import columns_of, offends
from discretion.engines.spark.session import FAILURES, DataFrame, own_session, quiet
from discretion.engines.survey import listed_busy
from discretion.errors import InvalidDeclaration, QueryRefused

MOST_LISTS = 8  # lists of people that are kept
MOST_FRAMES = 32  # data frames that are kept, of places in a state
_BUSY = "busy:"
_NUMBERS = count()
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){0,2}")


class SparkBackend(Backend):
    """Apache Spark: any session of PySpark that runs in this program."""

    dialect = SPARK
    part = 1 << 62  # people are counted all together: executors share the work
    windowed = True
    joins_people = False

    def __init__(self, session: Any = None) -> None:
        self.session = own_session(session)
        self._frames: dict[Any, DataFrame] = {}  # a place in a state -> its rows
        self._lists: dict[str, PeopleList | None] = {}  # the place of a list of people -> the list, if it is short
        self._tables: dict[int, tuple[pa.Table, DataFrame]] = {}  # the identity of a table in memory, and both
        self._lock = RLock()

    def admit(self, admission: Admission) -> tuple[str, tuple[str, ...]]:
        """Return where questions read a source, and hints for the steward."""
        source = admission.source
        if source.kind == "table":
            if source.types or source.zones:
                raise InvalidDeclaration(
                    f"{source.places[0]!r} has types of its own: 'types' and 'zones' are for files. Make a view that "
                    "casts its columns, and protect the view."
                )
            place = self._table(source.places[0].removeprefix(TABLE))
        elif source.types or source.zones:
            return admitted(admission, in_place=False)
        elif source.kind in KINDS and (files := files_of(source)):
            place = "\n".join(files)
        elif source.kind == "parquet" and (source.is_remote or not _is_copied(admission)):
            place = "\n".join(source.places)
        else:
            return admitted(admission, in_place=False)
        with quiet():
            sound = not offends(places.frame(self.session, place), admission.person)
        return place if sound else places.made_safe(place, admission.person), ()

    def sound(self, table: pa.Table, person: str) -> pa.Table:
        """Return a table in memory with NULL for every value that could make a question fail."""
        return spark_table(sound_table(table, person))

    def columns(self, source: str | pa.Table) -> Mapping[str, str]:
        """Return the columns of a place, or of a table in memory, with their types by the names in query/kind.py."""
        if not isinstance(source, str):
            return arrow_types(source)
        with quiet():
            return columns_of(self._frame(source))

    def fingerprint(self, place: str) -> str:
        """Return a digest of the whole content of a place."""
        with quiet():
            return places.fingerprint(self.session, place)

    def identity(self, place: str) -> frozenset[str]:
        """Return the marks of a place, however it is spelled: two places that share one hold the same rows."""
        with quiet():
            return places.identity(self.session, place)

    def run(self, select: exp.Expr, sources: Mapping[str, str], tables: Mapping[str, pa.Table]) -> pa.Table:
        """Run a SELECT over places and tables in memory, both by the names it uses."""
        with quiet():
            select = inlined(select.copy(), tables)
            if (people := self._lists.get(sources.get("busy", ""))) is not None:
                select = in_arrays(select, people)
            used = {table.name for table in select.find_all(exp.Table)}
            frames = {name: self._frame(place) for name, place in sources.items()}
            frames |= {name: self._in_memory(table) for name, table in tables.items() if name in used}
            return self._run(select, frames)

    def rehearse(
        self, selects: Iterable[exp.Expr], rows: Mapping[str, MadeUp], tables: Mapping[str, pa.Table], like: str
    ) -> None:
        """Run every SELECT over made-up rows; refuse one that fails."""
        with quiet():
            frames = {name: self.session.createDataFrame(_made(name, one)) for name, one in rows.items()}
            frames |= {name: self._in_memory(table) for name, table in tables.items()}
            try:
                for select in selects:
                    self._run(inlined(select.copy(), tables), frames)
            except FAILURES as failure:  # it can only quote types, made-up values and what the analyst wrote
                reason = str(failure).splitlines()[0].rstrip(".")
                raise QueryRefused(
                    f"The database cannot compute this for every row there could be: {reason}."
                ) from None

    def exceeds(self, person: exp.Expr, most: int, rows: int, held: Held) -> bool:
        """Tell whether somebody has more than `most` rows: the list of them tells, and questions will need it."""
        people = self._listed(listed_busy(person, most), held)[1]
        return people is None or people.rows > 0

    def busy(self, select: exp.Expr, held: Held) -> str:
        """Return the place of the list of people that this SELECT gives, found once per state of the source."""
        mark, people = self._listed(select, held)
        return "" if people is None else mark

    def _listed(self, select: exp.Expr, held: Held) -> tuple[str, PeopleList | None]:
        """Return the name of a list of people and the list, if it is short."""
        mark = f"{_BUSY}{held.states['protected']} {select.sql('duckdb')}"
        with self._lock, quiet():
            if mark not in self._lists:
                self._forget_lists()
                frames = {name: self._frame(place) for name, place in held.places.items()}
                frames |= {name: self._in_memory(table) for name, table in held.tables.items()}
                with self._shown(frames) as views:
                    found = self.session.sql(self.dialect.text(_renamed(select, views)))
                    self._lists[mark] = listed(self.session, found)
            return mark, self._lists[mark]

    def checkpoint(self, frame: DataFrame, person: str) -> FrameCopy:
        """Return a copy of a data frame of Spark, in which no value can make a question fail."""
        with quiet():
            return checkpointed(self.session, frame, person)

    def _table(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise InvalidDeclaration(f"{name!r} is not the name of a table. Write table:database.name.")
        with quiet():
            exists = self.session.catalog.tableExists(name)
        if not exists:
            raise InvalidDeclaration(f"There is no table {name!r} in Spark's catalog. Temporary views have a session.")
        return f"{TABLE}{name}"

    def _frame(self, place: str) -> DataFrame:
        """Return the rows of a place; the files are listed once for every state."""
        if (people := self._lists.get(place)) is not None:
            return people.frame.hint("broadcast")  # Spark cannot tell that it is short
        mark = (place, places.state(place))
        if not mark[1]:  # its state is not quick to see
            return places.frame(self.session, place)
        with self._lock:
            if mark not in self._frames:
                self._frames = dict(list(self._frames.items())[1 - MOST_FRAMES :])
                self._frames[mark] = places.frame(self.session, place)
            return self._frames[mark]

    def _in_memory(self, table: Any) -> DataFrame:
        """Return a table as a data frame; the last few are kept, because questions read attached objects again."""
        if isinstance(table, DataFrame):
            return table
        with self._lock:
            if id(table) not in self._tables:
                self._tables = dict(list(self._tables.items())[1 - MOST_FRAMES :])
                self._tables[id(table)] = table, self.session.createDataFrame(spark_table(table))
            return self._tables[id(table)][1]

    def _run(self, select: exp.Expr, frames: Mapping[str, DataFrame]) -> pa.Table:
        select, secrets = _without_secrets(select)
        if secrets:
            frames = {**frames, "secrets": self.session.createDataFrame(secrets)}
        with self._shown(frames) as views:
            return self.session.sql(self.dialect.text(_renamed(select, views))).toArrow()

    @contextmanager
    def _shown(self, frames: Mapping[str, DataFrame]) -> Iterator[Mapping[str, str]]:
        """Let data frames be seen under names that no other statement uses; give those names."""
        number = next(_NUMBERS)
        views = {name: f"discretion_{number}_{name}" for name in frames}
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(views[name])
            yield views
        finally:
            for view in views.values():
                self.session.catalog.dropTempView(view)

    def _forget_lists(self) -> None:
        for mark in list(self._lists)[: 1 - MOST_LISTS]:
            del self._lists[mark]  # Spark forgets what nothing refers to


def _is_copied(admission: Admission) -> bool:
    """Tell whether DuckDB must read a file: Spark passes over names that begin with . or _."""
    names = [place.rstrip("/").rpartition("/")[2] for place in admission.source.places]
    return any(name.startswith((".", "_")) for name in names)


def _renamed(select: exp.Expr, views: Mapping[str, str]) -> exp.Expr:
    """Return a statement over views of these names, in which every table is still known by its own."""
    for table in list(select.find_all(exp.Table)):
        if table.name in views and not table.db:
            alias = table.alias or table.name
            table.set("this", exp.to_identifier(views[table.name], quoted=True))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    return select


def _without_secrets(select: exp.Expr) -> tuple[exp.Expr, pa.Table | None]:
    """Return a statement that reads its secrets from a table, and the table: plans and logs keep a statement's text."""
    found: dict[str, str] = {}
    for literal in list(select.find_all(exp.Literal)):
        if literal.meta_get(SECRET):
            name = found.setdefault(str(literal.this), f"s{len(found)}")
            literal.replace(exp.select(exp.column(name)).from_("secrets").subquery())
    return select, pa.table({name: [secret] for secret, name in found.items()}) if found else None


def _made(name: str, made_up: MadeUp) -> pa.Table:
    """Return made-up rows; a column of a type that only Spark has is never used, so it is a text."""
    known = ("VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "DOUBLE", "FLOAT", "TINYINT", "SMALLINT", "INTEGER", "BIGINT")
    columns = {
        column: kind if kind in known or kind.startswith("DECIMAL") else "VARCHAR"
        for column, kind in made_up.columns.items()
    }
    shaped = MadeUp(columns=columns, values=made_up.values, rows=made_up.rows)
    with duckdb.connect(":memory:") as connection:
        for command in in_table(name, shaped):
            connection.execute(command)
        return spark_table(connection.sql(f"SELECT * FROM {name}").to_arrow_table())

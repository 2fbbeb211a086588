"""Admission: a source as it is now becomes a place that questions read, in which no row can make them fail.

Parquet files and tables of DuckDB files are read in place if every value in them is sound. Everything else is copied
into one Parquet file that only its owner can read.
"""

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
from sqlglot import exp

from discretion.declaration.source import EVERY_KIND, Source, public_url
from discretion.declaration.table import COPY
from discretion.engines.backend import Admission
from discretion.engines.duckdb import lakehouse
from discretion.engines.duckdb.connections import described, silence
from discretion.engines.duckdb.database import postgres_rows, sqlite_rows
from discretion.engines.duckdb.misfit import misfits, stream_misfits, typed_misfits
from discretion.engines.duckdb.place import (
    ZONED,
    is_table,
    matching,
    named,
    quoted,
    refuse_other_than_parquet,
    stamps,
    table_in,
)
from discretion.engines.duckdb.safe import offends, safe, select, select_all
from discretion.engines.duckdb.text import (
    STAGED,
    Guess,
    cast,
    guess,
    in_utf8,
    not_utf8,
    present,
    stage_csv,
    stage_excel,
    stage_json,
)
from discretion.errors import EngineFailed, InvalidDeclaration, SourceChanged

logger = logging.getLogger(__name__)

_READING: Any = {
    "disabled_optimizers": "statistics_propagation",  # it believes that there is no NaN, and drops the search for one
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_DAMAGED = (
    "The text {place!r} has a line with a stray quote, or with more or fewer fields than its header: which rows it "
    "holds is in doubt. Write it anew with a CSV writer, or as Parquet. If fields are not separated by "
    "{delimiter!r}, give the delimiter."
)


def admit(request: Admission, *, in_place: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return where questions read, and hints for the steward; a copy unless a sound source may be read `in_place`."""
    source = request.source
    if source.kind == "table":
        raise InvalidDeclaration(f'{str(source)!r} is in Spark\'s catalog. Read it with connect(..., engine="spark").')
    with _connected(source) as connection:
        before = _state(source)
        place = _in_place(connection, source)
        plain = place and in_place and not source.types and not source.zones
        if plain and _is_sound(connection, place, request.person):
            return place, ()
        folder = _folder(request)
        with ExitStack() as opened, tempfile.TemporaryDirectory(prefix=".discretion-", dir=folder) as private:
            columns, hints = _staged(connection, request, place, opened, Path(private))
            rows = _sound_rows(connection, select(columns, STAGED), request.person)
            copy = _write(connection, _in_zones(connection, rows, source), request)
    if before != _state(source):
        Path(copy).unlink()
        raise SourceChanged("The source changed while it was copied. Try again when nobody writes to it.")
    return copy, hints


def sound_table(table: pa.Table, person: str = "") -> pa.Table:
    """Return a table in memory as questions may read it; the same table if every value in it is sound."""
    with duckdb.connect(":memory:", config=_READING) as connection:
        silence(connection)
        table = _in_utc(table)
        connection.register(STAGED, table)
        rows = f"SELECT * FROM {STAGED}"
        types = described(connection, rows)
        checks = [offends(name, kind, person) for name, kind in types.items()]
        if not types or not (ZONED in types.values() or any(*connection.sql(select_all(checks, STAGED)).fetchall())):
            return table
        return connection.sql(_sound_rows(connection, rows, person)).to_arrow_table()


@contextmanager
def _connected(source: Source) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection that may read any file; its own words may quote a value, so they are replaced."""
    with duckdb.connect(":memory:", config=_READING) as connection:
        silence(connection)
        connection.execute("SET TimeZone = 'UTC'")
        try:
            yield connection
        except duckdb.Error as failure:
            logger.error("DuckDB failed: %s", type(failure).__name__)
            raise _explained(failure, source) from None
        except pa.ArrowException as failure:
            raise InvalidDeclaration(
                f"{str(source)!r} cannot be read as {source.kind} ({type(failure).__name__}). Write it anew."
            ) from None


def _explained(failure: duckdb.Error, source: Source) -> Exception:
    told = str(failure)
    if re.search(r"unicode|utf-8|string encoding", told, re.IGNORECASE):
        if source.kind == "csv":
            return not_utf8(str(source))
        return InvalidDeclaration(f"A text in {str(source)!r} is not valid UTF-8. Write that column anew, or drop it.")
    if source.kind == "csv" and isinstance(failure, duckdb.InvalidInputException):
        return InvalidDeclaration(_DAMAGED.format(place=str(source), delimiter=source.delimiter or ","))
    if source.kind == "duckdb":
        return InvalidDeclaration(
            f"Table {source.table!r} of {source.places[0]!r} cannot be read. Is there such a table in that DuckDB "
            "file, and has nobody else opened it for writing?"
        )
    return EngineFailed(f"{str(source)!r} cannot be read as {source.kind} ({type(failure).__name__}). Write it anew.")


# In place -----------------------------------------------------------------------------------------------------------


def _in_place(connection: duckdb.DuckDBPyConnection, source: Source) -> str:
    """Return the place in the engine's words if questions can read it as it is, and else nothing."""
    if source.kind == "parquet" and not source.is_remote:
        _refuse_different_types(connection, "\n".join(source.places))
        return "\n".join(source.places)
    if source.kind in lakehouse.KINDS:
        place = "\n".join(lakehouse.files_of(source))
        if place:
            _refuse_different_types(connection, place)
        return place
    if source.kind != "duckdb":
        return ""
    place = f"{source.places[0]}#{source.table}"
    stamps(place)  # says if there is no such file
    connection.execute(f"ATTACH {quoted(source.places[0])} AS given (READ_ONLY)")
    return "" if _is_view(connection, place) else place


def _is_view(connection: duckdb.DuckDBPyConnection, place: str) -> bool:
    """Tell whether a table is only defined by others, maybe of other files: its own file would not show a change."""
    views = connection.sql("SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'given'").fetchall()
    asked = exp.to_table(table_in(place, "given"), dialect="duckdb")
    return (asked.db.lower(), asked.name.lower()) in {(one.lower(), view.lower()) for one, view in views}


def _refuse_different_types(connection: duckdb.DuckDBPyConnection, place: str) -> None:
    """Refuse Parquet files of one source whose columns differ: a row's file would decide whether a question fails."""
    first: dict[str, str] = {}
    for path, *_ in stamps(place):
        refuse_other_than_parquet(path)
        types = described(connection, f"SELECT * FROM read_parquet({quoted(path)}, hive_partitioning = false)")
        first = first or types
        if differing := sorted(set(types.items()) ^ set(first.items())):
            raise InvalidDeclaration(
                f"{path!r} has another type or name of column {differing[0][0]!r} than the files before it. Write all "
                "files with the same columns and types."
            )


def _is_sound(connection: duckdb.DuckDBPyConnection, place: str, person: str) -> bool:
    """Tell whether every value can be read and none of them must be changed; it reads all of them."""
    rows = _rows(place)
    types = described(connection, rows)
    checks = [offends(name, kind, person) for name, kind in types.items()]
    try:
        (found,) = connection.sql(select_all(checks, f"({rows})")).fetchall()
    except duckdb.ConversionException:  # a time that cannot be read at all
        return False
    return not any(found)


def _rows(place: str) -> str:
    if is_table(place):
        return f"SELECT * FROM {table_in(place, 'given')}"
    hive = str(place.endswith("/")).lower()
    files = ", ".join(quoted(path) for path, *_ in stamps(place))
    return f"SELECT * FROM read_parquet([{files}], hive_partitioning = {hive})"


# Copies -------------------------------------------------------------------------------------------------------------


def _staged(
    connection: duckdb.DuckDBPyConnection, request: Admission, place: str, opened: ExitStack, private: Path
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Let the rows be seen under one name; return each column as SQL, and hints."""
    source, types = request.source, dict(request.source.types)
    told: tuple[str, ...] = ()
    if source.kind in lakehouse.KINDS and not place:
        connection.register(STAGED, _in_utc(lakehouse.partitioned_rows(source)))
        found = described(connection, f"SELECT * FROM {STAGED}")
        return {name: named(name) for name in found}, ()
    if source.is_remote and source.kind not in ("postgresql", *lakehouse.KINDS):
        source = _fetched(connection, source, private)
    if source.is_text:
        return _texts(connection, replace(request, source=source), opened, private)
    if source.kind in ("sqlite", "postgresql"):
        reading = sqlite_rows if source.kind == "sqlite" else postgres_rows
        with reading(source) as (rows, found):  # a stream is read once, so values that do not fit are counted before
            types = {**found, **types}
            told = stream_misfits(connection, rows, types)
        connection.register(STAGED, opened.enter_context(reading(source))[0])
    elif source.kind == "duckdb":
        connection.execute(f"CREATE VIEW {STAGED} AS SELECT * FROM {table_in(f'#{source.table}', 'given')}")
    elif source.kind != "arrow" and place.endswith("/"):
        connection.execute(f"CREATE VIEW {STAGED} AS {_rows(place)}")
    else:
        told = stream_misfits(connection, _arrow_or_parquet(source, place), types)
        connection.register(STAGED, _arrow_or_parquet(source, place))
    found = described(connection, f"SELECT * FROM {STAGED}")
    if unknown := sorted(set(types) - set(found)):
        raise InvalidDeclaration(f"`types` names {unknown[0]!r}, but {str(source)!r} has no such column.")
    if source.kind == "duckdb" or place.endswith("/"):
        told = typed_misfits(connection, STAGED, types)
    return {name: f"TRY_CAST({named(name)} AS {types[name]})" if name in types else named(name) for name in found}, told


def _arrow_or_parquet(source: Source, place: str) -> Any:
    """Return rows as Arrow reads them: it reads times that DuckDB cannot, and keeps their unit."""
    if source.kind == "arrow":
        return _in_utc(_arrow_rows(_files(source)))
    files = [path for path, *_ in stamps(place or source.places[0])]
    return _in_utc(_datasets().dataset(files, format="parquet"))


def _texts(
    connection: duckdb.DuckDBPyConnection, request: Admission, opened: ExitStack, private: Path
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Let a text be seen as a table of texts; return each column in its type, and hints."""
    source, person, files = request.source, request.person, _files(request.source)
    if source.types.get(person, "VARCHAR") != "VARCHAR":
        raise InvalidDeclaration(f"People in a text are always named by text: leave {person!r} out of `types`.")
    if source.kind == "json":
        found = stage_json(connection, source, files)
    elif source.kind == "csv":
        found = guess(
            connection, stage_csv(connection, source, opened.enter_context(in_utf8(source, files, private))), source
        )
    else:
        found = guess(connection, stage_excel(connection, source, files), source)
    if unknown := sorted(set(source.types) - set(found)):
        raise InvalidDeclaration(f"`types` names {unknown[0]!r}, but {str(source)!r} has no such column.")
    hints = [one.hint for name, one in found.items() if name not in {person, *request.known, *source.types}]
    other: dict[str, str] = {}
    for name, sql_type in {**request.known, **source.types, person: request.known.get(person, "VARCHAR")}.items():
        if name in found and found[name].sql_type != sql_type:
            found[name] = Guess(sql_type=sql_type)
            other |= {name: sql_type} if sql_type != "VARCHAR" else {}
    casts = {name: cast(name, one, source, is_person=name == person) for name, one in found.items()}
    told = misfits(connection, STAGED, {name: (present(name, source), casts[name]) for name in other}, other)
    return casts, (*filter(None, hints), *told)


def _sound_rows(connection: duckdb.DuckDBPyConnection, rows: str, person: str) -> str:
    """Return the SQL that gives these rows with NULL for every value that could make a question fail."""
    types = described(connection, rows)
    return select({name: safe(name, kind, person) for name, kind in types.items()}, f"({rows})") if types else rows


def _in_zones(connection: duckdb.DuckDBPyConnection, rows: str, source: Source) -> str:
    """Return the SQL that gives these rows with the times of some columns as clocks in their zones show them."""
    if not source.zones:
        return rows
    types = described(connection, rows)
    known = {name for (name,) in connection.sql("SELECT name FROM pg_timezone_names()").fetchall()}
    for column, zone in source.zones.items():
        if types.get(column) != "TIMESTAMP":
            raise InvalidDeclaration(f"`zones` names {column!r}, which is not a column of times of {str(source)!r}.")
        if zone not in known:
            raise InvalidDeclaration(f"There is no time zone {zone!r}. Write a name such as 'Europe/Berlin'.")
    local = {
        name: f"timezone({quoted(source.zones[name])}, timezone('UTC', {named(name)}))"
        if name in source.zones
        else named(name)
        for name in types
    }
    return select(local, f"({rows})")


def _files(source: Source) -> list[str]:
    found = [path for place in source.places for path in matching(place) if Path(path).is_file()]
    if not found:
        raise EngineFailed(f"There is no file {source.places[0]!r}. {EVERY_KIND}")
    return found


def _state(source: Source) -> list[Any]:
    """Return sizes and times of all files, to notice a change while they are read."""
    if source.kind in lakehouse.KINDS:
        return [lakehouse.version_of(source)]
    if source.is_remote:
        return []
    return [stamp for place in source.places for path in matching(place) for stamp in stamps(path)]


def _datasets() -> Any:
    """Load Arrow's datasets when one is read: with them comes pandas, where it is installed."""
    return import_module("pyarrow.dataset")


def _arrow_rows(files: list[str]) -> Any:
    """Return the rows of Arrow IPC or Feather files."""
    if files[0].lower().endswith(".arrows"):
        return pa.concat_tables(pa.ipc.open_stream(path).read_all() for path in files)
    return _datasets().dataset(files, format="ipc")


def _in_utc(rows: Any) -> Any:
    """Return Arrow rows with coarse times with a zone as times in UTC: DuckDB fails where they do not fit its unit."""
    coarse = {
        field.name: pa.timestamp(field.type.unit)
        for field in rows.schema
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.type.unit in ("s", "ms")
    }
    if not coarse:
        return rows
    columns = {name: _datasets().field(name) for name in rows.schema.names}
    columns |= {name: columns[name].cast(kind) for name, kind in coarse.items()}
    if isinstance(rows, pa.Table):
        return _datasets().dataset(rows).to_table(columns=columns)
    return rows.scanner(columns=columns).to_reader()


def _fetched(connection: duckdb.DuckDBPyConnection, source: Source, private: Path) -> Source:
    """Return a copy of what is behind a URL: read with the user's own extensions of DuckDB and their credentials."""
    url = source.secret or source.places[0]
    name = "azure" if url.startswith(("az:", "azure:", "abfss:")) else "httpfs"
    try:
        connection.execute(f"LOAD {name}")
    except duckdb.Error:
        raise InvalidDeclaration(
            f"URLs are read with DuckDB's extension {name}, which is not installed here. Run INSTALL {name} in DuckDB, "
            "or give a local copy."
        ) from None
    return replace(source, places=(fetched(connection, url, private),), secret="")


def fetched(connection: duckdb.DuckDBPyConnection, url: str, private: Path) -> str:
    """Return the path of a local copy of one file."""
    found = connection.sql(f"SELECT content FROM read_blob({quoted(url)})").fetchall()
    if len(found) != 1:
        raise InvalidDeclaration(f"{public_url(url)!r} must name one file, got {len(found)}.")
    path = private / (Path(urlsplit(url).path).name or "fetched")
    path.write_bytes(found[0][0])
    return str(path)


def _folder(request: Admission) -> Path:
    if request.folder is None:
        raise InvalidDeclaration(
            f"{str(request.source)!r} is copied when it is admitted, but a PostgreSQL ledger has no folder for copies. "
            "Say where copies may be kept: connect(..., copies=FOLDER), --copies FOLDER or DISCRETION_COPIES."
        )
    request.folder.mkdir(parents=True, exist_ok=True)
    return request.folder


def _write(connection: duckdb.DuckDBPyConnection, rows: str, request: Admission) -> str:
    """Write rows to a Parquet file that only its owner can read, named by its content."""
    handle, partial = tempfile.mkstemp(prefix=".discretion-", suffix=".partial", dir=request.folder)  # mode 0600
    os.close(handle)
    try:
        connection.execute(f"COPY ({rows}) TO {quoted(partial)} (FORMAT parquet, USE_TMP_FILE false)")
        with Path(partial).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        label = re.sub(r"[^A-Za-z0-9._-]", "_", request.label)
        place = _folder(request) / f"{label}-{digest[:16]}{COPY}"
        Path(partial).replace(place)
    finally:
        Path(partial).unlink(missing_ok=True)
    return str(place.resolve())

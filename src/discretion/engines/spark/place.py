"""Places that questions read, in Spark's words, each as a data frame and with a fingerprint of its content.

A place is that of Parquet files, as in DuckDB or behind a URL of the cluster's storage; or `table:name` of the catalog.
Before it may stand `safe:person:`, for a source with values that must be NULL, or names with blanks around them.
"""

import hashlib
from typing import Any
from urllib.parse import quote, unquote

from discretion.declaration.source import TABLE
from discretion.engines.duckdb.identity import Contents
from discretion.engines.duckdb.place import content_names, is_hive, stamps
from discretion.engines.spark.safe import columns_of, digest_columns, plain, safe
from discretion.engines.spark.session import DataFrame, SparkSession
from discretion.errors import EngineFailed

_SAFE = "safe:"
_GLOB = str.maketrans({sign: f"\\{sign}" for sign in "\\*?[]{}"})
_BY_FILES = ("parquet", "orc")  # tables whose rows are all in their files
_CONTENTS = Contents()


def made_safe(place: str, person: str) -> str:
    """Return the place of the same rows with NULL for every value that could make a question fail."""
    return f"{_SAFE}{quote(person, safe='')}:{place}"


def split(place: str) -> tuple[str | None, str]:
    """Return the person whose names are trimmed, None for a sound source, and the place itself."""
    if not place.startswith(_SAFE):
        return None, place
    person, _, rest = place.removeprefix(_SAFE).partition(":")
    return unquote(person), rest


def is_remote(place: str) -> bool:
    """Tell whether the files are in a storage that Spark reaches by URL."""
    return "://" in place


def state(place: str) -> tuple[Any, ...]:
    """Return what is quick to see of a place: names, sizes and times of local files."""
    _, place = split(place)
    return () if is_remote(place) or place.startswith(TABLE) else tuple(stamps(place))


def frame(session: SparkSession, place: str) -> DataFrame:
    """Return the rows of a place."""
    person, bare = split(place)
    found = raw(session, bare)
    return plain(found) if person is None else safe(found, person)


def raw(session: SparkSession, place: str) -> DataFrame:
    """Return the rows of a place as they are stored."""
    if place.startswith(TABLE):
        return _table(session, place.removeprefix(TABLE))
    if is_remote(place):
        return session.read.parquet(*place.split("\n"))
    files = [path.translate(_GLOB) for path, *_ in stamps(place)]
    reader = session.read.option("basePath", place.translate(_GLOB)) if is_hive(place) else session.read
    return reader.parquet(*files)


def fingerprint(session: SparkSession, place: str) -> str:
    """Return a digest of the content of a place: another one after any edit."""
    person, bare = split(place)
    if is_remote(bare):
        covered = ["remote", bare, *_remote_files(session, raw(session, bare))]
    elif not bare.startswith(TABLE):
        covered = [*content_names(bare), *(digest for _, digest in _CONTENTS.of(bare))]
    elif _is_by_files(session, bare.removeprefix(TABLE)):
        covered = ["table", *_files_of(session, raw(session, bare))]
    else:
        covered = ["rows", content(raw(session, bare))]
    if person is not None:
        covered.append(f"safe {person}")
    return hashlib.sha256("\n".join(covered).encode()).hexdigest()


def identity(session: SparkSession, place: str) -> frozenset[str]:
    """Return marks of a place, however it is spelled."""
    bare = split(place)[1]
    if bare.startswith(TABLE) or is_remote(bare):
        files = [f"file {path}" for path in session_files(raw(session, bare))]
        return frozenset({fingerprint(session, bare), *files})
    return _CONTENTS.marks(bare)


def content(frame: DataFrame) -> str:
    """Return a digest of all rows in any order; it reads all of them."""
    columns = columns_of(frame)
    sums = frame.selectExpr(*digest_columns(columns)).collect()[0]
    return hashlib.sha256(f"{sorted(columns.items())} {[str(one) for one in sums]}".encode()).hexdigest()


def session_files(frame: DataFrame) -> list[str]:
    """Return every file that a data frame reads."""
    return sorted(frame.inputFiles())


def _table(session: SparkSession, name: str) -> DataFrame:
    """Return a table or view of the catalog as it is now: a session remembers the files of every table it has read."""
    catalog: Any = session._jsparkSession.sessionState().catalog()
    catalog.invalidateAllCachedTables()
    session.catalog.refreshTable(name)
    return session.table(name)


def _is_by_files(session: SparkSession, name: str) -> bool:
    """Tell whether the files of a table say all about its rows: not so for views, and for values kept in a catalog."""
    described = {row[0]: row[1] for row in session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    provider, kind = (described.get(one, "").lower() for one in ("Provider", "Type"))
    return provider in _BY_FILES and kind in ("managed", "external") and "# Partition Information" not in described


def _files_of(session: SparkSession, frame: DataFrame) -> list[str]:
    local = [path.removeprefix("file://") for path in session_files(frame)]
    if any("://" in path for path in local):
        return _remote_files(session, frame)
    return [f"{columns_of(frame)}", *(digest for _, digest in _CONTENTS.of("\n".join(unquote(p) for p in local)))]


def _remote_files(session: SparkSession, frame: DataFrame) -> list[str]:
    """Return files with size, time of change and the storage's own checksum where it has one."""
    context: Any = session.sparkContext
    paths, configuration = context._jvm.org.apache.hadoop.fs.Path, context._jsc.hadoopConfiguration()
    found = []
    for name in session_files(frame):
        path = paths(unquote(name))
        system = path.getFileSystem(configuration)
        status, checksum = system.getFileStatus(path), system.getFileChecksum(path)
        marks = (name, status.getLen(), status.getModificationTime(), checksum and checksum.toString())
        found.append(" ".join(map(str, marks)))
    if not found:
        raise EngineFailed("There is no file at this place. Was it moved?")
    return found

"""Identity: what a source is, however it is spelled. Two sources that share a mark hold the same rows."""

import hashlib
from collections.abc import Iterable, Mapping
from os import stat
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from discretion.engines.duckdb.place import stamps

Tables = Mapping[tuple[str, str], str]  # (schema, name) of a view, in lower case -> its SQL


class Contents:
    """Digests of files, found again only for a file whose size or times of change are others."""

    def __init__(self) -> None:
        self._digests: dict[tuple[Any, ...], str] = {}  # path, size and times of change -> digest

    def of(self, place: str) -> list[tuple[str, str]]:
        """Return every file of a place and its digest."""
        files = stamps(place)
        for stamp in files:
            if stamp not in self._digests:
                with Path(stamp[0]).open("rb") as file:
                    self._digests[stamp] = hashlib.file_digest(file, "sha256").hexdigest()
        return [(stamp[0], self._digests[stamp]) for stamp in files]

    def marks(self, place: str) -> frozenset[str]:
        """Return the marks of files that are not a database."""
        return marks(place, dict(self.of(place)), {})


def marks(source: str, digests: Mapping[str, str], views: Tables) -> frozenset[str]:
    """Return the marks of files: device and inode, and the digest, of every part of a pattern.

    The rows of a DuckDB file are those of its tables: a view has the marks of all that it reads.
    """
    parts = [""]
    if "#" in source:
        parts = [f"#{'.'.join(table)}" for table in sorted(_read_by(source.rpartition("#")[2], views))]
    found = set()
    for path, *_ in stamps(source):
        if path.endswith(".wal") and "#" in source:
            continue  # a part of its database
        status = stat(path)
        own = (f"file {status.st_dev}:{status.st_ino}", f"content {digests[path]}")
        found |= {f"{mark}{part}" for mark in own for part in parts}
    return frozenset(found)


def _read_by(written: str, views: Tables) -> set[tuple[str, str]]:
    """Return every table that a table or view of a database reads, itself included."""
    seen: set[tuple[str, str]] = set()
    waiting = [_named(exp.to_table(written, dialect="duckdb"), "main")]
    while waiting:
        table = waiting.pop()
        if table not in seen:
            seen.add(table)
            waiting += [_named(one, table[0]) for one in _tables(views.get(table, ""))]
    return seen


def _tables(sql: str) -> Iterable[exp.Table]:
    if not sql:
        return ()
    try:
        return list(parse_one(sql, dialect="duckdb").find_all(exp.Table))
    except SqlglotError:
        return ()


def _named(table: exp.Table, schema: str) -> tuple[str, str]:
    """Return the schema and the name as DuckDB compares them: quoted or not, in any case."""
    return (table.db or schema).lower(), table.name.lower()

"""Lakehouse: a Delta or Iceberg table as it is now becomes the list of its Parquet files.

A version of such a table is a fixed list of files that nobody writes to again. Questions read these files until
`refresh` admits a later version; a file that was removed since (VACUUM, expired snapshots) makes them fail with a hint.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet

from discretion.declaration.source import DELTA, ICEBERG, Source
from discretion.errors import EngineFailed, InvalidDeclaration, require

KINDS = ("delta", "iceberg")
MOST_FILES = 10_000  # a declaration in the ledger names them all
_FEATURES = {"deletionVectors": "deletion vectors", "columnMapping": "column mapping"}
_FIELD = b"PARQUET:field_id"


def files_of(source: Source) -> tuple[str, ...]:
    """Return the files of a table's present version; none for a partitioned one, whose files lack columns."""
    found = tuple(map(_local, _delta(source) if source.kind == "delta" else _iceberg(source)))
    if len(found) > MOST_FILES:
        raise InvalidDeclaration(
            f"{str(source)!r} has {len(found):,} files; at most {MOST_FILES:,} can be declared. Compact it first."
        )
    return found


def version_of(source: Source) -> str:
    """Return the version or snapshot that a table is in now."""
    if source.kind == "delta":
        return str(_delta_table(source).version())
    snapshot = _iceberg_table(source).current_snapshot()
    return str(snapshot.snapshot_id if snapshot else "")


def partitioned_rows(source: Source) -> Any:
    """Return the rows of a partitioned Delta table, to be copied."""
    return _delta_table(source).to_pyarrow_dataset()


def _delta(source: Source) -> list[str]:
    table = _delta_table(source)
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.reader_features or ())}
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    for feature, shown in _FEATURES.items():
        if feature in features:
            raise InvalidDeclaration(
                f"The Delta table {str(source)!r} uses {shown}, which cannot be read yet. Rewrite it without, or give "
                "a Parquet copy."
            )
    if metadata.partition_columns:
        return []
    found = sorted(table.file_uris())
    if not found:
        raise InvalidDeclaration(f"The Delta table {str(source)!r} has no rows yet.")
    return found


def _iceberg(source: Source) -> Iterator[str]:
    table = _iceberg_table(source)
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise InvalidDeclaration(
            f"The Iceberg table {str(source)!r} has delete files, which cannot be read yet. Rewrite its data files."
        )
    if not tasks:
        raise InvalidDeclaration(f"The Iceberg table {str(source)!r} has no rows yet.")
    wanted = {field.name: field.field_id for field in table.schema().fields}
    for path in sorted(task.file.file_path for task in tasks):
        _refuse_other_columns(_local(path), wanted, source)
        yield path


def _refuse_other_columns(path: str, wanted: dict[str, int], source: Source) -> None:
    """Refuse a file written under other names: Iceberg knows columns by numbers, and a file has the old names."""
    schema: pa.Schema = pyarrow.parquet.read_schema(path)
    found = {field.name: int((field.metadata or {}).get(_FIELD, -1)) for field in schema}
    if found != wanted:
        raise InvalidDeclaration(
            f"A column of the Iceberg table {str(source)!r} was added, renamed or dropped after some of its files were "
            "written. Rewrite its data files."
        )


def _delta_table(source: Source) -> Any:
    deltalake = _module("deltalake")
    try:
        return deltalake.DeltaTable(source.places[0].removeprefix(DELTA))
    except Exception as failure:  # the library's errors have no common base, and may quote what is in the table
        raise EngineFailed(f"{str(source)!r} cannot be read as a Delta table ({type(failure).__name__}).") from None


def _iceberg_table(source: Source) -> Any:
    name = source.places[0].removeprefix(ICEBERG)
    table, catalog = _module("pyiceberg.table"), _module("pyiceberg.catalog")
    try:
        if "/" in name:
            return table.StaticTable.from_metadata(str(_newest(Path(name))))
        first, _, rest = name.partition(".")
        return catalog.load_catalog(first).load_table(rest)
    except Exception as failure:
        raise EngineFailed(f"{str(source)!r} cannot be read as an Iceberg table ({type(failure).__name__}).") from None


def _newest(folder: Path) -> Path:
    """Return the metadata file that was written last: their names begin with a number, or with v and a number."""
    found = list((folder / "metadata").glob("*.metadata.json"))
    return max(found, key=lambda one: int(one.name.lstrip("v").partition("-")[0].partition(".")[0]))


def _local(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise InvalidDeclaration(f"Files of a Delta or Iceberg table must be local, got {parts.scheme}://.")
    return unquote(parts.path) if parts.scheme else uri


def _module(name: str) -> Any:
    require("lakehouse", "A Delta or Iceberg table as a source", name.split(".")[0])
    return import_module(name)

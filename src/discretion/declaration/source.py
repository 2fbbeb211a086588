"""Source: what a steward gives as the place of rows becomes one typed value."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from discretion.errors import InvalidDeclaration

READER = 2  # the version of the code that reads texts: version 1 swapped columns (see docs/known-vulnerabilities.md)
OPTIONS = ("delimiter", "encoding", "decimal", "null", "sheet", "types", "zones")  # how a source is read
SUFFIXES = {
    "csv": (".csv", ".tsv", ".tab", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "arrow": (".arrow", ".feather", ".ipc", ".arrows"),
    "excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    "parquet": (".parquet", ".pq", ".parq"),
}
TABLE, DELTA, ICEBERG = "table:", "delta:", "iceberg:"  # what the place of a table begins with that is not one file
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"FEA1": "arrow", b"SQLi": "sqlite"}
_TYPE = re.compile(
    r"BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|FLOAT|DOUBLE|DATE|TIMESTAMP|VARCHAR|DECIMAL\([0-9]+,[0-9]+\)"
)
_OTHER_NAMES = {"TEXT": "VARCHAR", "STRING": "VARCHAR", "INT": "INTEGER", "BOOL": "BOOLEAN"}
EVERY_KIND = (
    "Give a Parquet file, list, pattern or folder; a text (.csv, .tsv, .txt, .jsonl, also with .gz); an Arrow, Feather "
    "or Excel file; shop.duckdb#table, shop.sqlite#table or postgresql://host/database#schema.table; "
    "delta:FOLDER or iceberg:catalog.table; or a data frame."
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Says where rows are and how they are read. Everything but `secret` is public and kept in the ledger."""

    kind: str  # parquet, csv, json, arrow, excel, sqlite, duckdb, postgresql, delta, iceberg or table
    places: tuple[str, ...]  # full paths of files, patterns or folders; one URL without its password; or delta:folder
    table: str = ""  # of a database, or the sheet of a workbook
    delimiter: str = ""  # of a CSV text; found in the header if it is not given
    encoding: str = ""  # of a CSV text; UTF-8 if it is not given
    decimal: str = "."
    null: tuple[str, ...] = ()  # texts that mean NULL, besides nothing at all
    types: Mapping[str, str] = field(default_factory=dict)  # column -> SQL type; others are guessed once
    zones: Mapping[str, str] = field(default_factory=dict)  # column of times -> the zone it is read in, instead of UTC
    reader: int = READER
    secret: str = field(default="", repr=False, compare=False)  # the URL with its password

    def __post_init__(self) -> None:
        if len(self.delimiter) > 1 or self.delimiter in ('"', "\n", "\r"):
            raise InvalidDeclaration(f"A delimiter must be one character, such as ';', got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise InvalidDeclaration(f"The decimal sign must be '.' or ',', got {self.decimal!r}.")
        for column, sql_type in self.types.items():
            if not _TYPE.fullmatch(sql_type):
                raise InvalidDeclaration(
                    f"The type of {column!r} must be BOOLEAN, BIGINT, DOUBLE, DECIMAL(18,2), DATE, TIMESTAMP, VARCHAR "
                    f"or the like, got {sql_type!r}."
                )
        try:
            "".encode(self.encoding or "utf-8")  # not all codecs are for texts: rot13 is one, too
        except LookupError:
            raise InvalidDeclaration(f"There is no encoding {self.encoding!r}. Give one such as 'cp1252'.") from None

    @property
    def is_remote(self) -> bool:
        """Tell whether the rows are behind a URL."""
        return "://" in self.places[0]

    @property
    def is_text(self) -> bool:
        """Tell whether every value is written as text, so that types are declared or guessed."""
        return self.kind in ("csv", "json", "excel")

    def to_json(self) -> str:
        """Return the canonical text that the ledger keeps; without the password."""
        left_out = {"secret", *(() if self.zones else ("zones",))}
        return json.dumps({name: kept for name, kept in asdict(self).items() if name not in left_out}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Source":
        """Return the source `to_json` wrote down."""
        stored = json.loads(text)
        return cls(**{**stored, "places": tuple(stored["places"]), "null": tuple(stored["null"])})

    def at(self, given: Any, options: Mapping[str, Any]) -> "Source":
        """Return the source given now, read like this one where nothing else is said; a file may have moved alone."""
        if self.kind in ("sqlite", "duckdb", "postgresql") and "#" not in str(given):
            given = f"{given[0] if isinstance(given, list) else given}#{self.table}"
        if source_of(given, **options).kind != self.kind:
            return source_of(given, **options)
        told = {name: getattr(self, name) for name in ("delimiter", "encoding", "decimal", "null", "types", "zones")}
        return source_of(given, **{**told, "sheet": self.table, **options})

    def __str__(self) -> str:
        place = ", ".join(self.places)
        return f"{place}#{self.table}" if self.table else place


def is_place(given: Any) -> bool:
    """Tell whether this names files or a URL, rather than being a table itself."""
    several = isinstance(given, Sequence) and not isinstance(given, str | bytes) and len(given) > 0
    return isinstance(given, str | Path) or (several and all(isinstance(one, str | Path) for one in given))


def files_of(given: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return every file that was named, also as the file of a table; none of them is opened."""
    several = [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]
    return [Path(file).expanduser() for one in several for file in (one, one.rpartition("#")[0]) if file]


def source_of(
    given: str | Path | Sequence[str | Path],
    *,
    delimiter: str = "",
    encoding: str = "",
    decimal: str = ".",
    null: Sequence[str] = (),
    sheet: str = "",
    types: Mapping[str, str] | None = None,
    zones: Mapping[str, str] | None = None,
) -> Source:
    """Return the source that a path, list of paths, pattern, folder, `file#table` or URL names, and how to read it."""
    several = [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]
    found = [_located(one) for one in several]
    kinds = {(kind, table) for kind, _, table in found}
    if len(kinds) > 1 or (len(found) > 1 and found[0][2]):
        raise InvalidDeclaration("A list of sources must be files of one kind, got several kinds or tables.")
    (kind, table) = kinds.pop()
    reading = {"delimiter": delimiter, "encoding": encoding}
    if kind != "csv" and (said := [name for name, option in reading.items() if option]):
        raise InvalidDeclaration(f"{said[0]!r} is for CSV texts, but {several[0]!r} is read as {kind}. Leave it out.")
    return Source(
        kind=kind,
        places=tuple(public_url(place) for _, place, _ in found),
        table=table or (sheet if kind == "excel" else ""),
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        null=(null,) if isinstance(null, str) else tuple(null),
        types={name: _type(said) for name, said in (types or {}).items()},
        zones=dict(zones or {}),
        secret=found[0][1] if "://" in found[0][1] else "",
    )


def public_url(place: str) -> str:
    """Return a URL without password and query, which may hold keys; a path as it is."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    host = parts.netloc.rpartition("@")[2] if parts.hostname is None else f"{parts.hostname}{port}"
    query = parts.query if parts.scheme.startswith("postgres") and "password" not in parts.query else ""
    return urlunsplit((parts.scheme, f"{user}{host}", parts.path, query, ""))


def _located(given: str) -> tuple[str, str, str]:
    """Return the kind, the full place and the table of what was given."""
    if "\n" in given:
        raise InvalidDeclaration("A path must not contain a line break.")
    if given.startswith(("postgresql:", "postgres:", "postgresql+")):
        url, _, table = given.partition("#")
        if not table:
            raise InvalidDeclaration(f"Say which table of {public_url(url)!r} is meant: URL#schema.table.")
        return "postgresql", f"postgresql{url[url.index(':') :]}", table
    if given.startswith((TABLE, DELTA, ICEBERG)):
        return _named_table(given)
    if "://" in given:
        return _kind_by_name(urlsplit(given).path) or "parquet", given, ""
    path = Path(given).expanduser().resolve()
    if "#" in given and not path.exists():
        file, _, table = given.rpartition("#")
        path = Path(file).expanduser().resolve()
        return _kind_of_database(path, table), str(path), table
    if path.is_dir():
        return _folder(path)
    return _kind_by_name(given) or _kind_by_content(path), str(path), ""


def _named_table(given: str) -> tuple[str, str, str]:
    """Return a table that is named by its kind: of Spark's catalog, of Delta or of Iceberg."""
    kind, _, name = given.partition(":")
    if not name:
        raise InvalidDeclaration(f"Say which table is meant: {given}NAME.")
    if kind == "delta" or (kind == "iceberg" and "/" in name):
        name = name if "://" in name else str(Path(name).expanduser().resolve())
    return kind, f"{kind}:{name}", ""


def _folder(path: Path) -> tuple[str, str, str]:
    """Return the kind of a folder: Delta and Iceberg keep a log next to their files."""
    if (path / "_delta_log").is_dir():
        return "delta", f"{DELTA}{path}", ""
    if any((path / "metadata").glob("*.metadata.json")):
        return "iceberg", f"{ICEBERG}{path}", ""
    return "parquet", f"{path}/", ""


def _kind_by_name(name: str) -> str:
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    return next((kind for kind, suffixes in SUFFIXES.items() if suffix in suffixes), "")


def _kind_by_content(path: Path) -> str:
    """Return the kind of a file whose name does not tell; a pattern that does not tell is one of Parquet files."""
    head = _head(path)
    if head[8:] == b"DUCK" or head[:4] == b"SQLi":
        raise InvalidDeclaration(
            f"{str(path)!r} is a {'DuckDB' if head[8:] == b'DUCK' else 'SQLite'} file. Say which of its tables is "
            f"meant: {path.name}#table."
        )
    if head and head[:4] not in _MAGIC:
        raise InvalidDeclaration(f"{str(path)!r} is no file of a known kind. {EVERY_KIND}")
    return _MAGIC[head[:4]] if head else "parquet"


def _kind_of_database(path: Path, table: str) -> str:
    if _kind_by_name(str(path)) == "excel":
        return "excel"
    head = _head(path)
    if head[:4] == b"SQLi":
        return "sqlite"
    if head[8:] != b"DUCK" and path.exists():
        raise InvalidDeclaration(f"{str(path)!r} is neither a DuckDB nor a SQLite file, so it has no table {table!r}.")
    return "duckdb"


def _head(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(12)


def _type(said: str) -> str:
    name = said.upper().replace(" ", "")
    return _OTHER_NAMES.get(name, name)

"""Sources in DuckDB's words: Parquet and CSV files (also patterns), `file.duckdb#table`, attached objects."""

from collections.abc import Mapping, Sequence
from glob import glob
from os import stat
from pathlib import Path

from sqlglot import exp
from sqlglot.errors import ParseError

from discretion.engines.companion import FILE, FOUND, ROW_NUMBER
from discretion.errors import EngineFailed, InvalidDeclaration

MEMORY = "memory:"
_NO_MORE = "hive_partitioning = false"  # columns read off the names of folders: no fingerprint would show a new name
_CSV_TYPES = "['BOOLEAN', 'BIGINT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'VARCHAR']"


def is_object(source: str) -> bool:
    """An Arrow table of the engine's own."""
    return source.startswith(MEMORY)


def is_csv(source: str) -> bool:
    """A file of text, or several."""
    return Path(source.removesuffix(".gz")).suffix.lower() in (".csv", ".tsv", ".txt")


def in_database(source: str, catalog: str, types: Mapping[str, str]) -> str:
    """A table of an attached database; its texts as they are written, whatever their collation.

    Under NOCASE one row would meet both 'a' and 'A' of a lookup, of keys, of a register.
    """
    file, _, named_table = source.rpartition("#")
    try:
        table = exp.to_table(named_table, dialect="duckdb")
    except ParseError:
        raise InvalidDeclaration(f"{named_table!r} is no table of a DuckDB file. Write {file}#table.") from None
    table.set("catalog", exp.to_identifier(catalog))
    table.set("db", table.args.get("db") or exp.to_identifier("main"))
    plain = [f"{named(name)} COLLATE c AS {named(name)}" for name, kind in types.items() if kind == "VARCHAR"]
    replaced = f"REPLACE ({', '.join(plain)})" if plain else ""
    return f"SELECT * {replaced} FROM {table.sql('duckdb')}"


def in_parquet(source: str, more: str = "") -> str:
    """The rows of Parquet files, and what else of them is named."""
    for path, *_ in stamps(source):
        _refuse_other_than_parquet(path)
    return f"SELECT *{more} FROM read_parquet([{paths(source)}], {_NO_MORE})"


def _refuse_other_than_parquet(path: str) -> None:
    """By what a file begins with: the database's own words about it would have to be kept from people."""
    with Path(path).open("rb") as file:
        head = file.read(12)
    if head[8:] == b"DUCK":
        raise InvalidDeclaration(
            f"{path!r} is a DuckDB file. Say which of its tables is meant: {Path(path).name}#table."
        )
    if head[:4] != b"PAR1":
        raise EngineFailed(
            f"{path!r} is no Parquet file. Give one, a text (.csv, .tsv, .txt, also with .gz), or x.duckdb#table."
        )


def guessed_csv(source: str) -> str:
    """A file whose types are being found out; dates only in ISO form, which is what casts read later on."""
    dates = "dateformat = '%Y-%m-%d', timestampformat = '%Y-%m-%d %H:%M:%S'"
    guess = f"sample_size = -1, ignore_errors = true, auto_type_candidates = {_CSV_TYPES}, {dates}"
    return f"SELECT * FROM read_csv([{paths(source)}], {_csv_dialect(source)}, {guess})"


def typed_csv(source: str, header: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the SQL that reads lines of text, each field cast where it can be; a value can never make reading fail.

    The reader goes by position, so `header` must be the names in the order of the file; columns are taken by name.
    """
    if set(header) != set(types):
        raise EngineFailed("The header of a CSV source is not the one that was declared. Refresh the table.")
    texts = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in header)
    # NULLIF keeps the cast out of the reader, which would drop the whole line instead of one field.
    casts = [f"TRY_CAST(NULLIF({named(name)}, '') AS {kind}) AS {named(name)}" for name, kind in types.items()]
    reading = f"auto_detect = false, columns = {{{texts}}}"  # strict: a stray quote would swallow others' lines
    return f"SELECT {', '.join(casts)} FROM read_csv([{paths(source)}], {_csv_dialect(source)}, {reading})"


def _csv_dialect(source: str) -> str:
    tab = Path(source.removesuffix(".gz")).suffix == ".tsv"
    return f"""delim = '{chr(9) if tab else ","}', quote = '"', escape = '"', header = true, {_NO_MORE}"""


def stamps(source: str) -> list[tuple[str, int, int, int]]:
    """The files of a source, each with size and times of change: only the last cannot be set back."""
    pattern = source.rpartition("#")[0] if "#" in source else source
    files = sorted(glob(pattern)) if any(sign in pattern for sign in "*?[") else [pattern]
    if "#" in source and Path(f"{pattern}.wal").exists():
        files.append(f"{pattern}.wal")  # what was written last may be there only
    try:
        found = [(str(Path(path).resolve()), stat(path)) for path in files]
    except OSError:
        found = []
    if not found:
        raise EngineFailed(f"There is no file {pattern!r}. Give the path of a Parquet or CSV file, or x.duckdb#table.")
    return [(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for path, status in found]


def is_numbered(source: str, types: Mapping[str, str]) -> bool:
    """Whether every row of a source has a number: Parquet files do, unless they use those names for something else."""
    taken = {"file_index", "file_row_number", FILE, ROW_NUMBER, FOUND} & {name.lower() for name in types}
    return not (is_object(source) or "#" in source or is_csv(source) or taken)


def paths(source: str) -> str:
    """The files of a source, as a list in SQL without its brackets."""
    return ", ".join(quoted(stamp[0]) for stamp in stamps(source))


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'

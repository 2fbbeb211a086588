"""Places that questions read, in DuckDB's words: Parquet files and `file.duckdb#table`.

A place is the path of a file, a pattern, several paths on lines of their own, a folder (it ends in "/", and its folders
named key=value are columns), or `file.duckdb#table`. Everything else is copied at admission.
"""

from collections.abc import Iterator, Mapping
from glob import glob
from os import stat
from os.path import exists, realpath
from pathlib import Path

from sqlglot import exp
from sqlglot.errors import ParseError

from discretion.engines.duckdb.companion import FILE, FOUND, ROW_NUMBER
from discretion.errors import EngineFailed, InvalidDeclaration

ZONED = "TIMESTAMP WITH TIME ZONE"


def is_table(place: str) -> bool:
    """Tell whether this is a table of a DuckDB file; a file's own name may contain the sign, too."""
    return "#" in place and not place.endswith("/") and not exists(place)


def is_database(file: str) -> bool:
    """Tell whether a file is a DuckDB file, or is gone."""
    if not Path(file).is_file():
        return True
    with Path(file).open("rb") as opened:
        return opened.read(12)[8:] == b"DUCK"


def in_database(place: str, catalog: str, types: Mapping[str, str]) -> str:
    """Return the SQL for a table of an attached database; its texts as they are written, whatever their collation.

    Under NOCASE one row would meet both 'a' and 'A' of a lookup, of keys, of a register.
    """
    plain = [f"{named(name)} COLLATE c AS {named(name)}" for name, kind in types.items() if kind == "VARCHAR"]
    return f"SELECT * {_replaced([*plain, *_in_utc(types)])} FROM {table_in(place, catalog)}"


def table_in(place: str, catalog: str) -> str:
    """Return the whole name of the table in its attached database."""
    file, _, named_table = place.rpartition("#")
    try:
        table = exp.to_table(named_table, dialect="duckdb")
    except ParseError:
        raise InvalidDeclaration(f"{named_table!r} is no table of a DuckDB file. Write {file}#table.") from None
    table.set("catalog", exp.to_identifier(catalog))
    table.set("db", table.args.get("db") or exp.to_identifier("main"))
    return table.sql("duckdb")


def in_parquet(place: str, types: Mapping[str, str], more: str = "") -> str:
    """Return the SQL for the rows of Parquet files, and what else of them is named; times with a zone are in UTC."""
    for path, *_ in stamps(place):
        refuse_other_than_parquet(path)
    hive = str(is_hive(place)).lower()  # in a pattern, no fingerprint would show the new name of a folder
    return (
        f"SELECT * {_replaced([*_in_utc(types)])}{more} FROM read_parquet([{paths(place)}], hive_partitioning = {hive})"
    )


def is_hive(place: str) -> bool:
    """Tell whether folders named key=value are columns."""
    return place.endswith("/") and any("=" in str(Path(name).parent) for name in _below(place))


def _in_utc(types: Mapping[str, str]) -> Iterator[str]:
    """Return the columns of times with a zone as times in UTC: the only form that means the same everywhere."""
    for name, kind in types.items():
        if kind == ZONED:
            yield f"make_timestamp(epoch_us({named(name)})) AS {named(name)}"


def _replaced(columns: list[str]) -> str:
    return f"REPLACE ({', '.join(columns)})" if columns else ""


def refuse_other_than_parquet(path: str) -> None:
    """Refuse by what a file begins with: the database's own words about it would have to be kept from people."""
    with Path(path).open("rb") as file:
        head = file.read(4)
    if head != b"PAR1":
        raise EngineFailed(f"{path!r} is no Parquet file. Write it anew, or give it its usual ending.")


def stamps(place: str) -> list[tuple[str, int, int, int]]:
    """Return the files of a place, each with size and times of change: only the last cannot be set back."""
    try:
        found = [(_full(path, place), stat(path)) for path in _files(place)]
    except OSError:
        found = []
    if not found:
        raise EngineFailed(_nothing_there(place))
    return [(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for path, status in found]


def _full(path: str, place: str) -> str:
    return path if place.endswith("/") else realpath(path)  # a link in a folder keeps its key=value


def _files(place: str) -> list[str]:
    if place.endswith("/"):
        return [f"{place}{name}" for name in _below(place)]
    if is_table(place):
        file = place.rpartition("#")[0]
        return [file, *([f"{file}.wal"] if Path(f"{file}.wal").exists() else [])]  # the last writes may be there only
    return [path for pattern in place.split("\n") for path in matching(pattern)]


def matching(pattern: str) -> list[str]:
    """Return the files a pattern means, in order; a file of that very name is meant before anything else."""
    return sorted(glob(pattern)) if any(sign in pattern for sign in "*?[") and not exists(pattern) else [pattern]


def _below(folder: str) -> list[str]:
    """Return the Parquet files in a folder and its folders, relative to it; names that begin with . or _ are hidden."""
    found = (path.relative_to(folder) for path in Path(folder).rglob("*") if path.suffix.lower() in (".parquet", ".pq"))
    return sorted(str(path) for path in found if not any(part.startswith((".", "_")) for part in path.parts))


def _nothing_there(place: str) -> str:
    if place.endswith("/"):
        return (
            f"Folder {place!r} has no Parquet file. For files of another kind give a pattern, such as '{place}*.csv'."
        )
    first = place.partition("\n")[0]
    return f"There is no file {first!r}. Give the path of a Parquet or CSV file, or x.duckdb#table."


def content_names(place: str) -> list[str]:
    """Return what a fingerprint covers besides the content of files: a table's name, or names that are columns."""
    if place.endswith("/"):
        return ["folder", *_below(place)]
    return [place.rpartition("#")[2] if is_table(place) else ""]


def is_numbered(place: str, types: Mapping[str, str]) -> bool:
    """Tell whether every row has a number: in Parquet files it has, unless they use those names for something else."""
    taken = {"file_index", "file_row_number", FILE, ROW_NUMBER, FOUND} & {name.lower() for name in types}
    return not is_table(place) and not taken


def paths(place: str) -> str:
    """Return the files of a place, as a list in SQL without its brackets."""
    return ", ".join(quoted(stamp[0]) for stamp in stamps(place))


def quoted(text: str) -> str:
    """Return a text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Return a name in SQL."""
    return '"' + name.replace('"', '""') + '"'

"""Texts: CSV, JSON and Excel become columns of text, whose types are declared or guessed once, over all rows."""

import csv
import gzip
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from discretion.declaration.source import Source
from discretion.engines.duckdb.place import named, quoted
from discretion.engines.duckdb.safe import without_blanks
from discretion.errors import InvalidDeclaration, require
from discretion.query.kind import INTEGERS

STAGED = "staged"
_SIGNS = (",", ";", "\t", "|")
_WHOLE = "0|-?[1-9][0-9]*"
_NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NO_NUMBER = r"(?i)[+-]?(nan|inf|infinity)"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = rf"{_DATE}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,9}})?)?"
_ZONED = rf"{_TIME} ?(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)"
_JSON_TYPES = ("BOOLEAN", "BIGINT", "UBIGINT", "HUGEINT", "DOUBLE")
_JSON = "sample_size = -1, union_by_name = true, map_inference_threshold = -1"  # many fields are columns, not a map
_JSON_MIXED = "JSON"  # a column of texts and numbers, or of lists
_COUNTS = ("n", "b", "i", "f", "d", "t", "z", "c")  # what _measures counts


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The type of a column, and what the steward should know about it."""

    sql_type: str
    zoned: bool = False  # written with a time zone
    hint: str = ""


# Where the texts are ------------------------------------------------------------------------------------------------


def stage_csv(connection: duckdb.DuckDBPyConnection, source: Source, files: Sequence[str]) -> tuple[str, ...]:
    """Let CSV files be seen as one table of texts, each column found by its name; return the names."""
    source = replace(source, delimiter=source.delimiter or _delimiter(files[0]))
    headers = {path: _header(path, source.delimiter) for path in files}
    first = headers[files[0]]
    for path, header in headers.items():
        if set(header) != set(first):
            raise InvalidDeclaration(
                f"The header of {path!r} has other columns than that of {files[0]!r}: "
                f"{', '.join(map(repr, sorted(set(header) ^ set(first))))}. Files of one source must have the same."
            )
    dialect = f"""delim = {quoted(source.delimiter)}, quote = '"', escape = '"', header = true, auto_detect = false"""
    parts = []
    for path, header in headers.items():
        texts = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in header)  # the reader goes by position
        reading = f"read_csv({quoted(path)}, {dialect}, columns = {{{texts}}}, hive_partitioning = false)"
        parts.append(f"SELECT {', '.join(map(named, first))} FROM {reading}")
    connection.execute(f"CREATE VIEW {STAGED} AS {' UNION ALL '.join(parts)}")
    return first


def stage_json(connection: duckdb.DuckDBPyConnection, source: Source, files: Sequence[str]) -> dict[str, Guess]:
    """Let JSON files be seen as one table of texts; return the types that all values of a column have.

    Texts may be dates or times, since JSON has neither; a text of digits stays a text.
    """
    listed = ", ".join(map(quoted, files))
    described = connection.sql(f"DESCRIBE SELECT * FROM read_json([{listed}], {_JSON})")
    found = {row[0]: row[1] for row in described.fetchall()}
    columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in found)
    connection.execute(f"CREATE VIEW {STAGED} AS SELECT * FROM read_json([{listed}], columns = {{{columns}}})")
    plain = {name: Guess(sql_type=kind if kind in _JSON_TYPES else "VARCHAR") for name, kind in found.items()}
    doubtful = [name for name, kind in found.items() if kind not in ("BOOLEAN", "BIGINT", "DOUBLE", _JSON_MIXED)]
    guessed = guess(connection, doubtful, source).items()
    wide = [name for name in doubtful if plain[name].sql_type != "VARCHAR"]  # as DuckDB says of -1 and 1 together
    times = {name: one for name, one in guessed if name not in wide and one.sql_type in ("DATE", "TIMESTAMP")}
    return plain | times | {name: one for name, one in guessed if name in wide and one.sql_type == "BIGINT"}


def stage_excel(connection: duckdb.DuckDBPyConnection, source: Source, files: Sequence[str]) -> tuple[str, ...]:
    """Let the sheet of a workbook be seen as a table of texts; return the names."""
    require("excel", "An Excel file as a source")
    calamine: Any = import_module("python_calamine")
    book = calamine.CalamineWorkbook.from_path(files[0])
    sheet = source.table or book.sheet_names[0]
    if sheet not in book.sheet_names:
        known = ", ".join(map(repr, book.sheet_names))
        raise InvalidDeclaration(f"{files[0]!r} has no sheet {sheet!r}; its sheets are {known}.")
    header, *rows = book.get_sheet_by_name(sheet).to_python() or [[]]
    names = checked_names([_cell(cell) or "" for cell in header], files[0])
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    texts = [pa.array([_cell(cell) for cell in column], pa.string()) for column in columns]
    connection.register(STAGED, pa.table(texts, names=list(names)))
    return names


def checked_names(header: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the names of the columns; one without a name is called by its place, as in the database."""
    names = tuple(name or f"column{place}" for place, name in enumerate(header))
    lower = [name.lower() for name in names]
    if twice := sorted({name for name in names if lower.count(name.lower()) > 1}):
        raise InvalidDeclaration(
            f"The header of {path!r} names {', '.join(map(repr, twice))} twice. Rename one of them."
        )
    if not any(header):
        raise InvalidDeclaration(f"{path!r} has no header: its first line must name the columns.")
    return names


@contextmanager
def in_utf8(source: Source, files: Sequence[str], folder: Path) -> Iterator[list[str]]:
    """Give files in another encoding as UTF-8, in a folder where nobody else can read them."""
    if source.encoding.lower().replace("_", "-") in ("", "utf-8", "utf8"):
        yield list(files)
        return
    copies = []
    for number, path in enumerate(files):
        copies.append(str(folder / f"{number}.csv"))
        try:
            with (
                _opened(path, source.encoding) as text,
                Path(copies[-1]).open("w", encoding="utf-8", newline="") as out,
            ):
                shutil.copyfileobj(text, out)
        except UnicodeError:
            raise InvalidDeclaration(
                f"{path!r} is not written in {source.encoding!r}. Give another encoding."
            ) from None
    yield copies


def _opened(path: str, encoding: str) -> Any:
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return Path(path).open(encoding=encoding, newline="")


def _header(path: str, delimiter: str) -> tuple[str, ...]:
    return checked_names(next(csv.reader(_first_lines(path), delimiter=delimiter), []), path)


def _first_lines(path: str) -> Iterator[str]:
    try:
        with _opened(path, "utf-8-sig") as text:
            yield from text
    except UnicodeError:
        raise not_utf8(path) from None
    except (OSError, EOFError):
        raise InvalidDeclaration(f"{path!r} cannot be unpacked. Is it a whole .gz file?") from None


def not_utf8(path: str) -> InvalidDeclaration:
    """Say what to do about a text in another encoding."""
    return InvalidDeclaration(f"{path!r} is not written in UTF-8. Give its encoding, such as 'cp1252' or 'utf-16'.")


def _delimiter(path: str) -> str:
    """Return the sign between fields: as the ending says, or the first that splits every line into as many fields."""
    if Path(path.lower().removesuffix(".gz")).suffix in (".tsv", ".tab"):
        return "\t"
    if splitting := [sign for sign in _SIGNS if _splits(path, sign)]:
        return splitting[0]
    header = next(_first_lines(path), "")  # one column, or damaged lines
    used = [sign for sign in _SIGNS if sign in header]
    return used[0] if len(used) == 1 else ","


def _splits(path: str, delimiter: str) -> bool:
    """Tell whether the first lines have as many fields as the header, and more than one."""
    try:
        sizes = {len(fields) for fields in islice(csv.reader(_first_lines(path), delimiter=delimiter), 100) if fields}
    except csv.Error:
        return False
    return len(sizes) == 1 and sizes != {1}


def _cell(value: Any) -> str | None:
    """Return a cell as text: 17.0 is 17, and dates are in ISO form."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else str(value)


# What they mean -----------------------------------------------------------------------------------------------------


def guess(connection: duckdb.DuckDBPyConnection, names: Iterable[str], source: Source) -> dict[str, Guess]:
    """Return the type that every value of a column has; a number that begins with 0, as in 007, is a text."""
    names = list(names)
    if not names:
        return {}
    long = f"UNPIVOT {STAGED} ON {', '.join(map(named, names))} INTO NAME name VALUE value"  # many columns cost no more
    values = f"SELECT name, {present('value', source)} AS value FROM ({long})"
    rows = connection.sql(
        f"SELECT name, {', '.join(_measures('value', source))} FROM ({values}) GROUP BY name"
    ).fetchall()
    counted = {name: dict(zip(_COUNTS, counts, strict=True)) for name, *counts in rows}
    nothing = dict.fromkeys(_COUNTS, 0)  # every value is NULL
    return {name: _guessed(name, counted.get(name, nothing)) for name in names}


def _measures(value: str, source: Source) -> Iterator[str]:
    """Return how many values there are, and how many of them are of each type."""

    def fits(pattern: str, sql_type: str = "", text: str = value) -> str:
        cast = f" AND TRY_CAST({text} AS {sql_type}) IS NOT NULL" if sql_type else ""
        return f"COUNT(*) FILTER (WHERE regexp_full_match({text}, {quoted(pattern)}){cast})"

    number = decimal_text(value, source)
    yield f"COUNT({value})"
    yield fits("(?i)true|false")
    yield fits(_WHOLE, "BIGINT")
    some = f"sign(COUNT({value}) - {fits(_NO_NUMBER)})"  # a column of nothing but 'inf' is no column of numbers
    yield f"{fits(_NUMBER, 'DOUBLE', number)} + {fits(_NO_NUMBER)} * {some}"
    yield fits(_DATE, "DATE")
    yield fits(_TIME, "TIMESTAMP")
    yield fits(_ZONED, "TIMESTAMP WITH TIME ZONE")
    yield fits("-?[0-9]+,[0-9]+")


def _guessed(name: str, counts: Mapping[str, int]) -> Guess:
    n = counts["n"]
    if n and n in (counts["b"], counts["i"], counts["f"], counts["d"]):
        sql_type = {"b": "BOOLEAN", "i": "BIGINT", "f": "DOUBLE", "d": "DATE"}
        return Guess(sql_type=next(sql_type[kind] for kind in sql_type if counts[kind] == n))
    if n and n == counts["d"] + counts["t"]:
        return Guess(sql_type="TIMESTAMP")
    if n and n == counts["z"]:
        return Guess(sql_type="TIMESTAMP", zoned=True)
    return Guess(sql_type="VARCHAR", hint=_hint(name, counts))


def _hint(name: str, counts: Mapping[str, int]) -> str:
    n, numbers = counts["n"], counts["f"]
    if n and counts["c"] * 10 >= n * 9:
        return (
            f"Column {name!r} is read as text: it seems to hold numbers with decimal commas. Give decimal=',' "
            "(--decimal ,)."
        )
    if numbers * 10 >= n * 9 and n:
        return (
            f"Column {name!r} is read as text: most of its values are numbers, but not all. Give types="
            f"{{{name!r}: 'DOUBLE'}} to read the others as NULL, or name what means NULL there, as in null=['NA']."
        )
    return ""


def present(name: str, source: Source, *, trimmed: bool = True) -> str:
    """Return a field without blanks around it as SQL; NULL if there is nothing in it, or what means NULL."""
    text = without_blanks(named(name)) if trimmed else named(name)
    absent = ", ".join(map(quoted, dict.fromkeys(("", *source.null))))
    return f"CASE WHEN {text} IN ({absent}) THEN NULL ELSE {text} END"


def decimal_text(value: str, source: Source) -> str:
    """Return a number's text with a decimal point."""
    return f"replace({value}, ',', '.')" if source.decimal == "," else value


def cast(name: str, guessed: Guess, source: Source, *, is_person: bool) -> str:
    """Return a field in its type as SQL, NULL where it does not fit; texts other than people keep their blanks."""
    value, sql_type = present(name, source), guessed.sql_type
    if sql_type == "VARCHAR":
        return present(name, source, trimmed=is_person)
    if guessed.zoned:
        return f"make_timestamp(epoch_us(TRY_CAST({value} AS TIMESTAMP WITH TIME ZONE)))"
    if sql_type in INTEGERS:
        return f"CASE WHEN regexp_full_match({value}, '[+-]?[0-9]+') THEN TRY_CAST({value} AS {sql_type}) END"
    number = decimal_text(value, source) if sql_type.startswith(("DOUBLE", "FLOAT", "DECIMAL")) else value
    return f"TRY_CAST({number} AS {sql_type})"

"""Letters: texts in Spark's SQL that are what they are in DuckDB, in upper and lower case and by pattern.

Java turns one letter into several ('ß' into 'SS') or looks at its neighbours (a Greek sigma); DuckDB maps every letter
by itself. The tables of letters are DuckDB's own.
"""

from functools import cache

import duckdb

from discretion.engines.spark.cast import NoForm

_ESCAPES = "!#~^|\x01"  # for LIKE: the first that a pattern does not have
_UNSAFE = set("'\\$`\"")
_PLAIN = {"lower": "abcdefghijklmnopqrstuvwxyz", "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def quoted(text: str) -> str:
    """Return a text in SQL; as bytes if it has a sign that Spark could read as more than itself."""
    if text.isascii() and text.isprintable() and not _UNSAFE & set(text):
        return f"'{text}'"
    return f"DECODE(X'{text.encode().hex()}', 'UTF-8')"


def in_letters(function: str, value: str) -> str:
    """Return the SQL for a text in "lower" or "upper" letters."""
    before, after = map(quoted, _pairs(function))
    plain = _PLAIN[function]
    every = f"TRANSLATE(TRANSLATE({value}, '{plain.swapcase()}', '{plain}'), {before}, {after})"
    return f"CASE WHEN LENGTH({value}) = OCTET_LENGTH({value}) THEN {function.upper()}({value}) ELSE {every} END"


def lowered(text: str) -> str:
    """Return a constant in lower letters."""
    pairs = str.maketrans(*_pairs("lower"))
    return "".join(one.lower() if one.isascii() else one for one in text.translate(pairs))


def like(value: str, pattern: str) -> str:
    """Return the SQL that compares a text with a pattern, in which no sign escapes another."""
    escape = next((sign for sign in _ESCAPES if sign not in pattern), "")
    if not escape:
        raise NoForm("a LIKE pattern with all of ! # ~ ^ |")
    return f"{value} LIKE {quoted(pattern)} ESCAPE '{escape}'"


@cache
def blanks() -> str:
    """Return the signs that DuckDB's TRIM removes."""
    return " " + "".join(one for one, rest in _changed_by("trim") if not rest)


@cache
def _pairs(function: str) -> tuple[str, str]:
    """Return the letters that DuckDB's LOWER or UPPER changes, and what each becomes: always one letter."""
    found = _changed_by(function)
    return "".join(one for one, _ in found), "".join(other for _, other in found)


def _changed_by(function: str) -> list[tuple[str, str]]:
    """Return every letter beyond ASCII that a function of DuckDB changes, and what it becomes."""
    every = "SELECT chr(CAST(i AS INTEGER)) AS c FROM range(128, 1114112) t(i) WHERE i NOT BETWEEN 55296 AND 57343"
    with duckdb.connect(":memory:") as connection:
        found: list[tuple[str, str]] = connection.sql(f"SELECT c, {function}(c) FROM ({every})").fetchall()
    return [pair for pair in found if pair[0] != pair[1]]

"""Place: a refusal learns where in the text of the question its reason is."""

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from discretion.errors import QueryRefused

P = ParamSpec("P")
T = TypeVar("T")
# Comments, texts and quoted names, each to its end; a quotation mark on its own has no end.
_QUOTED = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(['"])""", re.DOTALL)


def placed(read: Callable[P, T]) -> Callable[P, T]:
    """Let refusals of a function that reads a node know where the node is; the innermost one that is known counts."""

    @wraps(read)
    def reading(*given: P.args, **named: P.kwargs) -> T:
        try:
            return read(*given, **named)
        except QueryRefused as refusal:
            if refusal.start is None:
                refusal.start = start_of(one for one in given if isinstance(one, exp.Expr))
            raise

    return reading


def start_of(nodes: Iterable[exp.Expr]) -> int | None:
    """Return the place of the first character of these nodes, counted from 0; None if the parser did not keep it."""
    starts = (one.meta_get("start") for node in nodes for one in node.walk())
    return min((start for start in starts if start is not None), default=None)


def unfinished(sql: str, failure: SqlglotError) -> QueryRefused:
    """Return the refusal of a text that the parser cannot read, with the place where it stopped."""
    refusal = QueryRefused("This is not SQL that DuckDB's dialect allows. Check brackets, quotes and commas.")
    if isinstance(failure, ParseError) and failure.errors:
        stop = failure.errors[0].get("line"), failure.errors[0].get("col")
        tokens = sqlglot.tokenize(sql, dialect="duckdb")
        refusal.start = next((token.start for token in tokens if (token.line, token.col) == stop), None)
    else:
        refusal.start = next((found.start() for found in _QUOTED.finditer(sql) if found.group(1)), None)
    return refusal

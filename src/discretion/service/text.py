"""Text: what others may read of receipts and answers."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discretion.declaration.table import Table
from discretion.ledger import Receipt
from discretion.query.moment import UNITS
from discretion.query.quotation import known_names, without_literals
from discretion.release import Error, Release

USUAL = (0.0, 0.25, 0.5, 0.75, 1.0)  # ranks

__all__ = ["known_names", "known_people", "known_values", "shown_receipt", "shown_release", "without_literals"]


def known_people(tables: Iterable[Table]) -> frozenset[tuple[str, str]]:
    """Return every table with the column that names people in it, in small letters."""
    return frozenset((table.name.lower(), table.person.lower()) for table in tables)


def known_values(tables: Iterable[Table]) -> frozenset[str]:
    """Return every value that a steward declared as a key: all of them are public."""
    found: list[Any] = []
    for table in tables:
        for keys in (table.keys, *(lookup.keys for lookup in table.lookups.values())):
            found += [value for values in keys.values() for value in values]
    return frozenset(map(_form, found))


def shown_receipt(receipt: Receipt, known: frozenset[str]) -> Receipt:
    """Return a receipt whose questions have no literals."""
    return receipt.quoting(lambda question: without_literals(question, known))


def shown_release(release: Release, sql: str, tables: Iterable[Table]) -> Release:
    """Return an answer that another analyst asked for: nothing of it shows a literal of `sql`, and there is no plan."""
    tables = tuple(tables)
    known, public, plain = known_names(tables), known_values(tables), _plain_columns(sql, len(release.columns))
    names = {name: _column(name, place, known) for place, name in enumerate(release.columns)}
    return replace(
        release,
        columns={
            names[name]: _keys(values, public) if place not in plain and _is_chosen(release, name) else values
            for place, (name, values) in enumerate(release.columns.items())
        },
        errors={
            names[name]: errors if place in plain else tuple(map(_shown_error, errors))
            for place, name in enumerate(release.columns)
            if (errors := release.errors.get(name)) is not None
        },
        explanation="",
        comparison=(),
        within=None,
    )


def _column(name: str, place: int, known: frozenset[str]) -> str:
    return name if name.lower() in known else f"column {place + 1}"


def _is_chosen(release: Release, name: str) -> bool:
    """Return whether the values of a column are keys, or one of several categories: such values may be literals."""
    errors = release.errors.get(name, ())
    return not errors or any(isinstance(value, str) for value in release.columns[name]) or errors[0].shortfall


def _keys(values: tuple[Any, ...], public: frozenset[str]) -> tuple[Any, ...]:
    """Return a column with ?, or ?1, ?2, ..., for every value that only the analyst's words explain."""
    made_up = list(dict.fromkeys(value for value in values if not _is_public(value, public)))
    if not made_up:
        return values
    marks = {value: f"?{place}" if len(made_up) > 1 else "?" for place, value in enumerate(made_up, start=1)}
    return tuple(None if value is None else marks.get(value, str(value)) for value in values)


def _is_public(value: Any, public: frozenset[str]) -> bool:
    """Return whether a steward declared a value, or it is a truth value."""
    return value is None or isinstance(value, bool) or _form(value) in public


def _shown_error(error: Error) -> Error:
    """Return an error without bounds and ranks, which the analyst may have written; usual ranks are no secret."""
    if error.asked is not None and error.asked not in USUAL:
        return Error(bias=inf, noise=inf)
    return error if error.unit == "rank" else replace(error, limits=None)


def _plain_columns(sql: str, columns: int) -> frozenset[int]:
    """Return the places of columns that no literal of a question goes into; units such as 'month' are none.

    A number computed from literals (1000 + 712) tells them as well as they do. Inside of a subquery a name may stand
    for one, so then a literal anywhere concerns every column.
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return frozenset()
    everything = frozenset(range(columns))
    if not _has_literal(tree):
        return everything
    nested = tree.find(exp.Subquery, exp.With, exp.SetOperation, exp.Window) is not None
    if not isinstance(tree, exp.Select) or nested or len(tree.expressions) != columns:
        return frozenset()
    made = {one.alias.lower() for one in tree.expressions if isinstance(one, exp.Alias) and _has_literal(one)}
    return frozenset(
        place
        for place, one in enumerate(tree.expressions)
        if not _has_literal(one) and not any(found.name.lower() in made for found in one.find_all(exp.Column))
    )


def _has_literal(node: exp.Expr) -> bool:
    kinds = (exp.Literal, exp.HexString, exp.BitString, exp.RawString, exp.National)
    return any(
        not (one.is_string and one.name.upper() in UNITS) if isinstance(one, exp.Literal) else True
        for one in node.find_all(*kinds)
    )


def _form(value: Any) -> str:
    """Return a value so that the spellings of one literal are equal: 77 is 77.0 is '77', and its sign is no part."""
    try:
        return str(abs(float(value)))
    except (TypeError, ValueError, OverflowError):
        text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
        return text.strip().lower().removesuffix(" 00:00:00")

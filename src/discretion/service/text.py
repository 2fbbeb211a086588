"""Text: what others may read of receipts and answers."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from discretion.declaration.table import Table
from discretion.ledger import Receipt
from discretion.query.quotation import known_names, without_literals
from discretion.release import Release

__all__ = ["known_names", "known_values", "shown_receipt", "shown_release", "without_literals"]


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
    """Return an answer that another analyst asked for: names and keys without literals of `sql`, and no plan."""
    tables = tuple(tables)
    known, public, written = known_names(tables), known_values(tables), _written(sql)
    names = {name: _column(name, place, known) for place, name in enumerate(release.columns)}
    return replace(
        release,
        columns={
            names[name]: _keys(values, public, written) if _is_chosen(release, name) else values
            for name, values in release.columns.items()
        },
        errors={names[name]: errors for name, errors in release.errors.items()},
        explanation="",
        comparison=(),
    )


def _column(name: str, place: int, known: frozenset[str]) -> str:
    return name if name.lower() in known else f"column {place + 1}"


def _is_chosen(release: Release, name: str) -> bool:
    """Return whether the values of a column are keys, or one of several categories: such values may be literals."""
    errors = release.errors.get(name, ())
    return not errors or any(isinstance(value, str) for value in release.columns[name]) or errors[0].shortfall


def _keys(values: tuple[Any, ...], public: frozenset[str], written: frozenset[str] | None) -> tuple[Any, ...]:
    """Return a column with ?, or ?1, ?2, ..., for every value that only the analyst's words explain."""
    made_up = list(dict.fromkeys(value for value in values if not _is_public(value, public, written)))
    if not made_up:
        return values
    marks = {value: f"?{place}" if len(made_up) > 1 else "?" for place, value in enumerate(made_up, start=1)}
    return tuple(None if value is None else marks.get(value, str(value)) for value in values)


def _is_public(value: Any, public: frozenset[str], written: frozenset[str] | None) -> bool:
    """Return whether a steward declared a value, or it is a truth value, number or date that the SQL does not have."""
    if value is None or isinstance(value, bool) or _form(value) in public:
        return True
    if written is None or _form(value) in written:
        return False
    return not isinstance(value, str) or _is_date(value)


def _written(sql: str) -> frozenset[str] | None:
    """Return every token of a question, None if it has none."""
    try:
        tokens = sqlglot.tokenize(sql, dialect="duckdb")
    except SqlglotError:
        return None
    return frozenset(_form(token.text) for token in tokens) or None


def _form(value: Any) -> str:
    """Return a value so that the spellings of one literal are equal: 77 is 77.0 is '77', and its sign is no part."""
    try:
        return str(abs(float(value)))
    except (TypeError, ValueError, OverflowError):
        text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
        return text.strip().lower().removesuffix(" 00:00:00")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return len(text) <= len("2024-12-31 23:59:59.000000")

"""Text: what others may read of a question. Literals and names that its analyst made up are removed."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discretion.declaration.table import Table
from discretion.ledger import Receipt, Use
from discretion.release import Release

HIDDEN = "a question"


def known_names(tables: Iterable[Table]) -> frozenset[str]:
    """Return every name that a steward declared: all of them are public."""
    found: set[str] = set()
    for table in tables:
        found |= {table.name, *table.columns, *table.lookups}
        for lookup in table.lookups.values():
            found |= set(lookup.columns)
    return frozenset(name.lower() for name in found)


@lru_cache(maxsize=4_096)
def without_literals(sql: str, known: frozenset[str]) -> str:
    """Return a question with ? for every literal and `name` for every name that no steward declared."""
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        return str(tree.transform(lambda node: _plain(node, known)).sql("duckdb", comments=False))
    except (SqlglotError, RecursionError, ValueError, AttributeError):
        return HIDDEN


def _plain(node: exp.Expr, known: frozenset[str]) -> exp.Expr:
    if isinstance(node, (exp.Literal, exp.Boolean, exp.HexString, exp.BitString, exp.RawString, exp.National)):
        return exp.Placeholder()
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return exp.Placeholder()
    if isinstance(node, exp.In) and node.expressions and all(isinstance(one, exp.Literal) for one in node.expressions):
        return exp.In(this=node.this.transform(lambda one: _plain(one, known)), expressions=[exp.Placeholder()])
    if isinstance(node, exp.Identifier) and node.name.lower() not in known:
        return exp.to_identifier("name")
    if isinstance(node, exp.Anonymous):
        return exp.Anonymous(this="name", expressions=node.expressions)
    return node


def shown_receipt(receipt: Receipt, known: frozenset[str]) -> Receipt:
    """Return a receipt whose questions have no literals."""

    def plain(uses: tuple[Use, ...]) -> tuple[Use, ...]:
        return tuple(replace(use, question=without_literals(use.question, known)) for use in uses)

    return replace(receipt, releases=plain(receipt.releases), individual=plain(receipt.individual))


def shown_release(release: Release, known: frozenset[str]) -> Release:
    """Return an answer that another analyst asked for: column names without literals, and no plan."""
    names = {name: _column(name, place, known) for place, name in enumerate(release.columns)}
    return replace(
        release,
        columns={names[name]: values for name, values in release.columns.items()},
        errors={names[name]: errors for name, errors in release.errors.items()},
        explanation="",
        comparison=(),
    )


def _column(name: str, place: int, known: frozenset[str]) -> str:
    return name if name.lower() in known else f"column {place + 1}"

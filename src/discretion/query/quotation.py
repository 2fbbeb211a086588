"""Quotation: what others may read of a question. Literals and names that its analyst made up are removed."""

from collections.abc import Iterable
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discretion.declaration.table import Table

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

"""Row sets: what a question reads, as FROM, JOIN, WITH, subqueries and WHERE describe it."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discretion.declaration.table import Lookup, Table
from discretion.errors import QueryRefused
from discretion.query.scalar import Scalar, Scope


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A lookup table joined on its unique key: every protected row meets at most one of its rows."""

    name: str  # what the engine's SQL calls it
    lookup: Lookup
    named: str  # what the steward calls it
    shown: str  # what the analyst calls it
    on: Scalar  # the protected side of the join
    outer: bool  # LEFT JOIN: rows without a match stay
    shared: str  # the type in which both sides are compared


@dataclass(frozen=True, kw_only=True)
class RowSet:
    """A protected table seen through subqueries that only filter and project."""

    table: Table
    scope: Scope
    filters: tuple[Scalar, ...] = ()
    lookups: tuple[Joined, ...] = ()
    grouped: bool = False  # rows whose keys are not among those shown are left out

    @property
    def columns(self) -> dict[str, Scalar]:
        """Every column by name; a name in several relations cannot be listed by *."""
        everything: dict[str, Scalar] = {}
        for columns in self.scope.relations.values():
            for name, found in columns.items():
                if name in everything:
                    raise QueryRefused(f"Column {name!r} is in several tables. List the columns instead of *.")
                everything[name] = found
        return everything


@dataclass(frozen=True, kw_only=True)
class Key:
    """One GROUP BY key and every value it shows; rows with another value are left out."""

    name: str  # k0, k1, ...: what the answer's arithmetic calls it
    plain: exp.Expr
    expression: exp.Expr  # total, over the table's columns, of type `sql_type`
    sql_type: str
    values: tuple[Any, ...]
    scalar: Scalar

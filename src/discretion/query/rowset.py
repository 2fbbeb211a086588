"""Row sets: what a question reads, as FROM, JOIN, WITH, subqueries and WHERE describe it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlglot import exp

from discretion.declaration.table import Lookup, Table
from discretion.errors import QueryRefused
from discretion.guarantee import Protects
from discretion.query.scalar import Scalar, Scope, unbracketed
from discretion.statistics import Aggregate

Gathering = Literal["count", "distinct", "sum", "mean", "min", "max"]


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
class Key:
    """One GROUP BY key and every value it shows; rows with another value are left out."""

    name: str  # k0, k1, ...: what the answer's arithmetic calls it
    plain: exp.Expr
    expression: exp.Expr  # total, over the table's columns, of type `sql_type`
    sql_type: str
    values: tuple[Any, ...]
    scalar: Scalar
    stored: str  # the type that rows have it in: a DECIMAL is compared with its values as a double


@dataclass(frozen=True, kw_only=True)
class PersonValue:
    """One aggregate over the rows of one person. It depends on these rows alone, and not on their order."""

    name: str  # a0, a1, ...: what the engine's SQL calls it
    function: Gathering
    column: Scalar  # the aggregate, as a column of the rows put together
    value: exp.Expr | None = None  # of one row, total; None: every row counts
    order: exp.Expr | None = None  # min, max: take the value of the row where this is least or largest
    grid: Aggregate | None = None  # sum, mean: values are added as whole steps of this grid; None: they are exact
    ends: tuple[exp.Expr | None, exp.Expr | None] = (None, None)  # sum, mean of exact numbers: where they are clamped
    scalars: tuple[Scalar, ...] = ()  # what `value` and `order` are made of


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Each person's rows put together: one row a person, or one for each key that their rows have."""

    values: tuple[PersonValue, ...]
    keys: tuple[Key, ...]  # g0, g1, ...
    where: tuple[exp.Expr, ...]  # total conditions on rows, before they are put together
    scalars: tuple[Scalar, ...]  # everything that is computed of a row
    most: int  # rows of one person afterwards
    exceeds: bool  # there can be more, so that some must be chosen
    text: exp.Select  # canonical


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A subquery with GROUP BY person, as a table to join: one row a person, made of that person's rows alone."""

    gathered: Gathered  # without keys
    filters: tuple[Scalar, ...]  # on rows put together
    columns: Mapping[str, Scalar]  # by what the engine's SQL calls them; over rows put together
    text: exp.Select  # canonical


@dataclass(frozen=True, kw_only=True)
class Partner:
    """Another protected table about the same people, joined on the person: every row meets at most one of its rows."""

    name: str  # what the engine's SQL calls it
    table: Table
    shown: str  # what the analyst calls it
    outer: bool  # LEFT JOIN: rows of people who are not in it stay
    summary: Summary | None = None  # each person's rows are put together before they are joined
    after: bool = False  # it is joined with rows that were put together, and not with those before


@dataclass(frozen=True, kw_only=True)
class RowSet:
    """A protected table seen through subqueries that filter, project, or put each person's rows together."""

    table: Table
    scope: Scope
    filters: tuple[Scalar, ...] = ()
    lookups: tuple[Joined, ...] = ()
    grouped: bool = False  # rows whose keys are not among those shown are left out
    gathered: Gathered | None = None  # each person's rows were put together; `filters` are about the result
    partners: tuple[Partner, ...] = ()

    @property
    def protects(self) -> Protects:
        """Return what changes between neighbours: rows come or go, or may also change.

        Somebody who leaves a table that is joined by LEFT, or whose values in a table change, has other rows.
        """
        tables = [self.table, *(one.table for one in self.partners)]
        leaves = all(one.protects == "presence" for one in tables) and not any(one.outer for one in self.partners)
        return "presence" if leaves else "value"

    @property
    def rows_per_person(self) -> int:
        """Return how many of these rows a person has at most."""
        return self.table.rows_per_person if self.gathered is None else self.gathered.most

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


def with_joins(select: exp.Select, found: RowSet) -> exp.Select:
    """Return a canonical SELECT from a table with its partners and lookups joined."""
    select = select.from_(exp.to_identifier(found.table.name))
    select = with_partners(select, found, found.table.name, after=False)
    for joined in found.lookups:
        key = exp.column(joined.lookup.key, table=joined.shown)
        target = exp.alias_(exp.to_table(joined.named), joined.shown, table=True)
        on = exp.EQ(this=joined.on.plain.copy(), expression=key)
        select = select.join(target, on=on, join_type=_side(joined.outer))
    return select


def with_partners(select: exp.Select, found: RowSet, first: str, *, after: bool) -> exp.Select:
    """Return a canonical SELECT with the partners joined that rows meet before, or `after`, they are put together."""
    for partner in (one for one in found.partners if one.after == after):
        sides = (
            exp.column(table.person, table=name, quoted=not table.person.isidentifier())
            for table, name in ((found.table, first), (partner.table, partner.table.name))
        )
        on = exp.EQ(this=next(sides), expression=next(sides))
        name = partner.table.name
        target = exp.to_table(name) if partner.summary is None else partner.summary.text.subquery(name)
        select = select.join(target, on=on, join_type=_side(partner.outer))
    return select


def _side(outer: bool) -> str:
    return "left" if outer else ""


def conditions(filters: tuple[Scalar, ...]) -> list[exp.Expr]:
    """Return the conditions that AND joins, however they are bracketed, for a canonical SELECT."""
    return [part for one in filters for part in parted(one.plain)]


def parted(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND joins."""
    node = unbracketed(node)
    if isinstance(node, exp.And):
        return [*parted(node.this), *parted(node.expression)]
    return [node.copy()]


def as_column(value: Scalar, plain: exp.Expr, total: exp.Expr, columns: frozenset[str]) -> Scalar:
    """Return a value that is computed already, as the column of a relation that holds it."""
    return replace(
        value,
        plain=plain,
        total=total,
        columns=columns,
        operands=(),
        required=False,
        wild=False,
        literal=False,
        number=None,
        made=value.longest,
        size=1,
    )

"""Subqueries with GROUP BY person: each person's rows are put together, and the result is a relation again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query.aggregation import is_person
from discretion.query.expression import predicate, refuse, scalar
from discretion.query.key import bare, key, numbered, terms
from discretion.query.kind import BIGINT, REACH, digits
from discretion.query.operation import try_cast
from discretion.query.personal import personal
from discretion.query.rowset import Gathered, Key, PersonValue, RowSet, as_column, conditions, with_joins
from discretion.query.scalar import ROW, Scalar, Scope, columns_of, shown, within

PERSON = "p"  # what the engine's SQL calls the person of rows put together
OWN = "e"  # and their preference, where it stands in the rows
_EXACT = 15  # digits of a DECIMAL that a double gives back
_CONSTANTS = (exp.Literal, exp.Boolean, exp.Null)


def gathered(select: exp.Select, inner: RowSet, alias: str) -> RowSet:
    """Return the relation that a subquery with GROUP BY person is: one row a person, or one a person and key."""
    if inner.gathered is not None:
        raise QueryRefused("Each person's rows can be put together once. Write one subquery with GROUP BY person.")
    gather = _Gather(inner, _keys(select, inner))
    columns = {name: gather.column(name, node) for name, node in _named(select)}
    having = select.args.get("having")
    filters = () if having is None else (predicate(gather.over(having.this), gather.scope, "HAVING"),)
    groups = prod(len(one.values) for one in gather.keys)
    most = min(groups, inner.table.rows_per_person) if gather.keys else 1
    rows = Gathered(
        values=tuple(gather.values.values()),
        keys=gather.keys,
        where=tuple(one.tame.total for one in inner.filters),
        scalars=tuple(gather.row_scalars()),
        most=most,
        exceeds=groups > most,
        text=gather.text(columns, filters),
    )
    named = {name.lower(): replace(one, plain=_column(name)) for name, one in columns.items()}
    return replace(inner, scope=Scope({alias: named}), filters=filters, gathered=rows)


def _keys(select: exp.Select, inner: RowSet) -> tuple[Key, ...]:
    """Return the keys besides the person; refuse a subquery that is not about single people."""
    found = terms(select, inner)
    others = [term for term in found if not _is_person(term, inner)]
    person = inner.table.person
    if len(others) == len(found):
        raise QueryRefused(
            f"GROUP BY in a subquery must name the person: GROUP BY {person} puts each person's rows together. Any "
            "other grouping is a question of its own: ask it first, or group in the outer query."
        )
    return numbered((key(term, inner) for term in others), "g")


def _is_person(term: exp.Expr, inner: RowSet) -> bool:
    return isinstance(term, (exp.Column, exp.Paren)) and is_person(scalar(term, inner.scope), inner.table)


def _named(select: exp.Select) -> list[tuple[str, exp.Expr]]:
    """Return the columns of a subquery, each with its name."""
    found: dict[str, tuple[str, exp.Expr]] = {}
    for item in select.expressions:
        name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else ""
        if not name or isinstance(item, exp.Star):
            raise QueryRefused(f"{shown(item)} in a subquery needs a name: write {shown(item)} AS name.")
        if name.lower() in found:
            raise QueryRefused(f"Two columns are named {name!r}. Give one of them another name with AS.")
        found[name.lower()] = name, item.this if isinstance(item, exp.Alias) else item
    return list(found.values())


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=not name.isidentifier())


def own_person(table: Table, plain: exp.Expr) -> Scalar:
    """Return the person of rows put together, as a column of theirs."""
    own = columns_of(table)[table.person.lower()]

    def placed(node: exp.Expr) -> exp.Expr:
        return exp.column(PERSON, table=ROW, quoted=True) if isinstance(node, exp.Column) else node

    number = None if own.number is None else own.number.copy().transform(placed)
    return replace(own, plain=plain, total=own.total.copy().transform(placed), number=number, required=False)


@dataclass(frozen=True)
class _Known(Scope):
    """Columns of rows put together, by what the analyst wrote: messages quote it."""

    known: Mapping[str, Scalar] = field(default_factory=dict)

    def find(self, column: exp.Column) -> Scalar:
        """Return an aggregate, a key or the person."""
        return self.known[column.name]


@dataclass
class _Gather:
    """Reads SELECT and HAVING of a subquery, and collects its aggregates."""

    inner: RowSet
    keys: tuple[Key, ...]
    values: dict[str, PersonValue] = field(default_factory=dict)  # by canonical text
    aliases: dict[str, exp.Expr] = field(default_factory=dict)  # columns of SELECT, which HAVING may name
    known: dict[str, Scalar] = field(default_factory=dict)

    @property
    def scope(self) -> _Known:
        return _Known(known=self.known)

    def column(self, name: str, node: exp.Expr) -> Scalar:
        """Return one column of SELECT, over the rows put together."""
        found = self.over(node)
        self.aliases[name.lower()] = found
        value = scalar(found, self.scope)
        declared = value.columns - {self.inner.table.person}
        # A declared key stays one by its own name only, as it is: what is known of it is looked up by that name.
        own = isinstance(value.plain.unnest(), exp.Column) and declared <= {name}
        kept = value.columns if own else value.columns - declared
        if self.inner.table.person in kept and not is_person(value, self.inner.table):
            kept |= {f"{name}()"}  # computed from the person, by whatever name, it is not the person
        return replace(value, columns=kept)

    def over(self, node: exp.Expr) -> exp.Expr:
        """Return `node` over aggregates, keys and the person."""
        return node.copy().transform(self._part)

    def _part(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, (exp.Window, exp.Query)):
            refuse(node)
        if isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            return self._aggregate(node)
        if isinstance(node, _CONSTANTS) or node.find(exp.Column) is None:
            return node
        found = None if node.find(exp.AggFunc) is not None else self._held(node)
        if found is not None:
            return self._noted(replace(found, plain=within(node, found.plain)))
        if isinstance(node, exp.Column):
            if not node.table and node.name.lower() in self.aliases:
                return within(node, self.aliases[node.name.lower()])
            self.inner.scope.find(node)
            raise QueryRefused(
                f"{node.name} has a value for each row of a person: put it in an aggregate such as MAX({node.name}), "
                "or in the GROUP BY of the subquery (with declared keys)."
            )
        return node

    def _held(self, node: exp.Expr) -> Scalar | None:
        """Return the person or the key that `node` is."""
        try:
            value = scalar(node, self.inner.scope)
        except QueryRefused:
            return None
        if is_person(value, self.inner.table):
            return own_person(self.inner.table, value.plain)
        text = bare(value.plain)
        return next((_as_column(one) for one in self.keys if bare(one.plain) == text), None)

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        made = personal(node, self.inner, f"a{len(self.values)}")
        text = made.column.plain.sql("duckdb")
        return self._noted(self.values.setdefault(text, made).column)

    def _noted(self, found: Scalar) -> exp.Expr:
        """Return a column that stands for a value, named by its own text."""
        text = found.plain.sql("duckdb")
        self.known[text] = found
        return exp.column(exp.Identifier(this=text, quoted=False))

    def row_scalars(self) -> list[Scalar]:
        """Return everything that is computed of one row."""
        values = [part for one in self.values.values() for part in one.scalars]
        joined = [one.on for one in self.inner.lookups]
        return [*self.inner.filters, *(one.scalar for one in self.keys), *joined, *values]

    def text(self, columns: Mapping[str, Scalar], having: tuple[Scalar, ...]) -> exp.Select:
        """Return the subquery in one spelling.

        HAVING also stands in the outer WHERE, but a column may have another column's name there.
        """
        select = exp.select(*(exp.alias_(one.plain.copy(), name, quoted=True) for name, one in columns.items()))
        select = with_joins(select, self.inner).where(*conditions(self.inner.filters))
        select = select.group_by(_column(self.inner.table.person), *(one.plain.copy() for one in self.keys))
        return select.having(*conditions(having))


def _as_column(one: Key) -> Scalar:
    """Return a key as a column of rows put together."""
    longest = max((len(value) for value in one.values if isinstance(value, str)), default=0)
    texts = longest if one.sql_type == "VARCHAR" else 0
    columns = frozenset({one.plain.name}) if isinstance(one.plain, exp.Column) else frozenset()
    known = replace(one.scalar, values=one.values, longest=texts)
    held: exp.Expr = exp.column(one.name, table=ROW, quoted=True)
    if one.sql_type == BIGINT:
        known = replace(known, reach=REACH[BIGINT], narrow=False)
    elif one.stored.startswith("DECIMAL") and sum(digits(one.stored, 0)) <= _EXACT:
        known, held = replace(known, type=one.stored, reach=0, whole=False), try_cast(held, one.stored)
    return as_column(known, one.plain, held, columns)

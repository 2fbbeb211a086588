"""Turn SQL into a Query: one protected table, an allow-list, everything else refused with a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite, prod
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.guarantee import Protects
from discretion.noise import Floats
from discretion.query import calendar
from discretion.query.aggregation import Asked
from discretion.query.category import CATEGORY, of_few
from discretion.query.key import bare, keys
from discretion.query.listed import spread
from discretion.query.output import Order, Output, OutputColumn
from discretion.query.partner import refuse_names
from discretion.query.place import unfinished
from discretion.query.relation import ALLOWED, Tables, clauses, relation
from discretion.query.released import evaluate, typed
from discretion.query.rowset import (
    Gathered,
    Joined,
    Key,
    Partner,
    PersonValue,
    RowSet,
    Summary,
    conditions,
    with_joins,
    with_partners,
)
from discretion.query.scalar import only, pieces, refuse_deep, within
from discretion.statistics import Aggregate

__all__ = [
    "Asked",
    "Gathered",
    "Joined",
    "Key",
    "Order",
    "OutputColumn",
    "Partner",
    "PersonValue",
    "Query",
    "Summary",
    "parse",
    "statement",
]

MOST_GROUPS = 10_000
# Characters of all texts that a query makes of one row. A thread of the database holds them for 2,048 rows at once,
# outside of its memory limit: 0.4 GB if every character takes four bytes.
MOST_MADE = 50_000
LONGEST = 20_000  # characters of a query
DEEPEST = 60  # levels of nesting
_INSTEAD = {  # of statements that are no SELECT
    "PIVOT": " Write SELECT * FROM (...) PIVOT (SUM(n) FOR kind IN ('a', 'b')).",
    **dict.fromkeys(
        ("DESCRIBE", "DESC", "SHOW", "SUMMARIZE"), " `tables` lists tables, their columns, bounds and keys."
    ),
}
_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question in known parts. `asked` is what mechanisms must release; the rest is done to released values."""

    text: str  # canonical: the same question has the same text
    core: str  # likewise, of its rows and groups alone, in whatever order conditions and keys were written
    table: Table
    asked: tuple[Asked, ...]
    columns: tuple[OutputColumn, ...]
    keys: tuple[Key, ...] = ()
    where: tuple[exp.Expr, ...] = ()  # total conditions, all of which must hold
    lookups: tuple[Joined, ...] = ()
    pieces: tuple[exp.Expr, ...] = ()  # the total form of every operation on rows, without what stands around it
    having: exp.Expr | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    partners: tuple[Partner, ...] = ()
    gathered: Gathered | None = None  # each person's rows are put together first; all of the above is about the result

    @property
    def rows_per_person(self) -> int:
        """Return how many rows of one person count at most; those are rows put together where they are."""
        return self.table.rows_per_person if self.gathered is None else self.gathered.most

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return every protected table that is read, first the one whose rows are counted."""
        return (self.table, *(one.table for one in self.partners))

    @property
    def protects(self) -> Protects:
        """Return what changes between neighbours."""
        return self.asked[0].aggregate.protects

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return what is to be planned, one each."""
        return tuple(one.aggregate for one in self.asked)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the text of each aggregate; "" for a sum about two columns that stands for no statistic."""
        return tuple("" if one.pair is not None and one.pair.statistic is None else one.text for one in self.asked)

    @property
    def groups(self) -> tuple[tuple[Any, ...], ...]:
        """Every group of the answer, in the order statistics are in; one empty tuple without GROUP BY."""
        return tuple(product(*(key.values for key in self.keys)))

    def evaluate(self, released: Sequence[Floats]) -> dict[str, tuple[Any, ...]]:
        """Every column for every group, before HAVING, ORDER BY and LIMIT."""
        rows = self._environments(released)
        return {c.name: calendar.shown(tuple(evaluate(c.expression, row) for row in rows)) for c in self.columns}

    def shown(self, released: Sequence[Floats]) -> tuple[int, ...]:
        """The numbers of the groups that HAVING, ORDER BY and LIMIT leave, in their order."""
        rows = self._environments(released)
        kept = [g for g, row in enumerate(rows) if self.having is None or evaluate(self.having, row) is True]
        for term in reversed(self.order):
            values = {g: evaluate(term.expression, rows[g]) for g in kept}
            known = [g for g in kept if values[g] is not None]
            known.sort(key=lambda g, values=values: values[g], reverse=term.descending)  # type: ignore[misc]
            unknown = [g for g in kept if values[g] is None]
            kept = unknown + known if term.nulls_first else known + unknown
        return tuple(kept[self.offset :][: self.limit])

    def finish(self, released: Sequence[Floats]) -> dict[str, tuple[Any, ...]]:
        """The answer: `released` has one array (a value a group) for each of `asked`."""
        shown = self.shown(released)
        return {name: tuple(values[g] for g in shown) for name, values in self.evaluate(released).items()}

    def _environments(self, released: Sequence[Floats]) -> list[dict[str, Any]]:
        """For every group, what placeholders and keys stand for."""
        return [
            {f"k{i}": value for i, value in enumerate(group)}
            | {str(i): float(values[g]) if isfinite(values[g]) else None for i, values in enumerate(released)}
            for g, group in enumerate(self.groups)
        ]


def parse(sql: str, tables: Mapping[str, Table]) -> Query:
    """The question `sql` asks, or QueryRefused with what to write instead."""
    try:
        return _query(one_select(sql), tables)
    except RecursionError:
        raise QueryRefused("This query is nested too deeply. Write it with fewer levels.") from None
    except QueryRefused as refusal:
        refusal.locate(sql)
        raise


def _query(select: exp.Select, tables: Mapping[str, Table]) -> Query:
    clauses(select, *ALLOWED, "group", "having", "order", "limit", "offset")
    select = spread(select) if select.find(exp.Array) is not None else select
    found = relation(select, Tables(tables, qualified=select.find(exp.Join) is not None))
    refuse_names(found)
    grouped = keys(select, found)
    groups = prod(len(key.values) for key in grouped)
    if groups > MOST_GROUPS:
        raise QueryRefused(f"GROUP BY makes {groups:,} groups; at most {MOST_GROUPS:,} can be shown. Use fewer keys.")
    found = replace(found, grouped=bool(grouped))
    answer = Output(found, grouped, groups)
    columns = tuple(answer.columns(select))
    having = select.args.get("having")
    order = select.args.get("order")
    query = Query(
        text="",
        core="",
        table=found.table,
        columns=columns,
        having=None if having is None else answer.released(having.this),
        order=tuple(answer.term(term) for term in order.expressions) if order is not None else (),
        limit=_whole(select, "limit"),
        offset=_whole(select, "offset") or 0,
        keys=grouped,
        where=tuple(one.tame.total for one in found.filters),
        lookups=found.lookups,
        gathered=found.gathered,
        partners=found.partners,
        pieces=_pieces(found, grouped, tuple(answer.asked.values())),
        asked=tuple(answer.asked.values()),
    )
    if not query.asked:
        raise QueryRefused("A question must ask for an aggregate, such as COUNT(*) or AVG(column).")
    if any(one.protects != found.protects for one in query.aggregates):
        raise QueryRefused("An aggregate of this question is not known to be safe over joined tables. Leave it out.")
    _check_released(query)
    _check_size(query, found)
    return replace(query, text=_text(query, found), core=_core(query, found))


def _whole(select: exp.Select, name: str) -> int | None:
    clause = select.args.get(name)
    if clause is None:
        return None
    only(clause, "expression")
    number = clause.expression
    if not isinstance(number, exp.Literal) or not str(number.this).isdigit():
        raise QueryRefused(f"{name.upper()} needs a whole number of rows written out.")
    return min(int(number.this), MOST_GROUPS)


def _check_released(query: Query) -> None:
    """Refuse what cannot be computed from released values by its types alone: afterwards it would be paid for."""
    if not any(column.expression.find(exp.Placeholder) for column in query.columns):
        raise QueryRefused(
            "No selected column has an aggregate, so the answer would have no error to show. Select what HAVING or "
            "ORDER BY use, too, as in SELECT region, COUNT(*) AS n FROM ... GROUP BY region ORDER BY n."
        )
    keys = {key.name: key.scalar for key in query.keys}
    aggregates = [one.plain for one in query.asked]
    for expression in _released(query):
        typed(of_few(expression), aggregates, keys)
    if query.having is not None and typed(of_few(query.having), aggregates, keys).kind not in ("boolean", "null"):
        raise QueryRefused("HAVING needs a condition on released values, such as COUNT(*) > 100.")


def _pieces(found: RowSet, grouped: Sequence[Key], asked: Sequence[Asked]) -> tuple[exp.Expr, ...]:
    """Return every operation on rows by itself: in a CASE or after an AND, a condition could hide it."""
    scalars = [*found.filters, *(key.scalar for key in grouped), *(one for a in asked for one in a.scalars)]
    return pieces([*scalars, *(joined.on for joined in found.lookups if found.gathered is None)])


def _check_size(query: Query, found: RowSet) -> None:
    """Refuse what would take too much memory by row, or too many nested calls to write out."""
    scalars = [*found.filters, *(key.scalar for key in query.keys), *(joined.on for joined in found.lookups)]
    scalars += () if found.gathered is None else found.gathered.scalars
    for one in (partner.summary for partner in found.partners if partner.summary is not None):
        scalars += [*one.gathered.scalars, *one.filters, *one.columns.values()]
    made = sum(one.made for one in scalars) + sum(one.made for one in query.asked)
    if made > MOST_MADE:
        raise QueryRefused(
            f"This query makes texts of up to {made:,} characters for every row; at most {MOST_MADE:,} are allowed. "
            "Use fewer text functions, or cut texts first with LEFT(text, 20)."
        )
    refuse_deep(tree for one in scalars for tree in (one.plain, one.total))
    refuse_deep(one.value for one in query.asked if one.value is not None)
    refuse_deep(one.plain for one in query.asked)
    refuse_deep([*_released(query), query.having or exp.true()])


def _released(query: Query) -> list[exp.Expr]:
    """Return what is computed from released values and shown or sorted by."""
    return [column.expression for column in query.columns] + [term.expression for term in query.order]


def _core(query: Query, found: RowSet) -> str:
    """Return the question for the number of rows in all groups: what every aggregate is about, in one order."""
    keys = sorted((key.plain for key in query.keys), key=bare)
    where = {one.sql("duckdb"): one for one in conditions(found.filters)}
    select = _source(exp.select(*(key.copy() for key in keys), exp.Count(this=exp.Star())), found)
    select = select.where(*(where[text] for text in sorted(where)))
    select = select.group_by(*(key.copy() for key in keys)) if keys else select
    return str(select.sql("duckdb", comments=False))


def _source(select: exp.Select, found: RowSet) -> exp.Select:
    """Return a canonical SELECT from the rows that are found."""
    if found.gathered is None:
        return with_joins(select, found)
    return with_partners(select.from_(found.gathered.text.subquery("gathered")), found, "gathered", after=True)


def _text(query: Query, found: RowSet) -> str:
    """The question in one spelling, over the table's own columns."""

    def written(expression: exp.Expr) -> exp.Expr:
        def back(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Placeholder) or node.meta_get(CATEGORY):
                return query.asked[int((node.this if node.meta_get(CATEGORY) else node).name)].plain.copy()
            if isinstance(node, exp.Column):
                return within(node, query.keys[int(node.name[1:])].plain)
            return node

        return expression.copy().transform(back)

    # AVG(Age) and avg(age) are the same question, so their names are the same here.
    named = [(column, column.name.lower() if "(" in column.name else column.name) for column in query.columns]
    select = exp.select(*(exp.alias_(written(column.expression), name, quoted=True) for column, name in named))
    select = _source(select, found).where(*conditions(found.filters))
    select = select.group_by(*(key.plain.copy() for key in query.keys)) if query.keys else select
    if query.having is not None:
        select = select.having(written(query.having))
    for term in query.order:
        ordered = exp.Ordered(this=written(term.expression), desc=term.descending, nulls_first=term.nulls_first)
        select = select.order_by(ordered)
    select = select.limit(query.limit) if query.limit is not None else select
    return str((select.offset(query.offset) if query.offset else select).sql("duckdb", comments=False))


def one_select(sql: str) -> exp.Select:
    """The one SELECT that a text holds."""
    tree = statement(sql)
    if isinstance(tree, exp.SetOperation):
        raise QueryRefused(f"{type(tree).__name__.upper()} joins several questions. Ask them one by one.")
    if not isinstance(tree, exp.Select):
        raise QueryRefused(f"{type(tree).__name__.upper()} is not a question. Only SELECT is answered.")
    return tree


def statement(sql: str) -> exp.Expr:
    """The one statement that a text holds."""
    if len(sql) > LONGEST:
        raise QueryRefused(f"A query may have {LONGEST:,} characters at most, got {len(sql):,}.")
    if "\0" in sql or any("\ud800" <= sign <= "\udfff" for sign in sql):
        raise QueryRefused("The query contains an invalid character (NUL or a lone surrogate). Remove it.")
    try:
        tokens = [token for token in sqlglot.tokenize(sql, dialect="duckdb") if token.text != ";"]
        if tokens and tokens[0].token_type not in _STARTS:
            first = tokens[0].text.upper()[:20]
            raise QueryRefused(f"{first} is not a question. Only SELECT is answered.{_INSTEAD.get(first, '')}")
        parsed = sqlglot.parse(sql, dialect="duckdb")
        statements = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as failure:
        raise unfinished(sql, failure) from None
    if not statements:
        raise QueryRefused("The question is empty. Write a SELECT.")
    if len(statements) != 1:
        raise QueryRefused(f"One question at a time: this text has {len(statements)} statements.")
    tree = statements[0]
    while isinstance(tree, exp.Subquery) and not any(v for k, v in tree.args.items() if k != "this"):
        tree = tree.this
    tree = _balanced(tree)
    refuse_deep([tree], DEEPEST)
    return tree


def _balanced(tree: exp.Expr) -> exp.Expr:
    """The same question with every chain of AND or OR as a tree of few levels."""
    for chain in [node for node in tree.find_all(exp.And, exp.Or) if type(node.parent) is not type(node)]:
        parts, nodes = [], [chain]
        while nodes:
            node = nodes.pop()
            if type(node) is type(chain):
                nodes += [node.expression, node.this]
            else:
                parts.append(node)
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [type(chain)(this=p[0], expression=p[1]) if len(p) == 2 else p[0] for p in pairs]
        chain.replace(parts[0])
    return tree

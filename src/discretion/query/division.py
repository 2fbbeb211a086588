"""Divide a statement into private parts, which are ordinary questions, and SQL over what these release.

A private part is an inner SELECT with aggregates over a protected table. It becomes a table `part_0`, `part_1`, ...:
its keys and its aggregates, one row a group. Everything around it is done to released values.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query import Query, parse, statement
from discretion.query.aggregation import AGGREGATES
from discretion.query.expression import scalar
from discretion.query.key import bare, refuse_several
from discretion.query.relation import ALLOWED, Tables, clauses, relation
from discretion.query.rowset import RowSet
from discretion.query.scalar import shown, unbracketed

PART = "part_"  # what the tables of parts are called
MOST_PARTS = 8
_OURS = re.compile(r"_[ak]\d+", re.IGNORECASE)  # columns of parts
_KEPT = (
    "qualify",
    "order",
    "limit",
    "offset",
    "distinct",
    "windows",
    "with_",
)  # clauses that are about released values


@dataclass(frozen=True, kw_only=True)
class Division:
    """A statement in two halves: what is paid for, and what is computed from that for nothing."""

    queries: tuple[Query, ...]
    outer: str  # SQL over tables named part_0, part_1, ... with the columns of the questions, in their order


def divide(sql: str, tables: Mapping[str, Table]) -> Division | None:
    """Return the two halves of a statement; None if there is nothing above a private part."""
    tree = statement(sql)
    work = _Divide({name.lower(): table for name, table in tables.items()})
    if isinstance(tree, exp.Select) and not work.is_more_than_a_question(tree):
        return None
    outer = work.relation(tree, {})
    if not work.parts:
        return None
    names = {f"{PART}{number}": text for number, text in enumerate(work.parts)}
    _refuse_other_tables(outer, {*names})
    if len(names) > MOST_PARTS:
        raise QueryRefused(f"This statement has {len(names)} private parts; at most {MOST_PARTS} are allowed.")
    # The same parts of another statement are in the same order.
    texts = sorted(work.parts, key=lambda text: (work.parts[text].core, sorted(work.parts[text].labels), text))
    for table in outer.find_all(exp.Table):
        if table.name in names:
            table.set("this", exp.to_identifier(f"{PART}{texts.index(names[table.name])}"))
    queries = tuple(work.parts[text] for text in texts)
    return Division(queries=queries, outer=outer.sql("duckdb", comments=False))


@dataclass
class _Divide:
    """Reads a statement from the inside out, and collects its private parts."""

    protected: Mapping[str, Table]
    parts: dict[str, Query] = field(default_factory=dict)  # by canonical text

    def is_more_than_a_question(self, select: exp.Select) -> bool:
        """Tell whether there is something to compute above the aggregates."""
        inner = any(node is not select and _aggregates(node) for node in select.find_all(exp.Select))
        above = select.find(exp.Window, exp.Pivot, exp.Qualify) is not None
        return inner or above or (bool(_aggregates(select)) and self._has_rows(select, {}))

    def relation(self, tree: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
        """Return a SELECT or a set operation over released tables only; `known` has row sets that WITH defined."""
        known = self._define(tree, known)
        if isinstance(tree, exp.SetOperation):
            for side in ("this", "expression"):
                tree.set(side, self._inside(tree.args[side], known))
            return tree
        if not isinstance(tree, exp.Select):
            raise QueryRefused(f"{shown(tree)} is not a question. Only SELECT is answered.")
        if self._has_rows(tree, known):
            return self._private(tree, known)
        self._inner(tree, known)
        return tree

    def _inside(self, node: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
        if isinstance(node, exp.Subquery):
            node.set("this", self._inside(node.this, known))
            return node
        return self.relation(node, known)

    def _inner(self, tree: exp.Expr, known: Mapping[str, exp.Expr]) -> None:
        """Divide every query below this one."""
        for node in _queries(tree):
            node.replace(self.relation(node.copy(), known))

    def _define(self, tree: exp.Expr, known: Mapping[str, exp.Expr]) -> Mapping[str, exp.Expr]:
        """Take row sets out of WITH, and divide its other definitions."""
        block = tree.args.get("with_")
        if block is None:
            return known
        if block.args.get("recursive"):
            raise QueryRefused("WITH RECURSIVE is not allowed. Write the levels out.")
        rows, kept = dict(known), []
        for definition in block.expressions:
            name = definition.alias.lower()
            if name in self.protected or name.startswith(PART):
                raise QueryRefused(f"WITH {name}: this name is taken by a protected table or by us. Use another one.")
            if self._is_row_set(definition.this, rows):
                rows[name] = definition
                continue
            rows.pop(name, None)
            definition.set("this", self._inside(definition.this, rows))
            kept.append(definition)
        block.set("expressions", kept)
        if not kept:
            tree.set("with_", None)
        return rows

    def _is_row_set(self, node: exp.Expr, known: Mapping[str, exp.Expr]) -> bool:
        """Tell whether this gives rows of people, or of single people: no aggregate over all of them."""
        node = node.unnest() if isinstance(node, exp.Subquery) else node
        return isinstance(node, exp.Select) and self._has_rows(node, known) and not self._summarises(node, known)

    def _summarises(self, select: exp.Select, known: Mapping[str, exp.Expr]) -> bool:
        group = select.args.get("group")
        if group is None:
            return bool(_aggregates(select))
        people = {table.person.lower() for table in self.protected.values()}
        items = [one.this if isinstance(one, exp.Alias) else one for one in select.expressions]
        terms = [_numbered(term, items) for term in group.expressions]
        return not any(isinstance(term, exp.Column) and term.name.lower() in people for term in map(unbracketed, terms))

    def _has_rows(self, select: exp.Select, known: Mapping[str, exp.Expr]) -> bool:
        """Tell whether a SELECT reads people's rows itself."""
        source = select.args.get("from_")
        nodes = [] if source is None else [source.this, *(join.this for join in select.args.get("joins") or ())]
        return any(self._is_rows(node, known) for node in nodes)

    def _is_rows(self, node: exp.Expr, known: Mapping[str, exp.Expr]) -> bool:
        if isinstance(node, exp.Subquery):
            return self._is_row_set(node.this, known)
        if not isinstance(node, exp.Table) or node.args.get("db") is not None:
            return False
        return node.name.lower() in known or node.name.lower() in self.protected

    def _private(self, select: exp.Select, known: Mapping[str, exp.Expr]) -> exp.Expr:
        """Return a SELECT over a released table instead of one over people's rows."""
        return _Above(select, self, known).select()


class _Above:
    """Turns a SELECT with aggregates over people's rows into a part and a SELECT over it."""

    def __init__(self, select: exp.Select, divide: _Divide, known: Mapping[str, exp.Expr]) -> None:
        clauses(select, *ALLOWED, "group", "having", *_KEPT)  # what is neither asked nor kept above is not left out
        self.whole, self.divide, self.known = select, divide, known
        self.items = [one.this if isinstance(one, exp.Alias) else one for one in select.expressions]
        self.names = [_name(one) for one in select.expressions]
        for name in filter(_OURS.fullmatch, self.names):
            raise QueryRefused(f"Column {name}: this name is taken by us. Give it another one with AS.")
        self.found = self._rows()
        self.keys = {self._text(one): one for one in self._keys()}
        self.aggregates: dict[str, exp.Expr] = {}

    def select(self) -> exp.Expr:
        for node in _queries(self.whole, ("from_", "joins", "where", "group")):
            node.replace(self.divide.relation(node.copy(), self.known))
        outer = exp.select(
            *(
                exp.alias_(self.over(item.copy(), False), name, quoted=True)
                for item, name in zip(self.items, self.names, strict=True)
            )
        )
        having = self.whole.args.get("having")
        if having is not None:
            outer = outer.where(self.over(having.this.copy(), True))
        for name in _KEPT:
            clause = self.whole.args.get(name)
            if isinstance(clause, list):
                outer.set(name, [self.over(one.copy(), True) for one in clause])
            elif isinstance(clause, exp.Order):
                outer.set(name, exp.Order(expressions=[self._term(one.copy()) for one in clause.expressions]))
            elif clause is not None:
                outer.set(name, self.over(clause.copy(), True) if name != "with_" else clause.copy())
        return outer.from_(f"{PART}{self._part()}")

    def _keys(self) -> list[exp.Expr]:
        group = self.whole.args.get("group")
        if group is None:
            return []
        refuse_several(group)
        if group.args.get("all"):
            return [item for item in self.items if not _aggregates_in(item) and item.find(exp.Window) is None]
        columns = self._columns()
        aliases = {
            one.alias.lower(): one.this
            for one in self.whole.expressions
            if isinstance(one, exp.Alias) and one.alias.lower() not in columns
        }
        terms = [_numbered(term, self.items) for term in group.expressions]
        return [
            aliases.get(one.name.lower(), one) if isinstance(one, exp.Column) and not one.table else one
            for one in terms
        ]

    def _columns(self) -> set[str]:
        """Return the names that columns of the rows have; nothing if the part will be refused."""
        relations = {} if self.found is None else self.found.scope.relations
        return {name for columns in relations.values() for name in columns}

    def _rows(self) -> RowSet | None:
        """Return the rows that the SELECT reads; None if the part will be refused."""
        question = self._reading(exp.select(), "from_", "joins")
        try:
            return relation(question, Tables(self.divide.protected, qualified=question.find(exp.Join) is not None))
        except QueryRefused:
            return None

    def _text(self, node: exp.Expr) -> str:
        """Return what an expression is known by: `t.k`, `"k"` and `k` are the same column."""
        if self.found is None or node.find(exp.Column) is None:
            return bare(node)
        try:
            return bare(scalar(node, self.found.scope).plain)
        except QueryRefused:
            return f"?{bare(node)}"  # not an expression of rows, so it is not a key

    def _reading(self, question: exp.Select, *clauses: str) -> exp.Select:
        """Return a question that reads these clauses of the SELECT, and what WITH has defined for them."""
        for name in clauses:
            question.set(name, self.whole.args.get(name) and _copied(self.whole.args[name]))
        if self.known:
            question.set("with_", exp.With(expressions=[one.copy() for one in self.known.values()]))
        return question

    def _term(self, term: exp.Expr) -> exp.Expr:
        """Return a term of ORDER BY: by itself, a name is that of a column of the answer first."""
        node = term.this
        shown = isinstance(node, exp.Column) and not node.table and node.name.lower() in map(str.lower, self.names)
        return term if shown else self.over(term, True)

    def over(self, node: exp.Expr, aliases: bool) -> exp.Expr:
        """Return an expression over the columns of the part."""
        if isinstance(node, (exp.Subquery, exp.Query)):
            return node
        if isinstance(node, exp.Window):
            return self._window(node, aliases)
        if isinstance(node, AGGREGATES):
            self.aggregates.setdefault(bare(node), node.copy())
            return exp.column(f"_a{list(self.aggregates).index(bare(node))}")
        if (text := self._text(node)) in self.keys:
            return exp.column(f"_k{list(self.keys).index(text)}")
        if isinstance(node, exp.Column):
            if aliases and not node.table and node.name.lower() in {name.lower() for name in self.names}:
                return node
            raise QueryRefused(
                f"{node.name} is a column of people's rows, which are never listed. Put it in an aggregate such as "
                f"AVG({node.name}), or in GROUP BY if its keys are declared."
            )
        return self._parts(node, aliases)

    def _window(self, window: exp.Expr, aliases: bool) -> exp.Expr:
        """A window function is computed from released values, and so is an aggregate used as one."""
        function = window.this
        window.set("this", self._parts(function, aliases))
        for name, part in list(window.args.items()):
            if name != "this":
                window.set(name, self._part_of(part, aliases))
        return window

    def _parts(self, node: exp.Expr, aliases: bool) -> exp.Expr:
        for name, part in list(node.args.items()):
            node.set(name, self._part_of(part, aliases))
        return node

    def _part_of(self, part: object, aliases: bool) -> object:
        if isinstance(part, list):
            return [self._part_of(one, aliases) for one in part]
        return self.over(part, aliases) if isinstance(part, exp.Expr) else part

    def _part(self) -> int:
        """Return the number of the part that has these keys and aggregates."""
        question = exp.select(*(one.copy() for one in (*self.keys.values(), *self.aggregates.values())))
        question = self._reading(question, "from_", "joins", "where")
        if self.keys:
            question.set("group", exp.Group(expressions=[one.copy() for one in self.keys.values()]))
        if not self.aggregates:
            raise QueryRefused("A question must ask for an aggregate, such as COUNT(*) or AVG(column).")
        query = parse(question.sql("duckdb", comments=False), self.divide.protected)
        self._refuse_unlike_columns(query)
        self.divide.parts.setdefault(query.text, query)
        return list(self.divide.parts).index(query.text)

    def _refuse_unlike_columns(self, query: Query) -> None:
        """Refuse what is not one number by group: a list of quantiles is several columns, and a mode may be a text."""
        if any(node.find(exp.Mode) for node in self.aggregates.values()):
            raise QueryRefused("MODE cannot stand below other SQL. Ask for it by itself.")
        if len(query.columns) != len(self.keys) + len(self.aggregates):
            raise QueryRefused("A list of quantiles cannot stand below other SQL. Write QUANTILE_CONT once for each.")


def _copied(argument: object) -> object:
    if isinstance(argument, list):
        return [_copied(one) for one in argument]
    return argument.copy() if isinstance(argument, exp.Expr) else argument


def _name(item: exp.Expr) -> str:
    node = item.this if isinstance(item, exp.Alias) else item
    plain = isinstance(item, (exp.Alias, exp.Column))
    return item.alias_or_name if plain else str(node.sql("duckdb", comments=False)).lower()


def _numbered(term: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """Return what a number in GROUP BY stands for."""
    if isinstance(term, exp.Literal) and not term.is_string:
        number = int(term.this) if str(term.this).isdigit() else 0
        if not 1 <= number <= len(items):
            raise QueryRefused(f"GROUP BY {term.this} names no column; there are {len(items)}.")
        return items[number - 1]
    return term


def _queries(tree: exp.Expr, without: Iterable[str] = ()) -> list[exp.Expr]:
    """Return the outermost queries below a node, except in some of its clauses."""
    found: list[exp.Expr] = []
    nodes = [node for name, part in tree.args.items() if name not in without for node in _nodes(part)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (exp.Select, exp.SetOperation)):
            found.append(node)
        elif not isinstance(node, exp.With):  # its definitions were divided before
            nodes += list(node.iter_expressions())
    return found


def _nodes(part: object) -> list[exp.Expr]:
    if isinstance(part, list):
        return [node for one in part for node in _nodes(one)]
    return [part] if isinstance(part, exp.Expr) else []


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    """Return the aggregates of a SELECT itself, not those of queries inside it."""
    clauses = [
        *select.expressions,
        *(select.args[name] for name in ("having", "order", "qualify") if select.args.get(name)),
    ]
    return [found for clause in clauses for found in _aggregates_in(clause)]


def _aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, (exp.Subquery, exp.Query)):
        return []
    if isinstance(node, AGGREGATES) and not isinstance(node.parent, exp.Window):
        return [node]
    return [found for part in node.iter_expressions() for found in _aggregates_in(part)]


def _refuse_other_tables(outer: exp.Expr, allowed: set[str]) -> None:
    defined = {one.alias.lower() for one in outer.find_all(exp.CTE)}
    for table in outer.find_all(exp.Table):
        plain = isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("catalog")
        if not plain or table.name.lower() not in allowed | defined:
            raise QueryRefused(
                f"There is no table {shown(table)} here. Above the aggregates, only what they released can be read."
            )

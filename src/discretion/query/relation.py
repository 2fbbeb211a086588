"""FROM, JOIN, WITH and subqueries, flattened: one protected table, its lookups, its filters, and what names mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from sqlglot import exp

from discretion.declaration.table import Lookup, Table
from discretion.errors import QueryRefused, did_you_mean
from discretion.query.expression import predicate, scalar
from discretion.query.gather import gathered
from discretion.query.kind import common
from discretion.query.partner import partnered
from discretion.query.place import placed, start_of
from discretion.query.rowset import Joined, RowSet, parted
from discretion.query.scalar import Scalar, Scope, column, columns_of, listed, only, shown


@dataclass(frozen=True)
class Tables:
    """Says what FROM can name: protected tables, and the subqueries WITH has defined so far."""

    protected: Mapping[str, Table]
    defined: Mapping[str, tuple[exp.Expr, "Tables"]] = field(default_factory=dict)  # each with what it can name
    qualified: bool = False  # write columns as table.column: there is a join


ALLOWED = ("with_", "expressions", "from_", "joins", "where")  # of a subquery
_CLAUSES = {
    "distinct": "SELECT DISTINCT lists values of people's rows. Ask COUNT(*) ... GROUP BY a column with declared keys",
    "qualify": "QUALIFY filters by window functions, which give every row an answer. Use HAVING on aggregates",
    "windows": "Window functions give every row an answer. Ask for an aggregate by group",
    "sample": "Sampling is the mechanism's work, where it pays off in privacy. Ask about the whole table",
    "having": "HAVING in a subquery needs GROUP BY with the person. Use WHERE, or HAVING in the outer query",
    "limit": "LIMIT on people's rows picks some of them. Use it in the outer query, on the answer",
    "offset": "OFFSET on people's rows picks some of them. Use it in the outer query, on the answer",
    "order": "ORDER BY in a subquery has no effect: rows of people have no order. Use it on the answer",
    "into": "SELECT INTO writes a table, and a question cannot write",
    "laterals": "LATERAL repeats rows",
    "pivots": "PIVOT makes columns out of values. Use GROUP BY with declared keys",
}


def relation(select: exp.Select, tables: Tables) -> RowSet:
    """Return where a SELECT reads from, filters included."""
    tables = _define(select, tables)
    source = select.args.get("from_")
    if source is None:
        known = listed(tables.protected) if tables.protected else "none is protected yet"
        raise QueryRefused(f"A question needs FROM and one protected table: {known}.")
    found = _source(source.this, tables)
    for join in select.args.get("joins") or ():
        found = _join(found, join, tables)
    where = select.args.get("where")
    if where is None:
        return found
    return replace(found, filters=(*found.filters, predicate(where.this, found.scope)))


def clauses(select: exp.Select, *allowed: str) -> None:
    """Refuse a SELECT with a clause that is not allowed where it stands."""
    for name, value in select.args.items():
        if value and name not in allowed:
            reason = _CLAUSES.get(name, f"{name.strip('_').upper()} is not known to be safe. Leave it out")
            refusal = QueryRefused(f"{reason}.")
            refusal.start = start_of(
                one for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr)
            )
            raise refusal


def _define(select: exp.Select, tables: Tables) -> Tables:
    block = select.args.get("with_")
    if block is None:
        return tables
    if block.args.get("recursive"):
        raise QueryRefused("WITH RECURSIVE repeats rows. Use WITH for subqueries that only filter or project.")
    only(block, "expressions")
    for definition in block.expressions:
        only(definition, "this", "alias")
        alias = definition.args["alias"]
        only(alias, "this")
        # A definition sees those before it, whatever its name means where it is used.
        tables = replace(tables, defined={**tables.defined, alias.name.lower(): (definition.this, tables)})
    return tables


@placed
def _source(node: exp.Expr, tables: Tables) -> RowSet:
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias")
        return _projected(node.this, _alias(node), tables)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        _no_table(node, tables)
    if node.args.get("db") is not None:
        _no_table(node, tables)
    only(node, "this", "alias")
    name, alias = node.name.lower(), _alias(node) or node.name.lower()
    if name in tables.defined:
        body, known = tables.defined[name]
        return _projected(body, alias, known)
    by_name = {known.lower(): table for known, table in tables.protected.items()}
    if name not in by_name:
        _no_table(node, tables)
    table = by_name[name]
    return RowSet(table=table, scope=Scope({alias: columns_of(table, qualified=tables.qualified)}))


def _no_table(node: exp.Expr, tables: Tables) -> NoReturn:
    named = repr(node.name) if node.name and shown(node).strip('"') == node.name else shown(node)
    if not tables.protected:
        raise QueryRefused(f"There is no protected table {named}: none is protected yet. Begin with `protect`.")
    raise QueryRefused(
        f"There is no protected table {named}; there is {listed(tables.protected)}. FROM takes such "
        "a table, or a subquery that filters or projects one; never a file, a function or VALUES."
        f"{did_you_mean(node.name, tables.protected) if isinstance(node, exp.Table) else ''}"
    )


def _alias(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    only(alias, "this")
    return str(alias.name).lower()


@placed
def _projected(node: exp.Expr, alias: str, tables: Tables) -> RowSet:
    """A subquery as a relation: its columns are expressions over the protected table."""
    if not isinstance(node, exp.Select):
        raise QueryRefused(f"{shown(node)} is not allowed: a subquery may only filter or project one table.")
    groups = ("group", "having") if node.args.get("group") else ()
    clauses(node, *ALLOWED, *groups)
    inner = relation(node, tables)
    if groups:
        return gathered(node, inner, alias)
    columns: dict[str, Scalar] = {}
    for item in node.expressions:
        if isinstance(item, exp.Star):
            only(item)
            for name, found in inner.columns.items():
                _add(columns, name, found)
            continue
        value = item.this if isinstance(item, exp.Alias) else item
        name = item.alias_or_name.lower() if isinstance(item, (exp.Alias, exp.Column)) else ""
        if not name:
            raise QueryRefused(f"{shown(item)} in a subquery needs a name: write {shown(item)} AS name.")
        _add(columns, name, scalar(value, inner.scope))
    return replace(inner, scope=Scope({alias: columns}))


def _add(columns: dict[str, Scalar], name: str, found: Scalar) -> None:
    """Add a column; of two with one name, databases take this one or that one."""
    if name in columns:
        raise QueryRefused(f"Two columns are named {name!r}. Give one of them another name with AS.")
    columns[name] = found


@placed
def _join(found: RowSet, join: exp.Join, tables: Tables) -> RowSet:
    only(join, "this", "on", "using", "side", "kind", "method")
    target = join.this
    lookups = {name.lower(): lookup for name, lookup in found.table.lookups.items()}
    name = target.name.lower() if isinstance(target, exp.Table) else ""
    others = {known.lower(): table for known, table in tables.protected.items()}
    if isinstance(target, exp.Subquery) or name in tables.defined:
        return partnered(found, join, _source(target, tables), _alias(target) or name)
    if name in others and name not in lookups:
        return partnered(found, join, others[name], _alias(target) or name)
    if found.gathered is not None:
        raise QueryRefused(f"Join {shown(target)} inside the subquery, before each person's rows are put together.")
    if name not in lookups:
        raise QueryRefused(
            f"{shown(target)} cannot be joined: rows of people may only meet a lookup table declared for "
            f"{found.table.name} ({listed(lookups)}), on its unique key, or a protected table of the same register, on "
            "the person, so that no row is repeated. Join before protecting, or ask the steward to declare a lookup."
        )
    only(target, "this", "alias")
    way = " ".join(filter(None, (join.method, join.side, join.kind)))
    if way not in ("", "INNER", "LEFT", "LEFT OUTER"):
        raise QueryRefused(f"{way} JOIN is not allowed. Use JOIN or LEFT JOIN on a lookup's key.")
    lookup, alias = lookups[name], _alias(target) or name
    # In a subquery, too: columns of both would be written alike, and taken for one.
    if alias in found.scope.relations or alias in {one.shown for one in found.lookups}:
        raise QueryRefused(f"{alias!r} is joined twice. Give each an alias of its own.")
    inside = f"l{len(found.lookups)}"
    most = found.table.longest_text
    outer = join.side == "LEFT"
    columns = {key.lower(): _public(lookup, key, inside, alias, most, outer) for key in lookup.columns}
    side, further = _protected_side(join, alias, lookup)
    on = scalar(side, found.scope).anywhere
    key = columns[lookup.key.lower()]
    if on.kind != key.kind or on.kind in ("other", "null"):
        raise QueryRefused(f"The join on {alias}.{lookup.key} compares a {on.kind} with a {key.kind}. CAST the first.")
    if join.args.get("using"):
        del columns[lookup.key.lower()]
    joined = Joined(
        name=inside,
        lookup=lookup,
        named=name,
        shown=alias,
        on=on.tame,
        outer=outer,
        shared=common([(on.type, on.reach), (key.type, key.reach)]) if on.kind == "number" else key.type,
    )
    scope = Scope({**found.scope.relations, alias: columns})
    filters = tuple(predicate(one, scope, "ON") for one in further)
    return replace(found, scope=scope, filters=(*found.filters, *filters), lookups=(*found.lookups, joined))


def _public(lookup: Lookup, name: str, inside: str, alias: str, most: int, outer: bool) -> Scalar:
    """A column of a lookup, with its values if the steward confirmed that they are public."""
    found = column(name, lookup.columns[name], inside, alias, most)
    if name not in lookup.keys:
        return found
    values = [one[:most] if isinstance(one, str) and found.type == "VARCHAR" else one for one in lookup.keys[name]]
    # A row that meets none is in the group of NULL.
    return replace(found, values=tuple(dict.fromkeys([*values, *([None] if outer else [])])))


def _protected_side(join: exp.Join, alias: str, lookup: Lookup) -> tuple[exp.Expr, list[exp.Expr]]:
    """Return the expression a lookup's key is compared with, and what else ON says, which WHERE may say as well."""
    using, terms = join.args.get("using"), [] if join.args.get("on") is None else parted(join.args["on"])
    if using and len(using) == 1 and using[0].name.lower() == lookup.key.lower():
        return exp.column(using[0].name), []
    for on in terms if join.side != "LEFT" else terms * (len(terms) == 1):
        for mine, theirs in ((on.this, on.expression), (on.expression, on.this)) if isinstance(on, exp.EQ) else ():
            name = (theirs.table.lower(), theirs.name.lower()) if isinstance(theirs, exp.Column) else ()
            if name == (alias, lookup.key.lower()):
                return mine, [one for one in terms if one is not on]
    raise QueryRefused(
        f"{alias} can only be joined on its unique key, written with its name: ON your_column = {alias}.{lookup.key}. "
        "Other conditions stand in WHERE."
    )

"""GROUP BY: keys whose values are known in public, so that every answer shows all of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, NoReturn

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query import calendar
from discretion.query.aggregation import AGGREGATES
from discretion.query.expression import scalar
from discretion.query.kind import BIGINT, DOUBLE, HUGEINT, moment, single, spelled
from discretion.query.place import placed
from discretion.query.reference import computed
from discretion.query.released import evaluate
from discretion.query.rowset import Key, RowSet
from discretion.query.scalar import (
    ROW,
    Scalar,
    as_type,
    between,
    column,
    columns_of,
    listed,
    nodes,
    only,
    shown,
    unbracketed,
)

MOST_STEPS = 100_000  # that are tried to find the values of one key
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")  # each has whole ones of the next
_OF_DAYS = ("WEEK", "DOY", "DOW", "ISODOW", "DAYOFYEAR", "DAYOFWEEK", "DAYOFWEEKISO")


def keys(select: exp.Select, found: RowSet) -> tuple[Key, ...]:
    """The keys of a SELECT, each once."""
    return numbered((key(term, found) for term in terms(select, found)), "k")


def numbered(found: Iterable[Key], letter: str) -> tuple[Key, ...]:
    """Return keys, each once, with names such as k0, k1."""
    distinct = {bare(key.plain): key for key in found}
    return tuple(replace(key, name=f"{letter}{i}") for i, key in enumerate(distinct.values()))


def bare(node: exp.Expr) -> str:
    """A row expression's text without outer brackets, to compare by."""
    return unbracketed(node).sql("duckdb", comments=False, normalize=True)


def terms(select: exp.Select, found: RowSet) -> list[exp.Expr]:
    """Return the terms of GROUP BY as the expressions that they stand for."""
    group = select.args.get("group")
    if group is None:
        return []
    refuse_several(group)
    only(group, "expressions", "all")
    items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    if group.args.get("all"):
        return [item for item in items if item.find(exp.AggFunc, *AGGREGATES) is None]
    aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    return [_meant(node, items, aliases, found) for node in group.expressions]


def refuse_several(group: exp.Expr) -> None:
    """Refuse a GROUP BY that groups in several ways."""
    if any(group.args.get(name) for name in ("cube", "rollup", "grouping_sets", "totals")):
        raise QueryRefused("CUBE, ROLLUP and GROUPING SETS ask several questions. Ask them one by one.")


def _meant(node: exp.Expr, items: Sequence[exp.Expr], aliases: Mapping[str, exp.Expr], found: RowSet) -> exp.Expr:
    """Return what a GROUP BY term stands for: a column, the alias or the number of a selected expression, or itself."""
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this) if str(node.this).isdigit() else 0
        if not 1 <= number <= len(items):
            raise QueryRefused(f"GROUP BY {node.this} names no column; there are {len(items)}.")
        return items[number - 1]
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
    known = any(name in columns for columns in found.scope.relations.values())
    return aliases[name] if name in aliases and not known else node


@placed
def key(node: exp.Expr, found: RowSet) -> Key:
    """Return the key that an expression is, or refuse it."""
    if isinstance(node, (exp.Cube, exp.Rollup, exp.GroupingSets)):
        raise QueryRefused("CUBE, ROLLUP and GROUPING SETS ask several questions. Ask them one by one.")
    value = scalar(node, found.scope)
    if found.table.person in value.columns:
        raise QueryRefused(
            f"GROUP BY {shown(node)} would answer about single people. Group by declared keys, or put each person's "
            f"rows together in a subquery: SELECT AVG(n) FROM (SELECT {found.table.person}, COUNT(*) AS n FROM ... "
            f"GROUP BY {found.table.person})."
        )
    sql_type = _typed(value)
    values, image = value.domain(), _image(value, found)
    spanned = _spanned(value, found) if value.kind != "boolean" else None  # a condition sees dates outside, too
    listed_periods = periods(value, spanned) if spanned is not None else None
    if listed_periods is not None:
        values = listed_periods
    elif values is None or (image and not _chooses(value)):
        values = image
    elif image and None in image and None not in values:
        values = (*values, None)
    if not values:
        _refuse_unknown(node, value, found.table)
    if value.type == HUGEINT and any(isinstance(one, int) and abs(one) > 2**53 for one in values):
        sql_type = BIGINT  # a double would not tell them apart
        if None in values:  # rows beyond 64 bits would be counted with it
            raise QueryRefused(
                f"The keys declared for {shown(node)} are large numbers and NULL, which cannot be told from numbers "
                "beyond 64 bits. Ask the steward to leave NULL out."
            )
    if any(isinstance(one, int) and abs(one) >= 2**63 for one in values):
        raise QueryRefused(f"A key declared for {shown(node)} is a whole number beyond 64 bits. Ask the steward.")
    if not all(_fits(one, sql_type) for one in values):
        raise QueryRefused(f"The keys declared for {shown(node)} are not all of its type {sql_type}. Ask the steward.")
    typed = value.tame.to(sql_type)
    if listed_periods is not None and spanned is not None and spanned.span is not None:
        # A date outside the bounds is in no group, also if it lies in the same month as one within.
        typed = replace(typed, total=between(typed.total, spanned.total, *spanned.span, spanned.type))
    own = "FLOAT" if value.single else sql_type  # the nearest 32-bit number of a declared 0.1 is what rows hold
    return Key(
        name="",
        plain=value.plain,
        expression=typed.total,
        sql_type=own,
        values=values,
        scalar=typed,
        stored=value.type,
    )


def _spanned(key: Scalar, found: RowSet) -> Scalar | None:
    """The column with declared bounds of dates that a key is a function of."""
    (name,) = key.columns if len(key.columns) == 1 else ("",)
    if name in found.table.spans and name not in found.table.keys:
        return columns_of(found.table)[name.lower()] if found.gathered is None else found.scope.find(exp.column(name))
    leaves = {one.name for one in key.plain.find_all(exp.Column)} if found.gathered and not key.columns else ()
    if len(leaves) != 1:
        return None
    chosen = found.scope.find(exp.column(*leaves))  # MIN(day) of a person: it is one of the dates of that column
    return chosen if chosen.span is not None and isinstance(chosen.total, exp.Column) else None


def _refuse_unknown(node: exp.Expr, key: Scalar, table: Table) -> NoReturn:
    """Say what to declare or to write, so that the values of a key are public."""
    needs = f"GROUP BY {shown(node)} needs values that are known in public, because which values occur is private. "
    kinds = {name: table.columns.get(name, "").upper() for name in key.columns}
    times = sorted(name for name, kind in kinds.items() if kind.startswith(("DATE", "TIMESTAMP")))
    if times and times[0] in table.spans:
        raise QueryRefused(f"{needs}Group by periods of {times[0]}, such as DATE_TRUNC('month', {times[0]}).")
    if times:
        raise QueryRefused(
            f"{needs}Ask the steward to declare the first and last date: bounds={{{times[0]!r}: ('2020-01-01', "
            f"'2024-12-31')}}, or group by MONTH({times[0]})."
        )
    if key.kind == "number":
        low, high = (float(key.low), float(key.high)) if key.low is not None and key.high is not None else (0, 100)
        raise QueryRefused(
            f"{needs}Group by steps, such as WIDTH_BUCKET({shown(node)}, {low:.12g}, {high:.12g}, 10), or by a CASE; "
            f"or ask the steward to declare keys (declared: {listed(table.keys)})."
        )
    raise QueryRefused(
        f"{needs}Ask the steward to declare keys (declared: {listed(table.keys)}), or write CASE WHEN ... THEN 'value' "
        "ELSE 'other' END."
    )


def _chooses(key: Scalar) -> bool:
    """Tell whether rows with values that are not declared have a place among the values of a key: ELSE 'other'."""
    return key.kind == "boolean" or key.plain.find(exp.Case, exp.If, exp.Coalesce) is not None


def _image(key: Scalar, found: RowSet) -> tuple[Any, ...] | None:
    """The values of an expression over one column whose values are known: what the database makes of these."""
    leaves = {(one.table, one.name) for one in nodes(key.total) if isinstance(one, exp.Column)}
    ((relation, name),) = leaves if len(leaves) == 1 else (("", ""),)
    known = _known(name, found) if relation == ROW else None
    if known is None or (isinstance(unbracketed(key.plain), exp.Column) and key.domain() is not None):
        return None
    given, sql_type = known
    if not all(_fits(value, _typed(column(name, sql_type, ROW, None, 0))) for value in given):
        return None
    exact = key.type in (BIGINT, HUGEINT) or key.kind != "number"
    values = computed((key.tame if exact else key.tame.to(DOUBLE)).total, sql_type, given)
    if values is None:
        return None
    if key.single:
        values = tuple(one if one is None else spelled(one) for one in values)
    whole = key.kind == "number" and key.type != DOUBLE  # NULL stays, where a declared key gives it
    return tuple(dict.fromkeys(int(one) if whole and one is not None and one == int(one) else one for one in values))


def _known(name: str, found: RowSet) -> tuple[tuple[Any, ...], str] | None:
    """The values of a column of the rows that are known in public, and its type."""
    if found.gathered is not None:
        return next((_held(one) for one in found.gathered.keys if one.name == name), None)
    if name not in found.table.keys:
        return None
    sql_type = found.table.columns[name].upper()
    return found.table.keys[name], "VARCHAR" if sql_type.startswith("ENUM") else sql_type


def _held(key: Key) -> tuple[tuple[Any, ...], str]:
    """Return the values of a key as rows that were put together hold them, and their type."""
    if key.sql_type != "FLOAT":
        return key.values, key.sql_type
    return tuple(one if one is None else single(one) for one in key.values), DOUBLE


def _typed(value: Scalar) -> str:
    """The type that values have as keys."""
    return DOUBLE if value.kind == "number" and value.type != BIGINT else value.type


def _fits(value: Any, sql_type: str) -> bool:
    if value is None:
        return True
    if sql_type in ("DATE", "TIMESTAMP"):
        found = moment(value) if isinstance(value, str) else value
        return isinstance(found, date) and (sql_type == "TIMESTAMP" or not isinstance(found, datetime))
    if sql_type in ("BIGINT", "DOUBLE"):
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        return whole or (sql_type == "DOUBLE" and isinstance(value, float))
    return isinstance(value, {"VARCHAR": str, "BOOLEAN": bool}.get(sql_type, ()))


_STEPS = {"QUARTER": "MONTH", **dict.fromkeys(_OF_DAYS, "DAY")}


def periods(key: Scalar, column: Scalar) -> tuple[Any, ...] | None:
    """Return every value of `key`, a function of one column with declared bounds; None if they cannot be listed.

    The key must look at the column only through units of time, such as MONTH(day). It is then constant within the
    smallest of these units, so one moment of each is tried.
    """
    unit = _smallest(key.plain, column)
    if column.span is None or unit is None:
        return None
    plain, name = _dates_as_times(key.plain), column.plain.name
    values: dict[Any, None] = {}
    try:
        for moment in _steps(*column.span, unit):
            values[as_type(evaluate(plain, {name: as_type(moment, column.type)}), key.type)] = None
            if len(values) > MOST_STEPS:
                return None
    except (QueryRefused, TypeError, KeyError, OverflowError, AttributeError):
        return None
    return tuple(values) if len(values) else None


def _smallest(plain: exp.Expr, column: Scalar) -> str | None:
    """Return the smallest unit of time through which an expression looks at a column; None if it sees more."""
    found = []
    for node in [plain] if isinstance(plain, exp.Column) else plain.find_all(exp.Column):
        user = node.parent
        while isinstance(user, exp.Paren):
            user = user.parent
        unit = _unit(user) or ("DAY" if column.type == "DATE" else "")
        if not unit:
            return None
        found.append(_STEPS.get(unit, unit))
    return max(found, key=_UNITS.index) if found else None


def _unit(user: exp.Expr | None) -> str:
    """Return the unit of time that a function looks at."""
    if isinstance(user, exp.Extract):
        return str(user.this.name).upper()
    if isinstance(user, (exp.TimestampTrunc, exp.DateTrunc)):
        return str(user.args["unit"].name).upper()
    if isinstance(user, exp.DateBin):
        return str(user.this.args["unit"].name).upper()
    return "DAY" if isinstance(user, exp.Cast) and user.to.this == exp.DType.DATE else ""


def _dates_as_times(plain: exp.Expr) -> exp.Expr:
    """CAST(at AS DATE) as DATE_TRUNC('day', at)."""

    def truncated(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE:
            return exp.TimestampTrunc(this=node.this, unit=exp.var("DAY"))
        return node

    return plain.copy().transform(truncated)


def _steps(first: date, last: date, unit: str) -> list[datetime]:
    """Return one moment within bounds of every unit, at most MOST_STEPS."""
    moment, end = calendar.timed(first), calendar.timed(last)
    moments: list[datetime] = []
    while moment <= end:
        if len(moments) == MOST_STEPS:
            raise OverflowError
        moments.append(moment)
        if calendar.begun(moment, unit) == calendar.begun(end, unit):
            break
        moment = calendar.following(moment, unit)
    return moments

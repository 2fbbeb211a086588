"""Inline: a join of a tiny table of pairs becomes a CASE, which needs no job of its own and no look-up by row.

Where all joins of the last step are written out, its rows are as few as the pairs; the engine adds them up itself, so
that no rows are moved a second time.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discretion.engines.column import not_null, number
from discretion.engines.slot import SLOTS
from discretion.engines.spark.total import Spread
from discretion.engines.statement import FEW

MOST_SPREAD = 8  # slots that are counted one by one
_TYPES = (pa.string(), pa.int64(), pa.float64(), pa.bool_())


def inlined(select: exp.Expr, tables: Mapping[str, Any]) -> exp.Expr:
    """Return a statement, using it up, in which tiny tables of Arrow are written out where they are joined."""
    for join in reversed(list(select.find_all(exp.Join))):  # inner ones first
        table = tables.get(join.this.name) if isinstance(join.this, exp.Table) else None
        if isinstance(join.parent, exp.Select) and isinstance(table, pa.Table) and _is_pairs(join, table):
            _write_out(join.parent, join, table)
    for part in [select] if isinstance(select, exp.Select) else [select.this, select.expression]:
        if not part.args.get("joins"):
            _leave_sums(part)
            _spread(part)
    return select


def _is_pairs(join: exp.Join, table: pa.Table) -> bool:
    """Tell whether a join looks up the first column of a tiny table to get the second."""
    on, kind = join.args.get("on"), (join.side, join.kind)
    if not isinstance(on, exp.NullSafeEQ) or kind not in (("", ""), ("", "INNER"), ("LEFT", "")):
        return False
    if table.num_columns != 2 or not 0 < table.num_rows <= FEW or not isinstance(on.expression, exp.Column):
        return False
    known = table.schema.field(0).type in _TYPES and table.schema.field(1).type == pa.int64()
    return known and on.expression.table == join.this.alias_or_name and on.expression.name == table.column_names[0]


def _write_out(parent: exp.Select, join: exp.Join, table: pa.Table) -> None:
    on, name = join.args["on"], join.this.alias_or_name
    found, second = table.to_pydict(), table.column_names[1]
    if pa.types.is_string(table.schema.field(0).type) and (not join.side or not _is_shown(on.this, parent, join)):
        _leave_uncut(parent, on.this, max(len(one or "") for one in found[table.column_names[0]]))
    pairs = zip(found[table.column_names[0]], found[second], strict=True)
    same = [(exp.NullSafeEQ(this=on.this.copy(), expression=_literal(one)), number(other)) for one, other in pairs]
    value = exp.Case(ifs=[exp.If(this=match, true=other) for match, other in same])
    parent.args["joins"].remove(join)
    for column in list(parent.find_all(exp.Column)):
        if column.table == name and column.name == second:
            shown = column.parent is parent and column.arg_key == "expressions"
            written = exp.paren(value.copy())
            column.replace(exp.alias_(written, second) if shown else written)
    if not join.side:
        parent.where(not_null(exp.paren(value)), copy=False)


def _is_shown(value: exp.Expr, parent: exp.Select, join: exp.Join) -> bool:
    """Tell whether a SELECT uses a value for more than this join."""
    used = {id(column) for column in join.find_all(exp.Column)}
    return any(column == value and id(column) not in used for column in parent.find_all(exp.Column))


def _leave_uncut(select: exp.Select, value: exp.Expr, longest: int) -> None:
    """Leave a text as long as it is if it is only compared with shorter ones than it would be cut to.

    Spark would cut it again for every comparison. A text that is cut has the greatest length: it equals none of them.
    """
    source = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(value, exp.Column) or not isinstance(source, exp.Subquery):
        return
    inner = source.this
    if value.table not in ("", source.alias) or not isinstance(inner, exp.Select):
        return
    for shown in inner.expressions:
        if shown.alias_or_name == value.name:
            own = shown.unalias()
            if (whole := _cut_from(own, longest)) is not None:
                own.replace(whole)
            else:
                _leave_uncut(inner, own, longest)


def _cut_from(value: exp.Expr, longest: int) -> exp.Expr | None:
    """Return the text that an expression cuts to more characters than `longest`; None if it does something else."""
    if not isinstance(value, exp.Case) or not isinstance(left := value.args.get("default"), exp.Left):
        return None
    (first, *others), whole = value.args["ifs"], left.this
    size = exp.Anonymous(this="STRLEN", expressions=[whole.copy()])
    is_short = first.this == exp.LTE(this=size, expression=left.expression.copy())
    cuts = is_short and first.args["true"] == whole and not others and int(left.expression.this) > longest
    return whole if cuts else None


def _leave_sums(select: exp.Select) -> None:
    """Leave the sums over what is counted to whoever reads the rows."""
    source = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(source, exp.Subquery) or source.alias != "counted":
        return
    for total in [total for shown in select.expressions for total in shown.find_all(exp.Sum)]:
        total.replace(total.this)
    select.set("group", None)


def _spread(select: exp.Select) -> None:
    """Count a few slots each by itself, if that is all that is counted: a sum with a condition needs no look-up."""
    source = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(source, exp.Subquery):
        return
    counted = source.this
    if not 0 < counted.meta_get(SLOTS, 0) <= MOST_SPREAD or list(counted.find_all(exp.Distinct)):
        return
    slots, totals = range(counted.meta_get(SLOTS)), counted.expressions[1:]
    wide, rows = exp.select(), []
    for slot in slots:
        mine = exp.Where(this=exp.EQ(this=exp.column("slot"), expression=number(slot)))
        names = [f"{total.alias}_{slot}" for total in totals]
        for total, name in zip(totals, names, strict=True):
            some = exp.Filter(this=total.unalias().copy(), expression=mine.copy())
            wide = wide.select(exp.alias_(some, name), copy=False)
        rows.append(exp.Tuple(expressions=[number(slot), *map(exp.column, names)]))
    wide = wide.from_(counted.args["from_"].this, copy=False)
    spread = Spread(rows=rows, names=[exp.column("slot"), *(exp.column(total.alias) for total in totals)])
    source.set("this", exp.Select(expressions=[spread]).from_(wide.subquery("wide", copy=False), copy=False))


def _literal(value: Any) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    return exp.Literal.string(value) if isinstance(value, str) else number(value)

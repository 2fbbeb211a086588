"""Containment: a question that fails after its charge stops its register, and tells nothing else."""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import sqlglot
from sqlglot import exp

from discretion.errors import LedgerCorrupt, LedgerFailed, SourceChanged, TableStopped
from discretion.ledger import Ledger
from discretion.ledger.clock import Clock
from discretion.ledger.spend import CHANGED
from discretion.query import Query

logger = logging.getLogger(__name__)
T = TypeVar("T")

# None of these can depend on a row: they are told as they are, and stop nothing.
_HARMLESS = (SourceChanged, TableStopped, LedgerFailed, LedgerCorrupt)


def contained(
    work: Callable[[], T],
    *,
    ledger: Ledger,
    register: str,
    charge: str,
    shape: str,
    changed: Callable[[], bool],
    clock: Clock,
) -> T:
    """Return what `work` returns, or stop `register` if it fails; every failure reads the same and comes on a tick.

    A row may have caused it, so that it failed is an answer, which nobody paid for. Cancelling and leaving the program
    (KeyboardInterrupt, SystemExit) stop nothing, and neither does a source that `changed` while it was read.
    """
    try:
        return work()
    except _HARMLESS:
        clock.wait()
        raise
    except Exception as failure:
        logger.error("A question failed after its charge %s: %s", charge, type(failure).__name__)
    # Out here, what is raised does not carry the failure, whose text and frames may hold private values.
    has_changed = changed()
    clock.wait()
    if has_changed:
        raise SourceChanged(CHANGED)
    ledger.stop(register, charge=charge, shape=shape)
    raise TableStopped(TableStopped.sentence)


def shape_of(query: Query) -> str:
    """Return the form of a question: its canonical text without literals and names that the analyst chose.

    It is one line, because a statement with several parts has a line for each.
    """
    people = frozenset((one.name.lower(), one.person.lower()) for one in query.tables)
    return " ".join(_shape(query.text, people).split())


@lru_cache(maxsize=256)
def _shape(text: str, people: frozenset[tuple[str, str]]) -> str:
    tree = sqlglot.parse_one(text, dialect="duckdb")
    tree.set("expressions", [one.this if isinstance(one, exp.Alias) else one for one in tree.expressions])
    _name_lookups(tree)
    for subquery in list(tree.find_all(exp.Subquery)):
        _number_columns(subquery, people)
    return str(tree.transform(_without_literals).sql("duckdb", comments=False))


def _name_lookups(tree: exp.Expr) -> None:
    """Call lookups by their own names, and not by those that the analyst chose."""
    names: dict[str, str] = {}
    for table in tree.find_all(exp.Table):
        if table.alias:
            again = sum(one.rstrip("+") == table.name for one in names.values())
            names[table.alias] = table.name + "+" * again
            table.set("alias", exp.TableAlias(this=exp.to_identifier(names[table.alias])))
    for column in tree.find_all(exp.Column):
        if column.table in names:
            column.set("table", exp.to_identifier(names[column.table]))


def _number_columns(subquery: exp.Subquery, people: frozenset[tuple[str, str]]) -> None:
    """Call the columns of a subquery by their numbers, inside it and where it is read."""
    inner, outer, relation = subquery.this, subquery.parent_select, subquery.alias
    numbers = {one.alias.lower(): f"column_{place}" for place, one in enumerate(inner.expressions)}
    for one in inner.expressions:
        one.set("alias", exp.to_identifier(numbers[one.alias.lower()]))
    for column in list(outer.find_all(exp.Column)) if outer is not None else ():
        # A joined subquery has the name of its table, and the person in it the name that the table gives.
        own = column.parent_select is outer and column.table == ("" if relation == "gathered" else relation)
        if own and (column.table.lower(), column.name.lower()) not in people:
            column.set("this", exp.to_identifier(numbers.get(column.name.lower(), column.name)))


def _without_literals(node: exp.Expr) -> exp.Expr:
    if isinstance(node, (exp.Literal, exp.Boolean)) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    ):
        return exp.Placeholder()
    if isinstance(node, exp.In) and all(one.find(exp.Column) is None for one in node.expressions):
        return exp.In(this=node.this, expressions=[exp.Placeholder()])  # a list of any length
    return node

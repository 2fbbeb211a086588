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
    return " ".join(_shape(query.text).split())


@lru_cache(maxsize=256)
def _shape(text: str) -> str:
    tree = sqlglot.parse_one(text, dialect="duckdb")
    tree.set("expressions", [one.this if isinstance(one, exp.Alias) else one for one in tree.expressions])
    return str(tree.transform(_without_literals).sql("duckdb", comments=False))


def _without_literals(node: exp.Expr) -> exp.Expr:
    if isinstance(node, (exp.Literal, exp.Boolean)) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    ):
        return exp.Placeholder()
    if isinstance(node, exp.In) and all(isinstance(one, exp.Literal) for one in node.expressions):
        return exp.In(this=node.this, expressions=[exp.Placeholder()])  # a list of any length
    return node

"""Dialect: how a database writes each operation so that it has an answer, or NULL, for every row."""

from dataclasses import dataclass

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import DialectType
from sqlglot.errors import UnsupportedError

from discretion.errors import QueryRefused
from discretion.query.function import FUNCTIONS
from discretion.query.scalar import nodes

# What statements are made of besides the operations that a question may have.
_BUILT = frozenset(
    {
        *(exp.Case, exp.If, exp.Try, exp.Count, exp.Sum, exp.Min, exp.Max, exp.AnyValue),
        *(exp.RowNumber, exp.SHA2, exp.StrPosition),
    }
)
_WRITTEN_OUT = frozenset({exp.WidthBucket})  # as other operations, so that it is the same in every database
OPERATIONS: frozenset[type[exp.Expr]] = (frozenset(FUNCTIONS) - _WRITTEN_OUT) | _BUILT
NAMED = frozenset(
    {"ISFINITE", "STRLEN", "HASH", "GROUPING", "ROW", "STRUCT_EXTRACT"}
)  # functions that sqlglot has no node for


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """List the operations that a database has a total form for; `language` is the sqlglot dialect that writes them."""

    language: DialectType
    operations: frozenset[type[exp.Expr]] = OPERATIONS
    named: frozenset[str] = NAMED

    def text(self, tree: exp.Expr) -> str:
        """Return a statement as the database reads it, using up the tree; refuse operations without a total form."""
        for node in nodes(tree):
            if isinstance(node, exp.Func) and not self._knows(node):
                raise QueryRefused(f"This database has no safe form of {_name(node)}. Leave it out.")
        try:
            return tree.sql(self.language, unsupported_level=ErrorLevel.RAISE, copy=False)
        except UnsupportedError as failure:
            raise QueryRefused(f"This database cannot compute the question: {failure}.") from None

    def _knows(self, node: exp.Expr) -> bool:
        return _name(node) in self.named if isinstance(node, exp.Anonymous) else type(node) in self.operations


def _name(node: exp.Expr) -> str:
    return (node.name if isinstance(node, exp.Anonymous) else node.key).upper()

"""Arithmetic on values that are already public: released aggregates, declared keys and constants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query.expression import refuse, scalar
from discretion.query.function import FUNCTIONS
from discretion.query.kind import DOUBLE
from discretion.query.scalar import Scalar, Scope, shown

Environment = Mapping[str, Any]  # a key's name, or the number of a released aggregate -> its value


@dataclass(frozen=True)
class _Released(Scope):
    """Says what stands in an answer: keys and released numbers, by what the analyst calls them."""

    known: Mapping[str, Scalar] = field(default_factory=dict)

    def find(self, column: exp.Column) -> Scalar:
        """The type of a key or of a released number."""
        return self.known[column.name]


def typed(node: exp.Expr, aggregates: Sequence[exp.Expr], keys: Mapping[str, Scalar]) -> Scalar:
    """The type of an expression over released values, by the rules of row expressions; QueryRefused if it has none."""
    known: dict[str, Scalar] = {}

    def named(part: exp.Expr) -> exp.Expr:
        """Return what the analyst wrote, as one name: messages quote it."""
        if not isinstance(part, (exp.Placeholder, exp.Column)):
            return part
        released = isinstance(part, exp.Placeholder)
        name = (aggregates[int(part.name)] if released else keys[part.name].plain).sql("duckdb")
        column = exp.column(exp.Identifier(this=name, quoted=False))
        known[name] = (
            Scalar(plain=column, total=column, type=DOUBLE) if released else replace(keys[part.name], plain=column)
        )
        return column

    readable = node.copy().transform(named)
    for part in readable.walk():
        row = FUNCTIONS.get(type(part))
        if row is not None and row.value is None:
            raise QueryRefused(
                f"{shown(part)} cannot be computed from released values. Use arithmetic, comparisons, CASE, COALESCE, "
                "ROUND, LEAST, GREATEST, UPPER or LOWER."
            )
    return scalar(readable, _Released(known=known))


def evaluate(node: exp.Expr, environment: Environment) -> Any:
    """The value of an expression whose types were checked; columns are keys and placeholders released aggregates."""
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else int(node.this) if str(node.this).isdigit() else float(node.this)
    if isinstance(node, (exp.Boolean, exp.Null)):
        return bool(node.this) if isinstance(node, exp.Boolean) else None
    if isinstance(node, (exp.Column, exp.Placeholder)):
        return environment[node.name]
    if isinstance(node, exp.Paren):
        return evaluate(node.this, environment)
    if isinstance(node, exp.Case):
        return _case(node, environment)
    row = FUNCTIONS.get(type(node))
    if row is None:
        refuse(node)
    found = row.of(node, [evaluate(part, environment) for name in row.operands for part in _parts(node.args.get(name))])
    # An answer is whole numbers, doubles, texts and dates.
    return (int(found) if found.denominator == 1 else float(found)) if isinstance(found, Fraction) else found


def _parts(argument: Any) -> list[exp.Expr]:
    return argument if isinstance(argument, list) else [argument]


def _case(node: exp.Case, environment: Environment) -> Any:
    subject = None if node.this is None else evaluate(node.this, environment)
    for branch in node.args["ifs"]:
        test = evaluate(branch.this, environment)
        if test is True if node.this is None else (subject is not None and test == subject):
            return evaluate(branch.args["true"], environment)
    default = node.args.get("default")
    return None if default is None else evaluate(default, environment)

"""The allow-list of row expressions: which operations may be in a query, and which parts of each are operands."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.sql import operation
from discretion.sql.operation import Operands
from discretion.sql.scalar import Scalar, Scope, only, shown

Rule = tuple[Callable[[exp.Expr, Operands], Scalar], tuple[str, ...], tuple[str, ...]]  # rule, operands, fixed parts

_ONE, _TWO = ("this",), ("this", "expression")
RULES: dict[type[exp.Expr], Rule] = {
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        (operation.comparison, _TWO, ()),
    ),
    exp.Between: (operation.comparison, ("this", "low", "high"), ()),
    exp.In: (operation.comparison, ("this", "expressions"), ()),
    exp.Is: (operation.is_null, _ONE, ("expression",)),
    **dict.fromkeys((exp.Like, exp.ILike), (operation.like, _TWO, ("negate",))),
    **dict.fromkeys((exp.And, exp.Or), (operation.logic, _TWO, ())),
    exp.Not: (operation.logic, _ONE, ()),
    **dict.fromkeys(
        (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow), (operation.arithmetic, _TWO, ())
    ),
    **dict.fromkeys((exp.Neg, exp.Abs, exp.Sign, exp.Sqrt, exp.Ln, exp.Exp), (operation.real, _ONE, ())),
    **dict.fromkeys((exp.Floor, exp.Ceil, exp.Round, exp.Trunc), (operation.real, _ONE, ("decimals",))),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length), (operation.texts, _ONE, ())),
    exp.Trim: (operation.texts, _ONE, ("position",)),
    **dict.fromkeys((exp.StartsWith, exp.EndsWith, exp.Contains, exp.DPipe), (operation.texts, _TWO, ())),
    exp.Concat: (operation.texts, ("expressions",), ()),
    exp.Substring: (operation.texts, _ONE, ("start", "length")),
    **dict.fromkeys((exp.Left, exp.Right), (operation.texts, _ONE, ("expression",))),
    exp.Extract: (operation.date_part, ("expression",), ("this",)),
    exp.TimestampTrunc: (operation.date_arithmetic, _ONE, ("unit",)),
    exp.DateTrunc: (operation.date_arithmetic, _ONE, ("unit",)),
    exp.DateDiff: (operation.date_arithmetic, _TWO, ("unit",)),
    **dict.fromkeys((exp.Cast, exp.TryCast), (operation.cast, _ONE, ("to",))),
    **dict.fromkeys((exp.Coalesce, exp.Least, exp.Greatest), (operation.choice, ("this", "expressions"), ())),
    exp.Nullif: (operation.choice, _TWO, ()),
}
_NAMED_PARTS: dict[type[exp.Expr], str] = {
    **{getattr(exp, name.capitalize()): name for name in operation.UNITS},
    exp.WeekOfYear: "WEEK",
    exp.DayOfYear: "DOY",
    exp.DayOfWeek: "DOW",
    exp.DayOfWeekIso: "ISODOW",
}
_REASONS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Window, exp.WindowSpec), "a window function gives every row an answer. Ask for an aggregate by group."),
    (
        (exp.Subquery, exp.Select, exp.Exists, exp.SetOperation),
        "a subquery inside an expression would read people's rows without paying. Ask for its value in a query of its "
        "own, then write the released number here.",
    ),
    ((exp.AggFunc,), "it is an aggregate. Aggregates stand in SELECT, HAVING or ORDER BY, and not inside each other."),
    (
        (exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo, exp.Glob, exp.Escape),
        "patterns other than LIKE and ILIKE differ between engines. Write LIKE, STARTS_WITH, ENDS_WITH or CONTAINS.",
    ),
    (
        (exp.Rand, exp.Uuid, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp),
        "the same question must mean the same tomorrow. Write the value out, such as DATE '2024-12-31'.",
    ),
    ((exp.Placeholder, exp.Parameter), "parameters are filled in before a query is sent. Write the value out."),
    (
        (exp.Star, exp.Columns),
        "a release has no rows to list. Name keys and aggregates such as COUNT(*) or AVG(column).",
    ),
    ((exp.Interval,), "an interval can only be added to or subtracted from a date."),
)


def scalar(node: exp.Expr | None, scope: Scope) -> Scalar:
    """`node` as a row expression, or QueryRefused with what to write instead."""
    if isinstance(node, exp.Column):
        return scope.find(node)
    if isinstance(node, exp.Paren):
        inner = scalar(node.this, scope)
        return replace(inner, plain=exp.Paren(this=inner.plain.copy()))
    if isinstance(node, (exp.Literal, exp.Boolean, exp.Null)):
        return _constant(node)
    if isinstance(node, (exp.Case, exp.If)):
        return _case(node, scope)
    if isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.expression, exp.Interval):
        return operation.shifted(node, {"this": scalar(node.this, scope)})
    if node is None:
        raise QueryRefused("An operation in this query lacks an operand.")
    node = _extract(node)
    if type(node) not in RULES:
        refuse(node)
    rule, operands, fixed = RULES[type(node)]
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        refuse(node.args["query"])
    only(node, *operands, *fixed)
    return rule(node, {name: _operand(node.args.get(name), scope) for name in operands})


def predicate(node: exp.Expr, scope: Scope, place: str = "WHERE") -> Scalar:
    """A row expression that is true or not."""
    condition = scalar(node, scope)
    if condition.kind != "boolean":
        raise QueryRefused(f"{place} needs a condition, got {shown(node)}, which is a {condition.kind}.")
    return condition


def refuse(node: exp.Expr) -> NoReturn:
    """Say which construct is not allowed, why, and what to write instead."""
    for kinds, reason in _REASONS:
        if isinstance(node, kinds):
            raise QueryRefused(f"{shown(node)} is not allowed: {reason}")
    raise QueryRefused(
        f"{shown(node)} is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, "
        "LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md."
    )


def _operand(part: exp.Expr | list[exp.Expr] | None, scope: Scope) -> Scalar | list[Scalar]:
    return [scalar(item, scope) for item in part] if isinstance(part, list) else scalar(part, scope)


def _constant(node: exp.Expr) -> Scalar:
    if isinstance(node, exp.Null):
        return Scalar(plain=node, total=node, kind="null", values=())
    if isinstance(node, exp.Boolean):
        return Scalar(plain=node, total=node, kind="boolean", values=(bool(node.this),))
    text = str(node.this)
    if node.is_string:
        return Scalar(plain=node, total=node, kind="text", values=(text,))
    if len(text) > 40 or len(text.lower().partition("e")[2]) > 3 or not 0 <= Fraction(text) < 10**36:
        raise QueryRefused(f"The number {text[:40]} is too large. Write one below 10^36.")
    value, whole = Fraction(text), text.isdigit()
    return Scalar(
        plain=node,
        total=node,
        kind="number",
        storage="integer" if whole and value < 2**63 else "wide",
        whole=whole,
        low=value,
        high=value,
        values=(int(value) if whole else float(value),),
    )


def _extract(node: exp.Expr) -> exp.Expr:
    """MONTH(day) and DATE_PART('month', day) as EXTRACT(MONTH FROM day)."""
    if type(node) in _NAMED_PARTS:
        only(node, "this")
        return exp.Extract(this=exp.var(_NAMED_PARTS[type(node)]), expression=node.this.copy())
    if isinstance(node, exp.Anonymous) and node.name.lower() == "date_part" and len(node.expressions) == 2:
        return exp.Extract(this=exp.var(node.expressions[0].name), expression=node.expressions[1].copy())
    return node


def _case(node: exp.Expr, scope: Scope) -> Scalar:
    """CASE and IF: conditions, and results of one kind."""
    branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    subject = node.this if isinstance(node, exp.Case) else None
    tests = [b.this if subject is None else exp.EQ(this=subject.copy(), expression=b.this.copy()) for b in branches]
    conditions = [predicate(test, scope, "CASE") for test in tests]
    given = [branch.args["true"] for branch in branches] + ([default] if default is not None else [])
    results = [part.tame for part in operation.alike(node, [scalar(part, scope) for part in given])]

    def over(side: Callable[[Scalar], exp.Expr]) -> exp.Case:
        pairs = zip(conditions, results, strict=False)
        ifs = [exp.If(this=side(condition).copy(), true=side(result).copy()) for condition, result in pairs]
        return exp.Case(ifs=ifs, default=None if default is None else side(results[-1]).copy())

    parts, total = [*conditions, *results], over(lambda part: part.total)
    return replace(
        operation.merged(results),
        plain=over(lambda part: part.plain),
        total=total if operation.castless(results) else operation.tried(total),
        columns=frozenset().union(*(part.columns for part in parts)),
        required=False,
        size=1 + sum(part.size for part in parts),
    )

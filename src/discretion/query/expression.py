"""The allow-list of row expressions: which operations may be in a query, and which parts of each are operands."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from discretion.errors import QueryRefused, did_you_mean
from discretion.query import kind as types
from discretion.query import operation
from discretion.query.function import FUNCTIONS, applied
from discretion.query.kind import DOUBLE
from discretion.query.moment import UNITS, shifted
from discretion.query.place import placed
from discretion.query.scalar import Scalar, Scope, literal, only, shown

_NAMED_PARTS: dict[type[exp.Expr], str] = {
    **{getattr(exp, name.capitalize()): name for name in UNITS},
    exp.WeekOfYear: "WEEK",
    exp.DayOfYear: "DOY",
    exp.DayOfWeek: "DOW",
    exp.DayOfWeekIso: "ISODOW",
}
_INSTEAD = {
    "HISTOGRAM": "COUNT(*) with GROUP BY WIDTH_BUCKET(x, 0, 100, 10), or with GROUP BY a declared key",
    "WEEKDAY": "DAYOFWEEK(day), where 0 is Sunday, or ISODOW(day), where 7 is Sunday",
    "DATE_FORMAT": "YEAR(day), MONTH(day), DATE_TRUNC('month', day) or CAST(day AS VARCHAR)",
}
_REASONS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Window, exp.WindowSpec), "a window function gives every row an answer. Ask for an aggregate by group."),
    (
        (exp.Subquery, exp.Select, exp.Exists, exp.SetOperation),
        "a subquery inside an expression would read rows without paying. Ask for its value in a query of its own, then "
        "write the released number here. For people of another table, join it on the person: JOIN (SELECT person, "
        "COUNT(*) AS n FROM other GROUP BY person) AS o; or LEFT JOIN it and write WHERE n IS NULL. For a lookup, JOIN "
        "it and write its condition in WHERE.",
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
    (
        (exp.Placeholder, exp.Parameter),
        "this parameter has no value. Give one: params=[40] for ?, params={'age': 40} for $age, or --param age=40.",
    ),
    (
        (exp.Star, exp.Columns),
        "rows of people are never listed. Ask for keys and aggregates, such as COUNT(*) or AVG(column).",
    ),
    (
        (exp.Monthname,),
        "names of months differ between languages. Use MONTH(day), or DATE_TRUNC('month', day) as a key.",
    ),
    ((exp.Dayname,), "names of days differ between languages. Use ISODOW(day): 1 is Monday, 7 is Sunday."),
    (
        (exp.TimeToStr, exp.ToChar),
        "formats differ between engines. Use YEAR(day), MONTH(day) and the like, DATE_TRUNC('month', day), or "
        "CAST(day AS VARCHAR).",
    ),
    ((exp.Interval,), "an interval can only be added to or subtracted from a date."),
)


@placed
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
        return shifted(node, {"this": scalar(node.this, scope)})
    if node is None:
        raise QueryRefused("An operation in this query lacks an operand.")
    node = _extract(node)
    if type(node) not in FUNCTIONS:
        refuse(node)
    row = FUNCTIONS[type(node)]
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        refuse(node.args["query"])
    only(node, *row.operands, *row.fixed)
    return applied(node, {name: _operand(node.args.get(name), scope) for name in row.operands})


@placed
def predicate(node: exp.Expr, scope: Scope, place: str = "WHERE") -> Scalar:
    """A row expression that is true or not."""
    condition = scalar(node, scope)
    if condition.kind not in ("boolean", "null"):
        raise QueryRefused(f"{place} needs a condition, got {shown(node)}, which is a {condition.kind}.")
    return condition.to("BOOLEAN")


@placed
def refuse(node: exp.Expr) -> NoReturn:
    """Say which construct is not allowed, why, and what to write instead."""
    for kinds, reason in _REASONS:
        if isinstance(node, kinds):
            raise QueryRefused(f"{shown(node)} is not allowed: {reason}")
    raise QueryRefused(
        f"{shown(node)} is not on the list of what is known to be safe. Use comparisons, AND/OR/NOT, IN, BETWEEN, "
        "LIKE, IS NULL, CASE, arithmetic, date parts, CAST or a function of docs/sql.md."
        f"{_nearest(node) if isinstance(node, exp.Anonymous) else ''}"
    )


def _nearest(node: exp.Anonymous) -> str:
    name = node.name.upper()
    return f" Instead of {name}, use {_INSTEAD[name]}." if name in _INSTEAD else did_you_mean(node.name, _names())


def _names() -> set[str]:
    """Return the names of all functions that a query may call, aggregates included."""
    known = [*FUNCTIONS, *exp.AggFunc.__subclasses__()]
    return {name for one in known if issubclass(one, exp.Func) for name in one.sql_names()} | {"DATE_PART"}


def _operand(part: exp.Expr | list[exp.Expr] | None, scope: Scope) -> Scalar | list[Scalar]:
    return [scalar(item, scope) for item in part] if isinstance(part, list) else scalar(part, scope)


def _constant(node: exp.Expr) -> Scalar:
    """A constant, which is read here and written out again: the database never sees the analyst's own spelling."""
    if isinstance(node, exp.Null):
        return literal(None, "NULL", node)
    if isinstance(node, exp.Boolean):
        return literal(bool(node.this), "BOOLEAN", node)
    text = str(node.this)
    if node.is_string:
        return literal(text, "VARCHAR", node)
    mantissa, _, exponent = text.lower().partition("e")
    if len(text) > 40 or len(exponent) > 3 or not 0 <= Fraction(text) < 10**36:
        raise QueryRefused(
            f"The number {text[:40]} is too large or too small. Write one below 10^36, with an exponent from -99 on."
        )
    value = Fraction(text)
    if exponent or len(mantissa.replace(".", "")) > types.MOST_DIGITS:
        return literal(float(value), DOUBLE, node)
    if value.denominator == 1 and "." not in mantissa:
        return literal(int(value), types.whole(int(value)), node)
    before, _, after = mantissa.partition(".")
    return literal(value, types.decimal(len(before.lstrip("0")), len(after)), node)


def _extract(node: exp.Expr) -> exp.Expr:
    """MONTH(day) and DATE_PART('month', day) as EXTRACT(MONTH FROM day)."""
    if type(node) in _NAMED_PARTS:
        only(node, "this")
        return exp.Extract(this=exp.var(_NAMED_PARTS[type(node)]), expression=node.this.copy())
    if isinstance(node, exp.Anonymous) and node.name.lower() == "date_part" and len(node.expressions) == 2:
        return exp.Extract(this=exp.var(node.expressions[0].name), expression=node.expressions[1].copy())
    return node


def _case(node: exp.Expr, scope: Scope) -> Scalar:
    """CASE and IF: conditions, and results of one type."""
    branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    subject = node.this if isinstance(node, exp.Case) else None
    tests = [b.this if subject is None else exp.EQ(this=subject.copy(), expression=b.this.copy()) for b in branches]
    conditions = [predicate(test, scope, "CASE") for test in tests]
    given = [branch.args["true"] for branch in branches] + ([default] if default is not None else [])
    results = operation.alike(node, [scalar(part, scope) for part in given])

    def over(side: Callable[[Scalar], exp.Expr]) -> exp.Case:
        pairs = zip(conditions, results, strict=False)
        ifs = [exp.If(this=side(condition).copy(), true=side(result).copy()) for condition, result in pairs]
        return exp.Case(ifs=ifs, default=None if default is None else side(results[-1]).copy())

    parts = [*conditions, *results]
    return replace(
        operation.merged(results),
        plain=over(lambda part: part.plain),
        total=over(lambda part: part.total),
        columns=frozenset().union(*(part.columns for part in parts)),
        required=False,
        size=1 + sum(part.size for part in parts),
        made=sum(part.made for part in parts),
    )

"""Spark's SQL: one rule for every operation, each of which has an answer or NULL for every row, as in DuckDB.

A node without a rule is refused. Nothing is left to sqlglot's own translation, which drops TRY and writes TRY_CAST as
CAST. Types are those that query/ chose; a rule that depends on one reads it from the expression's notes.
"""

from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import UnsupportedError
from sqlglot.generators.spark import SparkGenerator

from discretion.engines.column import FITS
from discretion.engines.dialect import Dialect
from discretion.engines.spark.cast import (
    WHOLE,
    NoForm,
    cast,
    named,
    rounded,
    spark_type,
    type_of,
    whole_part,
    whole_rounded,
)
from discretion.engines.spark.letter import blanks, in_letters, like, lowered, quoted
from discretion.engines.spark.ranking import Ranked, ranked
from discretion.engines.spark.total import Spread, added, filtered, spread
from discretion.errors import QueryRefused

_FARTHEST = 200_000  # years: a moment of the years 1 to 9999 moved further does not fit Spark's 64 bits
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_SECONDS = {"HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
_PARTS = {
    **{unit: f"{unit}({{0}})" for unit in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")},
    "WEEK": "WEEKOFYEAR({0})",
    "DOY": "DAYOFYEAR({0})",
    "DOW": "(DAYOFWEEK({0}) - 1)",
    "ISODOW": "(WEEKDAY({0}) + 1)",
}


class _Writer(SparkGenerator):
    """Writes the SQL of a statement."""


class _Language(Spark):
    """The dialect that sqlglot knows the rules below by."""

    Generator = _Writer


Rule = Callable[[Any, Any], str]


def _function(name: str, *parts: str) -> Rule:
    """Return the rule of a function of so many parts; a part that is a list is written out, one that lacks is not."""

    def rule(write: _Writer, node: exp.Expr) -> str:
        given: list[str] = []
        for part in parts:
            found = node.args.get(part)
            given += [write.sql(one) for one in found] if isinstance(found, list) else [write.sql(found)]
        return f"{name}({', '.join(one for one in given if one)})"

    return rule


def _operator(sign: str) -> Rule:
    return lambda write, node: f"{write.sql(node, 'this')} {sign} {write.sql(node, 'expression')}"


def _literal(write: _Writer, node: exp.Literal) -> str:
    if node.is_string:
        return quoted(str(node.this))
    return f"{node.this}D" if "e" in str(node.this).lower() else str(node.this)


def _cast(write: _Writer, node: exp.Cast) -> str:
    target, value = named(node.to), node.this
    bare = value.this if isinstance(value, exp.Paren) and isinstance(value.this, exp.Neg) else value
    sign, number = ("-", bare.this) if isinstance(bare, exp.Neg) else ("", bare)
    if isinstance(number, exp.Literal) and not number.is_string:
        text = f"{sign}{number.this}"
        return f"{text.rstrip('D')}D" if target == "DOUBLE" else f"CAST({text} AS {spark_type(target)})"
    if isinstance(value, exp.Literal | exp.Null):
        return f"CAST({write.sql(value)} AS {spark_type(target)})"
    if isinstance(value, exp.Round) and type_of(value) == "DOUBLE" and not _places(value) and target in WHOLE:
        return whole_rounded(write.sql(value, "this"), target, fits=bool(node.meta_get(FITS)))
    is_person = type(node) is exp.Cast
    return cast(write.sql(value), type_of(value), target, of_person=is_person)


def _arithmetic(name: str, sign: str) -> Rule:
    def rule(write: _Writer, node: exp.Expr) -> str:
        left, right = write.sql(node, "this"), write.sql(node, "expression")
        if isinstance(node.expression, exp.Interval):
            return _moved(write, node, sign)
        if type_of(node.this) == type_of(node.expression) == "DATE":
            return f"CAST(DATEDIFF({left}, {right}) AS BIGINT)"
        total = "DOUBLE" in (type_of(node.this), type_of(node.expression)) or node.meta_get(FITS)
        return f"({left} {sign} {right})" if total else f"{name}({left}, {right})"

    return rule


def _moved(write: _Writer, node: exp.Expr, sign: str) -> str:
    """A date plus or minus a fixed interval, as a time."""
    amount, unit = int(node.expression.this.this), node.expression.args["unit"].name.upper()
    moment = cast(write.sql(node, "this"), type_of(node.this), "TIMESTAMP")
    if unit in _MONTHS:
        months = amount * _MONTHS[unit]
        span = "" if months > 12 * _FARTHEST else f"INTERVAL '{months}' MONTH"
    else:
        days, seconds = amount * _DAYS.get(unit, 0), amount * _SECONDS.get(unit, 0)
        span = f"INTERVAL '{days}' DAY" if unit in _DAYS else f"INTERVAL '{seconds}' SECOND"
    return f"({moment} {sign} {span})" if span else "CAST(NULL AS TIMESTAMP_NTZ)"


def _whole_quotient(write: _Writer, node: exp.IntDiv) -> str:
    left, right = write.sql(node, "this"), write.sql(node, "expression")
    if "HUGEINT" in (type_of(node.this), type_of(node.expression)):
        raise NoForm("a whole quotient of numbers with more than 64 bits")
    if node.meta_get(FITS):
        return f"({left} DIV {right})"
    return f"CASE WHEN {right} = -1 THEN TRY_SUBTRACT(0L, {left}) ELSE {left} DIV {right} END"


def _remainder(write: _Writer, node: exp.Mod) -> str:
    left, right = write.sql(node, "this"), write.sql(node, "expression")
    if type_of(node.this) != "BIGINT":
        return f"({left} % {right})"
    return f"CASE WHEN {right} = -1 AND {left} = -9223372036854775808L THEN NULL ELSE {left} % {right} END"


def _opposite(write: _Writer, node: exp.Expr) -> str:
    value, known = write.sql(node, "this"), type_of(node.this)
    if not (known.startswith("DECIMAL") or known == "HUGEINT"):
        return f"(- {value})"
    return f"TRY_SUBTRACT(CAST(0 AS {spark_type(known)}), {value})"  # Spark negates no more than 34 digits exactly


def _absolute(write: _Writer, node: exp.Abs) -> str:
    value, known = write.sql(node, "this"), type_of(node.this)
    if not (known.startswith("DECIMAL") or known == "HUGEINT"):
        return f"ABS({value})"
    return f"CASE WHEN {value} < 0 THEN {_opposite(write, node)} ELSE {value} END"


def _part(name: str) -> Rule:
    """FLOOR and CEIL: of a double a double."""

    def rule(write: _Writer, node: exp.Expr) -> str:
        value = write.sql(node, "this")
        return whole_part(value, name) if type_of(node.this) == "DOUBLE" else f"{name}({value})"

    return rule


def _cut(value: str, is_double: bool) -> str:
    floor, ceil = (whole_part(value, "FLOOR"), whole_part(value, "CEIL")) if is_double else (f"FLOOR({value})", "")
    ceil = ceil or f"CEIL({value})"
    return f"CASE WHEN {value} < 0 THEN {ceil} ELSE {floor} END"


def _at(places: int, value: str, shape: Callable[[str], str]) -> str:
    """A double rounded at a decimal place by `shape`, as DuckDB does it: scaled, rounded, and scaled back."""
    if places == 0:
        return shape(value)
    factor = f"1e{abs(places)}D"
    there, back = ("*", "/") if places > 0 else ("/", "*")
    found = f"({shape(f'({value} {there} {factor})')} {back} {factor})"
    kept = f"ABS({value} {there} {factor}) <= 1.7976931348623157e308D"
    return f"CASE WHEN {kept} THEN {found} ELSE {value} END"


def _places(node: exp.Expr) -> int:
    given = node.args.get("decimals")
    if given is None:
        return 0
    return -int(given.this.this) if isinstance(given, exp.Neg) else int(given.this)


def _round(write: _Writer, node: exp.Round) -> str:
    value = write.sql(node, "this")
    if type_of(node.this).startswith("DECIMAL"):
        return f"ROUND({value}, {_places(node)})"
    return _at(_places(node), value, rounded)


def _trunc(write: _Writer, node: exp.Trunc) -> str:
    value, places = write.sql(node, "this"), _places(node)
    if not type_of(node.this).startswith("DECIMAL"):
        return _at(places, value, lambda one: _cut(one, is_double=True))
    if places == 0:
        return _cut(value, is_double=False)
    raise NoForm("TRUNC of an exact number at a decimal place")


def _cased(function: str) -> Rule:
    return lambda write, node: in_letters(function, write.sql(node, "this"))


def _like(write: _Writer, node: exp.Like) -> str:
    return like(write.sql(node, "this"), str(node.expression.this))


def _ilike(write: _Writer, node: exp.ILike) -> str:
    return like(in_letters("lower", write.sql(node, "this")), lowered(str(node.expression.this)))


def _trim(write: _Writer, node: exp.Trim) -> str:
    signs = write.sql(node, "expression") or quoted(blanks())
    return f"TRIM({node.args.get('position') or 'BOTH'} {signs} FROM {write.sql(node, 'this')})"


def _extract(write: _Writer, node: exp.Extract) -> str:
    return f"CAST({_PARTS[node.this.name.upper()].format(write.sql(node, 'expression'))} AS BIGINT)"


def _truncated(write: _Writer, node: exp.Expr) -> str:
    moment = cast(write.sql(node, "this"), type_of(node.this), "TIMESTAMP")
    return f"CAST(DATE_TRUNC('{node.args['unit'].name.upper()}', {moment}) AS TIMESTAMP_NTZ)"


def _difference(write: _Writer, node: exp.DateDiff) -> str:
    """Return how many borders of a unit lie between two moments; of weeks, how many times seven days."""
    last, first, unit = write.sql(node, "this"), write.sql(node, "expression"), node.args["unit"].name.upper()
    if unit in _MONTHS:
        size = _MONTHS[unit]
        ends = (f"((YEAR({one}) * 12 + MONTH({one}) - 1) DIV {size})" for one in (last, first))
    elif unit in _DAYS:
        return f"CAST(DATEDIFF({last}, {first}) DIV {_DAYS[unit]} AS BIGINT)"
    else:
        size = _SECONDS[unit]
        seconds = (f"UNIX_SECONDS(CAST({one} AS TIMESTAMP))" for one in (last, first))
        ends = (f"(({one} - PMOD({one}, {size}L)) DIV {size}L)" for one in seconds)
    return f"CAST({' - '.join(ends)} AS BIGINT)"


def _named(write: _Writer, node: exp.Anonymous) -> str:
    value, *others = (write.sql(one) for one in node.expressions)
    return {
        "ROW": f"NAMED_STRUCT('c1', {value}, 'c2', {''.join(others)})",
        "STRUCT_EXTRACT": f"{value}.c{''.join(others)}",
        "ISFINITE": f"ABS({value}) <= 1.7976931348623157e308D",
        "STRLEN": f"OCTET_LENGTH({value})",
        "HASH": f"(XXHASH64({value}) & 9223372036854775807L)",
        "GROUPING": f"GROUPING({value})",
    }[node.name.upper()]


def _case(write: _Writer, node: exp.Case) -> str:
    branches = " ".join(f"WHEN {write.sql(one, 'this')} THEN {write.sql(one, 'true')}" for one in node.args["ifs"])
    subject, default = (node.args.get(part) for part in ("this", "default"))
    of = "" if subject is None else f"{write.sql(subject)} "
    return f"CASE {of}{branches}{f' ELSE {write.sql(default)}' if default is not None else ''} END"


def _compared(write: _Writer, node: exp.In) -> str:
    if (query := node.args.get("query")) is not None:
        return f"{write.sql(node, 'this')} IN {write.sql(query)}"
    return f"{write.sql(node, 'this')} IN ({', '.join(write.sql(one) for one in node.expressions)})"


_PASSED: Rule = lambda write, node: write.sql(node, "this")  # noqa: E731
OPERATIONS: dict[type[exp.Expr], Rule] = {
    exp.Literal: _literal,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Try: _PASSED,  # every rule here is total already
    exp.EQ: _operator("="),
    exp.NEQ: _operator("<>"),
    exp.LT: _operator("<"),
    exp.LTE: _operator("<="),
    exp.GT: _operator(">"),
    exp.GTE: _operator(">="),
    exp.NullSafeEQ: _operator("<=>"),
    exp.NullSafeNEQ: lambda write, node: f"NOT ({_operator('<=>')(write, node)})",
    exp.Between: lambda write, node: (
        f"{write.sql(node, 'this')} BETWEEN {write.sql(node, 'low')} AND {write.sql(node, 'high')}"
    ),
    exp.In: _compared,
    exp.Is: _operator("IS"),
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.And: _operator("AND"),
    exp.Or: lambda write, node: f"({_operator('OR')(write, node)})",
    exp.Not: lambda write, node: f"NOT ({write.sql(node, 'this')})",
    exp.Add: _arithmetic("TRY_ADD", "+"),
    exp.Sub: _arithmetic("TRY_SUBTRACT", "-"),
    exp.Mul: _arithmetic("TRY_MULTIPLY", "*"),
    exp.Div: lambda write, node: f"({_operator('/')(write, node)})",
    exp.IntDiv: _whole_quotient,
    exp.Mod: _remainder,
    exp.Pow: _function("POWER", "this", "expression"),
    exp.Neg: _opposite,
    exp.Abs: _absolute,
    exp.Sign: lambda write, node: f"CAST(SIGN({write.sql(node, 'this')}) AS INT)",
    exp.Sqrt: _function("SQRT", "this"),
    exp.Cbrt: _function("CBRT", "this"),
    exp.Ln: _function("LN", "this"),
    exp.Exp: _function("EXP", "this"),
    exp.Floor: _part("FLOOR"),
    exp.Ceil: _part("CEIL"),
    exp.Trunc: _trunc,
    exp.Round: _round,
    exp.Lower: _cased("lower"),
    exp.Upper: _cased("upper"),
    exp.Length: lambda write, node: f"CAST(CHAR_LENGTH({write.sql(node, 'this')}) AS BIGINT)",
    exp.Trim: _trim,
    exp.StartsWith: _function("STARTSWITH", "this", "expression"),
    exp.EndsWith: _function("ENDSWITH", "this", "expression"),
    exp.Contains: _function("CONTAINS", "this", "expression"),
    exp.DPipe: _function("CONCAT", "this", "expression"),
    exp.Concat: lambda write, node: f"CONCAT_WS('', {', '.join(write.sql(one) for one in node.expressions)})",
    exp.Substring: _function("SUBSTRING", "this", "start", "length"),
    exp.Left: _function("LEFT", "this", "expression"),
    exp.Right: _function("RIGHT", "this", "expression"),
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _difference,
    exp.Coalesce: _function("COALESCE", "this", "expressions"),
    exp.Nullif: _function("NULLIF", "this", "expression"),
    exp.Least: _function("LEAST", "this", "expressions"),
    exp.Greatest: _function("GREATEST", "this", "expressions"),
    exp.Case: _case,
    exp.Sum: added,
    exp.Filter: filtered,
    Spread: spread,
    Ranked: ranked,
    exp.Count: _function("COUNT", "this"),
    exp.AnyValue: _function("MIN", "this"),  # the same one when a task is run again
    exp.Min: _function("MIN", "this"),
    exp.Max: _function("MAX", "this"),
    exp.RowNumber: lambda write, node: "ROW_NUMBER()",
    exp.SHA2: _function("SHA2", "this", "length"),
    exp.StrPosition: _function("INSTR", "this", "substr"),
    exp.Anonymous: _named,
    exp.Ordered: lambda write, node: f"{write.sql(node, 'this')} ASC NULLS LAST",
}
_FRAME: frozenset[type[exp.Expr]] = frozenset(  # what a statement consists of besides its operations
    {
        *(exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Subquery, exp.Union, exp.With, exp.CTE, exp.Join),
        *(exp.Where, exp.Having, exp.Group, exp.GroupingSets, exp.Tuple, exp.Order, exp.Window, exp.WindowSpec),
        *(exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Distinct, exp.Paren, exp.If, exp.Null, exp.Boolean),
        *(exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Distribute, exp.Sort),
    }
)
_KNOWN = _FRAME | set(OPERATIONS)
_Writer.TRANSFORMS = {**SparkGenerator.TRANSFORMS, **OPERATIONS}


class SparkDialect(Dialect):
    """Spark's dialect: a node of any kind that has no rule is refused."""

    def text(self, tree: exp.Expr) -> str:
        """Return a statement as Spark reads it, using up the tree; refuse operations without a total form."""
        for node in tree.walk():
            name = node.name if isinstance(node, exp.Anonymous) else node.key
            known = name.upper() in self.named if isinstance(node, exp.Anonymous) else type(node) in _KNOWN
            if not known:
                raise QueryRefused(f"Spark has no safe form of {name.upper()}. Leave it out, or ask with DuckDB.")
        try:
            return tree.sql(self.language, unsupported_level=ErrorLevel.RAISE, copy=False)
        except (NoForm, UnsupportedError) as failure:
            raise QueryRefused(f"Spark has no safe form of {failure}. Leave it out, or ask with DuckDB.") from None


SPARK = SparkDialect(language=_Language)

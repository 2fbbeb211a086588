"""Arithmetic on values that are already public: released aggregates, declared keys and literals.

SQL's rules: anything with NULL is NULL, and what has no answer (a division by zero, the root of −1) is NULL too.
"""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused

Environment = Mapping[str, Any]  # a key's name, or the number of a released aggregate -> its value


def evaluate(node: exp.Expr, environment: Environment) -> Any:
    """The value of `node`, where columns are keys and placeholders are released aggregates."""
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else _number(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, (exp.Column, exp.Placeholder)):
        return environment[node.name]
    if isinstance(node, exp.Case):
        return _case(node, environment)
    if type(node) not in RULES:
        raise QueryRefused(
            f"{node.sql('duckdb')!r} cannot be computed from released values. Use arithmetic, comparisons, CASE, "
            f"COALESCE or one of {', '.join(sorted(rule.sql_name() for rule in FUNCTIONS))}."  # type: ignore[attr-defined]
        )
    return RULES[type(node)](node, environment)


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _strict(function: Callable[..., Any], *arguments: str) -> Callable[[exp.Expr, Environment], Any]:
    """A rule that is NULL when an argument is, or when there is no answer."""

    def rule(node: exp.Expr, environment: Environment) -> Any:
        values = [evaluate(node.args[name], environment) for name in arguments if node.args.get(name) is not None]
        if any(value is None for value in values):
            return None
        try:
            answer = function(*values)
        except (ArithmeticError, ValueError):
            return None
        return None if isinstance(answer, float) and not math.isfinite(answer) else answer

    return rule


def _logic(node: exp.Expr, environment: Environment) -> bool | None:
    """AND and OR of three truth values."""
    left, right = evaluate(node.this, environment), evaluate(node.expression, environment)
    decisive = isinstance(node, exp.Or)
    if decisive in (left, right):
        return decisive
    return None if left is None or right is None else not decisive


def _case(node: exp.Case, environment: Environment) -> Any:
    subject = None if node.this is None else evaluate(node.this, environment)
    # Every branch is computed, so that a mistake in one shows whatever the released values are.
    branches = [(evaluate(b.this, environment), evaluate(b.args["true"], environment)) for b in node.args["ifs"]]
    default = node.args.get("default")
    otherwise = None if default is None else evaluate(default, environment)
    _alike([otherwise, *(answer for _, answer in branches)])
    for condition, answer in branches:
        if condition is True if node.this is None else (subject is not None and condition == subject):
            return answer
    return otherwise


def _alike(answers: list[Any]) -> None:
    """Which answer is taken depends on released values; whether it fits what comes next must not."""
    if len({isinstance(answer, str) for answer in answers if answer is not None}) > 1:
        raise TypeError("Answers are all texts or all numbers.")


def _several(choose: Callable[[list[Any]], Any]) -> Callable[[exp.Expr, Environment], Any]:
    """A rule over all its arguments that skips NULLs."""

    def rule(node: exp.Expr, environment: Environment) -> Any:
        values = [evaluate(argument, environment) for argument in [node.this, *node.expressions]]
        known = [value for value in values if value is not None]
        _alike(known)
        return choose(known) if known else None

    return rule


def _is(node: exp.Expr, environment: Environment) -> bool:
    return bool(evaluate(node.this, environment) is evaluate(node.expression, environment))


def _in(node: exp.Expr, environment: Environment) -> bool | None:
    value = evaluate(node.this, environment)
    return None if value is None else value in [evaluate(item, environment) for item in node.expressions]


def _nullif(node: exp.Expr, environment: Environment) -> Any:
    value = evaluate(node.this, environment)
    return None if value == evaluate(node.expression, environment) else value


def _round(value: float, decimals: int = 0) -> float:
    """Half away from zero, as SQL rounds; Python rounds half to even."""
    scale = 10.0**decimals
    return math.copysign(math.floor(abs(value) * scale + 0.5) / scale, value)


def _text(*parts: Any) -> str:
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("Only texts can be joined.")
    return "".join(parts)


FUNCTIONS: dict[type[exp.Expr], Callable[[exp.Expr, Environment], Any]] = {
    exp.Abs: _strict(abs, "this"),
    exp.Ceil: _strict(lambda x: float(math.ceil(x)), "this"),
    exp.Coalesce: _several(lambda known: known[0]),
    exp.Exp: _strict(math.exp, "this"),
    exp.Floor: _strict(lambda x: float(math.floor(x)), "this"),
    exp.Greatest: _several(max),
    exp.Least: _several(min),
    exp.Ln: _strict(math.log, "this"),
    exp.Lower: _strict(str.lower, "this"),
    exp.Nullif: _nullif,
    exp.Pow: _strict(math.pow, "this", "expression"),
    exp.Round: _strict(_round, "this", "decimals"),
    exp.Sqrt: _strict(math.sqrt, "this"),
    exp.Trim: _strict(lambda text: text.strip(" "), "this"),
    exp.Upper: _strict(str.upper, "this"),
}
_TWO = ("this", "expression")
RULES: dict[type[exp.Expr], Callable[[exp.Expr, Environment], Any]] = {
    **FUNCTIONS,
    exp.Paren: lambda node, environment: evaluate(node.this, environment),
    exp.Neg: _strict(operator.neg, "this"),
    exp.Add: _strict(lambda a, b: _numeric(operator.add, a, b), *_TWO),
    exp.Sub: _strict(operator.sub, *_TWO),
    exp.Mul: _strict(lambda a, b: _numeric(operator.mul, a, b), *_TWO),
    exp.Div: _strict(operator.truediv, *_TWO),
    exp.Mod: _strict(math.fmod, *_TWO),
    exp.DPipe: _strict(_text, *_TWO),
    exp.EQ: _strict(operator.eq, *_TWO),
    exp.NEQ: _strict(operator.ne, *_TWO),
    exp.LT: _strict(operator.lt, *_TWO),
    exp.LTE: _strict(operator.le, *_TWO),
    exp.GT: _strict(operator.gt, *_TWO),
    exp.GTE: _strict(operator.ge, *_TWO),
    exp.Between: _strict(lambda value, low, high: low <= value <= high, "this", "low", "high"),
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _strict(operator.not_, "this"),
    exp.Is: _is,
    exp.In: _in,
}


def _numeric(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if isinstance(left, str) or isinstance(right, str):
        raise TypeError("A text is no number.")
    return operation(left, right)

"""What each allowed operation gives: a total expression, its type, and the interval or the values it can take.

Operands meet in a type that kind.py chose, so that comparing them cannot fail. Whole numbers are computed in a type
that holds every result. What can still have no answer (a cast, a root, a division) stands in a TRY and is NULL there.
Doubles are made finite, and times put into the years 1 to 9999, before anything but arithmetic sees them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import interval
from discretion.query import kind as types
from discretion.query.kind import BIGINT, DOUBLE, HUGEINT
from discretion.query.scalar import TRUTH, Scalar, Side, literal, mixed, refuse_time_between, shown

Operands = Mapping[str, Scalar | list[Scalar]]

TIMES = ("date", "timestamp")


def comparison(node: exp.Expr, operands: Operands) -> Scalar:
    """=, <>, <, <=, >, >=, IS [NOT] DISTINCT FROM, BETWEEN, IN."""
    if any(part.kind == "null" for part in flat(operands)):
        never = "" if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)) else ", which is never true"
        raise QueryRefused(f"{shown(node)} compares with NULL{never}. Write IS NULL or IS NOT NULL.")
    parts = alike(node, flat(operands))
    answer = _condition(node, regrouped(operands, parts))
    return replace(answer, required=True) if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)) else answer


def is_null(node: exp.Expr, operands: Operands) -> Scalar:
    """IS NULL; IS TRUE and IS FALSE of a condition."""
    (tested,) = flat(operands)
    if not isinstance(node.expression, (exp.Null, exp.Boolean)):
        raise QueryRefused(f"{shown(node)} is not allowed. Only IS NULL, IS TRUE and IS FALSE are.")
    if isinstance(node.expression, exp.Boolean) and tested.kind not in ("boolean", "null"):
        raise QueryRefused(f"{shown(node)} tests a {tested.kind}. Only a condition IS TRUE or IS FALSE.")
    return replace(_condition(node, {"this": tested.tame}, expression=node.expression), required=True)


def like(node: exp.Expr, operands: Operands) -> Scalar:
    """LIKE and ILIKE with a fixed pattern."""
    text, pattern = flat(operands)
    if text.kind != "text" or pattern.kind != "text" or not pattern.literal:
        raise QueryRefused(f"{shown(node)} needs a text and a pattern in quotes, such as name LIKE 'A%'.")
    matched = _condition(node, operands)
    return logic(exp.Not(), {"this": matched}) if node.args.get("negate") else matched


def logic(node: exp.Expr, operands: Operands) -> Scalar:
    """AND, OR, NOT."""
    for part in flat(operands):
        if part.kind not in ("boolean", "null"):
            raise QueryRefused(
                f"{type(node).__name__.upper()} needs conditions, got {shown(part.plain)}: a {part.kind}."
            )
    return _condition(node, regrouped(operands, [part.to("BOOLEAN") for part in flat(operands)]))


def arithmetic(node: exp.Expr, operands: Operands) -> Scalar:
    """+ − * / // % and powers."""
    left, right = flat(operands)
    if isinstance(node, exp.Sub) and left.kind == right.kind == "date":
        days = regrouped(operands, [left.tame.within, right.tame.within])
        low, high = interval.elapsed(left, right, "DAY")
        return built(node, days, sql_type=BIGINT, reach=2**23, whole=True, low=low, high=high)
    if isinstance(node, exp.Sub) and {left.kind, right.kind} <= set(TIMES):
        refuse_time_between(node)
    if {left.kind, right.kind} != {"number"}:
        mixed(node, {left.kind, right.kind, "number"})
    if isinstance(node, exp.IntDiv) and not {left.type, right.type} <= {BIGINT, HUGEINT}:
        raise QueryRefused(f"{shown(node)} needs whole numbers. Write FLOOR(a / b).")
    singles = _are_singles([left, right]) and not isinstance(node, exp.Pow)
    left, right = _singles([left, right]) if singles else (left, right)
    real = isinstance(node, (exp.Div, exp.Pow))
    low, high = interval.span(node, left, right)
    shared, result, reach = (DOUBLE, DOUBLE, 0) if real else _meeting(node, left, right)
    known: dict[str, Any] = {"whole": left.whole and right.whole and not real, "low": low, "high": high}
    known["values"] = None if singles else interval.few_values(node, left, right)
    each = [shared, shared] if shared else types.factors(*(types.digits(one.type, one.reach) for one in (left, right)))
    parts = [part.to(one, exact=True) for part, one in zip((left, right), each, strict=True)]
    divides = isinstance(node, (exp.Div, exp.IntDiv, exp.Mod))
    if divides and not (right.literal and right.low):  # engines differ on a division by zero
        divisor = exp.Nullif(this=parts[1].total.copy(), expression=types.constant(0, shared))
        parts[1] = replace(parts[1], total=divisor, size=2 * parts[1].size + 1, made=2 * parts[1].made)
    bounded = low is not None and high is not None
    made = built(node, regrouped(operands, parts), sql_type=result, reach=reach, wild=result == DOUBLE, **known)
    exact = result != DOUBLE and not divides
    made = replace(made, required=made.required and (exact or bounded), total=made.total if not exact else _bare(made))
    return _rounded_to_single(made) if singles else made


def _rounded_to_single(made: Scalar) -> Scalar:
    """A sum, difference, product or quotient of 32-bit numbers as one: a double is wide enough to be rounded again."""
    total = try_cast(try_cast(made.total, "FLOAT"), DOUBLE)
    sides = [abs(side) for side in (made.low, made.high) if side is not None]
    fits = len(sides) == 2 and max(sides) < 10**38
    return replace(made, total=total, single=True, required=made.required and fits, size=made.size + 2)


def _meeting(node: exp.Expr, left: Scalar, right: Scalar) -> tuple[str, str, int]:
    """The type two numbers are computed in, that of the result, and the largest whole number it can hold."""
    reach = left.reach * right.reach if isinstance(node, exp.Mul) else left.reach + right.reach
    if {left.type, right.type} <= {BIGINT, HUGEINT} and isinstance(node, (exp.IntDiv, exp.Mod)):
        found = types.common([(left.type, left.reach), (right.type, right.reach)])
        return found, found, left.reach
    if {left.type, right.type} <= {BIGINT, HUGEINT}:
        found = types.whole(reach)
        return found, found, reach if found != DOUBLE else 0
    if DOUBLE in (left.type, right.type):
        return DOUBLE, DOUBLE, 0
    (a, b), (c, d) = (types.digits(part.type, part.reach) for part in (left, right))
    if isinstance(node, exp.Mul):
        result = types.decimal(a + c, b + d)
        return ("", result, 0) if result != DOUBLE else (DOUBLE, DOUBLE, 0)
    shared = types.decimal(max(a, c), max(b, d))
    result = shared if isinstance(node, exp.Mod) else types.decimal(max(a, c) + 1, max(b, d))
    return (shared, result, 0) if result != DOUBLE else (DOUBLE, DOUBLE, 0)


def real(node: exp.Expr, operands: Operands) -> Scalar:
    """Apply negation, ABS, SIGN, FLOOR, CEIL, ROUND or TRUNC."""
    part = _number(node, operands)
    places = fixed_number(node, "decimals", -15, 15) or 0
    low, high = interval.image(node, part, Fraction(10) ** -places)
    extra = {"decimals": node.args["decimals"]} if node.args.get("decimals") else {}
    if isinstance(node, exp.Sign):
        made = built(node, {"this": part.tame}, sql_type=BIGINT, narrow=True, reach=1, whole=True, low=low, high=high)
        return replace(made, required=made.required and part.type != DOUBLE)
    known: dict[str, Any] = {"low": low, "high": high, **extra}
    if isinstance(node, (exp.Neg, exp.Abs)):
        found = types.whole(part.reach) if part.type in (BIGINT, HUGEINT) else part.type
        known |= {"reach": part.reach, "whole": part.whole, "wild": part.wild, "single": part.single}
        return built(node, {"this": part.to(found, exact=True)}, sql_type=found, **known)
    return _rounded(node, part, places, known)


def _rounded(node: exp.Expr, part: Scalar, places: int, known: dict[str, Any]) -> Scalar:
    """FLOOR, CEIL, ROUND, TRUNC: an exact number becomes one with fewer decimals."""
    before, after = (0, 0) if part.type == DOUBLE else types.digits(part.type, part.reach)
    found = DOUBLE if part.type == DOUBLE or places < 0 else types.decimal(before + 1, min(after, places))
    made = built(node, {"this": part.to(DOUBLE) if found == DOUBLE else part}, sql_type=found, **known)
    whole = part.whole or places <= 0
    if found != DOUBLE and after <= places:  # there is nothing to round
        return replace(made, total=part.total, type=part.type, reach=part.reach, narrow=part.narrow, whole=whole)
    if found != DOUBLE:
        return replace(made, total=try_cast(made.total, found), whole=whole)
    return replace(made, whole=whole, wild=True)


def curve(function: Callable[[float], float]) -> Callable[[exp.Expr, Operands], Scalar]:
    """Return the rule of a function of one real number that grows with it: SQRT, LN, EXP."""

    def rule(node: exp.Expr, operands: Operands) -> Scalar:
        part = _number(node, operands)
        low, high = interval.grown(function, part)
        made = built(node, {"this": part.to(DOUBLE)}, sql_type=DOUBLE, wild=True, low=low, high=high)
        return replace(made, required=made.required and _has_answer(low))

    return rule


def _has_answer(low: Side) -> bool:
    """Tell whether a function has an answer everywhere within declared bounds: it then has bounds itself."""
    return low is not None


def _number(node: exp.Expr, operands: Operands) -> Scalar:
    (part,) = flat(operands)
    if part.kind != "number":
        raise QueryRefused(f"{shown(node)} needs a number, got a {part.kind}. CAST it first.")
    return part


def texts(node: exp.Expr, operands: Operands) -> Scalar:
    """LOWER, UPPER, TRIM, LENGTH, STARTS_WITH, ENDS_WITH, CONTAINS, ||, CONCAT, SUBSTRING, LEFT, RIGHT."""
    parts = flat(operands)
    for part in parts:
        if part.kind != "text":
            raise QueryRefused(f"{shown(node)} needs a text, got a {part.kind}. CAST it AS VARCHAR first.")
    extra: dict[str, Any] = {name: node.args[name] for name in ("position", "safe", "coalesce") if node.args.get(name)}
    longest = sum(part.longest for part in parts)
    for name in ("start", "length", "expression"):
        if name not in operands and node.args.get(name) is not None:
            most = fixed_number(node, name, 1 if name == "start" else 0, 1_000_000) or 0
            longest = longest if name == "start" else min(longest, most)
            extra[name] = node.args[name]
    if isinstance(node, exp.Length):
        extra |= {"low": Fraction(0), "high": Fraction(longest)}
        return built(node, operands, sql_type=BIGINT, reach=2**40, whole=True, **extra)
    if isinstance(node, (exp.StartsWith, exp.EndsWith, exp.Contains)):
        return built(node, operands, sql_type="BOOLEAN", values=TRUTH, **extra)
    made = built(node, operands, sql_type="VARCHAR", longest=longest, **extra)
    return replace(made, made=made.made + longest)


def choice(node: exp.Expr, operands: Operands) -> Scalar:
    """COALESCE, NULLIF, LEAST, GREATEST."""
    parts = alike(node, flat(operands))
    clamps = isinstance(node, (exp.Least, exp.Greatest))
    known = merged(parts[:1] if isinstance(node, exp.Nullif) else parts)
    low, high = interval.clamped(node, parts) if clamps else (known.low, known.high)
    given = any(part.required or (part.literal and part.values) for part in parts)
    kept: dict[str, Any] = {"ignore_nulls": True} if clamps else {}
    kept |= {
        "reach": known.reach,
        "narrow": known.narrow,
        "single": known.single,
        "whole": known.whole,
        "low": low,
        "high": high,
    }
    values = None if clamps else known.values
    result = built(node, regrouped(operands, parts), sql_type=known.type, longest=known.longest, values=values, **kept)
    return replace(result, required=given and not isinstance(node, exp.Nullif))


def merged(results: Sequence[Scalar]) -> Scalar:
    """Return what is known of a value that is one of `results`, which are of one type."""
    known = [part for part in results if part.kind != "null" and not (part.literal and not part.values)]
    if not known:
        raise QueryRefused("A CASE or COALESCE whose results are all NULL says nothing. Give it a result.")
    lows, highs, domains = [p.low for p in known], [p.high for p in known], [p.values for p in known]
    return replace(
        known[0],
        literal=False,
        span=None,
        reach=max(part.reach for part in known),
        narrow=any(part.narrow or part.literal for part in known),
        single=all(part.single for part in known),
        whole=all(part.whole for part in known),
        low=interval.least(lows),
        high=interval.most(highs),
        values=None if None in domains else tuple(dict.fromkeys(v for d in domains for v in d or () if v is not None)),
        longest=max(part.longest for part in known),
    )


def alike(node: exp.Expr, parts: Sequence[Scalar]) -> list[Scalar]:
    """Operands of one type, without NaN; mixtures are refused, but for two.

    A text constant is read as a date among dates. A person's text is read as a number among numbers: people in a text
    file are always texts, also where all of them are numbers.
    """
    if any(part.kind in TIMES for part in parts):
        parts = [moment_of(part) if part.kind == "text" and part.literal else part for part in parts]
    if any(part.kind == "number" for part in parts):
        parts = [_as_number(part) if part.number is not None else part for part in parts]
    kinds = {part.kind for part in parts} - {"null"}
    if kinds != set(TIMES) and (len(kinds) > 1 or "other" in kinds):
        mixed(node, kinds)
    typed = [part for part in parts if part.kind != "null"]
    if not typed:
        return list(parts)
    if "number" in kinds:
        parts = _singles(parts)
        typed = [part for part in parts if part.kind != "null"]
        shared = types.common((part.type, part.reach) for part in typed)
    else:
        shared = "TIMESTAMP" if kinds == set(TIMES) else typed[0].type
    return [part.tame.to(shared) for part in parts]


def _singles(parts: Sequence[Scalar]) -> list[Scalar]:
    """Constants among 32-bit numbers as such, like the database: the 0.1 of a FLOAT column is not that of a double."""
    if not _are_singles(parts):
        return list(parts)
    return [as_single(part.value, part.plain) if _is_exact(part) else part for part in parts]


def _are_singles(parts: Sequence[Scalar]) -> bool:
    numbers = [part for part in parts if part.kind == "number"]
    return any(part.single for part in numbers) and all(part.single or _is_exact(part) for part in numbers)


def _is_exact(part: Scalar) -> bool:
    return part.kind == "number" and part.literal and part.type != DOUBLE and bool(part.values)


def as_single(value: Any, plain: exp.Expr) -> Scalar:
    """Return the constant of 32 bits that is nearest to a number."""
    nearest = types.single(value)
    return replace(literal(nearest, DOUBLE, plain), single=True, values=(types.spelled(nearest),))


def _as_number(person: Scalar) -> Scalar:
    """Return the whole number that a person's text is; NULL where it is not one."""
    known: dict[str, Any] = {"type": BIGINT, "reach": types.REACH[BIGINT], "whole": True, "longest": 0}
    return replace(person, total=person.number or person.total, number=None, required=False, values=None, **known)


def built(
    node: exp.Expr,
    operands: Operands,
    *,
    sql_type: str,
    total: Callable[[exp.Expr], exp.Expr] | None = None,
    **known: Any,
) -> Scalar:
    """`node` over its operands, as written and total; what is known of it besides its type, and its fixed parts."""
    if sql_type == "BOOLEAN":
        operands = regrouped(operands, [part.anywhere for part in flat(operands)])
    parts = flat(operands)
    fixed = {name: known.pop(name) for name in list(known) if name in node.arg_types}

    def over(side: Callable[[Scalar], exp.Expr]) -> exp.Expr:
        arguments: dict[str, Any] = {
            name: [side(s).copy() for s in part] if isinstance(part, list) else side(part).copy()
            for name, part in operands.items()
        }
        return type(node)(**arguments, **{n: v.copy() if isinstance(v, exp.Expr) else v for n, v in fixed.items()})

    return Scalar(
        plain=over(lambda part: part.plain),
        total=(total or tried)(over(lambda part: part.total)),
        type=sql_type,
        columns=frozenset().union(*(part.columns for part in parts)),
        required=all(part.required or (part.literal and bool(part.values)) for part in parts),
        size=1 + sum(part.size for part in parts),
        made=sum(part.made for part in parts),
        operands=tuple(parts),
        **known,
    )


def flat(operands: Operands) -> list[Scalar]:
    """The operands in one list."""
    return [s for part in operands.values() for s in (part if isinstance(part, list) else [part])]


def fixed_number(node: exp.Expr, name: str, least: int, most: int) -> int | None:
    """The number written out as one part of a node, None without that part."""
    argument = node.args.get(name)
    if argument is None:
        return None
    sign, number = (-1, argument.this) if isinstance(argument, exp.Neg) else (1, argument)
    text = str(number.this) if isinstance(number, exp.Literal) and not number.is_string else ""
    if not (text.isdigit() and len(text) < 10) or not least <= sign * int(text) <= most:
        raise QueryRefused(f"{shown(node)} needs a whole number from {least} to {most:,} written out.")
    return sign * int(text)


def _condition(node: exp.Expr, operands: Operands, **fixed: Any) -> Scalar:
    """A truth value of operands that can be compared without a cast: it needs no TRY."""
    return built(node, operands, sql_type="BOOLEAN", values=TRUTH, total=_bracketed, **fixed)


def _bare(made: Scalar) -> exp.Expr:
    """A total form without its TRY, where every result fits its type."""
    return exp.paren(made.total.this.copy())


def _bracketed(expression: exp.Expr) -> exp.Expr:
    return exp.paren(expression, copy=False)


def tried(expression: exp.Expr) -> exp.Expr:
    """`expression`, NULL where it fails."""
    return exp.Try(this=expression)


def try_cast(expression: exp.Expr, sql_type: str) -> exp.Expr:
    return exp.TryCast(this=expression.copy(), to=exp.DataType.build(sql_type, dialect="duckdb"))


def regrouped(operands: Operands, parts: Sequence[Scalar]) -> Operands:
    """The operands' names over other scalars."""
    supply = iter(parts)
    return {n: [next(supply) for _ in part] if isinstance(part, list) else next(supply) for n, part in operands.items()}


def moment_of(text: Scalar, sql_type: str = "") -> Scalar:
    """Return a text in the query as the date or time it spells."""
    found = types.moment(str(text.value))
    if found is None:
        raise QueryRefused(
            f"{shown(text.plain)} is not a valid date. Write it as '2024-12-31', or as '2024-12-31 23:59:00'."
        )
    own = sql_type or ("TIMESTAMP" if hasattr(found, "hour") else "DATE")
    made = literal(found, own, text.plain)
    return replace(made, plain=made.total)

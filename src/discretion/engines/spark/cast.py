"""Casts in Spark that give what every other engine gives: numbers are rounded, and texts are read in plain spellings.

Spark cuts decimals off where SQL rounds, reads '1d' as a number and '2024' as a date, and writes 1e20 as 1.0E20.
"""

import re
from math import nextafter

from sqlglot import exp

from discretion.query.kind import FLOATS, NOTED, REACH, digits

SPARK_TYPES = {
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "HUGEINT": "DECIMAL(38, 0)",
    "FLOAT": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "TEXT": "STRING",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP_NTZ",
}
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_NUMBER = r"^[ \\t\\n\\r\\f\\x0B]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?[ \\t\\n\\r\\f\\x0B]*$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?)?$"
_EXACT_DIGITS = 15  # of a double, which its text has in every language
_NARROW = 18  # digits that fit 64 bits
_BELOW_HALF = repr(nextafter(0.5, 0))


class NoForm(Exception):
    """Spark has no total form of an operation that means the same as elsewhere."""


def type_of(node: exp.Expr) -> str:
    """Return the type that is noted for an expression, or follows from its parts; "" if it is not known."""
    if known := node.meta_get(NOTED, ""):
        return str(known)
    if isinstance(node, exp.Cast):
        return named(node.to)
    if isinstance(node, exp.Paren | exp.Try):
        return type_of(node.this)
    if isinstance(node, exp.Sum):
        scale = digits(found, 0)[1] if _DECIMAL.fullmatch(found := type_of(node.this)) else 0
        return f"DECIMAL(38,{scale})" if scale else "HUGEINT" if found else ""
    if isinstance(node, exp.Case):
        return type_of(node.args["ifs"][0].args["true"])
    if isinstance(node, exp.Literal):
        return "VARCHAR" if node.is_string else "BIGINT" if node.is_int else ""
    return ""


def named(target: exp.DataType) -> str:
    """Return the name of a type as query/kind.py has it."""
    text = target.sql("duckdb").replace(" ", "")
    return {"INT": "INTEGER", "TEXT": "VARCHAR", "INT128": "HUGEINT"}.get(text, text)


def spark_type(name: str) -> str:
    """Return a type in Spark's words."""
    if _DECIMAL.fullmatch(name):
        return name
    if name not in SPARK_TYPES:
        raise NoForm(f"type {name}")
    return SPARK_TYPES[name]


def cast(value: str, source: str, target: str, *, of_person: bool = False) -> str:
    """Return the SQL that casts `value` between two types of query/kind.py: NULL where it has no value there."""
    spark_type(target)  # refuses an unknown one
    if source == target and source not in REACH:  # a whole number may be held in fewer bits than it is known by
        return value
    if source in FLOATS:
        return _from_double(value, source, target, of_person)
    if source == "VARCHAR":
        return _from_text(value, target)
    if _DECIMAL.fullmatch(source) or source == "HUGEINT":
        return _from_decimal(value, "DECIMAL(38,0)" if source == "HUGEINT" else source, target)
    if source == "BOOLEAN":
        number = f"CAST({value} AS INT)"
        return value if target == "BOOLEAN" else _tried(value if target == "VARCHAR" else number, target)
    if source in REACH and target not in ("DATE", "TIMESTAMP"):
        return _tried(value, target)
    if source in ("DATE", "TIMESTAMP") and target in ("DATE", "TIMESTAMP", "VARCHAR"):
        return _tried(value, target)
    raise NoForm(f"the cast from {source or 'an unknown type'} to {target}")


def rounded(value: str) -> str:
    """Return a double rounded to the nearest whole one, halves away from zero."""
    near = f"RINT({value})"
    up = f"WHEN {value} - {near} = 0.5D AND {value} > 0D THEN {near} + 1D"
    down = f"WHEN {value} - {near} = -0.5D AND {value} < 0D THEN {near} - 1D"
    return f"CASE {up} {down} ELSE {near} END"


def whole_rounded(value: str, target: str, *, fits: bool) -> str:
    """Return a double rounded to a whole number of a type, halves away from zero; NULL if it does not fit.

    Adding the double just below a half and cutting off rounds every double correctly: k + 1/2 reaches k + 1, and what
    is below it does not. From 2^52 on every double is whole, and the sum is the double itself.
    """
    moved = f"{value} + SIGN({value}) * {_BELOW_HALF}D"
    if fits:
        return f"CAST({moved} AS {spark_type(target)})"
    low, high = f"> {-REACH[target] - 0.5!r}D", f"< {REACH[target] - 0.5!r}D"
    if target == "BIGINT":  # doubles of that size have no halves
        low, high = f">= {-float(REACH[target])!r}D", f"< {float(REACH[target])!r}D"
    return f"CASE WHEN {value} {low} AND {value} {high} THEN CAST({moved} AS {spark_type(target)}) END"


def whole_part(value: str, function: str) -> str:
    """Return FLOOR or CEIL of a double as a double; from 2^52 on every double is whole."""
    small = f"ABS({value}) < 4503599627370496D"
    return f"CASE WHEN {small} THEN CAST({function}({value}) AS DOUBLE) ELSE {value} END"


def _tried(value: str, target: str) -> str:
    return f"TRY_CAST({value} AS {spark_type(target)})"


def _from_double(value: str, source: str, target: str, of_person: bool) -> str:
    if target in FLOATS:
        return f"CAST({value} AS {spark_type(target)})"
    if target == "BOOLEAN":
        return f"({value} <> 0D)"
    if target in WHOLE:
        near = f"RINT({value})"  # halves to the even one
        fits = f"{near} >= {-REACH[target]}D AND {near} < {REACH[target]}D"
        return f"CASE WHEN {fits} THEN CAST({near} AS {spark_type(target)}) END"
    if target == "VARCHAR" and of_person:
        most = 9 if source != "DOUBLE" else _EXACT_DIGITS + 2
        plain = f"ABS({value}) >= 1e-3D AND ABS({value}) < 1e7D AND LENGTH(CAST({value} AS STRING)) <= {most}"
        return f"CASE WHEN {plain} THEN CAST({value} AS STRING) END"
    found = _DECIMAL.fullmatch(target)
    if found is None or int(found[1]) > _NARROW:
        raise NoForm(f"the cast from {source} to {target}")
    scale = int(found[2])
    steps = rounded(f"({value} * 1e{scale}D)" if scale else value)
    unscaled = f"CASE WHEN ABS({steps}) < 1e{found[1]}D THEN CAST({steps} AS BIGINT) END"
    one = f"CAST('{'0.' + '0' * (scale - 1) + '1' if scale else '1'}' AS DECIMAL({max(scale, 1)}, {scale}))"
    return f"CAST(CAST({unscaled} AS DECIMAL(19, 0)) * {one} AS {target})"


def _from_decimal(value: str, source: str, target: str) -> str:
    before, scale = digits(source, 0)
    if target in WHOLE:
        return _tried(f"ROUND({value}, 0)" if scale else value, target)
    if target == "BOOLEAN":
        return f"({value} <> 0)"
    if target == "VARCHAR" and before == 0:
        return f"REGEXP_REPLACE({_tried(value, target)}, '^(-?)0[.]', '$1.')"
    if target in FLOATS or target in ("VARCHAR", "HUGEINT") or _DECIMAL.fullmatch(target):
        return _tried(value, target)
    raise NoForm(f"the cast from {source} to {target}")


def _from_text(value: str, target: str) -> str:
    if target == "BOOLEAN":
        said = f"LOWER({value})"
        yes, no = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
        return f"CASE WHEN {said} IN {yes} THEN TRUE WHEN {said} IN {no} THEN FALSE END"
    pattern = {"DATE": _MOMENT, "TIMESTAMP": _MOMENT}.get(target, _NUMBER)
    if target == "DATE":
        read = f"TRY_CAST(SUBSTRING({value}, 1, 10) AS DATE)"
    elif target == "TIMESTAMP":
        read = _tried(value, target)
    else:
        text = f"TRIM(BOTH ' \\t\\n\\r\\f\\u000B' FROM {value})"
        read = f"TRY_CAST({text} AS {spark_type(target)})"
        if target in WHOLE:
            read = f"TRY_CAST(ROUND(TRY_CAST({text} AS DECIMAL(38, 19)), 0) AS {spark_type(target)})"
        if target in FLOATS:
            read = f"TRY_CAST({text} AS {spark_type(target)})"
    return f"CASE WHEN {value} RLIKE '{pattern}' THEN {read} END"

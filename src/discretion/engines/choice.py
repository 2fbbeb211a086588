"""Choices of rows and people in SQL that a secret key decides: the same for the same key and person."""

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from discretion.engines.column import Column, number

SECRET = "secret"  # marks a literal that must not be in a text that a database keeps
DIGITS = 6  # of a person's digest, for a choice of rows


def keyed_start() -> exp.Expr:
    """Return a keyed random number below n, the person's number of rows, from the digits of their digest."""
    return exp.Mod(this=exp.paren(keyed_number(), copy=False), expression=exp.column("n"))


def keyed_number() -> exp.Expr:
    """Return the whole number that the digits of a digest, column `digest`, stand for."""
    found: exp.Expr = number(0)
    for place in range(1, DIGITS + 1):
        digit = exp.Substring(this=exp.column("digest"), start=number(place), length=number(1))
        value = exp.StrPosition(this=exp.Literal.string("0123456789abcdef"), substr=digit)
        shifted = exp.Mul(this=exp.paren(found, copy=False), expression=number(16))
        found = exp.Sub(this=exp.Add(this=shifted, expression=value), expression=number(1))
    return found


def is_taken(most: int, start: exp.Expr) -> exp.Expr:
    """Return whether a row at its place among a person's n rows is one of the `most` that are kept."""
    behind = exp.paren(exp.Sub(this=exp.column("place"), expression=number(1)), copy=False)
    turn = exp.Add(this=exp.Mul(this=behind, expression=number(most)), expression=start)
    place = exp.Mod(this=exp.paren(turn, copy=False), expression=exp.column("n"))
    return exp.LT(this=place, expression=number(most))


def keyed_digest(key: str, person: exp.Expr, digits: int, label: str = "") -> exp.Expr:
    """Return the first digits of SHA-256(key:person); noise.keyed_coin is the same number."""
    secret = exp.Literal.string(f"{key}{label}:")
    secret.meta[SECRET] = True
    text = exp.DPipe(this=secret, expression=person, safe=True)
    digest = exp.SHA2(this=text, length=number(256))
    return exp.Substring(this=digest, start=number(1), length=number(digits))


def with_coins(
    source: exp.Select, who: exp.Expr, cohort: exp.Expr, columns: Sequence[Column], key: str
) -> tuple[exp.Select, pa.Table]:
    """Add one coin a person and column: 16 hexadecimal digits, which compare as texts like the numbers they are.

    The table, `thresholds`, has the last coin that is kept, by cohort.
    """
    sampled = {column.name: column.inclusion for column in columns if column.inclusion is not None}
    texts = {
        name: pa.array([f"{threshold - 1:016x}" if threshold > 0 else None for threshold in inclusion], pa.string())
        for name, inclusion in sampled.items()
    }
    cohorts = pa.array(range(len(next(iter(sampled.values())))), pa.int64())
    match = exp.EQ(this=cohort.copy(), expression=exp.column("cohort", table="thresholds"))
    limits = [exp.alias_(exp.column(name, table="thresholds"), f"{name}_last") for name in sampled]
    coins = [exp.alias_(keyed_digest(key, who.copy(), 16, name), f"{name}_coin") for name in sampled]
    source = source.join(exp.table_("thresholds"), on=match, join_type="left", copy=False)
    return source.select(*limits, *coins, copy=False), pa.table({"cohort": cohorts, **texts})

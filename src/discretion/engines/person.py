"""People and their preferences in SQL: how they are written, and when two of them are the same."""

import re

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from discretion.errors import InvalidPreference
from discretion.query.kind import FLOATS, INTEGERS, noted

_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def person_text(person: exp.Expr, sql_type: str) -> exp.Expr:
    """Return a person as text, the same in every table: 17850.0 and 17850.00 are 17850."""
    person = noted(person.copy(), sql_type)
    if sql_type == "VARCHAR":
        return person
    text: exp.Expr = exp.cast(person.copy(), "VARCHAR")
    if sql_type.startswith("DECIMAL") and not sql_type.endswith(",0)"):  # its text has all its decimals
        for sign in "0.":
            text = exp.Trim(this=text, expression=exp.Literal.string(sign), position="TRAILING")
    if sql_type not in FLOATS:
        return text
    small = exp.LT(this=exp.Abs(this=person.copy()), expression=exp.Literal.number(2**53))
    integral = exp.EQ(this=person.copy(), expression=exp.Floor(this=person.copy()))
    whole = exp.cast(exp.cast(person.copy(), "BIGINT"), "VARCHAR")
    return exp.Case(ifs=[exp.If(this=exp.and_(small, integral), true=whole)], default=text)


def preference(column: exp.Expr, sql_type: str) -> exp.Expr:
    """Return a raw preference: a double, or a name."""
    if sql_type in ("DOUBLE", "VARCHAR"):
        return column.copy()
    return exp.cast(noted(column.copy(), sql_type), "DOUBLE" if is_number(sql_type) else "VARCHAR")


def is_number(sql_type: str) -> bool:
    """Tell whether preferences of this type are numbers; all others are names."""
    return sql_type in (*INTEGERS, *FLOATS) or sql_type.startswith("DECIMAL")


def same_person(mine: exp.Expr, theirs: exp.Expr, my_type: str, their_type: str) -> tuple[exp.Expr, exp.Expr]:
    """Return the two sides to compare: raw columns if their types match, else both as text."""
    if my_type == their_type or (my_type in INTEGERS and their_type in INTEGERS):
        return mine.copy(), theirs.copy()
    return person_text(mine, my_type), person_text(theirs, their_type)


def among_texts(person: exp.Expr, sql_type: str, people: pa.Table) -> tuple[exp.Expr, pa.Table]:
    """Return what of `person` equals column `person` of these few people, who are known by their text, and the few.

    Whole numbers are compared as numbers: the few texts are read, instead of writing out millions of numbers. A text
    that no number is written as belongs to nobody.
    """
    if sql_type not in INTEGERS or sql_type in ("HUGEINT", "UBIGINT"):
        return person_text(person, sql_type), people
    texts = people["person"].to_pylist()
    read = [int(text) if _WHOLE.fullmatch(text) else None for text in texts]
    numbers = pa.array([one if one is not None and -(2**63) <= one < 2**63 else None for one in read], pa.int64())
    return person.copy(), people.set_column(people.schema.get_field_index("person"), "person", numbers)


def everybody(person: str, person_type: str, epsilon: str, epsilon_type: str) -> exp.Select:
    """Return the SELECT that gives everybody in `source` once: person, rows, and, if asked for, epsilon and several."""
    who = exp.column(person, quoted=True)
    select = exp.select(exp.alias_(person_text(who, person_type), "person"), "COUNT(*) AS rows").from_("source")
    if epsilon:
        chosen = preference(exp.column(epsilon, quoted=True), epsilon_type)
        least, most, stated = (kind(this=chosen.copy()) for kind in (exp.Min, exp.Max, exp.Count))
        some = exp.In(this=stated, expressions=[exp.Literal.number(0), exp.Count(this=exp.Star())])
        several = exp.or_(exp.NullSafeNEQ(this=least, expression=most), exp.Not(this=some))
        select = select.select(exp.alias_(least.copy(), "epsilon"), exp.alias_(several, "several"))
    return select.where(exp.Not(this=exp.Is(this=who, expression=exp.Null()))).group_by(who)


def without_doubt(people: pa.Table, epsilon: str) -> pa.Table:
    """Return what `everybody` gave; refuse a person whose rows carry several preferences."""
    if not epsilon:
        return people
    if pc.any(people["several"]).as_py():
        raise InvalidPreference(
            f"Somebody's rows carry different values of {epsilon!r}. Give each person one preference."
        )
    return people.drop_columns(["several"])

"""Survey: statements that count what a steward should know about a table, and what saves work in answering."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from discretion.declaration.span import ends
from discretion.declaration.table import Table
from discretion.engines.column import not_null, number
from discretion.engines.person import person_text
from discretion.query.kind import constant, noted

PART = 1 << 20  # rows looked at together: many enough to be quick, few enough to stay small
Counts = dict[tuple[str, str], int]  # (measure, column or key) -> count


def surveys(table: Table, register: Mapping[str, str], person: str) -> Iterator[tuple[list[tuple[str, str]], exp.Expr]]:
    """Return what is counted about rows and about people, and the SELECT that counts it.

    `register` has the column types of a separate register.
    """
    rows = dict(_row_measures(table))
    yield [*rows], _counted(rows.values()).from_("protected")
    people = dict(_people_measures(table, register, person))
    who = exp.column(table.person, quoted=True)
    each = exp.select(exp.alias_(who, "who"), "COUNT(*) AS n").from_("protected")
    if table.epsilon:
        each = each.select(exp.alias_(exp.Count(this=exp.column(table.epsilon, quoted=True)), "chosen"))
    yield [*people], _counted(people.values()).from_(each.where(not_null(who)).group_by(who.copy()).subquery("people"))


def keys_without_rows(table: Table, values: Mapping[str, set[Any]]) -> Counts:
    """Return the declared keys that no row has."""
    return {
        ("key_without_rows", f"{column} = {'NULL' if key is None else key}"): 1
        for column, keys in table.keys.items()
        for key in keys
        if (None if key is None else _as_text(key)) not in values[column]
    }


def distinct_texts(table: Table, column: str) -> exp.Select:
    """Return the SELECT that finds which declared keys there are."""
    text = _text(table, column)
    found = exp.select(exp.alias_(text, "value")).distinct().from_("protected")
    return found.where(_known(table, column, text))


def owned_rows(person: exp.Expr) -> exp.Select:
    """Return the SELECT that counts rows, and those with an owner."""
    return exp.select("COUNT(*) AS rows", exp.alias_(exp.Count(this=person.copy()), "owned")).from_("protected")


def busy_people(person: exp.Expr, most: int, rows: int, part: int = PART) -> Iterator[exp.Select]:
    """Return SELECTs that count who has more than `most` rows, the people of about `part` rows each.

    A table of everybody can be many times as large as the source.
    """
    parts = 1 + rows // part
    digest = exp.Anonymous(this="HASH", expressions=[person.copy()])
    for place in range(parts):
        mine = exp.EQ(this=exp.Mod(this=digest.copy(), expression=number(parts)), expression=number(place))
        these = listed_busy(person, most)
        these = these if parts == 1 else these.where(mine, copy=False)
        yield exp.select("COUNT(*) AS busy").from_(these.subquery("people"))


def listed_busy(person: exp.Expr, most: int) -> exp.Select:
    """Return the SELECT that lists everybody who has more than `most` rows, as column p, with their number, n."""
    rows = exp.Count(this=exp.Star())
    these = exp.select(exp.alias_(person.copy(), "p"), exp.alias_(rows, "n")).from_("protected").where(not_null(person))
    return these.group_by(person.copy()).having(exp.GT(this=rows.copy(), expression=number(most)))


def _counted(conditions: Any) -> exp.Select:
    """Return a SELECT of how many rows meet each condition."""
    whole = exp.Count(this=exp.Star())
    filtered = (exp.Filter(this=whole.copy(), expression=exp.Where(this=condition)) for condition in conditions)
    return exp.select(*(exp.alias_(count, f"c{place}") for place, count in enumerate(filtered)))


def _row_measures(table: Table) -> Iterator[tuple[tuple[str, str], exp.Expr]]:
    yield ("no_person", table.person), exp.column(table.person, quoted=True).is_(exp.null())
    for column, (low, high) in table.bounds.items():
        own = noted(exp.column(column, quoted=True), table.columns[column])
        value = exp.TryCast(this=own, to=exp.DataType.build("DOUBLE"))
        finite = exp.Anonymous(this="ISFINITE", expressions=[value])  # an infinity is missing, not clamped
        outside = exp.or_(value < number(float(low)), value > number(float(high)))
        yield ("outside_bounds", column), exp.and_(finite, outside)
    for column, pair in table.spans.items():
        found = "DATE" if table.columns[column].upper() == "DATE" else "TIMESTAMP"
        own = noted(exp.column(column, quoted=True), table.columns[column])
        value = exp.TryCast(this=own, to=exp.DataType.build(found))
        first, last = (constant(end, found) for end in ends(pair, found))
        yield ("outside_span", column), exp.or_(value < first, value > last)
    for column in table.keys:
        yield ("rows_without_key", column), exp.Not(this=_known(table, column, _text(table, column)))


def _people_measures(
    table: Table, register: Mapping[str, str], person: str
) -> Iterator[tuple[tuple[str, str], exp.Expr]]:
    yield ("above_rows_per_person", table.person), exp.column("n") > number(table.rows_per_person)
    if table.epsilon:
        yield ("no_preference", table.epsilon), exp.column("chosen").eq(0)
    if register:
        theirs = exp.column(person, quoted=True)
        known = exp.select(person_text(theirs, register[person])).from_("register").where(not_null(theirs))
        mine = person_text(exp.column("who"), table.columns[table.person])
        yield ("not_in_register", table.person), exp.Not(this=exp.In(this=mine, query=known.subquery()))


def _text(table: Table, column: str) -> exp.Expr:
    return exp.cast(noted(exp.column(column, quoted=True), table.columns[column]), "VARCHAR")


def _known(table: Table, column: str, text: exp.Expr) -> exp.Expr:
    """Return the condition that a value is a declared key; missing values are one if NULL is declared."""
    listed = exp.In(
        this=text.copy(),
        expressions=[exp.Literal.string(_as_text(key)) for key in table.keys[column] if key is not None],
    )
    known = exp.paren(listed) if listed.expressions else exp.false()
    return exp.paren(exp.or_(text.copy().is_(exp.null()), known)) if None in table.keys[column] else known


def _as_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)

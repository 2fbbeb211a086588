"""Scalar: a row expression that can be run on any row, and what is publicly known of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Any, NoReturn

from sqlglot import exp

from discretion.declaration.span import Ends, ends
from discretion.declaration.table import Table
from discretion.errors import QueryRefused, did_you_mean
from discretion.query import kind as types
from discretion.query.kind import BIGINT, DOUBLE, HUGEINT, Kind

Side = Fraction | None  # one end of an interval, where it is known
TRUTH = (False, True)

ROW = "t"  # what the engine's SQL calls the protected table
MOST_VALUES = 10_000
MOST_NODES = 20_000  # a check that a value is finite repeats the value; nested often enough that would explode
MOST_TEXT = 10_000  # characters of one text that a query makes
_BOUNDED = "bounded"  # marks the CASE of a value that is NULL outside declared bounds
DEEPEST = 100  # nested levels of a total form; writing one out takes Python up to five calls a level
_SMALLEST, _LARGEST = Fraction(1, 10**280), Fraction(10**280)  # of an interval that doubles can carry
# What sqlglot notes about a dialect's habits; everything else that a node carries must be known to its rule.
_HABITS = {"safe", "typed", "big_int", "coalesce", "ignore_nulls", "date_part_boundary", "is_string"}


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """One row expression, as written (over the table's own columns) and as it is run: total."""

    plain: exp.Expr
    total: exp.Expr  # never raises: what has no answer is NULL
    type: str  # of `total`, see discretion.query.kind
    reach: int = 0  # the largest absolute value a whole number of its type can have
    narrow: bool = False  # the database may hold it in fewer than 64 bits
    wild: bool = False  # a double that may be NaN or infinite, or a time that may be outside the years 1 to 9999
    single: bool = False  # a double that stands for a 32-bit FLOAT, and is compared as one
    whole: bool = False  # a number without fraction
    low: Side = None  # the interval its values lie in, by interval arithmetic over declared bounds
    high: Side = None
    values: tuple[Any, ...] | None = None  # every value it can take other than NULL, where that is known
    literal: bool = False  # a constant: `values` has its value, or nothing for NULL
    columns: frozenset[str] = frozenset()  # of the protected table
    required: bool = False  # NULL only where a column is that the steward declared never NULL
    longest: int = 0  # characters of a text
    made: int = 0  # characters of all texts made on the way, which a row's memory holds
    size: int = 1
    operands: tuple["Scalar", ...] = ()  # what it is computed from
    span: Ends | None = None  # of a date or time: its declared bounds
    number: exp.Expr | None = None  # the number that a person's text is, NULL where another text is written so

    def __post_init__(self) -> None:
        self.total.meta[types.NOTED] = self.type
        if self.size > MOST_NODES:
            raise QueryRefused("An expression in this query is nested too deeply. Write it with fewer levels.")
        if self.longest > MOST_TEXT:
            raise QueryRefused(
                f"{shown(self.plain)} can make a text of {self.longest:,} characters; at most {MOST_TEXT:,} are "
                "allowed. Join fewer texts, or cut them first with LEFT(text, 20)."
            )
        sides = [side for side in (self.low, self.high) if side is not None]
        if any(abs(side) > _LARGEST or 0 < abs(side) < _SMALLEST for side in sides):
            object.__setattr__(self, "low", None)  # no interval that doubles could carry
            object.__setattr__(self, "high", None)

    @property
    def kind(self) -> Kind:
        """Return whether it is a number, a text and so on."""
        return "other" if self.type == "other" else types.kind_of(self.type)

    @property
    def value(self) -> Any:
        """The value of a constant: exact numbers exactly, None for NULL."""
        if not self.values:
            return None
        exact = self.kind == "number" and self.type != DOUBLE
        return self.low if exact and self.low is not None else self.values[0]

    @property
    def tame(self) -> "Scalar":
        """The same, with NULL instead of NaN, infinities and times outside the years 1 to 9999."""
        if not self.wild:
            return self
        return replace(self, total=checked(self.total, self.type), wild=False, size=2 * self.size, made=2 * self.made)

    def to(self, sql_type: str, *, exact: bool = False) -> "Scalar":
        """The same value in a type that can hold it; `exact`: in all 64 bits of a BIGINT."""
        if not sql_type or (self.type == sql_type and not (exact and self.narrow and not self.literal)):
            return self
        if self.literal:
            value = as_type(self.value, sql_type)
            values = (value,) if isinstance(value, date) else self.values  # a date among times is a time
            return replace(self, total=types.constant(value, sql_type), type=sql_type, values=values)
        total = exp.TryCast(this=self.total.copy(), to=exp.DataType.build(sql_type, dialect="duckdb"))
        return replace(self, total=total, type=sql_type, narrow=False, size=self.size + 1)

    @property
    def within(self) -> "Scalar":
        """The same, with NULL instead of dates and times outside the declared bounds, which are left out."""
        if self.span is None:
            return self
        return self.unless(between(self.total, self.total, *self.span, self.type))

    def unless(self, bounded: exp.Case) -> "Scalar":
        """The same as `bounded`, a CASE of it alone: NULL where it lies outside bounds, but in conditions."""
        bounded.meta[_BOUNDED] = True
        return replace(self, total=bounded, required=False, size=2 * self.size)

    @property
    def anywhere(self) -> "Scalar":
        """The same, also where dates and times lie outside the declared bounds: a condition needs no bounds."""
        if not self.bounded:
            return self
        return replace(self, total=self.total.copy().transform(_unbounded))

    @property
    def bounded(self) -> bool:
        """Tell whether it is NULL where a date or time lies outside its declared bounds."""
        return self.type != "BOOLEAN" and any(
            node.meta_get(_BOUNDED) for node in nodes(self.total) if type(node) is exp.Case
        )

    def parts(self, seen: set[int]) -> Iterator["Scalar"]:
        """Give everything it is computed from that is computed itself, and itself, each once.

        AND, OR and NOT of conditions that were computed cannot fail: they are left out.
        """
        if self.operands and id(self) not in seen:
            seen.add(id(self))
            for operand in self.operands:
                yield from operand.parts(seen)
            if not isinstance(self.plain, (exp.And, exp.Or, exp.Not)):
                yield self

    def domain(self) -> tuple[Any, ...] | None:
        """Every value it can take other than NULL, if that is public and there are at most MOST_VALUES."""
        if self.values is not None or not self.whole or self.low is None or self.high is None:
            return self.values
        low, high = ceil(self.low), floor(self.high)
        return tuple(range(low, high + 1)) if high - low < MOST_VALUES else None


def _unbounded(node: exp.Expr) -> exp.Expr:
    return node.args["ifs"][0].args["true"].transform(_unbounded) if node.meta_get(_BOUNDED) else node


def pieces(scalars: Iterable[Scalar]) -> tuple[exp.Expr, ...]:
    """Return the total form of every operation that `scalars` are made of, each once."""
    seen: set[int] = set()
    return tuple(part.total for one in scalars for part in one.parts(seen))


def literal(value: Any, sql_type: str, plain: exp.Expr) -> Scalar:
    """A constant, written `plain` in the query."""
    value = as_type(value, sql_type)
    number = value is not None and types.kind_of(sql_type) == "number"
    side = Fraction(value) if number else None
    shown_value = value if not isinstance(value, Fraction) else int(value) if value.denominator == 1 else float(value)
    return Scalar(
        plain=plain,
        total=types.constant(value, sql_type),
        type=sql_type,
        reach=ceil(abs(side)) if side is not None else 0,
        whole=sql_type in (BIGINT, HUGEINT),
        low=side,
        high=side,
        values=() if value is None else (shown_value,),
        literal=True,
        longest=len(value) if isinstance(value, str) else 0,
    )


def as_type(value: Any, sql_type: str) -> Any:
    """A constant as a Python value of this type; None where it has no such value."""
    if value is None:
        return None
    if sql_type == "TIMESTAMP" and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if sql_type == "DATE" and isinstance(value, datetime):
        return value.date()
    if sql_type == DOUBLE:
        return float(value) if abs(value) < _LARGEST and isfinite(value) else None
    if isinstance(value, float):
        value = Fraction(repr(value)) if isfinite(value) else None
    if value is None or types.kind_of(sql_type) != "number":
        return value
    return value if types.fits(Fraction(value), sql_type) else None


@dataclass(frozen=True)
class Scope:
    """Says what names mean: alias of a relation -> column -> expression, all names in lower case."""

    relations: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)

    def find(self, column: exp.Column) -> Scalar:
        """The expression a column stands for."""
        only(column, "this", "table")
        name, relation = column.name.lower(), column.table.lower()
        if relation and relation not in self.relations:
            raise QueryRefused(f"{column.table!r} is no table of this query; it has {listed(self.relations)}.")
        within = [columns for alias, columns in self.relations.items() if relation in ("", alias)]
        found = [columns[name] for columns in within if name in columns]
        if not found:
            known = {_spelled(name, found) for columns in within for name, found in columns.items()}
            hint = did_you_mean(column.name, known)
            if column.this.args.get("quoted"):
                hint += f" A text stands in single quotes: {exp.Literal.string(column.name).sql('duckdb')}."
            raise QueryRefused(f"There is no column {column.name!r}; there is {listed(known)}.{hint}")
        if len(found) > 1:
            raise QueryRefused(f"Column {column.name!r} is in several tables: write table.{column.name}.")
        bare = isinstance(found[0].plain, (exp.Column, exp.Literal, exp.Paren, exp.Boolean, exp.Null))
        return found[0] if bare else replace(found[0], plain=exp.Paren(this=found[0].plain.copy()))


def _spelled(name: str, found: Scalar) -> str:
    """A column as it can be written: in the letters of its table, in quotes where it needs them."""
    own = found.plain.name if isinstance(found.plain, exp.Column) and found.plain.name.lower() == name else name
    return exp.to_identifier(own, quoted=not own.isidentifier()).sql("duckdb")


def columns_of(table: Table, *, qualified: bool = False, relation: str = ROW) -> dict[str, Scalar]:
    """The columns of a protected table, with all that was declared about them."""
    return {name.lower(): _declared(table, name, table.name if qualified else None, relation) for name in table.columns}


def column(name: str, sql_type: str, relation: str, shown_as: str | None, longest: int) -> Scalar:
    """A column of any relation: as the analyst sees it, and total."""
    found, own = _type(sql_type.upper()), sql_type.upper()
    total: exp.Expr = types.noted(exp.column(name, table=relation, quoted=True), own)
    if found == "VARCHAR":
        total = _cut(total if own == "VARCHAR" else exp.cast(total, "VARCHAR"), longest)
    elif found not in (own, BIGINT, "other") and not own.startswith("DECIMAL"):
        total = exp.TryCast(this=total, to=exp.DataType.build(found, dialect="duckdb"))
    if found in (DOUBLE, "DATE", "TIMESTAMP"):
        total = checked(total, found)
    return Scalar(
        plain=exp.column(name, table=shown_as, quoted=not name.isidentifier()),
        total=total,
        type=found,
        reach=types.REACH.get(own, 0),
        narrow=found == BIGINT and own != BIGINT,
        single=own in types.SINGLES,
        whole=own in types.REACH,
        values=TRUTH if found == "BOOLEAN" else None,
        longest=longest if found == "VARCHAR" else 0,
        made=longest if found == "VARCHAR" else 0,
    )


def finite(expression: exp.Expr) -> exp.Case:
    """`expression`, NULL where it is NaN or infinite."""
    check = exp.Anonymous(this="ISFINITE", expressions=[expression.copy()])
    return exp.Case(ifs=[exp.If(this=check, true=expression.copy())])


def checked(expression: exp.Expr, sql_type: str) -> exp.Case:
    """A double, NULL where it is not finite; a time, NULL outside the years 1 to 9999, where functions can fail."""
    if sql_type == DOUBLE:
        return finite(expression)
    last = types.LAST if sql_type == "DATE" else datetime(9999, 12, 31, 23, 59, 59, 999999)
    first: date = types.FIRST if sql_type == "DATE" else datetime(1, 1, 1)
    return between(expression, expression, first, last, sql_type)


def between(expression: exp.Expr, moment: exp.Expr, first: date, last: date, sql_type: str) -> exp.Case:
    """`expression`, NULL where a date or time of this type does not lie from `first` to `last`."""
    low, high = (types.constant(as_type(end, sql_type), sql_type) for end in (first, last))
    check = exp.Between(this=moment.copy(), low=low, high=high)
    return exp.Case(ifs=[exp.If(this=check, true=expression.copy())])


def _cut(text: exp.Expr, longest: int) -> exp.Case:
    """The first characters of a text; one that is not long even in bytes is not copied."""
    most = exp.Literal.number(longest)
    short = exp.LTE(this=exp.Anonymous(this="STRLEN", expressions=[text.copy()]), expression=most)
    return exp.Case(
        ifs=[exp.If(this=short, true=text.copy())], default=exp.Left(this=text.copy(), expression=most.copy())
    )


def nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Give a tree and every node below it, in the order of a text; quicker than the walk of sqlglot."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for part in reversed(node.args.values()):
            if isinstance(part, exp.Expr):
                left.append(part)
            elif type(part) is list:
                left += [one for one in reversed(part) if isinstance(one, exp.Expr)]


def refuse_deep(trees: Iterable[exp.Expr], most: int = DEEPEST) -> None:
    """Refuse trees that Python could not walk within its limit of nested calls."""
    for tree in trees:
        level, nodes = 0, [tree]
        while nodes:
            level += 1
            if level > most:
                raise QueryRefused(
                    f"This query is nested more than {most} levels deep, where a sum has one for every term. Write it "
                    "with fewer levels or terms."
                )
            nodes = [child for node in nodes for child in node.iter_expressions()]


def only(node: exp.Expr, *known: str) -> None:
    """Refuse a node with any part that is not known: nothing is skipped in silence."""
    for name, value in node.args.items():
        if value and name not in known and name not in _HABITS:
            raise QueryRefused(f"{name.strip('_').upper()} in {shown(node)} is not allowed. Leave it out.")


def shown(node: exp.Expr) -> str:
    """A construct as the analyst wrote it, cut to a readable length."""
    text = node.sql("duckdb", comments=False)
    return text if len(text) <= 60 else text[:57] + "..."


def unbracketed(node: exp.Expr) -> exp.Expr:
    """An expression without outer brackets."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def within(node: exp.Expr, plain: exp.Expr) -> exp.Expr:
    """Return what to write in the place of `node`: in brackets, where it is a part of something that could split it."""
    is_whole = node.parent is None or isinstance(plain, (exp.Column, exp.Paren, exp.Placeholder, exp.Case))
    return plain.copy() if is_whole else exp.Paren(this=plain.copy())


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(sorted(names)) or "none"


def mixed(node: exp.Expr, kinds: Iterable[str]) -> NoReturn:
    """Refuse an operation between kinds that do not fit."""
    unsupported = " (a type that is not supported)" if "other" in kinds else ""
    raise QueryRefused(
        f"{shown(node)} mixes {' and '.join(sorted(kinds))}{unsupported}. CAST one side to the type of the other."
    )


def refuse_time_between(node: exp.Expr) -> NoReturn:
    """Refuse the difference of two times, which is an interval, and say how to count its days."""
    days = f"DATE_DIFF('day', {shown(node.expression)}, {shown(node.this)})"
    raise QueryRefused(f"{shown(node)} is the time between two timestamps. Count its days, hours or the like: {days}.")


def _type(sql_type: str) -> str:
    """The type a column's values have in row expressions."""
    if sql_type in types.REACH:
        return BIGINT if types.REACH[sql_type] <= types.REACH[BIGINT] else HUGEINT
    if sql_type.startswith("DECIMAL"):
        return sql_type
    if sql_type in types.FLOATS:
        return DOUBLE
    if sql_type in ("VARCHAR", "UUID") or sql_type.startswith("ENUM"):
        return "VARCHAR"
    if sql_type in types.STORED_TIMES:
        return "TIMESTAMP"
    return sql_type if sql_type in ("BOOLEAN", "DATE") else "other"


def _declared(table: Table, name: str, shown_as: str | None, relation: str) -> Scalar:
    bare = column(name, table.columns[name], relation, shown_as, table.longest_text)
    low, high = table.bounds.get(name, (None, None)) if bare.kind == "number" else (None, None)
    return replace(
        bare,
        low=None if low is None else Fraction(str(low)),
        high=None if high is None else Fraction(str(high)),
        values=table.keys.get(name, bare.values),
        columns=frozenset({name}),
        required=name in table.required,
        span=ends(table.spans[name], bare.type) if name in table.spans else None,
        number=_number(bare.total) if name == table.person and table.columns[name] == "VARCHAR" else None,
    )


def _number(text: exp.Expr) -> exp.Expr:
    """Return the whole number that a text is; NULL if that number is written in another way: 007 is not 7."""
    number = exp.TryCast(this=text.copy(), to=exp.DataType.build("BIGINT"))
    same = exp.EQ(this=exp.cast(number.copy(), "VARCHAR"), expression=text.copy())
    return exp.Case(ifs=[exp.If(this=same, true=number)])

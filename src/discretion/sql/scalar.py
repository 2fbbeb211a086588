"""Scalar: a row expression that can be run on any row, and what is publicly known of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal, NoReturn

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.table import Table

Kind = Literal["number", "text", "boolean", "date", "timestamp", "null", "other"]
Storage = Literal["", "integer", "float", "wide"]  # numbers: up to 64 bits, doubles, and all others
Side = Fraction | None  # one end of an interval, where it is known
TRUTH = (False, True)

ROW = "t"  # what the engine's SQL calls the protected table
MOST_VALUES = 10_000
MOST_NODES = 20_000  # making doubles finite repeats them; nested often enough that would explode
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
# What sqlglot notes about a dialect's habits; everything else that a node carries must be known to its rule.
_HABITS = {"safe", "typed", "big_int", "coalesce", "ignore_nulls", "date_part_boundary", "is_string"}


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """One row expression, as written (over the table's own columns) and as it is run: total."""

    plain: exp.Expr
    total: exp.Expr  # never raises: what has no answer is NULL
    kind: Kind
    storage: Storage = ""
    wild: bool = False  # a double that may be NaN or infinite
    whole: bool = False  # a number without fraction
    low: Side = None  # the interval its values lie in, by interval arithmetic over declared bounds
    high: Side = None
    values: tuple[Any, ...] | None = None  # every value it can take beside NULL, where that is known
    columns: frozenset[str] = frozenset()  # of the protected table
    required: bool = False  # NULL only where the steward declared there is none
    size: int = 1
    number: exp.Expr | None = None  # the number that a person's text is, NULL where another text is written so

    def __post_init__(self) -> None:
        if self.size > MOST_NODES:
            raise QueryRefused("An expression in this query is nested too deeply. Write it with fewer levels.")

    @property
    def literal(self) -> bool:
        """Whether it is a value written out in the query."""
        return self.size == 1 and self.plain.find(exp.Column) is None  # (column) is none either

    @property
    def tame(self) -> "Scalar":
        """The same, NaN and infinities as NULL."""
        return replace(self, total=finite(self.total), wild=False, size=2 * self.size) if self.wild else self

    def domain(self) -> tuple[Any, ...] | None:
        """Every value it can take beside NULL, if that is public and there are at most MOST_VALUES."""
        if self.values is not None or not self.whole or self.low is None or self.high is None:
            return self.values
        low, high = ceil(self.low), floor(self.high)
        return tuple(range(low, high + 1)) if high - low < MOST_VALUES else None


@dataclass(frozen=True)
class Scope:
    """What names mean: alias of a relation -> column -> expression, all names in lower case."""

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
            raise QueryRefused(f"There is no column {column.name!r}; there is {listed(known)}.")
        if len(found) > 1:
            raise QueryRefused(f"Column {column.name!r} is in several tables: write table.{column.name}.")
        bare = isinstance(found[0].plain, (exp.Column, exp.Literal, exp.Paren, exp.Boolean, exp.Null))
        return found[0] if bare else replace(found[0], plain=exp.Paren(this=found[0].plain.copy()))


def _spelled(name: str, found: Scalar) -> str:
    """A column as it can be written: in the letters of its table, in quotes where it needs them."""
    own = found.plain.name if isinstance(found.plain, exp.Column) and found.plain.name.lower() == name else name
    return exp.to_identifier(own, quoted=not own.isidentifier()).sql("duckdb")


def columns_of(table: Table, *, qualified: bool = False) -> dict[str, Scalar]:
    """The columns of a protected table, with all that was declared about them."""
    return {name.lower(): _declared(table, name, table.name if qualified else None) for name in table.columns}


def column(name: str, sql_type: str, relation: str, shown_as: str | None) -> Scalar:
    """A column of any relation: as the analyst sees it, and total."""
    kind, storage = _kind(sql_type.upper())
    total: exp.Expr = exp.column(name, table=relation, quoted=True)
    if storage == "float":
        total = finite(total)
    elif kind == "text" and sql_type.upper() != "VARCHAR":
        total = exp.cast(total, "VARCHAR")
    elif kind == "timestamp" and sql_type.upper() != "TIMESTAMP":
        total = exp.TryCast(this=total, to=exp.DataType.build("TIMESTAMP"))
    return Scalar(
        plain=exp.column(name, table=shown_as, quoted=not name.isidentifier()),
        total=total,
        kind=kind,
        storage=storage,
        whole=storage == "integer" or sql_type.upper() in _WIDE,
        values=TRUTH if kind == "boolean" else None,
    )


def finite(expression: exp.Expr) -> exp.Case:
    """`expression`, NULL where it is NaN or infinite."""
    check = exp.Anonymous(this="ISFINITE", expressions=[expression.copy()])
    return exp.Case(ifs=[exp.If(this=check, true=expression.copy())])


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


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(sorted(names)) or "none"


def mixed(node: exp.Expr, kinds: Iterable[str]) -> NoReturn:
    """Refuse an operation between kinds that do not fit."""
    unsupported = " (a type that is not supported)" if "other" in kinds else ""
    raise QueryRefused(
        f"{shown(node)} mixes {' and '.join(sorted(kinds))}{unsupported}. CAST one side to the type of the other."
    )


def _kind(sql_type: str) -> tuple[Kind, Storage]:
    if sql_type in _INTEGERS:
        return "number", "integer"
    if sql_type in _WIDE or sql_type.startswith("DECIMAL"):
        return "number", "wide"
    if sql_type in ("DOUBLE", "FLOAT", "REAL"):
        return "number", "float"
    if sql_type in ("VARCHAR", "UUID") or sql_type.startswith("ENUM"):
        return "text", ""
    if sql_type in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        return "timestamp", ""
    simple: dict[str, Kind] = {"BOOLEAN": "boolean", "DATE": "date"}
    return simple.get(sql_type, "other"), ""


def _declared(table: Table, name: str, shown_as: str | None) -> Scalar:
    bare = column(name, table.columns[name], ROW, shown_as)
    low, high = table.bounds.get(name, (None, None)) if bare.kind == "number" else (None, None)
    return replace(
        bare,
        low=None if low is None else Fraction(str(low)),
        high=None if high is None else Fraction(str(high)),
        values=table.keys.get(name, bare.values),
        columns=frozenset({name}),
        required=name in table.required,
        number=_number(bare.total) if name == table.person and table.columns[name] == "VARCHAR" else None,
    )


def _number(text: exp.Expr) -> exp.Expr:
    """Return the whole number that a text is; NULL if that number is written in another way: 007 is not 7."""
    number = exp.TryCast(this=text.copy(), to=exp.DataType.build("BIGINT"))
    same = exp.EQ(this=exp.cast(number.copy(), "VARCHAR"), expression=text.copy())
    return exp.Case(ifs=[exp.If(this=same, true=number)])

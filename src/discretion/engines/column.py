"""Columns of values on the grid: what each measure is about, and the whole numbers counted from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from sys import float_info
from typing import Any

from sqlglot import exp

from discretion.query import Asked, Key
from discretion.query.kind import NOTED, noted
from discretion.query.scalar import finite
from discretion.statistics import Aggregate, Measure

LARGEST = float_info.max
FITS, MOST = "fits", "most"  # notes: a number is known to fit its type; the largest absolute value of what is summed
# Parsed once: a statement has many casts.
DOUBLE, _INTEGER, _BIGINT, _HUGEINT = map(exp.DataType.build, ("DOUBLE", "INTEGER", "BIGINT", "HUGEINT"))


@dataclass(frozen=True, kw_only=True)
class Column:
    """One value of every row, and what the measures over it need."""

    name: str
    asked: Asked
    inclusion: tuple[int, ...] | None
    histogram: bool
    moments: bool
    squares: bool

    @property
    def bare(self) -> bool:
        """Every row counts: no value is needed."""
        return self.asked.value is None and self.inclusion is None and self.asked.aggregate.kind != "people"

    @property
    def raw(self) -> exp.Expr:
        """The value of a row before it is put on the grid; 1 where every row counts."""
        if self.asked.value is None:
            return number(1)
        return unchecked(self.asked.value) if self.asked.categories is None else self.asked.value.copy()

    @property
    def categories(self) -> Key | None:
        """The values whose numbers are counted; their table is joined by this column."""
        known = self.asked.categories
        return None if known is None else replace(known, name=self.name)


def columns_of(asked: Sequence[Asked], measures: Sequence[Measure]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns that measures are about, those over the same values only once; and the column of each measure."""
    shapes = [_shape(*pair, number) for number, pair in enumerate(zip(asked, measures, strict=True))]
    distinct = {shape: f"v{place}" for place, shape in enumerate(dict.fromkeys(shapes))}
    columns = []
    for shape, name in distinct.items():
        over = [pair for pair, its in zip(zip(asked, measures, strict=True), shapes, strict=True) if its == shape]
        moments = [measure for _, measure in over if not measure.histogram]
        column = Column(
            name=name,
            asked=over[0][0],
            inclusion=over[0][1].inclusion,
            histogram=len(moments) < len(over),
            moments=bool(moments),
            squares=any(measure.aggregate.kind == "variance" for measure in moments),
        )
        columns.append(column)
    return tuple(columns), tuple(distinct[shape] for shape in shapes)


def _shape(asked: Asked, measure: Measure, number: int) -> Any:
    """Return what measures must have in common to share a column; one that samples shares its coins with none.

    Losses add up over releases whose coins are independent. With a common coin somebody kept by it would be in both
    answers: ln(1 + π(e^2t − 1)) is more than 2·ln(1 + π(e^t − 1)).
    """
    one = asked.aggregate
    grid = (one.lower, one.upper, one.origin, one.step, one.kind if one.kind in ("count", "people") else "")
    alone = None if measure.inclusion is None else number
    known = asked.categories and (asked.categories.sql_type, asked.categories.values)
    return asked.value and asked.value.sql("duckdb"), asked.fill, grid, alone, known


def stepped(column: Column) -> exp.Expr:
    """A value clamped and put on the grid; where people are sampled, only if the person's coin says so."""
    one, value = column.asked.aggregate, exp.column(column.name)
    stepped: exp.Expr = value
    if one.kind == "people":
        stepped = exp.Case(ifs=[exp.If(this=not_null(value), true=exp.column("p"))])
    elif one.kind != "count":
        stepped = clamped(one, exp.Cast(this=_known(column), to=DOUBLE.copy()))
        if column.asked.fill is not None:
            stepped = exp.Coalesce(this=stepped, expressions=[number(column.asked.fill)])
    if column.inclusion is None:
        return stepped
    kept = exp.LTE(this=exp.column(f"{column.name}_coin"), expression=exp.column(f"{column.name}_last"))
    return exp.Case(ifs=[exp.If(this=kept, true=stepped)])


def _known(column: Column) -> exp.Expr:
    """A value and its type; of a category, its number."""
    if column.categories is not None:
        return noted(place_of(column.categories), "BIGINT")
    value = exp.column(column.name)
    return value if column.asked.value is None else noted(value, column.asked.value.meta_get(NOTED, ""))


def place_of(key: Key) -> exp.Expr:
    """The number of a value among those of a key, in the table of these that is joined."""
    return exp.column("place", table=f"keys_{key.name}")


def clamped(one: Aggregate, value: exp.Expr) -> exp.Expr:
    """The grid step of a double; NULL for NULL, NaN (which exceeds infinity) and infinities."""
    low, high = float(one.value(one.lower)), float(one.value(one.upper))
    moved: exp.Expr = value.copy()
    if one.origin:
        moved = exp.paren(exp.Sub(this=moved, expression=number(float(one.origin))))
    if one.step.numerator == 1:  # a whole factor is exact where a quotient is not
        moved = moved if one.step == 1 else exp.Mul(this=moved, expression=number(float(one.step.denominator)))
    else:
        moved = exp.Div(this=moved, expression=number(float(one.step)))
    size = _INTEGER if max(abs(one.lower), abs(one.upper)) < 2**31 else _BIGINT
    spans = [
        (low, high, _within(one, exp.Round(this=moved))),
        (-LARGEST, low, number(one.lower)),
        (high, LARGEST, number(one.upper)),
    ]
    steps = [exp.cast(noted(step, "DOUBLE"), size.copy()) for _, _, step in spans]
    steps[0].meta[FITS] = size is _INTEGER
    within = [exp.Between(this=value.copy(), low=number(start), high=number(end)) for start, end, _ in spans]
    return exp.Case(ifs=[exp.If(this=span, true=step) for span, step in zip(within, steps, strict=True)])


def _within(one: Aggregate, step: exp.Expr) -> exp.Expr:
    """A step no further than the ends of the grid: far from 0, doubles lie wider apart than steps do.

    Near 0 they do not. With every number below 2^44 steps, rounding the ends, the origin, the difference and the
    product moves a value by less than ten times 2^-53 of that, a fiftieth of a step: it cannot leave the grid.
    """
    ends = (one.lower * one.step, one.upper * one.step, one.value(one.lower), one.value(one.upper), one.origin)
    if all(abs(end) < 2**44 * one.step for end in ends):
        return step
    above = exp.Greatest(this=step, expressions=[number(float(one.lower))], ignore_nulls=True)
    return exp.Least(this=above, expressions=[number(float(one.upper))], ignore_nulls=True)


def unchecked(value: exp.Expr) -> exp.Expr:
    """A value without the check that it is finite: putting it on the grid checks it again."""
    if isinstance(value, exp.Case) and len(value.args["ifs"]) == 1 and value.args.get("default") is None:
        (only,) = value.args["ifs"]
        if only.this == finite(only.args["true"]).args["ifs"][0].this:
            return only.args["true"].copy()  # type: ignore[no-any-return]
    return value.copy()


def parts(column: Column) -> tuple[str, ...]:
    """Return which whole numbers are counted: n of values, their sum s, their squares' sum q."""
    if not column.moments:
        return ()
    if column.asked.aggregate.kind in ("count", "people"):
        return ("n",)
    return ("n", "s", "q") if column.squares else ("n", "s")


def aggregates(column: Column, single: bool) -> list[exp.Expr]:
    """The counts and sums over one column."""
    value, one = exp.column(column.name), column.asked.aggregate
    counted: exp.Expr = exp.Count(this=exp.Star() if column.bare else value.copy())
    if one.kind == "people" and not single:
        counted = exp.Count(this=exp.Distinct(expressions=[value.copy()]))
    small = max(abs(one.lower), abs(one.upper)) < 2**31
    wide, step = (_BIGINT, "INTEGER") if small else (_HUGEINT, "BIGINT")
    square = exp.Mul(this=exp.cast(noted(value.copy(), step), wide.copy()), expression=value.copy())
    total = exp.Sum(this=noted(value.copy(), step))
    total.meta[MOST] = max(abs(one.lower), abs(one.upper))
    found = {
        "n": counted,
        "s": total,
        "q": exp.Sum(this=noted(square, "BIGINT" if small else "HUGEINT")),
    }
    return [exp.alias_(found[part], f"{column.name}_{part}") for part in parts(column)]


def not_null(expression: exp.Expr) -> exp.Expr:
    """The condition that a value is there."""
    return exp.Not(this=exp.Is(this=expression.copy(), expression=exp.Null()))


def number(value: float) -> exp.Expr:
    """A literal; a double keeps its exponent, so that engines read it as a double."""
    text = exp.Literal.number(repr(abs(value)))
    double = exp.Cast(this=text, to=DOUBLE.copy()) if isinstance(value, float) else text
    return exp.paren(exp.Neg(this=double)) if value < 0 else double

"""Slots: rows are counted by one whole number, which says their group, their cohort and their place on the grid."""

from collections.abc import Sequence

from sqlglot import exp

from discretion.engines.column import Column, aggregates, not_null, number
from discretion.engines.packing import Span, packed, size_of, unpacked
from discretion.query import Key

SLOTS = "slots"  # notes how many values there are that rows are counted by


def by_slot(
    kept: exp.Select, keys: Sequence[Key], columns: Sequence[Column], cohorts: int, *, single: bool
) -> exp.Select:
    """Return the SELECT that counts rows whose keys and cohorts are numbers; a histogram must be counted alone."""
    histograms = [column for column in columns if column.histogram]
    groups = [Span(key.name, 0, len(key.values) - 1) for key in keys]
    shown = [Span("c", 0, cohorts - 1)]
    for column in histograms:
        shown.append(Span(column.name, column.asked.aggregate.lower, column.asked.aggregate.upper, optional=True))
    values = [exp.column(column.name) for column in columns if column.moments and not column.bare]
    slot = exp.alias_(packed([*groups, *shown], "kept_rows"), "slot")
    rows = exp.select(slot, *values).from_(kept.subquery("kept_rows", copy=False), copy=False)
    totals = [exp.alias_(exp.Count(this=exp.Star()), "n")] if histograms else []
    totals += [one for column in columns for one in aggregates(column, single)]
    counted = exp.select(exp.column("slot"), *totals).from_(rows.subquery("slots", copy=False), copy=False)
    counted = counted.group_by(exp.column("slot"), copy=False)
    counted.meta[SLOTS] = size_of([*groups, *shown])
    found = unpacked(exp.column("slot"), [Span("g", 0, size_of(groups) - 1), *shown])
    outer = exp.select(*(exp.alias_(value, name) for name, value in found.items()))
    outer = outer.select(*(exp.column(total.alias) for total in totals), copy=False)
    outer = outer.from_(counted.subquery("counted", copy=False), copy=False)
    return outer.where(is_counted(exp.column("slot"), totals[0].alias), copy=False)


def is_counted(value: exp.Expr, count: str) -> exp.Expr:
    """Return the condition that what was counted by has a value.

    No count is negative. It is there because a condition about the value alone makes the database compute the value of
    every row twice, so as to count none without a value.
    """
    counted = exp.GTE(this=exp.column(count), expression=number(0))
    return not_null(exp.Case(ifs=[exp.If(this=counted, true=value.copy())]))

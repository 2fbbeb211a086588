"""Derived: SQL above released values gives an answer of its own, with errors by propagation or by draws.

The errors of numbers that are linear in released values follow from theirs (propagation.py). For others, noise is drawn
again. How the errors of a part are related is not known: aggregates that were released together share their noise, and
biases of all groups may have one direction. So worlds of several kinds are drawn, and the kind with the largest error
counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from importlib import import_module
from itertools import product
from math import inf, isfinite, sqrt
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from discretion.answer.propagation import MOST, Moves, ReleasedValue
from discretion.engines.keytable import key_array
from discretion.noise import Floats, simulation
from discretion.query import Query
from discretion.query.division import PART, Division
from discretion.release import Error, Release
from discretion.render.explanation import Explanation
from discretion.render.sheet import Sheet

DRAWS = 40  # of each kind
PROVED = 6  # worlds in which a column must be one of a part, so that it has the error of that
MOST_SIGNED = 3  # columns of a part whose signs are all tried; of more, two patterns are
SEED = 20_240_117  # of the draws: the same answer has the same errors
UNKNOWN = Error(bias=inf, noise=inf)
Columns = dict[str, tuple[Any, ...]]
_CHOOSING = (
    *(exp.Max, exp.Min, exp.ArgMax, exp.ArgMin, exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc),
    *(exp.Mode, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.AnyValue),
)
_RANKING = (exp.Rank, exp.DenseRank, exp.RowNumber, exp.Ntile, exp.PercentRank, exp.CumeDist)


def rehearse(division: Division) -> None:
    """Run the outer SQL over made-up values before anybody pays: what fails by its form is refused here."""
    tables = made_up(division, [1.0])
    above = _database()
    above.refuse_unsafe(division.outer, tables)
    list(above.select_released(division.outer, [tables]))


def made_up(division: Division, values: Sequence[float | None]) -> dict[str, pa.Table]:
    """Return the tables of all parts with made-up values, which take turns in every column."""
    return {
        f"{PART}{number}": _table(
            query,
            query.groups,
            [
                [values[(row + column) % len(values)] for row in range(len(query.groups))]
                for column in range(len(query.columns) - len(query.keys))
            ],
        )
        for number, query in enumerate(division.queries)
    }


def derive(division: Division, releases: Sequence[Release]) -> Release:
    """Return the answer of the outer SQL over what the parts released."""
    parts = [_PartTable(query, release) for query, release in zip(division.queries, releases, strict=True)]
    names = [f"{PART}{number}" for number in range(len(parts))]
    base = dict(zip(names, (part.table() for part in parts), strict=True))
    above = _database()
    above.refuse_unsafe(division.outer, base)
    rng, kinds = simulation(SEED), _kinds(parts)
    worlds = [base, {name: part.shifted() for name, part in zip(names, parts, strict=True)}]
    worlds += [
        {name: part.drawn(rng, kind) for name, part in zip(names, parts, strict=True)}
        for kind in kinds
        for _ in range(DRAWS)
    ]
    cells = _cells(parts)
    alone = [{**base, names[cell.part]: parts[cell.part].moved(cell)} for cell in cells]
    found = [_plain(one) for one in above.select_released(division.outer, [*worlds, *alone])]
    first, other, draws = found[0], found[1], found[2 : len(worlds)]
    by_kind = [draws[start : start + DRAWS] for start in range(0, len(draws), DRAWS)]
    origins = {name: _origin(name, found[:PROVED], worlds[:PROVED]) for name in first}
    doubtful = _doubtful(division.outer, list(first))
    moves = Moves(cells=cells, drawn=_drawn(cells, names, base, worlds[2:])) if cells else None
    linear = _Linear(moves, first, other, found[len(worlds) :], draws)
    errors = _errors(first, other, by_kind, origins, parts, doubtful, linear)
    computed = Sheet(notes=(f"Computed from that: {division.outer}",))
    return replace(
        releases[-1],
        columns=first,
        errors=errors,
        mechanism=" + ".join(dict.fromkeys(one.mechanism for one in releases)),
        guarantee=reduce(add, (one.guarantee for one in releases)),  # one charge: the cohorts of all are the same
        explanation=Explanation([*(sheet for one in releases for sheet in one.explain().sheets), computed]),
        comparison=(),
    )


def _database() -> Any:
    """Load DuckDB when it is first needed: a look at a ledger needs no database."""
    return import_module("discretion.engines.duckdb.above")


class _Kind(NamedTuple):
    """Say how the errors of a part are related in a world."""

    signs: tuple[float, ...]  # of the columns, whose noise is the same but for these; (): their noises are independent
    one_way: bool  # the biases of all groups have the same direction


def _kinds(parts: Sequence["_PartTable"]) -> list[_Kind]:
    """Return the kinds of worlds that can make a difference for these parts."""
    columns = max(len(part.values) for part in parts)
    signs: list[tuple[float, ...]] = [()]
    if 1 < columns <= MOST_SIGNED:
        signs += [(1.0, *rest) for rest in product((1.0, -1.0), repeat=columns - 1)]
    elif columns > MOST_SIGNED:
        signs += [(1.0,) * columns, tuple(1.0 - 2.0 * (place % 2) for place in range(columns))]
    ways = [False, True] if any(part.is_biased() for part in parts) else [False]
    return [_Kind(pattern, one_way) for pattern in signs for one_way in ways]


class _PartTable:
    """A part's table, in variants: as it was released, with other noise, and with what has no known noise moved."""

    def __init__(self, query: Query, release: Release) -> None:
        self.query = query
        values = list(release.columns.values())
        self.keys = list(zip(*values[: len(query.keys)], strict=True)) if query.keys else [()] * len(release)
        names = list(release.columns)[len(query.keys) :]
        self.values = [[_number(one) for one in release.columns[name]] for name in names]
        self.errors = [release.errors.get(name, (UNKNOWN,) * len(release)) for name in names]

    def table(self) -> pa.Table:
        return _table(self.query, self.keys, self.values)

    def is_biased(self) -> bool:
        """Return whether a value may be off for another reason than noise."""
        return any(error.bias + error.pull > 0 for column in self.errors for error in column if _is_known(error))

    def drawn(self, rng: Any, kind: _Kind) -> pa.Table:
        """Return the table with other noise of the same size, and the worst bias to either side."""
        rows, columns = len(self.keys), []
        shared = rng.laplace(size=rows) / sqrt(2)
        for place, (values, errors) in enumerate(zip(self.values, self.errors, strict=True)):
            noise = kind.signs[place] * shared if kind.signs else rng.laplace(size=rows) / sqrt(2)
            sides = rng.choice([-1.0, 1.0], size=1 if kind.one_way else rows) * np.ones(rows)
            columns.append(
                [
                    one + noise[row] * errors[row].noise + sides[row] * (errors[row].bias + errors[row].pull)
                    if one is not None and _is_known(errors[row])
                    else one
                    for row, one in enumerate(values)
                ]
            )
        return _table(self.query, self.keys, columns)

    def moved(self, cell: ReleasedValue) -> pa.Table:
        """Return the table with one value moved."""
        columns = [list(values) for values in self.values]
        columns[cell.column][cell.row] = (columns[cell.column][cell.row] or 0.0) + cell.step
        return _table(self.query, self.keys, columns)

    def shifted(self) -> pa.Table:
        """Return the table with every value moved whose noise has no known size."""
        columns = [
            [one if one is None or _is_known(errors[row]) else 1.37 * one + 1.0 for row, one in enumerate(values)]
            for values, errors in zip(self.values, self.errors, strict=True)
        ]
        return _table(self.query, self.keys, columns)

    def passed_on(self, place: int, values: Sequence[Any]) -> tuple[Error, ...]:
        """Return the errors of values that were passed on as they are; the largest if several are equal."""
        known = list(zip(self.values[place], self.errors[place], strict=True))
        same = ([error for one, error in known if one == value] if value is not None else [] for value in values)
        return tuple(max(errors, key=lambda error: error.total, default=UNKNOWN) for errors in same)


def _cells(parts: Sequence[_PartTable]) -> list[ReleasedValue]:
    """Return every released value that may be off; none if there are too many to move them one by one."""
    found = [
        ReleasedValue(part=number, row=row, column=column, error=error)
        for number, part in enumerate(parts)
        for column, errors in enumerate(part.errors)
        for row, error in enumerate(errors)
        if _is_known(error) and part.values[column][row] is not None
    ]
    known = [cell for cell in found if cell.step > 0]
    return known if len(known) <= MOST else []


def _drawn(
    cells: Sequence[ReleasedValue],
    names: Sequence[str],
    base: Mapping[str, pa.Table],
    worlds: Sequence[Mapping[str, pa.Table]],
) -> Floats:
    """Return how far every value was moved in every world."""

    def values(world: Mapping[str, pa.Table]) -> list[float]:
        columns = {(part, name): world[part][name].to_pylist() for part in names for name in world[part].column_names}
        return [columns[names[one.part], f"_a{one.column}"][one.row] for one in cells]

    moved: Floats = np.array([values(world) for world in worlds]) - np.array(values(base))
    return moved


class _Linear:
    """Finds the numbers of an answer that are linear in released values."""

    def __init__(
        self, moves: Moves | None, first: Columns, other: Columns, alone: Sequence[Columns], draws: Sequence[Columns]
    ) -> None:
        self.moves, self.first, self.other, self.alone, self.draws = moves, first, other, alone, draws

    def errors(self, labels: Sequence[str]) -> Mapping[str, dict[int, Error]]:
        """Return the errors of linear numbers, by column and row; rows are found again by their labels."""
        if self.moves is None:
            return {}
        worlds = [self.other, *self.alone, *self.draws]
        places = [_places(self.first, world, labels) for world in worlds]
        found: dict[str, dict[int, Error]] = {}
        for name, values in self.first.items():
            for row, value in enumerate(values):
                seen: list[Any] = [
                    world[name][place[row]] if row in place else None
                    for world, place in zip(worlds, places, strict=True)
                ]
                if any(isinstance(one, bool) or not isinstance(one, int | float) for one in (value, *seen)):
                    continue
                end = 1 + len(self.alone)
                error = self.moves.error(float(value), seen[1:end], seen[end:]) if seen[0] == value else None
                if error is not None and error.total > 0:
                    found.setdefault(name, {})[row] = error
        return found


def _is_known(error: Error) -> bool:
    return error.unit == "value" and isfinite(error.noise) and isfinite(error.bias + error.pull)


def _table(query: Query, keys: Sequence[Sequence[Any]], values: Sequence[Sequence[float | None]]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for number, key in enumerate(query.keys):
        columns[f"_k{number}"] = key_array([one[number] for one in keys], key.sql_type)
    for number, found in enumerate(values):
        columns[f"_a{number}"] = pa.array(found, pa.float64())
    return pa.table(columns)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


def _plain(found: pa.Table) -> Columns:
    """Return what was selected as plain values: dates as texts, decimals as numbers."""
    return {
        name: tuple(map(_shown, column.to_pylist()))
        for name, column in zip(found.column_names, found.columns, strict=True)
    }


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return str(value.date()) if value == datetime(value.year, value.month, value.day) else value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _errors(
    first: Columns,
    other: Columns,
    by_kind: Sequence[Sequence[Columns]],
    origins: Mapping[str, tuple[int, int] | None],
    parts: Sequence[_PartTable],
    doubtful: set[str],
    linear: _Linear,
) -> dict[str, tuple[Error, ...]]:
    """Return the error of every column that depends on released values: passed on, added up, simulated, or unknown."""
    rows = len(next(iter(first.values())))
    worlds = [first, other, *(world for draws in by_kind for world in draws)]
    labels = [name for name in _label_columns(worlds) if name not in doubtful or len(doubtful) == len(first)]
    where = [[_places(first, world, labels) for world in draws] for draws in by_kind]
    shifted, added_up = _places(first, other, labels), linear.errors(labels)
    found: dict[str, tuple[Error, ...]] = {}
    for name, values in first.items():
        if not any(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
            continue
        column = [
            _worst([_cell(name, row, first, other, shifted, *drawn) for drawn in zip(by_kind, where, strict=True)])
            for row in range(rows)
        ]
        if any(error is not None for error in column):
            origin = origins[name]
            passed = None if origin is None else parts[origin[0]].passed_on(origin[1], values)
            exact = added_up.get(name, {})
            computed = tuple(exact.get(row, error or Error(bias=0.0, noise=0.0)) for row, error in enumerate(column))
            found[name] = (UNKNOWN,) * rows if name in doubtful else passed or computed
    last, off = list(first)[-1], any(error.total for part in parts for errors in part.errors for error in errors)
    return found or {last: (UNKNOWN if off else Error(bias=0.0, noise=0.0),) * rows}


def _worst(errors: Sequence[Error | None]) -> Error | None:
    return max((error for error in errors if error is not None), key=lambda error: error.total, default=None)


def _cell(
    name: str,
    row: int,
    first: Columns,
    other: Columns,
    shifted: Mapping[int, int],
    draws: Sequence[Columns],
    where: Sequence[Mapping[int, int]],
) -> Error | None:
    """Return the error of one number; None if nothing released moves it."""
    value = first[name][row]
    if row not in shifted or other[name][shifted[row]] != value:
        return UNKNOWN  # it depends on something whose noise has no known size
    drawn = [world[name][places[row]] for world, places in zip(draws, where, strict=True) if row in places]
    if len(drawn) < DRAWS // 2 or any(not isinstance(one, int | float) for one in (value, *drawn)):
        return None if all(one == value for one in drawn) and drawn else UNKNOWN
    moved = np.asarray(drawn, dtype=float) - float(value)
    return Error(bias=0.0, noise=float(np.sqrt(np.mean(moved**2))), simulated=True) if np.any(moved) else None


def _origin(name: str, found: Sequence[Columns], worlds: Sequence[Mapping[str, pa.Table]]) -> tuple[int, int] | None:
    """Return the part and the column of it that a column is in every world, in any order; None if there is none."""
    for number, part in enumerate(worlds[0].values()):
        for place in range(sum(one.startswith("_a") for one in part.column_names)):
            if all(
                {*columns[name]} <= {*list(world.values())[number][f"_a{place}"].to_pylist()}
                for columns, world in zip(found, worlds, strict=True)
            ):
                return number, place
    return None


def _label_columns(worlds: Sequence[Columns]) -> list[str]:
    """Return the columns that name the rows: no released value moves them."""
    return [name for name in worlds[0] if len({tuple(sorted(map(repr, world[name]))) for world in worlds}) == 1]


def _places(first: Columns, world: Columns, labels: Sequence[str]) -> dict[int, int]:
    """Return which row of another world is which row of the answer, by its labels; nothing if these are not unique."""
    rows, theirs = (_labels(columns, labels) for columns in (first, world))
    if len(rows) == len(theirs) == 1:
        return {0: 0}
    if len(set(rows)) < len(rows) or len(set(theirs)) < len(theirs):
        return {}
    known = {label: row for row, label in enumerate(theirs)}
    return {row: known[label] for row, label in enumerate(rows) if label in known}


def _labels(columns: Columns, names: Sequence[str]) -> list[tuple[Any, ...]]:
    rows = len(next(iter(columns.values())))
    return [tuple(columns[name][row] for name in names) for row in range(rows)]


def _doubtful(outer: str, names: Sequence[str]) -> set[str]:
    """Return the columns whose error no draw can show, because noise decides which values are taken.

    The largest of noisy values is too large, and draws around it do not show that.
    """
    tree = sqlglot.parse_one(outer, dialect="duckdb")
    filtered = tree.find(exp.Where, exp.Qualify, exp.Limit) is not None
    if tree.find(*_CHOOSING) is not None or (filtered and tree.find(exp.AggFunc) is not None):
        return {*names}
    items = {one.alias_or_name: one for one in tree.selects} if isinstance(tree, exp.Select) else {}
    ranked = {name for name, one in items.items() if one.find(*_RANKING)}
    return ranked if ranked or tree.find(*_RANKING) is None else {*names}

"""Protect a generated table in one kind of source, ask through the public interface, compare with the plain answers."""

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from kinds import Kind
from questions import MARGIN, Ask, aggregated, matching
from shapes import EPSILON, NUMBERS, Column, Shape
from typer.testing import CliRunner

import discretion as dn
from discretion.cli import app
from discretion.engines import Engine

JOINED = ("int8", "int64", "text")  # columns that lookups are joined on


@dataclass(frozen=True, kw_only=True)
class Protected:
    """A table that can be asked about, and its original."""

    db: dn.Connection
    ledger: Path
    kind: Kind
    shape: Shape


def protect(
    shape: Shape, kind: Kind, folder: Path, table: pa.Table | None = None, engine: str | Engine = "duckdb"
) -> Protected:
    """Protect a table (by default the shape's own) under the name t."""
    ledger, numbers = folder / "l.discretion", aggregated(shape.columns)
    db = dn.connect(ledger, engine=engine)
    source = kind.write(folder, shape.table() if table is None else table)
    how: dict[str, Any] = {
        "person": shape.person.name,
        "rows_per_person": shape.rows_per_person,
        "bounds": {one.name: one.bounds for one in numbers},
        "grid": {one.name: step for one in numbers if (step := grid(one, kind)) and step * 10**4 > width(one)},
        "keys": {one.name: keys(one) for one in shape.columns if one.type in ("text", "category", "bool")},
    }
    if shape.protects == "value":
        how["epsilon"] = shape.epsilon
    else:
        (folder / "people").mkdir()
        people = pa.table({"e": [EPSILON] * len(shape.enrolled), "who": shape.enrolled})
        db.register("people", kind.write(folder / "people", people), person="who", epsilon="e")
        how["register"] = "people"
    if joined := [one for one in shape.columns if one.type in JOINED]:
        (folder / "names").mkdir()
        table = pa.table({"size": [*sizes(joined[0]).values()], "the key": [*sizes(joined[0])]})
        how["lookups"] = {"names": (kind.write(folder / "names", table), "the key")}
    db.protect("t", source, **how)
    return Protected(db=db, ledger=ledger, kind=kind, shape=shape)


def width(column: Column) -> float:
    return column.bounds[1] - column.bounds[0]


def grid(column: Column, kind: Kind) -> float | None:
    """Return the step that makes every value a candidate; none for integers, where it is 1 already."""
    if column.type in NUMBERS:
        return (
            1 if "huge" in kind.loses or column.type == "uint64" else None
        )  # some kinds make them doubles or decimals
    return 0.01


def keys(column: Any) -> list[Any]:
    return sorted({one for one in column.values if one is not None})[:4]


def wrong(asked: Protected, asks: list[Ask], where: str, share: float, *, by_command: bool) -> list[str]:
    """Ask one SELECT and return what is not the plain answer."""
    sql = f"SELECT {', '.join(f'{ask.sql(asked.shape.person)} AS a{i}' for i, ask in enumerate(asks))} FROM t"
    sql += f" WHERE {where}" if where else ""
    row = command(asked, sql, share) if by_command else answers(asked.db.sql(sql, share=share))
    is_text, found = asked.kind.is_text, []
    for i, ask in enumerate(asks):
        condition = " AND ".join(f"({part})" for part in (where, ask.condition) if part)
        rows = matching(asked.shape, condition, is_text=is_text)
        truth = ask.plain(rows)
        if truth is not None and (difference := unlike(ask, truth, rows, *row[f"a{i}"])):
            found.append(f"{ask.sql(asked.shape.person)} of {sql}: {difference}")
    return found


def wrong_groups(asked: Protected, column: Column, share: float) -> list[str]:
    """Ask for the rows of every declared key of a column and return what is not the plain answer."""
    sql = f"SELECT {column.sql} AS k, COUNT(*) AS n FROM t GROUP BY {column.sql}"
    rows = matching(asked.shape, "", is_text=asked.kind.is_text)
    truth = {key: int((rows[column.name] == key).sum()) for key in keys(column)}
    return [f"{sql}: {n} for {truth[key]}" for key, n in asked.db.sql(sql, share=share) if abs(n - truth[key]) >= 0.5]


def wrong_lookup(asked: Protected, column: Column, share: float) -> list[str]:
    """Join the lookup table on a column and return what is not the plain answer."""
    join = f'FROM t JOIN names ON t.{column.sql} = names."the key" WHERE names.size > 1'
    rows = matching(asked.shape, "", is_text=asked.kind.is_text)
    truth = int(rows[column.name].isin([key for key, size in sizes(column).items() if size > 1]).sum())
    n = asked.db.sql(f"SELECT COUNT(*) {join}", share=share).value
    return [] if abs(n - truth) < 0.5 else [f"SELECT COUNT(*) {join}: {n} for {truth}"]


def sizes(column: Column) -> dict[Any, int]:
    """Return a small lookup table: every second value of a column, and a number."""
    return {key: number for number, key in enumerate(sorted({one for one in column.values if one is not None})[::2])}


def answers(release: dn.Release) -> dict[str, tuple[Any, Any]]:
    return {name: (release.columns[name][0], errors[0]) for name, errors in release.errors.items()}


def command(asked: Protected, sql: str, share: float) -> dict[str, tuple[Any, Any]]:
    """Ask on the command line; the answer as programs read it."""
    told = CliRunner().invoke(app, ["query", sql, "--share", str(share), "--ledger", str(asked.ledger), "--json"])
    assert told.exit_code == 0, told.output
    release = dn.Release.from_stored(asked.db.sql(sql, share=share).stored())  # stored: the same answer
    row = json.loads(told.output)["rows"][0]
    assert {name: row[name] for name in release.columns} == {name: one[0] for name, one in release.columns.items()}
    return answers(release)


def unlike(ask: Ask, truth: float, rows: Any, value: Any, error: Any) -> str:
    """Return how an answer differs from the truth by more than its noise can explain; nothing if it does not."""
    if ask.function in ("COUNT", "people"):
        return "" if value is not None and abs(value - truth) < 0.5 else f"{value} for {truth}"
    if error.unit == "rank":
        return rank_unlike(ask, rows, value, error)
    most = 1e-6 * (1 + abs(truth)) + error.bias + error.pull + MARGIN * error.noise / 2**0.5
    low, high = ask.column.bounds
    if not isfinite(most) or (ask.function in ("AVG", "STDDEV", "STDDEV_POP") and most > (high - low) / 2):
        return ""  # too few rows: it says so
    return "" if abs(value - truth) <= most else f"{value} for {truth} ± {most:.3g}"


def rank_unlike(ask: Ask, rows: Any, value: float, error: Any) -> str:
    """Return how an answer differs from the value of rank ⌈q·n⌉ by more ranks than its noise can explain.

    Where q·n is whole, every value from there to the next higher one splits the rows as asked. Between two values of
    people, an answer misses q·n by a part of a rank.
    """
    values = np.sort(np.clip(rows[ask.column.name].dropna().astype(float).to_numpy(), *ask.column.bounds))
    off = error.bias + error.pull + MARGIN * error.noise / 2**0.5  # a share of the rows, or of error.rows if more
    slack = off * max(len(values), error.rows or 0) + 1e-9
    if slack > len(values) / 4:
        return ""  # too few rows: it says so
    place = float(ask.rank) * len(values)
    below, up_to = int((values < value - 1e-6).sum()), int((values <= value + 1e-6).sum())
    if ask.rank == 0:  # the smallest value has rank 1
        place = 1.0
    missed = max(below - place, place - up_to, 0.0)
    return "" if missed <= slack else f"{value} has rank {below} to {up_to} for {place}"

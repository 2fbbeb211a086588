"""Bugs that were found once, planted again: the fuzzer finds each of them, with queries of its own grammar."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from discretion.engines import engine
from discretion.engines import statement as built
from discretion.engines.duckdb import DuckDB
from discretion.query import key, operation, value
from discretion.query import kind as types
from discretion.query.rowset import RowSet
from fuzz.grammar import query
from fuzz.neighbours import Fuzz
from fuzz.worlds import World

Plant = Callable[[pytest.MonkeyPatch], None]


@cache
def written() -> dict[int, str]:
    return {seed: query(seed) for seed in range(6_000)}


def seeds(*words: str, without: tuple[str, ...] = (), most: int = 12) -> list[int]:
    """Return the seeds of the shortest queries that have all of these words and none of those."""
    texts = sorted(written().items(), key=lambda one: len(one[1]))
    found = [s for s, text in texts if all(w in text for w in words) and not any(w in text for w in without)]
    return found[:most]


def changed_keys() -> list[int]:
    """Return the seeds of queries that group by a column of a subquery which is a function of the key of its name."""
    changed = re.compile(r"(?:UPPER|LOWER)\(([ke])\) AS \1,.* GROUP BY (?:.*, )?\1(?:,|$)")
    return [seed for seed, text in written().items() if changed.search(text)][:3]


def no_rehearsal(patch: pytest.MonkeyPatch) -> None:
    """Without the trial on made-up rows, which refuses most bugs before the charge."""
    patch.setattr(DuckDB, "check", lambda *_: None)


class Raw(date):
    """A date that reaches the database in the analyst's own words."""

    text = ""

    def isoformat(self, *_: Any, **__: Any) -> str:
        return self.text


def dates_as_written(patch: pytest.MonkeyPatch) -> None:
    """Finding 1: Python reads DATE '2024-W01-1', the database does not."""

    whole = types.moment

    def moment(text: str) -> date | None:
        try:
            read = Raw.fromisoformat(text)
        except ValueError:
            return whole(text)
        read.text = text  # type: ignore[misc]
        return read

    no_rehearsal(patch)
    patch.setattr(types, "moment", moment)


def _untried(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.TryCast):
        return exp.Cast(this=node.this, to=node.args["to"])
    return node.this if isinstance(node, exp.Try) else node


def casts_that_fail(patch: pytest.MonkeyPatch) -> None:
    """Finding 2: a cast is not inside a TRY."""
    whole = built.statement

    def statement(*given: Any) -> Any:
        made = whole(*given)
        return replace(made, select=made.select.transform(_untried))

    no_rehearsal(patch)
    patch.setattr(engine, "statement", statement)


def plans_by_statistics(patch: pytest.MonkeyPatch) -> None:
    """Finding 3: the database plans by a file's statistics, which ignore NaN, and drops the check for it."""
    no_rehearsal(patch)
    patch.setattr("discretion.engines.duckdb.admission._is_sound", lambda *_: True)  # NaN is read in place
    others = ("common_subexpressions", "build_side_probe_side")
    patch.setattr("discretion.engines.duckdb.connections._others", lambda _: others)


def unbounded_texts(patch: pytest.MonkeyPatch) -> None:
    """Finding 4: texts are joined without limit."""
    no_rehearsal(patch)
    patch.setattr(import_module("discretion.query.scalar"), "MOST_TEXT", 10**9)  # the package has a function scalar
    patch.setattr("discretion.query.MOST_MADE", 10**12)
    patch.setattr("discretion.query.refuse_deep", lambda *_: None)
    whole = World._table
    patch.setattr(World, "_table", lambda *given: replace(whole(*given), longest_text=10_000))


def failing_arithmetic(patch: pytest.MonkeyPatch) -> None:
    """Finding 6: what is done to released values raises for some of them."""
    patch.setattr(value, "strict", lambda function, given: None if None in given else function(*given))


def wrong_completeness(patch: pytest.MonkeyPatch) -> None:
    """Finding 7: a function of columns that are never NULL is taken to be never NULL."""
    patch.setattr(operation, "_has_answer", lambda *_: True)


def unbounded_rows(patch: pytest.MonkeyPatch) -> None:
    """Nobody's rows are bounded."""
    patch.setattr(built._Build, "can_exceed", False)


def joins_like_one_table(patch: pytest.MonkeyPatch) -> None:
    """Joined by LEFT JOIN, rows change when somebody leaves the other table; that is taken for rows that leave."""
    patch.setattr(RowSet, "protects", "presence")


def repeated_rows(patch: pytest.MonkeyPatch) -> None:
    """Nobody's rows in a joined table are cut to one."""
    patch.setattr(engine.Engine, "_is_single", lambda *_: True)
    patch.setattr(built._Build, "can_exceed", False)


def keys_by_name(patch: pytest.MonkeyPatch) -> None:
    """UPPER(k) AS k in a subquery is taken for the declared key k, whose values are others."""
    whole = key._image

    def image(value: Any, found: RowSet) -> Any:
        return found.table.keys.get(value.plain.name, whole(value, found))

    patch.setattr(key, "_image", image)


ODD_DATES = [
    f"SELECT COUNT(*) AS c FROM t WHERE d > 50 AND day > DATE {text}" for text in ("'2024-W01-1'", "'20240101'")
]
_JOINED = " || ".join(["t"] * 80)
LONG = "SELECT " + ", ".join(f"COUNT('{number}' || {_JOINED}) AS c{number}" for number in range(6)) + " FROM t"
PLANTED: dict[str, tuple[Plant, str, Callable[[], list[Any]]]] = {
    "dates": (dates_as_written, "fails", lambda: ODD_DATES),
    "casts": (casts_that_fail, "fails by a row", lambda: seeds("CAST(t AS", most=20)),
    "statistics": (plans_by_statistics, "fails by a row", lambda: ["SELECT SUM(d) AS c FROM t"]),
    "texts": (unbounded_texts, "needs more memory by a row", lambda: [LONG]),
    "released": (failing_arithmetic, "fails by a released value", lambda: seeds(") / COUNT(*)", without=(" OVER ",))),
    "complete": (wrong_completeness, "calls a count exact", lambda: seeds("COUNT(LN(", without=("WHERE", "GROUP"))),
    "joins": (joins_like_one_table, "moves further", lambda: seeds("SUM(", "LEFT JOIN o", "GROUP BY", most=16)),
    "repeated": (repeated_rows, "moves further", lambda: seeds("SUM(", "JOIN o", without=("GROUP BY t.id",), most=4)),
    "parts": (unbounded_rows, "moves further", lambda: seeds("SUM(", " OVER ", without=("GROUP BY t.id",), most=4)),
    "names": (keys_by_name, "means something else by its names", changed_keys),
    "rows": (unbounded_rows, "moves further than the noise", lambda: seeds("SUM(", most=6)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, expected, chosen = PLANTED[name]
    monkeypatch.setattr(engine, "coin_key", lambda: "0" * 64)
    plant(monkeypatch)
    kind, alone = ("polars", 50) if name == "statistics" else ("arrow", 2)
    fuzz = Fuzz(World(kind, tmp_path, count=50), alone=alone, apart=max(alone, 8), compared=1)
    fuzz.run(chosen())
    assert [one for one in fuzz.violations if one.what.startswith(expected)], (fuzz.accepted, fuzz.violations)

"""Neighbours: one person's rows differ. How a query ends, what others add and how long it takes must not.

Everybody is in a cohort of their own, so one statement over a crowd in many states shows what each state adds. Some
states are also computed alone among calm people: the file's statistics, and so the database's plan, differ there.
"""

import json
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import process_time
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp, parse_one

from discretion.answer.compound import divided
from discretion.answer.derived import made_up, rehearse
from discretion.declaration.table import Table
from discretion.engines import Rows
from discretion.engines.duckdb.above import select_released
from discretion.engines.duckdb.backend import DuckDBBackend
from discretion.engines.statement import Facts, Statement, statement
from discretion.errors import QueryRefused, Unsuitable
from discretion.mechanisms.linear import parts, tally
from discretion.query import Query, parse
from discretion.query.division import Division
from discretion.statistics import Measure, Statistics
from fuzz.grammar import query as written
from fuzz.renaming import unlike
from fuzz.worlds import COUNTED, CROWD, World

SLOWEST, FACTOR = 1.0, 10.0  # a state may take this many seconds, and this many times as long as calm rows
MOST_BYTES = 128 * 2**20  # that one state may need more than calm rows


@dataclass(frozen=True, kw_only=True)
class Violation:
    """What one person's rows changed that they must not."""

    what: str
    sql: str
    kind: str = ""  # of the source
    state: int = -1
    detail: str = ""

    def __str__(self) -> str:
        where = f" ({self.kind}, state {self.state})" if self.kind else ""
        return f"{self.what}{where}: {self.sql}\n    {self.detail}"


class Written:
    """A statement's text, written out once."""

    def __init__(self, select: exp.Expr) -> None:
        self._text = DuckDBBackend.dialect.text(select)

    def sql(self, *_: Any, **__: Any) -> str:
        """Return the text, in the one dialect there is."""
        return self._text

    @property
    def args(self) -> dict[str, Any]:
        """Return no operation: all of them were looked at when the text was written."""
        return {}


class Statements:
    """Builds a statement once for all sources: only the place of the protected rows differs between them."""

    def __init__(self) -> None:
        self._known: dict[Any, Statement] = {}

    def __call__(self, rows: Rows, measures: Sequence[Measure], facts: Facts, key: str) -> Statement:
        if facts.beside is not None:
            return statement(rows, measures, facts, key)
        query = rows.query
        mark = (query.text, query.table.protects, tuple(measures), facts, key)
        if mark not in self._known:
            self._known = dict(list(self._known.items())[-1_000:])
            made = statement(rows, measures, facts, key)
            # `check` looks at the tree itself; it has no coins.
            self._known[mark] = replace(made, select=Written(made.select)) if key else made  # type: ignore[arg-type]
        found = self._known[mark]
        partners = {one.name: one.table.source for one in query.partners}
        return replace(found, sources={**found.sources, "protected": query.table.source, **partners})


@dataclass
class Asked:
    """An accepted query, and what its statistics were over everybody in every state."""

    seed: int
    sql: str
    query: Query
    together: tuple[Statistics, ...] | None = None
    seconds: float = 0.0


@dataclass
class Fuzz:
    """A run over seeds: what was refused, what was accepted, and every violation found."""

    world: World
    alone: int = 2  # states that are computed alone, for each query
    apart: int = 8  # states that are computed alone, for all queries of a run
    compared: int = 4  # one of so many queries is compared with itself under neutral names, which takes long
    runs: int = 0
    accepted: int = 0
    refused: int = 0
    joined: int = 0  # accepted statements that join protected tables
    divided: int = 0  # accepted statements with something above released values
    violations: list[Violation] = field(default_factory=list)

    def run(self, seeds: Sequence[int | str]) -> None:
        """Ask the queries of these seeds, or these queries, source by source: an opened source serves all of them."""
        texts = [("", one) if isinstance(one, int) else (one, place) for place, one in enumerate(seeds)]
        asked = [one for sql, seed in texts for one in self.ask(int(seed), sql)]
        asked = [one for one in asked if self.calm(one)]
        for one in asked:
            self.everybody(one)
        people = list(self.world.together)
        few = [people[(self.runs * self.apart + number) % len(people)] for number in range(self.apart)]
        self.runs += 1
        for number, who in enumerate(few):
            for place, one in enumerate(asked):
                if one.together is not None and (place + number) % len(few) < self.alone:
                    self.one_state(one, who, self.world.alone(who))

    def ask(self, seed: int, sql: str = "") -> list[Asked]:
        """Return the private parts of an accepted statement; anything but a refusal is a violation."""
        neutral = "" if sql or seed % self.compared else written(seed, neutral=True)
        sql = sql or written(seed)
        try:
            division, queries = self.checked(sql, seed)
        except (QueryRefused, Unsuitable) as refusal:
            self.refused += 1
            if neutral not in ("", sql) and (reason := unlike(self, neutral, seed, refusal)):
                self._found("is refused by its names", sql, detail=reason)
            return []
        except Exception as failure:
            self._found("fails before the charge", sql, detail=repr(failure))
            return []
        self.accepted += 1
        for query in queries:
            self._release(query, sql)
        if division is not None:
            self.divided += 1
            self._release_above(division, sql)
        self.joined += any(query.partners for query in queries)
        if neutral not in ("", sql) and (reason := unlike(self, neutral, seed, (division, queries))):
            self._found("means something else by its names", sql, detail=reason)
        return [Asked(seed=seed, sql=sql, query=query) for query in queries]

    def checked(self, sql: str, seed: int) -> tuple[Division | None, Sequence[Query]]:
        """Return how a statement is divided, and its private parts, if it would be accepted."""
        division, queries = self._queries(sql, self.world.known(seed))
        for query in queries:
            for one in query.aggregates:
                if one.kind not in COUNTED:
                    parts(one)
            self.world.engine.check(self.world.request(query, self.world.calm, seed))
        return division, queries

    def _queries(self, sql: str, known: Mapping[str, Table]) -> tuple[Division | None, Sequence[Query]]:
        """Return the private parts of a statement, and how it is divided if it computes something from them."""
        try:
            return None, [parse(sql, known)]
        except QueryRefused as refusal:
            division = divided(sql, known, refusal)
        rehearse(division)
        return division, division.queries

    def calm(self, one: Asked) -> bool:
        """Compute over calm people only: that must succeed, and sets the measure of time."""
        start = process_time()
        try:
            self.world.engine.compute(self.world.request(one.query, self.world.calm, one.seed))
        except Exception as failure:
            self._found("fails for calm rows", one.sql, detail=repr(failure))
            return False
        one.seconds = process_time() - start
        return True

    def everybody(self, one: Asked) -> None:
        """Compute over everybody in every state: nobody adds more than the noise covers."""
        start, before = process_time(), _bytes()
        try:
            one.together = self.world.engine.compute(self.world.request(one.query, self.world.all, one.seed))
        except Exception as failure:
            who = self._culprit(one)
            self._found("fails by a row", one.sql, detail=repr(failure), state=who)
            if who in self.world.together and self._fails(PLAINEST, who):
                self.world.leave_out(who)
                self.everybody(one)
            return
        self._bounded(one, process_time() - start, before, -1, self.world.all)
        if missing := uncounted(one.query):
            self._found("calls a count exact that is not", one.sql, detail=missing)
        for aggregate, statistics in zip(one.query.aggregates, one.together, strict=True):
            excess = moved(aggregate, statistics, len(self.world.people), one.query)
            if excess > 1:
                self._found("moves further than the noise", one.sql, detail=f"{aggregate.kind} by {float(excess):g}")

    def one_state(self, one: Asked, who: int, place: str) -> None:
        """Compute over one state among calm people: the same for others, and for the person as among everybody."""
        start, before = process_time(), _bytes()
        try:
            found = self.world.engine.compute(self.world.request(one.query, place, one.seed))
        except Exception as failure:
            self._found("fails by a row", one.sql, detail=repr(failure), state=who)
            return
        self._bounded(one, process_time() - start, before, who, place)
        there = [number for number, person in enumerate(self.world.people) if person == who or person in CROWD]
        for mine, theirs in zip(found, one.together or (), strict=True):
            if not _same(mine, theirs, there):
                self._found("adds something else among others", one.sql, state=who)

    def _culprit(self, one: Asked) -> int:
        """Return the first state that fails alone; only for the first violations, because it takes long."""
        if len(self.violations) > MOST_CULPRITS:
            return -1
        return next((who for who in self.world.together if self._fails(one.sql, who)), -1)

    def _fails(self, sql: str, who: int) -> bool:
        try:
            query = parse(sql, {"t": self.world.tables["value"]})
            self.world.engine.compute(self.world.request(query, self.world.alone(who)))
        except Exception:
            return True
        return False

    def _bounded(self, one: Asked, seconds: float, before: int, who: int, place: str) -> None:
        if seconds > SLOWEST and seconds > FACTOR * one.seconds:  # once more: the first time opened the source
            start = process_time()
            self.world.engine.compute(self.world.request(one.query, place, one.seed))
            seconds = process_time() - start
        if seconds > SLOWEST and seconds > FACTOR * one.seconds:
            self._found(
                "takes longer by a row", one.sql, state=who, detail=f"{seconds:.2f} s, calm {one.seconds:.2f} s"
            )
        if _bytes() - before > MOST_BYTES:
            self._found("needs more memory by a row", one.sql, state=who, detail=f"{(_bytes() - before) >> 20} MiB")

    def _release(self, query: Query, sql: str) -> None:
        """What is done to released values must succeed, whatever they are."""
        for value in RELEASED:
            released = [np.full(len(query.groups), value) for _ in query.asked]
            try:
                json.dumps(query.finish(released))  # as the ledger keeps it
            except Exception as failure:
                self._found("fails by a released value", sql, detail=f"{value}: {failure!r}")
                return

    def _release_above(self, division: Division, sql: str) -> None:
        """What is computed above released values succeeds, or is refused by what was released."""
        worlds = [made_up(division, values) for values in ([None], [0.0], [None, -1.0, 0.5], RELEASED[1:])]
        try:
            list(select_released(division.outer, worlds))
        except QueryRefused:
            return
        except Exception as failure:
            self._found("fails by a released value", sql, detail=repr(failure))

    def _found(self, what: str, sql: str, *, detail: str = "", state: int = -1) -> None:
        self.violations.append(Violation(what=what, sql=sql, kind=self.world.name, state=state, detail=detail[:300]))


PLAINEST = "SELECT COUNT(*) AS c FROM t WHERE b"
MOST_CULPRITS = 12
RELEASED = (float("nan"), 0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 2.0**53, 5e-324)


def moved(aggregate: Any, statistics: Statistics, people: int, query: Query) -> Fraction | float:
    """Return the most that two states differ by, as a part of what the mechanism's noise is scaled to.

    Under presence one of the two is nobody. Where tables are joined, a promise about values covers nobody, too.
    """
    leaves = all(one.protects == "presence" for one in query.tables) and not any(one.outer for one in query.partners)
    absent, joined = leaves, bool(query.partners)
    if statistics.histogram is not None:
        cells = statistics.histogram.transpose(1, 0, 2).reshape(people, -1)
        most = aggregate.rows_per_person * (1 if aggregate.protects == "presence" else 2)
        return _furthest([cells.astype(np.float64)], [1.0], absent, joined) / most
    if aggregate.kind in ("count", "people") and aggregate.size_is_public:
        return 0  # no row is looked at
    released = parts(aggregate)
    found = [np.asarray(tally(part.quantity, statistics, aggregate)).T.astype(np.float64) for part in released]
    furthest = _furthest(found, [float(part.scale) for part in released], absent, joined)
    return 1 if furthest <= 1 + 1e-9 else furthest


def uncounted(query: Query) -> str:
    """Return an aggregate whose count is called public although a valid row, nothing missing, has no value there."""
    for one in query.asked:
        inner = one.plain.this
        if one.aggregate.kind == "count" and one.aggregate.size_is_public and not isinstance(inner, exp.Star):
            text = inner.transform(_in_plain_sql).sql("duckdb")
            missing = {name: kind for name, kind in query.table.columns.items() if name not in query.table.required}
            others = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in missing.items())
            valid = f"SELECT r / 2 AS r, q, {others} FROM range(1, 21) a(r), range(6) b(q)"
            number = f"TYPEOF({text}) IN ('DOUBLE', 'FLOAT')"  # 'nan' as a text is a value
            finite = f"CASE WHEN {number} THEN ISFINITE(TRY_CAST(TRY({text}) AS DOUBLE)) END"
            there = f"COALESCE({finite}, TRY({text}) IS NOT NULL)"
            with duckdb.connect() as plain:
                found = plain.sql(f"SELECT COUNT(*) FROM ({valid}) WHERE NOT {there}")
                if (rows := found.fetchall()[0][0]) > 0:
                    return f"{text}: {rows} of 120 rows have none"
    return ""


def _in_plain_sql(node: exp.Expr) -> exp.Expr:
    """Return what plain DuckDB computes instead of a node: it has no WIDTH_BUCKET, and products of DECIMALs fail."""
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DECIMAL:
        return exp.cast(node, "DOUBLE", copy=False)
    if isinstance(node, exp.WidthBucket):
        x, low, high, n = (
            node.args[name].transform(_in_plain_sql).sql("duckdb")
            for name in ("this", "min_value", "max_value", "num_buckets")
        )
        start, width = f"CAST({low} AS DOUBLE)", f"(CAST({high} AS DOUBLE) - CAST({low} AS DOUBLE))"
        inside = f"1 + CAST(FLOOR((CAST({x} AS DOUBLE) - {start}) / {width} * ({n})) AS BIGINT)"
        return parse_one(
            f"(CASE WHEN ({x}) < ({low}) THEN 0 WHEN ({x}) >= ({high}) THEN ({n}) + 1 ELSE {inside} END)",
            dialect="duckdb",
        )
    return node


def _furthest(found: list[Any], scales: list[float], absent: bool, joined: bool) -> float:
    """Return the largest Σ |difference| / scale between two people, or between one and nobody."""
    scaled = np.concatenate([part / scale for part, scale in zip(found, scales, strict=True)], axis=1)
    scaled = np.vstack([scaled, np.zeros_like(scaled[:1])]) if joined else scaled
    states = np.stack(list({row.tobytes(): row for row in scaled}.values()))  # without repetitions
    if absent:
        return float(np.abs(states).sum(axis=1).max())
    return float(max(np.abs(states - state).sum(axis=1).max() for state in states))


def _same(mine: Statistics, theirs: Statistics, people: list[int]) -> bool:
    pairs = (
        (mine.counts, theirs.counts),
        (mine.totals, theirs.totals),
        (mine.squares, theirs.squares),
        (mine.histogram, theirs.histogram),
    )
    return all(np.array_equal(a[:, people], b[:, people]) for a, b in pairs if a is not None)


def _bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def distinct(violations: Sequence[Violation]) -> Iterator[Violation]:
    """One violation of each kind and detail."""
    seen: set[tuple[str, str]] = set()
    for one in violations:
        if (mark := (one.what, one.detail[:60])) not in seen:
            seen.add(mark)
            yield one

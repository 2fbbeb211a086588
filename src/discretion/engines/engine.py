"""Engine: rows become statistics, with any database that has a backend."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines.backend import CHANGED, Admission, Backend, Held
from discretion.engines.buffer import numbers, table_of
from discretion.engines.column import Column
from discretion.engines.memory import Attached, attached, is_object, name_of, place_of
from discretion.engines.person import everybody, without_doubt
from discretion.engines.rehearsal import made_up, shape, unguarded
from discretion.engines.rows import Rows
from discretion.engines.statement import Facts, Statement, declared_facts, statement
from discretion.engines.survey import (
    Counts,
    busy_people,
    distinct_texts,
    keys_without_rows,
    listed_busy,
    owned_rows,
    surveys,
)
from discretion.errors import EngineFailed, QueryRefused
from discretion.noise import coin_key
from discretion.query import Partner
from discretion.statistics import Measure, Request, Statistics

MOST_SHAPES = 1_000  # statements that need no second rehearsal
OTHER_COLUMNS = "The columns of table {name!r} are not those that were declared. Refresh it."
NO_JOINS = "This engine does not join protected tables. Ask about one table, or use the engine DuckDB."


class Engine:
    """Rows in, statistics out. It knows nothing of ε's meaning, mechanisms or balances, and no database by name."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._attached: dict[str, Attached] = {}
        self._rehearsed: dict[Any, None] = {}  # shapes of statements that made-up rows did not make fail
        self._counted: dict[tuple[Any, ...], tuple[bool, bool]] = {}  # a source and its people -> see `_count`

    # Sources --------------------------------------------------------------------------------------------------------

    def attach(self, name: str, table: Any, person: str = "") -> str:
        """Take an Arrow, pandas or Polars object as a source; return its place in the engine's words."""
        self._attached[name] = attached(name, table, person, self.backend)
        return place_of(name)

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Forget what was attached inside the block if it fails."""
        before = dict(self._attached)
        try:
            yield
        except BaseException:
            self._attached = before
            raise

    def admit(self, admission: Admission) -> tuple[str, tuple[str, ...]]:
        """Return where questions read a source, in the engine's words, and hints for the steward."""
        return self.backend.admit(admission)

    def schema(self, source: str) -> Mapping[str, str]:
        """Return the columns of a source and their SQL types."""
        return self._object(source).columns if is_object(source) else self.backend.columns(source)

    def fingerprint(self, source: str) -> str:
        """Return a digest of the whole content of a source: another one after any edit."""
        return self._object(source).digest if is_object(source) else self.backend.fingerprint(source)

    def identity(self, source: str) -> frozenset[str]:
        """Return the marks of a source, however it is spelled: two sources that share one hold the same rows."""
        return frozenset({self._object(source).digest}) if is_object(source) else self.backend.identity(source)

    def people(self, source: str, person: str, epsilon: str = "") -> pa.Table:
        """Return everybody in a source once: person (text), rows, and epsilon (a number or a name) if it is given."""
        types, sources = self.schema(source), {"source": source}
        with self._unchanged(sources):
            people = self._run(everybody(person, types[person], epsilon, types.get(epsilon, "")), sources)
        return without_doubt(people, epsilon)

    def distinct(self, source: str, column: str, most: int) -> tuple[Any, ...] | None:
        """Return every value of a column of a public source in order, NULL last; None if there are more than `most`."""
        named, sources = exp.column(column, quoted=True), {"source": source}
        with self._unchanged(sources):
            select = exp.select(exp.alias_(named, "value")).distinct().from_("source").limit(most + 1)
            values = self._run(select, sources)["value"].to_pylist()
        known = sorted(value for value in values if value is not None)
        return (*known, *([None] if None in values else ())) if len(values) <= most else None

    def survey(self, table: Table, register: str, person: str) -> Counts:
        """Return counts about a table that its steward should know: (measure, column or key) -> count."""
        apart = {} if table.protects == "value" else self.schema(register)
        sources = {"protected": table.source} | ({"register": register} if apart else {})
        counts: Counts = {}
        with self._unchanged(sources):
            for names, select in surveys(table, apart, person):
                (found,) = self._run(select, sources).to_pylist()
                counts |= dict(zip(names, found.values(), strict=True))
            values = {
                column: {*self._run(distinct_texts(table, column), sources)["value"].to_pylist()}
                for column in table.keys
            }
        return {name: count for name, count in {**counts, **keys_without_rows(table, values)}.items() if count}

    # Questions ------------------------------------------------------------------------------------------------------

    def check(self, request: Request[Rows]) -> None:
        """Run the statement over made-up rows with the extremes of every type, and refuse it if one makes it fail."""
        rows = request.source
        if rows.query.partners and not self.backend.joins_people:
            raise QueryRefused(NO_JOINS)
        register = self._register(rows)
        like = "" if is_object(rows.query.table.source) else rows.query.table.source
        mark = shape(request, register), like and (like.partition("#")[1] or "file")
        if mark in self._rehearsed:
            return
        usual = replace(declared_facts(rows, register), windowed=self.backend.windowed)
        single = frozenset(one.name for one in rows.query.partners)
        known = (usual, replace(usual, owned=True, bounded=True, unique=True, single=single))
        stated = [statement(rows, request.measures, facts, "") for facts in known]
        tables = {name: table for one in stated for name, table in one.tables.items()}
        selects = [*(one.select for one in stated), *unguarded(rows)]
        self.backend.rehearse(selects, made_up(rows, register, stated[0]), tables, like)
        self._rehearsed = dict.fromkeys([*list(self._rehearsed)[-MOST_SHAPES:], mark])

    def compute(self, request: Request[Rows]) -> tuple[Statistics, ...]:
        """Return the statistics of every measure, by one statement."""
        rows = request.source
        with self._unchanged(rows.sources) as states:  # what is found out about them holds for what is read
            stated = statement(rows, request.measures, self.facts(rows, states), coin_key())
            answer = self._run(stated.select, stated.sources, stated.tables)
        return statistics_of(answer, stated, request)

    def facts(self, rows: Rows, states: Mapping[str, str]) -> Facts:
        """Return what is known of the sources of a question in these states; it saves work."""
        table, cohorts, register = rows.query.table, rows.cohorts, self._register(rows)
        for one in rows.query.tables:
            if dict(one.columns) != self.schema(one.source):
                raise EngineFailed(OTHER_COLUMNS.format(name=one.name))
        single = frozenset(one.name for one in rows.query.partners if self._is_single(one, states))
        everything = self._held(rows.sources, states)
        beside = self.backend.beside(rows, register, everything, single)  # it may count rows, too
        owned, bounded = self._count(table.source, states["protected"], table.person, table.rows_per_person)
        once = not register or (beside is not None and bool(beside.number))
        who = exp.column(table.person, quoted=True)
        held = self._held({"protected": table.source}, {"protected": states["protected"]})
        busy = "" if bounded else self.backend.busy(listed_busy(who, rows.query.rows_per_person), held)
        return replace(
            declared_facts(rows, register),
            owned=owned,
            bounded=bounded,
            unique=once or self._count(cohorts.register, states["register"], cohorts.person, 1)[1],
            beside=beside,
            windowed=self.backend.windowed,
            busy=busy,
            single=single,
        )

    def _is_single(self, partner: Partner, states: Mapping[str, str]) -> bool:
        """Tell whether nobody has two rows in a table that is joined."""
        if partner.summary is not None:  # each person's rows become one, however many they are
            return False
        return self._count(partner.table.source, states[partner.name], partner.table.person, 1)[1]

    def _count(self, source: str, state: str, person: str, most: int) -> tuple[bool, bool]:
        """Tell whether every row has an owner, and whether nobody has more than `most`: once per state of a source."""
        mark, sources, who = (state, person, most), {"protected": source}, exp.column(person, quoted=True)
        if mark not in self._counted:
            with self._unchanged(sources, {"protected": state}):
                (found,) = self._run(owned_rows(who), sources).to_pylist()
                exceeds = self.backend.exceeds(who, most, found["rows"], self._held(sources, {"protected": state}))
                if exceeds is None:
                    parts = busy_people(who, most, found["rows"], self.backend.part)
                    busy = [self._run(select, sources)["busy"][0].as_py() for select in parts]  # all, whatever is found
                    exceeds = any(busy)
            self._counted[mark] = found["rows"] == found["owned"], not exceeds
        return self._counted[mark]

    def _register(self, rows: Rows) -> Mapping[str, str]:
        """Return the columns of a separate register; none if the table has its own preferences."""
        return self.schema(rows.cohorts.register) if rows.cohorts.register else {}

    @contextmanager
    def _unchanged(
        self, sources: Mapping[str, str], before: Mapping[str, str] | None = None
    ) -> Iterator[Mapping[str, str]]:
        """Give the fingerprints of sources; fail if one of them is not the same after the block."""
        before = before or self._states(sources)
        yield before
        if before != self._states(sources):
            raise EngineFailed(CHANGED)

    def _states(self, sources: Mapping[str, str]) -> dict[str, str]:
        return {name: self.fingerprint(source) for name, source in sources.items()}

    def _run(
        self, select: exp.Expr, sources: Mapping[str, str], tables: Mapping[str, pa.Table] | None = None
    ) -> pa.Table:
        held = self._held(sources, {})
        return self.backend.run(select, held.places, {**held.tables, **(tables or {})})

    def _held(self, sources: Mapping[str, str], states: Mapping[str, str]) -> Held:
        objects = {name: self._object(source) for name, source in sources.items() if is_object(source)}
        return Held(
            places={name: source for name, source in sources.items() if name not in objects},
            tables={name: one.table for name, one in objects.items()},
            states={**states, **{name: one.digest for name, one in objects.items()}},
        )

    def _object(self, source: str) -> Attached:
        name = name_of(source)
        if name not in self._attached:
            raise EngineFailed(f"{name!r} was an object of an earlier program. Attach it again, or protect a file.")
        return self._attached[name]


def statistics_of(answer: pa.Table, stated: Statement, request: Request[Rows]) -> tuple[Statistics, ...]:
    """Return the statistics of every measure, out of what its statement gave."""
    shape = (len(request.source.query.groups), request.source.cohorts.count)
    columns = {column.name: column for column in stated.columns}
    pairs = zip(request.measures, stated.names, strict=True)
    return tuple(_statistics(answer, stated, columns[name], measure, shape) for measure, name in pairs)


def _statistics(
    answer: pa.Table, stated: Statement, column: Column, measure: Measure, shape: tuple[int, int]
) -> Statistics:
    """Return one measure's whole numbers by group and cohort, out of what the SQL gave."""
    several = [other.name for other in stated.columns if other.histogram and f"{other.name}_all" in answer.column_names]
    part, about = answer, np.ones(answer.num_rows, dtype=bool)
    for name in several:
        mine = measure.histogram and name == column.name
        about &= numbers(answer[f"{name}_all"]) == (0 if mine else 1)
    if several:
        part = answer.take(table_of(rows=np.flatnonzero(about))["rows"])
    if measure.histogram:
        return _histogram(part, column, measure, shape)
    counts = _spread(part, f"{column.name}_n", shape)
    if measure.aggregate.kind in ("count", "people"):
        return Statistics(counts=counts.astype(np.int64), totals=counts)
    return Statistics(
        counts=counts.astype(np.int64),
        totals=_spread(part, f"{column.name}_s", shape),
        squares=_spread(part, f"{column.name}_q", shape) if column.squares else None,
    )


def _histogram(part: pa.Table, column: Column, measure: Measure, shape: tuple[int, int]) -> Statistics:
    one = measure.aggregate
    steps = np.arange(one.lower, one.upper + 1)
    part = part.filter(part[column.name].is_valid())
    histogram = np.zeros((*shape, len(steps)), dtype=np.int64)
    places = numbers(part["g"]), numbers(part["c"]), numbers(part[column.name]) - one.lower
    np.add.at(histogram, places, numbers(part["n"].cast(pa.int64())))
    totals = histogram.astype(object) @ steps.astype(object)
    return Statistics(counts=histogram.sum(axis=2), totals=totals, histogram=histogram)


def _spread(part: pa.Table, name: str, shape: tuple[int, int]) -> Any:
    """Return a column of whole numbers of any size added up by (group, cohort), 0 where there is no row."""
    spread = np.zeros(shape, dtype=object)
    places = numbers(part["g"]), numbers(part["c"])
    np.add.at(spread, places, np.array([int(number or 0) for number in part[name].to_pylist()], dtype=object))
    return spread

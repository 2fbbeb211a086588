"""Worlds: one kind of source with people in many states, and another table about the same people."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from discretion.declaration.table import Lookup, Table
from discretion.engines import Cohorts, Rows
from discretion.engines.duckdb import DuckDB
from discretion.guarantee import Protects
from discretion.query import Query
from discretion.statistics import Measure, Request
from fuzz.sources import COPIED, WRITERS, Place
from fuzz.states import CALM, UNSOUND, State, sound, states, table

COUNTED = ("quantile", "mode", "distinct")  # kinds of aggregates that need counts by grid value
CROWD = tuple(range(1001, 1006))
BOUNDS = {
    "d": (-10.0, 90.5),
    "f": (0.0, 10.0),
    "i": (-5.0, 40.0),
    "n": (0.0, 20.0),
    "u": (0.0, 1000.0),
    "h": (30.0, 50.0),
    "m": (0.01, 500.0),
    "r": (0.5, 10.0),
    "q": (0.0, 5.0),
}
SPANS = {"day": ("2023-12-15", "2024-02-10"), "ms": ("1969-12-31", "2024-01-01 12:00:00")}
OTHER = {"od": "d", "oi": "i", "om": "m", "ot": "t", "ok": "k", "ob": "b", "oday": "day", "oat": "at"}


@dataclass
class World:
    """One kind of source, admitted: a crowd alone, everybody in every state, and single states among the crowd.

    Of most kinds there are two worlds: one in which all values are sound, so that it is read in place, and one with a
    value that cannot be read at all, so that questions read a copy.
    """

    kind: str
    folder: Path
    sound: bool = False
    count: int = 50
    server: str = ""
    engine: DuckDB = field(default_factory=lambda: DuckDB(threads=1, memory="700MB"))

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = states(self.count)
        self.states = {who: self._fitting(state) for who, state in enumerate(kept, start=1)}
        self.people = (*self.states, *CROWD)
        kinds = list(self.states.values())
        # What everybody has in the other table: another state, with one row declared; every sixth has none.
        self.others = {who: kinds[7 * who % len(kinds)] if who % 6 else [] for who in self.states}
        self.partners: dict[str, str] = {}  # the other table of each source
        self.calm = self._write("calm", {})
        self.together: dict[int, State] = dict(self.states)
        self.all = self._write("all", self.together)
        self._alone: dict[int, str] = {}
        everybody = pa.table({"id": self.people, "epsilon": list(map(float, self.people))})
        self.register = self.engine.attach("people", everybody)
        self.tables = {"value": self._table("value", 1), "presence": self._table("presence", 2)}

    def known(self, seed: int) -> dict[str, Table]:
        """Return the tables that a question of this seed is about: values or presence, and the other way round."""
        one = self.tables["presence" if seed % 4 == 0 else "value"]
        other: Protects = "value" if one.protects == "presence" and seed % 8 else "presence"
        return {"t": one, "o": self._other(other, one.register)}

    @property
    def name(self) -> str:
        """The kind of source, and how it is read."""
        return f"{self.kind}, {'in place' if self.sound else 'copied'}"

    def alone(self, who: int) -> str:
        """Return the source with one person's state among the crowd; it is written when it is needed."""
        if who not in self._alone:
            self._alone[who] = self._write(f"state{who}", {who: self.states[who]})
        return self._alone[who]

    def leave_out(self, who: int) -> None:
        """Take a state that fails every query out of the crowd, so that the others are tested all the same."""
        del self.together[who]
        self.all = self._write(f"all{len(self.together)}", self.together)

    def _fitting(self, state: State) -> State:
        return [sound(row) for row in state] if self.sound else state

    def _write(self, name: str, people: dict[int, State]) -> str:
        crowd: dict[int, State] = {who: [CALM] for who in CROWD}
        if not self.sound and self.kind not in COPIED:
            crowd[CROWD[-1]] = [UNSOUND]
        place = Place(engine=self.engine, folder=self.folder, server=self.server)
        written = WRITERS[self.kind](place, name, table({**people, **crowd}))
        assert not self.sound or "/copies/" not in written, written
        self.partners[written] = self._write_other(place, name, people)
        return written

    def _write_other(self, place: Place, name: str, people: dict[int, State]) -> str:
        rows = {who: self.others[who] for who in people} | {who: [CALM] for who in CROWD}
        found = table(rows).select(["id", "epsilon", *OTHER.values()]).rename_columns(["who", "epsilon", *OTHER])
        if self.kind == "arrow":
            return self.engine.attach(f"{name}_o", found)
        path = self.folder / f"{name}_o.parquet"
        parquet.write_table(found, path)
        return place.admitted(path, person="who")

    def _other(self, protects: Protects, register: str) -> Table:
        place = self.partners[self.calm]
        return Table(
            name="o",
            source=place,
            person="who",
            epsilon="epsilon" if protects == "value" else "",
            register=register,
            protects=protects,
            columns=dict(self.engine.schema(place)),
            bounds={name: BOUNDS[like] for name, like in OTHER.items() if like in BOUNDS},
            spans={"oday": SPANS["day"]},
            keys={"ok": ("a", "b", None)},
        )

    def _table(self, protects: Protects, rows_per_person: int) -> Table:
        codes = self.engine.attach("codes", pa.table({"code": [1, 7, 2**53, 2**53 + 1], "worth": [1, 2, 3, 4]}))
        labels = self.engine.attach("labels", pa.table({"label": ["12", "a", "", "nan"], "mark": [1, 2, 3, 4]}))
        found = {
            name: Lookup(
                source=place,
                key=key,
                columns=dict(self.engine.schema(place)),
                public=True,
                keys={"worth": (1, 2, 3, 4)} if name == "codes" else {"mark": (1, 2, 4)},
            )
            for name, place, key in (("codes", codes, "code"), ("labels", labels, "label"))
        }
        return Table(
            name="t",
            source=self.calm,
            person="id",
            epsilon="epsilon" if protects == "value" else "",
            register="t" if protects == "value" else "people",
            protects=protects,
            columns=dict(self.engine.schema(self.calm)),
            rows_per_person=rows_per_person,
            bounds=BOUNDS,
            spans=SPANS,
            keys={"k": ("a", "b", None), "e": ("x", "y")},
            required=("r", "q"),
            lookups=found,
        )

    def request(self, query: Query, place: str, draw: int = 0) -> Request:
        """Return what `answer` would ask the engine for, with everybody in a cohort of their own."""
        apart = {} if query.table.epsilon else {"register": self.register, "person": "id", "epsilon": "epsilon"}
        levels = {float(who): number for number, who in enumerate(self.people)}
        cohorts = Cohorts(count=len(self.people), levels=levels, **apart)
        # A mechanism that samples people. Of those whose values are protected it keeps everybody here: people have
        # coins of their own, so two of them could differ by more than one person's two states.
        kept = 2**63 if query.table.protects == "presence" else 2**64
        coins = tuple(kept for _ in self.people) if draw % 8 in (3, 4) else None
        measures = tuple(
            Measure(aggregate=one, histogram=one.kind in COUNTED, inclusion=coins) for one in query.aggregates
        )
        partners = tuple(replace(one, table=replace(one.table, source=self.partners[place])) for one in query.partners)
        placed = replace(query, table=replace(query.table, source=place), partners=partners)
        return Request(measures=measures, source=Rows(query=placed, cohorts=cohorts))

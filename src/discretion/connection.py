"""Connection: a ledger and an engine, for stewards who protect tables and analysts who ask about them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

import pyarrow as pa

from discretion import answer as flow
from discretion.answer import Question
from discretion.audit import LedgerAudit, audit_ledger
from discretion.clock import Clock
from discretion.declaration import declare
from discretion.engines import Engine
from discretion.enrolment import Enrolment
from discretion.errors import EngineFailed, InvalidDeclaration, SourceChanged
from discretion.ledger import Ledger, Receipt, Stop
from discretion.likeness import Likeness
from discretion.listing import Listing
from discretion.mechanisms.belief import Assume
from discretion.plan import Plan
from discretion.release import Release
from discretion.table import Lookup, Table

P = ParamSpec("P")
T = TypeVar("T")
STOPS = pa.schema([(field.name, pa.string()) for field in fields(Stop)])
ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}  # module -> its engine


def connect(
    ledger: str | Path,
    *,
    engine: str = "duckdb",
    analyst: str = "",
    create: bool = True,
    migrate: bool = False,
    answer_every: float = 0.0,
) -> "Connection":
    """Open the ledger at a path or PostgreSQL URL; a path that does not exist becomes a new ledger.

    A ledger of an older version is refused unless `migrate` is true, which brings it up to date; make a copy first.

    answer_every  seconds between ticks: answers come, and entries are written, on a tick only; 0: at once
    """
    if engine not in ENGINES:
        raise InvalidDeclaration(f"engine must be one of {', '.join(map(repr, ENGINES))}, got {engine!r}.")
    # An engine is loaded when it is chosen: discretion itself needs none of them to be installed.
    opened: Engine = getattr(import_module(f"discretion.engines.{engine}"), ENGINES[engine])()
    return Connection(str(ledger), opened, analyst=analyst, create=create, migrate=migrate, answer_every=answer_every)


def _all_or_nothing(method: Callable[P, T]) -> Callable[P, T]:
    """Leave nothing attached to the engine by a call that is refused."""

    @wraps(method)
    def tried(*arguments: P.args, **named: P.kwargs) -> T:
        connection = cast(Connection, arguments[0])
        with connection._engine.tentative():
            return method(*arguments, **named)

    return tried


class Connection:
    """Protected tables, and the ledger that pays for every answer about them."""

    def __init__(
        self,
        place: str,
        engine: Engine,
        *,
        analyst: str = "",
        create: bool = True,
        migrate: bool = False,
        answer_every: float = 0.0,
    ) -> None:
        self._clock = Clock(answer_every)
        self._ledger = Ledger(place, create=create, migrate=migrate, clock=self._clock)
        self._engine, self._analyst = engine, analyst

    def close(self) -> None:
        """Close the ledger; whatever was charged is on disk."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Stewards -------------------------------------------------------------------------------------------------------

    @_all_or_nothing
    def register(self, name: str, source: Any, *, person: str, epsilon: str, **choices: Any) -> Listing:
        """Enrol people with the preferences they chose: columns `person` and `epsilon` of a file, table or data frame.

        levels   names for preferences, e.g. {"strict": 0.1, "open": 1.0}
        menu     levels that every preference is rounded down to
        default  for people who stated none; otherwise they get the strictest level offered
        """
        place = self._place(name, source)
        columns = self._columns(place)
        if unknown := sorted({person, epsilon} - set(columns)):
            raise InvalidDeclaration(
                f"Register {name!r} has no column {', '.join(map(repr, unknown))}; it has "
                f"{', '.join(map(repr, columns))}."
            )
        if unknown := sorted(set(choices) - {"levels", "menu", "default"}):
            raise InvalidDeclaration(
                f"A register has no {', '.join(map(repr, unknown))}; it may have levels, menu and default."
            )
        self._enrol(name, Enrolment(source=place, person=person, epsilon=epsilon, **choices))
        return self.balance(name)

    @_all_or_nothing
    def protect(
        self,
        name: str,
        source: Any,
        *,
        person: str = "",
        epsilon: str = "",
        register: str = "",
        levels: Mapping[str, float] | None = None,
        menu: Sequence[float] = (),
        default: float | str | None = None,
        **declared: Any,
    ) -> Table:
        """Let analysts ask about a table. What is declared here, and who chose what, becomes public.

        With `epsilon`, a column of the table itself, the table is its own register (see `register` for levels, menu
        and default): who is in it is public, their values are protected. With `register`, preferences come from
        people enrolled before, and being in the table at all is protected.

        bounds           {column: (low, high)}: values are clamped to it; needed for sums, averages, quantiles
        grid             {column: step} between candidate answers
        keys             {column: [values]}: every value GROUP BY shows
        rows_per_person  the most rows of one person that count; more are left out at random
        longest_text     the most characters of a text that count (1,000); the person's own text is never cut
        required         columns declared never NULL
        lookups          {name: (source, key)}: unprotected tables that may be joined on their unique key
        policy           what the steward allows: see Policy
        """
        place = self._place(name, source)
        columns = self._columns(place)
        known = [one.name for one in self._ledger.registers()]
        lookups = (declared.get("lookups") or {}).items()
        declared["lookups"] = {key: self._lookup(name, key, value) for key, value in lookups}
        table = declare(name, place, columns, known, person=person, epsilon=epsilon, register=register, **declared)
        self._keep_apart(table)
        if not register:
            choices = Enrolment(
                source=place, person=person, epsilon=epsilon, levels=levels or {}, menu=tuple(menu), default=default
            )
            self._enrol(name, choices)
        if table not in self._ledger.tables():
            self._ledger.declare(table)
        return table

    @_all_or_nothing
    def refresh(self, name: str, source: Any = None) -> str:
        """Accept that the source of a register (or of a table that is its own) changed, or moved to `source`.

        Every difference becomes an individual change; nobody gets back what is spent. Returns the ledger's entry, ""
        if nothing changed.
        """
        table = next((one for one in self._ledger.tables() if one.name == name), None)
        entry = ""
        self._check_again(name, None if source is None else self._place(name, source))
        if table is None or table.register == name:  # first: what people cannot be enrolled from is not declared either
            known = Enrolment.from_json(self._ledger.register(name).source)
            entry = self._renew(name, known if source is None else known.at(self._place(name, source)))
        if table is not None and (source is not None or table.columns != self._engine.schema(table.source)):
            self._redeclare(table, source)
        return entry

    def prefer(self, person: Any, epsilon: float | str, *, register: str = "") -> str:
        """Somebody chooses anew, at any time: a number, or a level by name; 0 withdraws. What is spent stays spent.

        Returns the ledger's entry.
        """
        name = self._one_register(register)
        choices = Enrolment.from_json(self._ledger.register(name).source)
        return self._ledger.prefer(name, person, choices.worth_of(epsilon))

    def resume(self, register: str = "") -> str:
        """Allow questions about a register again, once it is known why one failed; see `history`.

        The form of the question that failed stays refused. Returns the ledger's entry.
        """
        return self._ledger.resume(self._one_register(register))

    def stops(self) -> Listing:
        """Every failure that stopped a register: what failed, when, and whether it was resumed."""
        return Listing(pa.Table.from_pylist([asdict(one) for one in self._ledger.stops()], schema=STOPS))

    def audit(self, *, head: str = "", witnesses: Sequence[str] = ()) -> LedgerAudit:
        """Add every balance up again from the entries and check their seals.

        head       one printed earlier; an old copy that was put back will show
        witnesses  entry ids of released answers; the ledger must have charged for each of them
        """
        return audit_ledger(self._ledger.place, head=head or None, witnesses=witnesses)

    def cautions(self) -> tuple[str, ...]:
        """What the steward should change about the ledger's database, because it can lose charges."""
        return self._ledger.cautions()

    # Analysts -------------------------------------------------------------------------------------------------------

    def sql(
        self,
        sql: str,
        *,
        share: float = 0.1,
        mechanism: str = "auto",
        assume: Assume = None,
        expect: tuple[float, float] | None = None,
        with_interval: bool = False,
        partial: bool = False,
    ) -> Release:
        """Answer a question about one protected table; charged before a row is read.

        share          the most of each person's own allowance that this may use
        mechanism      "auto" (the smallest predicted error) or a name
        assume         None: nothing about the data; "independent": preferences are unrelated to values; or between
        expect         (low, high): every level's fraction or mean is believed to lie there
        with_interval  spend a third of a quantile's share on its interval in value units
        partial        let people who cannot pay their share pay what they have left, instead of refusing
        """
        return flow.answer(
            Question(
                sql=sql,
                share=share,
                mechanism=mechanism,
                assume=assume,
                expect=expect,
                with_interval=with_interval,
                partial=partial,
                analyst=self._analyst,
            ),
            engine=self._engine,
            ledger=self._ledger,
            clock=self._clock,
        )

    def explain(self, sql: str, **how: Any) -> Plan:
        """What `sql` would cost whom and how good the answer would be, with the same options. Free; sees no data."""
        return flow.explain(Question(sql=sql, **how), ledger=self._ledger)

    # Everybody ------------------------------------------------------------------------------------------------------

    def balance(self, register: str = "") -> Listing:
        """What each level has spent and has left, in one register or in all."""
        names = [register] if register else [one.name for one in self._ledger.registers()]
        return Listing.joined("register", {name: self._ledger.balance(name) for name in names})

    def receipt(self, person: Any, *, register: str = "") -> Receipt:
        """What one person was promised, what was spent of it, and on what; it does not depend on the data."""
        return self._ledger.receipt(self._one_register(register), person)

    def history(self) -> Listing:
        """Every entry of the ledger, in order."""
        return Listing(self._ledger.history())

    def tables(self) -> tuple[Table, ...]:
        """Every protected table as it was declared: all of it is public."""
        return self._ledger.tables()

    def head(self) -> str:
        """The end of the ledger's chain: keep it elsewhere, and the audit will notice an older copy."""
        return self._ledger.head()

    # ----------------------------------------------------------------------------------------------------------------

    def _place(self, name: str, source: Any) -> str:
        """Where the rows are, in the engine's words; files by their full path, wherever one asks from."""
        if not isinstance(source, str | Path):
            return self._engine.attach(name, source)
        file, sign, table = str(source).rpartition("#") if "#" in str(source) else (str(source), "", "")
        path = Path(file).resolve()
        if _is_same_file(path, Path(self._ledger.place)):  # reading it would also cancel the ledger's own locks
            raise InvalidDeclaration(f"{str(source)!r} is the ledger itself, so it cannot be a source.")
        return f"{path}{sign}{table}"

    def _columns(self, place: str) -> Mapping[str, str]:
        """The schema of a source that a steward names, who may be told what is wrong with it."""
        self._engine.fingerprint(place)  # says if there is no such file
        try:
            return self._engine.schema(place)
        except EngineFailed:
            file, sign, table = place.rpartition("#")
            if not sign:
                raise
            raise InvalidDeclaration(
                f"Table {table!r} of {file!r} cannot be read. Is there such a table in that DuckDB file, and has "
                "nobody else opened it for writing?"
            ) from None

    def _enrol(self, name: str, choices: Enrolment) -> None:
        known = next((one for one in self._ledger.registers() if one.name == name), None)
        if known is not None and known.fingerprint == self._engine.fingerprint(choices.source):
            enrolled = Enrolment.from_json(known.source)
            if not choices.reads_like(enrolled):
                raise InvalidDeclaration(
                    f"Register {name!r} was enrolled with another person or epsilon column, other levels, another menu "
                    "or default, and that is final. Change preferences in the source and `refresh`, or with `prefer`."
                )
            self._renew(name, enrolled.at(choices.source))  # the same people, maybe elsewhere
            return
        choices, people, fingerprint = self._read(choices)
        others = {one.name: Enrolment.from_json(one.source) for one in self._ledger.registers() if one.name != name}
        Likeness(self._engine).warn_of_the_same_people(name, choices, others)
        self._ledger.enroll(name, people, source=choices.to_json(), fingerprint=fingerprint, menu=choices.offered)

    def _renew(self, name: str, choices: Enrolment) -> str:
        choices, people, fingerprint = self._read(choices)
        return self._ledger.refresh(name, people, fingerprint=fingerprint, source=choices.to_json())

    def _read(self, choices: Enrolment) -> tuple[Enrolment, pa.Table, str]:
        """What everybody's preference is worth, and the fingerprint of the very content that says so."""
        fingerprint = self._engine.fingerprint(choices.source)
        appraised = choices.appraise(self._engine.people(choices.source, choices.person, choices.epsilon))
        if fingerprint != self._engine.fingerprint(choices.source):
            raise SourceChanged("Preferences changed while they were read. Try again when nobody writes to them.")
        return *appraised, fingerprint

    def _lookup(self, table: str, name: str, declared: tuple[Any, str]) -> Lookup:
        # Attached as its table's own: a protected table of the same name must never stand in for it.
        if isinstance(declared, str) or len(declared) != 2:
            raise InvalidDeclaration(f"Lookup {name!r} must be (source, its unique key), got {declared!r}.")
        place, key = self._place(f"{table}.{name}", declared[0]), declared[1]
        columns = self._columns(place)
        if key not in columns:
            raise InvalidDeclaration(f"Lookup {name!r} has no column {key!r}; it has {', '.join(map(repr, columns))}.")
        return Lookup(source=place, key=key, columns=dict(columns))

    def _keep_apart(self, table: Table) -> None:
        """Refuse rows of people as a lookup: joined ON 17 = id, one person's row would meet everybody's."""
        others = [one for one in self._ledger.tables() if one.name != table.name]
        registers = {one.name: Enrolment.from_json(one.source) for one in self._ledger.registers()}
        same = Likeness(self._engine)
        public = [lookup.source for one in (table, *others) for lookup in one.lookups.values()]
        people = [*(one.source for one in (table, *others)), *(one.source for one in registers.values())]
        same.refuse_people(public, people)
        known = registers.get(table.register)
        if table.protects == "presence" and known is not None:
            same.refuse_own_register(table, known)
        owners = known or Enrolment(source=table.source, person=table.person, epsilon=table.epsilon)
        for name, lookup in table.lookups.items():
            same.refuse_identifiers(name, lookup, owners)

    def _check_again(self, name: str, moved: str | None) -> None:
        """Check the lookups of a table, or of all tables of a register, before what they hold now is accepted."""
        for table in self._ledger.tables():
            if name in (table.name, table.register):
                here = moved is not None and table.name == name
                self._keep_apart(replace(table, source=moved) if here and moved is not None else table)

    def _redeclare(self, table: Table, source: Any) -> None:
        place = table.source if source is None else self._place(table.name, source)
        self._ledger.declare(replace(table, source=place, columns=dict(self._engine.schema(place))))

    def _one_register(self, name: str) -> str:
        names = [one.name for one in self._ledger.registers()]
        if name or len(names) == 1:
            return name or names[0]
        if not names:
            raise InvalidDeclaration("Nobody is enrolled yet: begin with `register` or `protect`.")
        raise InvalidDeclaration(f"Say which `register` is meant: the ledger holds {', '.join(map(repr, names))}.")


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them does not exist, or is not a path
        return False

"""Connection: a ledger and an engine, for stewards who protect tables and analysts who ask about them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

import pyarrow as pa

from discretion import answer as flow
from discretion.answer import Paid, Question
from discretion.declaration.concern import Concern, concerns, hints, told, turnover
from discretion.declaration.declare import declare, refuse_unfit
from discretion.declaration.enrolment import Enrolment
from discretion.declaration.notice import notices
from discretion.declaration.source import OPTIONS
from discretion.declaration.table import Lookup, Table
from discretion.engines import Engine
from discretion.engines.likeness import Likeness
from discretion.engines.steward import Admitted, Earlier, Steward, copies_of, looked_up, reading_options
from discretion.errors import InvalidDeclaration, SourceChanged
from discretion.ledger import Ledger, Receipt, Stop
from discretion.ledger.audit import LedgerAudit, audit_ledger
from discretion.ledger.clock import Clock
from discretion.ledger.listing import Balance, History
from discretion.mechanisms.belief import Assume
from discretion.plan import Plan
from discretion.release import Release
from discretion.render.listing import Listing

P = ParamSpec("P")
T = TypeVar("T")
STOPS = pa.schema([(field.name, pa.string()) for field in fields(Stop)])
SERVICE = ("http://", "https://")
ENGINES = {"duckdb": "DuckDB"}  # module -> its engine
MEMORY = "50%"  # of the machine's


def connect(
    ledger: str | Path,
    *,
    engine: str = "duckdb",
    analyst: str = "",
    create: bool = True,
    migrate: bool = False,
    answer_every: float = 0.0,
    copies: str | Path | None = None,
    memory: str = MEMORY,
    token: str = "",
) -> "Connection":
    """Open the ledger at a path or PostgreSQL URL; a path that does not exist becomes a new ledger.

    The URL of a service (https://...) works like a ledger: it answers, and says what the holder of `token` may see.

    migrate       bring a ledger of an older version up to date, which is refused otherwise; make a copy first
    answer_every  seconds between ticks: answers come, and entries are written, on a tick only; 0: at once
    copies        the folder for copies of sources that cannot be read in place; the ledger's own if it is not given
    memory        what the database may use for a question: a share of the machine's memory, or a size such as "4GB"
    """
    if str(ledger).startswith(SERVICE):
        remote = import_module("discretion.service.client")  # an extra: only services need it
        return cast(Connection, remote.RemoteConnection(str(ledger), token=token, analyst=analyst))
    if token:
        raise InvalidDeclaration(f"A token is for a service (https://...), got the ledger {str(ledger)!r}.")
    if engine not in ENGINES:
        raise InvalidDeclaration(f"engine must be one of {', '.join(map(repr, ENGINES))}, got {engine!r}.")
    opened = _Deferred(engine, memory=memory)
    if memory != MEMORY:
        opened.schema  # noqa: B018  refuses a wrong limit here rather than later
    how: dict[str, Any] = {"create": create, "migrate": migrate, "answer_every": answer_every, "copies": copies}
    return Connection(str(ledger), cast(Engine, opened), analyst=analyst, **how)


class _Deferred:
    """An engine that is loaded when it is first used: a look at the ledger needs none, nor that one is installed."""

    def __init__(self, name: str, **limits: Any) -> None:
        self._name, self._limits, self._lock = name, limits, Lock()
        self._engine: Engine | None = None

    def __getattr__(self, method: str) -> Any:
        with self._lock:  # threads that begin together share one engine
            if self._engine is None:
                module = import_module(f"discretion.engines.{self._name}")
                self._engine = getattr(module, ENGINES[self._name])(**self._limits)
        return getattr(self._engine, method)


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
        copies: str | Path | None = None,
    ) -> None:
        self._clock = Clock(answer_every)
        self._ledger = Ledger(place, create=create, migrate=migrate, clock=self._clock)
        self._engine, self._analyst = engine, analyst
        self._steward = Steward(engine=engine, ledger=self._ledger.place, **copies_of(place, copies))
        self._warnings: tuple[Concern, ...] = ()

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
    def register(
        self, name: str, source: Any, *, person: str, epsilon: str, separate: bool = False, **choices: Any
    ) -> Listing:
        """Enrol people with the preferences they chose: columns `person` and `epsilon` of a file, table or data frame.

        levels   names for preferences, e.g. {"strict": 0.1, "open": 1.0}
        menu     levels that every preference is rounded down to
        default  for people who stated none; otherwise they get the strictest level offered
        separate these identifiers name other people than the same identifiers in other registers

        How a file is read: delimiter, encoding, decimal, null, sheet, types (see docs/sources.md).
        """
        options = reading_options(choices)
        if unknown := sorted(set(choices) - {"levels", "menu", "default"}):
            raise InvalidDeclaration(
                f"A register has no {', '.join(map(repr, unknown))}; it may have levels, menu, default and separate."
            )
        with self._admitting() as places:
            found = self._steward.admit(name, source, person=person, known=self._known(name, person), options=options)
            places.append(found.place)
            if unknown := sorted({person, epsilon} - set(found.columns)):
                raise InvalidDeclaration(
                    f"Register {name!r} has no column {', '.join(map(repr, unknown))}; it has "
                    f"{', '.join(map(repr, found.columns))}."
                )
            same = self._enrol(name, self._enrolment(found, person=person, epsilon=epsilon, **choices), separate)
        self._warnings = (*hints(found.hints), *same)
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
        separate: bool = False,
        **declared: Any,
    ) -> Table:
        """Let analysts ask about a table. What is declared here, and who chose what, becomes public.

        With `epsilon`, a column of the table itself, the table is its own register (see `register` for levels, menu,
        default and separate): who is in it is public, their values are protected. With `register`, preferences come
        from people enrolled before, and being in the table at all is protected.

        bounds           {column: (low, high)}: values are clamped to it; needed for sums, averages, quantiles
        grid             {column: step} between candidate answers
        keys             {column: [values]}: every value GROUP BY shows
        rows_per_person  the most rows of one person that count; more are left out at random
        longest_text     the most characters of a text that count (1,000); the person's own text is never cut
        required         columns declared never NULL
        lookups          {name: (source, key)}: unprotected tables that may be joined on their unique key
        policy           what the steward allows: see Policy

        How a file is read: delimiter, encoding, decimal, null, sheet, types (see docs/sources.md). What seems wrong
        with the rows is told by `warnings`, to the steward only.
        """
        options = reading_options(declared)
        with self._admitting() as places:
            found = self._steward.admit(name, source, person=person, known=self._known(name, person), options=options)
            places.append(found.place)
            lookups = (declared.get("lookups") or {}).items()
            declared["lookups"] = {key: self._lookup(name, key, value, places) for key, value in lookups}
            known = [one.name for one in self._ledger.registers()]
            owner: dict[str, Any] = {"person": person, "epsilon": epsilon, "register": register}
            table = replace(
                declare(name, found.place, found.columns, known, **owner, **declared),
                origin=found.origin,
                admitted=found.fingerprint,
            )
            self._keep_apart(table)
            same: tuple[Concern, ...] = ()
            if not register:
                chosen: dict[str, Any] = {"levels": levels or {}, "menu": tuple(menu), "default": default}
                same = self._enrol(name, self._enrolment(found, person=person, epsilon=epsilon, **chosen), separate)
            if table not in self._ledger.tables():
                self._ledger.declare(table)
        self._warnings = (*hints(found.hints), *same, *self._surveyed(table))
        return table

    @_all_or_nothing
    def refresh(self, name: str, source: Any = None, **options: Any) -> str:
        """Admit the state that the source of a table or register is in now, or that it has at the new place `source`.

        Every difference of preferences becomes an individual change; nobody gets back what is spent. Returns the
        ledger's entry about people, "" if nobody changed. Options say how a file is read, if that changed.
        """
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise InvalidDeclaration(f"`refresh` has no {unknown[0]!r}; it may have {', '.join(OPTIONS)}.")
        table = next((one for one in self._ledger.tables() if one.name == name), None)
        with self._admitting() as places:
            if table is not None and table.register != name:
                return self._renew_table(table, source, options, places)
            enrolled = Enrolment.from_json(self._ledger.register(name).source)
            earlier = Earlier.table(table) if table else Earlier.register(enrolled)
            found = self._steward.again(name, earlier, source, options)
            places.append(found.place)
            here = {"origin": found.origin, "person_type": found.columns.get(enrolled.person, "")}
            enrolled = enrolled.at(found.place, **here)
            renewed = self._renewed(table, found, places) if table is not None else None
            for one in self._ledger.tables():
                if one.register == name:
                    self._keep_apart(renewed if renewed and one.name == name else one, enrolled)
            # Renew the register first: if that fails, the declaration must stay as it was.
            entry = self._renew(name, enrolled)
            self._warnings = (*hints(found.hints), *(turnover(*self._ledger.turnover(entry)) if entry else ()))
            if renewed is not None:
                self._warnings += self._surveyed(self._redeclared(table, renewed))
        return entry

    def warnings(self) -> Listing:
        """Return what seemed wrong with the rows that this connection admitted last: for the steward's eyes only."""
        return Listing(told(self._warnings))

    def notices(self) -> Listing:
        """Return the entries whose answers were computed wrongly by an earlier version, and why."""
        return Listing(notices(self._ledger.declared_charges()))

    def prefer(self, person: Any, epsilon: float | str, *, register: str = "") -> str:
        """Somebody chooses anew, at any time: a number, or a level by name; 0 withdraws. What is spent stays spent.

        Returns the ledger's entry.
        """
        name = self._one_register(register)
        choices = Enrolment.from_json(self._ledger.register(name).source)
        return self._ledger.prefer(name, person, choices.worth_of(epsilon))

    def join(self, person: Any, epsilon: float | str, *, register: str = "") -> str:
        """Add somebody who is not in the source of a register, with nothing spent; return the ledger's entry."""
        name = self._one_register(register)
        if any(table.register == name and table.protects == "value" for table in self._ledger.tables()):
            raise InvalidDeclaration(
                f"The people of {name!r} are those in the table itself. Add a row for the person to its source and "
                "`refresh`, or use a register of its own."
            )
        choices = Enrolment.from_json(self._ledger.register(name).source)
        return self._ledger.join(name, person, choices.worth_of(epsilon))

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
        """Return what the steward should change about the ledger's database, because it can lose charges."""
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
        assume         None: nothing about the data; "gradual": people of similar ε are alike, and how values depend on
                       ε is estimated; "independent": preferences are unrelated to values; or a number between
        expect         (low, high): every level's fraction or mean is believed to lie there
        with_interval  spend a third of a quantile's share on its interval in value units
        partial        let people who cannot pay their share pay what they have left, instead of refusing
        """
        return self.ask(
            Question(
                sql=sql,
                share=share,
                mechanism=mechanism,
                assume=assume,
                expect=expect,
                with_interval=with_interval,
                partial=partial,
                analyst=self._analyst,
            )
        )

    def ask(self, question: Question, *, tell: Callable[[str | Paid], None] = lambda _: None) -> Release:
        """Answer a question in the name of its own analyst; `tell` hears of the charge before a row is read."""
        return flow.answer(question, engine=self._engine, ledger=self._ledger, clock=self._clock, tell=tell)

    def finish(self, paid: Paid) -> Release:
        """Answer a question that another process charged before it died; nothing is charged again."""
        if (stored := self._ledger.answered(paid.look.identity)) is not None:
            return Release.from_stored(stored)  # it died after the answer was delivered
        return flow.finish(paid, engine=self._engine, ledger=self._ledger, clock=self._clock)

    def explain(self, sql: str, **how: Any) -> Plan:
        """What `sql` would cost whom and how good the answer would be, with the same options. Free; sees no data."""
        return flow.explain(Question(sql=sql, **how), ledger=self._ledger)

    # Everybody ------------------------------------------------------------------------------------------------------

    def balance(self, register: str = "") -> Balance:
        """What each level has spent and has left, in one register or in all."""
        names = [register] if register else [one.name for one in self._ledger.registers()]
        return Balance.joined("register", {name: self._ledger.balance(name) for name in names})

    def receipt(self, person: Any, *, register: str = "") -> Receipt:
        """What one person was promised, what was spent of it, and on what; it does not depend on the data."""
        return self._ledger.receipt(self._one_register(register), person)

    def history(self) -> History:
        """Every entry of the ledger, in order."""
        return History(self._ledger.history())

    def tables(self) -> tuple[Table, ...]:
        """Every protected table as it was declared: all of it is public."""
        return self._ledger.tables()

    def head(self) -> str:
        """The end of the ledger's chain: keep it elsewhere, and the audit will notice an older copy."""
        return self._ledger.head()

    # ----------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _admitting(self) -> Iterator[list[str]]:
        """Collect places that are admitted; delete copies that nothing refers to afterwards, also after a refusal."""
        before, places = self._used(), list[str]()
        try:
            yield places
        finally:
            self._steward.discard([*before, *places], used=self._used())

    def _used(self) -> set[str]:
        tables = self._ledger.tables()
        registers = {Enrolment.from_json(one.source).source for one in self._ledger.registers()}
        lookups = {lookup.source for table in tables for lookup in table.lookups.values()}
        return registers | lookups | {table.source for table in tables}

    def _known(self, name: str, person: str) -> Mapping[str, str]:
        """Return the types that are final because the source was admitted before."""
        table = next((one for one in self._ledger.tables() if one.name == name and one.person == person), None)
        if table is not None:
            return table.columns
        registers = (Enrolment.from_json(one.source) for one in self._ledger.registers() if one.name == name)
        return {one.person: one.person_type for one in registers if one.person_type}

    def _enrolment(self, found: Admitted, *, person: str, **chosen: Any) -> Enrolment:
        admitted: dict[str, Any] = {"source": found.place, "origin": found.origin, "person_type": found.columns[person]}
        return Enrolment(person=person, **admitted, **chosen)

    def _enrol(self, name: str, choices: Enrolment, separate: bool) -> tuple[Concern, ...]:
        """Enrol people, or accept that they were; return what their steward should know."""
        known = next((one for one in self._ledger.registers() if one.name == name), None)
        if known is not None and known.fingerprint == self._engine.fingerprint(choices.source):
            enrolled = Enrolment.from_json(known.source)
            if not choices.reads_like(enrolled):
                raise InvalidDeclaration(
                    f"Register {name!r} was enrolled with another person or epsilon column, other levels, another menu "
                    "or default, and that is final. Change preferences in the source and `refresh`, or with `prefer`."
                )
            here = {"origin": choices.origin, "person_type": choices.person_type}
            self._renew(name, enrolled.at(choices.source, **here))  # the same people, maybe elsewhere
            return ()
        choices, people, fingerprint = self._read(choices)
        others = {one.name: Enrolment.from_json(one.source) for one in self._ledger.registers() if one.name != name}
        same = Likeness(self._engine).same_people(name, choices, others)
        self._ledger.enroll(
            name,
            people,
            source=choices.to_json(),
            fingerprint=fingerprint,
            menu=choices.offered,
            separate=separate,
        )
        return same

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

    def _lookup(self, table: str, name: str, declared: tuple[Any, str], places: list[str]) -> Lookup:
        # Attached as its table's own: a protected table of the same name must never stand in for it.
        if isinstance(declared, str) or len(declared) != 2:
            raise InvalidDeclaration(f"Lookup {name!r} must be (source, its unique key), got {declared!r}.")
        found, key = self._steward.admit(f"{table}.{name}", declared[0]), declared[1]
        places.append(found.place)
        if key not in found.columns:
            raise InvalidDeclaration(
                f"Lookup {name!r} has no column {key!r}; it has {', '.join(map(repr, found.columns))}."
            )
        return looked_up(key, found)

    def _keep_apart(self, table: Table, enrolled: Enrolment | None = None) -> None:
        """Refuse rows of people as a lookup: joined ON 17 = id, one person's row would meet everybody's."""
        others = [one for one in self._ledger.tables() if one.name != table.name]
        registers = {one.name: Enrolment.from_json(one.source) for one in self._ledger.registers()}
        if enrolled is not None:
            registers[table.register] = enrolled
        same = Likeness(self._engine)
        public = [lookup for one in (table, *others) for lookup in one.lookups.values()]
        same.refuse_people(public, [table, *others, *registers.values()])
        known = registers.get(table.register)
        if table.protects == "presence" and known is not None:
            same.refuse_own_register(table, known)
        owners = known or Enrolment(source=table.source, person=table.person, epsilon=table.epsilon)
        for name, lookup in table.lookups.items():
            same.refuse_identifiers(name, lookup, owners)
        self._steward.refuse_repeated_keys(table.lookups)

    def _renewed(self, table: Table, found: Admitted, places: list[str]) -> Table:
        """Return a table in its new state; its lookups are admitted anew, too."""
        state: dict[str, Any] = {"source": found.place, "origin": found.origin, "admitted": found.fingerprint}
        lookups = {name: self._lookup_again(f"{table.name}.{name}", one, places) for name, one in table.lookups.items()}
        renewed = replace(table, columns=dict(found.columns), lookups=lookups, **state)
        refuse_unfit(renewed)
        return renewed

    def _redeclared(self, table: Table | None, renewed: Table) -> Table:
        if renewed != table:
            self._ledger.declare(renewed)
        return renewed

    def _renew_table(self, table: Table, source: Any, options: Mapping[str, Any], places: list[str]) -> str:
        """Admit a table whose people are enrolled elsewhere: nobody changes, so there is no entry about people."""
        found = self._steward.again(table.name, Earlier.table(table), source, options)
        places.append(found.place)
        renewed = self._renewed(table, found, places)
        self._keep_apart(renewed)
        self._warnings = (*hints(found.hints), *self._surveyed(self._redeclared(table, renewed)))
        return ""

    def _lookup_again(self, name: str, lookup: Lookup, places: list[str]) -> Lookup:
        earlier = Earlier.lookup(lookup)
        if not earlier.is_file:
            return lookup  # an object is in the state it was given in
        found = self._steward.again(name, earlier, None, {})
        places.append(found.place)
        return looked_up(lookup.key, found)

    def _surveyed(self, table: Table) -> tuple[Concern, ...]:
        register = Enrolment.from_json(self._ledger.register(table.register).source)
        return concerns(table, self._engine.survey(table, register.source, register.person))

    def _one_register(self, name: str) -> str:
        names = [one.name for one in self._ledger.registers()]
        if name or len(names) == 1:
            return name or names[0]
        if not names:
            raise InvalidDeclaration("Nobody is enrolled yet: begin with `register` or `protect`.")
        raise InvalidDeclaration(f"Say which `register` is meant: the ledger holds {', '.join(map(repr, names))}.")

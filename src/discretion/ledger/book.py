"""Ledger: registers, declarations and charges in one database; every change is an entry of a hash chain."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from time import sleep
from typing import Any, Self

import pyarrow as pa
import sqlalchemy as sa

from discretion.declaration.table import Policy, Table
from discretion.guarantee import PICO, Guarantee, Model
from discretion.ledger import moving, schema, spend
from discretion.ledger.chain import Entry, entries, find, verify_tip
from discretion.ledger.clock import Clock
from discretion.ledger.history import Asking, DeclaredCharges, askings, history
from discretion.ledger.moving import EnteredBy
from discretion.ledger.offer import Cohort, Offer
from discretion.ledger.people import person_text
from discretion.ledger.receipt import Receipt, Use, receipt, uses
from discretion.ledger.register import Register, cohorts_of, enroll, load, load_all
from discretion.ledger.snapshot import Snapshot, declared_table
from discretion.ledger.stop import Stop, refuse_stopped, resume, stop, stops
from discretion.ledger.store import Store
from discretion.preference import MICRO


class Ledger:
    """Says who has spent what: an SQLite file or a PostgreSQL database, shared by any number of processes.

    One question is a `snapshot`, a plan, `charge`, the computation, `deliver`. A charge is on disk before it returns
    and never refunded: a crash may waste budget, it may not leak.
    """

    def __init__(self, place: str, *, create: bool = True, migrate: bool = False, clock: Clock | None = None) -> None:
        """Open the file or URL `place`; a path that does not exist, or an empty database, becomes a new ledger."""
        self._store = Store(place, create=create, migrate=migrate, clock=clock)
        try:
            with self._store.reading() as db:
                verify_tip(db)
                self._declarations = Snapshot(db).declarations()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database; every charge is on disk already."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r})"

    @property
    def place(self) -> str:
        """The full path or the URL: what opens this very ledger again from any folder."""
        return self._store.place

    def cautions(self) -> tuple[str, ...]:
        """Return what the steward should change about the database, because it can lose charges."""
        return self._store.cautions()

    # Registers ------------------------------------------------------------------------------------------------------

    def enroll(
        self,
        register: str,
        people: pa.Table,
        *,
        source: str,
        fingerprint: str,
        menu: Sequence[float] = (),
        separate: bool = False,
    ) -> str:
        """Take a snapshot of (person, micro_epsilon) under a name; return the entry, or "" if it was taken before.

        The same name with another fingerprint is refused: `refresh` turns differences into individual changes. People
        who are in another register are refused too, unless `separate` says that equal identifiers name other people.
        """
        with self._store.writing() as tx:
            entry = enroll(tx, register, people, source=source, fingerprint=fingerprint, menu=menu, separate=separate)
            if entry is None:  # known; at most its source has another name now
                entry = moving.rename(tx, register, people, source=source)
        return entry.id if entry else ""

    def refresh(self, register: str, people: pa.Table, *, fingerprint: str, source: str = "") -> str:
        """Accept a changed source; return the entry, or "" if nothing changed."""
        with self._store.writing() as tx:
            entry = moving.refresh(tx, register, people, fingerprint=fingerprint, source=source)
        return entry.id if entry else ""

    def turnover(self, entry: str) -> tuple[int, int]:
        """Return how many people came, and how many were set aside, with a refresh."""
        with self._store.reading() as db:
            facts = find(db, entry).facts
            gone = {cohort.id for cohort in cohorts_of(db, load(db, facts["register"])) if cohort.absent}
        came = sum(count for old, _, count in facts["flows"] if old is None)
        return came, sum(count for old, new, count in facts["flows"] if old is not None and new in gone)

    def prefer(self, register: str, person: object, epsilon: float, *, by: EnteredBy = "person") -> str:
        """Write down a person's new choice; 0 withdraws. What is spent stays spent. `by` says who entered it."""
        with self._store.writing() as tx:
            return moving.prefer(tx, register, person_text(person), epsilon, by=by).id

    def join(self, register: str, person: object, epsilon: float, *, by: EnteredBy = "person") -> str:
        """Add a person who is not in the register."""
        with self._store.writing() as tx:
            return moving.join(tx, register, person_text(person), epsilon, by=by).id

    def register(self, name: str) -> Register:
        """The register of this name: its source, fingerprint and levels."""
        with self.snapshot() as seen:
            return seen.register(name)

    def registers(self) -> tuple[Register, ...]:
        """Every register."""
        with self._store.reading() as db:
            return load_all(db)

    def cohorts(self, register: str) -> tuple[Cohort, ...]:
        """Everybody in a register, by what they have spent of what."""
        with self._store.reading() as db:
            return cohorts_of(db, load(db, register))

    def changes(self, register: str, *, at: int | None = None) -> pa.Table:
        """(person, cohort) of everybody who is not where they were enrolled, newcomers included; as of entry `at`."""
        with self.snapshot() as seen:
            return seen.changes(seen.register(register), at=at)

    # Tables ---------------------------------------------------------------------------------------------------------

    def declare(self, table: Table) -> str:
        """Write down what the steward declares about a table."""
        with self._store.writing() as tx:
            return spend.declare(tx, table).id

    def allow(self, name: str, policy: Policy) -> str:
        """Change what the steward allows on a table, and nothing else; return the entry."""
        with self._store.writing() as tx:
            return spend.declare(tx, replace(Snapshot(tx.db).table(name), policy=policy)).id

    def quotas(self, table: str) -> dict[str, float]:
        """Return which share of everybody's allowances each analyst asked for so far."""
        quota = schema.quota.c
        query = sa.select(quota.analyst, quota.micro_share).where(quota.table == table).order_by(quota.analyst)
        with self._store.reading() as db:
            return {analyst: share / MICRO for analyst, share in db.execute(query)}

    def table(self, name: str) -> Table:
        """The table of this name, as last declared."""
        with self.snapshot() as seen:
            return seen.table(name)

    def tables(self) -> tuple[Table, ...]:
        """Every table."""
        with self.snapshot() as seen:
            self._declarations = seen.declarations()
        return self.last_tables

    @property
    def last_tables(self) -> tuple[Table, ...]:
        """Return every table as it was when this ledger was opened, or when `tables` was called last."""
        return tuple(map(declared_table, self._declarations))

    # One question ---------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read one state of the ledger, in one transaction."""
        with self._store.reading() as db:
            yield Snapshot(db)

    def offer(
        self,
        register: str,
        *,
        share: float | Fraction = 0.1,
        parts: int = 1,
        partial: bool = False,
        model: Model = "personalized",
    ) -> Offer:
        """Return what everybody may spend on each part of a question; refuse if somebody cannot pay (see `partial`)."""
        with self.snapshot() as seen:
            made = seen.offer(seen.register(register), share=share, parts=parts, partial=partial, model=model)
        made.available  # noqa: B018  refuses here rather than at the charge
        return made

    def charge(
        self,
        offer: Offer,
        guarantee: Guarantee,
        *,
        table: str,
        analyst: str,
        memo: str,
        plan: str = "",
        question: str = "",
        shape: str = "",
        joined: Sequence[str] = (),
        manner: Mapping[str, Any] | None = None,
    ) -> str:
        """Spend `guarantee`, every cohort or none; return the entry once it is on disk.

        Refused (nothing is spent) with BudgetExhausted, QueryRefused (policy, or a `shape` of statement that failed
        before), TableStopped, or PlanOutdated: offer and plan again.
        """
        facts: dict[str, Any] = {"analyst": analyst, "memo": memo, "plan": plan, "question": question, "shape": shape}
        facts |= {"manner": dict(manner)} if manner else {}  # how it was asked, so that it can be asked again
        with self._store.writing() as tx:
            return spend.charge(tx, offer, guarantee, table=table, facts=facts, joined=joined).id

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the writers' lock: an offer that is made inside stands until it is charged inside."""
        with self._store.writing():
            yield

    def deliver(self, entry: str, answer: str, *, fingerprint: str = "") -> str:
        """Seal the answer (JSON) that a charge paid for, before anybody sees it.

        With the `fingerprint` of the register that was paid for, an answer is refused if the register was refreshed
        since: it may have been computed with other preferences.
        """
        with self._store.writing() as tx:
            return spend.deliver(tx, entry, answer, fingerprint).id

    def answered(self, question: str) -> str | None:
        """The answer (JSON) delivered to the very same question before, free of charge."""
        with self.snapshot() as seen:
            return seen.before(question).answer

    def awaited(self, question: str) -> str | None:
        """The answer to the very same question; wait while somebody who paid for it computes it.

        None if nobody did, or if they gave up or were silent for too long: then the next asker pays. Refused while the
        register is stopped, because no answer is delivered then.
        """
        pause = 0.01
        while True:
            with self._store.reading() as db:
                found, pending = Snapshot(db).before(question)
                for name in pending if found is None else ():
                    refuse_stopped(db, load(db, name))
            if found is not None or not pending:
                return found
            sleep(pause)
            pause = min(2 * pause, 1.0)

    def abandon(self, entry: str) -> str:
        """Record that a charge will have no answer; return the entry, or "" if the charge has ended already."""
        with self._store.writing() as tx:
            abandoned = spend.abandon(tx, entry)
        return abandoned.id if abandoned else ""

    def stop(self, register: str, *, charge: str, shape: str) -> str:
        """Refuse all questions about every table of the register: one failed after its `charge`; return the entry."""
        with self._store.writing() as tx:
            return stop(tx, register, charge=charge, shape=shape).id

    def resume(self, register: str) -> str:
        """Allow questions again; statement shapes that failed stay refused. Return the entry."""
        with self._store.writing() as tx:
            return resume(tx, register).id

    def stops(self) -> tuple[Stop, ...]:
        """Every failure that stopped a register, in order."""
        with self._store.reading() as db:
            return stops(db)

    # What was done --------------------------------------------------------------------------------------------------

    def balance(self, register: str) -> pa.Table:
        """Return what each cohort chose, has spent and has left."""
        cohorts = sorted(self.cohorts(register), key=lambda one: (one.absent, one.micro_allowance, one.micro_spent))
        held = [cohort for cohort in cohorts if cohort.people or cohort.enrolled]
        return pa.table(
            {
                "epsilon": [cohort.micro_allowance / MICRO for cohort in held],
                "spent": [cohort.micro_spent / MICRO for cohort in held],
                "remaining": [cohort.remaining() / MICRO for cohort in held],
                "people": [cohort.people for cohort in held],
                "delta": [cohort.pico_delta / PICO for cohort in held],
                "individual_spent": [cohort.micro_individual / MICRO for cohort in held],
                "in_source": [not cohort.absent for cohort in held],
            }
        )

    def receipt(
        self, register: str, person: object, *, most: int | None = None, names: Mapping[int, str] | None = None
    ) -> Receipt:
        """Return what one person was promised, what was spent of it, and on what: on the `most` newest answers."""
        with self._store.reading() as db:
            return receipt(db, load(db, register), person_text(person), most=most, names=names)

    def uses(self, register: str, person: object, *, before: int | None = None, most: int = 25) -> tuple[Use, ...]:
        """Return answers that could have used a person's data, newest first, from before an entry on."""
        with self._store.reading() as db:
            return uses(db, load(db, register), person_text(person), before=before, most=most)

    def askings(self, *, analyst: str | None = None, before: int | None = None, most: int = 25) -> tuple[Asking, ...]:
        """Return questions that were charged, newest first, of one analyst or of all, from before an entry on."""
        with self._store.reading() as db:
            return askings(db, analyst=analyst, before=before, most=most)

    def history(self) -> pa.Table:
        """Every entry, in order."""
        with self._store.reading() as db:
            return history(entries(db))

    def entries_after(self, seq: int, most: int) -> list[Entry]:
        """Return the next entries after this one, at most so many."""
        with self._store.reading() as db:
            return list(entries(db, after=seq, most=most))

    def declared_charges(self) -> list[dict[str, Any]]:
        """Return every charge with the declaration of its table at that time."""
        with self._store.reading() as db:
            return list(DeclaredCharges().among(entries(db)))

    def head(self) -> str:
        """The end of the chain. Keep it elsewhere: the audit then notices that an old copy was put back."""
        with self._store.reading() as db:
            end = db.execute(sa.select(schema.ledger)).one()
            return f"{end.seq}:{end.hash}"

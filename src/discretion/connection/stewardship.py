"""Stewardship: what stewards call to protect tables, and to keep registers and sources in order."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from discretion.connection.front import Front, Said
from discretion.connection.protection import Protection
from discretion.declaration.concern import Concern, told
from discretion.declaration.enrolment import Enrolment
from discretion.declaration.notice import notices
from discretion.declaration.table import Table, TableList
from discretion.engines import Engine
from discretion.engines.steward import Steward, copies_of
from discretion.errors import InvalidDeclaration
from discretion.ledger import Ledger, Receipt, Stop
from discretion.ledger.audit import LedgerAudit, audit_ledger
from discretion.ledger.clock import Clock
from discretion.ledger.listing import Balance, History
from discretion.ledger.moving import EnteredBy
from discretion.plan import Plan
from discretion.query.quotation import known_names, without_literals
from discretion.render.listing import Listing

STOPS = pa.schema([(field.name, pa.string()) for field in fields(Stop)])


class Stewardship(Front[Plan]):
    """Tables that stewards protect, the people enrolled in them, and the ledger of both."""

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
        steward = Steward(engine=engine, ledger=self._ledger.place, **copies_of(place, copies))
        self._protection = Protection(engine=engine, ledger=self._ledger, steward=steward)
        self._warnings: tuple[Concern, ...] = ()

    def close(self) -> None:
        """Close the ledger; whatever was charged is on disk."""
        self._ledger.close()

    # Stewards -------------------------------------------------------------------------------------------------------

    def _register(self, name: str, source: object, who: Said, chosen: Said, reading: Said) -> Balance:
        self._warnings = self._protection.register(name, source, reading, chosen=chosen, **who)
        return self.balance(name)

    def _protect(
        self, name: str, source: object, who: Said, chosen: Said, reading: Said, declared: dict[str, Any]
    ) -> Table:
        table, self._warnings = self._protection.protect(name, source, reading, declared, chosen=chosen, **who)
        return table

    def _refresh(self, name: str, source: object, reading: Said) -> str:
        entry, self._warnings = self._protection.refresh(name, source, reading)
        return entry

    def _columns(self, source: object, reading: Said) -> Mapping[str, str]:
        return self._protection.columns(source, reading)

    def changed(self) -> tuple[str, ...]:
        """Return the tables and registers whose sources were edited since: questions about them wait for `refresh`."""
        return self._protection.changed()

    def warnings(self) -> Listing:
        """Return what seemed wrong with the rows that this connection admitted last: for the steward's eyes only."""
        return Listing(told(self._warnings))

    def notices(self) -> Listing:
        """Return the entries whose answers were computed wrongly by an earlier version, and why."""
        return Listing(notices(self._ledger.declared_charges()))

    def prefer(self, person: object, epsilon: float | str, *, register: str = "", by: EnteredBy = "steward") -> str:
        """Write down what somebody chose anew: a number, or a level by name; 0 withdraws. What is spent stays spent.

        `by` says who entered it, the steward or the person; receipts show it. Returns the ledger's entry.
        """
        name = self._one_register(register)
        choices = Enrolment.from_json(self._ledger.register(name).source)
        return self._ledger.prefer(name, person, choices.worth_of(epsilon), by=by)

    def join(self, person: object, epsilon: float | str, *, register: str = "") -> str:
        """Add somebody who is not in the source of a register, with nothing spent; return the ledger's entry."""
        name = self._one_register(register)
        if any(table.register == name and table.protects == "value" for table in self._ledger.tables()):
            raise InvalidDeclaration(
                f"The people of {name!r} are those in the table itself. Add a row for the person to its source and "
                "`refresh`, or use a register of its own."
            )
        choices = Enrolment.from_json(self._ledger.register(name).source)
        return self._ledger.join(name, person, choices.worth_of(epsilon), by="steward")

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

    # Everybody ------------------------------------------------------------------------------------------------------

    def balance(self, register: str = "") -> Balance:
        """Return what each level has spent and has left, in one register or in all."""
        names = [register] if register else [one.name for one in self._ledger.registers()]
        return Balance.joined("register", {name: self._ledger.balance(name) for name in names})

    def receipt(self, person: object, *, register: str = "") -> Receipt:
        """Return what one person was promised, what was spent of it, and on what; it does not depend on the data.

        Other people's questions are shown without their literals.
        """
        name, known = self._one_register(register), known_names(self._ledger.tables())
        names = Enrolment.from_json(self._ledger.register(name).source).names
        found = self._ledger.receipt(name, person, names=names)
        return found.quoting(lambda question: without_literals(question, known))

    def history(self) -> History:
        """Every entry of the ledger, in order."""
        return History(self._ledger.history())

    def tables(self) -> TableList:
        """Return every protected table as it was declared: all of it is public. A notebook shows them as a table."""
        return TableList(self._ledger.tables())

    def head(self) -> str:
        """The end of the ledger's chain: keep it elsewhere, and the audit will notice an older copy."""
        return self._ledger.head()

    # ----------------------------------------------------------------------------------------------------------------

    def _one_register(self, name: str) -> str:
        names = [one.name for one in self._ledger.registers()]
        if name or len(names) == 1:
            return name or names[0]
        if not names:
            raise InvalidDeclaration("Nobody is enrolled yet: begin with `register` or `protect`.")
        raise InvalidDeclaration(
            f"The ledger has several registers: {', '.join(map(repr, names))}. Say which one, with `register`."
        )

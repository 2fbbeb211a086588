"""Snapshot: one state of the ledger, read in one transaction. It has everything that a plan depends on."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from discretion.declaration.table import Table
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Model
from discretion.ledger import schema
from discretion.ledger.offer import Cohort, Offer, exact
from discretion.ledger.register import Register, cohorts_of, last_changes, load
from discretion.ledger.stop import refuse_stopped

# Made of no batches: PyArrow's own way to make an empty table imports pandas, if it is installed.
_NO_CHANGES = pa.Table.from_batches([], pa.schema({"person": pa.string(), "cohort": pa.int64()}))
_ENTRY, _LATER = schema.entry.c, schema.entry.alias().c
_DECLARATIONS = sa.select(schema.declaration.c.body).order_by(schema.declaration.c.name)
_DECLARED = sa.select(schema.declaration.c.body).where(schema.declaration.c.name == sa.bindparam("wanted"))
_IS_SETTLED = sa.exists(sa.select(_LATER.seq).where(_LATER.settles == _ENTRY.seq))
_BEFORE = (
    sa.select(_ENTRY.kind, _ENTRY.body)
    .where(
        _ENTRY.question == sa.bindparam("wanted"),
        sa.or_(_ENTRY.kind == "deliver", sa.and_(_ENTRY.kind == "charge", ~_IS_SETTLED)),
    )
    .order_by(_ENTRY.seq)
)
_ALIKE = sa.select(_ENTRY.seq, _ENTRY.kind, _ENTRY.question).where(
    # No BETWEEN, which PostgreSQL does not read with a collation, and no kind, by which SQLite would search.
    _ENTRY.question >= sa.bindparam("first"),
    _ENTRY.question <= sa.bindparam("last"),
)
UNDELIVERED = timedelta(seconds=600)  # a charge without an answer is given up after this time


class Before(NamedTuple):
    """Tells what became of the very same question before."""

    answer: str | None  # JSON, as it was delivered
    pending: frozenset[str]  # registers that paid for it and whose answer may still be delivered


class Snapshot:
    """Says what the ledger says while its transaction is open. Writers wait for it, so read and leave."""

    def __init__(self, db: sa.Connection) -> None:
        self._db = db

    def tables(self) -> tuple[Table, ...]:
        """Return every table as last declared."""
        return tuple(map(declared_table, self.declarations()))

    def table(self, name: str) -> Table:
        """Return the table of this name, as last declared."""
        body = self._db.scalar(_DECLARED, {"wanted": name})
        if body is None:
            raise InvalidDeclaration(f"There is no table {name!r}; declare it with `protect` first.")
        return declared_table(body)

    def declarations(self) -> tuple[str, ...]:
        """Return every table as its declaration is stored."""
        return tuple(self._db.scalars(_DECLARATIONS))

    def register(self, name: str) -> Register:
        """Return the register of this name: its source, fingerprint and levels."""
        return load(self._db, name)

    def before(self, question: str) -> Before:
        """Return the answer (JSON) that was delivered to the very same question before, and who may still get one."""
        found = [(row.kind, json.loads(row.body)) for row in self._db.execute(_BEFORE, {"wanted": question})]
        answers = [str(facts["answer"]) for kind, facts in found if kind == "deliver"]
        paid = (facts for kind, facts in found if kind == "charge" and _is_recent(facts["time"]))
        return Before(
            answer=answers[0] if answers else None,
            pending=frozenset(facts["register"] for facts in paid),
        )

    def alike(self, beginning: str) -> tuple[str, ...]:
        """Return the answered questions that begin with these hexadecimal digits, the first answered one first."""
        found = self._db.execute(_ALIKE, {"first": beginning, "last": f"{beginning}g"}).all()
        return tuple(row.question for row in sorted(found) if row.kind == "deliver")

    def offer(
        self,
        register: Register,
        *,
        share: float | Fraction = 0.1,
        parts: int = 1,
        partial: bool = False,
        model: Model = "personalized",
    ) -> Offer:
        """Return what everybody may spend on each part of a question; refuse if questions are stopped.

        Its `available` refuses if somebody cannot pay.
        """
        refuse_stopped(self._db, register)
        return Offer(
            register=register.name,
            share=exact(share),
            parts=parts,
            partial=partial,
            model=model,
            cohorts=asked(cohorts_of(self._db, register)),
            members=register.members,
            fingerprint=register.fingerprint,
        )

    def changes(self, register: Register, *, at: int | None = None) -> pa.Table:
        """Return (person, cohort) of everybody who is not where they were enrolled, newcomers included."""
        rows = [(row.person, row.cohort) for row in last_changes(self._db, register, at=at)]
        if not rows:
            return _NO_CHANGES
        people, cohorts = zip(*rows, strict=True)
        return pa.table({"person": people, "cohort": cohorts}, _NO_CHANGES.schema)


def asked(cohorts: Iterable[Cohort]) -> tuple[Cohort, ...]:
    """Return the cohorts that questions are about: those with people who are in the source."""
    return tuple(cohort for cohort in cohorts if cohort.people and not cohort.absent)


@lru_cache(maxsize=256)
def declared_table(body: str) -> Table:
    """Return the table that a stored declaration describes."""
    return Table.from_stored(body)


def _is_recent(time: str) -> bool:
    """Tell whether the answer of a charge may still come; abs: another machine's clock may be ahead."""
    return abs(datetime.now(UTC) - datetime.fromisoformat(time)) < UNDELIVERED

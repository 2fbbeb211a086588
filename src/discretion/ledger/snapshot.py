"""Snapshot: one state of the ledger, read in one transaction. It has everything that a plan depends on."""

from fractions import Fraction

import pyarrow as pa
import sqlalchemy as sa

from discretion.declaration.table import Table
from discretion.guarantee import Model
from discretion.ledger import schema, spend
from discretion.ledger.offer import Offer
from discretion.ledger.register import Register, last_changes, load
from discretion.ledger.spend import Before

_DECLARATIONS = sa.select(schema.declaration.c.body).order_by(schema.declaration.c.name)


class Snapshot:
    """Says what the ledger says while its transaction is open. Writers wait for it, so read and leave."""

    def __init__(self, db: sa.Connection) -> None:
        self._db = db

    def tables(self) -> tuple[Table, ...]:
        """Return every table as last declared."""
        return tuple(map(spend.declared_table, self.declarations()))

    def declarations(self) -> tuple[str, ...]:
        """Return every table as its declaration is stored."""
        return tuple(self._db.scalars(_DECLARATIONS))

    def register(self, name: str) -> Register:
        """Return the register of this name: its source, fingerprint and levels."""
        return load(self._db, name)

    def before(self, question: str) -> Before:
        """Return the answer (JSON) that was delivered to the very same question before, and who may still get one."""
        return spend.before(self._db, question)

    def alike(self, beginning: str) -> tuple[str, ...]:
        """Return the answered questions whose text begins like this, the first answered one first."""
        return spend.alike(self._db, beginning)

    def offer(
        self,
        register: Register,
        *,
        share: float | Fraction = 0.1,
        parts: int = 1,
        partial: bool = False,
        model: Model = "personalized",
    ) -> Offer:
        """Return what everybody may spend on each part of a question; its `available` refuses if somebody cannot."""
        return spend.offer(self._db, register, share=share, parts=parts, partial=partial, model=model)

    def changes(self, register: Register, *, at: int | None = None) -> pa.Table:
        """Return (person, cohort) of everybody who is not where they were enrolled, newcomers included."""
        rows = [(row.person, row.cohort) for row in last_changes(self._db, register, at=at)]
        people, cohorts = zip(*rows, strict=True) if rows else ((), ())
        return pa.table({"person": pa.array(people, pa.string()), "cohort": pa.array(cohorts, pa.int64())})

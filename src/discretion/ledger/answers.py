"""Answers: a delivered answer is found by the entry that paid for it."""

import sqlalchemy as sa

from discretion.ledger import schema
from discretion.ledger.book import Ledger
from discretion.ledger.chain import find, read
from discretion.ledger.history import Asking, asking


def stored_answer(ledger: Ledger, id: str) -> tuple[str, str]:
    """Return who asked the question that this entry paid for, and its answer (JSON), "" if there is none."""
    with ledger._store.reading() as db:
        paid = find(db, id)
        rows = db.execute(sa.select(schema.entry).where(schema.entry.c.settles == paid.seq)).all()
    delivered = [entry for entry in map(read, rows) if entry.kind == "deliver"]
    return paid.facts.get("analyst", ""), delivered[0].facts["answer"] if delivered else ""


def stored_question(ledger: Ledger, id: str) -> Asking | None:
    """Return the question that this entry paid for, None if it is not a charge."""
    with ledger._store.reading() as db:
        paid = find(db, id)
        return asking(db, paid) if paid.kind == "charge" else None

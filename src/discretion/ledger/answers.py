"""Answers: a delivered answer is found by the entry that paid for it, and a charge that no answer came of."""

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


def lost_charge(ledger: Ledger, question: str, analyst: str) -> str:
    """Return the charge of this question by this analyst that no entry has ended, "" if there is none."""
    paid, later = schema.entry.c, schema.entry.alias().c
    ended = sa.exists(sa.select(later.seq).where(later.settles == paid.seq))
    query = sa.select(schema.entry).where(paid.question == question, paid.kind == "charge", ~ended)
    with ledger._store.reading() as db:
        found = [read(row) for row in db.execute(query)]
    return next((entry.id for entry in found if entry.facts["analyst"] == analyst), "")

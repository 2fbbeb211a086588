"""Lost: the charge of a process that died before anybody else knew of it."""

import sqlalchemy as sa

from discretion.ledger import schema
from discretion.ledger.book import Ledger
from discretion.ledger.chain import read


def lost_charge(ledger: Ledger, question: str, analyst: str) -> str:
    """Return the charge of this question by this analyst that no entry has ended, "" if there is none."""
    paid, later = schema.entry.c, schema.entry.alias().c
    ended = sa.exists(sa.select(later.seq).where(later.settles == paid.seq))
    query = sa.select(schema.entry).where(paid.question == question, paid.kind == "charge", ~ended)
    with ledger._store.reading() as db:
        found = [read(row) for row in db.execute(query)]
    return next((entry.id for entry in found if entry.facts["analyst"] == analyst), "")

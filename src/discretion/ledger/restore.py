"""Restore: a copy is put back, and the ledger records what it no longer knows.

A copy knows nothing of what was charged after it was made: those charges are refunded, though their answers
are known. Nobody can undo that. It can be recorded, so that audits, receipts and running programs know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, LedgerFailed
from discretion.ledger import schema, sqlite
from discretion.ledger.chain import Writing, append, verify_tip
from discretion.ledger.head import Head
from discretion.ledger.store import Store


@dataclass(frozen=True, kw_only=True)
class Restored:
    """Says what a ledger that was put back knows, and what it does not."""

    entry: str
    head: str
    kept: int  # entries of the copy
    lost: int | None  # entries known to be missing, at least; None: nothing is known about what came after the copy
    missing: tuple[str, ...]  # given entries that the copy does not have

    def __str__(self) -> str:
        told = restored_text({"kept": self.kept, "lost": self.lost})
        return f"{told[:1].upper()}{told[1:]}. Recorded as entry {self.entry}; head {self.head}."


def restore(place: str, *, copy: str = "", head: str = "", witnesses: Sequence[str] = ()) -> Restored:
    """Put a copy back at `place` (or accept one that was put there) and record what is unknown.

    copy       the copy, for a ledger in an SQLite file; nothing may be at `place`
    head       the last head that is known
    witnesses  entry ids of answers that were released
    """
    last = [Head.parse(head).seq] if head else []
    last += [entry_number(id) for id in witnesses]
    if copy:
        _put(copy, place)
    store = Store(place, create=False, migrate=bool(copy), remembers=False)  # the copy itself stays as it is
    try:
        with store.writing() as tx:
            verify_tip(tx.db)
            return _record(tx, head, witnesses, max(last, default=None))
    finally:
        store.close()


def entry_number(id: str) -> int:
    """Return the number in an entry's id."""
    seq, _, seal = id.strip().partition("-")
    if not (seq.isascii() and seq.isdigit() and len(seal) == 12):
        raise InvalidDeclaration(f"An entry's id looks like 17-0123456789ab, as an answer shows it, got {id!r}.")
    return int(seq)


def restored_text(facts: Mapping[str, Any]) -> str:
    """Say what the restored ledger lacks."""
    kept, lost = facts["kept"], facts["lost"]
    if lost is None:
        return f"a copy with {kept} entries was put back; nothing is known about what came after it"
    if lost == 0:
        return f"a copy with {kept} entries was put back; nothing is known to be missing"
    return f"a copy with {kept} entries was put back; at least {lost} are missing, and what they charged is not counted"


def _put(copy: str, place: str) -> None:
    if "://" in place.removeprefix("sqlite:///"):
        raise InvalidDeclaration("A copy in PostgreSQL is put back with PostgreSQL's own tools; leave out the copy.")
    source, target = sqlite.resolved(copy), sqlite.resolved(place)
    if sqlite.exists(target):
        raise LedgerFailed(f"There is a ledger {str(target)!r}. Move it away first, with its journal if it has one.")
    found = sqlite.opened(source, read_only=True)
    with sqlite.Draft(target) as draft, draft.connect() as db:
        sqlite.back_up(found, db.connection.driver_connection)


def _record(tx: Writing, head: str, witnesses: Sequence[str], last: int | None) -> Restored:
    kept = tx.seq
    missing = tuple(id for id in witnesses if not _has(tx.db, id.strip()))
    if head and not _has_head(tx.db, Head.parse(head)):
        missing = (*missing, head)
    # An entry that was given and is missing, though the copy has one of its number, was written after another copy.
    lost = None if last is None else max(last - kept, len(missing))
    facts = {"kept": kept, "last_known": last, "lost": lost, "missing": list(missing)}
    entry = append(tx, "restore", facts)
    return Restored(entry=entry.id, head=f"{entry.seq}:{entry.hash}", kept=kept, lost=lost, missing=missing)


def _has(db: sa.Connection, id: str) -> bool:
    entry = schema.entry.c
    seal = db.scalar(sa.select(entry.hash).where(entry.seq == entry_number(id)))
    return seal is not None and seal.startswith(id.partition("-")[2])


def _has_head(db: sa.Connection, head: Head) -> bool:
    entry = schema.entry.c
    return db.scalar(sa.select(entry.hash).where(entry.seq == head.seq)) == head.hash

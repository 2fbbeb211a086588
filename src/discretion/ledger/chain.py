"""The hash chain: facts become entries, each sealed with SHA-256 over itself and the seal before it.

Every entry has a random number of its own, `salt`, which nobody is shown. Seals are shown to analysts, and entries hold
digests of sources: without the number, who knows all rows but one could try what the last one is.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, LedgerCorrupt
from discretion.ledger import schema
from discretion.ledger.clock import Clock
from discretion.noise import secret_bytes

GENESIS = "0" * 64
SALT = 16  # bytes
# Statements of every question are built once: that takes longer than running them.
_INSERT = sa.insert(schema.entry)
_EXTEND = sa.update(schema.ledger)
_ENTRY = sa.select(schema.entry).where(schema.entry.c.seq == sa.bindparam("wanted"))
_SETTLED = sa.select(schema.entry.c.seq).where(schema.entry.c.settles == sa.bindparam("wanted"))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger, as it was sealed."""

    seq: int
    kind: str
    facts: Mapping[str, Any]
    hash: str

    @property
    def id(self) -> str:
        return f"{self.seq}-{self.hash[:12]}"

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables that it is about: several for a question that joins them."""
        return (self.facts["table"], *self.facts.get("joined", ())) if "table" in self.facts else ()


class Writing:
    """A write transaction: the connection and the end of the chain, which it alone may extend."""

    def __init__(self, db: sa.Connection, *, seq: int, hash: str, clock: Clock | None = None) -> None:
        self.db = db
        self.clock = clock or Clock()
        self.seq = seq
        self.hash = hash


def canonical(facts: object) -> str:
    """One text for one meaning: what is hashed and stored."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def append(
    tx: Writing, kind: str, facts: Mapping[str, Any], *, question: str | None = None, settles: int | None = None
) -> Entry:
    """Add an entry at the end of the chain, in the caller's transaction."""
    seq = tx.seq + 1
    known = {"kind": kind, "previous": tx.hash, "salt": secret_bytes(SALT).hex(), "seq": seq, "time": tx.clock.now()}
    body = canonical({**facts, **known})
    entry = Entry(seq=seq, kind=kind, facts=json.loads(body), hash=digest(body))
    row = {"seq": seq, "kind": kind, "body": body, "hash": entry.hash, "question": question, "settles": settles}
    tx.db.execute(_INSERT, row)
    tx.db.execute(_EXTEND, {"seq": seq, "hash": entry.hash})
    tx.seq, tx.hash = seq, entry.hash
    return entry


def entries(
    db: sa.Connection, *, wanted: list[int] | None = None, after: int = 0, most: int | None = None
) -> Iterator[Entry]:
    """Return the entries in order, all of them, some, or the next ones after one; read as a stream."""
    query = sa.select(schema.entry).where(schema.entry.c.seq > after).order_by(schema.entry.c.seq).limit(most)
    if wanted is not None:
        query = query.where(schema.entry.c.seq.in_(wanted))
    yield from map(read, db.execute(query))


def read(row: sa.Row[Any]) -> Entry:
    """An entry from its stored row."""
    return Entry(seq=row.seq, kind=row.kind, facts=json.loads(row.body), hash=row.hash)


def find(db: sa.Connection, id: str) -> Entry:
    """The entry with this id."""
    seq, _, seal = id.partition("-")
    row = db.execute(_ENTRY, {"wanted": int(seq)}).one_or_none() if seq.isascii() and seq.isdigit() and seal else None
    if row is None or (found := read(row)).id != id:
        raise InvalidDeclaration(f"The ledger has no entry {id!r}; `history` lists them.")
    return found


def settled(db: sa.Connection, seq: int) -> bool:
    """Tell whether a later entry ended this charge: its answer was delivered, or will never come."""
    return db.scalar(_SETTLED, {"wanted": seq}) is not None


def verify_tip(db: sa.Connection) -> None:
    """The end of the chain is where the ledger says it is; cheap enough for every opening."""
    end = db.execute(sa.select(schema.ledger.c.seq, schema.ledger.c.hash)).one_or_none()
    last = db.execute(sa.select(schema.entry).order_by(schema.entry.c.seq.desc()).limit(1)).one_or_none()
    if end is None or last is None or (end.seq, end.hash) != (last.seq, digest(last.body)):
        raise LedgerCorrupt(
            "The ledger's last entry is not the one it ends with: it is damaged or was tampered with. "
            "Restore a copy and run the audit."
        )

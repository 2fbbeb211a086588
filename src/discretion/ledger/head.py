"""Head: the last end of each ledger's chain that this process has seen. An older ledger at its place is refused."""

from threading import Lock
from typing import Any, NamedTuple

import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, LedgerCorrupt
from discretion.ledger import schema
from discretion.ledger.chain import read
from discretion.ledger.failure import RESTORE


class Head(NamedTuple):
    """The number and the seal of the last entry."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read a head as it was printed."""
        seq, _, seal = text.strip().partition(":")
        if not (seq.isascii() and seq.isdigit() and len(seal) == 64):
            raise InvalidDeclaration(f"A head looks like 17:<64 hexadecimal digits>, as it was printed, got {text!r}.")
        return cls(int(seq), seal)


_Key = tuple[str, str]  # where the ledger is, and the identity it was created with
_seen: dict[_Key, Head] = {}
_lock = Lock()


def seen(key: _Key) -> Head | None:
    """Return the last head this process has seen; ask before the transaction begins that must not be older."""
    return _seen.get(key)


def verify(db: sa.Connection, end: Head, known: Head | None) -> bool:
    """Refuse a ledger without the entry this process has seen; return whether a recorded restore explains that."""
    if known is None or (end.seq >= known.seq and _seal(db, end, known.seq) == known.hash):
        return False
    if _is_recorded(db, known):
        return True
    raise LedgerCorrupt(
        f"The ledger no longer has entry {known.seq}, which this process has seen: an older copy was put back, or "
        f"the ledger was replaced. Nothing can be charged. {RESTORE}"
    )


def remember(key: _Key, end: Head, *, anew: bool = False) -> None:
    """Keep the newest head; `anew` after a restore that was recorded."""
    with _lock:
        if anew or key not in _seen or end.seq > _seen[key].seq:
            _seen[key] = end


def _seal(db: sa.Connection, end: Head, seq: int) -> str | None:
    entry = schema.entry.c
    return end.hash if end.seq == seq else db.scalar(sa.select(entry.hash).where(entry.seq == seq))


def _is_recorded(db: sa.Connection, known: Head) -> bool:
    entry = schema.entry.c
    row: Any = db.execute(
        sa.select(schema.entry).where(entry.kind == "restore").order_by(entry.seq.desc()).limit(1)
    ).one_or_none()
    if row is None:
        return False
    last = read(row).facts["last_known"]
    return last is None or last >= known.seq

"""Chronicle: what the whole ledger tells a steward. Each look reads only entries that are new since the last one."""

from threading import Lock
from typing import Any

from discretion.declaration.notice import notices
from discretion.ledger import Ledger
from discretion.ledger.history import DeclaredCharges
from discretion.ledger.timeline import Day, Timeline

BLOCK = 1_000  # entries that are read at once


class Chronicle:
    """Follows a ledger, so that a page takes the same time whether the ledger is short or long."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._seq, self._timeline, self._charges = 0, Timeline(), DeclaredCharges()
        self._notices: list[dict[str, Any]] = []

    def days(self) -> tuple[Day, ...]:
        """Return, day by day, how much of their allowances people used and which levels they chose."""
        with self._lock:
            self._read()
            return self._timeline.days

    def notices(self) -> list[dict[str, Any]]:
        """Return the entries whose answers were computed wrongly by an earlier version, and why."""
        with self._lock:
            self._read()
            return list(self._notices)

    def _read(self) -> None:
        while found := self._ledger.entries_after(self._seq, BLOCK):
            for entry in found:
                self._timeline.add(entry)
            self._notices += notices(self._charges.among(found)).to_pylist()
            self._seq = found[-1].seq

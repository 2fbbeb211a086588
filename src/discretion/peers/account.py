"""Account: what one peer has spent, said and heard, in a SQLite file of its own.

A charge is on disk before anything is sent, is never changed or deleted, and counts for every network that this person
joins with the same account. Scores, publications and what others published are kept too, so that a peer that crashes
and comes back pays for nothing twice.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discretion.errors import BudgetExhausted, InvalidDeclaration, LedgerFailed, PeerRefused
from discretion.preference import allowance

SCHEMA = """
CREATE TABLE IF NOT EXISTS budget (only INTEGER PRIMARY KEY CHECK (only = 1), micro_epsilon INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS charge (
    number INTEGER PRIMARY KEY, moment TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    micro_epsilon INTEGER NOT NULL CHECK (micro_epsilon > 0), purpose TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS charge_kept BEFORE DELETE ON charge
    BEGIN SELECT RAISE(ABORT, 'a charge is never refunded'); END;
CREATE TRIGGER IF NOT EXISTS charge_final BEFORE UPDATE ON charge
    BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END;
CREATE TABLE IF NOT EXISTS score (
    terms TEXT NOT NULL, peer TEXT NOT NULL, score REAL NOT NULL, PRIMARY KEY (terms, peer));
CREATE TABLE IF NOT EXISTS publication (
    terms TEXT NOT NULL, peer TEXT NOT NULL, bits BLOB NOT NULL, PRIMARY KEY (terms, peer));
CREATE TABLE IF NOT EXISTS pin (address TEXT PRIMARY KEY, peer TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS member (peer TEXT PRIMARY KEY, host TEXT NOT NULL, port INTEGER NOT NULL);
"""
MYSELF = ""  # the key of this peer's own publication


class Account:
    """The budget of one person over all networks, and the memory of one peer.

    The budget may be changed at every opening: what was spent stays spent. Without one the budget stays as it is.
    """

    def __init__(self, path: Path | None, *, budget: float | None = None) -> None:
        self.durable, self._held = path is not None, 0
        if budget is None and (path is None or not path.exists()):
            raise InvalidDeclaration(f"There is no account {str(path)!r} yet. Check the folder.")
        micro = None if budget is None else int(allowance(budget))
        if micro is not None and micro <= 0:
            raise InvalidDeclaration(f"A peer needs a budget of at least one millionth, got {budget!r}.")
        if path is not None:
            path.touch(mode=0o600)
        with _failing():
            self._db = sqlite3.connect(path if path is not None else ":memory:", timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # a charge survives a crash of the machine as well
            self._db.executescript(SCHEMA)
            if micro is not None:
                self._db.execute("INSERT OR REPLACE INTO budget VALUES (1, ?)", (micro,))

    @classmethod
    def rehearsal(cls, *, budget: float) -> "Account":
        """Return an account in memory, for experiments with a seeded generator."""
        return cls(None, budget=budget)

    @property
    def budget(self) -> int:
        """The most micro-ε that an item of weight 1 may lose."""
        return int(self._value("SELECT micro_epsilon FROM budget"))

    @property
    def spent(self) -> int:
        """The micro-ε that an item of weight 1 has lost; an item of weight v has lost v times that."""
        return int(self._value("SELECT COALESCE(SUM(micro_epsilon), 0) FROM charge"))

    def charge(self, micro_epsilon: int, purpose: str) -> None:
        """Spend this much durably, or raise BudgetExhausted. Call it before anything is drawn or sent."""
        with self._transaction():
            if self.spent + self._held + micro_epsilon > self.budget:
                raise BudgetExhausted("This peer has no budget left for another answer. Raise --budget to go on.")
            self._do("INSERT INTO charge (micro_epsilon, purpose) VALUES (?, ?)", micro_epsilon, purpose)

    @contextmanager
    def held(self, micro_epsilon: int) -> Iterator[bool]:
        """Keep this much free while another peer is asked whether it takes part; yield whether there is enough."""
        enough = self.spent + self._held + micro_epsilon <= self.budget
        self._held += micro_epsilon if enough else 0
        try:
            yield enough
        finally:
            self._held -= micro_epsilon if enough else 0

    def charge_held(self, micro_epsilon: int, purpose: str) -> None:
        """Spend what `held` kept free."""
        self._held -= micro_epsilon
        try:
            self.charge(micro_epsilon, purpose)
        finally:
            self._held += micro_epsilon

    def charges(self) -> list[tuple[str, int, str]]:
        """Return every charge: when, micro-ε, and what for."""
        return list(self._do("SELECT moment, micro_epsilon, purpose FROM charge ORDER BY number"))

    def keep_score(self, terms: str, peer: str, score: float) -> None:
        """Remember the score of a pair; the first one stands."""
        self._do("INSERT OR IGNORE INTO score VALUES (?, ?, ?)", terms, peer, score)

    def scores(self, terms: str) -> dict[str, float]:
        """Return the score of everybody this peer was compared with."""
        return dict(self._do("SELECT peer, score FROM score WHERE terms = ?", terms))

    def keep_publication(self, terms: str, peer: str, bits: bytes) -> None:
        """Remember what a peer published; the first one stands, because a second one would be another release."""
        self._do("INSERT OR IGNORE INTO publication VALUES (?, ?, ?)", terms, peer, bits)

    def publication(self, terms: str, peer: str = MYSELF) -> bytes | None:
        """Return what a peer published, by default this one."""
        found = list(self._do("SELECT bits FROM publication WHERE terms = ? AND peer = ?", terms, peer))
        return bytes(found[0][0]) if found else None

    def pin(self, address: str, peer: str) -> None:
        """Remember who answered at an address at first contact; refuse anybody else there later."""
        self._do("INSERT OR IGNORE INTO pin VALUES (?, ?)", address, peer)
        known = self._value("SELECT peer FROM pin WHERE address = ?", address)
        if known != peer:
            raise PeerRefused(
                f"Another peer ({peer[:12]}) than at first contact ({known[:12]}) answers at {address}. If it has a "
                f"new identity on purpose, ask for its invitation and join with {peer[:12]}...@{address}."
            )

    def meet(self, peer: str, host: str, port: int) -> None:
        """Remember where a peer listens."""
        self._do("INSERT OR REPLACE INTO member VALUES (?, ?, ?)", peer, host, port)

    def forget(self, peer: str) -> None:
        """Take a peer that left or does not answer out of the address book. It comes back when it says hello."""
        self._do("DELETE FROM member WHERE peer = ?", peer)

    def members(self) -> dict[str, tuple[str, int]]:
        """Return where everybody known listens."""
        return {peer: (host, port) for peer, host, port in self._do("SELECT peer, host, port FROM member")}

    def close(self) -> None:
        self._db.close()

    def _do(self, statement: str, *values: Any) -> list[Any]:
        with _failing():
            return self._db.execute(statement, values).fetchall()

    def _value(self, statement: str, *values: Any) -> Any:
        return self._do(statement, *values)[0][0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Hold the write lock, so that two processes with one account cannot overspend together."""
        self._do("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._do("ROLLBACK")
            raise
        self._do("COMMIT")


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as failure:
        raise LedgerFailed(f"The peer's account cannot be read or written: {failure}. Check the file.") from None

"""Store: a path or URL becomes a checked database with two kinds of transaction, reading and writing.

SQLite keeps its rollback journal and syncs file and directory before a commit returns (synchronous = EXTRA), so between
commits the one file is the whole ledger: a copy of it is complete. Writers queue for one lock (SQLite: BEGIN IMMEDIATE,
PostgreSQL: the row that holds the chain's end), which is what makes overspending together impossible.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from discretion.errors import InvalidDeclaration, LedgerFailed
from discretion.ledger import head, postgresql, schema, sqlite
from discretion.ledger.chain import GENESIS, Writing, append
from discretion.ledger.clock import Clock
from discretion.ledger.failure import reason
from discretion.ledger.head import Head

_LOCKED = sa.select(schema.ledger).with_for_update()
_END = sa.select(schema.ledger.c.seq, schema.ledger.c.hash)
_active: set[object] = set()  # transactions of this process that are under way
_forked_from: set[int] = set()  # this process, if it was forked while another thread used a ledger


def _after_fork() -> None:
    if _active:
        _forked_from.add(os.getpid())


os.register_at_fork(after_in_child=_after_fork)


class Store:
    """An opened ledger database. Safe to share between threads; a forked process gets connections of its own."""

    def __init__(
        self,
        place: str,
        *,
        create: bool,
        migrate: bool,
        read_only: bool = False,
        remembers: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or Clock()
        if "://" in place.removeprefix("sqlite:///"):
            self._engine, self.name = postgresql.opened(place)
            self.place = place
        else:
            path = sqlite.resolved(place)
            self.place = self.name = str(path)
            self._engine = _sqlite(path, create=create, read_only=read_only)
        self._process, self._held, self._remembers = os.getpid(), local(), remembers
        self._key = (self.name, "")
        try:
            self._check(create=create, migrate=migrate)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open one consistent view, or join the writing transaction of this thread."""
        held: Writing | None = getattr(self._held, "writing", None)
        if held is not None:
            yield held.db
            return
        known = head.seen(self._key)
        isolation = {"isolation_level": "REPEATABLE READ"} if self.is_postgresql else {}
        with self._transaction(**isolation) as db:
            self._verify(db, known, db.execute(_END).one_or_none() if self._verifies else None)
            yield db

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Change all or nothing, one writer at a time, on disk before it returns; nested calls join the outer one."""
        held: Writing | None = getattr(self._held, "writing", None)
        if held is not None:
            yield held
            return
        known = head.seen(self._key)
        isolation = {"isolation_level": "READ COMMITTED"} if self.is_postgresql else {"immediate": True}
        with self._transaction(**isolation) as db:
            if self.is_postgresql:
                postgresql.prepare_to_write(db)
            end = db.execute(_LOCKED).one()
            self._verify(db, known, end)
            tx = self._held.writing = Writing(db, seq=end.seq, hash=end.hash, clock=self._clock)
            try:
                yield tx
            finally:
                self._held.writing = None
        self._remember(Head(tx.seq, tx.hash))

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Open a view that can be read for long without keeping writers waiting."""
        if self.is_postgresql:
            with self.reading() as db:
                yield db
            return
        with self._translated():
            engine = sqlite.snapshot(self._engine)
            try:
                with engine.connect() as db:
                    yield db
            finally:
                engine.dispose()

    @property
    def is_postgresql(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    def cautions(self) -> tuple[str, ...]:
        """Say what about the database can break the promise that a charge is durable."""
        if not self.is_postgresql:
            return ()
        with self.reading() as db:
            return postgresql.cautions(db)

    @contextmanager
    def _transaction(self, **options: Any) -> Iterator[sa.Connection]:
        self._leave_parent()
        mark = object()
        _active.add(mark)
        try:
            with self._translated(), self._engine.connect().execution_options(**options) as db, db.begin():
                yield db
        finally:
            _active.discard(mark)

    def _leave_parent(self) -> None:
        """Use no connection of the process that this one was forked from."""
        if os.getpid() in _forked_from and not self.is_postgresql:
            raise LedgerFailed(
                "This process was forked while another thread used a ledger, so it cannot lock the ledger safely. "
                "Start processes with the method 'spawn' or 'forkserver'."
            )
        if self._process != os.getpid():
            self._engine.dispose(close=False)
            self._process = os.getpid()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        dbapi = self._engine.dialect.loaded_dbapi
        try:
            yield
        except (SQLAlchemyError, dbapi.Error) as error:
            raise LedgerFailed(f"The ledger {self.name!r} {reason(error)}") from None  # its text may quote a person
        except UnicodeEncodeError:
            raise InvalidDeclaration(
                "A text contains half of a surrogate pair, which is not a character. Remove it."
            ) from None

    @property
    def _verifies(self) -> bool:
        return self._remembers and bool(self._key[1])

    def _verify(self, db: sa.Connection, known: Head | None, end: Any) -> None:
        if self._verifies and end is not None:
            found = Head(end.seq, end.hash)
            restored = head.verify(db, found, known)
            head.remember(self._key, found, anew=restored)

    def _remember(self, end: Head) -> None:
        if self._verifies:
            head.remember(self._key, end)

    def _check(self, *, create: bool, migrate: bool) -> None:
        """Refuse what is not a complete ledger of this version; the version comes first: it decides on the tables."""
        with self._translated():
            if self.is_postgresql:
                with self._engine.connect() as db:
                    postgresql.refuse_encoding(db, self.name)
            present = set(sa.inspect(self._engine).get_table_names())
            if self.is_postgresql and create and not present & set(schema.metadata.tables):
                _create(self._engine)
                present = set(schema.metadata.tables)
        version = self._version() if schema.ledger.name in present else schema.VERSION
        if version != schema.VERSION:
            self._migrate(version, wanted=migrate)
        elif not set(schema.metadata.tables) <= present:
            raise LedgerFailed(f"{self.name!r} is not a ledger, or only part of one. Nothing was changed.")
        with self.reading() as db:
            first = db.scalar(sa.select(schema.entry.c.body).where(schema.entry.c.seq == 1))
        self._key = (self.name, _identity(first))
        with self.reading():  # refuses an older copy
            pass

    def _version(self) -> int | None:
        with self.reading() as db:
            return db.scalar(sa.select(schema.ledger.c.version))

    def _migrate(self, version: int | None, *, wanted: bool) -> None:
        if version is None or version not in schema.MIGRATIONS or version > schema.VERSION:
            raise LedgerFailed(
                f"The ledger {self.name!r} has version {version}; this discretion reads version {schema.VERSION}. "
                "Use the discretion that wrote it, or a newer one. Nothing was changed."
            )
        if not wanted:
            raise LedgerFailed(
                f"The ledger {self.name!r} has the older version {version}. Make a copy of it, then run `discretion "
                "audit ledger --migrate`, or open it once with migrate=True. Nothing was changed."
            )
        with self.writing() as tx:
            current: int = tx.db.execute(sa.select(schema.ledger.c.version)).scalar_one()
            if current == schema.VERSION:
                return  # somebody else was faster
            for step in range(current, schema.VERSION):
                for statement in schema.MIGRATIONS[step][self._engine.dialect.name]:
                    tx.db.exec_driver_sql(statement)
            tx.db.execute(sa.update(schema.ledger).values(version=schema.VERSION))
            append(tx, "migrate", {"version": schema.VERSION})


def _sqlite(path: Path, *, create: bool, read_only: bool) -> sa.Engine:
    if not sqlite.exists(path):
        if not create:
            raise LedgerFailed(
                f"There is no ledger {str(path)!r}. Check the path. `protect` and `register` make a new one."
            )
        with sqlite.Draft(path) as engine:
            _create(engine)
    return sqlite.opened(path, read_only=read_only)


def _create(engine: sa.Engine) -> None:
    with engine.connect().execution_options(immediate=True) as db, db.begin():
        if engine.dialect.name == "postgresql":
            postgresql.prepare_to_write(db)
            db.exec_driver_sql(f"SELECT pg_advisory_xact_lock({schema.APPLICATION})")
            if sa.inspect(db).has_table(schema.ledger.name):
                return  # somebody else was faster
        else:
            db.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION}")
        schema.metadata.create_all(db)
        db.execute(sa.insert(schema.ledger).values(one=1, version=schema.VERSION, seq=0, hash=GENESIS))
        append(Writing(db, seq=0, hash=GENESIS), "create", {"version": schema.VERSION, "ledger": uuid4().hex})


def _identity(body: str | None) -> str:
    """Return the number that a ledger was created with, from its first entry."""
    try:
        return str(json.loads(body or "")["ledger"])
    except (LookupError, TypeError, ValueError):
        return ""  # damaged, as the audit will say

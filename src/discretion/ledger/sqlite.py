"""SQLite: a path becomes a database engine, and a ledger becomes a snapshot.

The file is opened by SQLite and by nothing else in this process. POSIX drops all locks that a process holds on a file
when any of its handles on that file is closed, so reading even one byte next to SQLite would cancel SQLite's own locks.
"""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from discretion.errors import LedgerFailed
from discretion.ledger import schema
from discretion.ledger.failure import RESTORE, reason

PATIENCE_SECONDS = 60  # how long a writer queues before it gives up
UNCHANGED = "Nothing was changed."


def resolved(place: str) -> Path:
    """Return the full path, once and for all: a later change of folder must not lead to another file."""
    try:
        return Path(place.removeprefix("sqlite:///")).resolve()
    except (OSError, RuntimeError, ValueError):
        raise LedgerFailed("The ledger's path is malformed.") from None


def journal_of(path: Path) -> Path:
    """Return where SQLite keeps what it needs to undo a change."""
    return path.with_name(f"{path.name}-journal")


def exists(path: Path) -> bool:
    """Return whether there is a file; refuse a journal without its ledger."""
    found = os.path.lexists(path)
    if not found and os.path.lexists(journal_of(path)):
        raise LedgerFailed(f"The ledger {str(path)!r} is gone but its journal is there. {RESTORE}")
    return found


def opened(path: Path, *, read_only: bool = False) -> sa.Engine:
    """Open an existing ledger; what is not one, or cannot be written, is refused and not modified."""
    status = _status(path)
    writable = os.access(path, os.W_OK) and bool(status.st_mode & 0o222)  # root may write read-only files; we do not
    engine = engine_for(path, mode="rw" if writable else "ro")
    try:
        _recognise(engine, path)
    except (sqlite3.Error, SQLAlchemyError) as error:
        engine.dispose()
        if "SQLITE_NOTADB" in (told := reason(error)):
            told = "is not a ledger, or its beginning is damaged."
        raise LedgerFailed(f"The ledger {str(path)!r} {told} {UNCHANGED}") from None
    if not writable and not read_only:
        raise LedgerFailed(
            f"The ledger {str(path)!r} is read-only, and no question can be answered without a charge. "
            f"Make it writable. It can be audited as it is. {UNCHANGED}"
        )
    return engine


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except OSError as error:
        raise LedgerFailed(f"The ledger {str(path)!r} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise LedgerFailed(f"The ledger {str(path)!r} cannot be read: it is a folder, not a file. Give a file in it.")
    if not os.access(path, os.R_OK):
        raise LedgerFailed(f"The ledger {str(path)!r} cannot be read: Permission denied.")
    if status.st_size == 0:
        raise LedgerFailed(
            f"The ledger {str(path)!r} is empty: its content is lost, and with it who has spent what. {RESTORE} "
            f"A new ledger needs a path that does not exist. {UNCHANGED}"
        )
    if status.st_size < 512:  # the smallest database
        raise LedgerFailed(f"{str(path)!r} is not a ledger, or its beginning is damaged. {UNCHANGED}")
    return status


def _recognise(engine: sa.Engine, path: Path) -> None:
    """Ask SQLite what the file is, under its own lock: nobody writes to it meanwhile."""
    with engine.connect() as db, db.begin():
        if db.exec_driver_sql("PRAGMA application_id").scalar_one() != schema.APPLICATION:
            raise LedgerFailed(f"{str(path)!r} is an SQLite file, but not a ledger. {UNCHANGED}")
        page = db.exec_driver_sql("PRAGMA page_size").scalar_one()
        whole = page * db.exec_driver_sql("PRAGMA page_count").scalar_one()
        size = path.stat().st_size
    if size % page or size < whole:
        raise LedgerFailed(f"The ledger {str(path)!r} is damaged: its end is missing. {RESTORE} {UNCHANGED}")


def engine_for(path: Path, *, mode: str = "rw") -> sa.Engine:
    """Return an engine that waits for locks, and syncs file, journal and folder before a commit returns."""
    location = f"file:{quote(os.fsencode(path))}"
    url = sa.URL.create("sqlite", database=location, query={"mode": mode, "uri": "true"})
    # No pool: a connection that is kept over a fork would share its locks with the child.
    engine = sa.create_engine(
        url, poolclass=sa.NullPool, connect_args={"timeout": PATIENCE_SECONDS, "isolation_level": None}
    )

    @sa.event.listens_for(engine, "connect")
    def connect(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA cell_size_check = ON")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            connection.close()
            raise LedgerFailed(
                f"The ledger {str(path)!r} was switched to a write-ahead log, so the file alone is not the whole "
                "ledger. Close every program that uses it, then run `PRAGMA journal_mode = DELETE` in sqlite3."
            )

    @sa.event.listens_for(engine, "begin")
    def begin(db: sa.Connection) -> None:
        immediate = db.get_execution_options().get("immediate")
        db.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def snapshot(engine: sa.Engine) -> sa.Engine:
    """Return a private copy, made by SQLite's backup: it can be read for long without keeping writers waiting."""
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # "": a temporary file of this process
    back_up(engine, copy)
    copy.execute("PRAGMA cell_size_check = ON")
    return sa.create_engine("sqlite://", creator=lambda: copy, poolclass=sa.StaticPool)


def back_up(engine: sa.Engine, copy: Any) -> None:
    """Copy a ledger as it is between two changes."""
    with engine.connect() as db, db.begin():
        db.exec_driver_sql("PRAGMA schema_version").scalar_one()  # waits for the lock, then holds it
        source: Any = db.connection.driver_connection
        source.backup(copy)


class Draft:
    """A file that becomes the ledger at `path` when it is complete, and never before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(f"{path.name}.new-{uuid4().hex}")

    def __enter__(self) -> sa.Engine:
        try:
            os.close(os.open(self._draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # nobody else may read it
        except OSError as error:
            raise self._failed(error) from None
        self._engine = engine_for(self._draft)
        return self._engine

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._engine.dispose()
        try:
            if error is None:
                os.link(self._draft, self._path)  # refuses to replace: somebody else's file is as complete as ours
                _sync(self._path.parent)
        except FileExistsError:
            pass
        except OSError as failure:
            raise self._failed(failure) from None
        finally:
            self._draft.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error | SQLAlchemyError):
            raise self._failed(error) from None

    def _failed(self, error: BaseException) -> LedgerFailed:
        told = getattr(error, "strerror", None) or f"it {reason(error)}"
        return LedgerFailed(f"The ledger {str(self._path)!r} could not be created: {told}")


def _sync(folder: Path) -> None:
    if os.name == "posix":  # pragma: no branch
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

"""Store: a path or URL becomes a checked database with two kinds of transaction, reading and writing.

SQLite keeps its rollback journal and syncs file and directory before a commit returns (synchronous = EXTRA), so between
commits the one file is the whole ledger: a copy of it is complete. Writers queue for one lock (SQLite: BEGIN IMMEDIATE,
PostgreSQL: the row that holds the chain's end), which is what makes overspending together impossible.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from discretion.clock import Clock
from discretion.errors import LedgerFailed
from discretion.ledger import schema
from discretion.ledger.chain import GENESIS, Writing, append

PATIENCE_SECONDS = 60  # how long a writer queues before it gives up


class Store:
    """An opened ledger database. Safe to share between threads; processes open their own."""

    def __init__(self, place: str, *, create: bool, migrate: bool, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        if place.startswith("sqlite:///"):
            place = place.removeprefix("sqlite:///")
        if "://" in place:
            self._engine, self.name = _postgresql(place)
        else:
            self._engine, self.name = _sqlite(Path(place), create=create), place
        try:
            self._check(create=create, migrate=migrate)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view; PostgreSQL needs to be told."""
        options = {"isolation_level": "REPEATABLE READ"} if self.is_postgresql else {}
        with self._translated(), self._engine.connect().execution_options(**options) as db, db.begin():
            yield db

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """All or nothing, one writer at a time, on disk before it returns."""
        with self._translated(), self._engine.connect().execution_options(immediate=True) as db, db.begin():
            end = db.execute(sa.select(schema.ledger).with_for_update()).one()
            yield Writing(db, seq=end.seq, hash=end.hash, clock=self._clock)

    @property
    def is_postgresql(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise LedgerFailed(f"The ledger {self.name!r} {_reason(error)}") from None  # its text may quote a person

    def _check(self, *, create: bool, migrate: bool) -> None:
        """Refuse what is not a complete ledger of this version; the version comes first: it decides on the tables."""
        with self._translated():
            present = set(sa.inspect(self._engine).get_table_names())
            if self.is_postgresql and create and not present & set(schema.metadata.tables):
                _create(self._engine)
                present = set(schema.metadata.tables)
        if schema.ledger.name in present:
            with self.reading() as db:
                version = db.scalar(sa.select(schema.ledger.c.version))
            if version != schema.VERSION:
                self._migrate(version, wanted=migrate)
                return
        if not set(schema.metadata.tables) <= present:
            raise LedgerFailed(f"{self.name!r} is not a ledger, or only part of one. Nothing was changed.")

    def _migrate(self, version: int | None, *, wanted: bool) -> None:
        if version is None or version not in schema.MIGRATIONS or version > schema.VERSION:
            raise LedgerFailed(
                f"The ledger {self.name!r} has version {version}; this discretion reads version {schema.VERSION}. "
                "Use the discretion that wrote it, or a newer one. Nothing was changed."
            )
        if not wanted:
            raise LedgerFailed(
                f"The ledger {self.name!r} has the older version {version}. Make a copy of it, then open it once with "
                "migrate=True. Nothing was changed."
            )
        with self.writing() as tx:
            while version < schema.VERSION:
                for statement in schema.MIGRATIONS[version][self._engine.dialect.name]:
                    tx.db.exec_driver_sql(statement)
                version += 1
            tx.db.execute(sa.update(schema.ledger).values(version=version))
            append(tx, "migrate", {"version": version})


def _sqlite(path: Path, *, create: bool) -> sa.Engine:
    journal = path.with_name(f"{path.name}-journal")
    if not path.exists():
        if journal.exists():
            raise LedgerFailed(f"The ledger {str(path)!r} is gone but its journal is there. Restore the file first.")
        if not create:
            raise LedgerFailed(f"There is no ledger {str(path)!r}. Check the path, or make one with `register`.")
        _create_file(path)
    _recognise(path)
    return _sqlite_engine(path)


def _recognise(path: Path) -> None:
    """Look at the file's own first bytes: whatever is not a writable ledger is not even opened as a database."""
    unchanged = "Nothing was changed."
    try:
        with path.open("rb") as file:
            header, status = file.read(100), os.fstat(file.fileno())
        writable = os.access(path, os.W_OK) and status.st_mode & 0o222  # root may write read-only files; we do not
    except OSError as error:
        raise LedgerFailed(f"The ledger {str(path)!r} cannot be read: {error.strerror}.") from None
    if not header:
        raise LedgerFailed(
            f"The ledger {str(path)!r} is empty: its content is lost, and with it who has spent what. "
            f"Restore a copy; a new ledger needs a path that does not exist. {unchanged}"
        )
    if len(header) < 100 or header[:16] != b"SQLite format 3\0":
        raise LedgerFailed(f"{str(path)!r} is not a ledger, or damaged at its beginning. {unchanged}")
    if int.from_bytes(header[68:72], "big") != schema.APPLICATION:
        raise LedgerFailed(f"{str(path)!r} is an SQLite file, but not a ledger. {unchanged}")
    page = int.from_bytes(header[16:18], "big")
    if (
        status.st_size % page and not path.with_name(f"{path.name}-journal").exists()
    ):  # else a writer is about to finish it
        raise LedgerFailed(f"The ledger {str(path)!r} is damaged: its end is missing. Restore a copy. {unchanged}")
    if not writable:
        raise LedgerFailed(
            f"The ledger {str(path)!r} is read-only, and no question can be answered without a charge. "
            f"Make it writable, or open a writable copy. {unchanged}"
        )


def _create_file(path: Path) -> None:
    """The path holds nothing or a complete ledger, never half of one, whoever else creates it at the same time."""
    draft = path.with_name(f"{path.name}.new-{uuid4().hex}")
    try:
        draft.touch()
        engine = _sqlite_engine(draft)
        _create(engine)
        engine.dispose()
        os.link(draft, path)  # refuses to replace
    except FileExistsError:
        pass  # somebody else was faster; theirs is as complete as ours
    except (OSError, SQLAlchemyError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be written"
        raise LedgerFailed(f"The ledger {str(path)!r} could not be created: {reason}.") from None
    finally:
        draft.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    if os.name == "posix":  # pragma: no branch
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _create(engine: sa.Engine) -> None:
    with engine.connect().execution_options(immediate=True) as db, db.begin():
        if engine.dialect.name == "postgresql":
            db.exec_driver_sql(f"SELECT pg_advisory_xact_lock({schema.APPLICATION})")
            if sa.inspect(db).has_table(schema.ledger.name):
                return  # somebody else was faster
        else:
            db.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION}")
        schema.metadata.create_all(db)
        db.execute(sa.insert(schema.ledger).values(one=1, version=schema.VERSION, seq=0, hash=GENESIS))
        append(Writing(db, seq=0, hash=GENESIS), "create", {"version": schema.VERSION, "ledger": uuid4().hex})


def _sqlite_engine(path: Path) -> sa.Engine:
    url = sa.URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "rw", "uri": "true"})
    # no pool: a connection kept over a fork would share its locks with the child
    engine = sa.create_engine(
        url, poolclass=sa.NullPool, connect_args={"timeout": PATIENCE_SECONDS, "isolation_level": None}
    )
    _prepare(engine, "PRAGMA synchronous = EXTRA", "PRAGMA cell_size_check = ON")

    @sa.event.listens_for(engine, "begin")
    def begin(db: sa.Connection) -> None:
        immediate = db.get_execution_options().get("immediate")
        db.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgresql(place: str) -> tuple[sa.Engine, str]:
    try:
        url = sa.make_url(place)
    except SQLAlchemyError:
        raise LedgerFailed("The ledger's URL is malformed; write postgresql+psycopg://user@host/database.") from None
    if url.drivername not in {"postgresql", "postgresql+psycopg"}:
        raise LedgerFailed(f"A ledger is an SQLite file or a postgresql+psycopg:// URL, got {url.drivername}://.")
    try:
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ImportError:
        raise LedgerFailed("A ledger in PostgreSQL needs psycopg: pip install 'discretion[postgres]'.") from None
    _prepare(engine, "SET synchronous_commit = on", f"SET lock_timeout = '{PATIENCE_SECONDS}s'")
    return engine, url.render_as_string(hide_password=True)


def _prepare(engine: sa.Engine, *statements: str) -> None:
    @sa.event.listens_for(engine, "connect")
    def connect(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        connection.commit()


def _reason(error: SQLAlchemyError) -> str:
    """What went wrong, by the database's error code: its message is not for everybody's eyes."""
    orig = error.orig if isinstance(error, DBAPIError) else None
    code = str(getattr(orig, "sqlite_errorname", None) or getattr(orig, "sqlstate", None) or type(error).__name__)
    known: tuple[tuple[Callable[[str], bool], str], ...] = (
        (lambda c: c.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX")), "is damaged. Restore a copy and audit it."),
        (lambda c: c.startswith(("SQLITE_READONLY", "SQLITE_PERM", "25006", "42501")), "may not be written."),
        (lambda c: c.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "40")), "is busy. Try again."),
        (lambda c: c.startswith(("SQLITE_FULL", "53100")), "cannot be written: the disk is full."),
        (lambda c: c.startswith(("SQLITE_CANTOPEN", "08", "57P", "OperationalError")), "cannot be reached."),
    )
    text = next((text for matches, text in known if matches(code)), "failed.")
    return f"{text} (database code {code})"

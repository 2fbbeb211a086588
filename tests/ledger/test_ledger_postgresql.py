"""A ledger in PostgreSQL: durable behind a pooler, never blocked by a stopped program, and silent about passwords."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from test_ledger_processes import processes  # noqa: F401  a fixture

from discretion.errors import LedgerFailed, PlanOutdated
from discretion.ledger import Ledger, postgresql
from discretion.ledger.audit import audit_ledger
from ledgers import ask, clinic, spent

pytestmark = pytest.mark.xdist_group("postgres")
SETTINGS = ("synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout")


def told(db: sa.Connection) -> dict[str, str]:
    return {name: db.exec_driver_sql(f"SHOW {name}").scalar_one() for name in SETTINGS}


def test_every_writing_transaction_sets_what_it_needs_and_leaves_nothing_behind(postgres_place):
    relaxed = postgres_place.replace("options=", "options=-csynchronous_commit%3Doff%20")
    with clinic(relaxed) as ledger:
        for _ in range(2):
            with ledger._store.writing() as tx:
                expected = {"synchronous_commit": "on", "lock_timeout": "1min"}
                assert expected | {"idle_in_transaction_session_timeout": "45s"} == told(tx.db)
            with ledger._store.reading() as db:
                assert ("off", "0") == (told(db)["synchronous_commit"], told(db)["lock_timeout"])


def test_no_statement_is_prepared_on_the_server(postgres_place):
    with clinic(postgres_place) as ledger:
        for _ in range(10):
            ask(ledger, share=0.01)
        with ledger._store.reading() as db:
            assert 0 == db.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one()


def test_the_steward_is_told_that_the_server_does_not_sync(postgres_place):
    with clinic(postgres_place) as ledger:
        assert ["fsync = off" in one for one in ledger.cautions()] == [True]
    audit = audit_ledger(postgres_place)
    assert (True, True) == (audit.passed, "fsync = off" in str(audit))
    with postgres_settings(postgres_place, fsync="on"):
        assert () == audit_ledger(postgres_place).notes


class postgres_settings:
    """Another setting of the server, for a while."""

    def __init__(self, place: str, **settings: str) -> None:
        self._engine = sa.create_engine(place, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        self._settings = settings

    def __enter__(self) -> None:
        self._set(self._settings)

    def __exit__(self, *_: object) -> None:
        self._set(dict.fromkeys(self._settings, "off"))

    def _set(self, settings: dict[str, str]) -> None:
        for name, value in settings.items():
            with self._engine.connect() as db:
                db.exec_driver_sql(f"ALTER SYSTEM SET {name} = {value}")
                db.exec_driver_sql("SELECT pg_reload_conf()")
        for _ in range(100):
            with self._engine.connect() as db:
                if all(db.exec_driver_sql(f"SHOW {name}").scalar_one() == v for name, v in settings.items()):
                    return
            time.sleep(0.05)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused(postgres_server, encoding):
    name = f"other_{encoding.lower()}"
    with sa.create_engine(postgres_server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool).connect() as db:
        db.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}")
        options = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        db.exec_driver_sql(f"CREATE DATABASE {name} {options}")
    with pytest.raises(LedgerFailed, match=f"encoding {encoding}.*UTF8"):
        Ledger(postgres_server.set(database=name).render_as_string(hide_password=False))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host:port/db",
        "postgresql://[::1/db",
        "postgresql://u:secret@host:99999999/db",
        "postgresql://host/db?connect_timeout=soon&password=secret",
        "postgresql://host/db?no_such_option=1&password=secret",
        "postgresql+psycopg://u:secret@/db?host=/nowhere&password=secret&sslpassword=secret",
        "postgresql://ho st/d b?=",
        "postgresql://",
    ],
)
def test_a_malformed_or_dead_url_is_a_clear_error_without_passwords(url):
    with pytest.raises(LedgerFailed) as refusal:
        Ledger(url)
    assert "secret" not in str(refusal.value)
    assert "secret" not in repr(refusal.value.__context__) or refusal.value.__suppress_context__


def test_passwords_are_not_shown(postgres_place):
    with clinic(f"{postgres_place}&password=secret") as ledger:
        assert ("secret" in repr(ledger), "***" in repr(ledger)) == (False, True)
        assert "secret" not in str(audit_ledger(ledger.place))


def hold_the_lock(place: str, ready: str) -> None:
    """Take the writers' lock and stop, as a laptop does when its lid is closed."""
    with Ledger(place) as ledger, ledger._store.writing():
        Path(ready).touch()
        time.sleep(600)


def test_a_stopped_program_loses_the_lock(processes, postgres_place, tmp_path, monkeypatch):  # noqa: F811
    clinic(postgres_place).close()
    ready = tmp_path / "ready"
    process = processes.Process(target=hold_quickly, args=(postgres_place, str(ready)))
    process.start()
    while not ready.exists():
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with Ledger(postgres_place) as ledger:
            start = time.monotonic()
            ask(ledger)
            assert time.monotonic() - start < 30
    finally:
        process.kill()
        process.join(60)
    assert audit_ledger(postgres_place).passed


def hold_quickly(place: str, ready: str) -> None:
    postgresql.IDLE_SECONDS = 2
    hold_the_lock(place, ready)


# Behind a pooler ------------------------------------------------------------------------------------------------------


@pytest.fixture
def pooler(postgres_server, postgres_place, tmp_path) -> Iterator[tuple[str, Path]]:
    """The same empty schema through PgBouncer, which gives every transaction another of three server sessions."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed: apt-get install pgbouncer")
    schema = str(sa.make_url(postgres_place).query["options"]).removeprefix("-csearch_path=")
    with sa.create_engine(postgres_server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool).connect() as db:
        if not db.exec_driver_sql("SELECT 1 FROM pg_roles WHERE rolname = 'pooled'").scalar():
            db.exec_driver_sql("CREATE ROLE pooled SUPERUSER LOGIN")
        db.exec_driver_sql(f"ALTER ROLE pooled SET search_path = {schema}")
        db.exec_driver_sql("ALTER ROLE pooled SET synchronous_commit = off")  # as an administrator may have done
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "pooler"
    folder.mkdir()
    (folder / "users").write_text('"pooled" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"""[databases]
clinic = host={postgres_server.query["host"]} dbname={postgres_server.database} user=pooled
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 3
server_reset_query =
query_wait_timeout = 20
logfile = {folder}/log
pidfile = {folder}/pid
"""
    )
    owner = Path(str(postgres_server.query["host"])).owner()  # whose socket it is
    as_user = ["-u", owner] if os.getuid() == 0 else []
    for path in (tmp_path, folder, *folder.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    for parent in tmp_path.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    running = subprocess.Popen([program, "-q", *as_user, str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL)
    try:
        yield f"postgresql+psycopg://pooled@127.0.0.1:{port}/clinic", folder
    finally:
        running.terminate()
        running.wait(30)


def wait_for(place: str) -> None:
    for _ in range(200):
        try:
            with sa.create_engine(place, poolclass=sa.NullPool).connect():
                return
        except sa.exc.OperationalError:
            time.sleep(0.05)
    pytest.fail("PgBouncer does not answer")


@pytest.mark.slow
def test_behind_a_pooler_every_charge_is_durable_and_none_is_lost(pooler):
    place, folder = pooler
    wait_for(place)
    clinic(place).close()
    seen: list[str] = []
    original = postgresql.prepare_to_write

    def noting(db: sa.Connection) -> None:
        original(db)
        seen.append(told(db)["synchronous_commit"])

    def work(_: int) -> list[str]:
        entries: list[str] = []
        with Ledger(place) as ledger:
            while len(entries) < 25:
                try:
                    entries.append(ask(ledger, share=0.001))
                except PlanOutdated:
                    continue
                ledger.deliver(entries[-1], "{}")
        return entries

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(6) as pool:
        patch.setattr(postgresql, "prepare_to_write", noting)
        entries = [entry for found in pool.map(work, range(6)) for entry in found]
    with Ledger(place) as ledger:
        recorded = {row["entry"] for row in ledger.history().to_pylist() if row["answered"]}
        assert set(entries) == recorded
        assert 150 == len(recorded)
        assert 0.15 == pytest.approx(spent(ledger, "eve"))
    assert {"on"} == set(seen)
    assert audit_ledger(place).passed
    print(f"PgBouncer: {len(seen)} writing transactions, all durable; {len(entries)} charges, 0 lost")
    assert "prepared statement" not in (folder / "log").read_text()

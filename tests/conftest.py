"""What several test files need."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling

from discretion.answer import compound
from discretion.mechanisms import exponential
from discretion.plan import assumption

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # how fast the machine is decides nothing

GOLDEN = Path(__file__).parent / "golden"
GROUPS = {
    "tests/web/": "web",
    "test_crowd": "crowd",
    "spark": "spark",
    "postgres": "postgres",
    "test_types": "types",
}  # a word of an id, a group
MEMORY = Path("/dev/shm")  # files that are kept in memory
ROOM = 4 * 2**30  # bytes that must be free there


def keep_files_in_memory() -> None:
    """Let tests write to memory where there is room: a ledger waits for the disk at every charge."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return
    if not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:  # some tests run programs that they made
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # found anew, here and in the programs that tests start


keep_files_in_memory()


class ByServer(LoadGroupScheduling):
    """Gives all tests that need one server to one process, so that it is started once.

    xdist 3.8 writes a test's group (`xdist_group`) into its id, which pytest 9.2 no longer lets it do.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((group for word, group in GROUPS.items() if word in nodeid), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling | None:
    return ByServer(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Any]:
    """The exact test vectors: golden("pdp") or golden("hdp")."""
    return lambda name: json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.fixture(autouse=True)
def _nothing_is_kept_from_another_test() -> None:
    """Bugs that are planted in a mechanism or in how questions are read must show, and must not stay."""
    compound.read.cache_clear()
    assumption._tuned.cache_clear()
    exponential._error.cache_clear()


def start_postgres(data: Path) -> Any:
    """pgserver gives a start ten seconds; a busy machine may need more, while the server goes on starting."""
    import pgserver

    for _ in range(5):
        try:
            return pgserver.get_server(data, cleanup_mode="delete")
        except (subprocess.SubprocessError, AssertionError):  # also: another worker adds its user at once
            pgserver.PostgresServer._instances.clear()
            time.sleep(3)
    return pgserver.get_server(data, cleanup_mode="delete")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[sa.URL]:
    """A throw-away PostgreSQL server, as root too; tests that use it are marked xdist_group("postgres")."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="discretion-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server runs as a user of its own when we are root
        (folder / "runtime").mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))  # its lock files; read when it is imported
        server = start_postgres(folder / "data")
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()")  # tests kill clients, not the machine
        yield sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        server.cleanup()


@pytest.fixture
def postgres_place(postgres_server: sa.URL) -> str:
    """The URL of an empty PostgreSQL schema of this test's own."""
    name = f"test_{uuid4().hex}"
    engine = sa.create_engine(postgres_server, poolclass=sa.NullPool)
    with engine.begin() as db:
        db.exec_driver_sql(f"CREATE SCHEMA {name}")
    own = postgres_server.update_query_dict({"options": f"-csearch_path={name}"})
    return own.render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small Spark in this process; tests that use it are marked xdist_group("spark")."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark is NOT tested: there is no Java 17 on this machine. See the target java in the Makefile.")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling takes longer than these few rows
        "spark.sql.codegen.wholeStage": "false",
        "spark.log.level": "OFF",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    builder = SparkSession.builder
    for name, setting in settings.items():
        builder = builder.config(name, setting)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may live: a path, then a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "clinic.discretion")
    return str(request.getfixturevalue("postgres_place"))

"""Sources: how long admission takes, as a multiple of a plain read in the same run."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import psycopg

import discretion as dn
from discretion.declaration.source import source_of
from discretion.engines import Admission
from discretion.engines.duckdb import DuckDB

ROWS = 1_000_000
TABLE = f"""CREATE TABLE visits AS SELECT i AS id, (i % 1000)::int AS x, random() * 100 AS cost, i % 2 = 0 AS adult,
    DATE '2024-01-01' + (i % 365)::int AS day, 'text ' || i % 50 AS note, 1.0::double precision AS epsilon
    FROM generate_series(1, {ROWS}) AS s(i)"""


def best(work: Callable[[], Any], times: int = 3) -> float:
    """Return the seconds of the fastest run."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def plain_read(url: str) -> int:
    """Read the table with ADBC into memory."""
    with adbc.connect(url) as db, db.cursor() as cursor:
        cursor.execute("SELECT * FROM visits")
        return int(cursor.fetch_arrow_table().num_rows)


def main() -> None:
    """Print the seconds of a plain read, of admission, and their ratio."""
    import pgserver

    with tempfile.TemporaryDirectory(prefix="discretion-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = pgserver.get_server(folder / "data", cleanup_mode="delete")
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(TABLE)
        request = Admission(source=source_of(f"{url}#visits"), person="id", folder=folder / "copies", label="visits")
        (folder / "copies").mkdir()
        reading = best(lambda: plain_read(url))
        admitting = best(lambda: DuckDB().admit(request))
        print(f"{ROWS:,} rows x 7 columns of PostgreSQL on {os.cpu_count()} cores")
        print(f"plain ADBC read {reading:.2f} s, admission {admitting:.2f} s, ratio {admitting / reading:.2f}")
        with dn.connect(folder / "l.discretion") as ledger:
            whole = best(lambda: ledger.protect("visits", f"{url}#visits", person="id", epsilon="epsilon"), times=1)
        print(f"protect with {ROWS:,} people enrolled: {whole:.2f} s")
        server.cleanup()
        if admitting > 1.5 * reading:
            sys.exit("Admission takes more than 1.5 times a plain read.")


if __name__ == "__main__":
    main()

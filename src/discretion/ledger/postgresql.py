"""PostgreSQL: a URL becomes a database engine whose every transaction sets what it needs by itself.

Behind a connection pooler a connection is another server session in every transaction. So nothing is set once for a
connection, and no statement is prepared on the server.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from discretion.errors import LedgerFailed, needed
from discretion.ledger.sqlite import PATIENCE_SECONDS

IDLE_SECONDS = 45  # a stopped program must let go of the lock before those who wait for it give up
LONGEST_SECONDS = 600  # for one statement: enrolling millions takes minutes
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def opened(place: str) -> tuple[sa.Engine, str]:
    """Return an engine for the URL, and its name without passwords."""
    try:
        url = sa.make_url(place)
        shown = url.set(query=_without_passwords(url.query)).render_as_string(hide_password=True)
    except (SQLAlchemyError, ValueError):
        raise LedgerFailed("The ledger's URL is malformed; write postgresql+psycopg://user@host/database.") from None
    if url.drivername not in {"postgresql", "postgresql+psycopg"}:
        raise LedgerFailed(f"A ledger is an SQLite file or a postgresql+psycopg:// URL, got {url.drivername}://.")
    limits = {**_KEEPALIVE, "tcp_user_timeout": 1000 * PATIENCE_SECONDS}
    kept = {name: value for name, value in limits.items() if name not in url.query}
    try:
        engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            use_native_hstore=False,
            connect_args={**kept, "prepare_threshold": None, "client_encoding": "utf8"},
        )
    except ImportError:
        raise LedgerFailed(needed("postgres", "A ledger in PostgreSQL", "psycopg")) from None
    except (SQLAlchemyError, TypeError, ValueError):
        raise LedgerFailed(f"The ledger's URL {shown!r} has an option that cannot be used.") from None
    return engine, shown


def _without_passwords(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "***" if "password" in name.lower() else value for name, value in query.items()}


def prepare_to_write(db: sa.Connection) -> None:
    """Set, for this transaction only, that its commit is durable and that it waits and idles within limits."""
    settings = {
        "synchronous_commit": "on",
        "lock_timeout": f"{PATIENCE_SECONDS}s",
        "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
        "statement_timeout": f"{LONGEST_SECONDS}s",
        "tcp_keepalives_idle": str(_KEEPALIVE["keepalives_idle"]),
        "tcp_keepalives_interval": str(_KEEPALIVE["keepalives_interval"]),
        "tcp_keepalives_count": str(_KEEPALIVE["keepalives_count"]),
    }
    db.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in settings.items())))


def refuse_encoding(db: sa.Connection, name: str) -> None:
    """Refuse a database that cannot store every name, or does not check what it stores."""
    encoding = db.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise LedgerFailed(
            f"The database of the ledger {name!r} has the encoding {encoding}; a ledger needs UTF8. Create the "
            "database with ENCODING 'UTF8' TEMPLATE template0."
        )


def cautions(db: sa.Connection) -> tuple[str, ...]:
    """Say which settings of the server can lose charges that were reported as durable."""
    query = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name"
    return tuple(
        f"The PostgreSQL server runs with {name} = off: a power cut can lose charges or the whole ledger. "
        f"Set {name} = on."
        for name in db.exec_driver_sql(query).scalars()
    )

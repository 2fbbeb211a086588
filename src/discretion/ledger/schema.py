"""The ledger's tables, in SQLite and PostgreSQL alike, and how older ones become newer ones.

`entry` is the ledger: append-only and hash-chained. Every other table follows from it and from the people
enrolled, and is kept so that nothing has to be added up twice; the audit adds up again.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

VERSION = 2
APPLICATION = 0x44697363  # "Disc" in SQLite's header: tells a ledger from any other SQLite file

# version -> database -> the statements that lead to the next version; applied only when the steward asks for it.
# They are written out: a migration must not change when the tables below do.
MIGRATIONS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    1: {
        "sqlite": (
            "CREATE TABLE discretion_stop (seq INTEGER NOT NULL, register INTEGER NOT NULL, charge TEXT NOT NULL, "
            "shape TEXT NOT NULL, resumed INTEGER, PRIMARY KEY (seq)) WITHOUT ROWID",
            "CREATE INDEX ix_discretion_stop_register ON discretion_stop (register)",
            "CREATE INDEX ix_discretion_entry_kind ON discretion_entry (kind)",
            "CREATE TABLE discretion_member (name TEXT NOT NULL, role TEXT NOT NULL, seq INTEGER NOT NULL, "
            "revoked INTEGER, PRIMARY KEY (name)) WITHOUT ROWID",
            "CREATE TABLE discretion_token (digest TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, "
            "member TEXT NOT NULL, label TEXT NOT NULL, expires TEXT NOT NULL, PRIMARY KEY (digest)) WITHOUT ROWID",
            "CREATE TABLE discretion_invitation (digest TEXT NOT NULL, seq INTEGER NOT NULL, "
            "register INTEGER NOT NULL, person TEXT NOT NULL, expires TEXT NOT NULL, PRIMARY KEY (digest)) "
            "WITHOUT ROWID",
            "CREATE INDEX ix_discretion_invitation_person ON discretion_invitation (person)",
            "CREATE TABLE discretion_ended (digest TEXT NOT NULL, how TEXT NOT NULL, seq INTEGER NOT NULL, "
            "PRIMARY KEY (digest, how)) WITHOUT ROWID",
        ),
        "postgresql": (
            "CREATE TABLE discretion_stop (seq BIGINT NOT NULL, register BIGINT NOT NULL, "
            'charge TEXT COLLATE "C" NOT NULL, shape TEXT COLLATE "C" NOT NULL, resumed BIGINT, PRIMARY KEY (seq))',
            "CREATE INDEX ix_discretion_stop_register ON discretion_stop (register)",
            "CREATE INDEX ix_discretion_entry_kind ON discretion_entry (kind)",
            'CREATE TABLE discretion_member (name TEXT COLLATE "C" NOT NULL, role TEXT COLLATE "C" NOT NULL, '
            "seq BIGINT NOT NULL, revoked BIGINT, PRIMARY KEY (name))",
            'CREATE TABLE discretion_token (digest TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, '
            'kind TEXT COLLATE "C" NOT NULL, member TEXT COLLATE "C" NOT NULL, label TEXT COLLATE "C" NOT NULL, '
            'expires TEXT COLLATE "C" NOT NULL, PRIMARY KEY (digest))',
            'CREATE TABLE discretion_invitation (digest TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, '
            'register BIGINT NOT NULL, person TEXT COLLATE "C" NOT NULL, expires TEXT COLLATE "C" NOT NULL, '
            "PRIMARY KEY (digest))",
            "CREATE INDEX ix_discretion_invitation_person ON discretion_invitation (person)",
            'CREATE TABLE discretion_ended (digest TEXT COLLATE "C" NOT NULL, how TEXT COLLATE "C" NOT NULL, '
            "seq BIGINT NOT NULL, PRIMARY KEY (digest, how))",
        ),
    },
}

metadata = sa.MetaData()
_Whole = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")  # compared byte by byte, as SQLite and Arrow do


def _table(name: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(f"discretion_{name}", metadata, *columns, sqlite_with_rowid=name in {"entry", "cohort"})


def _whole(name: str, **options: Any) -> sa.Column[int]:
    return sa.Column(name, _Whole, **{"nullable": False, "autoincrement": False, **options})


def _text(name: str, **options: Any) -> sa.Column[str]:
    return sa.Column(name, _Text, **{"nullable": False, **options})


ledger = _table(  # one row: the end of the chain; locked by whoever writes
    "ledger",
    _whole("one", primary_key=True),
    _whole("version"),
    _whole("seq"),
    _text("hash"),
    sa.CheckConstraint("one = 1"),
)
entry = _table(
    "entry",
    _whole("seq", primary_key=True),
    _text("kind", index=True),
    _text("body"),  # canonical JSON with the hash of the entry before; the columns below repeat parts of it
    _text("hash"),
    _text("question", nullable=True, index=True),
    _whole("settles", nullable=True, unique=True),  # the charge that this entry ends: delivered, or no answer will come
)
register = _table(
    "register",
    _whole("id", primary_key=True),
    _text("name", unique=True),
    _text("source"),
    _text("fingerprint"),
    _text("levels"),  # JSON: the menu later changes are rounded down to, in micro-ε
    _whole("members"),  # the last entry that moved anybody
    sa.Column("separate", sa.Boolean, nullable=False),  # its identifiers name other people than those of the others
    _text("balances"),  # digest of the register's cohorts: damage shows before the next charge
)
person = _table(  # everybody ever enrolled, with the preference they came with; never changed
    "person",
    _whole("register", primary_key=True),
    _text("person", primary_key=True),
    _whole("micro_epsilon"),
    _whole("seq"),
)
change = _table(  # what the person (or the source, for them) said later, and the cohort that follows
    "change",
    _whole("register", primary_key=True),
    _text("person", primary_key=True),
    _whole("seq", primary_key=True),
    _whole("cohort"),
    _whole("micro_epsilon", nullable=True),  # as stated; NULL: no longer in the source
    _text("origin"),  # person, source
)
cohort = _table(
    "cohort",
    _whole("id", primary_key=True),
    _whole("register", index=True),
    _whole("micro_allowance"),
    _whole("micro_spent"),
    _whole("pico_delta"),
    _whole("micro_individual"),
    _whole("people"),
    sa.Column("enrolled", sa.Boolean, nullable=False),
    sa.Column("absent", sa.Boolean, nullable=False),
)
charge = _table(
    "charge",
    _whole("cohort", primary_key=True),
    _whole("seq", primary_key=True),
    _whole("micro_epsilon"),
    _whole("pico_delta"),
    _whole("micro_individual"),
)
declaration = _table("table", _text("name", primary_key=True), _text("body"))
quota = _table(  # how much of their quota an analyst has used: scheduling, not a promise
    "quota",
    _text("table", primary_key=True),
    _text("analyst", primary_key=True),
    _whole("micro_share"),
)
stop = _table(  # a question that failed after its charge, and the entry that let questions in again
    "stop",
    _whole("seq", primary_key=True),
    _whole("register", index=True),
    _text("charge"),
    _text("shape"),
    _whole("resumed", nullable=True),
)
member = _table(  # who may use the service besides the people themselves
    "member",
    _text("name", primary_key=True),
    _text("role"),
    _whole("seq"),  # the entry that granted the role
    _whole("revoked", nullable=True),
)
token = _table(  # what members sign in with; only the SHA-256 of the secret is kept
    "token",
    _text("digest", primary_key=True),
    _whole("seq"),
    _text("kind"),  # token: for programs, used any number of times; link: for a browser, used once
    _text("member"),
    _text("label"),
    _text("expires"),
)
invitation = _table(  # what people sign in with, once; the entry that made them seals them all
    "invitation",
    _text("digest", primary_key=True),
    _whole("seq"),
    _whole("register"),
    _text("person", index=True),
    _text("expires"),
)
ended = _table(  # tokens, links and invitations that were used or revoked; "entry N": all invitations of that entry
    "ended",
    _text("digest", primary_key=True),
    _text("how", primary_key=True),  # used, revoked
    _whole("seq"),
)

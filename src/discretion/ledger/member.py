"""Member: stewards and analysts, and the tokens and links they sign in with. Every grant and revocation is an entry."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import sqlalchemy as sa

from discretion.errors import AccessDenied, InvalidDeclaration
from discretion.ledger import schema
from discretion.ledger.chain import Entry, Writing, append

Role = Literal["steward", "analyst"]
ROLES: tuple[Role, ...] = get_args(Role)
LONGEST_NAME = 100
DENIED = (
    "This code or token is not valid. It may have been used, revoked or replaced, or it is too old. Ask for a new one."
)


@dataclass(frozen=True, kw_only=True)
class Member:
    """Somebody who may use the service in one role."""

    name: str
    role: Role
    granted: int  # the entry that granted the role: a session of an earlier grant is not valid any more
    revoked: bool = False


@dataclass(frozen=True, kw_only=True)
class Token:
    """Says what a member signs in with; the secret itself is not kept."""

    digest: str
    kind: Literal["token", "link"]
    member: str
    label: str
    expires: str
    ended: str = ""  # used or revoked

    @property
    def id(self) -> str:
        """Return the short name by which a steward revokes it."""
        return self.digest[:12]


def grant(tx: Writing, name: str, role: str) -> Entry:
    """Give somebody a role; a member who has one keeps it until it is revoked."""
    if role not in ROLES:
        raise InvalidDeclaration(f"A role must be {' or '.join(map(repr, ROLES))}, got {role!r}.")
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip() or "/" in name:
        raise InvalidDeclaration(
            f"A member's name must be 1 to {LONGEST_NAME} printable characters without / and without blanks around "
            f"it, got {name!r}."
        )
    known = _row(tx.db, name)
    if known is not None and known.revoked is None:
        raise InvalidDeclaration(f"{name!r} is a member already, as {known.role}. Revoke that first.")
    entry = append(tx, "grant", {"member": name, "role": role})
    tx.db.execute(sa.delete(schema.member).where(schema.member.c.name == name))
    tx.db.execute(sa.insert(schema.member).values(name=name, role=role, seq=entry.seq, revoked=None))
    return entry


def revoke(tx: Writing, name: str) -> Entry:
    """Take a role back: the member's tokens, links and sessions are not valid any more."""
    known = _row(tx.db, name)
    if known is None or known.revoked is not None:
        raise InvalidDeclaration(f"There is no member {name!r}. `discretion member list` shows all members.")
    entry = append(tx, "revoke", {"member": name})
    tx.db.execute(sa.update(schema.member).where(schema.member.c.name == name).values(revoked=entry.seq))
    return entry


def member(db: sa.Connection, name: str) -> Member | None:
    """Return the member of this name, None if there is none or the role was revoked."""
    row = _row(db, name)
    return None if row is None or row.revoked is not None else _member(row)


def members(db: sa.Connection) -> tuple[Member, ...]:
    """Return every member, also those whose role was revoked, by name."""
    return tuple(map(_member, db.execute(sa.select(schema.member).order_by(schema.member.c.name))))


def issue(tx: Writing, digest: str, *, kind: str, name: str, label: str, lasts: timedelta) -> Entry:
    """Keep the digest of a new token or link of a member."""
    if member(tx.db, name) is None:
        raise InvalidDeclaration(f"There is no member {name!r}. Add one with `discretion member add`.")
    if len(label) > LONGEST_NAME or not label.isprintable():
        raise InvalidDeclaration(f"A token's name must be at most {LONGEST_NAME} printable characters.")
    facts = {"digest": digest, "token": kind, "member": name, "label": label, "expires": until(lasts)}
    entry = append(tx, "issue", facts)
    row = {"digest": digest, "seq": entry.seq, "kind": kind, "member": name, "label": label}
    tx.db.execute(sa.insert(schema.token).values(**row, expires=facts["expires"]))
    return entry


def tokens(db: sa.Connection) -> tuple[Token, ...]:
    """Return every token and link, newest last."""
    ends = {row.digest: row.how for row in db.execute(sa.select(schema.ended).order_by(schema.ended.c.seq))}
    rows = db.execute(sa.select(schema.token).order_by(schema.token.c.seq))
    return tuple(_token(row, ends.get(row.digest, "")) for row in rows)


def token_member(db: sa.Connection, digest: str, kind: str) -> Member:
    """Return the member a token or link belongs to; refuse one that is unknown, too old or ended."""
    row = db.execute(sa.select(schema.token).where(schema.token.c.digest == digest)).one_or_none()
    if row is None or row.kind != kind or is_past(row.expires) or has_ended(db, digest):
        raise AccessDenied(DENIED)
    found = _row(db, row.member)
    if found is None or found.revoked is not None or found.seq > row.seq:
        raise AccessDenied(DENIED)  # the token was issued for an earlier grant
    return _member(found)


def withdraw(tx: Writing, id: str) -> Entry:
    """Revoke one token, link or invitation by the beginning of its digest."""
    if len(id) < 12 or not id.isalnum():
        raise InvalidDeclaration(f"A token or invitation is named by 12 letters and digits, got {id!r}.")
    found = [
        digest
        for table in (schema.token, schema.invitation)
        for digest in tx.db.scalars(sa.select(table.c.digest).where(table.c.digest.startswith(id, autoescape=True)))
    ]
    if len(found) != 1 or has_ended(tx.db, found[0], "revoked"):
        raise InvalidDeclaration(f"There is no token or invitation {id!r} that could be revoked.")
    return end(tx, found[0], "revoked")


def end(tx: Writing, digest: str, how: Literal["used", "revoked"]) -> Entry:
    """Record that a token, link or invitation was used or revoked."""
    entry = append(tx, "end", {"digest": digest, "how": how})
    tx.db.execute(sa.insert(schema.ended).values(digest=digest, how=how, seq=entry.seq))
    return entry


def has_ended(db: sa.Connection, digest: str, *how: str) -> bool:
    """Tell whether a token, link or invitation was used or revoked, or only one of the two."""
    ended = schema.ended.c
    wanted = sa.select(ended.seq).where(ended.digest == digest, ended.how.in_(how or ("used", "revoked")))
    return db.execute(wanted.limit(1)).first() is not None


def until(lasts: timedelta) -> str:
    """Return the time after which something is not valid any more."""
    if not timedelta() < lasts <= timedelta(days=3660):
        raise InvalidDeclaration(f"A token, link or code must last more than 0 and at most 3,660 days, got {lasts}.")
    return (datetime.now(UTC) + lasts).isoformat(timespec="seconds")


def is_past(expires: str) -> bool:
    """Tell whether this time has come."""
    return datetime.now(UTC) >= datetime.fromisoformat(expires)


def _row(db: sa.Connection, name: str) -> sa.Row[tuple[str, str, int, int | None]] | None:
    return db.execute(sa.select(schema.member).where(schema.member.c.name == name)).one_or_none()


def _member(row: sa.Row[tuple[str, str, int, int | None]]) -> Member:
    return Member(name=row.name, role=row.role, granted=row.seq, revoked=row.revoked is not None)


def _token(row: sa.Row[tuple[str, ...]], ended: str) -> Token:
    kept = {name: getattr(row, name) for name in ("digest", "kind", "member", "label", "expires")}
    return Token(**kept, ended=ended)

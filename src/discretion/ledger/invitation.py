"""Invitation: a code for one person, made by the steward, that signs them in once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from discretion.errors import AccessDenied, InvalidDeclaration
from discretion.ledger import schema
from discretion.ledger.chain import Entry, Writing, append, canonical, digest, find
from discretion.ledger.member import DENIED, end, has_ended, is_past, until
from discretion.ledger.people import insert_many
from discretion.ledger.register import load


@dataclass(frozen=True, kw_only=True)
class Invited:
    """The person who signs in, and the mark of their invitation; "" if a provider of identities named them."""

    register: str
    person: str
    digest: str


def people_of(db: sa.Connection, register: str) -> list[str]:
    """Return everybody who was ever enrolled in a register, in order."""
    person = schema.person.c
    query = sa.select(person.person).where(person.register == load(db, register).id).order_by(person.person)
    return list(db.scalars(query))


def is_enrolled(db: sa.Connection, register: str, person: str) -> bool:
    """Tell whether somebody was ever enrolled in a register."""
    known = schema.person.c
    query = sa.select(known.seq).where(known.register == load(db, register).id, known.person == person)
    return db.execute(query).first() is not None


def invite(tx: Writing, register: str, codes: Sequence[tuple[str, str]], *, lasts: timedelta) -> Entry:
    """Keep the digests of new codes, given as (digest, person); the entry names nobody."""
    known = load(tx.db, register)
    if unknown := {person for _, person in codes} - set(people_of(tx.db, register)):
        raise InvalidDeclaration(f"Register {register!r} does not have {len(unknown):,} of the people to invite.")
    expires = until(lasts)
    sealed = digest_invitations((one, person, expires) for one, person in codes)
    facts = {"register": register, "count": len(codes), "expires": expires, "invitations": sealed}
    entry = append(tx, "invite", facts)
    insert_many(tx.db, schema.invitation, ((one, entry.seq, known.id, person, expires) for one, person in codes))
    return entry


def digest_invitations(rows: Iterable[tuple[Any, ...]]) -> str:
    """Return one hash for invitations given as (digest, person, expires)."""
    return digest(canonical(sorted(rows)))


def withdraw_all(tx: Writing, id: str) -> Entry:
    """Revoke every invitation of one `invite` entry, used ones and their sessions too."""
    made = find(tx.db, id)
    if made.kind != "invite":
        raise InvalidDeclaration(f"Entry {id!r} did not invite anybody.")
    if has_ended(tx.db, f"entry {made.seq}"):
        raise InvalidDeclaration(f"The invitations of entry {id!r} are revoked already.")
    return end(tx, f"entry {made.seq}", "revoked")


def accept(tx: Writing, code: str) -> Invited:
    """Use an invitation, once; every reason to refuse it reads the same."""
    found = invited(tx.db, code)
    if found is None or has_ended(tx.db, code, "used"):
        raise AccessDenied(DENIED)
    row = tx.db.execute(sa.select(schema.invitation).where(schema.invitation.c.digest == code)).one()
    if is_past(row.expires):
        raise AccessDenied(DENIED)
    end(tx, code, "used")
    return found


def invited(db: sa.Connection, code: str) -> Invited | None:
    """Return whom an invitation names, None if it is unknown, revoked or replaced; a used one keeps its session valid.

    A new invitation replaces all earlier ones of the same person, and ends the sessions that they began.
    """
    table, names = schema.invitation.c, schema.register.c
    query = sa.select(schema.invitation, names.name).join(schema.register, names.id == table.register)
    row = db.execute(query.where(table.digest == code)).one_or_none()
    if row is None or has_ended(db, code, "revoked") or has_ended(db, f"entry {row.seq}", "revoked"):
        return None
    newest = sa.select(sa.func.max(table.seq)).where(table.person == row.person, table.register == row.register)
    if db.scalar(newest) != row.seq:
        return None
    return Invited(register=row.name, person=row.person, digest=code)

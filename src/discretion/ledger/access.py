"""Access: who may use the service. Secrets are made here, shown once, and kept only as their SHA-256."""

from base64 import b32encode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import timedelta
from hashlib import sha256

from discretion.errors import AccessDenied, InvalidDeclaration
from discretion.ledger import invitation, member
from discretion.ledger.book import Ledger
from discretion.ledger.invitation import Invited
from discretion.ledger.member import DENIED, Member, Token
from discretion.ledger.people import person_text
from discretion.noise import secret_bytes

TOKEN_DAYS, LINK_HOURS, LETTER_DAYS = 90, 1, 60
LONGEST_SECRET = 200  # characters: what is longer was not made here


class Access:
    """Members, their tokens and links, and the invitations of people, in one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._store = ledger._store

    # Members --------------------------------------------------------------------------------------------------------

    def add(self, name: str, role: str) -> str:
        """Give somebody a role; return the entry."""
        with self._store.writing() as tx:
            return member.grant(tx, name, role).id

    def revoke(self, name: str) -> str:
        """Take a member's role back, and with it every token, link and session; return the entry."""
        with self._store.writing() as tx:
            return member.revoke(tx, name).id

    def members(self) -> tuple[Member, ...]:
        """Return every member, also those whose role was revoked."""
        with self._store.reading() as db:
            return member.members(db)

    def member(self, name: str) -> Member | None:
        """Return the member of this name, None if there is none or the role was revoked."""
        with self._store.reading() as db:
            return member.member(db, name)

    def token(self, name: str, *, label: str = "", lasts: timedelta = timedelta(days=TOKEN_DAYS)) -> str:
        """Return a new token for a member's programs; it is not shown again."""
        return self._issue("token", name, label, lasts)

    def link(self, name: str, *, lasts: timedelta = timedelta(hours=LINK_HOURS)) -> str:
        """Return a new code that signs a member in once, in a browser."""
        return self._issue("link", name, "", lasts)

    def tokens(self) -> tuple[Token, ...]:
        """Return every token and link, without its secret."""
        with self._store.reading() as db:
            return member.tokens(db)

    def withdraw(self, id: str) -> str:
        """Revoke one token, link or invitation; return the entry."""
        with self._store.writing() as tx:
            return member.withdraw(tx, id).id

    def who_has(self, secret: str) -> Member:
        """Return the member whose token this is."""
        digest = mark_of(secret)
        with self._store.reading() as db:
            return member.token_member(db, digest, "token")

    # People ---------------------------------------------------------------------------------------------------------

    def invite(
        self, register: str, people: Iterable[object] = (), *, lasts: timedelta = timedelta(days=LETTER_DAYS)
    ) -> tuple[str, list[tuple[str, str]]]:
        """Make one code for each of these people, or for everybody; return the entry and (person, code)."""
        with self._store.writing() as tx:
            wanted = [person_text(person) for person in people] or invitation.people_of(tx.db, register)
            if len(set(wanted)) != len(wanted):
                raise InvalidDeclaration("Somebody is named twice among the people to invite.")
            letters = [(person, letter_code()) for person in wanted]
            sealed = [(mark_of(code), person) for person, code in letters]
            return invitation.invite(tx, register, sealed, lasts=lasts).id, letters

    def withdraw_all(self, entry: str) -> str:
        """Revoke every invitation that this entry made; return the entry of the revocation."""
        with self._store.writing() as tx:
            return invitation.withdraw_all(tx, entry).id

    def invited(self, digest: str) -> Invited | None:
        """Return whom an invitation names, None if it was revoked."""
        with self._store.reading() as db:
            return invitation.invited(db, digest)

    def enrolled(self, register: str, person: str) -> Invited | None:
        """Return somebody whom a provider of identities names, None if the register does not have them."""
        with self._store.reading() as db:
            known = invitation.is_enrolled(db, register, person)
        return Invited(register=register, person=person, digest="") if known else None

    # Signing in -----------------------------------------------------------------------------------------------------

    def accept(self, secret: str) -> Member | Invited:
        """Use a link or an invitation, once; return who signs in. Every reason to refuse it reads the same."""
        digest = mark_of(secret)
        with self._store.reading() as db:  # a wrong code must not make writers wait
            if invitation.invited(db, digest) is None:
                member.token_member(db, digest, "link")
        with self._store.writing() as tx:
            if invitation.invited(tx.db, digest) is not None:
                return invitation.accept(tx, digest)
            found = member.token_member(tx.db, digest, "link")
            member.end(tx, digest, "used")
            return found

    def _issue(self, kind: str, name: str, label: str, lasts: timedelta) -> str:
        secret = urlsafe_b64encode(secret_bytes(32)).decode().rstrip("=")
        with self._store.writing() as tx:
            member.issue(tx, mark_of(secret), kind=kind, name=name, label=label, lasts=lasts)
        return secret


def letter_code() -> str:
    """Return 130 random bits as 26 letters and digits in groups, to be read from paper."""
    text = b32encode(secret_bytes(17)).decode().lower()[:26]
    return "-".join(text[place : place + 5] for place in range(0, 26, 5))


def mark_of(secret: str) -> str:
    """Return the SHA-256 of a secret; case, blanks and hyphens of a code that is typed do not matter."""
    if not secret or len(secret) > LONGEST_SECRET or not secret.isascii():
        raise AccessDenied(DENIED)
    plain = "".join(secret.split()).replace("-", "").lower()
    typed = len(plain) == 26 and set(plain) <= set("abcdefghijklmnopqrstuvwxyz234567")
    return sha256((plain if typed else secret).encode()).hexdigest()

"""Identity: a request's token or cookie becomes a member, a person or nobody. Sessions are signed, never stored."""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any

from discretion.errors import AccessDenied, InvalidDeclaration
from discretion.ledger import Access
from discretion.ledger.invitation import Invited
from discretion.ledger.member import Member
from discretion.noise import secret_bytes
from discretion.service.permission import Role

HOURS = {"steward": 12.0, "analyst": 12.0, "person": 168.0, "provider": 1.0}  # that a session lasts
LONGEST_COOKIE = 4_096


@dataclass(frozen=True, kw_only=True)
class Who:
    """Says who makes a request."""

    role: Role = "nobody"
    name: str = ""  # of a member
    register: str = ""  # of a person
    person: str = ""
    csrf: str = ""  # what forms must send back; empty: no browser session, so none is needed

    @property
    def key(self) -> str:
        """Return the one name for limits and turns; it is never shown or logged."""
        return f"{self.role}:{self.name}" if self.name else f"{self.role}:{self.register}:{self.person}"


NOBODY = Who()


class Sessions:
    """Makes and reads signed cookies. A session ends with its time, its member's role or its invitation."""

    def __init__(self, access: Access, key: bytes, *, secure: bool) -> None:
        self._access, self._key, self.secure = access, key, secure
        # The prefix tells browsers to refuse a cookie that another host of the same domain sets.
        self.cookie = "__Host-discretion" if secure else "discretion"

    def begin(self, who: Member | Invited) -> str:
        """Return the cookie of a new session, which has nothing in common with any earlier one."""
        if isinstance(who, Member):
            return self.seal("session", {"member": who.name, "granted": who.granted}, 3600 * HOURS[who.role])
        named = {"invitation": who.digest} if who.digest else {"register": who.register, "person": who.person}
        return self.seal("session", named, 3600 * (HOURS["person"] if who.digest else HOURS["provider"]))

    def read(self, cookie: str) -> Who:
        """Return whose session this is; nobody's if it was forged, is over, or was revoked."""
        facts = self.unseal("session", cookie)
        if facts is None:
            return NOBODY
        csrf = self._sign("csrf", facts["nonce"])
        if "member" in facts:
            member = self._access.member(facts["member"])
            if member is None or member.granted != facts["granted"]:
                return NOBODY
            return Who(role=member.role, name=member.name, csrf=csrf)
        if "invitation" in facts:
            invited = self._access.invited(facts["invitation"])
        else:
            invited = self._access.enrolled(facts["register"], facts["person"])
        if invited is None:
            return NOBODY
        return Who(role="person", register=invited.register, person=invited.person, csrf=csrf)

    def seal(self, purpose: str, facts: Mapping[str, Any], seconds: float) -> str:
        """Return facts as a signed text that is valid for some time, and for one purpose only."""
        told = {**facts, "until": int(time() + seconds), "nonce": secret_bytes(16).hex()}
        body = urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")
        return f"{body}.{self._sign(purpose, body)}"

    def unseal(self, purpose: str, text: str) -> dict[str, Any] | None:
        """Return the facts of a signed text, None if it was forged, is over, or was made for another purpose."""
        body, _, seal = text.partition(".")
        if len(text) > LONGEST_COOKIE or not text.isascii():
            return None
        if not hmac.compare_digest(seal, self._sign(purpose, body)):
            return None
        facts: dict[str, Any] = json.loads(urlsafe_b64decode(body + "=="))
        return facts if time() < facts["until"] else None

    def bearer(self, header: str) -> Who:
        """Return the member whose token an Authorization header holds."""
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise AccessDenied("The Authorization header must be 'Bearer' and a token.")
        member = self._access.who_has(token.strip())
        return Who(role=member.role, name=member.name)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(), sha256).hexdigest()


def signing_key(path: Path | None) -> bytes:
    """Return the key in a file, which is made if it is not there; without a path, one for this run only."""
    if path is None:
        return secret_bytes()
    with suppress(FileExistsError):
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(secret_bytes())
    if path.stat().st_mode & 0o077:
        raise InvalidDeclaration(f"Others may read the signing key {str(path)!r}. Run `chmod 600` on it.")
    if len(key := path.read_bytes()) < 32:
        raise InvalidDeclaration(
            f"The signing key {str(path)!r} must have at least 32 bytes. Remove it to get a new one."
        )
    return key


def is_same_origin(headers: Mapping[str, str], origin: str) -> bool:
    """Tell whether a browser says that one of our own pages sends the request; programs say nothing."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    return headers.get("origin", origin) == origin

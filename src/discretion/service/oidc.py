"""OIDC: people sign in with an account they have elsewhere; a claim of their provider names the person."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from discretion.errors import AccessDenied, InvalidDeclaration, ServiceFailed
from discretion.ledger.member import DENIED
from discretion.noise import secret_bytes

SECONDS = 10.0  # that the provider may take
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384"]  # never "none", never a shared secret


@dataclass(frozen=True, kw_only=True)
class Provider:
    """An OpenID provider that people sign in with, and the claim that names the person of a register."""

    issuer: str
    client: str
    secret: str
    register: str
    claim: str = "sub"

    def __post_init__(self) -> None:
        if not self.issuer.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise InvalidDeclaration(f"An OpenID provider must be reached by https://, got {self.issuer!r}.")

    def begin(self, back: str) -> tuple[str, dict[str, str]]:
        """Return where to send the browser, and what must be remembered until it comes back."""
        kept = {name: _text(secret_bytes(32)) for name in ("state", "once", "verifier")}
        challenge = _text(sha256(kept["verifier"].encode()).digest())
        asked = {"response_type": "code", "scope": "openid", "client_id": self.client, "redirect_uri": back}
        asked |= {"state": kept["state"], "nonce": kept["once"]}
        asked |= {"code_challenge": challenge, "code_challenge_method": "S256"}
        return f"{self._known['authorization_endpoint']}?{urlencode(asked)}", kept

    def person(self, code: str, kept: dict[str, str], back: str) -> str:
        """Exchange the code that the browser brought for the name of the person."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
        form |= {"code_verifier": kept["verifier"]}
        response = _fetch("POST", self._known["token_endpoint"], data=form, auth=(self.client, self.secret))
        keys = KeySet.import_key_set(_fetch("GET", self._known["jwks_uri"]))
        expected = {
            "iss": {"essential": True, "value": self._known["issuer"]},
            "aud": {"essential": True, "value": self.client},
            "exp": {"essential": True},
            "nonce": {"essential": True, "value": kept["once"]},
        }
        try:
            claims = jwt.decode(str(response["id_token"]), keys, algorithms=ALGORITHMS).claims
            jwt.JWTClaimsRegistry(**expected).validate(claims)  # type: ignore[arg-type]
            return str(claims[self.claim])
        except (JoseError, KeyError, ValueError, TypeError):
            raise AccessDenied(DENIED) from None

    @cached_property
    def _known(self) -> dict[str, Any]:
        found: dict[str, Any] = _fetch("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if str(found.get("issuer", "")).rstrip("/") != self.issuer.rstrip("/"):
            raise ServiceFailed("The OpenID provider says that it is another one. Ask the operator.")
        return found


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _fetch(method: str, url: str, **how: Any) -> Any:
    try:
        response = httpx.request(method, url, timeout=SECONDS, **how)
        if response.status_code in (400, 401):
            raise AccessDenied(DENIED)  # a code that was used or invented
        return response.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        raise ServiceFailed("The OpenID provider cannot be reached. Try again later.") from None

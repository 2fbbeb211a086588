"""Channel: HTTP requests to a service in the name of one token; refusals come back as the local errors."""

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import httpx
import pyarrow as pa

from discretion.errors import AccessDenied, InvalidDeclaration, ServiceFailed
from discretion.service.shown import ARROW, listing_from, restored

PATIENCE = httpx.Timeout(30.0, read=900.0)  # seconds; a question may wait for its turn
NOTHING: Mapping[str, str] = {}


class HttpChannel:
    """Requests to one service, in the name of one token."""

    def __init__(self, url: str, token: str) -> None:
        if not token:
            raise AccessDenied(f"The service {url!r} needs a token: connect(url, token=...), or DISCRETION_TOKEN.")
        if url.startswith("http://") and not _is_here(httpx.URL(url).host):
            raise InvalidDeclaration(f"{url!r} is not encrypted, so others could read the token. Use https://.")
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "discretion"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, follow_redirects=False)

    def close(self) -> None:
        """Let go of the network."""
        self._http.close()

    def ask(self, method: str, path: str, said: Any = None, *, query: Mapping[str, str] = NOTHING) -> Any:
        """Send a request and return the JSON of the answer; a refusal is raised as the local error."""
        return self._send(method, path, said, query, {}).json()

    def table(
        self, method: str, path: str, said: Any = None, *, key: str = "", query: Mapping[str, str] = NOTHING
    ) -> pa.Table:
        """Send a request and return the Arrow table of the answer."""
        headers = {"Accept": ARROW} | ({"Idempotency-Key": key} if key else {})
        return listing_from(self._send(method, path, said, query, headers).content).to_arrow()

    def _send(
        self, method: str, path: str, said: Any, query: Mapping[str, str], headers: dict[str, str]
    ) -> httpx.Response:
        content = None if said is None else json.dumps(said, allow_nan=True).encode()
        headers = headers | ({} if content is None else {"Content-Type": "application/json"})
        tries = 2 if method == "GET" or "Idempotency-Key" in headers else 1
        for left in reversed(range(tries)):
            try:
                response = self._http.request(method, path, content=content, params=query or None, headers=headers)
                return _accepted(response)
            except httpx.HTTPError as failure:
                if not left:
                    raise ServiceFailed(
                        f"The service {str(self._http.base_url)!r} cannot be reached ({type(failure).__name__})."
                    ) from None
        raise ServiceFailed("The service did not answer.")


def _accepted(response: httpx.Response) -> httpx.Response:
    """Return a response that says yes; raise what it refuses as the error that a local connection would raise."""
    if response.is_success:
        return response
    try:
        facts = response.json()
        refusal = restored(facts["code"], str(facts["detail"]), facts)
    except (ValueError, KeyError, AttributeError, TypeError):
        refusal = ServiceFailed(f"The service answered with status {response.status_code}. Is this its address?")
    raise refusal


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Problem: every refusal becomes a problem document (RFC 9457) with the product's own code."""

import json
from math import isfinite
from typing import Any

from starlette.responses import Response

from discretion import errors
from discretion.errors import DiscretionError
from discretion.service.shown import place_facts

STATUS = {
    "InvalidPreference": 422,
    "InvalidDeclaration": 422,
    "QueryRefused": 422,
    "Unsuitable": 422,
    "BudgetExhausted": 409,
    "PlanOutdated": 409,
    "SourceChanged": 409,
    "TableStopped": 423,
    "EngineFailed": 424,
    "AccessDenied": 403,
    "ServiceFailed": 503,
    "LedgerFailed": 503,
    "LedgerCorrupt": 500,
}
CODE = {400: "InvalidDeclaration", 401: "AccessDenied", 403: "AccessDenied", 404: "InvalidDeclaration"}
CODE |= {405: "InvalidDeclaration", 408: "ServiceFailed", 413: "InvalidDeclaration", 415: "InvalidDeclaration"}
CODE |= {421: "AccessDenied", 429: "ServiceFailed", 500: "ServiceFailed", 503: "ServiceFailed"}


STALE = "The page is too old, or another site sent this request. Load the page again."


class Refused(Exception):
    """A request that is refused with a status of HTTP."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def problem(refusal: DiscretionError | Refused) -> Response:
    """Return a refusal as a problem document."""
    if isinstance(refusal, Refused):
        status, code, headers = refusal.status, CODE[refusal.status], refusal.headers
    else:
        code = type(refusal).__name__
        status, headers = STATUS.get(code, 422), {}
        if isinstance(refusal, errors.ServiceFailed):
            headers = {"Retry-After": "1"}
    facts: dict[str, Any] = {"type": "about:blank", "title": code, "status": status, "code": code}
    facts |= {"detail": str(refusal)} | place_facts(refusal)
    return Response(as_json(facts), status, headers, media_type="application/problem+json")


def as_json(content: Any) -> bytes:
    """Return plain values as JSON in ASCII; numbers that are not finite become null."""
    return json.dumps(_finite(content), allow_nan=False, default=str).encode()


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(name): _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content

"""App: endpoints, permissions and limits become one application. Every request passes through `Door`."""

import hmac
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from discretion.errors import AccessDenied, DiscretionError
from discretion.service.endpoint import Call, Endpoint, form_of
from discretion.service.house import House
from discretion.service.identity import NOBODY, Who, is_same_origin
from discretion.service.limit import address, body_of
from discretion.service.log import note
from discretion.service.pages import STATIC, version
from discretion.service.pages.refusal import refusal_page
from discretion.service.permission import PERMISSIONS, is_allowed
from discretion.service.problem import STALE, Refused, problem
from discretion.service.routes import ENDPOINTS

logger = logging.getLogger(__name__)

SAFE = ("GET", "HEAD")
PROBES = ("GET /health", "GET /metrics")  # machines ask for these by address
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send no Origin with our own forms
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="discretion"'}


def build(house: House) -> Starlette:
    """Return the application of a house."""
    if {one.route for one in ENDPOINTS} != set(PERMISSIONS):
        raise RuntimeError("Every route needs a line in the table of permissions, and every line a route.")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await house.open()
        try:
            yield
        finally:
            await house.close()

    async def refused(request: Request, failure: Exception) -> Response:
        status = failure.status_code if isinstance(failure, HTTPException) else 500
        known = status if status in (404, 405) else 400
        headers = dict(getattr(failure, "headers", None) or {})
        told = Refused(known, f"There is no {request.method} of this path.", headers)
        return _dressed(house, refusal_page(told, NOBODY) if _is_browser(request) else problem(told))

    routes = [Route(one.path, Door(house, one), methods=[one.method]) for one in ENDPOINTS]
    static = Mount("/static", Static(directory=STATIC))
    app = Starlette(routes=[*routes, static], lifespan=lifespan, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False
    return app


class Static(StaticFiles):
    """Files that are the same for everybody: the only ones that browsers may keep. Pages name their version."""

    async def get_response(self, path: str, scope: Any) -> Response:
        """Return a file with the headers that every answer has; a version that is named never changes."""
        response = await super().get_response(path, scope)
        named = scope["query_string"] == f"v={version(path)}".encode()
        response.headers["Cache-Control"] = f"public, max-age={'31536000, immutable' if named else '3600'}"
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


class Door:
    """Lets a request in: limits, identity, permission and origin come before anything is done."""

    def __init__(self, house: House, endpoint: Endpoint) -> None:
        self._house, self._endpoint = house, endpoint

    async def __call__(self, scope: dict, receive: object, send: object) -> None:  # type: ignore[type-arg]
        request = Request(scope, receive, send)  # type: ignore[arg-type]
        response, who = await self._answer(request)
        route = self._endpoint.route
        self._house.metrics.requests[route, response.status_code] += 1
        note(logger, "request", route=route, status=response.status_code, role=who.role, member=who.name)
        await _dressed(self._house, response)(scope, receive, send)  # type: ignore[arg-type]

    async def _answer(self, request: Request) -> tuple[Response, Who]:
        who = NOBODY
        try:
            self._refuse_other_hosts(request)
            who = await self._who(request)
            self._house.requests.take(who.key if who != NOBODY else address(request))
            self._refuse_others(who)
            raw = b"" if self._endpoint.method in SAFE else await body_of(request)
            self._refuse_foreign(request, who, raw)
            said = self._endpoint.read(request, raw)
            call = Call(house=self._house, request=request, who=who, said=said, raw=raw)
            return await self._endpoint.act(call), who
        except (DiscretionError, Refused) as refusal:
            return self._refusal(request, refusal, who), who
        except Exception as failure:  # its text may hold private values: only its type is written down
            logger.error("%s failed: %s", self._endpoint.route, type(failure).__name__)
            told = Refused(500, "The service failed. Its operator can look into its log.")
            return self._refusal(request, told, who), who

    def _refusal(self, request: Request, refusal: DiscretionError | Refused, who: Who) -> Response:
        """Return a page for a browser that asked for a page, else a problem document."""
        if self._endpoint.gives in ("html", "file") and _is_browser(request):
            return refusal_page(refusal, who, had_session=self._house.sessions.cookie in request.cookies)
        return problem(refusal)

    async def _who(self, request: Request) -> Who:
        header = request.headers.get("authorization")
        if header is not None:
            return await self._bearer(header, request)
        cookie = request.cookies.get(self._house.sessions.cookie, "")
        return await self._house.read(self._house.sessions.read, cookie) if cookie else NOBODY

    async def _bearer(self, header: str, request: Request) -> Who:
        self._house.failures.take(address(request), 0)
        try:
            return await self._house.read(self._house.sessions.bearer, header)
        except AccessDenied as refusal:
            self._house.failures.take(address(request))
            raise Refused(401, str(refusal), CHALLENGE) from None

    def _refuse_others(self, who: Who) -> None:
        """Refuse who may not use this route, before anything of the request is looked at."""
        if is_allowed(who.role, self._endpoint.route):
            return
        if who.role == "nobody":
            raise Refused(401, "Sign in first: with a token, or with a link in a browser.", CHALLENGE)
        raise Refused(403, f"This is not for the role {who.role!r}.")

    def _refuse_other_hosts(self, request: Request) -> None:
        """Refuse requests that name another host: a foreign page could reach a service on this machine that way."""
        host = request.headers.get("host", "").lower()
        ours = self._house.settings.url.partition("://")[2].partition("/")[0]
        if self._endpoint.route not in PROBES and host not in {ours, ours.replace("127.0.0.1", "localhost")}:
            raise Refused(421, "This service has another name.")

    def _refuse_foreign(self, request: Request, who: Who, raw: bytes) -> None:
        """Refuse what a page of somebody else makes a browser send."""
        if self._endpoint.method in SAFE or "authorization" in request.headers:
            return
        scheme = "https" if self._house.settings.secure else "http"
        if not is_same_origin(request.headers, f"{scheme}://{request.headers.get('host', '')}"):
            raise Refused(403, "Another site sent this request.")
        if who.csrf and self._endpoint.route != "POST /sign-in":
            sent = form_of(raw).get("csrf", [""])[0] if self._endpoint.form else ""
            given = request.headers.get("x-csrf-token") or sent
            if not hmac.compare_digest(given.encode(), who.csrf.encode()):
                raise Refused(403, STALE)


def _is_browser(request: Request) -> bool:
    """Tell whether the caller shows pages; programs get problem documents."""
    return "text/html" in request.headers.get("accept", "")


def _dressed(house: House, response: Response) -> Response:
    """Return a response with the headers that every answer has."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if house.settings.secure:
        response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
    return response

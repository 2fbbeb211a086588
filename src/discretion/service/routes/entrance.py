"""Entrance: signing in with a link or a code, and out again. A link shows a page; only its button acts."""

import hmac
from typing import Any

from starlette.responses import RedirectResponse, Response

from discretion.errors import AccessDenied
from discretion.ledger.chance import BEFORE_IN_WORDS, chances
from discretion.ledger.invitation import Invited
from discretion.ledger.member import DENIED, Member
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.limit import address
from discretion.service.pages import page
from discretion.service.pages.navigation import home_of
from discretion.service.problem import Refused

WAY_SECONDS = 600.0  # to sign in at the provider
BACK = ("code", "state", "iss", "session_state", "scope", "error", "error_description", "error_uri")
ALLOWANCES = (0, 0.1, 0.5, 1, 2, 5)  # of which the page of promises tells what they mean
CODE = {"code": Field("string", "From a personal link or letter.", most=200)}


async def home(call: Call) -> Response:
    """Lead everybody who is signed in to their own pages; tell others how to sign in."""
    if place := home_of(call.who.role):
        return RedirectResponse(place, 303)
    return page("home.html", who=call.who)


async def promise(call: Call) -> Response:
    """Say what people are promised, to everybody."""
    rows = [(f"{epsilon:g}", cells) for epsilon, cells in chances(ALLOWANCES)]
    return page("promise.html", who=call.who, here="/promise", befores=BEFORE_IN_WORDS.values(), rows=rows)


async def sign_in_page(call: Call) -> Response:
    """Show a button: programs that follow links in letters, such as mail scanners, must not use them up."""
    return page("sign_in.html", who=call.who, code=call.said.get("code", ""), problem="", provider=_has(call))


async def sign_in(call: Call) -> Response:
    """Use a link or a code, and begin a new session."""
    here = address(call.request)
    call.house.failures.take(here, 0)
    call.house.guesses.take("everybody", 0)
    try:
        who = await call.house.read(call.house.access.accept, call.said.get("code", "").strip())
    except AccessDenied as refusal:
        call.house.failures.take(here)
        call.house.guesses.take("everybody")
        return page("sign_in.html", status=403, code="", problem=str(refusal), provider=_has(call))
    return _began(call, who)


async def oidc(call: Call) -> Response:
    """Send a person to the provider that they sign in with elsewhere."""
    provider = _provider(call)
    place, kept = await call.house.read(provider.begin, _back(call))
    response = RedirectResponse(place, 303)
    sealed = call.house.sessions.seal("oidc", kept, WAY_SECONDS)
    response.set_cookie(_way(call), sealed, httponly=True, samesite="lax", secure=call.house.sessions.secure, path="/")
    return response


async def oidc_callback(call: Call) -> Response:
    """Sign a person in whom the provider names, if this browser was sent there; whom nobody knows is refused."""
    provider, here = _provider(call), address(call.request)
    call.house.failures.take(here, 0)
    kept = call.house.sessions.unseal("oidc", call.request.cookies.get(_way(call), ""))
    try:
        if kept is None or not hmac.compare_digest(kept["state"], call.said.get("state", "")):
            raise AccessDenied(DENIED)
        name = await call.house.read(provider.person, call.said.get("code", ""), kept, _back(call))
        who = await call.house.read(call.house.access.enrolled, provider.register, name)
        if who is None:
            raise AccessDenied(DENIED)
    except AccessDenied as refusal:
        call.house.failures.take(here)
        return page("sign_in.html", status=403, code="", problem=str(refusal), provider=True)
    response = _began(call, who)
    response.delete_cookie(_way(call), path="/", secure=call.house.sessions.secure, httponly=True, samesite="lax")
    return response


def _provider(call: Call) -> Any:
    if call.house.settings.provider is None:
        raise Refused(404, "This service has no OpenID provider. Use the link or code that you were given.")
    return call.house.settings.provider


def _back(call: Call) -> str:
    return f"{call.house.settings.url}/oidc/callback"


def _way(call: Call) -> str:
    return f"{call.house.sessions.cookie}-way"


def _began(call: Call, who: Member | Invited) -> Response:
    response = RedirectResponse("/", 303)
    sessions = call.house.sessions
    response.set_cookie(
        sessions.cookie, sessions.begin(who), httponly=True, samesite="lax", secure=sessions.secure, path="/"
    )
    return response


async def sign_out(call: Call) -> Response:
    """Forget the session in this browser."""
    response = RedirectResponse("/", 303)
    sessions = call.house.sessions
    response.delete_cookie(sessions.cookie, httponly=True, samesite="lax", secure=sessions.secure, path="/")
    return response


def _has(call: Call) -> bool:
    return call.house.settings.provider is not None


ENDPOINTS = (
    Endpoint(route="GET /", act=home, summary="Lead to the pages of whoever is signed in.", gives="html", sends=True),
    Endpoint(route="GET /promise", act=promise, summary="Say what people are promised.", gives="html"),
    Endpoint(route="GET /sign-in", act=sign_in_page, summary="Show the sign-in page.", takes=CODE, gives="html"),
    Endpoint(
        route="POST /sign-in", act=sign_in, summary="Sign in with a link or code.", takes=CODE, gives="html", form=True
    ),
    Endpoint(route="GET /oidc", act=oidc, summary="Sign in elsewhere.", gives="html", sends=True),
    Endpoint(
        route="GET /oidc/callback",
        act=oidc_callback,
        summary="Come back from signing in elsewhere.",
        takes={name: Field("string", "From the provider.", most=4_000) for name in BACK},
        gives="html",
        sends=True,
    ),
    Endpoint(route="POST /sign-out", act=sign_out, summary="Sign out.", gives="html", form=True),
)

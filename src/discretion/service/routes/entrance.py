"""Entrance: signing in with a link or a code, and out again. A link shows a page; only its button acts."""

from urllib.parse import parse_qs

from starlette.responses import RedirectResponse, Response

from discretion.errors import AccessDenied
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.limit import address
from discretion.service.pages import page

CODE = {"code": Field("string", "From a personal link or letter.", most=200)}


async def home(call: Call) -> Response:
    """Say who is signed in, and how to sign in."""
    return page("home.html", who=call.who)


async def sign_in_page(call: Call) -> Response:
    """Show a button: programs that follow links in letters, such as mail scanners, must not use them up."""
    return page("sign_in.html", code=call.said.get("code", ""), problem="")


async def sign_in(call: Call) -> Response:
    """Use a link or a code, and begin a new session."""
    here = address(call.request)
    call.house.failures.take(here, 0)
    call.house.guesses.take("everybody", 0)
    code = form_of(call.raw).get("code", "")
    try:
        who = await call.house.read(call.house.access.accept, code.strip())
    except AccessDenied as refusal:
        call.house.failures.take(here)
        call.house.guesses.take("everybody")
        return page("sign_in.html", status=403, code="", problem=str(refusal))
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


def form_of(raw: bytes) -> dict[str, str]:
    """Return the fields of a form."""
    found = parse_qs(raw.decode(errors="replace"), max_num_fields=100)
    return {name: values[0] for name, values in found.items()}


ENDPOINTS = (
    Endpoint(route="GET /", act=home, summary="Show who is signed in.", gives="html"),
    Endpoint(route="GET /sign-in", act=sign_in_page, summary="Show the sign-in page.", takes=CODE, gives="html"),
    Endpoint(route="POST /sign-in", act=sign_in, summary="Sign in with a link or code.", gives="html", form=True),
    Endpoint(route="POST /sign-out", act=sign_out, summary="Sign out.", gives="html", form=True),
)

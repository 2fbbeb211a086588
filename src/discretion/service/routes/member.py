"""Members: who may use the service, their tokens and links, and the invitations of people. For stewards."""

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from discretion.errors import InvalidDeclaration
from discretion.ledger.access import LETTER_DAYS, LINK_HOURS, TOKEN_DAYS
from discretion.service.endpoint import ENTRY, Call, Endpoint, Field
from discretion.service.problem import Refused

DAYS = Field("number", "How many days it is valid.")
MEMBER = Field("string", "The member's name.", required=True, most=100)


def _lasts(said: Any, default: float) -> timedelta:
    days = said.get("days", default)
    if not 0 < days <= 3_660:
        raise InvalidDeclaration(f"'days' must be above 0 and at most 3,660, got {days!r}.")
    return timedelta(days=days)


async def members(call: Call) -> Response:
    """Show every member."""
    found = await call.house.read(call.house.access.members)
    return call.answer([{"name": one.name, "role": one.role, "revoked": one.revoked} for one in found])


async def add(call: Call) -> Response:
    """Give somebody a role."""
    return call.answer(
        {"entry": await call.house.read(call.house.access.add, call.said["name"], call.said["role"])}, 201
    )


async def revoke(call: Call) -> Response:
    """Take a member's role back."""
    return call.answer({"entry": await call.house.read(call.house.access.revoke, call.request.path_params["name"])})


async def tokens(call: Call) -> Response:
    """Show every token and link, without its secret."""
    found = await call.house.read(call.house.access.tokens)
    names = ("id", "kind", "member", "label", "expires", "ended")
    return call.answer([{name: getattr(one, name) for name in names} for one in found])


async def issue(call: Call) -> Response:
    """Make a token for programs, or a link that signs in once; its secret is shown only here."""
    said, access = call.said, call.house.access
    if said.get("link", False):
        lasts = _lasts(said, LINK_HOURS / 24)
        code = await call.house.read(access.link, said["member"], lasts=lasts)
        return call.answer({"link": sign_in_link(call.house.settings.url, code)}, 201)
    lasts = _lasts(said, TOKEN_DAYS)
    secret = await call.house.read(access.token, said["member"], label=said.get("label", ""), lasts=lasts)
    return call.answer({"token": secret}, 201)


async def withdraw(call: Call) -> Response:
    """Revoke one token, link or invitation."""
    return call.answer({"entry": await call.house.read(call.house.access.withdraw, call.request.path_params["id"])})


async def invite(call: Call) -> Response:
    """Make one code for each person of a register; the codes are shown only here."""
    said = call.said
    people = said.get("people", [])
    if "people" in said and not people:
        raise InvalidDeclaration("'people' names nobody. Leave it out to invite everybody of the register.")
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in people):
        raise InvalidDeclaration("'people' must be identifiers: texts or whole numbers.")
    made = call.house.access.invite
    entry, letters = await call.house.read(made, said["register"], people, lasts=_lasts(said, LETTER_DAYS))
    url = call.house.settings.url
    told = [{"person": person, "code": code, "link": sign_in_link(url, code)} for person, code in letters]
    return call.answer({"entry": entry, "letters": told}, 201)


async def uninvite(call: Call) -> Response:
    """Revoke every invitation that one entry made."""
    entry = call.request.path_params["entry"]
    if not ENTRY.fullmatch(entry):
        raise Refused(404, "An entry looks like 12-0a1b2c3d4e5f.")
    return call.answer({"entry": await call.house.read(call.house.access.withdraw_all, entry)})


def sign_in_link(url: str, code: str) -> str:
    """Return the address of the page that signs in with this code, after a click."""
    return f"{url.rstrip('/')}/sign-in?code={code}"


ENDPOINTS = (
    Endpoint(route="GET /v1/members", act=members, summary="Show every member."),
    Endpoint(
        route="POST /v1/members",
        act=add,
        summary="Give somebody a role.",
        takes={"name": MEMBER, "role": Field("string", "steward or analyst.", required=True, most=20)},
        status=201,
    ),
    Endpoint(route="DELETE /v1/members/{name}", act=revoke, summary="Take a role back."),
    Endpoint(route="GET /v1/tokens", act=tokens, summary="Show tokens and links, without their secrets."),
    Endpoint(
        route="POST /v1/tokens",
        act=issue,
        summary="Make a token or a sign-in link.",
        takes={
            "member": MEMBER,
            "label": Field("string", "What the token is for.", most=100),
            "days": DAYS,
            "link": Field("boolean", "Make a link that signs in once, not a token."),
        },
        status=201,
    ),
    Endpoint(route="DELETE /v1/tokens/{id}", act=withdraw, summary="Revoke a token, link or invitation."),
    Endpoint(
        route="POST /v1/invitations",
        act=invite,
        summary="Invite people.",
        takes={
            "register": Field("string", "Whose people.", required=True, most=1_000),
            "people": Field("array", "Some of them; everybody if left out.", most=1_000_000),
            "days": DAYS,
        },
        status=201,
    ),
    Endpoint(route="DELETE /v1/invitations/{entry}", act=uninvite, summary="Revoke the invitations of one entry."),
)

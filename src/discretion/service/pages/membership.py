"""A steward lets others in: members and their tokens, and letters for people."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import segno
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from discretion.errors import AccessDenied, InvalidDeclaration
from discretion.ledger.access import LETTER_DAYS, LINK_HOURS, TOKEN_DAYS
from discretion.ledger.member import is_past
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.pages import now, page
from discretion.service.routes.member import sign_in_link

MOST_LETTERS = 200  # on one page; more go into a file
LONGEST_DAYS = 3_660
ONCE = {"once": Field("string", "A key: the form acts once.", most=64)}
ADD = {
    "name": Field("string", "The member's name.", most=200),
    "role": Field("string", "steward or analyst.", most=20),
}
ISSUE = {
    "member": Field("string", "Whose.", most=200),
    "kind": Field("string", "token or link.", most=20),
    "label": Field("string", "What it is for.", most=200),
    "days": Field("string", "How long it is valid.", most=20),
}
INVITE = {
    "register": Field("string", "Whose people.", most=1_000),
    "people": Field("string", "One a line; everybody if empty.", most=500_000),
    "days": Field("string", "How long codes are valid.", most=20),
    "as": Field("string", "letters or file.", most=20),
}
Problems = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Letter:
    """Hold what one person is sent."""

    person: str
    code: str
    link: str
    picture: Markup  # the link as a QR code


async def members(call: Call) -> Response:
    """Show members, tokens and links."""
    return await _members(call)


async def add(call: Call) -> Response:
    """Give somebody a role."""
    name = call.said.get("name", "").strip()

    async def act() -> str:
        return await call.house.read(call.house.access.add, name, call.said.get("role", ""))

    problems = [] if call.said.get("role") else [("role-analyst", "Choose what they may do.")]
    problems += [] if name else [("name", "Write the member's name.")]
    try:
        if not problems:
            await call.house.once(call.who.key, call.said.get("once", ""), call.raw, act)
    except InvalidDeclaration as refusal:
        problems = [("name", str(refusal))]
    if problems:
        return await _members(call, problems=problems)
    return await _members(call, added=name)


async def revoke(call: Call) -> Response:
    """Take a role back, but not one's own: somebody must be able to give it again."""
    name = call.said.get("name", "")
    if name == call.who.name:
        return await _members(call, problems=[("", "You cannot take your own role back. Ask another steward.")])
    if any(one.name == name and not one.revoked for one in await call.house.read(call.house.access.members)):
        await call.house.read(call.house.access.revoke, name)
    return RedirectResponse("/steward/members", 303)


async def issue(call: Call) -> Response:
    """Make a token or a link, and show it once."""
    said, access = call.said, call.house.access
    link = said.get("kind") == "link"
    days, problems = _days(said.get("days", ""), "days", LINK_HOURS / 24 if link else TOKEN_DAYS)

    async def act() -> str:
        if link:
            code = await call.house.read(access.link, said.get("member", ""))
            return sign_in_link(call.house.settings.url, code)
        label = said.get("label", "").strip()
        return await call.house.read(access.token, said.get("member", ""), label=label, lasts=timedelta(days=days))

    try:
        if not problems:
            secret = await call.house.once(call.who.key, said.get("once", ""), call.raw, act)
    except InvalidDeclaration as refusal:
        problems = [("member", str(refusal))]
    if problems:
        return await _members(call, problems=problems)
    content: dict[str, Any] = {"member": said["member"], "link": link, "secret": secret, "days": days}
    return page("steward_secret.html", who=call.who, here="/steward/members", url=call.house.settings.url, **content)


async def withdraw(call: Call) -> Response:
    """End one token or link."""
    id = call.said.get("id", "")
    if any(one.id == id and one.ended != "revoked" for one in await call.house.read(call.house.access.tokens)):
        await call.house.read(call.house.access.withdraw, id)
    return RedirectResponse("/steward/members", 303)


async def people(call: Call) -> Response:
    """Show who is enrolled, and the form that invites them."""
    return await _people(call)


async def invite(call: Call) -> Response:
    """Make a code for each person; show letters to print, or give a file. Both are shown once."""
    said, house = call.said, call.house
    days, problems = _days(said.get("days", ""), "days", LETTER_DAYS)
    wanted = [line.strip() for line in said.get("people", "").splitlines() if line.strip()]
    as_file = said.get("as") == "file"
    if not said.get("register"):
        problems.append(("register", "Choose whose people are invited."))
    if not as_file and said.get("as") != "letters":
        problems.append(("as-letters", "Choose letters or a file."))
    if not as_file and not wanted:
        problems.append(("people", "Write who gets a letter, or choose the file for everybody."))
    if not as_file and len(wanted) > MOST_LETTERS:
        problems.append(("people", f"At most {MOST_LETTERS} letters fit on one page. Choose the file instead."))

    async def act() -> Sequence[tuple[str, str]]:
        made = await house.read(house.access.invite, said["register"], wanted, lasts=timedelta(days=days))
        return made[1]

    try:
        if not problems:
            letters = await house.once(call.who.key, said.get("once", ""), call.raw, act)
    except (InvalidDeclaration, AccessDenied) as refusal:
        problems.append(("people", str(refusal)))
    if problems:
        return await _people(call, problems=problems)
    if as_file:
        return _file(letters, house.settings.url)
    shown = [_letter(person, code, house.settings.url) for person, code in letters]
    content: dict[str, Any] = {"letters": shown, "days": days, "url": house.settings.url, "register": said["register"]}
    return page("steward_letters.html", who=call.who, here="/steward/people", **content)


def _letter(person: str, code: str, url: str) -> Letter:
    link, kept = sign_in_link(url, code), io.BytesIO()
    drawn = segno.make(link, error="m", micro=False)
    how = {"xmldecl": False, "svgns": False, "omitsize": True, "border": 3, "light": "#fff"}  # it scales: no size
    drawn.save(kept, kind="svg", svgclass="qr", lineclass="", **how)
    picture = Markup(kept.getvalue().decode().replace("<svg", '<svg role="img" aria-label="The link as a QR code"', 1))
    return Letter(person=person, code=code, link=link, picture=picture)


def _file(letters: Sequence[tuple[str, str]], url: str) -> Response:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("person", "code", "link"))
    writer.writerows((person, code, sign_in_link(url, code)) for person, code in letters)
    headers = {"Content-Disposition": 'attachment; filename="letters.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv")


def _days(text: str, field: str, default: float) -> tuple[float, Problems]:
    try:
        days = float(text.strip().replace(",", ".")) if text.strip() else default
    except ValueError:
        days = -1.0
    if not 0 < days <= LONGEST_DAYS:
        return default, [
            (field, f"Write a number of days, above 0 and at most {LONGEST_DAYS:,}, got “{text.strip()}”.")
        ]
    return days, []


async def _members(call: Call, *, problems: Problems | None = None, added: str = "") -> Response:
    house = call.house
    tokens = [one for one in await house.read(house.access.tokens) if not one.ended and not is_past(one.expires)]
    content: dict[str, Any] = {
        "members": await house.read(house.access.members),
        "tokens": tokens,
        "problems": problems or [],
        "wrong": _wrong(problems),
        "added": added,
        "typed": {**dict.fromkeys(ADD | ISSUE, ""), **(call.said if problems else {})},
        "default_days": TOKEN_DAYS,
    }
    return page(
        "steward_members.html", who=call.who, here="/steward/members", status=422 if problems else 200, **content
    )


async def _people(call: Call, *, problems: Problems | None = None) -> Response:
    house = call.house
    held: dict[str, list[dict[str, Any]]] = {one.name: [] for one in await house.read(house.ledger.registers)}
    for row in await house.read(house.db.balance):
        if row["in_source"] and row["people"]:
            held[row["register"]].append(row)
    content: dict[str, Any] = {
        "registers": {name: _by_level(rows) for name, rows in held.items()},
        "problems": problems or [],
        "wrong": _wrong(problems),
        "typed": {"register": "", "people": "", "days": f"{LETTER_DAYS}", "as": "letters", **call.said},
        "most": MOST_LETTERS,
        "as_of": now(),
    }
    return page("steward_people.html", who=call.who, here="/steward/people", status=422 if problems else 200, **content)


def _by_level(rows: Sequence[dict[str, Any]]) -> list[tuple[float, int]]:
    found: dict[float, int] = {}
    for row in rows:
        found[row["epsilon"]] = found.get(row["epsilon"], 0) + row["people"]
    return sorted(found.items())


def _wrong(problems: Problems | None) -> dict[str, list[str]]:
    wrong: dict[str, list[str]] = {}
    for field, text in problems or []:
        wrong.setdefault(field, []).append(text)
    return wrong


ENDPOINTS = (
    Endpoint(route="GET /steward/members", act=members, summary="Show members and tokens.", gives="html"),
    Endpoint(
        route="POST /steward/members", act=add, summary="Add a member.", takes=ADD | ONCE, gives="html", form=True
    ),
    Endpoint(
        route="POST /steward/members/revoke",
        act=revoke,
        summary="Take a role back.",
        takes=ADD,
        gives="html",
        form=True,
    ),
    Endpoint(
        route="POST /steward/tokens", act=issue, summary="Make a token.", takes=ISSUE | ONCE, gives="html", form=True
    ),
    Endpoint(
        route="POST /steward/tokens/revoke",
        act=withdraw,
        summary="End a token.",
        takes={"id": Field("string", "Which.", most=64)},
        gives="html",
        form=True,
    ),
    Endpoint(route="GET /steward/people", act=people, summary="Show who is enrolled.", gives="html"),
    Endpoint(
        route="POST /steward/invite", act=invite, summary="Invite people.", takes=INVITE | ONCE, gives="html", form=True
    ),
)

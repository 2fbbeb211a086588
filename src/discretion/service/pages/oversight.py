"""A steward's view of the whole: what is in danger, what waits, what was used, and whether the ledger holds."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import RedirectResponse, Response

from discretion.errors import InvalidDeclaration
from discretion.ledger.head import Head
from discretion.ledger.member import Token
from discretion.ledger.timeline import Day
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.pages import page
from discretion.service.pages.timeline import band_names, levels_picture, used_picture

WEEK = timedelta(days=7)
SOON = timedelta(days=14)  # before a token expires
MOST_ANALYSTS = 20  # that are listed, those who asked most
MOST_DAYS = 120  # that a picture shows: of more, some are left out
MOST_NUMBERS = 31  # days in the table; the file has all of them
MOST_REGISTERS = 3  # on one page
REGISTER = {"register": Field("string", "Whose; the first ones if left out.", most=1_000)}
AUDIT = {"head": Field("string", "The head that was written down.", most=200)}


@dataclass(frozen=True, kw_only=True)
class Week:
    """Say what was used in seven days, today included."""

    questions: int
    analysts: tuple[tuple[str, int], ...]  # who asked how often, most first
    used: tuple[tuple[str, float, float], ...]  # (register, used in this week, used in all), on average


@dataclass(frozen=True, kw_only=True)
class Past:
    """One register over time."""

    register: str
    used: Any  # pictures
    levels: Any
    bands: list[str]
    days: list[Day]  # newest first
    more: bool  # days than are listed


async def overview(call: Call) -> Response:
    """Show whether a promise is in danger, what waits for the steward, and what was used this week."""
    house = call.house
    stops = [one for one in await house.read(house.ledger.stops) if not one.resumed]
    tables = await house.read(house.db.tables)
    stopped = {one.register: [table.name for table in tables if table.register == one.register] for one in stops}
    content: dict[str, Any] = {
        "tables": tables,
        "stopped": stopped,
        "changed": await house.changed(call.who.name),
        "expiring": _expiring(await house.read(house.access.tokens)),
        "notices": await house.read(house.chronicle.notices),
        "cautions": await house.read(house.db.cautions),
        "head": await house.read(house.db.head),
        "audit": house.auditor.last,
        "week": _week(await house.read(house.chronicle.days)),
        "data": house.settings.data is not None,
    }
    return page("steward.html", who=call.who, here="/steward", **content)


def _expiring(tokens: tuple[Token, ...]) -> list[Token]:
    """Return tokens that end soon and were not ended."""
    now = datetime.now(UTC)
    kept = [one for one in tokens if one.kind == "token" and not one.ended]
    return [one for one in kept if now < datetime.fromisoformat(one.expires) < now + SOON]


def _week(days: tuple[Day, ...]) -> Week:
    first = (datetime.now(UTC).date() - WEEK + timedelta(days=1)).isoformat()
    used, analysts = [], Counter[str]()
    for name in dict.fromkeys(day.register for day in days):
        own = [day for day in days if day.register == name]
        before = [day.used for day in own if day.day < first]
        used.append((name, max(0.0, own[-1].used - (before[-1] if before else 0.0)), own[-1].used))
        for day in own[-WEEK.days :]:
            analysts.update(day.analysts if day.day >= first else {})
    named = Counter({name or "(nobody named)": count for name, count in analysts.items()})
    return Week(questions=analysts.total(), analysts=tuple(named.most_common(MOST_ANALYSTS)), used=tuple(used))


async def use(call: Call) -> Response:
    """Show what was used and which levels were chosen, over time."""
    days = await call.house.read(call.house.chronicle.days)
    registers = list(dict.fromkeys(day.register for day in days))
    wanted = [name for name in registers if name == call.said.get("register")] or registers[:MOST_REGISTERS]
    past = [_past(name, [day for day in days if day.register == name]) for name in wanted]
    others = [name for name in registers if name not in wanted]
    return page("steward_use.html", who=call.who, here="/steward/use", past=past, others=others)


def _past(name: str, days: list[Day]) -> Past:
    every = -(-len(days) // MOST_DAYS)
    shown = days[:1] + days[(len(days) - 1) % every :: every] if every > 1 else days  # the first and the last are there
    return Past(
        register=name,
        used=used_picture(shown),
        levels=levels_picture(shown),
        bands=band_names(shown),
        days=days[-MOST_NUMBERS:][::-1],
        more=len(days) > MOST_NUMBERS,
    )


async def audit_page(call: Call) -> Response:
    """Show the head to write down, and the last audit or how far it is."""
    return await _audit(call)


async def audit(call: Call) -> Response:
    """Begin an audit."""
    head = call.said.get("head", "").strip()
    try:
        if head:
            Head.parse(head)
    except InvalidDeclaration as refusal:
        return await _audit(call, problems=[("head", str(refusal))], typed=head)
    now = await call.house.read(call.house.db.head)
    call.house.auditor.begin(head=head, total=Head.parse(now).seq, member=call.who.name)
    return RedirectResponse("/steward/audit", 303)


async def _audit(call: Call, *, problems: list[tuple[str, str]] | None = None, typed: str = "") -> Response:
    house = call.house
    content: dict[str, Any] = {
        "head": await house.read(house.db.head),
        "notices": await house.read(house.chronicle.notices),
        "cautions": await house.read(house.db.cautions),
        "audit": house.auditor.last,
        "problems": problems or [],
        "typed": typed,
    }
    status = 422 if problems else 200
    return page("steward_audit.html", who=call.who, here="/steward/audit", status=status, **content)


ENDPOINTS = (
    Endpoint(route="GET /steward", act=overview, summary="Show a steward what waits.", gives="html"),
    Endpoint(
        route="GET /steward/use", act=use, summary="Show use and choices over time.", takes=REGISTER, gives="html"
    ),
    Endpoint(route="GET /steward/audit", act=audit_page, summary="Show the head and the last audit.", gives="html"),
    Endpoint(route="POST /steward/audit", act=audit, summary="Begin an audit.", takes=AUDIT, gives="html", form=True),
)

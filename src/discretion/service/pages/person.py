"""A person's pages: what I chose, choose anew, every answer that could have used my data, and a copy to keep."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import RedirectResponse, Response

from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.ledger import Receipt, Use
from discretion.ledger.chance import BEFORE, BEFORE_IN_WORDS
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.menu import Menu, menu
from discretion.service.pages import page
from discretion.service.pages.paging import PAGING, Paging, paged
from discretion.service.sentence import sentence
from discretion.service.text import known_names, known_people, without_literals

LATEST = 3  # answers on the first page
MOST_PRINTED = 1_000
CHOICE = {
    "level": Field("string", "The allowance that is chosen, 0 to withdraw, or 'other'.", most=40),
    "other": Field("string", "The allowance, if it is not on the list.", most=40),
    "once": Field("string", "A key: the form acts once.", most=64),
}


@dataclass(frozen=True, kw_only=True)
class ToldUse:
    """An answer as its person reads it."""

    use: Use
    words: str
    text: str  # SQL without literals
    part: float  # of the allowance


async def overview(call: Call) -> Response:
    """Show what the person chose, what it means, and what was used of it."""
    receipt, offered = await _standing(call, most=0)
    latest = await _told(call, receipt, most=LATEST)
    return _page(call, "me.html", "/me", receipt=receipt, menu=offered, latest=latest)


async def choose_page(call: Call) -> Response:
    """Show every level with what it would mean; nothing is chosen in advance."""
    return await _choosing(call)


async def choose(call: Call) -> Response:
    """Write the choice down, once, and show a receipt."""
    said = call.said.get("level", "")
    epsilon = call.said.get("other", "").strip().replace(",", ".") if said == "other" else said
    if not epsilon:
        field = "other" if said == "other" else "level-0"
        text = "Write a number." if said == "other" else "Choose how your data may be used."
        return await _choosing(call, problems=[(field, text)], said=said)

    async def act() -> str:
        call.house.changes.take(call.who.key)
        return str(
            await call.house.read(
                call.house.db.prefer, call.who.person, _number(epsilon), register=call.who.register, by="person"
            )
        )

    try:
        await call.house.once(call.who.key, call.said.get("once", ""), call.raw, act)
    except (InvalidPreference, InvalidDeclaration) as refusal:
        return await _choosing(call, problems=[("other" if said == "other" else "level-0", str(refusal))], said=said)
    return RedirectResponse("/me/chosen", 303)


async def chosen(call: Call) -> Response:
    """Show the receipt of the last choice."""
    receipt, offered = await _standing(call, most=0)
    if not offered.chosen:
        return RedirectResponse("/me", 303)
    return _page(call, "chosen.html", "/me", receipt=receipt, menu=offered, stated=receipt.statements[-1])


async def answers(call: Call) -> Response:
    """List every answer that could have used the person's data, newest first."""
    receipt, offered = await _standing(call, most=0)
    found = await _told(call, receipt, before=paged(call), most=Paging.MOST + 1)
    paging = Paging.of(found, [one.use.seq for one in found], call)
    return _page(call, "answers.html", "/me/answers", receipt=receipt, menu=offered, paging=paging)


async def printed(call: Call) -> Response:
    """Show everything on one page, to print or to save."""
    receipt, offered = await _standing(call, most=0)
    found = await _told(call, receipt, most=MOST_PRINTED)
    return _page(call, "copy.html", "/me/print", receipt=receipt, menu=offered, told=found, most=MOST_PRINTED)


async def _choosing(call: Call, *, problems: list[tuple[str, str]] | None = None, said: str = "") -> Response:
    receipt, offered = await _standing(call, most=0)
    status = 422 if problems else 200
    return _page(
        call, "choose.html", "/me/choose", receipt=receipt, menu=offered, problems=problems, said=said, status=status
    )


async def _standing(call: Call, *, most: int) -> tuple[Receipt, Menu]:
    """Return the person's receipt without its answers, and what they may choose."""
    house, who = call.house, call.who
    receipt = await house.read(house.ledger.receipt, who.register, who.person, most=most)
    register = await house.read(house.ledger.register, who.register)
    return receipt, menu(register, await house.read(house.db.tables), receipt)


async def _told(call: Call, receipt: Receipt, *, before: int | None = None, most: int) -> list[ToldUse]:
    house, who = call.house, call.who
    found = await house.read(house.ledger.uses, who.register, who.person, before=before, most=most)
    tables = await house.read(house.db.tables)
    known, persons = known_names(tables), known_people(tables)
    whole = max(receipt.allowance, receipt.spent)
    return [
        ToldUse(
            use=use,
            words=sentence(use.question, known, persons),
            text=without_literals(use.question, known),
            part=use.epsilon / whole if whole else 0.0,
        )
        for use in found
    ]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidPreference(f"An allowance is a number of 0 or more, such as 0.5, got {text!r}.") from None


def _page(call: Call, template: str, here: str, *, status: int = 200, **content: Any) -> Response:
    told = {"befores": tuple(zip(BEFORE, BEFORE_IN_WORDS.values(), strict=True)), **content}
    return page(template, who=call.who, here=here, status=status, **told)


ENDPOINTS = (
    Endpoint(route="GET /me", act=overview, summary="Show a person what they chose.", gives="html"),
    Endpoint(route="GET /me/choose", act=choose_page, summary="Show the levels on offer.", gives="html"),
    Endpoint(route="POST /me/choose", act=choose, summary="Choose anew.", takes=CHOICE, gives="html", form=True),
    Endpoint(route="GET /me/chosen", act=chosen, summary="Show the last choice.", gives="html", sends=True),
    Endpoint(route="GET /me/answers", act=answers, summary="List answers.", takes=PAGING, gives="html"),
    Endpoint(route="GET /me/print", act=printed, summary="Show everything, to print.", gives="html"),
)

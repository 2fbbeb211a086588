"""A steward enters what somebody chose on paper or by telephone; their receipt says who entered it."""

from typing import Any

from starlette.responses import Response

from discretion.declaration.enrolment import Enrolment
from discretion.errors import DiscretionError
from discretion.ledger import Register
from discretion.preference import MICRO
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.pages import page
from discretion.service.pages.holding import problem_of

MOST_LEVELS = 30  # that the hint lists
CHOICE = {
    "register": Field("string", "Whose people.", most=1_000),
    "person": Field("string", "Their identifier in the data.", most=1_000),
    "level": Field("string", "A number, or a level's name; 0 withdraws.", most=100),
    "once": Field("string", "A key: the form acts once.", most=64),
}


async def choice_page(call: Call) -> Response:
    """Show the form."""
    return await _shown(call)


async def enter(call: Call) -> Response:
    """Write down what somebody chose, and show what holds for them from now on."""
    said, house = call.said, call.house
    register, person, level = (said.get(name, "").strip() for name in ("register", "person", "level"))
    problems = [] if register else [("register", "Choose whose people they belong to.")]
    problems += [] if person else [("person", "Write who chose, as the data names them.")]
    problems += [] if level else [("level", "Write what they chose.")]

    async def act() -> str:
        wanted = _number(level)
        return await house.read(house.db.prefer, person, wanted, register=register, by="steward")

    try:
        if not problems:
            entry = await house.once(call.who.key, said.get("once", ""), call.raw, act)
            receipt = await house.read(house.ledger.receipt, register, person, most=0)
            return await _shown(call, entered={"entry": entry, "person": person, "receipt": receipt})
    except DiscretionError as refusal:
        problems = problem_of(refusal)
    return await _shown(call, problems=problems)


def _number(text: str) -> float | str:
    """Return a number as one; the ledger knows the names of levels."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text


async def _shown(
    call: Call, *, problems: list[tuple[str, str]] | None = None, entered: dict[str, Any] | None = None
) -> Response:
    registers = await call.house.read(call.house.ledger.registers)
    wrong: dict[str, list[str]] = {}
    for field, text in problems or []:
        wrong.setdefault(field, []).append(text)
    empty = {"register": registers[0].name if len(registers) == 1 else "", "person": "", "level": ""}
    content: dict[str, Any] = {
        "offered": {one.name: _offered(one) for one in registers},
        "typed": empty if entered else {**empty, **call.said},
        "problems": problems or [],
        "wrong": wrong,
        "entered": entered,
    }
    return page("steward_choice.html", who=call.who, here="/steward/people", status=422 if problems else 200, **content)


def _offered(register: Register) -> str:
    """Return the levels of a register in words, those with names by name."""
    names = {round(epsilon * MICRO): name for name, epsilon in Enrolment.from_json(register.source).levels.items()}
    levels = [f"{micro / MICRO:.10g}" + (f" ({names[micro]})" if micro in names else "") for micro in register.levels]
    return ", ".join(levels[:MOST_LEVELS]) + (", …" if len(levels) > MOST_LEVELS else "")


ENDPOINTS = (
    Endpoint(route="GET /steward/choice", act=choice_page, summary="Show the form for a choice.", gives="html"),
    Endpoint(route="POST /steward/choice", act=enter, summary="Enter a choice.", takes=CHOICE, gives="html", form=True),
)

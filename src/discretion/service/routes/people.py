"""People: what they chose, what was done, and how they choose anew. A person sees and changes only their own."""

from dataclasses import asdict

from starlette.responses import Response

from discretion.declaration.enrolment import Enrolment
from discretion.errors import AccessDenied
from discretion.ledger.moving import EnteredBy
from discretion.preference import MICRO
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.text import shown_receipt

SOMEBODY = {
    "person": Field("string|integer", "Who; only a steward says it, a person is the one signed in.", most=1_000),
    "register": Field("string", "Which register, where there are several.", most=1_000),
}
CHOICE = {"epsilon": Field("number|string", "A number, or a level's name; 0 withdraws.", required=True, most=100)}


def _whom(call: Call) -> tuple[str | int, str]:
    """Return the person and register a request is about: oneself, or whom a steward names."""
    if call.who.role == "person":
        if "person" in call.said or "register" in call.said:
            raise AccessDenied("You can only see and change what is yours, so do not name anybody.")
        return call.who.person, call.who.register
    return call.said.get("person", ""), call.said.get("register", "")


async def receipt(call: Call) -> Response:
    """Show what one person was promised and what was spent on what."""
    person, register = _whom(call)
    found = await call.house.read(call.house.db.receipt, person, register=register)
    return call.answer(asdict(shown_receipt(found, await call.house.read(call.house.known))))


async def prefer(call: Call) -> Response:
    """Record that somebody chose anew. What is spent stays spent."""
    person, register = _whom(call)
    if call.who.role == "person":
        call.house.changes.take(call.who.key)
    by: EnteredBy = "person" if call.who.role == "person" else "steward"
    entry = await call.house.read(call.house.db.prefer, person, call.said["epsilon"], register=register, by=by)
    return call.answer({"entry": entry})


async def levels(call: Call) -> Response:
    """Show which levels of privacy are on offer, and their names."""
    _, name = _whom(call)
    registers = await call.house.read(call.house.ledger.registers)
    found = [
        {
            "register": one.name,
            "levels": [level / MICRO for level in one.levels],
            "names": dict(Enrolment.from_json(one.source).levels),
        }
        for one in registers
        if name in ("", one.name)
    ]
    return call.answer(found)


ENDPOINTS = (
    Endpoint(
        route="GET /v1/receipt", act=receipt, summary="Show what was done with one person's data.", takes=SOMEBODY
    ),
    Endpoint(route="GET /v1/levels", act=levels, summary="Show the levels on offer.", takes=SOMEBODY),
    Endpoint(route="POST /v1/prefer", act=prefer, summary="Choose anew.", takes=SOMEBODY | CHOICE),
)

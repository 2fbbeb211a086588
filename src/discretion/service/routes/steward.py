"""Stewards: sources, stopped registers and the audit. Sources are files below the folder that the operator gave."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from starlette.responses import Response

from discretion.declaration.enrolment import Enrolment
from discretion.declaration.source import Source
from discretion.declaration.table import Lookup, Policy, Table
from discretion.errors import InvalidDeclaration
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.folder import inside, refuse_new_links
from discretion.service.shown import table_facts

NAME = Field("string", "What the table or register is called.", required=True, most=1_000)
SOURCE = Field("string", "A file, folder or pattern below the service's data folder.", required=True, most=4_000)
READING = {
    "delimiter": Field("string", "CSV: the sign between fields.", most=10),
    "encoding": Field("string", "CSV: such as cp1252; else UTF-8.", most=100),
    "decimal": Field("string", "Texts: the decimal sign.", most=10),
    "null": Field("array|string", "Texts: what means NULL.", most=1_000),
    "sheet": Field("string", "Excel: which sheet.", most=1_000),
    "types": Field("object", "Types that are not guessed, by column."),
    "zones": Field("object", "The time zone that a column of times is read in, instead of UTC, by column."),
}
CHOICES = {
    "person": Field("string", "The column that names the person.", most=1_000),
    "epsilon": Field("string", "The column with what they chose.", most=1_000),
    "levels": Field("object|null", "Names for preferences."),
    "menu": Field("array", "Levels that every preference is rounded down to."),
    "default": Field("number|string|null", "For people who stated none.", most=1_000),
    "separate": Field("boolean", "Equal identifiers in other registers name other people."),
}
DECLARED = {
    "register": Field("string", "People enrolled before, instead of epsilon.", most=1_000),
    "bounds": Field("object", "[low, high] by column: two numbers, or two dates in ISO form."),
    "grid": Field("object", "The step between candidate answers, by column."),
    "keys": Field("object", "Every value that GROUP BY shows, by column."),
    "rows_per_person": Field("integer", "The most rows of one person that count."),
    "longest_text": Field("integer", "The most characters of a text that count."),
    "required": Field("array", "Columns declared never NULL."),
    "lookups": Field(
        "object",
        "[source, key] of unprotected tables, by name; [source, key, 'public'] if GROUP BY may show its values.",
    ),
    "policy": Field("object", "What is allowed: largest_share, quotas, largest_delta, ..."),
}
REGISTER = {"register": Field("string", "Which register, where there are several.", most=1_000)}


async def register(call: Call) -> Response:
    """Enrol people and the privacy they chose."""
    said = dict(call.said)
    name, source = said.pop("name"), await _inside(call, said.pop("source"))
    balance, warnings = await _admit(call, "register", name, source, **said)
    return call.answer({"balance": list(balance), "warnings": warnings})


async def protect(call: Call) -> Response:
    """Let analysts ask about a table."""
    said = dict(call.said)
    name, source = said.pop("name"), await _inside(call, said.pop("source"))
    if "policy" in said:
        said["policy"] = _policy(said["policy"])
    if "lookups" in said:
        said["lookups"] = {key: await _lookup(call, key, one) for key, one in said["lookups"].items()}
    table, warnings = await _admit(call, "protect", name, source, **said)
    facts = {**table_facts(table), "source": table.source, "origin": table.origin}
    return call.answer({"table": facts, "warnings": warnings})


async def refresh(call: Call) -> Response:
    """Admit the state that a source is in now."""
    said = dict(call.said)
    name, source = said.pop("name"), said.pop("source", None)
    if source is None:
        await call.house.read(refuse_links_since, call, name)
    place = None if source is None else await _inside(call, source)
    entry, warnings = await _admit(call, "refresh", name, place, **said)
    return call.answer({"entry": entry, "warnings": warnings})


async def columns(call: Call) -> Response:
    """Show the columns of a source that is not protected yet."""
    said = dict(call.said)
    source = await _inside(call, said.pop("source"))
    found, _ = await _admit(call, "columns", source, **said)
    return call.answer(found)


async def changed(call: Call) -> Response:
    """Show what was edited since it was admitted."""
    found, _ = await _admit(call, "changed")
    return call.answer(found)


async def timeline(call: Call) -> Response:
    """Show, day by day, what was used of allowances, and who holds which."""
    return call.answer([asdict(one) for one in await call.house.read(call.house.chronicle.days)])


async def join(call: Call) -> Response:
    """Add somebody who is not in the source of a register."""
    said = call.said
    act = call.house.db.join
    entry = await call.house.read(act, said["person"], said["epsilon"], register=said.get("register", ""))
    return call.answer({"entry": entry})


async def resume(call: Call) -> Response:
    """Allow questions about a register again."""
    return call.answer({"entry": await call.house.read(call.house.db.resume, call.said.get("register", ""))})


async def stops(call: Call) -> Response:
    """Show every failure that stopped a register."""
    return call.listing((await call.house.read(call.house.db.stops)).to_arrow())


async def notices(call: Call) -> Response:
    """Show which entries an earlier version answered wrongly."""
    return call.listing((await call.house.read(call.house.db.notices)).to_arrow())


async def cautions(call: Call) -> Response:
    """Show what should be changed about the ledger's database."""
    return call.answer(list(await call.house.read(call.house.db.cautions)))


async def audit(call: Call) -> Response:
    """Add every balance up again from the entries."""
    witnesses = call.said.get("witnesses", [])
    if not all(isinstance(one, str) for one in witnesses):
        raise InvalidDeclaration("'witnesses' must be entries, as texts.")
    found, _ = await _admit(call, "audit", head=call.said.get("head", ""), witnesses=tuple(witnesses))
    return call.answer({**asdict(found), "passed": found.passed})


async def _admit(call: Call, method: str, *arguments: Any, **named: Any) -> tuple[Any, list[dict[str, Any]]]:
    payload = method, arguments, named
    done: tuple[Any, list[dict[str, Any]]] = await call.house.work(
        "call", payload, member=call.who.name, request=call.request
    )
    return done


async def _inside(call: Call, source: str) -> str:
    return await call.house.read(inside, call.house.settings.data, source)


def refuse_links_since(call: Call, name: str) -> None:
    """Refuse to read again what leads out of the data folder since it was admitted."""
    house = call.house
    tables = [one for one in house.ledger.tables() if one.name == name]
    kept: list[Table | Lookup | Enrolment] = [*tables, *(one for table in tables for one in table.lookups.values())]
    kept += [Enrolment.from_json(one.source) for one in house.ledger.registers() if one.name == name]
    places = [Source.from_json(one.origin).places if one.origin else (one.source,) for one in kept]
    refuse_new_links(house.settings.data, [place for several in places for place in several])


async def _lookup(call: Call, name: str, declared: Any) -> tuple[str, ...]:
    if (
        not isinstance(declared, list)
        or len(declared) not in (2, 3)
        or not all(isinstance(one, str) for one in declared)
    ):
        raise InvalidDeclaration(f"Lookup {name!r} must be [source, its unique key], got {declared!r}.")
    return await _inside(call, declared[0]), *declared[1:]


def _policy(said: Mapping[str, Any]) -> Policy:
    if unknown := sorted(set(said) - {one.name for one in fields(Policy)}):
        raise InvalidDeclaration(f"A policy has no {unknown[0]!r}.")
    try:
        return Policy(**said)
    except TypeError:
        raise InvalidDeclaration("A policy has numbers for shares and delta, and true or false for the rest.") from None


ENDPOINTS = (
    Endpoint(
        route="POST /v1/register",
        act=register,
        summary="Enrol people.",
        takes={"name": NAME, "source": SOURCE} | CHOICES | READING,
    ),
    Endpoint(
        route="POST /v1/protect",
        act=protect,
        summary="Let analysts ask about a table.",
        takes={"name": NAME, "source": SOURCE} | CHOICES | DECLARED | READING,
    ),
    Endpoint(
        route="POST /v1/columns",
        act=columns,
        summary="Show the columns of a source.",
        takes={"source": SOURCE} | READING,
    ),
    Endpoint(route="GET /v1/changed", act=changed, summary="Show tables whose sources were edited."),
    Endpoint(route="GET /v1/timeline", act=timeline, summary="Show use and choices day by day."),
    Endpoint(
        route="POST /v1/refresh",
        act=refresh,
        summary="Admit the state a source is in now.",
        takes={"name": NAME, "source": Field("string|null", SOURCE.text, most=4_000)} | READING,
    ),
    Endpoint(
        route="POST /v1/join",
        act=join,
        summary="Add somebody to a register.",
        takes={
            "person": Field("string|integer", "Who.", required=True, most=1_000),
            "epsilon": Field("number|string", "What they choose.", required=True, most=100),
        }
        | REGISTER,
    ),
    Endpoint(route="POST /v1/resume", act=resume, summary="Allow questions again.", takes=REGISTER),
    Endpoint(route="GET /v1/stops", act=stops, summary="Show what stopped a register.", gives="arrow"),
    Endpoint(route="GET /v1/notices", act=notices, summary="Show entries that were answered wrongly.", gives="arrow"),
    Endpoint(route="GET /v1/cautions", act=cautions, summary="Show what can lose charges."),
    Endpoint(
        route="POST /v1/audit",
        act=audit,
        summary="Check that promises were kept.",
        takes={
            "head": Field("string", "One printed earlier.", most=200),
            "witnesses": Field("array", "Entries of answers that were released."),
        },
    ),
)

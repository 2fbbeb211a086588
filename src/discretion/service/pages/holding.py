"""A steward's tables: what state they are in, what is allowed, and stop, resume and refresh."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import RedirectResponse, Response

from discretion.declaration.source import Source
from discretion.declaration.table import Table
from discretion.errors import DiscretionError, LedgerFailed, ServiceFailed
from discretion.ledger import Stop
from discretion.service.declaring import POLICY, TypedForm, policy, typed_policy
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.pages import page
from discretion.service.problem import Refused
from discretion.service.routes.steward import refuse_links_since

NAME = {"name": Field("string", "Which table.", most=1_000)}
REGISTER = {"register": Field("string", "Whose questions.", most=1_000)}
ONCE = {"once": Field("string", "A key: the form acts once.", most=64)}


@dataclass(frozen=True, kw_only=True)
class HeldTable:
    """One table as its steward sees it."""

    table: Table
    place: str
    stop: Stop | None
    changed: bool | None  # None: not known yet
    together: tuple[str, ...]  # all tables of the register: they stop together


async def tables(call: Call) -> Response:
    """Show every table and its state."""
    found = await call.house.read(call.house.db.tables)
    changed = await call.house.changed(call.who.name)
    stops = await call.house.read(call.house.ledger.stops)
    held = [_holding(one, found, stops, changed) for one in found]
    past = [one for one in stops if one.resumed][::-1]
    content: dict[str, Any] = {"held": held, "past": past, "unknown": changed is None}
    return page("steward_tables.html", who=call.who, here="/steward/tables", **content)


async def table(call: Call) -> Response:
    """Show one table: what is declared, what is allowed, what was used, and what can be done."""
    return await _shown(call, call.said.get("name", ""))


async def refresh(call: Call) -> Response:
    """Admit the state that a source is in now, and tell what seems wrong with it."""
    name = call.said.get("name", "")

    async def act() -> tuple[str, list[dict[str, Any]]]:
        await call.house.read(refuse_links_since, call, name)
        done: tuple[str, list[dict[str, Any]]] = await call.house.work(
            "call", ("refresh", (name,), {}), member=call.who.name, request=call.request
        )
        return done

    await call.house.read(_found, call, name)
    try:
        entry, warnings = await call.house.once(call.who.key, call.said.get("once", ""), call.raw, act)
    except (ServiceFailed, LedgerFailed):
        raise
    except DiscretionError as refusal:
        return await _shown(call, name, problems=[("", str(refusal))])
    return await _shown(call, name, refreshed=entry or "nobody", warnings=warnings)


async def stop(call: Call) -> Response:
    """Refuse all questions about the tables of a register from now on."""
    register = call.said.get("register", "")
    stopped = {one.register for one in await call.house.read(call.house.ledger.stops) if not one.resumed}
    if register not in stopped:  # pressed twice, it acts once
        await call.house.read(call.house.ledger.stop, register, charge="", shape="")
    return RedirectResponse("/steward/tables", 303)


async def resume(call: Call) -> Response:
    """Answer questions about the tables of a register again."""
    register = call.said.get("register", "")
    stopped = {one.register for one in await call.house.read(call.house.ledger.stops) if not one.resumed}
    if register in stopped:
        await call.house.read(call.house.ledger.resume, register)
    else:
        await call.house.read(call.house.ledger.register, register)  # refuses what is not there
    return RedirectResponse("/steward/tables", 303)


async def policy_page(call: Call) -> Response:
    """Show what is allowed on a table, to be changed."""
    found = await call.house.read(_found, call, call.said.get("name", ""))
    return _allowing(call, found, typed_policy(found.policy), [])


async def allow(call: Call) -> Response:
    """Change what is allowed on a table."""
    found = await call.house.read(_found, call, call.said.get("name", ""))
    made = TypedForm()
    allowed = policy(made, call.said)
    if allowed is None:
        return _allowing(call, found, call.said, made.problems)
    if allowed != found.policy:
        await call.house.read(call.house.ledger.allow, found.name, allowed)
    return await _shown(call, found.name, allowed=True)


def _allowing(call: Call, table: Table, typed: Any, problems: list[tuple[str, str]]) -> Response:
    empty = dict.fromkeys(POLICY, "")
    content: dict[str, Any] = {"table": table, "typed": {**empty, **typed}, "problems": problems}
    return page("steward_policy.html", who=call.who, here="/steward/tables", status=422 if problems else 200, **content)


async def _shown(call: Call, name: str, **told: Any) -> Response:
    house = call.house
    found = await house.read(_found, call, name)
    changed, stops = await house.changed(call.who.name), await house.read(house.ledger.stops)
    content: dict[str, Any] = {
        "held": _holding(found, await house.read(house.db.tables), stops, changed),
        "sheet": found.sheets()[0],
        "quotas": await house.read(house.ledger.quotas, name),
        "problems": [],
        "refreshed": "",
        "warnings": [],
        "allowed": False,
        **told,
    }
    status = 422 if content["problems"] else 200
    return page("steward_table.html", who=call.who, here="/steward/tables", status=status, **content)


def _found(call: Call, name: str) -> Table:
    found = next((one for one in call.house.ledger.tables() if one.name == name), None)
    if found is None:
        raise Refused(404, "There is no such table.")
    return found


def _holding(
    table: Table, tables: tuple[Table, ...], stops: tuple[Stop, ...], changed: tuple[str, ...] | None
) -> HeldTable:
    return HeldTable(
        table=table,
        place=str(Source.from_json(table.origin)) if table.origin else table.source,
        stop=next((one for one in stops if one.register == table.register and not one.resumed), None),
        changed=None if changed is None else bool({table.name, table.register} & set(changed)),
        together=tuple(one.name for one in tables if one.register == table.register),
    )


def problem_of(refusal: DiscretionError) -> list[tuple[str, str]]:
    """Return a refusal as the problem of a form; failures of the service itself are none."""
    if isinstance(refusal, ServiceFailed | LedgerFailed):
        raise refusal
    return [("", str(refusal))]


ENDPOINTS = (
    Endpoint(route="GET /steward/tables", act=tables, summary="Show tables and their state.", gives="html"),
    Endpoint(route="GET /steward/table", act=table, summary="Show one table.", takes=NAME, gives="html"),
    Endpoint(
        route="POST /steward/refresh",
        act=refresh,
        summary="Admit a source as it is now.",
        takes=NAME | ONCE,
        gives="html",
        form=True,
    ),
    Endpoint(route="POST /steward/stop", act=stop, summary="Stop answering.", takes=REGISTER, gives="html", form=True),
    Endpoint(
        route="POST /steward/resume", act=resume, summary="Answer again.", takes=REGISTER, gives="html", form=True
    ),
    Endpoint(route="GET /steward/policy", act=policy_page, summary="Show a policy.", takes=NAME, gives="html"),
    Endpoint(
        route="POST /steward/policy",
        act=allow,
        summary="Change a policy.",
        takes=NAME | POLICY,
        gives="html",
        form=True,
    ),
)

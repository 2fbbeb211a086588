"""Show analysts the tables, what is left, and what was asked."""

from dataclasses import dataclass, replace

from starlette.responses import Response

from discretion.declaration.table import Table
from discretion.ledger.history import Asking
from discretion.render.sheet import Sheet
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.pages import page
from discretion.service.pages.paging import PAGING, Paging, paged
from discretion.service.sentence import sentence
from discretion.service.text import known_names, known_people, without_literals


@dataclass(frozen=True, kw_only=True)
class ToldTable:
    """A table as analysts see it: where its rows are is for the steward."""

    name: str
    sheet: Sheet
    stopped: bool


@dataclass(frozen=True, kw_only=True)
class ToldAsking:
    """A question as its reader may see it."""

    asking: Asking
    words: str
    sql: str
    mine: bool


async def tables(call: Call) -> Response:
    """Show every table with its columns, types, bounds, keys and policies."""
    found = await call.house.read(call.house.db.tables)
    stops = await call.house.read(call.house.ledger.stops)
    stopped = {one.register for one in stops if not one.resumed}
    shown = [ToldTable(name=one.name, sheet=_sheet(one), stopped=one.register in stopped) for one in found]
    return page("tables.html", who=call.who, here="/tables", tables=shown)


def _sheet(table: Table) -> Sheet:
    lookups = {name: replace(one, source="", origin="") for name, one in table.lookups.items()}
    return replace(table, source="", origin="", lookups=lookups).sheets()[0]


async def history(call: Call) -> Response:
    """Show the questions of the one who is signed in, or of everybody; those of others without literals."""
    everybody = call.said.get("of", "") == "everybody"
    read = call.house.ledger.askings
    analyst = None if everybody else call.who.name
    found = await call.house.read(read, analyst=analyst, before=paged(call), most=Paging.MOST + 1)
    declared = await call.house.read(call.house.db.tables)
    known, persons = known_names(declared), known_people(declared)
    told = [_told(one, call, known, persons) for one in found]
    paging = Paging.of(told, [one.seq for one in found], call, of="everybody" if everybody else "")
    return page("history.html", who=call.who, here="/history", everybody=everybody, paging=paging)


def _told(asking: Asking, call: Call, known: frozenset[str], persons: frozenset[tuple[str, str]]) -> ToldAsking:
    mine = asking.analyst == call.who.name
    seen = mine or call.who.role == "steward"
    return ToldAsking(
        asking=asking,
        words=sentence(asking.sql, known, persons),
        sql=asking.sql if seen else without_literals(asking.sql, known),
        mine=mine,
    )


async def balance(call: Call) -> Response:
    """Show what each level has spent and has left, as a picture and in numbers."""
    rows = list(await call.house.read(call.house.db.balance))
    registers: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        registers.setdefault(row["register"], []).append(row)
    return page("balance.html", who=call.who, here="/balance", registers=registers)


ENDPOINTS = (
    Endpoint(route="GET /tables", act=tables, summary="Show tables on a page.", gives="html"),
    Endpoint(
        route="GET /history",
        act=history,
        summary="Show questions on a page.",
        takes={"of": Field("string", "'everybody', or one's own.", most=20)} | PAGING,
        gives="html",
    ),
    Endpoint(route="GET /balance", act=balance, summary="Show what is left on a page.", gives="html"),
)

"""A steward protects a table: choose a file, then fill in a form that starts from its columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response

from discretion.declaration.source import SUFFIXES, Source
from discretion.declaration.table import COPY
from discretion.errors import (
    DiscretionError,
    EngineFailed,
    InvalidDeclaration,
    InvalidPreference,
    LedgerFailed,
    ServiceFailed,
)
from discretion.service.declaring import (
    EMPTY,
    POLICY,
    READING,
    TABLE,
    TYPES,
    TypedForm,
    draft,
    is_dated,
    is_number,
    reading,
    told,
)
from discretion.service.endpoint import Call, Endpoint, Field
from discretion.service.folder import inside
from discretion.service.pages import page

MOST_FILES = 500
ENDINGS = tuple(ending for endings in SUFFIXES.values() for ending in (*endings, *(f"{one}.gz" for one in endings)))
SOURCE = {"source": Field("string", "A file below the data folder.", most=4_000)}
DOING = {
    "do": Field("string", "'read' shows the form with the types that were chosen, anything else protects.", most=20),
    "once": Field("string", "A key: the form acts once.", most=64),
}
FORM = SOURCE | READING | TABLE | POLICY | DOING


async def protect_page(call: Call) -> Response:
    """Show the files that can be protected, or the form for one of them."""
    source = call.said.get("source", "").strip()
    if not source:
        return await _choosing(call)
    try:
        columns = await _columns(call, source, reading(call.said))
    except (ServiceFailed, LedgerFailed):
        raise
    except DiscretionError as refusal:
        return await _choosing(call, problems=[("source", str(refusal))])
    stem = Path(source.partition("#")[0].rstrip("/")).name.partition(".")[0]
    name = source.partition("#")[2] or "".join(sign if sign.isalnum() else "_" for sign in stem).strip("_").lower()
    return await _form(call, columns, typed={**EMPTY, **call.said, "name": name})


async def protect(call: Call) -> Response:
    """Protect the table, or show the form again with every problem and all that was typed."""
    source = call.said.get("source", "").strip()
    typed = {**EMPTY, "rows_per_person": "", "longest_text": "", "largest_share": "", **call.said}
    try:
        columns, unread = await _columns_as_typed(call, source)
    except (ServiceFailed, LedgerFailed):
        raise
    except DiscretionError as refusal:
        return await _choosing(call, problems=[("source", str(refusal))])
    if unread or call.said.get("do") == "read":
        return await _form(call, columns, typed=typed, problems=unread)
    made = draft(call.said, columns)
    await _refuse_known(call, made)
    if made.problems:
        return await _form(call, columns, typed=typed, problems=made.problems)

    async def act() -> Any:
        place = await call.house.read(inside, call.house.settings.data, source)
        lookups = {
            name: (await call.house.read(inside, call.house.settings.data, file), *rest)
            for name, (file, *rest) in made.declared.get("lookups", {}).items()
        }
        declared = made.declared | ({"lookups": lookups} if lookups else {}) | reading(call.said)
        payload = "protect", (call.said["name"].strip(), place), declared
        return await call.house.work("call", payload, member=call.who.name, request=call.request)

    try:
        table, warnings = await call.house.once(call.who.key, call.said.get("once", ""), call.raw, act)
    except (InvalidDeclaration, InvalidPreference) as refusal:
        return await _form(call, columns, typed=typed, problems=told(refusal))
    content = {"table": table, "sheet": table.sheets()[0], "warnings": warnings}
    return page("steward_protected.html", who=call.who, here="/steward/tables", **content)


async def _refuse_known(call: Call, made: TypedForm) -> None:
    """Note a name that is taken: a table is not replaced by mistake."""
    name = call.said.get("name", "").strip()
    key = (call.who.key, call.said.get("once", ""))
    if key in call.house.keys:
        return  # the same form again: it shows what was done
    if name and name in {one.name for one in await call.house.read(call.house.db.tables)}:
        made.problems.append(("name", f"There is a table “{name}” already. Choose another name."))


async def _columns_as_typed(call: Call, source: str) -> tuple[Mapping[str, str], list[tuple[str, str]]]:
    """Return the columns with the types that were chosen; if that fails, as they are found, and why."""
    told = reading(call.said)
    plain = {name: value for name, value in told.items() if name not in ("types", "zones")}
    try:
        return await _columns(call, source, told), []
    except (InvalidDeclaration, EngineFailed) as refusal:
        if told == plain:
            raise
        return await _columns(call, source, plain), [("", str(refusal))]


async def _columns(call: Call, source: str, told: Mapping[str, Any]) -> Mapping[str, str]:
    place = await call.house.read(inside, call.house.settings.data, source)
    payload = "columns", (place,), dict(told)
    found: tuple[Mapping[str, str], Any] = await call.house.work(
        "call", payload, member=call.who.name, request=call.request
    )
    return found[0]


async def _choosing(call: Call, *, problems: list[tuple[str, str]] | None = None) -> Response:
    data = call.house.settings.data
    files = await call.house.read(_files, data, call.house.settings.ledger) if data is not None else []
    root = "" if data is None else f"{data.resolve()}/"
    known = {
        place.removeprefix(root): one.name
        for one in await call.house.read(call.house.db.tables)
        for place in (Source.from_json(one.origin).places if one.origin else (one.source,))
    }
    listed = [(file, f"{file} (protected as {known[file]})" if file in known else file) for file in files]
    content: dict[str, Any] = {
        "files": files,
        "listed": listed,
        "most": MOST_FILES,
        "data": data,
        "typed": {**EMPTY, "source": "", **call.said},
        "problems": problems or [],
    }
    return page("steward_files.html", who=call.who, here="/steward/tables", status=422 if problems else 200, **content)


async def _form(
    call: Call, columns: Mapping[str, str], *, typed: Mapping[str, Any], problems: list[tuple[str, str]] | None = None
) -> Response:
    """Show the form; what was typed about a column is found by the column's name."""
    names = list(typed["column"])
    kept = {name: place for place, name in enumerate(names)}

    def of(field: str, column: str) -> str:
        place, values = kept.get(column, len(names)), typed[field]
        return str(values[place]) if place < len(values) else ""

    rows = [
        {
            "name": name,
            "type": kind,
            "number": is_number(kind),
            "dated": is_dated(kind),
            "timed": kind.upper().startswith("TIMESTAMP"),
            "read_as": of("type", name),
            "zone": of("zone", name),
            "step": of("step", name),
            "low": of("low", name),
            "high": of("high", name),
            "groups": of("keys", name),
            "required": name in typed["required"],
        }
        for name, kind in columns.items()
    ]
    wrong: dict[str, list[str]] = {}
    for field, text in problems or []:
        wrong.setdefault(field, []).append(text)
    registers = [one.name for one in await call.house.read(call.house.ledger.registers)]
    content: dict[str, Any] = {"rows": rows, "typed": typed, "problems": problems or [], "wrong": wrong, "types": TYPES}
    status = 422 if problems else 200
    return page(
        "steward_protect.html", who=call.who, here="/steward/tables", status=status, registers=registers, **content
    )


def _files(data: Path, ledger: str) -> list[str]:
    """Return files below the data folder that could be protected, by name; copies that admission made are none."""
    root, found = data.resolve(), []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        hidden = any(part.startswith(".") for part in relative.parts)
        if hidden or path.name.endswith(COPY) or not path.name.lower().endswith(ENDINGS) or not path.is_file():
            continue
        try:
            inside(root, str(relative))
        except InvalidDeclaration:
            continue  # a link that leads elsewhere
        found.append(str(relative))
        if len(found) == MOST_FILES:
            break
    return found


ENDPOINTS = (
    Endpoint(
        route="GET /steward/protect",
        act=protect_page,
        summary="Show the form that protects a table.",
        takes=SOURCE | READING,
        gives="html",
    ),
    Endpoint(
        route="POST /steward/protect", act=protect, summary="Protect a table.", takes=FORM, gives="html", form=True
    ),
)

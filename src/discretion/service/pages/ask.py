"""The page to ask on: an editor, what the question would cost and how good it would be, and the button that spends."""

from dataclasses import replace
from typing import Any

from starlette.responses import RedirectResponse, Response

from discretion.answer.outlook import Outlook
from discretion.answer.question import Question
from discretion.declaration.table import Table
from discretion.errors import DiscretionError, InvalidDeclaration
from discretion.ledger.answers import stored_answer, stored_question
from discretion.mechanisms import MECHANISMS, TOGETHER
from discretion.query.function import FUNCTIONS
from discretion.release import Release
from discretion.service.endpoint import ENTRY, LONGEST_SQL, Call, Endpoint, Field
from discretion.service.pages import page
from discretion.service.pages.answer import shown_answer
from discretion.service.pages.form import AskForm
from discretion.service.pages.python import as_python
from discretion.service.problem import STATUS

ASKED = {
    "sql": Field("string", "One SELECT about protected tables.", most=LONGEST_SQL),
    "percent": Field("string", "The most of each person's allowance that it may use, in percent.", most=20),
    "assume": Field("string", "What is assumed about the data.", most=20),
    "within": Field(
        "string", "The largest error, if everybody is selected: the smallest share that is enough is used.", most=40
    ),
    "mechanism": Field("string", "'auto', or the name of a mechanism.", most=40),
    "with_interval": Field("string", "Spend a third of a quantile's share on an interval.", most=5),
    "partial": Field("string", "Let people with too little left pay what they have.", most=5),
    "expect_low": Field("string", "The least that every level's mean or fraction is believed to be.", most=40),
    "expect_high": Field("string", "The most that every level's mean or fraction is believed to be.", most=40),
    "options": Field("string", "Options of the mechanism, as name=value, separated by commas.", most=400),
    "do": Field("string", "'answer' asks, anything else explains.", most=20),
    "once": Field("string", "A key: the form acts once.", most=64),
}
WORDS = """SELECT FROM WHERE GROUP_BY ORDER_BY HAVING LIMIT AND OR NOT IN BETWEEN IS_NULL AS CASE WHEN THEN ELSE END
JOIN USING DISTINCT COUNT SUM AVG MEDIAN MIN MAX MODE VARIANCE STDDEV TRUE FALSE NULL LIKE CAST"""


async def ask_page(call: Call) -> Response:
    """Show the editor: empty, about one table, or with a question that was asked before."""
    table, entry = call.said.get("table", ""), call.said.get("from", "")
    if ENTRY.fullmatch(entry):
        asked = await call.house.read(stored_question, call.house.ledger, entry)
        if asked is not None and (asked.analyst == call.who.name or call.who.role == "steward"):
            return await _shown(call, AskForm.asking(Question.again(asked.sql, asked.manner)))
    known = {one.name for one in await call.house.read(call.house.db.tables)}
    return await _shown(call, AskForm(sql=f"SELECT COUNT(*)\nFROM {_quoted(table)}" if table in known else ""))


async def ask(call: Call) -> Response:
    """Explain a question, or ask it and lead to its answer."""
    draft = AskForm.of(call.said)
    if call.said.get("do") != "answer":
        return await _shown(call, draft)
    try:
        question = draft.question(call.who.name)

        async def act() -> str:
            return str(await call.house.work("ask", question, member=call.who.name, request=call.request))

        told = await call.house.once(call.who.key, call.said.get("once", ""), call.raw, act)
    except DiscretionError as refusal:
        return await _shown(call, draft, refusal=refusal)
    return await _answered(call, question.sql, Release.from_stored(told))


async def _answered(call: Call, sql: str, release: Release) -> Response:
    """Lead to the answer; show it here if its entry has another one, computed from the same released values."""
    _, text = await call.house.read(stored_answer, call.house.ledger, release.entry)
    asked = await call.house.read(stored_question, call.house.ledger, release.entry)
    if asked is None or Release.from_stored(text).columns == release.columns:
        return RedirectResponse(f"/answers/{release.entry}", 303)
    return await shown_answer(call, release, replace(asked, sql=sql), mine=True, kept=False)


async def explain(call: Call) -> Response:
    """Return the part of the page that says what a question would cost, while it is typed."""
    draft = AskForm.of(call.said)
    found, refusal = await outlook_for(call, draft)
    told: dict[str, Any] = {"outlook": found, "refusal": refusal, "draft_of": AskForm.asking, "examples": ()}
    return page("outlook.html", who=call.who, draft=draft, code=_code(call, draft), **told)


async def outlook_for(call: Call, draft: AskForm) -> tuple[Outlook | None, DiscretionError | None]:
    """Return what a question would cost, or why it is refused; neither for an empty one."""
    if not draft.sql.strip():
        return None, None
    try:
        question = draft.question(call.who.name)
        return await call.house.work("outlook", question, member=call.who.name, request=call.request), None
    except DiscretionError as refusal:
        return None, refusal


async def _shown(call: Call, draft: AskForm, *, refusal: DiscretionError | None = None) -> Response:
    found = None
    if refusal is None:
        found, refusal = await outlook_for(call, draft)
    tables = await call.house.read(call.house.db.tables)
    status = STATUS.get(type(refusal).__name__, 422) if refusal is not None else 200
    return page(
        "ask.html",
        who=call.who,
        here="/ask",
        status=status,
        draft=draft,
        outlook=found,
        refusal=refusal,
        tables=tables,
        mechanisms=("auto", *MECHANISMS, *TOGETHER),
        words=_words(tables),
        draft_of=AskForm.asking,
        examples=[one.name for one in tables[:5]],
        code=_code(call, draft),
    )


def _words(tables: tuple[Table, ...]) -> list[tuple[str, str]]:
    """Return what completion offers: (word, what it is)."""
    found = {table.name: "table" for table in tables}
    for table in tables:
        found |= {name: f"{kind.lower()}, {table.name}" for name, kind in table.columns.items()}
        found |= dict.fromkeys(table.lookups, "lookup")
    functions = {kind.sql_names()[0] for kind in FUNCTIONS if hasattr(kind, "sql_names")}
    offered = {*(word.replace("_", " ") for word in WORDS.split()), "QUANTILE_CONT", *functions}
    return [*sorted(found.items()), *((word, "") for word in sorted(offered))]


def _code(call: Call, draft: AskForm) -> str:
    try:
        return as_python(call.house.settings.url, draft.question(call.who.name))
    except InvalidDeclaration:
        return ""


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'


BEGIN = {
    "table": Field("string", "A table to ask about.", most=1_000),
    "from": Field("string", "The entry of an own question to begin with.", most=40),
}
ENDPOINTS = (
    Endpoint(route="GET /ask", act=ask_page, summary="Show the editor.", takes=BEGIN, gives="html"),
    Endpoint(route="POST /ask", act=ask, summary="Explain or ask.", takes=ASKED, gives="html", form=True),
    Endpoint(
        route="POST /ask/explain", act=explain, summary="Explain while typing.", takes=ASKED, gives="html", form=True
    ),
)

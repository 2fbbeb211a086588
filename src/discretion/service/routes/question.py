"""Questions: tables, plans, answers, and what is left; for analysts and stewards."""

from typing import Any

from starlette.responses import Response

from discretion.answer import Question
from discretion.errors import InvalidDeclaration
from discretion.ledger.answers import stored_answer, stored_question
from discretion.query.parameter import bound
from discretion.release import Release
from discretion.service.endpoint import ENTRY, LONGEST_SQL, Call, Endpoint, Field
from discretion.service.problem import Refused
from discretion.service.shown import ARROW, arrow_bytes, release_arrow, release_facts, table_facts
from discretion.service.text import shown_release, without_literals

ASKED = {
    "sql": Field("string", "One SELECT about protected tables.", required=True, most=LONGEST_SQL),
    "share": Field("number", "The most of each person's own allowance that this may use; 0.1 if left out."),
    "mechanism": Field("string", "'auto', or the name of a mechanism.", most=100),
    "options": Field("object|null", 'Of that mechanism: {"threshold": "mean"}.', most=20),
    "assume": Field("string|number|null", "'gradual', 'independent', a number between 0 and 1, or nothing.", most=100),
    "expect": Field("array|null", "[low, high]: where every level's mean is believed to lie."),
    "with_interval": Field("boolean", "Spend a third of a quantile's share on an interval in value units."),
    "partial": Field("boolean", "Let people with too little left pay what they have."),
    "params": Field("array|object|null", "Values for ? (an array) or $name (an object).", most=1_000),
    "model": Field("string", "'personalized', or 'individual', which is NOT differential privacy.", most=100),
    "within": Field(
        "number|null", "The largest 95% error, if everybody is selected: the smallest share that is enough is used."
    ),
}
REGISTER = {"register": Field("string", "One register; all of them if left out.", most=1_000)}


def _question(said: Any, analyst: str = "") -> Question:
    """Return the question that a request asks."""
    how = {name: said[name] for name in ASKED if name in said and name not in ("sql", "params")}
    expect = how.get("expect")
    if expect is not None:
        numbers = [one for one in expect if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(expect) != 2 or len(numbers) != 2:
            raise InvalidDeclaration(f"'expect' must be two numbers, [low, high], got {expect!r}.")
        how["expect"] = tuple(map(float, expect))
    return Question(sql=bound(said["sql"], said.get("params")), analyst=analyst, **how)


async def query(call: Call) -> Response:
    """Answer a question; with an Idempotency-Key, at most once."""
    asked = _question(call.said, call.who.name)

    async def act() -> str:
        return str(await call.house.work("ask", asked, member=call.who.name, request=call.request))

    key = call.request.headers.get("idempotency-key", "")
    return _release(call, Release.from_stored(await call.house.once(call.who.name, key, call.raw, act)))


async def explain(call: Call) -> Response:
    """Show what a question would cost and how good it would be. Free."""
    asked = _question(call.said, call.who.name)
    return call.answer(await call.house.work("explain", asked, member=call.who.name, request=call.request))


async def answer(call: Call) -> Response:
    """Show an answer that was delivered, by the entry that paid for it; of others, without what they wrote."""
    entry = call.request.path_params["entry"]
    if not ENTRY.fullmatch(entry):
        raise Refused(404, "An entry looks like 12-0a1b2c3d4e5f.")
    analyst, text = await call.house.read(stored_answer, call.house.ledger, entry)
    if not text:
        raise Refused(404, f"Entry {entry} has no answer.")
    release = Release.from_stored(text)
    if call.who.role != "steward" and analyst != call.who.name:
        asked = await call.house.read(stored_question, call.house.ledger, entry)
        tables = await call.house.read(call.house.db.tables)
        release = shown_release(release, asked.sql if asked is not None else "", tables)
    return _release(call, release)


async def tables(call: Call) -> Response:
    """Show every protected table as it was declared; where its rows are, only to stewards."""
    found = await call.house.read(call.house.db.tables)
    if call.who.role == "steward":
        return call.answer([{**table_facts(one), "source": one.source, "origin": one.origin} for one in found])
    return call.answer([table_facts(one) for one in found])


async def balance(call: Call) -> Response:
    """Show what each level has spent and has left."""
    found = await call.house.read(call.house.db.balance, call.said.get("register", ""))
    return call.listing(found.to_arrow())


async def history(call: Call) -> Response:
    """Show every entry; questions of other analysts without literals."""
    table = (await call.house.read(call.house.db.history)).to_arrow()
    if call.who.role != "steward":
        known, mine = await call.house.read(call.house.known), call.who.name
        rows = zip(table["kind"].to_pylist(), table["analyst"].to_pylist(), table["text"].to_pylist(), strict=True)
        texts = [
            without_literals(text, known) if kind == "charge" and analyst != mine else text
            for kind, analyst, text in rows
        ]
        table = table.set_column(table.column_names.index("text"), "text", [texts])
    return call.listing(table)


async def head(call: Call) -> Response:
    """Show the end of the ledger's chain, to be kept elsewhere."""
    return call.answer({"head": await call.house.read(call.house.db.head)})


def _release(call: Call, release: Release) -> Response:
    if call.wants_arrow:
        return Response(arrow_bytes(release_arrow(release)), media_type=ARROW)
    return call.answer(release_facts(release))


ENDPOINTS = (
    Endpoint(route="GET /v1/tables", act=tables, summary="Show what can be asked about."),
    Endpoint(route="POST /v1/explain", act=explain, summary="Show what a question would cost. Free.", takes=ASKED),
    Endpoint(route="POST /v1/query", act=query, summary="Answer a question.", takes=ASKED, gives="arrow"),
    Endpoint(route="GET /v1/answers/{entry}", act=answer, summary="Show an answer again.", gives="arrow"),
    Endpoint(route="GET /v1/balance", act=balance, summary="Show what is left.", takes=REGISTER, gives="arrow"),
    Endpoint(route="GET /v1/history", act=history, summary="Show every entry.", gives="arrow"),
    Endpoint(route="GET /v1/head", act=head, summary="Show the end of the ledger's chain."),
)

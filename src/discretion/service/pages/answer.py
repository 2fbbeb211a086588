"""The page of an answer: its interval first, a table, a chart, files, and what to do if it says nothing."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet
from starlette.responses import Response

from discretion.answer import Question
from discretion.answer.outlook import Way
from discretion.errors import DiscretionError
from discretion.ledger.answers import stored_answer, stored_question
from discretion.ledger.history import Asking
from discretion.release import Error, Release
from discretion.service.endpoint import ENTRY, Call, Endpoint, Field
from discretion.service.pages import page, words
from discretion.service.pages.chart import chart
from discretion.service.pages.form import AskForm
from discretion.service.pages.python import as_python, stored_as_python
from discretion.service.problem import Refused
from discretion.service.shown import release_facts
from discretion.service.text import shown_release, without_literals

MOST_ROWS = 500  # of an answer that a page shows; files have all
NO_ANSWER = "This question was paid for, but no answer was delivered."


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure of an answer: where the truth lies, and the best single value."""

    interval: str
    value: str
    ranked: bool = False  # the interval is of ranks: parts of the values that are asked about


async def answer(call: Call) -> Response:
    """Show an answer that was delivered; of others, without what they wrote."""
    release, asked, mine = await _found(call)
    return await shown_answer(call, release, asked, mine=mine)


async def shown_answer(call: Call, release: Release, asked: Asking, *, mine: bool, kept: bool = True) -> Response:
    """Return the page of an answer; one that is not `kept` has no address and no files."""
    sql = asked.sql if mine else without_literals(asked.sql, await call.house.read(call.house.known))
    columns = [_cells(release, name)[:MOST_ROWS] for name in release.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    url = call.house.settings.url
    silent = any("too much noise to say anything" in remark for remark in release.remarks())
    return page(
        "answer.html",
        who=call.who,
        here="/history",
        release=release,
        asked=asked,
        mine=mine,
        sql=sql,
        rows=rows,
        charts=[] if silent else chart(release),
        single=_single(release, rows),
        code=stored_as_python(url, release.entry),
        again=as_python(url, Question.again(asked.sql, asked.manner)) if mine else "",
        silent=silent,
        ways=await _ways(call, asked) if silent and mine else (),
        most=MOST_ROWS,
        kept=kept,
    )


async def download(call: Call) -> Response:
    """Return an answer as a file."""
    release, _, _ = await _found(call)
    kind = call.said.get("as", "csv")
    if kind not in FILES:
        raise Refused(404, f"An answer can be a file of {', '.join(FILES)}.")
    media, write = FILES[kind]
    name = f"answer-{release.entry}.{kind}"
    return Response(write(release), media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def _found(call: Call) -> tuple[Release, Asking, bool]:
    entry = call.request.path_params["entry"]
    if not ENTRY.fullmatch(entry):
        raise Refused(404, "An entry looks like 12-0a1b2c3d4e5f.")
    asked = await call.house.read(stored_question, call.house.ledger, entry)
    if asked is None:
        raise Refused(404, f"Entry {entry} is not a question.")
    _, text = await call.house.read(stored_answer, call.house.ledger, entry)
    if not text:
        raise Refused(404, NO_ANSWER)
    release, mine = Release.from_stored(text), call.who.role == "steward" or asked.analyst == call.who.name
    if not mine:
        release = shown_release(release, asked.sql, await call.house.read(call.house.db.tables))
    return release, asked, mine


async def _ways(call: Call, asked: Asking) -> tuple[tuple[Way, AskForm], ...]:
    """Return what would make an answer say something; nothing if it cannot be asked any more."""
    question = Question.again(asked.sql, asked.manner, analyst=call.who.name)
    try:
        found = await call.house.work("outlook", question, member=call.who.name, request=call.request)
    except DiscretionError:
        return ()
    return tuple((way, AskForm.asking(way.question)) for way in found.ways)


def _single(release: Release, rows: list[list[Cell | str]]) -> Cell | None:
    """Return the one figure of an answer that has one."""
    cells = [cell for row in rows for cell in row if isinstance(cell, Cell)]
    return cells[0] if len(release) == 1 and len(cells) == 1 and len(release.columns) == 1 else None


def _cells(release: Release, name: str) -> list[Cell | str]:
    """Return a column of an answer as text: keys as they are, figures with their intervals, to the same digit."""
    values = release.columns[name]
    if name not in release.errors:
        return [words.key(one) for one in values]
    ends = [_interval(value, error) for value, error in zip(values, release.errors[name], strict=True)]
    widths = [high - low for low, high in filter(None, ends) if isfinite(high - low) and high > low]
    place = max(floor(log10(min(widths))) - 1, -12) if widths else -2
    texts = [row[name] for row in release.rows()]
    pairs = zip(values, release.errors[name], ends, texts, strict=True)
    return [_cell(value, error, found, place, text) for value, error, found, text in pairs]


def _interval(value: Any, error: Error) -> tuple[float, float] | None:
    return error.interval(value) if isinstance(value, int | float) and error.unit == "value" else None


def _cell(value: Any, error: Error, ends: tuple[float, float] | None, place: int, text: str) -> Cell:
    if isinstance(value, int | float) and error.unit == "rank":
        low, high = error.interval(value)
        told = f"rank {floor(100 * low + 1e-9)} % to {ceil(100 * high - 1e-9)} %"
        return Cell(interval=told, value=words.value(value), ranked=True)
    if ends is None or not (isfinite(ends[0]) and isfinite(ends[1])):
        return Cell(interval=text if ends is None else "no bound is known", value=words.value(value))
    decimals = max(0, -place)
    low, high = floor(ends[0] / 10.0**place + 1e-9) * 10.0**place, ceil(ends[1] / 10.0**place - 1e-9) * 10.0**place
    near = f"{round(value, -place) + 0.0:,.{decimals}f}"
    return Cell(interval=f"{low + 0.0:,.{decimals}f} to {high + 0.0:,.{decimals}f}", value=near)


def _csv(release: Release) -> bytes:
    sink = io.BytesIO()
    csv.write_csv(release.to_arrow(), sink)
    return sink.getvalue()


def _parquet(release: Release) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(release.to_arrow(), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _json(release: Release) -> bytes:
    return json.dumps(release_facts(release), indent=2).encode()


FILES: dict[str, tuple[str, Callable[[Release], bytes]]] = {
    "csv": ("text/csv", _csv),
    "json": ("application/json", _json),
    "parquet": ("application/vnd.apache.parquet", _parquet),
}
KIND: dict[str, Any] = {"as": Field("string", "csv, json or parquet.", most=10)}
ENDPOINTS = (
    Endpoint(route="GET /answers/{entry}", act=answer, summary="Show an answer on a page.", gives="html"),
    Endpoint(
        route="GET /answers/{entry}/download", act=download, summary="Download an answer.", takes=KIND, gives="file"
    ),
)

"""Endpoint: one route of the service, what it takes and what it does."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from discretion.errors import InvalidDeclaration
from discretion.service.identity import Who
from discretion.service.problem import Refused, as_json
from discretion.service.shown import ARROW, arrow_bytes

if TYPE_CHECKING:
    from discretion.service.house import House

MOST_FIELDS = 5_000  # of one form
LONGEST_SQL = 100_000
ENTRY = re.compile(r"[1-9]\d{0,17}-[0-9a-f]{12}")  # the id of an entry of the ledger

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


@dataclass(frozen=True)
class Field:
    """One thing a request says: its types in JSON, and what it means."""

    kinds: str  # such as "string" or "number|null"
    text: str
    required: bool = False
    most: int = 10_000  # characters of a text, items of an array or object

    def problem(self, name: str, value: Any) -> str:
        """Return what is wrong with a value, "" if nothing is."""
        kinds = self.kinds.split("|")
        fits = any(isinstance(value, KINDS[kind]) and isinstance(value, bool) == (kind == "boolean") for kind in kinds)
        if not fits or (isinstance(value, float) and not isfinite(value)):
            return f"{name!r} must be a JSON {' or '.join(kinds)}"
        if isinstance(value, str | list | dict) and len(value) > self.most:
            return f"{name!r} may have at most {self.most:,} characters or items"
        return ""

    def schema(self) -> dict[str, Any]:
        """Return the field as a JSON schema."""
        kinds = self.kinds.split("|")
        found: dict[str, Any] = {"type": kinds if len(kinds) > 1 else kinds[0], "description": self.text}
        return found | ({"maxLength": self.most} if "string" in kinds else {})


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, by somebody who may make it."""

    house: "House"
    request: Request
    who: Who
    said: Mapping[str, Any]  # the fields of the body or the query
    raw: bytes = b""

    def answer(self, content: Any, status: int = 200) -> Response:
        """Return plain values as JSON."""
        return Response(as_json(content), status, media_type="application/json")

    def listing(self, table: Any) -> Response:
        """Return an Arrow table as Arrow or as JSON, as the caller prefers."""
        if self.wants_arrow:
            return Response(arrow_bytes(table), media_type=ARROW)
        return self.answer(table.to_pylist())

    @property
    def wants_arrow(self) -> bool:
        """Tell whether the caller asks for Arrow."""
        return ARROW in self.request.headers.get("accept", "")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A route such as "POST /v1/query"; the table of permissions says who may use it."""

    route: str
    act: Callable[[Call], Awaitable[Response]]
    summary: str
    takes: Mapping[str, Field] = field(default_factory=dict)  # in the query of a GET, else in a JSON body
    gives: str = "json"  # json, arrow (and JSON), html, text, file
    form: bool = False  # takes a form of a web page, not JSON; its page tells what is wrong with it
    sends: bool = False  # sends the browser elsewhere
    status: int = 200

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    def read(self, request: Request, raw: bytes) -> dict[str, Any]:
        """Return the fields of a request; refuse unknown, missing and wrong ones, all at once."""
        if self.form:
            return self._form(raw)
        if self.method == "GET":
            said: Any = dict(request.query_params)
        elif not self.takes:
            return {}
        else:
            said = _json(request, raw)
        problems = [f"there is no {name!r}" for name in said if name not in self.takes]
        problems += [f"{name!r} is missing" for name, one in self.takes.items() if one.required and name not in said]
        problems += [self.takes[name].problem(name, value) for name, value in said.items() if name in self.takes]
        if problems := list(filter(None, problems)):
            known = ", ".join(map(repr, self.takes)) or "nothing"
            raise InvalidDeclaration(f"Wrong request: {'; '.join(problems)}. {self.route} takes {known}.")
        _refuse_half_characters(said)
        return dict(said)

    def _form(self, raw: bytes) -> dict[str, Any]:
        """Return the known fields of a form, those of kind array as lists; refuse only what is too long."""
        found = form_of(raw)
        said = {
            name: found[name] if one.kinds == "array" else found[name][-1]
            for name, one in self.takes.items()
            if name in found
        }
        if problems := [text for name, value in said.items() if (text := self.takes[name].problem(name, value))]:
            raise InvalidDeclaration(f"Wrong form: {'; '.join(problems)}.")
        return said


def form_of(raw: bytes) -> dict[str, list[str]]:
    """Return every value of every field of a form; NUL, which no text may contain, becomes a visible mark."""
    try:
        found = parse_qs(raw.decode(errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(400, f"A form may have at most {MOST_FIELDS:,} fields.") from None
    return {name: [value.replace("\0", "\ufffd") for value in values] for name, values in found.items()}


def _json(request: Request, raw: bytes) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "The body must be JSON, with Content-Type: application/json.")
    try:
        said = json.loads(raw.decode() or "{}", parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Refused(400, "The body is not valid JSON in UTF-8.") from None
    if not isinstance(said, dict):
        raise Refused(400, "The body must be a JSON object.")
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) != len(pairs):
        raise ValueError("a name twice")  # readers differ on which one counts
    return said


def _no_constant(text: str) -> Any:
    raise ValueError(text)  # NaN and Infinity are not JSON


def _refuse_half_characters(said: Any) -> None:
    try:
        text = json.dumps(said, ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError):
        raise Refused(400, "A text contains half of a surrogate pair, or is nested too deeply.") from None
    if "\\u0000" in text:
        raise Refused(400, "A text contains the character NUL. Remove it.")

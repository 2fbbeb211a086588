"""Operation: whether the service is well, public numbers, and the description of the interface."""

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from starlette.responses import PlainTextResponse, Response

from discretion.service.endpoint import Call, Endpoint
from discretion.service.permission import PERMISSIONS, ROLES
from discretion.service.problem import CODE, STATUS
from discretion.service.shown import ARROW

MEDIA = {"json": ["application/json"], "arrow": ["application/json", ARROW], "html": ["text/html"]}


async def health(call: Call) -> Response:
    """Say whether the ledger can be read and workers are there."""
    await call.house.read(call.house.db.head)
    alive, wanted = call.house.pool.alive, call.house.settings.limits.workers
    return call.answer({"status": "ok" if alive else "starting", "workers": alive, "wanted": wanted})


async def metrics(call: Call) -> Response:
    """Return public numbers for Prometheus."""
    pool = call.house.pool
    gauges = {"workers": pool.alive, "waiting": pool.waiting}
    return PlainTextResponse(call.house.metrics.text(gauges, pool.counts))


async def described(call: Call) -> Response:
    """Return the OpenAPI document."""
    from discretion.service.routes import ENDPOINTS as every  # it describes itself, too

    return call.answer(document(every, call.house.settings.url))


async def me(call: Call) -> Response:
    """Say who is signed in."""
    return call.answer({"role": call.who.role, "name": call.who.name, "csrf": call.who.csrf})


ENDPOINTS = (
    Endpoint(route="GET /health", act=health, summary="Say whether the service is well."),
    Endpoint(route="GET /metrics", act=metrics, summary="Show public numbers for Prometheus.", gives="text"),
    Endpoint(route="GET /v1/openapi.json", act=described, summary="Describe this interface."),
    Endpoint(route="GET /v1/me", act=me, summary="Say who is signed in."),
)


MEDIA |= {"text": ["text/plain"], "file": ["text/csv", "application/json", "application/vnd.apache.parquet"]}


def document(endpoints: Iterable[Endpoint], url: str) -> dict[str, Any]:
    """Return the description of all endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "discretion",
            "version": version("discretion"),
            "description": "Answers about people, each with the privacy that each person chose.",
        },
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _problem()},
        },
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    allowed = PERMISSIONS[one.route]
    roles = [role for role in ROLES[:-1] if role in allowed] + ["signed out"] * ("nobody" in allowed)
    told: dict[str, Any] = {
        "summary": one.summary,
        "description": f"For: {', '.join(roles)}.",
        "operationId": re.sub(r"\W+", "_", one.route.replace("/v1/", "").lower()).strip("_")
        + "_page" * (one.gives == "html"),
        "responses": _responses(one),
    }
    names = re.findall(r"{(\w+)}", one.path)
    inside = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    if one.method == "GET":
        inside += [
            {"name": name, "in": "query", "required": field.required, "schema": {**field.schema(), "type": "string"}}
            for name, field in one.takes.items()
        ]
    elif one.form:
        fields = {name: field.schema() for name, field in one.takes.items()}
        form = {"type": "object", "properties": {**fields, "csrf": {"type": "string"}}}
        told["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": form}}}
    elif one.takes:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(one)}}}
    if inside:
        told["parameters"] = inside
    if "nobody" not in allowed:
        told["security"] = [{"token": []}]
    return told


def _body(one: Endpoint) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: field.schema() for name, field in one.takes.items()},
        "required": [name for name, field in one.takes.items() if field.required],
        "additionalProperties": False,
    }


def _responses(one: Endpoint) -> dict[str, Any]:
    content: dict[str, Any] = {media: {} for media in MEDIA[one.gives]}
    told: dict[str, Any] = {str(one.status): {"description": "Done.", "content": content}}
    if one.form or one.sends:
        told["303"] = {"description": "Done; see the page that follows."}
    refused = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status in sorted({*STATUS.values(), *CODE} - {one.status}):
        told[str(status)] = {"description": "Refused; the detail says why and what to do.", **refused}
    if one.gives in ("html", "file"):  # a browser gets a page
        for code in set(told) - {str(one.status), "303"}:
            told[code] = {**told[code], "content": {"text/html": {}, **refused["content"]}}
    return told


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {"type": text, "title": text, "status": {"type": "integer"}, "code": text, "detail": text},
        "required": ["type", "title", "status", "code", "detail"],
    }

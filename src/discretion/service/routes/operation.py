"""Operation: whether the service is well, public numbers, and the description of the interface."""

from starlette.responses import PlainTextResponse, Response

from discretion.service.endpoint import Call, Endpoint
from discretion.service.openapi import document


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

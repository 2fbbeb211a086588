"""Pages: what browsers are shown. Templates escape everything that is filled in; there is no inline code.

How a page is added: write a handler that returns `page("name.html", who=call.who, here="/path", ...)`, give it an
`Endpoint` with gives="html" in a file of this folder, list that file in routes/__init__.py, and enter the route in
permission.py. A link in the navigation is a line of navigation.py. A form holds `{{ parts.csrf(who) }}`, and its
endpoint is marked as a `form`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from discretion.ledger.chance import after
from discretion.noise import secret_bytes
from discretion.service.identity import NOBODY, Who
from discretion.service.pages import words
from discretion.service.pages.navigation import NAVIGATION, part_of

HERE = Path(__file__).parent
STATIC = HERE / "static"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "static": static,
        "once": once,
        "dots": dots,
        "allowance_bar": allowance_bar,
        "now": now,
    }
    made.filters |= words.FILTERS
    return made


@cache
def version(name: str) -> str:
    """Return a short digest of a static file: its address changes when the file does."""
    return sha256((STATIC / name).read_bytes()).hexdigest()[:12]


def static(name: str) -> str:
    """Return the address of a static file; browsers may keep what is there for good."""
    return f"/static/{name}?v={version(name)}"


def now() -> str:
    """Return the time, as the ledger writes it."""
    return datetime.now(UTC).isoformat()


def once() -> str:
    """Return a new key for a form: sent twice, the form acts once."""
    return secret_bytes(16).hex()


def page(
    template: str,
    *,
    who: Who = NOBODY,
    here: str = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **content: object,
) -> HTMLResponse:
    """Return a page made from a template; `here` is its path, which the navigation marks."""
    shown = {"who": who, "here": here, "part": part_of(who.role, here), "links": NAVIGATION[who.role], **content}
    return HTMLResponse(_templates().get_template(template).render(shown), status, dict(headers or {}))


def dots(before: float, epsilon: float) -> Markup:
    """Return a hundred dots as SVG, of which as many are filled as somebody can believe at most of a hundred."""
    filled = min(100, ceil(100 * after(before, epsilon) - 1e-7))
    places = [f"M{10 * (place % 10) + 5} {10 * (place // 10) + 5}h0" for place in range(100)]
    return Markup(
        '<svg class="dots" viewBox="0 0 100 100" width="120" height="120" role="img" aria-label="{} of 100 dots">'
        '<path class="empty" d="{}"/><path class="full" d="{}"/></svg>'
    ).format(filled, "".join(places[filled:]), "".join(places[:filled]))


def allowance_bar(spent: float, allowance: float, label: str) -> Markup:
    """Return an allowance as a wide bar: what is used, and what is left."""
    used = 600 * spent / max(allowance, spent, 1e-12)
    part = Markup('<rect class="part" width="{:.1f}" height="28"/>').format(max(used, 3)) if used > 0 else ""
    return Markup(
        '<svg class="allowance" viewBox="0 0 600 28" preserveAspectRatio="none" width="600" height="28" role="img" '
        'aria-label="{}"><rect class="all" width="600" height="28"/>{}</svg>'
    ).format(label, part)

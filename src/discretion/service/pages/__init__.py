"""Pages: what browsers are shown. Templates escape everything that is filled in; there is no inline code."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

HERE = Path(__file__).parent
STATIC = HERE / "static"


@cache
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)


def page(template: str, *, status: int = 200, **content: Any) -> HTMLResponse:
    """Return a page made from a template."""
    return HTMLResponse(_templates().get_template(template).render(**content), status)

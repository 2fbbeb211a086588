"""Sheet: a table of text with a title and notes, which terminals, notebooks and web pages show each in their way."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One table of text, with a title above it and notes below."""

    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()  # columns aligned at the right


def to_html(sheets: Iterable[Sheet]) -> str:
    """Sheets one below the other, for notebooks."""
    return "".join(map(_html, sheets))


def _html(sheet: Sheet) -> str:
    right = [' style="text-align: right"' if name in sheet.numbers else "" for name in sheet.columns]

    def row(kind: str, cells: tuple[str, ...]) -> str:
        inside = (f"<{kind}{how}>{escape(cell)}</{kind}>" for cell, how in zip(cells, right, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    body = "".join(row("td", cells) for cells in sheet.rows)
    title = f"<div><b>{escape(sheet.title)}</b></div>" if sheet.title else ""
    table = f"<table><thead>{row('th', sheet.columns)}</thead><tbody>{body}</tbody></table>" if sheet.columns else ""
    notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in sheet.notes)
    return f"<div>{title}{table}{notes}</div>"


def amount(epsilon: float) -> str:
    """Every micro-ε of it: what is spent and what is left add up."""
    return f"{epsilon:,.10g}"


def when(time: str) -> str:
    """A time of the ledger, to the minute."""
    return time[:16].replace("T", " ")

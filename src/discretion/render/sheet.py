"""Sheet: a table of text with a title and notes. Terminals, notebooks and web pages each show it in their way."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from math import isfinite
from typing import Any
from unicodedata import east_asian_width

MOST_ROWS = 40  # of one sheet that are printed as text; notebooks and programs get all


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One table of text, with a title above it and notes below."""

    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()  # columns aligned at the right

    def plain(self) -> dict[str, Any]:
        """Return the sheet as plain values, which JSON can hold."""
        return {**vars(self), "numbers": sorted(self.numbers)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Sheet":
        """Restore what `plain` made plain."""
        return cls(
            title=plain["title"],
            columns=tuple(plain["columns"]),
            rows=tuple(map(tuple, plain["rows"])),
            notes=tuple(plain["notes"]),
            numbers=frozenset(plain["numbers"]),
        )


class Shown:
    """Something that is shown: as text and HTML from its sheets, as JSON from what `to_dict` returns."""

    def sheets(self) -> list[Sheet]:
        """Return what people see."""
        raise NotImplementedError

    def to_dict(self) -> Any:
        """Return what programs see: plain dictionaries, lists and numbers."""
        return asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        """Return what programs see, as text."""
        return to_json(self)

    def __str__(self) -> str:
        return to_text(self.sheets())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html(self.sheets())


# Text ---------------------------------------------------------------------------------------------------------------


def to_text(sheets: Iterable[Sheet]) -> str:
    """Return sheets one below the other, columns aligned."""
    return "\n\n".join("\n".join(_lines(sheet)) for sheet in sheets)


def _lines(sheet: Sheet) -> list[str]:
    rows = [sheet.columns, *sheet.rows[:MOST_ROWS]] if sheet.columns else []
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    numbers = [name in sheet.numbers for name in sheet.columns]
    table = [
        "  ".join(
            _padded(cell, width, number) for cell, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in rows
    ]
    more = [f"... {len(sheet.rows) - MOST_ROWS:,} more rows"] if len(sheet.rows) > MOST_ROWS else []
    return [*([sheet.title] if sheet.title else []), *table, *more, *sheet.notes]


def _width(text: str) -> int:
    """Return how many places a terminal gives a text: signs of East Asian scripts take two."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _padded(cell: str, width: int, number: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if number else cell + blanks


# HTML ---------------------------------------------------------------------------------------------------------------


def to_html(sheets: Iterable[Sheet]) -> str:
    """Return sheets one below the other, for notebooks."""
    return "".join(map(_html, sheets))


def _html(sheet: Sheet) -> str:
    right = [' style="text-align: right"' if name in sheet.numbers else "" for name in sheet.columns]

    def row(kind: str, cells: Sequence[str]) -> str:
        inside = (f"<{kind}{how}>{escape(cell)}</{kind}>" for cell, how in zip(cells, right, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    body = "".join(row("td", cells) for cells in sheet.rows)
    title = f"<div><b>{escape(sheet.title)}</b></div>" if sheet.title else ""
    table = f"<table><thead>{row('th', sheet.columns)}</thead><tbody>{body}</tbody></table>" if sheet.columns else ""
    notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in sheet.notes)
    return f"<div>{title}{table}{notes}</div>"


# JSON ---------------------------------------------------------------------------------------------------------------


def to_json(content: Any) -> str:
    """Return JSON without infinities of anything that is shown, or of plain values that hold such things."""
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, default=str)


def _plain(content: Any) -> Any:
    if isinstance(content, Shown):
        return _plain(content.to_dict())
    if isinstance(content, dict):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


# Words --------------------------------------------------------------------------------------------------------------


def amount(epsilon: float) -> str:
    """Return every micro-ε of an amount: what is spent and what is left add up."""
    return f"{epsilon:,.10g}"


def when(time: str) -> str:
    """Return a time of the ledger, to the minute."""
    return time[:16].replace("T", " ")

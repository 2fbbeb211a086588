"""Explanation: the text of why an answer came about, which notebooks show as tables."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from discretion.render.sheet import Sheet, to_html, to_text


class Explanation(str):
    """Text that is made of sheets: a terminal prints the text, and a notebook shows tables."""

    sheets: tuple[Sheet, ...]

    def __new__(cls, sheets: Iterable[Sheet]) -> Self:
        kept = tuple(sheets)
        made = super().__new__(cls, to_text(kept))
        made.sheets = kept
        return made

    def __getnewargs__(self) -> tuple[tuple[Sheet, ...]]:  # type: ignore[override]  # what `__new__` takes
        return (self.sheets,)

    @classmethod
    def of(cls, content: "str | Iterable[Mapping[str, Any]]") -> Self:
        """Return the explanation that `plain` made plain, or one of text without tables."""
        if isinstance(content, cls):
            return content
        if isinstance(content, str):
            return cls([Sheet(notes=tuple(content.split("\n")))] if content else [])
        return cls(map(Sheet.from_plain, content))

    def plain(self) -> list[dict[str, Any]]:
        """Return the sheets as plain values, which JSON can hold."""
        return [one.plain() for one in self.sheets]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return to_html(self.sheets)

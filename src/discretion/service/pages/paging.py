"""Paging: a long list is shown in parts, newest first; a part begins before an entry, so it never shifts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from discretion.service.endpoint import Call, Field

T = TypeVar("T")
PAGING = {"before": Field("string", "Show what is older than this entry.", most=18)}


def paged(call: Call) -> int | None:
    """Return the entry that a part begins before, None for the newest part; what is not a number is the newest."""
    text = call.said.get("before", "")
    return int(text) if text.isascii() and text.isdigit() else None


@dataclass(frozen=True, kw_only=True)
class Paging(Generic[T]):
    """One part of a list, and the queries that lead to the next ones."""

    MOST: ClassVar[int] = 25

    rows: tuple[T, ...]
    newer: str | None  # leads to the newest part, from any other
    older: str | None

    @classmethod
    def of(cls, found: Sequence[T], seqs: Sequence[int], call: Call, **kept: str) -> "Paging[T]":
        """Return a part of at most MOST rows; `found` has one more if there are older ones. `kept` stays in links."""
        query = "".join(f"&{name}={value}" for name, value in kept.items() if value)
        older = f"?before={seqs[cls.MOST - 1]}{query}" if len(found) > cls.MOST else None
        newer = f"?{query[1:]}" if paged(call) is not None else None
        return cls(rows=tuple(found[: cls.MOST]), newer=newer, older=older)

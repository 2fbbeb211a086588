"""Charges with the declaration of their table at the time: what a later fault is looked up in."""

from collections.abc import Iterable, Iterator
from typing import Any

from discretion.ledger.chain import Entry


class DeclaredCharges:
    """Finds charges among entries that come in order; what came before need not be read again."""

    def __init__(self) -> None:
        self._declared: dict[str, Any] = {}  # table -> the declaration in force

    def among(self, entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
        """Return every charge among the next entries, with the declaration that was in force."""
        for entry in entries:
            if entry.kind == "declare":
                self._declared[entry.facts["table"]] = entry.facts["declaration"]
            elif entry.kind == "charge":
                for table in entry.tables:
                    if table in self._declared:
                        question, declaration = entry.facts["memo"], self._declared[table]
                        yield {"entry": entry.id, "table": table, "question": question, "declaration": declaration}

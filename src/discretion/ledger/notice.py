"""Charges with the declaration of their table at the time: what a later fault is looked up in."""

from collections.abc import Iterable, Iterator
from typing import Any

from discretion.ledger.chain import Entry


def declared_charges(entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    """Return every charge with the declaration that was in force."""
    declared: dict[str, Any] = {}
    for entry in entries:
        if entry.kind == "declare":
            declared[entry.facts["table"]] = entry.facts["declaration"]
        elif entry.kind == "charge":
            for table in entry.tables:
                if table in declared:
                    question, declaration = entry.facts["memo"], declared[table]
                    yield {"entry": entry.id, "table": table, "question": question, "declaration": declaration}

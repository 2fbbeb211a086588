"""History: the entries become one table that everybody may read."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from discretion.ledger.chain import Entry
from discretion.ledger.restore import restored_text
from discretion.preference import MICRO

_SCHEMA = pa.schema(
    [
        ("entry", pa.string()),
        ("time", pa.string()),
        ("kind", pa.string()),
        ("register", pa.string()),
        ("table", pa.string()),
        ("analyst", pa.string()),
        ("text", pa.string()),
        ("share", pa.float64()),
        ("least_epsilon", pa.float64()),  # what those who paid least and most lost; null: no charge
        ("largest_epsilon", pa.float64()),
        ("answered", pa.bool_()),  # null: no charge
    ]
)


def history(entries: Iterable[Entry]) -> pa.Table:
    """One row an entry; no person is named."""
    found = list(entries)
    delivered = {entry.facts["charge"] for entry in found if entry.kind == "deliver"}
    return pa.Table.from_pylist([_row(entry, delivered) for entry in found], schema=_SCHEMA)


def _row(entry: Entry, delivered: set[int]) -> dict[str, Any]:
    facts = entry.facts
    row = {"entry": entry.id, "time": facts["time"], "kind": entry.kind, "text": _text(entry)}
    row |= {name: facts.get(name) for name in ("register", "table", "analyst")}
    if entry.kind != "charge":
        return row
    spent = [line[0] / MICRO for line in facts["losses"]]
    numerator, _, denominator = facts["share"].partition("/")
    return row | {
        "share": int(numerator) / int(denominator or 1),
        "least_epsilon": min(spent, default=0.0),
        "largest_epsilon": max(spent, default=0.0),
        "answered": entry.seq in delivered,
    }


def _text(entry: Entry) -> str:
    facts = entry.facts
    match entry.kind:
        case "charge":
            return str(facts["memo"])
        case "deliver":
            return f"answer to entry {facts['charge']}"
        case "enroll":
            return f"{sum(line[2] for line in facts['cohorts']):,} people enrolled"
        case "change" | "refresh":
            return f"{sum(line[2] for line in facts['flows']):,} people changed"
        case "abandon":
            return f"no answer to entry {facts['settles']}"
        case "restore":
            return restored_text(facts)
        case "stop":
            return f"questions stopped: the one of entry {facts['charge']} failed" if facts["charge"] else "stopped"
        case "resume":
            return "questions allowed again"
        case "grant" | "revoke":
            return (
                f"{facts['member']}: {facts.get('role', 'role')} {entry.kind}{'ed' if entry.kind == 'grant' else 'd'}"
            )
        case "issue":
            return f"a new {facts['token']} for {facts['member']}"
        case "invite":
            return f"{facts['count']:,} people invited"
        case "end":
            return f"a token, link or invitation was {facts['how']}"
        case _:
            return ""

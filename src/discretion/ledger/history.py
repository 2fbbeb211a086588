"""History: the entries become one table that everybody may read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from discretion.ledger import schema
from discretion.ledger.chain import Entry, read
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


BLOCK = 200  # charges that are read at once in search of those of one analyst


@dataclass(frozen=True, kw_only=True)
class Asking:
    """One question that was charged."""

    entry: str
    time: str
    table: str
    analyst: str
    sql: str
    share: float
    least_epsilon: float  # what those who paid least and most lost
    largest_epsilon: float
    answered: bool
    manner: Mapping[str, Any]  # how it was asked, where that is known: share, assumption, mechanism, ...

    @property
    def seq(self) -> int:
        """Return the number of the entry: entries are in order."""
        return int(self.entry.partition("-")[0])


def askings(
    db: sa.Connection, *, analyst: str | None = None, before: int | None = None, most: int = 25
) -> tuple[Asking, ...]:
    """Return questions, newest first: so many of those before an entry, of one analyst or of all."""
    found: list[Asking] = []
    last = before
    while len(found) < most:
        rows = _charges_before(db, last)
        paid = [read(row) for row in rows]
        wanted = [entry for entry in paid if analyst is None or entry.facts["analyst"] == analyst]
        delivered = _delivered(db, [entry.seq for entry in wanted])
        found += [_asking(entry, delivered) for entry in wanted]
        if len(rows) < BLOCK:
            break
        last = rows[-1].seq
    return tuple(found[:most])


def asking(db: sa.Connection, entry: Entry) -> Asking:
    """Return the question that an entry charged."""
    return _asking(entry, _delivered(db, [entry.seq]))


def _charges_before(db: sa.Connection, before: int | None) -> list[sa.Row[Any]]:
    entry = schema.entry.c
    query = sa.select(schema.entry).where(entry.kind == "charge").order_by(entry.seq.desc()).limit(BLOCK)
    return list(db.execute(query if before is None else query.where(entry.seq < before)))


def _delivered(db: sa.Connection, seqs: list[int]) -> set[int]:
    entry = schema.entry.c
    query = sa.select(entry.settles).where(entry.settles.in_(seqs), entry.kind == "deliver")
    return {int(seq) for (seq,) in db.execute(query) if seq is not None}


def _asking(entry: Entry, delivered: set[int]) -> Asking:
    row = _row(entry, delivered)
    told = {name: row[name] for name in ("entry", "time", "table", "share", "answered")}
    spent = {name: row[name] for name in ("least_epsilon", "largest_epsilon")}
    manner = entry.facts.get("manner", {"share": row["share"]})
    return Asking(**told, **spent, analyst=row["analyst"] or "", sql=row["text"], manner=manner)


def history(entries: Iterable[Entry]) -> pa.Table:
    """One row an entry; no person is named."""
    found = list(entries)
    delivered = {entry.facts["charge"] for entry in found if entry.kind == "deliver"}
    return pa.Table.from_pylist([_row(entry, delivered) for entry in found], schema=_SCHEMA)


def _row(entry: Entry, delivered: set[int]) -> dict[str, Any]:
    facts = entry.facts
    row = {"entry": entry.id, "time": facts["time"], "kind": entry.kind, "text": _text(entry)}
    row |= {
        "register": facts.get("register"),
        "table": ", ".join(entry.tables) or None,
        "analyst": facts.get("analyst"),
    }
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
            return f"{_people(sum(line[2] for line in facts['cohorts']))} enrolled"
        case "change" | "refresh":
            return f"{_people(sum(line[2] for line in facts['flows']))} changed"
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
            return f"{_people(facts['count'])} invited"
        case "end":
            return f"a token, link or invitation was {facts['how']}"
        case _:
            return ""


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


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

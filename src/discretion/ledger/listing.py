"""Listings of the ledger: what each level has spent and has left, and everything that ever happened."""

from typing import Any

from discretion.render.listing import Listing
from discretion.render.sheet import Sheet, amount, when


class Balance(Listing):
    """Says what each level has spent and has left."""

    def sheets(self) -> list[Sheet]:
        """Return one row a level; columns that say nothing are left out."""
        rows = list(self)
        if not rows:
            return [Sheet(title="Balance", notes=("Nobody is enrolled yet: see `register` and `protect`.",))]
        columns = ["register", "people", "epsilon", "spent", "remaining"]
        columns += [extra for extra in ("delta", "individual_spent") if any(row.get(extra) for row in rows)]
        columns += ["in_source"] if not all(row.get("in_source", True) for row in rows) else []
        places = [self.columns.index(column) for column in columns]
        texts = tuple(tuple(row[place] for place in places) for row in self.rows())
        numbers = frozenset(columns) - {"register", "in_source"}
        return [Sheet(title="Balance", columns=tuple(columns), rows=texts, numbers=numbers)]


class History(Listing):
    """Every entry, in order."""

    def sheets(self) -> list[Sheet]:
        """Return one row an entry; a delivery is shown beside its charge."""
        rows = [row for row in self if row["kind"] != "deliver"]
        analysts = any(row["analyst"] for row in rows)
        return [
            Sheet(
                title="History",
                columns=("entry", "time", "most ε", *(["analyst"] if analysts else []), "what"),
                rows=tuple(
                    (
                        row["entry"].partition("-")[0],
                        when(row["time"]),
                        "" if row["largest_epsilon"] is None else amount(row["largest_epsilon"]),
                        *([row["analyst"] or ""] if analysts else []),
                        _what(row),
                    )
                    for row in rows
                ),
                numbers=frozenset({"entry", "most ε"}),
            )
        ]


def _what(entry: dict[str, Any]) -> str:
    text = entry["text"] or entry["table"] or ""
    if entry["kind"] != "charge":
        return f"{entry['kind']}: {text}" if text else entry["kind"]
    return f"{text} (no answer was delivered)" if entry["answered"] is False else text

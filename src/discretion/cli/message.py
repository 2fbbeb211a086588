"""Message: what a command says when it has changed something, or has nothing to show."""

from collections.abc import Sequence

from discretion.declaration.table import Table
from discretion.ledger import Receipt
from discretion.render.listing import Listing
from discretion.render.sheet import Sheet, amount, when


def refreshed(entry: str, history: Listing) -> list[Sheet]:
    """Say what accepting a changed source changed."""
    texts = [row["text"] for row in history if row["entry"] == entry]
    same = "The state that the source is in now is admitted. Nobody's preference changed."
    return [Sheet(title=f"Entry {entry}: {', '.join(texts)}." if entry else same)]


def chosen(entry: str, receipt: Receipt) -> list[Sheet]:
    """Say what is left to somebody who chose anew."""
    allowed, spent, left = map(amount, (receipt.allowance, receipt.spent, receipt.remaining))
    title = f"Entry {entry}: from now on ε = {allowed} at most; {spent} is spent, {left} is left."
    stated = receipt.statements[-1].epsilon
    rounded = stated is not None and stated > receipt.allowance
    note = f"The choice of {amount(stated or 0)} was rounded down to {allowed}, the next level on offer."
    return [Sheet(title=title, notes=(note,) if rounded else ())]


def resumed(entry: str, stops: Listing) -> list[Sheet]:
    """Return what the steward is told who resumed a register: which questions had failed."""
    ended = tuple((when(one["time"]), one["charge"], one["shape"]) for one in stops if one["resumed"] == entry)
    title = f"Entry {entry}: questions are allowed again. These failed; their form stays refused."
    return [Sheet(title=title, columns=("time", "charge", "form of the question"), rows=ended)]


def tables(tables: Sequence[Table]) -> list[Sheet]:
    """Show everything that can be asked about."""
    found = [sheet for table in tables for sheet in table.sheets()]
    return found or [Sheet(title="No table is protected yet.")]

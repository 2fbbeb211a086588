"""Text: what others may read of receipts and answers."""

from dataclasses import replace

from discretion.ledger import Receipt
from discretion.query.quotation import known_names, without_literals
from discretion.release import Release

__all__ = ["known_names", "shown_receipt", "shown_release", "without_literals"]


def shown_receipt(receipt: Receipt, known: frozenset[str]) -> Receipt:
    """Return a receipt whose questions have no literals."""
    return receipt.quoting(lambda question: without_literals(question, known))


def shown_release(release: Release, known: frozenset[str]) -> Release:
    """Return an answer that another analyst asked for: column names without literals, and no plan."""
    names = {name: _column(name, place, known) for place, name in enumerate(release.columns)}
    return replace(
        release,
        columns={names[name]: values for name, values in release.columns.items()},
        errors={names[name]: errors for name, errors in release.errors.items()},
        explanation="",
        comparison=(),
    )


def _column(name: str, place: int, known: frozenset[str]) -> str:
    return name if name.lower() in known else f"column {place + 1}"

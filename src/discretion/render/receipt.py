"""What one person gets to see: a receipt, and what a change of mind did."""

from discretion.ledger import Receipt
from discretion.sheet import Sheet, amount


def receipt_sheets(receipt: Receipt) -> list[Sheet]:
    """What one person was promised, and what was spent on which answers."""
    return receipt.sheets()


def change_sheets(entry: str, receipt: Receipt) -> list[Sheet]:
    """What somebody who chose anew is told."""
    allowed, spent, left = map(amount, (receipt.allowance, receipt.spent, receipt.remaining))
    return [Sheet(title=f"Entry {entry}: from now on ε = {allowed} at most; {spent} is spent, {left} is left.")]

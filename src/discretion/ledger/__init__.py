"""The ledger: who has spent what. Durable, shared by processes and machines, tamper-evident.

`Ledger` (book.py) is the only door. Behind it: store.py opens the database (sqlite.py, postgresql.py), chain.py seals
entries, head.py remembers the last seal, snapshot.py reads what a plan depends on, register.py and moving.py know the
people, offer.py and spend.py the money, stop.py stops questions, access.py lets members and people in (member.py,
invitation.py), receipt.py and history.py tell what was done, and restore.py puts a copy back.
"""

from discretion.ledger.access import Access
from discretion.ledger.book import Ledger
from discretion.ledger.offer import Cohort, Offer, available
from discretion.ledger.people import person_text
from discretion.ledger.receipt import Receipt, StatedPreference, Use
from discretion.ledger.register import Register
from discretion.ledger.snapshot import Snapshot
from discretion.ledger.stop import Stop

__all__ = [
    "Access",
    "Cohort",
    "Ledger",
    "Offer",
    "Receipt",
    "Register",
    "Snapshot",
    "StatedPreference",
    "Stop",
    "Use",
    "available",
    "person_text",
]

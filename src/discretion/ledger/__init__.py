"""The ledger: who has spent what. Durable, shared by processes and machines, tamper-evident."""

from discretion.ledger.book import Ledger
from discretion.ledger.offer import Cohort, Offer, available

__all__ = ["Cohort", "Ledger", "Offer", "available"]

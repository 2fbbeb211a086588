"""Rescue: what becomes of a charge whose worker process died."""

from discretion.answer import Paid
from discretion.answer.compound import restored
from discretion.errors import TableStopped
from discretion.ledger import Ledger
from discretion.ledger.answers import lost_charge
from discretion.ledger.clock import Clock


class Rescue:
    """Ends charges that no worker will end any more."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock

    def give_up(self, identity: str, analyst: str) -> None:
        """Abandon a charge that a worker made and did not report: it had not read any row."""
        if entry := lost_charge(self._ledger, identity, analyst):
            self._ledger.abandon(entry)

    def fail(self, paid: Paid) -> str:
        """Return the answer if it was delivered after all; else stop the register and refuse, on a tick."""
        if (stored := self._ledger.answered(paid.look.identity)) is not None:
            return restored(paid.look.asked, stored).stored()
        self._clock.wait()
        self._ledger.stop(paid.offer.register, charge=paid.entry, shape=paid.shape)
        raise TableStopped(TableStopped.sentence)

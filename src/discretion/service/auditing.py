"""Auditing: one check of the ledger at a time, in a worker; it goes on while the steward looks elsewhere."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from discretion.errors import DiscretionError
from discretion.ledger.audit import LedgerAudit
from discretion.service.pool import Job, WorkerPool


@dataclass(frozen=True, kw_only=True)
class Audit:
    """An audit that runs or ran since the service started."""

    job: Job
    begun: str
    total: int  # entries when it began
    head: str  # that was given to compare with; "": none

    @property
    def is_running(self) -> bool:
        """Tell whether it goes on."""
        return not self.job.result.done()

    @property
    def part(self) -> float:
        """Return how much is done: 0 to 1."""
        return min(1.0, self.job.progress / max(1, self.total))

    @property
    def found(self) -> LedgerAudit | None:
        """Return what it found, None if it goes on or failed."""
        future = self.job.result
        done: LedgerAudit | None = (
            None if self.is_running or future.cancelled() or future.exception() else future.result()
        )
        return done

    @property
    def failure(self) -> str:
        """Return why it could not be finished, "" if it was or goes on."""
        if self.is_running or self.job.result.cancelled() or self.found:
            return ""
        failed = self.job.result.exception()
        return str(failed) if isinstance(failed, DiscretionError) else "The audit failed. The operator's log says how."


class Auditor:
    """Begins audits, and remembers the last one."""

    def __init__(self, pool: WorkerPool, place: str) -> None:
        self._pool, self._place = pool, place
        self.last: Audit | None = None

    def begin(self, *, head: str, total: int, member: str) -> None:
        """Begin an audit, unless one is running."""
        if self.last is not None and self.last.is_running:
            return
        job = self._pool.submit("audit", (self._place, head), member=member)
        job.result.add_done_callback(_heard)
        self.last = Audit(job=job, begun=datetime.now(UTC).isoformat(), total=total, head=head)


def _heard(result: "asyncio.Future[object]") -> None:
    """Look at a failure, so that it is not told as forgotten: the page shows it."""
    if not result.cancelled():
        result.exception()

"""House: all that a running service holds, in one place."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from starlette.requests import Request

from discretion.connection import Connection, connect
from discretion.errors import ServiceFailed
from discretion.ledger import Access, Ledger
from discretion.ledger.clock import Clock
from discretion.service.auditing import Auditor
from discretion.service.chronicle import Chronicle
from discretion.service.identity import Sessions, signing_key
from discretion.service.limit import Buckets, Rates
from discretion.service.pool import Limits, WorkerPool
from discretion.service.problem import Refused
from discretion.service.rescue import Rescue
from discretion.service.text import known_names
from discretion.service.worker import Kind, WorkerTerms

if TYPE_CHECKING:
    from discretion.service.oidc import Provider  # an extra
from collections import Counter
from collections.abc import Iterator, Mapping


class Metrics:
    """Counts requests by route and status, and shows public numbers as Prometheus reads them; none depends on a row."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()

    def text(self, gauges: Mapping[str, int], counts: Mapping[str, int]) -> str:
        """Return everything counted; `counts` are tasks of workers by kind and outcome."""
        return "\n".join([*self._lines(gauges, counts), ""])

    def _lines(self, gauges: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[str]:
        yield "# TYPE discretion_requests_total counter"
        for (route, status), number in sorted(self.requests.items()):
            method, _, path = route.partition(" ")
            yield f'discretion_requests_total{{method="{method}",path="{path}",status="{status}"}} {number}'
        yield "# TYPE discretion_tasks_total counter"
        for name, number in sorted(counts.items()):
            yield f'discretion_tasks_total{{outcome="{name}"}} {number}'
        for name, number in gauges.items():
            yield f"# TYPE discretion_{name} gauge"
            yield f"discretion_{name} {number}"


P = ParamSpec("P")
T = TypeVar("T")
MOST_KEYS = 10_000  # idempotency keys that are remembered


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Says what the operator decides."""

    ledger: str
    url: str = ""  # under which people reach the service
    secure: bool = False  # the service is reached by HTTPS
    data: Path | None = None  # the folder whose files may be protected by HTTP; None: none may
    copies: str | None = None
    key: Path | None = None  # the file with the key that signs sessions
    provider: "Provider | None" = None  # of identities, for people
    answer_every: float = 1.0
    memory: int = 2 << 30
    temp: int = 16 << 30
    threads: int = 4
    limits: Limits = field(default_factory=Limits)
    rates: Rates = field(default_factory=Rates)


class House:
    """The ledger, the workers, the sessions and the limits of one service."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        clock = Clock(settings.answer_every)
        self.ledger = Ledger(settings.ledger, create=False, clock=clock)
        self.db: Connection = connect(
            settings.ledger, create=False, answer_every=settings.answer_every, copies=settings.copies
        )
        self.access = Access(self.ledger)
        self.sessions = Sessions(self.access, signing_key(settings.key), secure=settings.secure)
        terms = WorkerTerms(
            ledger=self.ledger.place,
            answer_every=settings.answer_every,
            copies=settings.copies,
            memory=settings.memory,
            temp=settings.temp,
            threads=settings.threads,
        )
        self.pool = WorkerPool(terms, settings.limits, Rescue(self.ledger, clock))
        self.chronicle = Chronicle(self.ledger)
        self.auditor = Auditor(self.pool, self.ledger.place)
        self.metrics = Metrics()
        self.requests = Buckets(settings.rates.requests)
        self.changes = Buckets(settings.rates.changes)
        self.failures = Buckets(settings.rates.sign_in)
        self.guesses = Buckets(settings.rates.guesses)
        self.keys: OrderedDict[tuple[str, str], tuple[str, asyncio.Future[Any]]] = OrderedDict()

    async def open(self) -> None:
        """Start the workers, and read the ledger for its steward's pages."""
        await self.pool.open()
        self._reading = asyncio.create_task(self.read(self.chronicle.days))
        self._reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # a page tells what is wrong

    async def close(self) -> None:
        """Let questions in hand finish, then close everything."""
        await self.pool.close()
        self.db.close()
        self.ledger.close()

    async def read(self, act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Do something with the ledger, in a thread: other requests go on."""
        return await asyncio.to_thread(act, *arguments, **named)

    def known(self) -> frozenset[str]:
        """Return every name that stewards declared."""
        return known_names(self.db.tables())

    async def work(self, kind: Kind, payload: Any, *, member: str, request: Request) -> Any:
        """Let a worker do a task; if the caller leaves before it is begun, it is given up."""
        job = self.pool.submit(kind, payload, member=member)
        while True:
            done, _ = await asyncio.wait([job.result], timeout=1.0)
            if done:
                return job.result.result()
            if await request.is_disconnected() and self.pool.cancel(job):
                job.result.cancel()
                raise ServiceFailed("The caller left before the question was begun. Nothing was charged.")

    async def changed(self, member: str, patience: float = 2.0) -> tuple[str, ...] | None:
        """Return what was edited since it was admitted, None if that takes longer than somebody should wait."""
        job = self.pool.submit("call", ("changed", (), {}), member=member)
        job.result.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([job.result], timeout=patience)
        if not job.result.done():
            self.pool.cancel(job)
            return None
        names: tuple[str, ...] = () if job.result.exception() else job.result.result()[0]
        return names

    async def once(self, member: str, key: str, body: bytes, act: Callable[[], Any]) -> Any:
        """Do something once for an idempotency key of a member; the same key with another body is refused."""
        if not key:
            return await act()
        if len(key) > 200 or not key.isascii() or not key.isprintable():
            raise Refused(400, "An Idempotency-Key must be at most 200 printable ASCII characters.")
        digest = sha256(body).hexdigest()
        kept = self.keys.get((member, key))
        if kept is not None:
            if kept[0] != digest:
                raise Refused(400, "This Idempotency-Key was used with another body. Use a new one.")
            return await asyncio.shield(kept[1])
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.keys[member, key] = (digest, outcome)
        if len(self.keys) > MOST_KEYS:
            self.keys.popitem(last=False)
        try:
            outcome.set_result(await act())
        except BaseException as failure:
            self.keys.pop((member, key), None)  # nothing was answered: trying again is right
            if not isinstance(failure, Exception):
                outcome.cancel()
                raise
            outcome.set_exception(failure)
        return outcome.result()

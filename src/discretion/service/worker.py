"""Worker: a process that computes questions for the service, within limits; if it dies, the service goes on."""

import logging
import os
import resource
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pickle import dumps, loads
from threading import Lock
from typing import Any, Literal

from discretion.answer import Paid, Question
from discretion.answer.outlook import Outlook
from discretion.connection import Connection, connect
from discretion.errors import DiscretionError
from discretion.ledger.audit import LedgerAudit, audit_ledger
from discretion.noise import repeatable_coins
from discretion.service.log import configure
from discretion.service.shown import place_facts, plan_facts

logger = logging.getLogger(__name__)

Kind = Literal["ask", "finish", "explain", "outlook", "call", "audit"]
HEADROOM = 2 << 30  # bytes that Python and its libraries may use besides what a question may


@dataclass(frozen=True, kw_only=True)
class WorkerTerms:
    """Says how workers open the ledger, and what they may use."""

    ledger: str
    answer_every: float = 1.0
    copies: str | None = None
    memory: int = 2 << 30  # bytes for the questions of one worker
    temp: int = 16 << 30  # bytes that its temporary files may have together
    threads: int = 4  # questions that one worker has in hand: most of them wait for the tick


@dataclass(frozen=True, kw_only=True)
class Task:
    """One thing to do; `secret` gives its coins, so that it can be done again with the same ones."""

    number: int
    kind: Kind
    payload: Any
    secret: bytes


def run(pipe: Pipe, terms: WorkerTerms, folder: str) -> None:
    """Do tasks until the service ends; then finish what is in hand and leave. Temporary files are kept in `folder`."""
    configure()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the service says when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(folder)
    tempfile.tempdir = folder
    _limit(terms)
    desk = Desk(pipe, connect(terms.ledger, **_opening(terms)))
    with ThreadPoolExecutor(terms.threads) as pool, suppress(EOFError, OSError):
        pipe.send((0, "ready", None))
        while (task := pipe.recv()) is not None:
            pool.submit(desk.do, task)


def _opening(terms: WorkerTerms) -> dict[str, Any]:
    megabytes = max(64, terms.memory >> 20)
    return {
        "create": False,
        "answer_every": terms.answer_every,
        "copies": terms.copies,
        "memory": f"{megabytes}MiB",
    }


def _limit(terms: WorkerTerms) -> None:
    """Let the system refuse what goes beyond the limits, whatever the database believes about itself."""
    for kind, most in ((resource.RLIMIT_DATA, terms.memory + HEADROOM), (resource.RLIMIT_FSIZE, terms.temp)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold rows


class Desk:
    """Does tasks, several at once, and sends back what becomes of them."""

    def __init__(self, pipe: Pipe, db: Connection) -> None:
        self._pipe, self._db = pipe, db
        self._sending, self._admitting = Lock(), Lock()

    def do(self, task: Task) -> None:
        """Do one task and send the result or the refusal."""
        work: dict[Kind, Callable[[Task], Any]] = {
            "ask": self._ask,
            "finish": self._finish,
            "explain": self._explain,
            "outlook": self._outlook,
            "call": self._call,
            "audit": self._audit,
        }
        try:
            with repeatable_coins(task.secret):
                self._send(task, "done", work[task.kind](task))
        except DiscretionError as refusal:
            self._send(task, "refused", (type(refusal).__name__, str(refusal), place_facts(refusal)))
        except Exception as failure:  # its text may hold a row: only its kind is told
            logger.error("A task of kind %s failed: %s", task.kind, type(failure).__name__)
            self._send(task, "refused", ("ServiceFailed", "The service could not do this. Its operator can look.", {}))

    def _ask(self, task: Task) -> str:
        question: Question = task.payload

        def tell(what: str | Paid) -> None:
            self._send(task, *(("identified", what) if isinstance(what, str) else ("charged", dumps(what))))

        return self._db.ask(question, tell=tell).stored()

    def _finish(self, task: Task) -> str:
        return self._db.finish(loads(task.payload)).stored()

    def _explain(self, task: Task) -> dict[str, Any]:
        return plan_facts(self._db.plan(task.payload, own=True))

    def _outlook(self, task: Task) -> Outlook:
        question: Question = task.payload
        return self._db.outlook(question, own=True)

    def _call(self, task: Task) -> tuple[Any, list[dict[str, Any]]]:
        """Call a method of the connection that admits sources; return its result and what the steward is warned of."""
        name, arguments, named = task.payload
        with self._admitting:
            return getattr(self._db, name)(*arguments, **named), list(self._db.warnings())

    def _audit(self, task: Task) -> LedgerAudit:
        """Check the ledger, and tell how many entries are done."""
        place, head = task.payload
        return audit_ledger(place, head=head or None, watch=lambda done: self._send(task, "progress", done))

    def _send(self, task: Task, what: str, content: Any) -> None:
        with self._sending, suppress(BrokenPipeError, ConnectionError):  # the service is gone; the ledger has it all
            self._pipe.send((task.number, what, content))

"""Connection: a ledger and an engine, for stewards who protect tables and analysts who ask about them."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, cast
from weakref import finalize

from discretion import answer as flow
from discretion.answer import Paid, Question, compound
from discretion.answer.outlook import Outlook, outlook
from discretion.connection.front import Said
from discretion.connection.stewardship import Stewardship
from discretion.engines import MEMORY, Engine, engine_of
from discretion.errors import InvalidDeclaration, require
from discretion.ledger.answers import stored_answer
from discretion.plan import Plan
from discretion.release import Release

SERVICE = ("http://", "https://")
FORGOTTEN = ":memory:"


def connect(
    ledger: str | Path,
    *,
    engine: str | Engine = "duckdb",
    analyst: str = "",
    create: bool = True,
    migrate: bool = False,
    answer_every: float = 0.0,
    copies: str | Path | None = None,
    memory: str = MEMORY,
    token: str = "",
) -> "Connection":
    """Open the ledger at a path or PostgreSQL URL; a path that does not exist becomes a new ledger.

    ":memory:" is a new ledger for trying things out: it is forgotten with the connection, and so is who has spent what.

    The URL of a service (https://...) works like a ledger: it answers, and says what the holder of `token` may see.

    engine        "duckdb", "spark" (docs/sources.md), or an engine such as discretion.engines.spark.Spark(session)
    migrate       bring a ledger of an older version up to date, which is refused otherwise; make a copy first
    answer_every  seconds between ticks: answers come, and entries are written, on a tick only; 0: at once
    copies        the folder for copies of sources that cannot be read in place; the ledger's own if it is not given
    memory        what the database may use for a question: a share of the machine's memory, or a size such as "4GB"
    """
    if str(ledger).startswith(SERVICE):
        require("serve", "A connection to a service", "httpx")
        remote = import_module("discretion.service.client")  # an extra: only services need it
        return cast(Connection, remote.RemoteConnection(str(ledger), token=token, analyst=analyst))
    if token:
        raise InvalidDeclaration(f"A token is for a service (https://...), got the ledger {str(ledger)!r}.")
    opened = engine_of(engine, memory)
    how: dict[str, Any] = {"create": create, "migrate": migrate, "answer_every": answer_every, "copies": copies}
    if str(ledger) != FORGOTTEN:
        return Connection(str(ledger), opened, analyst=analyst, **how)
    folder = mkdtemp(prefix="discretion-")  # only its owner can read it
    connection = Connection(str(Path(folder, "ledger")), opened, analyst=analyst, **how)
    finalize(connection, rmtree, folder, ignore_errors=True)
    return connection


class Connection(Stewardship):
    """Protected tables, questions about them, and the ledger that pays for every answer."""

    def _sql(self, said: Said) -> Release:
        return self.ask(Question(**said, analyst=self._analyst))

    def _explain(self, said: Said) -> Plan:
        return self.plan(Question(**said))

    def ask(self, question: Question, *, tell: Callable[[str | Paid], None] = lambda _: None) -> Release:
        """Answer a question in the name of its own analyst; `tell` hears of the charge before a row is read."""
        return flow.answer(question, engine=self._engine, ledger=self._ledger, clock=self._clock, tell=tell)

    def finish(self, paid: Paid) -> Release:
        """Answer a question that another process charged before it died; nothing is charged again for it."""
        if (stored := self._ledger.answered(paid.look.identity)) is not None:
            return compound.restored(paid.look.asked, stored)  # it died after the answer was delivered
        return flow.finish(paid, engine=self._engine, ledger=self._ledger, clock=self._clock)

    def plan(self, question: Question, *, own: bool = False) -> Plan:
        """Return the plan of a question. Free; it sees no data. With `own`, answers to others are not told of."""
        return flow.explain(question, ledger=self._ledger, own=own)

    def answer(self, entry: str) -> Release:
        """Return an answer that was delivered, by the entry that paid for it. Free."""
        _, stored = stored_answer(self._ledger, entry)
        if not stored:
            raise InvalidDeclaration(f"Entry {entry!r} has no answer; `history` shows which entries have one.")
        return Release.from_stored(stored)

    def outlook(self, question: Question, *, own: bool = False) -> Outlook:
        """Return what a question would cost each level, how many such are left, and what would help. Free.

        With `own`, answers to other analysts are not told of.
        """
        return outlook(question, ledger=self._ledger, own=own)

"""Audit: re-add a ledger from its entries alone and compare; name the first entry that is wrong.

Four independent things are checked: that the chain of hashes holds, that every entry followed the rules (nobody paid
more than they had, nobody got anything back), that every column of every table is what the entries say, and that the
database holds nothing else.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from discretion.errors import LedgerCorrupt, LedgerFailed
from discretion.ledger import schema
from discretion.ledger.head import Head
from discretion.ledger.replay import Finding, Replay
from discretion.ledger.restore import entry_number
from discretion.ledger.store import Store
from discretion.ledger.stored import compare
from discretion.ledger.structure import differences
from discretion.render.sheet import Sheet, Shown


@dataclass(frozen=True, kw_only=True, repr=False)
class LedgerAudit(Shown):
    """Says what the audit found; without findings every promise on record was kept."""

    place: str
    entries: int
    head: str  # the end of the chain: keep it, and give it to the next audit
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()  # what the steward should know though no entry is wrong

    @property
    def passed(self) -> bool:
        return not self.findings

    def sheets(self) -> list[Sheet]:
        """Return what was found."""
        count = len(self.findings)
        verdict = "every promise on record was kept" if self.passed else f"{count} finding{'s'[: count > 1]}"
        return [
            Sheet(
                title=f"Audit of {self.place}: {verdict}",
                columns=("entry", "finding") if self.findings else (),
                rows=tuple(("" if one.entry is None else str(one.entry), one.text) for one in self.findings),
                notes=(
                    f"{self.entries} {'entry' if self.entries == 1 else 'entries'}; head {self.head}",
                    "Keep the head elsewhere: given to the next audit, it shows an older copy put back.",
                    *self.notes,
                ),
            )
        ]


def audit_ledger(
    place: str,
    *,
    head: str | None = None,
    witnesses: Sequence[str] = (),
    migrate: bool = False,
    watch: Callable[[int], None] = lambda _: None,
) -> LedgerAudit:
    """Check the ledger at `place`.

    head       one printed earlier, so that a ledger put back to an old copy shows
    witnesses  entry ids of released answers: the ledger must have charged for each of them
    migrate    bring a ledger of an older version up to date first
    watch      hears now and then how many entries are done
    """
    known = None if head is None else Head.parse(head)
    given = {id.strip(): entry_number(id) for id in witnesses}
    replay = Replay()
    cautions: tuple[str, ...] = ()
    store = Store(place, create=False, migrate=migrate, read_only=not migrate, remembers=False)
    try:
        _refuse_older(place, replay)
        cautions = store.cautions()
        with store.snapshot() as db:
            examine(db, replay, watch)
    except LedgerFailed as failure:  # damage that the database itself notices
        replay.found(None, str(failure))
    finally:
        store.close()
    replay.findings += [*_known_head(replay, known), *_missing(replay, given)]
    return LedgerAudit(
        place=store.name,
        entries=len(replay.hashes) - 1,
        head=str(Head(len(replay.hashes) - 1, replay.hashes[-1])),
        findings=tuple(replay.findings),
        notes=(*cautions, *replay.notes),
    )


def examine(db: sa.Connection, replay: Replay, watch: Callable[[int], None] = lambda _: None) -> None:
    """Check everything that the database holds."""
    if db.dialect.name == "sqlite":
        sound = db.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
        replay.expect(sound, None, "The file is damaged: SQLite's own integrity check fails.")
    for text in differences(db):
        replay.found(None, text)
    if set(schema.metadata.tables) <= set(sa.inspect(db).get_table_names()):
        compare(db, replay, watch)


def _refuse_older(place: str, replay: Replay) -> None:
    """Note if this process has seen a later end of the ledger than it has now."""
    try:
        Store(place, create=False, migrate=False, read_only=True).close()
    except LedgerCorrupt as failure:
        replay.found(None, str(failure))


def _known_head(replay: Replay, known: Head | None) -> Iterator[Finding]:
    if known is None:
        return
    if known.seq >= len(replay.hashes):
        text = f"The ledger ends before entry {known.seq}, which it once had: an old copy was put back, or entries were"
        yield Finding(entry=None, text=f"{text} removed.")
    elif replay.hashes[known.seq] != known.hash:
        yield Finding(entry=known.seq, text="The entry is not the one this ledger once ended with: history differs.")


def _missing(replay: Replay, witnesses: dict[str, int]) -> Iterator[Finding]:
    for id, seq in witnesses.items():
        if seq >= len(replay.hashes) or not replay.hashes[seq].startswith(id.partition("-")[2]):
            text = f"An answer was released with entry {id}, which the ledger does not have: an old copy was put back."
            yield Finding(entry=None, text=text)
        elif seq not in replay.charges:
            yield Finding(entry=seq, text=f"An answer was released with entry {id}, which is not a charge.")

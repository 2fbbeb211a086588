"""Stored: every row and every column of the database is compared with what the entries say.

Which columns there are is taken from the schema, so that none can be forgotten. Values are compared as the database
holds them: SQLite would keep a 2 in a column of truth values, and read it as true in one place and not in another.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from discretion.errors import DiscretionError
from discretion.ledger import schema
from discretion.ledger.chain import Entry, canonical, digest
from discretion.ledger.invitation import digest_invitations
from discretion.ledger.moving import digest_changes
from discretion.ledger.people import digest_people
from discretion.ledger.replay import Replay, settles
from discretion.ledger.spend import declaration_text

BY_ENTRY = (
    schema.person,
    schema.change,
    schema.charge,
    schema.invitation,
)  # rows that came with an entry, which seals them
WATCHED = 500  # entries between two tellings of how many are done
_NONSENSE = (DiscretionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_Row = tuple[Any, ...]


def compare(db: sa.Connection, replay: Replay, watch: Callable[[int], None] = lambda _: None) -> None:
    """Live all entries through, and compare every table with them; `watch` hears how many are done."""
    groups = [_Groups(db, table) for table in BY_ENTRY]
    for row in _raw(db, schema.entry):
        entry = _linked(replay, row)
        if entry is None:
            return  # nothing after a broken link can be believed
        try:
            replay.live(entry)
            _match(replay, entry, *(rows.take(entry.seq) for rows in groups))
        except _NONSENSE:
            replay.found(entry.seq, "The entry or its rows make no sense: they were not written by discretion.")
            return
        if entry.seq % WATCHED == 0:
            watch(entry.seq)
    for rows in groups:
        for seq in rows.rest():
            replay.found(seq, f"{rows.name} has rows that no entry tells of.")
    for table in schema.metadata.sorted_tables:
        if table not in (schema.entry, *BY_ENTRY):
            _compare_table(db, replay, table)


def _raw(db: sa.Connection, table: sa.Table) -> Iterator[_Row]:
    """Read all columns of a table as the database holds them, in the order of the entries."""
    columns = [sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in table.columns]
    query = sa.select(*columns)
    return map(tuple, db.execute(query.order_by(table.c.seq) if "seq" in table.c else query))


class _Groups:
    """The rows of a table by the entry they came with, read as a stream."""

    def __init__(self, db: sa.Connection, table: sa.Table) -> None:
        self.name = table.name
        self._groups = groupby(_raw(db, table), key=itemgetter(table.c.keys().index("seq")))
        self._next = next(self._groups, None)
        self._foreign: list[Any] = []

    def take(self, seq: int) -> list[_Row]:
        """Return the rows of this entry, and set those of numbers that no entry has aside."""
        while self._next is not None and isinstance(self._next[0], int) and self._next[0] <= seq:
            number, rows = self._next[0], list(self._next[1])
            self._next = next(self._groups, None)
            if number == seq:
                return rows
            self._foreign.append(number)
        return []

    def rest(self) -> Iterator[int | None]:
        """Return the numbers of rows that no entry tells of."""
        left = [] if self._next is None else [self._next[0], *(number for number, _ in self._groups)]
        yield from (number if isinstance(number, int) else None for number in [*self._foreign, *left])


def _linked(replay: Replay, row: _Row) -> Entry | None:
    """Read an entry whose seal holds and whose columns repeat its text; None if the chain breaks here."""
    stored, seq = dict(zip(schema.entry.c.keys(), row, strict=True)), len(replay.hashes)
    if stored["seq"] != seq:
        replay.found(seq, "The entry is missing.")
        return None
    if not isinstance(stored["body"], str) or digest(stored["body"]) != stored["hash"]:
        replay.found(seq, "The entry was changed: its text does not match its hash.")
        return None
    try:
        facts = json.loads(stored["body"])
        entry = Entry(seq=facts["seq"], kind=facts["kind"], facts=facts, hash=stored["hash"])
        told = {"question": facts.get("question") or None, "settles": settles(entry)}
        told |= {"seq": entry.seq, "kind": entry.kind, "hash": entry.hash, "body": stored["body"]}
        follows = facts["previous"] == replay.hashes[-1]
    except _NONSENSE:
        replay.found(seq, "The entry makes no sense: it was not written by discretion.")
        return None
    if not follows:
        replay.found(seq, "The entry does not follow the one before it: the chain is broken here.")
        return None
    replay.expect(_typed(told) == _typed(stored), seq, "The entry's columns are not what its text says.")
    replay.hashes.append(entry.hash)
    return entry


def _match(
    replay: Replay, entry: Entry, people: list[_Row], changes: list[_Row], charges: list[_Row], letters: list[_Row]
) -> None:
    """Compare the rows that came with an entry with its seals; their register follows from the entry."""
    account = replay.accounts.get(entry.facts.get("register", ""))
    register = account.id if account else None
    same = _is_sealed(entry, people, changes) and all(row[0] == register for row in people)
    replay.expect(same, entry.seq, "The people of this entry are not the ones it was sealed with.")
    told = entry.facts.get("changes", digest_changes([]))
    same = told == digest_changes(row[1:] for row in changes) and all(row[0] == register for row in changes)
    replay.expect(same, entry.seq, "The changes of this entry are not the ones it was sealed with.")
    paid = [_typed(dict(zip(schema.charge.c.keys(), row, strict=True))) for row in charges]
    same = sorted(map(_typed, _paid(entry))) == sorted(paid)
    replay.expect(same, entry.seq, "The charges of this entry are not the ones it was sealed with.")
    told = entry.facts.get("invitations", digest_invitations([]))
    same = told == digest_invitations((row[0], *row[3:]) for row in letters) and all(
        row[2] == register for row in letters
    )
    replay.expect(same, entry.seq, "The invitations of this entry are not the ones it was sealed with.")


def _is_sealed(entry: Entry, people: list[_Row], changes: list[_Row]) -> bool:
    """Return whether these people came with the entry: all who were enrolled, or the newcomers among its changes."""
    _, names, levels, _ = zip(*people, strict=True) if people else ((), (), (), ())
    if not ({*map(type, names)} <= {str} and {*map(type, levels)} <= {int}):
        return False
    if entry.kind == "enroll":
        table = pa.table({"person": pa.array(names, pa.string()), "micro_epsilon": pa.array(levels, pa.int64())})
        return bool(digest_people(table.sort_by("person")) == entry.facts["people"])
    stated = {(person, epsilon) for _, person, _, _, epsilon, _ in changes}
    newcomers = sum(count for old, _, count in entry.facts.get("flows", ()) if old is None)
    return newcomers == len(people) and {*zip(names, levels, strict=True)} <= stated


def _paid(entry: Entry) -> Iterator[dict[str, int]]:
    """Return the rows of what each cohort paid."""
    for epsilon, delta, cohorts in entry.facts.get("losses", ()):
        individual = entry.facts["guarantee"]["model"] == "individual"
        spent = {"micro_epsilon": 0 if individual else epsilon, "micro_individual": epsilon if individual else 0}
        yield from ({"cohort": cohort, "seq": entry.seq, "pico_delta": delta, **spent} for cohort in cohorts)


def _compare_table(db: sa.Connection, replay: Replay, table: sa.Table) -> None:
    """Name every column of a table that is not what the entries say, and the entry where one is known."""
    keys = [column.name for column in table.primary_key]
    stored = {}
    for row in _raw(db, table):
        values = dict(zip(table.c.keys(), row, strict=True))
        stored[_typed({key: values[key] for key in keys})] = values
    for seq, told in _EXPECTED[table.name](replay):
        if db.dialect.name == "sqlite":
            told = {name: int(value) if isinstance(value, bool) else value for name, value in told.items()}
        found = stored.pop(_typed({key: told[key] for key in keys}), None)
        if found is None:
            replay.found(seq, f"{table.name} lacks a row that the entries tell of.")
            continue
        wrong = [name for name in table.c.keys() if _typed({name: found[name]}) != _typed({name: told[name]})]  # noqa: SIM118
        replay.expect(not wrong, seq, f"{table.name}: {', '.join(wrong)} is not what the entries say.")
    replay.expect(not stored, None, f"{table.name} has rows that no entry tells of.")


def _typed(values: Mapping[str, Any]) -> tuple[tuple[str, str, Any], ...]:
    """Return values that are equal only if their types are, too."""
    return tuple((name, type(values[name]).__name__, values[name]) for name in sorted(values))


_Told = Iterator[tuple[int | None, dict[str, Any]]]  # the entry where a difference shows, and the row


def _ledger(replay: Replay) -> _Told:
    yield None, {"one": 1, "version": replay.version, "seq": len(replay.hashes) - 1, "hash": replay.hashes[-1]}


def _registers(replay: Replay) -> _Told:
    for name, account in replay.accounts.items():
        kept = {key: account.facts[key] for key in ("source", "fingerprint", "separate")}
        kept |= {"id": account.id, "name": name, "levels": canonical(account.facts["levels"])}
        yield account.members, {**kept, "members": account.members, "balances": account.balances}


def _cohorts(replay: Replay) -> _Told:
    for account in replay.accounts.values():
        for cohort in account.cohorts.values():
            yield None, {"register": account.id, **asdict(cohort)}


def _declarations(replay: Replay) -> _Told:
    for name, declared in replay.tables.items():
        yield None, {"name": name, "body": declaration_text(declared)}


def _quotas(replay: Replay) -> _Told:
    for (table, analyst), used in replay.quotas.items():
        yield None, {"table": table, "analyst": analyst, "micro_share": used}


def _stops(replay: Replay) -> _Told:
    for seq, (register, charge, shape, resumed) in replay.stops.items():
        row = {"seq": seq, "register": replay.accounts[register].id, "charge": charge, "shape": shape}
        yield seq, {**row, "resumed": resumed}


def _members(replay: Replay) -> _Told:
    for name, (role, seq, revoked) in replay.members.items():
        yield seq, {"name": name, "role": role, "seq": seq, "revoked": revoked}


def _tokens(replay: Replay) -> _Told:
    for mark, entry in replay.tokens.items():
        row = {name: entry.facts[name] for name in ("member", "label", "expires")}
        yield entry.seq, {"digest": mark, "seq": entry.seq, "kind": entry.facts["token"], **row}


def _ends(replay: Replay) -> _Told:
    for (mark, how), seq in replay.ends.items():
        yield seq, {"digest": mark, "how": how, "seq": seq}


_EXPECTED = {
    schema.ledger.name: _ledger,
    schema.register.name: _registers,
    schema.cohort.name: _cohorts,
    schema.declaration.name: _declarations,
    schema.quota.name: _quotas,
    schema.stop.name: _stops,
    schema.member.name: _members,
    schema.token.name: _tokens,
    schema.ended.name: _ends,
}

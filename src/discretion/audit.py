"""Audit: re-add a ledger from its entries alone and compare; name the first entry that is wrong.

Three independent things are checked: that the chain of hashes holds, that every entry followed the rules (nobody paid
more than they had, nobody got anything back), and that balances and tables are what the entries add up to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from math import ceil
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from discretion.errors import DiscretionError, InvalidDeclaration, LedgerFailed
from discretion.guarantee import PICO
from discretion.ledger import schema
from discretion.ledger.chain import GENESIS, Entry, canonical, digest, read
from discretion.ledger.moving import SLACK, digest_changes
from discretion.ledger.offer import Cohort
from discretion.ledger.people import digest_people
from discretion.ledger.register import digest_cohorts, load_all, stored_cohorts
from discretion.ledger.store import Store
from discretion.preference import MICRO
from discretion.table import Table


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is not as it should be."""

    entry: int | None  # the entry it shows at; None: it concerns the ledger as a whole
    text: str


@dataclass(frozen=True, kw_only=True)
class LedgerAudit:
    """What the audit found; without findings every promise on record was kept."""

    place: str
    entries: int
    head: str  # the end of the chain: keep it, and give it to the next audit
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def first_bad(self) -> int | None:
        """The first entry with a finding."""
        return min((one.entry for one in self.findings if one.entry is not None), default=None)

    def __str__(self) -> str:
        found = [
            f"  entry {one.entry}: {one.text}" if one.entry is not None else f"  {one.text}" for one in self.findings
        ]
        verdict = f"{len(found)} finding(s)" if found else "every promise on record was kept"
        return "\n".join([f"{self.place}: {verdict}; {self.entries} entries, head {self.head}", *found])


def audit_ledger(place: str, *, head: str | None = None) -> LedgerAudit:
    """Check the ledger at `place`; `head` is one printed earlier, so that a ledger put back to an old copy shows."""
    store = Store(place, create=False, migrate=False)
    replay = _Replay()
    try:
        with store.reading() as db:
            replay.run(db)
            known = _known_head(replay, head) if head is not None else ()
    except LedgerFailed as failure:  # damage that the database itself notices
        replay.found(None, str(failure))
        known = ()
    finally:
        store.close()
    return LedgerAudit(
        place=store.name,
        entries=len(replay.hashes) - 1,
        head=f"{len(replay.hashes) - 1}:{replay.hashes[-1]}",
        findings=(*replay.findings, *known),
    )


def _known_head(replay: "_Replay", head: str) -> tuple[Finding, ...]:
    seq, _, seal = head.strip().partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seal) == 64):
        raise InvalidDeclaration(f"A head looks like 17:<64 hexadecimal digits>, as it was printed, got {head!r}.")
    if int(seq) >= len(replay.hashes):
        text = (
            f"The ledger ends before entry {seq}, which it once had: an old copy was put back, or entries were removed."
        )
        return (Finding(entry=None, text=text),)
    if replay.hashes[int(seq)] != seal:
        return (Finding(entry=int(seq), text="The entry is not the one this ledger once ended with: history differs."),)
    return ()


@dataclass
class _Account:
    """A register, as the entries tell it."""

    facts: Mapping[str, Any]
    members: int
    cohorts: dict[int, Cohort]


@dataclass
class _Replay:
    """The ledger lived through again, entry by entry."""

    findings: list[Finding] = field(default_factory=list)
    hashes: list[str] = field(default_factory=lambda: [GENESIS])
    accounts: dict[str, _Account] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    charges: dict[int, Entry] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    quotas: dict[tuple[str, str], int] = field(default_factory=dict)
    stops: dict[int, list[Any]] = field(default_factory=dict)  # entry -> [register, charge, shape, resumed]

    def found(self, seq: int | None, text: str) -> None:
        self.findings.append(Finding(entry=seq, text=text))

    def expect(self, truth: bool, seq: int | None, text: str) -> None:
        if not truth:
            self.found(seq, text)

    def run(self, db: sa.Connection) -> None:
        if db.dialect.name == "sqlite":
            sound = db.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
            self.expect(sound, None, "The file is damaged: SQLite's own integrity check fails.")
        people, changes, charges = _people(db), _changes(db), _charges(db)
        for row in db.execute(sa.select(schema.entry).order_by(schema.entry.c.seq)):
            if not self._link(row):
                return  # nothing after a broken link can be believed
            try:
                entry = read(row)
                told = (entry.facts["kind"], entry.facts.get("question") or None, _settles(entry))
                same = told == (row.kind, row.question, row.settles)
                self.expect(same, row.seq, "The entry's columns are not what its text says.")
                self._live(entry)
                self._match(entry, people.pop(row.seq, None), changes.pop(row.seq, None), charges.pop(row.seq, []))
            except (DiscretionError, ArithmeticError, LookupError, TypeError, ValueError):
                self.found(row.seq, "The entry makes no sense: it was not written by discretion.")
                return
        for seq in sorted({*people, *changes, *charges}):
            self.found(seq, "People, changes or charges are stored that no entry tells of.")
        self._compare_tables(db)

    def _link(self, row: sa.Row[Any]) -> bool:
        seq = len(self.hashes)
        if row.seq != seq:
            self.found(seq, "The entry is missing.")
        elif digest(row.body) != row.hash:
            self.found(seq, "The entry was changed: its text does not match its hash.")
        elif f'"previous":"{self.hashes[-1]}"' not in row.body:
            self.found(seq, "The entry does not follow the one before it: the chain is broken here.")
        else:
            self.hashes.append(row.hash)
            return True
        return False

    def _live(self, entry: Entry) -> None:
        rules: Mapping[str, Callable[[Entry], None]] = {
            "enroll": self._enroll,
            "change": self._change,
            "refresh": self._change,
            "declare": self._declare,
            "charge": self._charge,
            "deliver": self._deliver,
            "stop": self._stop,
            "resume": self._resume,
        }
        if entry.kind in rules:
            rules[entry.kind](entry)
        else:
            self.expect(entry.kind in {"create", "migrate"}, entry.seq, f"Entries of kind {entry.kind!r} are unknown.")
        if "balances" in entry.facts:
            cohorts = self.accounts[entry.facts["register"]].cohorts.values()
            same = digest_cohorts(cohorts) == entry.facts["balances"]
            self.expect(same, entry.seq, "The balances the entry claims are not what the entries up to it add up to.")

    def _enroll(self, entry: Entry) -> None:
        name = entry.facts["register"]
        self.expect(name not in self.accounts, entry.seq, "A register is enrolled a second time.")
        cohorts = {
            key: Cohort(id=key, micro_allowance=level, micro_spent=0, people=people, enrolled=True)
            for key, level, people in entry.facts["cohorts"]
        }
        self.accounts[name] = _Account(facts=entry.facts, members=entry.seq, cohorts=cohorts)

    def _change(self, entry: Entry) -> None:
        account = self.accounts[entry.facts["register"]]
        for key, level, spent, delta, individual, absent in entry.facts["created"]:
            account.cohorts[key] = Cohort(
                id=key,
                micro_allowance=level,
                micro_spent=spent,
                people=0,
                pico_delta=delta,
                micro_individual=individual,
                absent=bool(absent),
            )
        for old, new, count in entry.facts["flows"]:
            self._flow(entry.seq, account.cohorts, old, new, count)
        moved = {name: entry.facts[name] for name in ("source", "fingerprint") if name in entry.facts}
        account.facts, account.members = {**account.facts, **moved}, entry.seq

    def _flow(self, seq: int, cohorts: dict[int, Cohort], old: int | None, new: int, count: int) -> None:
        target = cohorts[new]
        origin = cohorts[old] if old is not None else replace(target, micro_spent=0, pico_delta=0, micro_individual=0)
        kept = (
            target.micro_spent >= origin.micro_spent
            and target.pico_delta >= origin.pico_delta
            and target.micro_individual >= origin.micro_individual
        )
        self.expect(kept, seq, "Somebody who changed their preference got back what was spent.")
        most = origin.micro_spent + max(target.micro_allowance, origin.micro_spent) // SLACK
        self.expect(target.micro_spent <= most, seq, "A change of preference was charged more than its rounding.")
        cohorts[new] = replace(cohorts[new], people=cohorts[new].people + count)
        if old is not None:
            cohorts[old] = replace(cohorts[old], people=cohorts[old].people - count)
            self.expect(cohorts[old].people >= 0, seq, "More people left a cohort than were in it.")

    def _declare(self, entry: Entry) -> None:
        table = Table.from_json(canonical(entry.facts["declaration"]))
        before = self.tables.get(table.name, table)
        self.expect(before.register == table.register, entry.seq, "A table was moved to another register.")
        self.expect(table.register in self.accounts, entry.seq, "A table belongs to a register that is not enrolled.")
        self.tables[table.name] = table

    def _charge(self, entry: Entry) -> None:
        facts, table = entry.facts, self.tables[entry.facts["table"]]
        cohorts = self.accounts[facts["register"]].cohorts
        individual = facts["guarantee"]["model"] == "individual"
        share, delta_cap = Fraction(facts["share"]), Fraction(str(table.policy.largest_delta)) * PICO
        for epsilon, delta, paying in facts["losses"]:
            for key in paying:
                cohort = cohorts[key]
                account = "micro_individual" if individual else "micro_spent"
                cohort = replace(
                    cohort, **{account: getattr(cohort, account) + epsilon}, pico_delta=cohort.pico_delta + delta
                )
                cohorts[key] = cohort
                within = (
                    getattr(cohort, account) <= cohort.micro_allowance and epsilon <= share * cohort.micro_allowance
                )
                self.expect(within, entry.seq, "A cohort paid more than it had, or more than the share asked for.")
                self.expect(
                    not delta or cohort.pico_delta <= delta_cap, entry.seq, "A cohort lost more δ than allowed."
                )
                self.expect(not cohort.absent, entry.seq, "People who are not in the source were charged.")
        policy = table.policy
        allowed = share <= Fraction(str(policy.largest_share)) and (policy.individual or not individual)
        allowed = allowed and (policy.float_arithmetic or facts["guarantee"]["arithmetic"] == "exact")
        allowed = allowed and facts["guarantee"]["unit"] == "person"
        self.expect(allowed and table.register == facts["register"], entry.seq, "The charge breaks the table's policy.")
        before = [one for one in self.stops.values() if one[0] == facts["register"]]
        stopped = any(one[3] is None or one[2] == facts.get("shape", "") != "" for one in before)
        self.expect(not stopped, entry.seq, "A question was charged that a stop should have refused.")
        key = (facts["table"], facts["analyst"])
        self.quotas[key] = self.quotas.get(key, 0) + ceil(share * MICRO)
        self.charges[entry.seq] = entry

    def _stop(self, entry: Entry) -> None:
        facts = entry.facts
        self.expect(facts["register"] in self.accounts, entry.seq, "A register was stopped that is not enrolled.")
        if (settles := _settles(entry)) is not None:
            failed = settles in self.charges and settles not in self.settled
            self.expect(failed, entry.seq, "A question failed that no charge paid for, or that was answered before.")
            self.settled.add(settles)
        self.stops[entry.seq] = [facts["register"], facts["charge"], facts["shape"], None]

    def _resume(self, entry: Entry) -> None:
        stopped = [one for one in self.stops.values() if one[0] == entry.facts["register"] and one[3] is None]
        self.expect(bool(stopped), entry.seq, "A register was resumed that was not stopped.")
        for one in stopped:
            one[3] = entry.seq

    def _deliver(self, entry: Entry) -> None:
        paid = self.charges.get(entry.facts["charge"])
        self.expect(paid is not None, entry.seq, "An answer was delivered that no charge paid for.")
        self.expect(entry.facts["charge"] not in self.settled, entry.seq, "One charge paid for two answers.")
        self.settled.add(entry.facts["charge"])
        same = paid is None or paid.facts["question"] == entry.facts["question"]
        self.expect(same, entry.seq, "The answer belongs to another question than the charge.")

    def _match(
        self, entry: Entry, people: tuple[str, int] | None, changes: str | None, charges: list[tuple[int, ...]]
    ) -> None:
        """What is stored beside the entry is what it was sealed with."""
        facts = entry.facts
        if entry.kind == "enroll":
            came = people is not None and people[0] == facts["people"]
        else:  # those who came later are told by the flows
            newcomers = sum(count for old, _, count in facts.get("flows", ()) if old is None)
            came = newcomers == (people[1] if people is not None else 0)
        self.expect(came, entry.seq, "The people of this entry are not the ones it was sealed with.")
        told = facts.get("changes", digest_changes([]))
        same = told == (changes or digest_changes([]))
        self.expect(same, entry.seq, "The changes of this entry are not the ones it was sealed with.")
        individual = entry.kind == "charge" and facts["guarantee"]["model"] == "individual"
        paid = [
            (cohort, entry.seq, 0 if individual else epsilon, delta, epsilon if individual else 0)
            for epsilon, delta, cohorts in facts.get("losses", ())
            for cohort in cohorts
        ]
        self.expect(
            sorted(paid) == charges, entry.seq, "The charges of this entry are not the ones it was sealed with."
        )

    def _compare_tables(self, db: sa.Connection) -> None:
        end = db.execute(sa.select(schema.ledger)).one_or_none()
        whole = end is not None and (end.seq, end.hash) == (len(self.hashes) - 1, self.hashes[-1])
        self.expect(whole, None, "The ledger does not end where it says: entries were removed or added at its end.")
        stored = {register.name: register for register in load_all(db)}
        self.expect(set(stored) == set(self.accounts), None, "The registers are not the ones that were enrolled.")
        for name in set(stored) & set(self.accounts):
            register, account = stored[name], self.accounts[name]
            same = register.members == account.members and all(
                canonical(getattr(register, key)) == canonical(account.facts[key])
                for key in ("source", "fingerprint", "levels", "separate")
            )
            self.expect(same, account.members, f"Register {name!r} is not what its entries say.")
            cohorts = tuple(account.cohorts.values())
            self.expect(
                stored_cohorts(db, register) == cohorts and digest_cohorts(cohorts) == register.balances,
                None,
                f"The balances of register {name!r} are not what its entries add up to.",
            )
        names = {register.id: name for name, register in stored.items()}
        kept = {row.seq: [names.get(row.register), *row[2:]] for row in db.execute(sa.select(schema.stop))}
        self.expect(kept == self.stops, None, "The stops of registers are not what the entries say.")
        tables = {row.name: row.body for row in db.execute(sa.select(schema.declaration))}
        declared = {name: table.to_json() for name, table in self.tables.items()}
        self.expect(tables == declared, None, "The declarations of tables are not what the entries say.")
        quotas = {(row.table, row.analyst): row.micro_share for row in db.execute(sa.select(schema.quota))}
        self.expect(quotas == self.quotas, None, "The analysts' used quotas are not what the entries add up to.")


def _settles(entry: Entry) -> int | None:
    """Return the charge that the entry ends."""
    settles: int | None = entry.facts["charge"] if entry.kind == "deliver" else entry.facts.get("settles")
    return settles


def _people(db: sa.Connection) -> dict[int, tuple[str, int]]:
    """Entry -> digest and number of the people who came with it."""
    person = schema.person.c
    columns = sa.select(person.seq, person.person, person.micro_epsilon).order_by(person.seq, person.person)
    found = {}
    for seq, rows in groupby(db.execute(columns), key=lambda row: row.seq):
        _, names, levels = zip(*rows, strict=True)
        people = pa.table({"person": pa.array(names, pa.string()), "micro_epsilon": pa.array(levels, pa.int64())})
        found[seq] = digest_people(people), len(names)
    return found


def _changes(db: sa.Connection) -> dict[int, str]:
    """Entry -> digest of its changes."""
    change = schema.change.c
    rows = db.execute(sa.select(schema.change).order_by(change.seq))
    return {seq: digest_changes(row[1:] for row in group) for seq, group in groupby(rows, key=lambda row: row.seq)}


def _charges(db: sa.Connection) -> dict[int, list[tuple[int, ...]]]:
    """Entry -> its charges, in order of the cohort."""
    rows = db.execute(sa.select(schema.charge).order_by(schema.charge.c.seq, schema.charge.c.cohort))
    return {seq: [tuple(row) for row in group] for seq, group in groupby(rows, key=lambda row: row.seq)}

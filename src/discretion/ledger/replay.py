"""Replay: entries are lived through again, one by one, by rules of their own; what breaks a rule becomes a finding."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Any

from discretion.guarantee import PICO
from discretion.ledger.chain import GENESIS, Entry
from discretion.ledger.moving import SLACK
from discretion.ledger.offer import Cohort
from discretion.ledger.register import digest_cohorts
from discretion.ledger.restore import restored_text
from discretion.ledger.stop import same_shape
from discretion.preference import MICRO


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is not as it should be."""

    entry: int | None  # the entry it shows at; None: it concerns the ledger as a whole
    text: str


@dataclass
class Recount:
    """A register, as the entries tell it."""

    id: int
    facts: Mapping[str, Any]
    members: int
    balances: str
    cohorts: dict[int, Cohort]


@dataclass
class Replay:
    """A ledger as its entries tell it, from the first one on."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hashes: list[str] = field(default_factory=lambda: [GENESIS])
    version: int = 0
    accounts: dict[str, Recount] = field(default_factory=dict)
    tables: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> declaration, as it was sealed
    charges: dict[int, Entry] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    quotas: dict[tuple[str, str], int] = field(default_factory=dict)
    stops: dict[int, list[Any]] = field(default_factory=dict)  # entry -> [register, charge, shape, resumed]
    members: dict[str, list[Any]] = field(default_factory=dict)  # name -> [role, entry, entry of the revocation]
    tokens: dict[str, Entry] = field(default_factory=dict)  # digest -> the entry that issued it
    ends: dict[tuple[str, str], int] = field(default_factory=dict)  # (digest, how) -> entry

    def found(self, seq: int | None, text: str) -> None:
        self.findings.append(Finding(entry=seq, text=text))

    def expect(self, truth: bool, seq: int | None, text: str) -> None:
        if not truth:
            self.found(seq, text)

    def live(self, entry: Entry) -> None:
        """Apply one entry, and note every rule it breaks."""
        rules: Mapping[str, Callable[[Entry], None]] = {
            "create": self._create,
            "migrate": self._create,
            "enroll": self._enroll,
            "change": self._change,
            "refresh": self._change,
            "declare": self._declare,
            "charge": self._charge,
            "deliver": self._deliver,
            "abandon": self._settle,
            "stop": self._stop,
            "resume": self._resume,
            "restore": self._restore,
            "grant": self._grant,
            "revoke": self._revoke,
            "issue": self._issue,
            "invite": self._invite,
            "end": self._end,
        }
        if entry.kind not in rules:
            self.found(entry.seq, f"Entries of kind {entry.kind!r} are unknown.")
            return
        rules[entry.kind](entry)
        if "balances" in entry.facts:
            account = self.accounts[entry.facts["register"]]
            account.balances = digest_cohorts(account.cohorts.values())
            same = account.balances == entry.facts["balances"]
            self.expect(same, entry.seq, "The balances the entry claims are not what the entries up to it add up to.")

    def _create(self, entry: Entry) -> None:
        self.expect((entry.kind == "create") == (entry.seq == 1), entry.seq, "A ledger is created by its first entry.")
        self.expect(entry.facts["version"] > self.version, entry.seq, "A migration must lead to a newer version.")
        self.version = entry.facts["version"]

    def _enroll(self, entry: Entry) -> None:
        name = entry.facts["register"]
        self.expect(name not in self.accounts, entry.seq, "A register is enrolled a second time.")
        cohorts = {
            key: Cohort(id=key, micro_allowance=level, micro_spent=0, people=people, enrolled=True)
            for key, level, people in entry.facts["cohorts"]
        }
        number = 1 + len(self.accounts)
        self.accounts[name] = Recount(id=number, facts=entry.facts, members=entry.seq, balances="", cohorts=cohorts)

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
        declared = entry.facts["declaration"]
        register, before = declared["register"], self.tables.get(declared["name"], declared)
        self.expect(entry.facts["table"] == declared["name"], entry.seq, "The declaration is one of another table.")
        self.expect(before["register"] == register, entry.seq, "A table was moved to another register.")
        self.expect(register in self.accounts, entry.seq, "A table belongs to a register that is not enrolled.")
        self.tables[declared["name"]] = declared

    def _charge(self, entry: Entry) -> None:
        facts, kind, tables = entry.facts, entry.facts["guarantee"], [self.tables[name] for name in entry.tables]
        cohorts = self.accounts[facts["register"]].cohorts
        account = "micro_individual" if kind["model"] == "individual" else "micro_spent"
        share = Fraction(facts["share"])
        delta_cap = min(Fraction(str(table["policy"]["largest_delta"])) for table in tables) * PICO
        for epsilon, delta, paying in facts["losses"]:
            for key in paying:
                spent = {account: getattr(cohorts[key], account) + epsilon}
                cohort = cohorts[key] = replace(cohorts[key], **spent, pico_delta=cohorts[key].pico_delta + delta)
                within = spent[account] <= cohort.micro_allowance and epsilon <= share * cohort.micro_allowance
                self.expect(within, entry.seq, "A cohort paid more than it had, or more than the share asked for.")
                tight = not delta or cohort.pico_delta <= delta_cap
                self.expect(tight, entry.seq, "A cohort lost more δ than allowed.")
                self.expect(not cohort.absent, entry.seq, "People who are not in the source were charged.")
        allowed = all(_allows(table, facts, share, alone=len(tables) == 1) for table in tables)
        self.expect(allowed, entry.seq, "The charge breaks the table's policy.")
        self._obey_stops(entry)
        for name in entry.tables:
            key = (name, facts["analyst"])
            self.quotas[key] = self.quotas.get(key, 0) + ceil(share * MICRO)
        self.charges[entry.seq] = entry

    def _obey_stops(self, entry: Entry) -> None:
        shape = entry.facts.get("shape", "")
        concerned = [one for one in self.stops.values() if one[0] == entry.facts["register"]]
        refused = any(
            resumed is None or (shape and failed and same_shape(shape, failed)) for _, _, failed, resumed in concerned
        )
        self.expect(not refused, entry.seq, "A question was charged that a stop should have refused.")

    def _deliver(self, entry: Entry) -> None:
        self._settle(entry)
        paid = self.charges.get(entry.facts["charge"])
        same = paid is None or paid.facts["question"] == entry.facts["question"]
        self.expect(same, entry.seq, "The answer belongs to another question than the charge.")

    def _settle(self, entry: Entry) -> None:
        charge = settles(entry)
        self.expect(charge in self.charges, entry.seq, "An answer was delivered or given up that no charge paid for.")
        self.expect(charge not in self.settled, entry.seq, "One charge paid for two answers.")
        if charge is not None:
            self.settled.add(charge)

    def _stop(self, entry: Entry) -> None:
        facts = entry.facts
        self.expect(facts["register"] in self.accounts, entry.seq, "A register was stopped that is not enrolled.")
        if settles(entry) is not None:
            self._settle(entry)
        self.stops[entry.seq] = [facts["register"], facts["charge"], facts["shape"], None]

    def _resume(self, entry: Entry) -> None:
        stopped = [one for one in self.stops.values() if one[0] == entry.facts["register"] and one[3] is None]
        self.expect(bool(stopped), entry.seq, "A register was resumed that was not stopped.")
        for one in stopped:
            one[3] = entry.seq

    def _grant(self, entry: Entry) -> None:
        name, role = entry.facts["member"], entry.facts["role"]
        held = name in self.members and self.members[name][2] is None
        self.expect(not held, entry.seq, "A role was granted to a member who had one.")
        self.members[name] = [role, entry.seq, None]

    def _revoke(self, entry: Entry) -> None:
        known = self.members[entry.facts["member"]]
        self.expect(known[2] is None, entry.seq, "A role was revoked that nobody had.")
        known[2] = entry.seq

    def _issue(self, entry: Entry) -> None:
        held = self.members.get(entry.facts["member"], [None, None, 0])[2] is None
        self.expect(held, entry.seq, "A token was issued to somebody who is not a member.")
        self.tokens[entry.facts["digest"]] = entry

    def _invite(self, entry: Entry) -> None:
        self.expect(entry.facts["register"] in self.accounts, entry.seq, "People were invited who are not enrolled.")

    def _end(self, entry: Entry) -> None:
        key = entry.facts["digest"], entry.facts["how"]
        self.expect(key not in self.ends, entry.seq, "A token or invitation was used or revoked twice.")
        self.ends[key] = entry.seq

    def _restore(self, entry: Entry) -> None:
        self.expect(entry.facts["kept"] == entry.seq - 1, entry.seq, "The entry follows another one than it says.")
        self.notes.append(f"Entry {entry.seq}: {restored_text(entry.facts)}.")


def settles(entry: Entry) -> int | None:
    """Return the charge that the entry ends."""
    charge: int | None = entry.facts["charge"] if entry.kind == "deliver" else entry.facts.get("settles")
    return charge


def _allows(table: Mapping[str, Any], facts: Mapping[str, Any], share: Fraction, *, alone: bool) -> bool:
    """Return whether a table's policy allowed a charge; what it protects is checked where it was joined with others."""
    policy, kind = table["policy"], facts["guarantee"]
    return (
        table["register"] == facts["register"]
        and share <= Fraction(str(policy["largest_share"]))
        and (policy["individual"] or kind["model"] != "individual")
        and (policy["float_arithmetic"] or kind["arithmetic"] == "exact")
        and kind["unit"] == "person"
        and (alone or kind["protects"] in (table["protects"], "value"))
    )

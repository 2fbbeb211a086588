"""Timeline: the entries tell, day by day, how much of their allowances people used and which levels they chose."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discretion.ledger.chain import Entry
from discretion.preference import MICRO


@dataclass(frozen=True, kw_only=True)
class Day:
    """One register at the end of one day on which something happened. All of it is public."""

    register: str
    day: str  # such as 2026-05-01, in UTC
    used: float  # of everybody's allowances on average: 0 to 1
    questions: int  # charged on this day
    people: Mapping[float, int]  # allowance -> how many hold it, without those who are not in the source
    analysts: Mapping[str, int]  # who asked how many of the questions


@dataclass
class _Kept:
    """One cohort, as far as the timeline needs it."""

    allowance: int
    spent: int
    people: int
    absent: bool


@dataclass
class _Account:
    """One register, as of the last entry that was added."""

    cohorts: dict[int, _Kept] = field(default_factory=dict)
    analysts: Counter[str] = field(default_factory=Counter)  # who asked how often on this day
    day: str = ""
    past: list[Day] = field(default_factory=list)  # the days that are over

    def begin(self, register: str, day: str) -> None:
        """Close the day before, if this is another one."""
        if self.day and day != self.day:
            self.past.append(self.end(register))
            self.analysts = Counter()
        self.day = day

    def end(self, register: str) -> Day:
        """Return the day as it is now."""
        held = [one for one in self.cohorts.values() if one.people and not one.absent]
        able = [one for one in held if one.allowance]
        weight = sum(one.people for one in able)
        used = sum(one.people * min(1.0, one.spent / one.allowance) for one in able) / weight if weight else 0.0
        people: dict[float, int] = {}
        for one in sorted(held, key=lambda one: one.allowance):
            people[one.allowance / MICRO] = people.get(one.allowance / MICRO, 0) + one.people
        asked = dict(sorted(self.analysts.items()))
        return Day(
            register=register,
            day=self.day,
            used=used,
            questions=sum(asked.values()),
            people=people,
            analysts=asked,
        )


class Timeline:
    """Adds entries up, in order; what was added need not be read again."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        if entry.kind not in ("enroll", "change", "refresh", "charge"):
            return
        name = entry.facts["register"]
        account = self._accounts.setdefault(name, _Account())
        account.begin(name, entry.facts["time"][:10])
        _apply(account, entry.kind, entry.facts)

    @property
    def days(self) -> tuple[Day, ...]:
        """Return every day on which an entry changed a register, in order, one register after the other."""
        return tuple(day for name, account in self._accounts.items() for day in (*account.past, account.end(name)))


def _apply(account: _Account, kind: str, facts: Mapping[str, Any]) -> None:
    cohorts = account.cohorts
    if kind == "enroll":
        for key, level, people in facts["cohorts"]:
            cohorts[key] = _Kept(allowance=level, spent=0, people=people, absent=False)
    elif kind == "charge":
        account.analysts[facts["analyst"]] += 1
        for epsilon, _, paying in facts["losses"] if facts["guarantee"]["model"] != "individual" else ():
            for key in paying:
                cohorts[key].spent += epsilon
    else:
        for key, level, spent, _, _, absent in facts["created"]:
            cohorts[key] = _Kept(allowance=level, spent=spent, people=0, absent=bool(absent))
        for old, new, count in facts["flows"]:
            cohorts[new].people += count
            if old is not None:
                cohorts[old].people -= count

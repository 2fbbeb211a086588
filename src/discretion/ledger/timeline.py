"""Timeline: the entries tell, day by day, how much of their allowances people used and which levels they chose."""

from collections.abc import Iterable, Mapping
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


@dataclass
class _Kept:
    """One cohort, as far as the timeline needs it."""

    allowance: int
    spent: int
    people: int
    absent: bool


@dataclass
class _Account:
    cohorts: dict[int, _Kept] = field(default_factory=dict)
    questions: int = 0

    def end(self, register: str, day: str) -> Day:
        held = [one for one in self.cohorts.values() if one.people and not one.absent]
        able = [one for one in held if one.allowance]
        weight = sum(one.people for one in able)
        used = sum(one.people * min(1.0, one.spent / one.allowance) for one in able) / weight if weight else 0.0
        people: dict[float, int] = {}
        for one in sorted(held, key=lambda one: one.allowance):
            people[one.allowance / MICRO] = people.get(one.allowance / MICRO, 0) + one.people
        return Day(register=register, day=day, used=used, questions=self.questions, people=people)


def timeline(entries: Iterable[Entry]) -> tuple[Day, ...]:
    """Return every day on which an entry changed a register, in order."""
    accounts: dict[str, _Account] = {}
    days: dict[tuple[str, str], Day] = {}
    for entry in entries:
        if entry.kind not in ("enroll", "change", "refresh", "charge"):
            continue
        name, day = entry.facts["register"], entry.facts["time"][:10]
        account = accounts.setdefault(name, _Account())
        if (name, day) not in days:
            account.questions = 0
        _apply(account, entry.kind, entry.facts)
        days[name, day] = account.end(name, day)
    return tuple(days.values())


def _apply(account: _Account, kind: str, facts: Mapping[str, Any]) -> None:
    cohorts = account.cohorts
    if kind == "enroll":
        for key, level, people in facts["cohorts"]:
            cohorts[key] = _Kept(allowance=level, spent=0, people=people, absent=False)
    elif kind == "charge":
        account.questions += 1
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

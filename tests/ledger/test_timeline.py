"""The days of a register: what was used of allowances, and who holds which level, as the balances say."""

from dataclasses import replace
from datetime import datetime

import pytest

from discretion.ledger.timeline import Day, Timeline
from ledgers import PEOPLE, ask, clinic, people


def timeline(ledger) -> tuple[Day, ...]:
    found = Timeline()
    for entry in ledger.entries_after(0, 1_000):
        found.add(entry)
    return found.days


def expected(ledger) -> tuple[float, dict[float, int]]:
    """From the balance, which adds up in another way."""
    rows = [row for row in ledger.balance("people").to_pylist() if row["in_source"] and row["people"]]
    able = [row for row in rows if row["epsilon"]]
    used = sum(row["people"] * row["spent"] / row["epsilon"] for row in able) / sum(row["people"] for row in able)
    levels: dict[float, int] = {}
    for row in rows:
        levels[row["epsilon"]] = levels.get(row["epsilon"], 0) + row["people"]
    return used, levels


def test_a_day_ends_with_what_the_balances_say(place):
    with clinic(place) as ledger:
        ask(ledger)
        ledger.prefer("people", "eve", 0.1)
        ask(ledger)
        ledger.join("people", "gus", 0.5)
        edited = {name: micro for name, micro in PEOPLE.items() if name != "ann"}
        ledger.refresh("people", people(edited), fingerprint="edited")
        ask(ledger)
        last = [day for day in timeline(ledger) if day.register == "people"][-1]
        used, levels = expected(ledger)
    assert used == pytest.approx(last.used)
    assert 0 < last.used < 1
    assert levels == dict(last.people)
    assert last.day == datetime.fromisoformat(last.day).date().isoformat()
    assert last.questions == sum(last.analysts.values()) >= 1


def test_a_ledger_without_people_has_no_days():
    assert () == Timeline().days


def test_entries_that_come_later_continue_the_day_or_begin_another(place):
    with clinic(place) as ledger:
        ask(ledger)
        ask(ledger)
        entries = ledger.entries_after(0, 1_000)
    parts, moved = Timeline(), Timeline()
    for entry in entries:
        parts.add(entry)
        assert all(day.used >= 0 for day in parts.days)  # looked at in between
        day = "2026-05-02" if entry is entries[-1] else "2026-05-01"
        moved.add(replace(entry, facts={**entry.facts, "time": f"{day}T08:00:00+00:00"}))
    charges = sum(entry.kind == "charge" for entry in entries)
    assert [charges] == [day.questions for day in parts.days]
    last = parts.days[-1]
    assert last == replace(moved.days[-1], day=last.day, questions=last.questions, analysts=last.analysts)
    assert charges == sum(day.questions for day in moved.days)


def test_entries_are_read_in_blocks_after_one_that_is_known(place):
    with clinic(place) as ledger:
        ask(ledger)
        whole = ledger.entries_after(0, 1_000)
        assert whole[:2] == ledger.entries_after(0, 2)
        assert whole[2:] == ledger.entries_after(whole[1].seq, 1_000)
        assert [] == ledger.entries_after(whole[-1].seq, 1_000)

"""The days of a register: what was used of allowances, and who holds which level, as the balances say."""

from datetime import datetime

import pytest

from discretion.ledger.timeline import timeline
from ledgers import PEOPLE, ask, clinic, people


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
        last = [day for day in ledger.timeline() if day.register == "people"][-1]
        used, levels = expected(ledger)
    assert used == pytest.approx(last.used)
    assert 0 < last.used < 1
    assert levels == dict(last.people)
    assert last.day == datetime.fromisoformat(last.day).date().isoformat()
    assert last.questions >= 1


def test_a_ledger_without_people_has_no_days():
    assert () == timeline([])

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from discretion.errors import BudgetExhausted, InvalidDeclaration, LedgerFailed, PeerRefused
from discretion.peers.account import Account
from discretion.preference import MICRO


def test_a_charge_beyond_the_budget_is_refused_and_nothing_is_refunded(tmp_path):
    account = Account(tmp_path / "a.sqlite", budget=1.0)
    account.charge(600_000, "first")
    with pytest.raises(BudgetExhausted, match="no budget left"):
        account.charge(400_001, "too much")
    account.charge(400_000, "second")
    assert MICRO == account.spent == account.budget
    assert 0o600 == (tmp_path / "a.sqlite").stat().st_mode & 0o777
    assert [(600_000, "first"), (400_000, "second")] == [row[1:] for row in account.charges()]
    account.close()
    again = Account(tmp_path / "a.sqlite", budget=1.0)
    assert MICRO == again.spent
    with pytest.raises(BudgetExhausted):
        again.charge(1, "more")
    again.close()
    changed = Account(tmp_path / "a.sqlite", budget=0.5)  # a stricter choice: what was spent stays spent
    assert (MICRO, MICRO // 2) == (changed.spent, changed.budget)
    with pytest.raises(BudgetExhausted):
        changed.charge(1, "more")
    changed.close()


def test_charges_cannot_be_changed_or_deleted(tmp_path):
    account = Account(tmp_path / "a.sqlite", budget=1.0)
    account.charge(5, "first")
    account.close()
    with sqlite3.connect(tmp_path / "a.sqlite") as db:
        for attempt in ("DELETE FROM charge", "UPDATE charge SET micro_epsilon = 1"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                db.execute(attempt)
    db.close()


def test_a_charge_survives_being_killed_at_once(tmp_path):
    program = (
        "import os, signal, sys; from pathlib import Path; from discretion.peers.account import Account\n"
        "account = Account(Path(sys.argv[1]), budget=1.0); account.charge(250_000, 'product')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    for times in (1, 2):
        killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.sqlite")])
        assert -signal.SIGKILL == killed.returncode
        account = Account(tmp_path / "a.sqlite", budget=1.0)
        assert times * 250_000 == account.spent
        account.close()


def test_two_processes_with_one_account_cannot_overspend_together(tmp_path):
    program = (
        "import sys; from pathlib import Path; from discretion.peers.account import Account\n"
        "from discretion.errors import BudgetExhausted\n"
        "account, paid = Account(Path(sys.argv[1]), budget=1.0), 0\n"
        "try:\n    while True: account.charge(10_000, 'x'); paid += 1\n"
        "except BudgetExhausted: print(paid)"
    )
    path = str(tmp_path / "a.sqlite")
    Account(tmp_path / "a.sqlite", budget=1.0).close()
    running = [
        subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert 100 == sum(int(process.communicate()[0]) for process in running)


def test_what_is_held_for_one_question_cannot_be_spent_on_another():
    account = Account.rehearsal(budget=1.0)
    with account.held(600_000) as enough:
        assert enough
        with account.held(600_000) as second:
            assert not second
        with pytest.raises(BudgetExhausted):
            account.charge(500_000, "other")
        account.charge_held(600_000, "asked")
    assert 600_000 == account.spent
    account.charge(400_000, "other")  # nothing stays held
    account.close()


def test_the_first_score_and_the_first_publication_stand():
    account = Account.rehearsal(budget=1.0)
    account.keep_score("t", "a", 1.5)
    account.keep_score("t", "a", 9.0)
    account.keep_publication("t", "", b"one")
    account.keep_publication("t", "", b"two")
    assert {"a": 1.5} == account.scores("t")
    assert {} == account.scores("another network")
    assert b"one" == account.publication("t")
    assert account.publication("another network") is None
    account.close()


def test_another_identity_at_a_pinned_address_is_refused():
    account = Account.rehearsal(budget=1.0)
    account.pin("localhost:9", "a" * 64)
    account.pin("localhost:9", "a" * 64)
    with pytest.raises(PeerRefused, match="than at first contact"):
        account.pin("localhost:9", "b" * 64)
    account.close()


def test_malformed_accounts_are_refused(tmp_path):
    with pytest.raises(InvalidDeclaration, match="at least one millionth"):
        Account.rehearsal(budget=0)
    (tmp_path / "a.sqlite").write_text("this is not a database, and long enough to be read as one" * 20)
    with pytest.raises(LedgerFailed, match="cannot be read or written"):
        Account(tmp_path / "a.sqlite", budget=1.0)
    assert os.path.exists(tmp_path / "a.sqlite")

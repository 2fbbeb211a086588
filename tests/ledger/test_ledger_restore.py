"""An old copy that is put back refunds what was charged since: processes refuse it, and a restore records it."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discretion.cli import app
from discretion.errors import InvalidDeclaration, LedgerCorrupt, LedgerFailed
from discretion.ledger import Ledger, restore
from discretion.ledger.audit import audit_ledger
from ledgers import ask, clinic, forget, spent


@pytest.fixture
def rolled_back(tmp_path) -> tuple[Path, str, list[str]]:
    """A ledger that was put back to an old copy, its last head, and the entries of two answers; one is lost."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    with clinic(str(path)) as ledger:
        kept = ask(ledger)
        ledger.deliver(kept, "{}")
        shutil.copy(path, copy)
        lost = ask(ledger)
        ledger.deliver(lost, "{}")
        head = ledger.head()
    shutil.copy(copy, path)
    return path, head, [kept, lost]


def test_a_process_refuses_a_ledger_older_than_the_one_it_has_seen(rolled_back):
    path, _, _ = rolled_back
    with pytest.raises(LedgerCorrupt, match="no longer has entry 7"):
        Ledger(str(path))
    assert any("no longer has entry 7" in one.text for one in audit_ledger(str(path)).findings)
    forget()
    Ledger(str(path)).close()  # another process cannot know


def test_an_open_ledger_notices_that_its_file_was_put_back(tmp_path):
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    with clinic(str(path)) as ledger:
        shutil.copy(path, copy)
        ask(ledger)
        shutil.copy(copy, path)
        for attempt in (lambda: ask(ledger), lambda: ledger.balance("people"), lambda: ledger.offer("people")):
            with pytest.raises(LedgerCorrupt, match="older copy"):
                attempt()


def test_an_open_ledger_notices_that_another_history_took_its_place(tmp_path):
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    clinic(str(path)).close()
    shutil.copy(path, copy)
    with Ledger(str(copy)) as other:
        for _ in range(3):
            ask(other)  # longer than ours, but not ours
    with Ledger(str(path)) as ledger:
        ask(ledger)
        shutil.copy(copy, path)
        with pytest.raises(LedgerCorrupt, match="replaced"):
            ask(ledger)


def test_a_copy_elsewhere_and_a_new_ledger_at_the_same_place_are_no_rollback(rolled_back, tmp_path):
    path, _, _ = rolled_back
    assert audit_ledger(str(tmp_path / "copy")).passed
    path.unlink()
    clinic(str(path)).close()
    assert audit_ledger(str(path)).passed


def test_witnesses_show_an_old_copy(rolled_back):
    path, _, (kept, lost) = rolled_back
    forget()
    assert audit_ledger(str(path), witnesses=[kept]).passed
    findings = audit_ledger(str(path), witnesses=[kept, lost]).findings
    assert [f"An answer was released with entry {lost}" in one.text for one in findings] == [True]
    enrolled = "2-" + Ledger(str(path)).history()["entry"].to_pylist()[1].split("-")[1]
    assert ["which is not a charge" in one.text for one in audit_ledger(str(path), witnesses=[enrolled]).findings]
    with pytest.raises(InvalidDeclaration, match="An entry's id looks like"):
        audit_ledger(str(path), witnesses=["seven"])


def test_a_restore_records_what_is_unknown_and_lets_programs_go_on(rolled_back):
    path, head, _ = rolled_back
    found = restore.restore(str(path), head=head)
    assert (5, 2, (head,)) == (found.kept, found.lost, found.missing)
    assert "at least 2 are missing" in str(found)
    with Ledger(str(path)) as ledger:  # this process has seen entry 7, and now knows that it is lost
        assert "at least 2 are missing" in ledger.history()["text"].to_pylist()[-1]
        assert "put back to a copy" in ledger.receipt("people", "eve").summary
        ask(ledger)
    audit = audit_ledger(str(path))
    assert (True, 1) == (audit.passed, len(audit.notes))
    assert "what they charged is not counted" in str(audit)


def test_a_restore_that_admits_less_than_this_process_has_seen_is_not_enough(rolled_back):
    path, _, (kept, lost) = rolled_back
    restore.restore(str(path), witnesses=[kept])
    with pytest.raises(LedgerCorrupt):
        Ledger(str(path))
    found = restore.restore(str(path), witnesses=[kept, lost])
    assert (1, (lost,)) == (found.lost, found.missing)
    with pytest.raises(LedgerCorrupt):  # the lost answer's own delivery was seen, too
        Ledger(str(path))
    assert restore.restore(str(path)).lost is None  # nothing is known
    Ledger(str(path)).close()


def test_a_copy_is_put_back_where_nothing_is(rolled_back, tmp_path):
    path, head, _ = rolled_back
    with pytest.raises(LedgerFailed, match="Move it away"):
        restore.restore(str(path), copy=str(tmp_path / "copy"), head=head)
    path.unlink()
    restore.restore(str(path), copy=str(tmp_path / "copy"), head=head)
    assert 0o600 == path.stat().st_mode & 0o777
    with Ledger(str(path)) as ledger:
        assert 0.1 == spent(ledger, "eve")
    with pytest.raises(InvalidDeclaration, match="PostgreSQL's own tools"):
        restore.restore("postgresql://host/db", copy=str(tmp_path / "copy"))
    (tmp_path / "foreign").write_text("x" * 1_000)
    with pytest.raises(LedgerFailed, match="not a ledger"):
        restore.restore(str(tmp_path / "new"), copy=str(tmp_path / "foreign"))
    assert not (tmp_path / "new").exists()


@pytest.mark.xdist_group("postgres")
def test_a_restore_in_postgresql_is_recorded(postgres_place):
    with clinic(postgres_place) as ledger:
        ask(ledger)
    found = restore.restore(postgres_place, witnesses=["99-0123456789ab"])
    assert (4, 95) == (found.kept, found.lost)
    assert audit_ledger(postgres_place).passed


def run(*command: str, typed: str = "") -> tuple[int, str]:
    outcome = CliRunner().invoke(app, list(command), input=typed)
    return outcome.exit_code, outcome.output


def test_the_command_asks_for_the_last_known_head_or_entries(rolled_back):
    path, head, (kept, lost) = rolled_back
    ledger = ["--ledger", str(path)]
    code, told = run("restore", *ledger, typed=f"{head}\n")
    assert (0, True) == (code, "at least 2 are missing" in told), told
    code, told = run("restore", *ledger, typed="\n")
    assert (0, True) == (code, "nothing is known" in told), told
    code, told = run("restore", *ledger, "--head", head, "--witness", kept, "--witness", lost, "--json")
    assert (0, [lost, head]) == (code, json.loads(told)["missing"])
    code, told = run("restore", *ledger, "--unknown")
    assert (0, True) == (code, "nothing is known" in told), told
    code, told = run("audit", "ledger", *ledger, "--witness", lost)
    assert (4, True) == (code, lost in told), told

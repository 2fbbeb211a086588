"""The audit passes an honest ledger and names the first entry that is not."""

import json
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa

from discretion.errors import InvalidDeclaration
from discretion.ledger import Ledger
from discretion.ledger.audit import LedgerAudit, audit_ledger
from discretion.ledger.chain import canonical, digest
from ledgers import PEOPLE, all_of, ask, clinic, forget, people, visits


def work(place: str) -> None:
    """1 create, 2 enroll, 3 declare, 4 charge, 5 deliver, 6 change, 7 join, 8 refresh, 9 declare, 10 charge."""
    with clinic(place, quotas={"ada": 1.0}) as ledger:
        ledger.deliver(ask(ledger, question="q"), "{}")
        ledger.prefer("people", "eve", 0.5)
        ledger.join("people", "gus", 0.5)
        ledger.refresh("people", people(PEOPLE | {"ann": 500_000, "hal": 100_000}), fingerprint="second")
        ledger.declare(visits(individual=True))
        offer = ledger.offer("people", model="individual")
        ledger.charge(offer, all_of(offer), table="visits", analyst="ada", memo="")
        assert ledger.head().startswith("10:")


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "ledger"
    work(str(path))
    return path


@pytest.fixture
def busy(original: Path, tmp_path: Path) -> str:
    """A ledger that has seen everything, for this test alone."""
    return str(shutil.copy(original, tmp_path))


def first_bad(audit: LedgerAudit) -> int | None:
    """Return the first entry with a finding."""
    return min((one.entry for one in audit.findings if one.entry is not None), default=None)


def tamper(place: str, *statements: str) -> None:
    with Ledger(place) as ledger, ledger._store.writing() as tx:
        for statement in statements:
            tx.db.exec_driver_sql(statement.replace("%", "%%"))


def test_an_honest_ledger_passes_and_another_does_not(place):
    work(place)
    audit = audit_ledger(place)
    assert ((), 10, None) == (audit.findings, audit.entries, first_bad(audit))
    assert audit_ledger(place, head=audit.head).passed
    assert f"every promise on record was kept\n10 entries; head {audit.head}\n" in str(audit)
    tamper(place, TAMPERING["charge"][0])
    assert 4 == first_bad(audit_ledger(place))
    assert "\n4      " in str(audit_ledger(place))


TAMPERING = {
    "entry text": ("UPDATE discretion_entry SET body = replace(body, 'SELECT 1', 'SELECT 2') WHERE seq = 4", 4),
    "entry hash": (f"UPDATE discretion_entry SET hash = '{'0' * 64}' WHERE seq = 5", 5),
    "entry removed": ("DELETE FROM discretion_entry WHERE seq = 6", 6),
    "entry kind": ("UPDATE discretion_entry SET kind = 'change' WHERE seq = 5", 5),
    "question": ("UPDATE discretion_entry SET question = 'r' WHERE seq = 5", 5),
    "settles": ("UPDATE discretion_entry SET settles = 10 WHERE seq = 5", 5),
    "end": ("UPDATE discretion_ledger SET seq = 9", None),
    "balance": ("UPDATE discretion_cohort SET micro_spent = 0 WHERE micro_spent = 10000", None),
    "head-count": ("UPDATE discretion_cohort SET people = people + 1 WHERE id = 2", None),
    "balances digest": ("UPDATE discretion_register SET balances = ''", 8),
    "charge": ("UPDATE discretion_charge SET micro_epsilon = 1 WHERE seq = 4", 4),
    "charge removed": ("DELETE FROM discretion_charge WHERE seq = 4", 4),
    "charge added": ("INSERT INTO discretion_charge VALUES (2, 5, 1, 0, 0)", 5),
    "account": ("UPDATE discretion_charge SET micro_epsilon = 9, micro_individual = 0 WHERE micro_individual > 0", 10),
    "person": ("UPDATE discretion_person SET micro_epsilon = 500000 WHERE person = 'ben'", 2),
    "person removed": ("DELETE FROM discretion_person WHERE person = 'ben'", 2),
    "newcomer": ("DELETE FROM discretion_person WHERE person = 'gus'", 7),
    "stranger": ("INSERT INTO discretion_person VALUES (1, 'zoe', 5, 99)", 99),
    "change": ("UPDATE discretion_change SET cohort = 2 WHERE person = 'eve'", 6),
    "change removed": ("DELETE FROM discretion_change WHERE person = 'ann'", 8),
    "change added": ("INSERT INTO discretion_change VALUES (1, 'ben', 4, 2, 5, 'person')", 4),
    "fingerprint": ("UPDATE discretion_register SET fingerprint = 'first'", 8),
    "levels": ("UPDATE discretion_register SET levels = '[5000000]'", 8),
    "register": ("UPDATE discretion_register SET name = 'persons'", 8),
    "declaration": ("UPDATE discretion_table SET body = replace(body, 'true', 'false')", None),
    "quota": ("DELETE FROM discretion_quota", None),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_found_and_the_first_bad_entry_named(busy, what):
    statement, expected = TAMPERING[what]
    tamper(busy, statement)
    audit = audit_ledger(busy)
    assert not audit.passed
    assert expected == first_bad(audit), audit.findings
    assert not any(person in one.text.split() for one in audit.findings for person in (*PEOPLE, "gus"))


def forge(place: str, seq: int, **facts: object) -> None:
    """Change one entry and seal it and all that follow anew, as somebody would who knows how hashes work."""
    with Ledger(place) as ledger, ledger._store.writing() as tx:
        rows = tx.db.exec_driver_sql("SELECT seq, body FROM discretion_entry ORDER BY seq").all()
        previous = "0" * 64
        for number, body in rows:
            told = json.loads(body) | {"previous": previous} | (facts if number == seq else {})
            text = canonical({key: value for key, value in told.items() if value is not ...})
            previous = digest(text)
            update = sa.text("UPDATE discretion_entry SET body = :body, hash = :hash WHERE seq = :seq")
            tx.db.execute(update, {"body": text, "hash": previous, "seq": number})
        tx.db.execute(sa.text("UPDATE discretion_ledger SET hash = :hash"), {"hash": previous})
    forget()


@pytest.mark.parametrize(
    ("seq", "facts"),
    [
        (2, {"cohorts": [[1, 0, 1], [2, 100_000, 9], [3, 500_000, 2], [4, 1_000_000, 1]]}),
        (3, {"declaration": {"name": "visits"}}),
        (4, {"losses": [[10_000, 0, [2]]]}),
        (4, {"losses": [[2_000_000, 0, [4]]]}),
        (4, {"losses": [[10_000, 5, [2]]]}),
        (4, {"losses": [[10_000, 0, [77]]]}),
        (4, {"share": "1/1000"}),
        (4, {"share": "a lot"}),
        (4, {"guarantee": {"model": "individual", "arithmetic": "exact", "unit": "person"}}),
        (4, {"guarantee": {"model": "personalized", "arithmetic": "exact", "unit": "row"}}),
        (4, {"guarantee": {"model": "personalized", "arithmetic": "float", "unit": "person"}}),
        (4, {"table": "elsewhere"}),
        (4, {"kind": "gift"}),
        (5, {"charge": 3}),
        (5, {"question": "another"}),
        (6, {"flows": [[4, 3, 2]]}),
        (6, {"created": [[5, 500_000, 0, 0, 0, 0]]}),
        (6, {"created": [[5, 500_000, 400_000, 0, 0, 0]]}),
        (7, {"register": ...}),
    ],
)
def test_an_entry_that_breaks_the_rules_is_found_even_if_the_chain_holds(busy, seq, facts):
    head = audit_ledger(busy).head
    forge(busy, seq, **facts)
    audit = audit_ledger(busy)
    assert seq == first_bad(audit), audit.findings
    assert any("history differs" in one.text for one in audit_ledger(busy, head=head).findings) or audit.entries < 10


def test_a_forged_chain_shows_by_an_earlier_head_alone(busy):
    head = audit_ledger(busy).head
    forge(busy, 4, memo="SELECT 2")
    assert audit_ledger(busy).passed
    assert 10 == first_bad(audit_ledger(busy, head=head))


def test_an_entry_sealed_anew_breaks_the_chain_behind_it(busy):
    with Ledger(busy) as ledger, ledger._store.writing() as tx:
        body = tx.db.scalar(sa.text("SELECT body FROM discretion_entry WHERE seq = 4")).replace("SELECT 1", "SELECT 2")
        update = sa.text("UPDATE discretion_entry SET body = :body, hash = :hash WHERE seq = 4")
        tx.db.execute(update, {"body": body, "hash": digest(body)})
    audit = audit_ledger(busy)
    assert (5, 1) == (first_bad(audit), len(audit.findings))
    assert "does not follow" in audit.findings[0].text


def test_two_answers_for_one_charge_are_found(busy):
    with Ledger(busy) as ledger:
        ledger.deliver(ask(ledger), "{}")  # 11, 12
    forge(busy, 12, charge=4, question="q")
    tamper(busy, "UPDATE discretion_entry SET settles = NULL WHERE seq = 5")
    found = {(one.entry, one.text) for one in audit_ledger(busy).findings}
    assert (12, "One charge paid for two answers.") in found


def test_a_restored_old_copy_shows(tmp_path):
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    with clinic(str(path)) as ledger:
        shutil.copy(path, copy)
        ask(ledger)
        head = ledger.head()
    shutil.copy(copy, path)
    forget()
    assert audit_ledger(str(path)).passed
    audit = audit_ledger(str(path), head=head)
    assert ["an old copy was put back" in one.text for one in audit.findings] == [True]


@pytest.mark.parametrize("head", ["", "10", "x:" + "0" * 64, "1:abc"])
def test_a_malformed_head_is_refused(tmp_path, head):
    clinic(str(tmp_path / "ledger")).close()
    with pytest.raises(InvalidDeclaration, match="A head looks like"):
        audit_ledger(str(tmp_path / "ledger"), head=head)


def test_a_seal_cannot_be_guessed_by_who_knows_everything_but_one_row(busy):
    """Entries hold digests of sources, and their seals are shown: each has a secret number that nobody is shown."""
    with Ledger(busy) as ledger, ledger._store.reading() as db:
        bodies = [json.loads(body) for body in db.execute(sa.text("SELECT body FROM discretion_entry")).scalars()]
        shown = ledger.history().to_pylist(), ledger.receipt("people", "eve").to_dict(), ledger.head()
    salts = [body.pop("salt") for body in bodies]
    assert (10, 10, {32}) == (len(bodies), len(set(salts)), {len(salt) for salt in salts})
    assert not [salt for salt in salts if salt in str(shown)]
    for number, body in enumerate(bodies[:-1]):  # everything else is known: `previous` is a seal
        assert digest(canonical(body)) != bodies[number + 1]["previous"]
        assert digest(canonical(body | {"salt": salts[number]})) == bodies[number + 1]["previous"]


def test_two_ledgers_with_the_same_history_have_other_seals(tmp_path, monkeypatch):
    monkeypatch.setattr("discretion.ledger.clock.Clock.now", lambda _: "2026-01-01T00:00:00.000+00:00")
    heads = []
    for name in ("one", "other"):
        work(str(tmp_path / name))
        heads.append(audit_ledger(str(tmp_path / name)).head)
    assert heads[0] != heads[1]

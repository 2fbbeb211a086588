"""Long lists in parts: a person's answers and an analyst's questions, newest first, are the whole list in pieces."""

import pytest

from clinics import clinic
from discretion.ledger import history


@pytest.fixture
def db(tmp_path):
    with clinic(tmp_path) as made:
        made.sql("SELECT COUNT(*) FROM patients WHERE age > 20", share=0.01)
        made.prefer(3, 0.2)
        made.sql("SELECT COUNT(*) FROM visits", share=0.01)
        made.prefer(3, 5)
        made.sql("SELECT COUNT(*) FROM patients WHERE age > 30", share=0.01)
        made._analyst = "bob"
        made.sql("SELECT COUNT(*) FROM patients WHERE age > 40", share=0.01)
        yield made


def parts(read, most):
    """Read a list in parts of `most`, as pages do."""
    found, before = [], None
    while got := read(before=before, most=most):
        assert len(got) <= most
        found += got
        before = got[-1].seq
    return found


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_a_persons_answers_in_parts_are_those_of_the_receipt(db, most):
    ledger = db._ledger
    whole = ledger.receipt("patients", 3)
    assert 4 == len(whole.releases)
    assert list(reversed(whole.releases)) == parts(lambda **part: ledger.uses("patients", 3, **part), most)


@pytest.mark.parametrize("most", [0, 2])
def test_a_receipt_with_few_answers_still_counts_all_of_them(db, most):
    whole, short = db._ledger.receipt("patients", 3), db._ledger.receipt("patients", 3, most=most)
    assert whole.releases[len(whole.releases) - most :] == short.releases
    assert (whole.summary, whole.rounding, whole.spent) == (short.summary, short.rounding, short.spent)
    assert "4 answers so far" in short.summary
    assert whole.statements[-1].entry in db._ledger.history()["entry"].to_pylist()


@pytest.mark.parametrize("block", [1, 2, 200])
def test_questions_in_parts_are_the_charges_of_the_history(db, monkeypatch, block):
    monkeypatch.setattr(history, "BLOCK", block)
    ledger = db._ledger
    charged = [row for row in ledger.history().to_pylist() if row["kind"] == "charge"]
    found = parts(lambda **part: ledger.askings(**part), 2)
    assert [row["entry"] for row in reversed(charged)] == [one.entry for one in found]
    assert all(one.answered and one.share == 0.01 for one in found)
    assert ["bob"] == [one.analyst for one in ledger.askings(analyst="bob")]
    assert 3 == len(parts(lambda **part: ledger.askings(analyst="ada", **part), 1))
    assert [] == list(ledger.askings(analyst="eve"))

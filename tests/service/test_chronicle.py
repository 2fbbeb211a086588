"""A steward's pages read every entry once, however long the ledger is and however often they are loaded."""

from clinics import clinic
from discretion.ledger import Ledger
from discretion.ledger.timeline import Timeline
from discretion.service import chronicle


class Counting(Ledger):
    """A ledger that counts the entries it gives."""

    given = 0

    def entries_after(self, seq, most):
        found = super().entries_after(seq, most)
        self.given += len(found)
        return found


def test_a_look_reads_only_what_is_new_and_tells_the_same_as_the_whole_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(chronicle, "BLOCK", 3)
    with clinic(tmp_path) as db, Counting(str(tmp_path / "clinic.discretion")) as ledger:
        followed = chronicle.Chronicle(ledger)
        for age in (20, 30, 40):
            db.sql(f"SELECT COUNT(*) FROM patients WHERE age > {age}", share=0.01)
            db.prefer(age, 0.1)
            followed.days()
            assert [] == followed.notices()
        entries = Ledger.entries_after(ledger, 0, 10**6)
        assert len(entries) == ledger.given  # each of them once
        whole = Timeline()
        for entry in entries:
            whole.add(entry)
        assert whole.days == followed.days()
        assert {"ada": 3} == dict(whole.days[-1].analysts)

"""A question is told in plain values, and comes back from them as it was."""

import json

import pytest

from clinics import clinic
from discretion.ledger import Ledger
from discretion.ledger.answers import stored_question
from discretion.question import Question

ASKED = [
    {},
    {"share": 0.02},
    {"share": 0.5, "within": 3.5},
    {"mechanism": "sample", "options": {"threshold": "mean"}},
    {"assume": "gradual", "expect": (0.0, 0.25)},
    {"assume": 0.5, "with_interval": True, "partial": True},
    {"model": "individual"},
]


@pytest.mark.parametrize("how", ASKED, ids=str)
def test_a_question_comes_back_from_what_is_told_of_it(how):
    asked = Question(sql="SELECT 1", analyst="ada", **how)
    told = asked.manner()
    assert set(how) == set(told)
    assert asked == Question.again("SELECT 1", json.loads(json.dumps(told)), analyst="ada")


def test_what_a_later_version_tells_is_left_out():
    assert Question(sql="x", share=0.2) == Question.again("x", {"share": 0.2, "colour": "blue"})


def test_the_ledger_keeps_how_a_question_was_asked(tmp_path):
    sql = "SELECT AVG(age) FROM patients"
    with clinic(tmp_path) as db:
        entries = [db.sql(sql, share=0.02, assume="gradual", expect=(20, 90)).entry, db.sql(sql).entry]
        assert db.audit().passed
    with Ledger(str(tmp_path / "clinic.discretion")) as ledger:
        found = [stored_question(ledger, entry) for entry in entries]
    assert {"share": 0.02, "assume": "gradual", "expect": [20, 90]} == found[0].manner
    assert Question(sql=sql) == Question.again(sql, found[1].manner)

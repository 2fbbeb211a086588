"""A question is told in plain values, and comes back from them as it was."""

import json
from math import inf, nan

import numpy as np
import pytest

from clinics import clinic
from discretion.answer.question import Question
from discretion.errors import InvalidDeclaration
from discretion.ledger import Ledger
from discretion.ledger.answers import stored_question

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


@pytest.mark.parametrize("share", [nan, inf, -inf, 0, -0.1, 1.5, None, True, "x", "1/0"], ids=str)
def test_a_share_that_is_no_part_is_refused(share):
    with pytest.raises(InvalidDeclaration, match="share must be above 0 and at most 1"):
        Question(sql="SELECT 1", share=share)


@pytest.mark.parametrize(("share", "plain"), [(np.float32(0.25), 0.25), (np.float64(0.1), 0.1), (np.int64(1), 1)])
def test_a_share_may_be_a_number_of_numpy(share, plain):
    assert json.dumps(Question(sql="x", share=plain).facts()) == json.dumps(Question(sql="x", share=share).facts())


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

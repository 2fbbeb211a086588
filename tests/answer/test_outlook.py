"""What a question would cost, how many such are left, and what would make a silent answer speak."""

from dataclasses import replace

import pytest

from clinics import clinic
from discretion.answer import Question
from discretion.answer.outlook import _others, _relative
from discretion.errors import BudgetExhausted, QueryRefused
from discretion.release.error import Error

COUNT = "SELECT COUNT(*) FROM patients WHERE smoker"
GROUPED = "SELECT region, AVG(age), COUNT(*) FROM patients GROUP BY region ORDER BY region"


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with clinic(tmp_path_factory.mktemp("outlook")) as made:
        yield made


def test_an_outlook_says_what_is_charged_and_how_often(tmp_path):
    """The number of questions left is exact: so many are answered, and then one is refused."""
    with clinic(tmp_path) as db:
        db.sql("SELECT COUNT(*) FROM visits", share=0.3)
        before = {row["epsilon"]: row["spent"] for row in db.balance()}
        outlook = db.outlook(Question(sql=COUNT, share=0.2))
        db.sql(COUNT, share=0.2)
        after = {row["epsilon"]: row["spent"] for row in db.balance()}
        for level in outlook.levels:
            assert level.pays == pytest.approx(after[level.epsilon] - before[level.epsilon], abs=1e-9)
            assert level.spent == pytest.approx(before[level.epsilon], abs=1e-9)
        assert 0 < outlook.parts[0] <= outlook.parts[1] <= 0.2
        for n in range(outlook.left - 1):
            db.sql(COUNT.replace("smoker", f"age > {n}"), share=0.2)
        with pytest.raises(BudgetExhausted):
            db.sql("SELECT COUNT(*) FROM patients WHERE age > 77", share=0.2)


def test_those_with_nothing_left_pay_nothing_and_are_counted(tmp_path):
    with clinic(tmp_path) as db:
        db.prefer(3, 0)
        db.sql(COUNT, share=1, mechanism="minimum")
        outlook = db.outlook(Question(sql="SELECT COUNT(*) FROM visits", share=0.1))
        exhausted = [level for level in outlook.levels if level.exhausted]
        assert exhausted
        assert all(level.pays == 0 for level in exhausted if level.exhausted == level.people)
        assert 0 < outlook.parts[1] <= 0.1


def test_a_good_question_needs_no_advice(db):
    outlook = db.outlook(Question(sql=COUNT, share=0.2))
    assert ((), ()) == (outlook.silent, outlook.ways)
    assert len(outlook.errors) == len(outlook.plan["aggregates"]) == 1


def test_an_interval_with_one_longer_side_is_as_wide_as_both_together():
    """That of COUNT(DISTINCT x) reaches further up than down."""
    ends = tuple((tail, -1.0, 9.0) for tail in (0.05, 0.025, 0.01))
    error = Error(bias=0, noise=3, limits=(0, 20), quantiles=ends)
    assert (9.0, 0.5) == (error.half_width(), _relative(error))
    assert 1.0 == _relative(Error(bias=10, noise=0, limits=(0, 20)))


def test_an_error_that_depends_on_how_many_are_selected_is_marked(db):
    """How many rows WHERE and groups leave is private; only counts and sums have the same error whatever it is."""
    asked = "SELECT COUNT(*), SUM(age), AVG(age), MEDIAN(age) FROM patients WHERE smoker"
    assert (False, False, True, True) == db.outlook(Question(sql=asked, share=0.2)).everybody[:4]


def test_a_silent_question_is_told_the_cheapest_ways_and_they_work(db):
    question = Question(sql=GROUPED, share=0.0005)
    outlook = db.outlook(question)
    assert outlook.silent
    assert 1 <= len(outlook.ways) <= 3
    assert sorted(outlook.ways, key=lambda way: (way.part, way.error)) == list(outlook.ways)
    for way in outlook.ways:
        again = db.outlook(way.question)
        assert way.silent == bool(again.silent)
        assert not way.silent
        assert way.part == pytest.approx(again.parts[1])


def test_no_smaller_share_on_the_list_would_do(db):
    outlook = db.outlook(Question(sql=COUNT, share=0.0001))
    (way,) = [way for way in outlook.ways if way.change == "share"]
    for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        if share < way.question.share:
            assert db.outlook(Question(sql=COUNT, share=share)).silent


def test_fewer_groups_and_fewer_columns_are_questions_of_their_own(db):
    found = {change: other.sql for change, other in _others(Question(sql=GROUPED))}
    assert {"share", "assume", "groups", "columns"} == set(found)
    assert "GROUP BY" not in found["groups"]
    assert "COUNT" not in found["columns"].upper()
    for sql in found.values():
        assert db.outlook(Question(sql=sql, share=0.5)).levels
    assert ["share"] == [change for change, _ in _others(Question(sql="not SQL", assume="gradual"))][:1]


def test_when_nothing_helps_the_most_promising_are_told(db, monkeypatch):
    monkeypatch.setattr("discretion.answer.outlook.SHARES", (0.0001,))
    ways = db.outlook(Question(sql="SELECT AVG(income) FROM patients", share=0.00005)).ways
    assert ways
    assert all(way.silent for way in ways)


@pytest.mark.parametrize("sql", ["SELECT age FROM patients", "SELECT 1", "SELECT COUNT(*) FROM nobody"])
def test_what_cannot_be_asked_has_no_outlook(db, sql):
    with pytest.raises(QueryRefused):
        db.outlook(Question(sql=sql))


@pytest.mark.parametrize(
    ("sql", "aggregates"),
    [
        ("SELECT n + 1 FROM (SELECT COUNT(*) AS n FROM patients WHERE smoker)", 1),
        ("SELECT (SELECT COUNT(*) FROM patients WHERE smoker) / (SELECT AVG(age) FROM patients)", 2),
    ],
)
def test_a_statement_above_released_values_has_the_outlook_of_its_parts(db, sql, aggregates):
    before = len(db.history())
    found = db.outlook(Question(sql=sql, share=0.1))
    assert aggregates == len(found.errors)
    assert 0 < found.parts[1] <= 0.1
    assert before == len(db.history())


def test_a_question_that_was_answered_is_free_however_much_is_left(tmp_path):
    with clinic(tmp_path) as db:
        question = Question(sql=COUNT, share=1.0, mechanism="minimum")
        plan, outlook = db.plan(question), db.outlook(question)
        assert not plan.answered
        assert not outlook.answered
        db.ask(question)
        for share in (1.0, 0.5):  # of what nobody has, and of what some still have
            other = replace(question, share=share, partial=share < 1)
            answered = db.plan(other).answered
            assert (share == 1.0) == answered
        told, again = str(db.plan(question)), db.outlook(question)
        assert told.startswith("This question was answered before: asking it again is free.")
        assert db.plan(question).to_dict()["answered"]
        assert plan.choices[0].chosen.name == db.plan(question).choices[0].chosen.name
        assert (True, None, (0.0, 0.0)) == (again.answered, again.left, again.parts)
        assert [level.spent for level in again.levels] != [level.spent for level in outlook.levels]
        with pytest.raises(BudgetExhausted):
            db.plan(replace(question, sql=COUNT.replace("smoker", "NOT smoker")))


def test_some_aggregates_and_other_names_of_an_answered_question_are_free(tmp_path):
    with clinic(tmp_path) as db:
        db.sql("SELECT COUNT(*) AS n, AVG(age) AS m FROM patients WHERE smoker")
        assert db.explain("SELECT AVG(age) AS other FROM patients WHERE smoker").answered
        assert db.explain("SELECT n / 2 AS half FROM (SELECT COUNT(*) AS n FROM patients WHERE smoker)").answered
        assert not db.explain("SELECT AVG(age), SUM(age) FROM patients WHERE smoker").answered
        assert not db.explain("SELECT AVG(age) FROM patients WHERE smoker", share=0.2).answered


def test_what_others_asked_is_not_told_where_only_own_questions_count(tmp_path):
    """A guess at the literals of another analyst's question would be free: asking costs something."""
    with clinic(tmp_path) as db:
        db.ask(Question(sql=COUNT, analyst="ada"))
        for analyst, expected in {"ada": True, "bob": False, "": False}.items():
            asked = Question(sql=COUNT, analyst=analyst)
            assert expected == db.plan(asked, own=True).answered
            assert expected == db.outlook(asked, own=True).answered
            assert db.plan(asked).answered

"""Which aggregates of a SELECT are released together, what that costs, and that it never makes one worse."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from clinics import clinic
from discretion.answer import Question, answer, conclude, draw, explain
from discretion.connection import connect
from discretion.engines.duckdb import DuckDB
from discretion.errors import Unsuitable
from discretion.ledger import Ledger
from discretion.mechanisms import Belief
from discretion.noise import simulation
from discretion.plan import choose
from discretion.plan.assumption import reach
from discretion.plan.family import Family, families
from discretion.preference import Specification
from discretion.query import parse
from discretion.render.number import upwards
from discretion.statistics import Aggregate


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    clinic(folder, required=["age"]).close()
    with Ledger(str(folder / "clinic.discretion")) as opened:
        yield opened


def parsed(sql, ledger):
    return parse(sql, {table.name: table for table in ledger.tables()})


def planned(sql, ledger, **how):
    query = parsed(sql, ledger)
    return query, explain(Question(sql=sql, **how), ledger=ledger)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits", [((0, 1, 2), 2, None)]),
        ("SELECT COUNT(*), AVG(cost) FROM visits", [((0, 1), 1, 0)]),
        ("SELECT AVG(cost), STDDEV(cost), COUNT(*), COUNT(cost) FROM visits", [((0, 1, 2, 3), 1, 2)]),
        ("SELECT department, COUNT(*), SUM(cost) FROM visits GROUP BY department", [((0, 1), 1, 0)]),
        ("SELECT COUNT(*), AVG(cost) FILTER (WHERE cost > 9) FROM visits", [((0, 1), 1, 0)]),
        ("SELECT COUNT(*) FILTER (WHERE cost > 9), AVG(cost) FILTER (WHERE cost > 9) FROM visits", [((0, 1), 1, 0)]),
        ("SELECT AVG(cost), SUM(cost + 1), SUM(cost) FROM visits", [((0, 2), 0, None)]),
        ("SELECT AVG(income), SUM(income), AVG(age), SUM(age) FROM patients", [((0, 1), 0, None), ((2, 3), 2, None)]),
        (
            "SELECT COUNT(*), AVG(income), SUM(income) FROM patients",
            [((1, 2), 1, None)],
        ),  # how many are there is public
        ("SELECT COUNT(*), COUNT(age), AVG(age) FROM patients WHERE smoker", [((0, 1, 2), 2, None)]),  # age: never NULL
        ("SELECT COUNT(*), AVG(income) FROM patients WHERE smoker", [((0, 1), 1, 0)]),
        # Not together: a count of fewer rows, of people, and whatever is no sum.
        ("SELECT COUNT(*) FILTER (WHERE cost > 9), AVG(cost) FROM visits", []),
        ("SELECT COUNT(*) FILTER (WHERE cost > 9), AVG(cost) FILTER (WHERE cost > 8) FROM visits", []),
        ("SELECT COUNT(income), AVG(age) FROM patients WHERE smoker", []),
        ("SELECT COUNT(DISTINCT patient_id), AVG(cost) FROM visits", []),
        ("SELECT MEDIAN(cost), AVG(cost) FROM visits", []),
        ("SELECT COUNT(*), COUNT(cost) FROM visits", []),
    ],
)
def test_aggregates_over_the_same_rows_and_column_are_a_family(ledger, sql, expected):
    found = families(parsed(sql, ledger).asked)
    assert expected == [(family.places, family.base, family.wide) for family in found]


def test_a_family_that_is_not_better_as_a_whole_is_tried_without_its_variance_and_wider_count(ledger):
    (family,) = families(parsed("SELECT COUNT(*), SUM(cost), AVG(cost), STDDEV(cost) FROM visits", ledger).asked)
    assert [(0, 1, 2), (1, 2, 3), (1, 2)] == [smaller.places for smaller in family.smaller]
    assert [2, 3, 2] == [smaller.base for smaller in family.smaller]
    sql = "SELECT COUNT(*), SUM(income), AVG(income) FROM patients WHERE smoker"  # value, one group: no third sum
    _, plan = planned(sql, ledger)
    assert [(1, 2)] == [family.places for family in plan.families]
    assert ["weighted", "joint", "joint"] == [choice.chosen.name for choice in plan.choices]


@pytest.mark.parametrize("assume", [None, "independent"])
def test_a_family_is_charged_once_and_every_answer_is_better(ledger, assume):
    sql = "SELECT COUNT(*), SUM(cost), AVG(cost), MEDIAN(cost) FROM visits"
    query, plan = planned(sql, ledger, assume=assume, share=0.4)
    assert (0, 1, 2) == plan.families[0].places
    assert ["joint", "joint", "joint"] == [choice.chosen.name for choice in plan.choices[:3]]
    offered = plan.specification.times(3)
    assert plan.choices[0].mechanism.guarantee.honours(offered)
    losses = [loss.micro_epsilon for loss in plan.guarantee.losses.values()]
    parts = [
        [loss.micro_epsilon for loss in choice.mechanism.guarantee.losses.values()]
        for choice in (plan.choices[0], plan.choices[3])
    ]
    assert losses == [a + b for a, b in zip(*parts, strict=True)]
    alone = choose(query.aggregates, plan.specification, Belief(assume=assume))
    for together, separate in zip(plan.choices[:3], alone.choices, strict=False):
        assert together.mechanism.error.total < separate.mechanism.error.total
    assert "are computed from one release" in str(plan)
    assert "split over 2 releases" in str(plan)


def test_the_ledger_is_charged_what_the_plan_says(tmp_path):
    with clinic(tmp_path) as db:
        before = db.balance()
        release = db.sql("SELECT COUNT(*), SUM(cost), AVG(cost) FROM visits", share=0.3)
        spent = [after["spent"] - first["spent"] for first, after in zip(before, db.balance(), strict=True)]
    assert "joint" == release.mechanism
    charged = [loss.micro_epsilon / 1e6 for loss in release.guarantee.losses.values()]
    assert pytest.approx(sorted(charged)) == sorted(spent)
    assert all(paid <= 0.3 * level + 1e-9 for paid, level in zip(sorted(spent), (0.2, 1.0, 5.0), strict=True))


def test_answers_are_near_the_truth_and_agree_with_one_another(ledger):
    sql = (
        "SELECT department, COUNT(cost), SUM(cost), AVG(cost), VAR_POP(cost), COUNT(*) FROM visits GROUP BY department"
    )
    query, plan = planned(sql, ledger, share=0.9)
    statistics = DuckDB().compute(plan.request)
    rng = simulation(3)
    release = conclude(query, plan, draw(query, plan, statistics, rng), rng=rng)
    mean = plan.choices[2].aggregate
    for row, (counts, totals) in enumerate(zip(statistics[2].counts, statistics[2].totals, strict=True)):
        rows, total = int(counts.sum()), float(mean.origin) * int(counts.sum()) + float(mean.step) * int(totals.sum())
        truths = [rows, total, total / rows, None, int(statistics[4].counts[row].sum())]
        for name, truth in zip(list(release.columns)[1:], truths, strict=True):
            low, high = release.errors[name][row].interval(release.columns[name][row], 0.9999)
            assert truth is None or low <= truth <= high


def test_noise_that_columns_share_adds_up_in_what_is_computed_from_them(ledger):
    sql = "SELECT SUM(cost) - 100 * COUNT(cost) AS more, SUM(cost) AS s, COUNT(cost) AS n FROM visits"
    query, plan = planned(sql, ledger)
    rng = simulation(1)
    release = conclude(query, plan, draw(query, plan, DuckDB().compute(plan.request), rng), rng=rng)
    more, s, n = (release.errors[name][0].noise for name in ("more", "s", "n"))
    assert pytest.approx(s + 100 * n) == more


def test_a_mechanism_asked_for_by_name_is_used_for_each(ledger):
    _, plan = planned("SELECT COUNT(*), AVG(cost) FROM visits", ledger, mechanism="weighted")
    assert () == plan.families
    assert ["weighted", "weighted"] == [choice.chosen.name for choice in plan.choices]


def test_a_family_of_which_one_would_become_worse_is_answered_apart():
    """A sum far from 0 needs the count as well; alone, under value in one group, both are sharper."""
    count = Aggregate(kind="count", protects="value")
    total = Aggregate(kind="sum", protects="value", lower=100, upper=101)
    specification = Specification.assign(np.full(200, 0.5))[0]
    family = Family(places=(0, 1), base=1)
    plan = choose([count, total], specification, Belief(), families=[family])
    assert () == plan.families
    assert "joint" not in {choice.chosen.name for choice in plan.choices}


def test_a_plan_that_forgets_its_families_is_noticed(ledger):
    """It would draw, and owe, every answer by itself."""
    query, plan = planned("SELECT COUNT(*), AVG(cost) FROM visits", ledger)
    statistics = DuckDB().compute(plan.request)
    with pytest.raises(Unsuitable, match="released together"):
        draw(query, replace(plan, families=()), statistics, simulation(1))


def test_a_stored_joint_answer_is_served_again(tmp_path):
    clinic(tmp_path).close()
    with Ledger(str(tmp_path / "clinic.discretion")) as opened:
        question = Question(sql="SELECT COUNT(*), AVG(cost) FROM visits")
        first, second = (answer(question, engine=DuckDB(), ledger=opened) for _ in range(2))
    assert first.columns == second.columns


def test_a_plan_needs_no_root_of_a_negative_number(tmp_path):
    with connect(tmp_path / "l.discretion") as db:
        people = pa.table({"pid": range(500), "epsilon": [10.0] * 500, "a": [n % 80 - 20 for n in range(500)]})
        db.protect("t", people, person="pid", epsilon="epsilon", bounds={"a": (-20, 60)})
        plan = db.explain("SELECT COUNT(a) AS c, SUM(a) AS s, AVG(a) AS m FROM t WHERE a > 0", share=1.0)
    assert 3 == len(plan.choices)


def test_answers_released_together_are_compared_together(ledger):
    """One line for each answer and assumption, with the errors that the same question would have under it."""
    sql = "SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits"
    _, plan = planned(sql, ledger)
    assert plan.families
    assert 9 == len(plan.comparison)
    for number, assume in enumerate(("nothing", "gradual", "independent")):
        _, other = planned(sql, ledger, assume=None if assume == "nothing" else assume)
        for place, choice in enumerate(other.choices):
            prediction = plan.choices[place].predictions[number]
            assert assume == prediction.assume
            assert choice.mechanism.error == prediction.error


def test_one_line_says_what_assumptions_would_give(ledger):
    _, plan = planned("SELECT AVG(cost) FROM visits", ledger)
    (line,) = plan.hint
    assert 'with assume="gradual" or ±' in line
    assert reach(plan.choices[0].mechanism.error) in line
    _, plan = planned("SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits", ledger)
    assert 1 == len(plan.hint)
    assert "times smaller: `explain`" in plan.hint[0]
    _, plan = planned("SELECT AVG(cost) FROM visits", ledger, assume="independent")
    assert () == plan.hint


def test_what_would_be_paid_is_rounded_up():
    assert pytest.approx([40.0, 0.0104, 0.5, 0.0]) == [upwards(number, 3) for number in (39.999999, 0.010327, 0.5, 0.0)]


def test_an_assumption_that_no_mechanism_uses_is_not_compared(ledger):
    _, plan = planned("SELECT MEDIAN(cost), QUANTILE_CONT(cost, 0.25) FROM visits", ledger)
    assert ["nothing", "independent"] == [one.assume for one in plan.choices[0].predictions]


@pytest.mark.parametrize(
    ("mechanism", "sql", "how"),
    [
        ("joint", "SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits", {}),
        ("joint", "SELECT COUNT(*), AVG(income), SUM(income) FROM patients", {}),  # how many people are there is public
        ("pooled_joint", "SELECT SUM(cost), AVG(cost) FROM visits", {"assume": "gradual"}),
        ("paired", "SELECT CORR(income, age) FROM patients", {}),
    ],
)
def test_what_is_released_together_can_be_asked_for_by_its_name(mechanism, sql, how, ledger):
    _, plan = planned(sql, ledger, mechanism=mechanism, **how)
    assert {mechanism} == {choice.chosen.name for choice in plan.choices} - {"public"}
    assert 1 == len([choice for choice in plan.releases if choice.chosen.name != "public"])


@pytest.mark.parametrize(
    ("mechanism", "sql", "label"),
    [
        ("joint", "SELECT AVG(cost) FROM visits", "AVG"),
        ("joint", "SELECT SUM(cost), AVG(cost), MEDIAN(cost) FROM visits", "MEDIAN"),
        ("pooled_joint", "SELECT SUM(cost), AVG(cost) FROM visits", "SUM"),  # it needs assume="gradual"
        ("paired", "SELECT SUM(cost), AVG(cost) FROM visits", "SUM"),
    ],
)
def test_what_cannot_be_released_together_is_refused_by_its_name(mechanism, sql, label, ledger):
    with pytest.raises(Unsuitable, match=rf"Mechanism '{mechanism}' .*{label}.*Leave mechanism out"):
        planned(sql, ledger, mechanism=mechanism)

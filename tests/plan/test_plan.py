"""The planner: best first, reasons given, public information only."""

from contextlib import suppress
from fractions import Fraction
from inspect import signature
from typing import get_args

import pytest

from discretion.errors import InvalidDeclaration, InvalidPreference, Unsuitable
from discretion.mechanisms import BY_NAME, MECHANISMS, Belief
from discretion.mechanisms.option import MechanismName, Options
from discretion.plan import choose
from discretion.plan.assumption import digits
from discretion.plan.option import POSITIONS
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate

COUNT = Aggregate(kind="count", protects="value")
THREE = Specification(epsilons=(10_000, 200_000, 1_000_000), people=(540, 370, 90))


def test_the_smallest_predicted_error_is_chosen():
    (choice,) = choose([COUNT], THREE, Belief()).choices
    errors = [candidate.error.total for candidate in choice.candidates if candidate.error is not None]
    assert errors == sorted(errors)
    assert choice.chosen is choice.candidates[0]
    assert errors[0] == choice.mechanism.error.total


def test_every_mechanism_is_listed_with_an_error_or_a_reason():
    (choice,) = choose([Aggregate(kind="mean", protects="presence", upper=10)], THREE, Belief()).choices
    assert set(MECHANISMS) == {candidate.name for candidate in choice.candidates}
    assert all(candidate.error is not None or candidate.reason for candidate in choice.candidates)


@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "stretch", "partition", "exponential", "weighted"])
def test_a_mechanism_can_be_forced(name):
    (choice,) = choose([COUNT], THREE, Belief(), mechanism=name).choices
    assert name == choice.chosen.name


def test_options_reach_the_forced_mechanism_only():
    plan = choose([COUNT], THREE, Belief(), mechanism="sample", options={"threshold": 0.5})
    assert 500_000 == plan.choices[0].mechanism.threshold
    assert [10_000, 200_000, 500_000] == [loss.micro_epsilon for loss in plan.guarantee.losses.values()]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"options": {"threshold": 0.5}}, "need mechanism="),
        ({"mechanism": "best"}, "must be 'auto' or one of 'public', "),
        (
            {"mechanism": "sample", "options": {"cap": 1}},
            "'sample' has no option 'cap'; it has 'rescaled', 'threshold'",
        ),
        ({"mechanism": "minimum", "options": {"cap": 1}}, "'minimum' has no option 'cap'; it has none"),
    ],
)
def test_bad_choices_are_refused(asked, says):
    with pytest.raises(InvalidDeclaration, match=says):
        choose([COUNT], THREE, Belief(), **asked)


def test_every_option_and_name_has_a_type():
    """Editors complete `options` and `mechanism` from these types."""
    known = {name for propose in MECHANISMS.values() for name in signature(propose).parameters} - POSITIONS
    individual = {"place", "discrete", "group_epsilon"}  # of model "individual"
    assert known | individual == set(Options.__annotations__)
    assert {"auto", *MECHANISMS} == set(get_args(MechanismName))


def test_a_forced_mechanism_that_cannot_answer_says_why():
    with pytest.raises(
        Unsuitable, match=r"Mechanism 'exponential' cannot answer mean\. It answers only an ungrouped count"
    ):
        choose([Aggregate(kind="mean", protects="value")], THREE, Belief(), mechanism="exponential")


def test_nobody_with_a_budget_is_refused():
    with pytest.raises(InvalidPreference, match="above 0"):
        choose([COUNT], Specification(epsilons=(0,), people=(5,)), Belief())


def test_noise_that_cannot_be_drawn_exactly_is_refused_before_anybody_is_charged():
    with pytest.raises(Unsuitable, match=r"(?s)No mechanism answers sum:\n  .*weighted.*: Its noise.*coarser grid"):
        choose([Aggregate(kind="sum", protects="value", upper=2**60)], THREE, Belief())


def test_charges_of_several_aggregates_add_up():
    plan = choose([COUNT, COUNT], THREE, Belief(), mechanism="minimum")
    assert [20_000] * 3 == [loss.micro_epsilon for loss in plan.guarantee.losses.values()]
    assert 2 == len(plan.request.measures)


def test_an_exact_answer_is_preferred_to_every_noisy_one():
    (choice,) = choose([Aggregate(kind="people", protects="value", complete=True)], THREE, Belief()).choices
    assert "public" == choice.chosen.name


def test_the_explanation_has_everything():
    text = str(choose([COUNT], THREE, Belief(expect=(0, 0.5))))
    assert text.startswith("count: weighted\nmechanism ")
    for name in MECHANISMS:
        assert f"\n{name} " in text or f"\nnot {name}: " in text
    assert "assumes every cohort between 0 and 0.5: accuracy rests on it, privacy does not" in text
    assert "plain DP with everybody at the strictest ε = 0.01: RMSE 141, " in text
    assert "\n   540     0.01" in text
    assert "not public: The answer depends on values" in text


def test_large_errors_are_written_out():
    few = Specification(epsilons=(10, 20), people=(500, 500))
    text = str(choose([COUNT], few, Belief()))
    assert "e+" not in text
    assert "plain DP with everybody at the strictest ε = 1e-05: RMSE 141,421" in text


def test_a_plan_is_a_table_in_a_notebook_and_text_elsewhere():
    plan = choose([COUNT], THREE, Belief())
    assert str(plan) == repr(plan)
    html = plan._repr_html_()
    for text in ("<b>count: weighted</b>", "<b>What people pay</b>", "personalized differential privacy"):
        assert text in html, text
    assert html.count("<table>") == html.count("</table>") == 2


def test_a_long_list_of_charges_is_shortened():
    specification = Specification(epsilons=tuple(range(10_000, MICRO + 1, 10_000)), people=(5,) * 100)
    text = str(choose([COUNT], specification, Belief()))
    assert "... 92 more levels" in text


def test_personalisation_never_costs_accuracy():
    """The best candidate is at least as good as plain DP, whatever the levels."""
    for levels in [(10_000,), (10_000, 20_000), (1_000, 999_000), (500_000, 500_001, 900_000)]:
        specification = Specification(epsilons=levels, people=(50,) * len(levels))
        for protects in ("value", "presence"):
            for kind in ("count", "sum", "mean", "variance"):
                aggregate = Aggregate(kind=kind, protects=protects, upper=8 if kind != "count" else 1)
                (choice,) = choose([aggregate], specification, Belief()).choices
                plain = next(c for c in choice.candidates if c.name == "minimum")
                assert choice.mechanism.error.total <= plain.error.total


def test_what_auto_cannot_choose_is_not_tuned(monkeypatch):
    """Tuning `smooth` took up to half of the time of a median."""
    asked = Aggregate(kind="quantile", protects="value", upper=10, rank=Fraction(1, 2), complete=True)
    tuned = []
    monkeypatch.setitem(MECHANISMS, "smooth", lambda *shape, **options: tuned.append(shape))
    plan = choose([asked], THREE, Belief())
    assert [] == tuned
    assert "Ask for it by name" in str(plan)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("kind", ["count", "sum", "mean", "variance", "quantile", "mode"])
def test_every_mechanism_without_exact_arithmetic_is_used_by_name_only(name, kind):
    rank = Fraction(1, 2) if kind == "quantile" else None
    asked = Aggregate(kind=kind, protects="value", upper=4, rank=rank, complete=kind != "count")
    with suppress(Unsuitable):
        arithmetic = MECHANISMS[name](asked, THREE, Belief()).guarantee.arithmetic
        assert ("float" == arithmetic) == (name in BY_NAME)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("kind", ["count", "mean", "quantile"])
def test_cohorts_may_have_the_same_amount_to_spend(name, kind):
    """Amounts that were divided by six and rounded down: cohorts are named by their places."""
    equal = Specification(epsilons=(0, 0, 1, 1, 1, 200_000, 200_000), people=(3, 0, 5, 5, 5, 0, 90))
    asked = Aggregate(kind=kind, protects="value", upper=4, rank=Fraction(1, 2) if kind == "quantile" else None)
    with suppress(Unsuitable):
        guarantee = MECHANISMS[name](asked, equal, Belief(assume="gradual")).guarantee
        assert guarantee.honours(equal)
        assert list(range(7)) == list(guarantee.losses)


def test_errors_have_as_many_digits_as_can_be_read():
    assert ["34,360", "0.00254", "<1e-09", "0"] == [digits(one) for one in (34_359.7, 0.002541, 2.7e-22, 0.0)]

"""Every parameter from every door: options, parameters, errors that are large enough, and where a mistake is."""

from dataclasses import replace

import pytest

from clinics import clinic
from discretion.answer import Question
from discretion.answer.state import earlier_identity_of, identity_of
from discretion.errors import InvalidDeclaration, QueryRefused, Unsuitable
from discretion.plan.option import checked, options_of

COUNT = "SELECT COUNT(*) FROM patients WHERE smoker"
MEDIAN = "SELECT MEDIAN(age) FROM patients"


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with clinic(tmp_path_factory.mktemp("asking")) as opened:
        yield opened


# Options ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("sample", {"threshold": "max"}),
        ("sample", {"threshold": "mean"}),
        ("sample", {"threshold": 0.3, "rescaled": True}),
        ("threshold", {"threshold": "mean"}),
        ("partition", {"groups": 2, "cuts": "privacy", "rounds": 2, "smallest": 10, "ensemble": "homogeneous"}),
        ("weighted", {"cap": 0.2}),
        ("stretch", {"cap": "mean"}),
        ("exponential", {"rule": "permute_and_flip"}),
    ],
)
def test_options_reach_the_mechanism_and_are_shown(town, mechanism, options):
    plan = town.explain(COUNT, mechanism=mechanism, options=options)
    assert options == plan.options == plan.to_dict()["options"]
    assert f"options: {', '.join(f'{name} = {options[name]}' for name in sorted(options))}" in str(plan)
    plain = town.explain(COUNT, mechanism=mechanism)
    assert plain.choices[0].mechanism != plan.choices[0].mechanism


def test_the_thresholds_of_the_paper_are_those_of_the_register(town):
    offered = town.explain(COUNT).specification
    most, mean = (
        town.explain(COUNT, mechanism="sample", options={"threshold": name}).choices[0].mechanism.threshold
        for name in ("max", "mean")
    )
    assert offered.epsilons[-1] == most
    assert int(offered.heads @ offered.micro) // offered.size == mean


def test_an_answer_with_options_is_charged_once_and_says_them(town):
    asked = {"mechanism": "sample", "options": {"threshold": "mean"}, "share": 0.01}
    release = town.sql(COUNT, **asked)
    assert "options: threshold = mean" in release.explain()
    assert release.entry == town.sql(COUNT, **asked).entry
    assert release.entry != town.sql(COUNT, mechanism="sample", share=0.01).entry


@pytest.mark.parametrize(
    ("mechanism", "options", "said"),
    [
        ("sample", {"treshold": "mean"}, "Did you mean 'threshold'"),
        ("sampel", {"threshold": "mean"}, "Did you mean 'sample'"),
        ("sample", {"threshold": "average"}, r"must be \"max\" or \"mean\" or \"best\" or a finite number"),
        ("sample", {"threshold": True}, "a finite number, got True"),
        ("sample", {"threshold": float("nan")}, "a finite number, got nan"),
        ("sample", {"rescaled": 1}, "true or false or nothing, got 1"),
        ("partition", {"groups": 2.5}, "a whole number or nothing"),
        ("partition", {"cuts": "other"}, r"\"precision\" or \"privacy\""),
        ("auto", {"threshold": "mean"}, "need mechanism="),
        ("minimum", {"cap": 1}, "it has none"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_charged(town, mechanism, options, said):
    before = len(town.history())
    with pytest.raises(InvalidDeclaration, match=said):
        town.sql(COUNT, mechanism=mechanism, options=options)
    assert before == len(town.history())


def test_every_option_of_every_mechanism_has_a_type_in_words():
    for name in ("sample", "threshold", "partition", "weighted", "stretch", "exponential", "smooth", "pooled"):
        for option in options_of(name):
            with pytest.raises(InvalidDeclaration, match=f"Option '{option}' must be"):
                checked(name, {option: object()})


def test_questions_without_options_keep_the_identity_they_had():
    """The digest of version 0.2, which knew neither options nor `within`: stored answers stay free."""
    from hashlib import sha256
    from json import dumps

    from discretion.declaration.table import Table
    from discretion.query import parse

    table = Table(
        name="t", source="t.parquet", register="t", person="p", protects="value", columns={"p": "BIGINT", "e": "DOUBLE"}
    )
    query = parse("SELECT COUNT(*) FROM t", {"t": table})
    question = Question(sql="SELECT COUNT(*) FROM t", expect=(0.0, 1.0))
    known = {"sql": query.text, "share": 0.1, "mechanism": "auto", "assume": None, "expect": [0.0, 1.0]}
    known |= {"with_interval": False, "partial": False, "analyst": ""}
    expected = sha256(dumps([known, table.identity, []], sort_keys=True).encode()).hexdigest()
    assert expected == earlier_identity_of(question, query, [])
    others = [
        replace(question, mechanism="sample"),
        replace(question, mechanism="sample", options={"threshold": 1}),
        replace(question, mechanism="sample", options={"threshold": "max"}),
        replace(question, within=3.0),
        replace(question, within=4.0),
    ]
    assert len({identity_of(one, query, []) for one in (question, *others)}) == 1 + len(others)
    same = replace(question, mechanism="sample", options={"threshold": 1.0})
    assert identity_of(others[1], query, []) == identity_of(same, query, [])
    assert identity_of(others[3], query, []) == identity_of(replace(others[3], share=0.5), query, [])


# Parameters ---------------------------------------------------------------------------------------------------------


def test_a_question_with_parameters_is_the_question_with_the_values_in_it(town):
    written = town.sql("SELECT COUNT(*) FROM patients WHERE age > 40 AND region = 'N'", share=0.01)
    first = town.sql("SELECT COUNT(*) FROM patients WHERE age > ? AND region = ?", share=0.01, params=[40, "N"])
    named = town.sql(
        "SELECT COUNT(*) FROM patients WHERE age > $age AND region = $region",
        share=0.01,
        params={"age": 40, "region": "N"},
    )
    assert written.entry == first.entry == named.entry
    asked = [use.question for use in town.receipt(17).releases if "age > ?" in use.question]
    assert ["SELECT COUNT(*) FROM patients WHERE age > ? AND region = ?"] == asked  # receipts show no literals


# Errors that are small enough ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "within"), [(COUNT, 400), (COUNT, 2_000), (MEDIAN, 0.2), ("SELECT AVG(age), COUNT(*) FROM patients", 9)]
)
def test_within_uses_the_smallest_share_that_is_enough(town, sql, within):
    plan = town.explain(sql, within=within, share=1)
    assert within >= max(choice.mechanism.error.half_width() for choice in plan.choices)
    assert f"share {plan.share:g} of" in str(plan)
    less = town.explain(sql, share=plan.share * 0.98)
    assert within < max(choice.mechanism.error.half_width() for choice in less.choices)


def test_an_answer_within_an_error_is_charged_its_share_only_and_asked_again_for_nothing(town):
    sql = "SELECT COUNT(*) FROM patients WHERE age < 30"
    plan = town.explain(sql, within=500)
    release = town.sql(sql, within=500)
    assert plan.guarantee == release.guarantee
    assert 500 >= release.error.half_width()
    assert release.entry == town.sql(sql, within=500, share=0.9).entry


@pytest.mark.parametrize(
    ("sql", "asked", "said"),
    [
        (COUNT, {"within": 100, "share": 0.001}, r"needs a share of 0\.1\d+, and share = 0.001"),
        (COUNT, {"within": 0.001}, "is not possible: .* the error is"),
        ("SELECT STDDEV(age) FROM patients", {"within": 5}, "about aggregates"),
        ("SELECT MEDIAN(age), AVG(age) FROM patients", {"within": 5}, "cannot mean both"),
        (MEDIAN, {"within": 100}, r"within for .* is a share of ranks between 0 and 0\.5, got 100"),
    ],
)
def test_an_error_that_is_too_small_is_refused_with_what_is_possible(town, sql, asked, said):
    before = len(town.history())
    with pytest.raises(QueryRefused, match=said):
        town.sql(sql, **asked)
    assert before == len(town.history())


@pytest.mark.parametrize("within", [0, -1, float("nan"), float("inf"), True, "x"])
def test_within_must_be_a_number_above_0(town, within):
    with pytest.raises(InvalidDeclaration, match="within must be a number above 0"):
        town.explain(COUNT, within=within)


def test_a_mechanism_that_cannot_answer_says_so_within_an_error_too(town):
    with pytest.raises(Unsuitable, match="smooth"):
        town.explain(COUNT, mechanism="smooth", within=5)

"""Figures, claims and verdicts as values."""

import csv

import pytest

from discretion.errors import InvalidDeclaration
from discretion.papers import FIGURES, plan
from discretion.papers.claim import best, compare, crossover, monotone
from discretion.papers.figure import INDIVIDUAL, Axes, Claim, Computed, Effort, Figure, Point, Points, Result, reproduce

SHAPE = {
    "title": "A figure",
    "axes": Axes(x="x", y="error"),
    "data": "two points",
    "runs": 4,
    "quick": 2,
    "steps": 2,
    "seconds": 8.0,
}


def drawn(effort):
    for x in (1.0, 2.0):
        yield [
            Point(curve="old", x=x, y=2 * x, spread=0.1),
            Point(curve="new", x=x, y=float(effort.generator("drawn", x).random()), by="auto"),
        ]


def figure(**changes):
    claim = Claim(
        text="old is best",
        check=lambda points: compare(points.y("old", 1.0), points.y("new", 1.0)),
        rule="less",
        section="1",
        quote="old is the best",
    )
    return Figure(**({"id": "test", "compute": drawn, "claims": (claim,)} | SHAPE | changes))


def points(**curves):
    rows = [Point(curve=name, x=float(x), y=y) for name, ys in curves.items() for x, y in enumerate(ys)]
    return Points(rows=tuple(rows))


def test_a_claim_that_fails_is_called_not_reproduced_with_its_number():
    outcome = reproduce(figure(), Effort(runs=2))
    assert ["not reproduced"] == [verdict.word for verdict in outcome.verdicts]
    assert "**not reproduced**: old is best (2 against 0." in outcome.text()
    assert "§1: “old is the best”. Rule: less." in outcome.text()
    assert "generated, two points" in outcome.text()
    assert "1 not reproduced" == outcome.score()


def test_what_the_data_cannot_decide_is_called_not_tested():
    undecided = Claim(text="something else", check=lambda points: Result(holds=None, number="not computed"), rule="any")
    assert "**not tested**" in reproduce(figure(claims=(undecided,)), Effort(runs=2)).text()


def test_a_question_of_ours_is_never_called_reproduced_or_not():
    for holds, word in ((True, "holds"), (False, "does not hold")):
        ours = Claim(text="what else", check=lambda points, holds=holds: Result(holds=holds, number=""), rule="any")
        assert [word] == [verdict.word for verdict in reproduce(figure(claims=(ours,)), Effort(runs=2)).verdicts]


def test_a_claim_without_its_rule_or_with_half_a_source_is_refused():
    for fields in ({"rule": ""}, {"rule": "any", "section": "1"}, {"rule": "any", "quote": "so they say"}):
        with pytest.raises(InvalidDeclaration, match="needs a rule"):
            Claim(text="something", check=lambda points: Result(holds=True, number=""), **fields)


def test_the_same_seed_gives_the_same_points_and_another_seed_others():
    first, again, other = (reproduce(figure(), Effort(runs=2, seed=seed)).points for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_csv_is_tidy(tmp_path):
    reproduce(figure(), Effort(runs=2)).write(tmp_path)
    with (tmp_path / "test.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert 4 == len(rows)
    assert {"figure": "test", "curve": "old", "x": "1", "y": "2", "spread": "0.1", "panel": "", "by": "paper"} == {
        name: rows[0][name] for name in ("figure", "curve", "x", "y", "spread", "panel", "by")
    }
    assert (tmp_path / "test.md").read_text().startswith("### A figure\n")


def test_progress_adds_up_to_the_expected_seconds():
    seconds: list[float] = []
    reproduce(figure(), Effort(runs=2), seconds.append)
    assert [2.0, 2.0] == seconds


def test_the_gain_over_the_paper_leaves_out_what_is_not_differential_privacy():
    rows = (
        Point(curve="paper", x=1.0, y=6.0),
        Point(curve="iDP", x=1.0, y=0.1, relation=INDIVIDUAL),
        Point(curve="auto", x=1.0, y=3.0, by="auto"),
    )
    outcome = Computed(
        figure=figure(claims=(Claim(text="", check=lambda points: Result(holds=True, number=""), rule="any"),)),
        points=Points(rows=rows),
        effort=Effort(runs=2),
    )
    assert ["`auto`: the best of the paper's mechanisms has 2 times its error"] == outcome.gains()


def test_checks_decide_both_ways():
    assert best("a", ["a", "b"], lambda x: x < 2)(points(a=[1, 1, 9], b=[2, 2, 2])).holds
    failing = best("a", ["a", "b"], lambda x: True)(points(a=[1, 1, 9], b=[2, 2, 2]))
    assert not failing.holds
    assert "fails at 2" in failing.number
    assert monotone(["a"], rising=True)(points(a=[1, 2, 3])).holds
    assert not monotone(["a"], rising=True)(points(a=[1, 3, 2])).holds
    assert crossover("a", ["b"], 1.5)(points(a=[9, 4, 1], b=[2, 2, 2])).holds
    assert not crossover("a", ["b"], 0.5)(points(a=[9, 4, 1], b=[2, 2, 2])).holds


def test_a_missing_point_is_refused():
    with pytest.raises(InvalidDeclaration, match="one point of 'c' at 1"):
        points(a=[1, 2]).at("c", 1)


def test_every_figure_is_listed_once_and_states_claims():
    assert 30 == len(FIGURES)
    assert all(name == figure.id for name, figure in FIGURES.items())
    assert all(figure.claims and figure.data and figure.axes.x is not None for figure in FIGURES.values())
    wanted = [f"pdp-{n}{letter}" for n in (1, 2, 3) for letter in "abcd"] + ["pdp-example1"]
    wanted += ["idp-table1", "idp-fig1", "idp-fig2", "idp-examples", "partitioning-rounds", "hdp-utility"]
    wanted += [f"partitioning-fig{n}" for n in (2, 3, 4, 5)] + [f"hdp-fig{n}" for n in (1, 2, 3, 4, 5)]
    wanted += ["partitioning-logistic-us", "partitioning-logistic-brazil"]
    assert set(wanted) == set(FIGURES)


def test_a_plan_names_figures_it_does_not_know():
    with pytest.raises(InvalidDeclaration, match="no figure 'pdp-9z'"):
        plan(["pdp-1a", "pdp-9z"])
    with pytest.raises(InvalidDeclaration, match="at least two runs"):
        plan([], runs=1)


def test_a_quick_plan_has_fewer_runs_than_a_full_one():
    for (figure, quick), (_, full) in zip(plan([], quick=True), plan([]), strict=True):
        assert quick.runs < full.runs or 0 == full.runs, figure.id
    assert [7, 0] == [effort.runs for _, effort in plan(["pdp-1a", "idp-table1"], runs=7)]

"""Every mechanism for totals, means and variances, on every small universe: nobody loses more than the charge."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from contracts import Universe, charges_of, check_nobody_loses_more_than_the_charge, losses_of, statistics_of
from discretion.errors import Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.linear import parts
from discretion.noise import simulation
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate
from drawing import check_release_draws_the_law

NONE = ()
VALUES = (((0, 0),), ((0, 1),), ((0, 2),))
TWO_GROUPS = (((0, 0),), ((0, 2),), ((1, 0),), ((1, 2),))
TWO_ROWS = (((0, 0),), ((0, 1),), ((0, 0), (0, 1)), ((0, 0), (0, 0)), ((0, 1), (0, 1)))
ROWS_IN_GROUPS = (((0, 1),), ((1, 1),), ((0, 1), (1, 1)), ((0, 1), (0, 1)), ((1, 1), (1, 1)))
SPREAD_ROWS = (((0, 0), (0, 2)), ((0, 2), (0, 2)), ((1, 2), (1, 2)), ((0, 0), (1, 2)))
SETS = (((0, 1), (1, 1)), ((2, 1),), ((1, 1), (2, 1)))

# name -> (shape of the question, what a person may be besides having no row)
SHAPES = {
    "count": ({"kind": "count"}, (((0, 1),),)),
    "histogram": ({"kind": "count", "groups": 2}, (((0, 1),), ((1, 1),))),
    "rows": ({"kind": "count", "rows_per_person": 2}, (((0, 1),), ((0, 1), (0, 1)))),
    "rows in groups": ({"kind": "count", "groups": 2, "rows_per_person": 2}, ROWS_IN_GROUPS),
    "people": ({"kind": "people", "groups": 2, "rows_per_person": 2}, (((0, 1),), ((1, 1),), ((0, 1), (1, 1)))),
    "people in three groups": ({"kind": "people", "groups": 3, "rows_per_person": 2}, SETS),
    "sum": ({"kind": "sum", "lower": -1, "upper": 2}, (((0, -1),), ((0, 1),), ((0, 2),))),
    "sum above 0": ({"kind": "sum", "lower": 1, "upper": 3}, (((0, 1),), ((0, 3),))),
    "sum in groups": ({"kind": "sum", "groups": 2, "upper": 2}, TWO_GROUPS),
    "sum of rows in groups": ({"kind": "sum", "lower": -1, "upper": 2, "groups": 2, "rows_per_person": 2}, SPREAD_ROWS),
    "mean": ({"kind": "mean", "upper": 2}, VALUES),
    "mean in groups": ({"kind": "mean", "upper": 2, "groups": 2}, TWO_GROUPS),
    "mean of rows": ({"kind": "mean", "upper": 1, "rows_per_person": 2}, TWO_ROWS),
    "mean of rows in groups": ({"kind": "mean", "upper": 2, "groups": 2, "rows_per_person": 2}, SPREAD_ROWS),
    "variance": ({"kind": "variance", "upper": 2}, VALUES),
    "variance in groups": ({"kind": "variance", "upper": 2, "groups": 2}, TWO_GROUPS),
    "variance of rows": ({"kind": "variance", "upper": 1, "rows_per_person": 2}, TWO_ROWS),
    "variance of rows in groups": ({"kind": "variance", "upper": 2, "groups": 2, "rows_per_person": 2}, SPREAD_ROWS),
}
COMPLETE = {
    "everybody's sum": ({"kind": "sum", "lower": 1, "upper": 3}, (((0, 1),), ((0, 2),), ((0, 3),))),
    "everybody's mean": ({"kind": "mean", "upper": 2}, VALUES),
    "everybody's variance": ({"kind": "variance", "upper": 4}, (((0, 0),), ((0, 1),), ((0, 2),), ((0, 4),))),
    "everybody's count": ({"kind": "count"}, (((0, 1),),)),
    "everybody's mean in groups": ({"kind": "mean", "upper": 2, "groups": 2}, TWO_GROUPS),
}
BELIEFS = [Belief(), Belief(assume="independent"), Belief(assume=0.3, expect=(0, 1)), Belief(assume="gradual")]
NAMES = ["nothing", "independent", "partly", "gradual"]


def cases():
    for name, (shape, states) in SHAPES.items():
        for protects in ("presence", "value"):
            yield pytest.param(Aggregate(protects=protects, **shape), (NONE, *states), id=f"{name}, {protects}")
    for name, (shape, states) in COMPLETE.items():
        yield pytest.param(Aggregate(protects="value", complete=True, **shape), states, id=name)


def universe_of(states):
    return Universe((0.1, 0.5, 1.0) if len(states) < 5 else (0.1, 1.0), states)


def proposals(aggregate, universe, belief):
    for name, propose in MECHANISMS.items():
        try:
            yield name, propose(aggregate, universe.specification, belief)
        except Unsuitable:
            continue


@pytest.mark.parametrize("belief", BELIEFS, ids=NAMES)
@pytest.mark.parametrize(("aggregate", "states"), list(cases()))
def test_nobody_loses_more_than_the_charge(aggregate, states, belief):
    universe = universe_of(states)
    names = []
    for name, mechanism in proposals(aggregate, universe, belief):
        check_nobody_loses_more_than_the_charge(mechanism, universe)
        check_release_draws_the_law(mechanism, universe)
        names.append(name)
    assert {"weighted", "minimum", "threshold", "stretch", "sample"} <= set(names)
    pools = belief.assume == "gradual" and aggregate.kind != "variance"
    assert pools == ("pooled" in names)


OPTIONS = [
    ("weighted", {"cap": 0.2}),
    ("weighted", {"cap": 50.0}),
    ("stretch", {"cap": "best"}),
    ("stretch", {"cap": 0.25}),
    ("threshold", {"threshold": "mean"}),
    ("sample", {"threshold": "mean", "rescaled": True}),
    ("sample", {"threshold": 3.0}),
    ("partition", {"cuts": "privacy", "rounds": 2}),
    ("partition", {"groups": 1, "rounds": 3, "ensemble": "stratified"}),
    ("partition", {"ensemble": "homogeneous"}),
]
REGISTERS = [(0.0, 0.3, 1.0), (0.5, 0.5, 0.5), (1e-6, 0.001, 1000.0), (0.7,)]


@pytest.mark.parametrize("epsilons", REGISTERS, ids=str)
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_no_option_and_no_register_breaks_the_promise(name, options, epsilons):
    for shape, protects in product(("sum", "histogram"), ("presence", "value")):
        universe = Universe(epsilons, (NONE, *SHAPES[shape][1]))
        aggregate = Aggregate(protects=protects, **SHAPES[shape][0])
        mechanism = MECHANISMS[name](aggregate, universe.specification, Belief(), **options)
        check_nobody_loses_more_than_the_charge(mechanism, universe)
        check_release_draws_the_law(mechanism, universe)


@pytest.mark.parametrize("name", ["weighted", "minimum", "stretch", "sample", "partition", "threshold", "exponential"])
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_someone_who_chose_0_is_not_used_at_all(name, protects):
    universe = Universe((0.0, 0.2, 0.7), (NONE, ((0, 1),)))
    mechanism = MECHANISMS[name](Aggregate(kind="count", protects=protects), universe.specification, Belief())
    losses = check_nobody_loses_more_than_the_charge(mechanism, universe)
    assert pytest.approx(0, abs=1e-12) == losses[0]
    assert 0 == charges_of(mechanism, universe)[0]
    assert max(losses) > 0


@pytest.mark.parametrize(("aggregate", "states"), [case for case in cases() if case.id != "everybody's count"])
def test_weighted_spends_what_it_charges(aggregate, states):
    """No budget is wasted: the worst case of the person of least ε reaches the charge, except where a row's own grid
    or the second moment's bound leaves a margin."""
    universe = universe_of(states)
    mechanism = MECHANISMS["weighted"](aggregate, universe.specification, Belief())
    spent = losses_of(mechanism, universe)[0] / charges_of(mechanism, universe)[0]
    assert spent >= (0.9 if aggregate.kind == "variance" else 1 - 1e-9)


def test_a_variance_of_a_public_number_uses_all_of_its_rates():
    """The proof's d − d²/4 reaches 1 at d = 2, from one bound to the other."""
    universe = Universe((0.5, 1.0), (((0, 0),), ((0, 8),)))
    aggregate = Aggregate(kind="variance", protects="value", upper=8, complete=True)
    mechanism = MECHANISMS["minimum"](aggregate, universe.specification, Belief())
    assert pytest.approx([0.5, 0.5]) == losses_of(mechanism, universe)


def test_common_factors_of_the_weights_leave_the_noise():
    """Weights of 100,000 and 200,000 micro-ε are counted as 1 and 2, so that large bounds fit."""
    specification = Specification(epsilons=(100_000, 200_000), people=(1, 1))
    mechanism = MECHANISMS["stretch"](Aggregate(kind="count", protects="value"), specification, Belief())
    assert 100_000 == mechanism.unit
    assert (Fraction(10),) == mechanism.scales


@pytest.mark.parametrize(
    ("shape", "truth"),
    [
        ({"kind": "count"}, 40.0),
        ({"kind": "sum", "upper": 10}, 180.0),
        ({"kind": "sum", "lower": 1, "upper": 10, "complete": True, "origin": Fraction(5)}, 380.0),
        ({"kind": "mean", "upper": 10}, 4.5),
        ({"kind": "mean", "upper": 10, "complete": True, "origin": Fraction(-2), "step": Fraction(1, 2)}, 0.25),
        ({"kind": "variance", "upper": 10}, 8.25),
        ({"kind": "variance", "upper": 10, "complete": True, "step": Fraction(1, 2)}, 8.25 / 4),
        ({"kind": "variance", "upper": 10, "sample": True}, 8.25 * 40 / 39),
        ({"kind": "variance", "upper": 10, "complete": True, "sample": True}, 8.25 * 40 / 39),
    ],
)
@pytest.mark.parametrize("name", ["weighted", "minimum", "threshold", "stretch"])
def test_without_noise_every_mechanism_answers_the_truth(name, shape, truth, monkeypatch):
    """One level: nobody is left out, so what remains of the law is the truth (weighted shrinks totals a little)."""
    monkeypatch.setattr("discretion.noise.discrete_laplace", lambda scale, size, rng: np.zeros(size, dtype=np.int64))
    aggregate = Aggregate(protects="value", **shape)
    universe = Universe((400.0,) * 40, ())
    dataset = tuple(((0, person % 10 if aggregate.upper > 1 else 1),) for person in range(40))
    mechanism = MECHANISMS[name](aggregate, universe.specification, Belief())
    statistics = statistics_of(aggregate, universe, dataset, range(40))
    assert pytest.approx(truth, rel=1e-6) == mechanism.release(statistics, None)[0]


def test_a_mean_without_anybody_stays_inside_the_bounds():
    aggregate = Aggregate(kind="mean", protects="presence", upper=10)
    universe = Universe((0.1, 0.2), (NONE,))
    mechanism = MECHANISMS["weighted"](aggregate, universe.specification, Belief())
    statistics = statistics_of(aggregate, universe, (NONE, NONE), range(2))
    answers = [mechanism.release(statistics, simulation(seed))[0] for seed in range(50)]
    assert 0 <= min(answers) <= max(answers) <= 10


def test_a_sum_over_an_unknown_number_needs_an_origin_of_0():
    specification = Specification(epsilons=(MICRO,), people=(3,))
    with pytest.raises(Unsuitable, match="origin is 0"):
        parts(Aggregate(kind="sum", protects="value", origin=Fraction(1)))
    with pytest.raises(Unsuitable, match="counts, sums, means and variances only"):
        MECHANISMS["weighted"](
            Aggregate(kind="quantile", protects="value", rank=Fraction(1, 2)), specification, Belief()
        )


def test_stretching_is_the_papers(golden):
    """The scaled sum, the noise's scale and the bias, in counts."""
    vector = golden("pdp")["stretching"]
    universe = Universe(tuple(map(float, vector["phi"])), ())
    aggregate = Aggregate(kind="count", protects="presence")
    mechanism = MECHANISMS["stretch"](aggregate, universe.specification, Belief())
    dataset = tuple(((0, 1),) if bit else NONE for bit in vector["D"])
    (centre,) = mechanism.centres(statistics_of(aggregate, universe, dataset, range(4)))
    scaled = Fraction(int(centre[0]) * mechanism.unit) / mechanism.divisor
    assert Fraction(vector["scaled_sum"]) == scaled
    assert Fraction(vector["bias"]) == scaled - sum(vector["D"])
    assert Fraction(vector["noise_scale"]) == mechanism.scales[0] * mechanism.unit / mechanism.divisor
    assert Fraction(vector["mse"]) == (scaled - sum(vector["D"])) ** 2 + 2 * Fraction(vector["noise_scale"]) ** 2


@pytest.mark.parametrize("kind", ["count", "sum", "mean", "variance"])
@pytest.mark.parametrize("name", ["weighted", "minimum", "threshold", "stretch", "sample"])
def test_the_largest_and_the_smallest_epsilon_are_answered_too(name, kind):
    """One step of noise at ε = 1,000 is e^−1000: below every double, which must not stop the plan."""
    for levels in [(1_000 * MICRO,), (1, 1_000 * MICRO), (0, 1)]:
        specification = Specification(epsilons=levels, people=(2,) * len(levels))
        mechanism = MECHANISMS[name](Aggregate(kind=kind, protects="value"), specification, Belief())
        assert mechanism.guarantee.honours(specification)
        assert 0 <= mechanism.error.total < float("inf")


@pytest.mark.parametrize("belief", BELIEFS, ids=NAMES)
@pytest.mark.parametrize("kind", ["count", "mean", "quantile"])
def test_a_level_that_nobody_has_any_more_is_no_threshold(kind, belief):
    rank = Fraction(1, 2) if kind == "quantile" else None
    aggregate = Aggregate(kind=kind, protects="value", rank=rank)
    specification = Specification(epsilons=(300_000, 800_000), people=(5, 0))
    mechanism = MECHANISMS["threshold"](aggregate, specification, belief)
    assert 300_000 == mechanism.guarantee.losses[0].micro_epsilon
    with pytest.raises(Unsuitable, match="nobody"):
        MECHANISMS["threshold"](aggregate, specification, belief, threshold="max")


@pytest.mark.parametrize("belief", BELIEFS, ids=NAMES)
@pytest.mark.parametrize("people", [(5, 0), (0, 0)])
@pytest.mark.parametrize("shape", [{"kind": "count"}, {"kind": "mean"}, {"kind": "mean", "complete": True}])
@pytest.mark.parametrize("name", ["weighted", "minimum", "threshold", "stretch", "sample", "partition"])
def test_a_register_in_which_nobody_can_pay_any_more_is_refused(name, shape, people, belief):
    """Only people who chose 0 are left, or nobody: a reason, not a division by 0."""
    specification = Specification(epsilons=(0, MICRO), people=people)
    with pytest.raises(Unsuitable):
        MECHANISMS[name](Aggregate(protects="value", **shape), specification, belief)


def test_a_level_that_nobody_has_is_no_warning_where_values_cannot_vary():
    specification = Specification(epsilons=(0, 1, MICRO), people=(0, 0, 3))
    aggregate = Aggregate(kind="sum", protects="value", lower=5, upper=5, complete=True)
    assert 0 == MECHANISMS["weighted"](aggregate, specification, Belief(assume="independent")).error.total

"""Weighted ranks: nobody loses more than their influence, and answers are as good as they say."""

from fractions import Fraction

import numpy as np
import pytest
from test_rank import SHAPES, SPECIFICATION, quantile_of

from contracts import Universe, check_nobody_loses_more_than_the_charge, losses_of, statistics_of, violations
from discretion import noise
from discretion.errors import Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.weighted_rank import WeightedRank, propose, spread
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

propose_exponential, propose_minimum, propose_threshold, propose_sample = (
    MECHANISMS[name] for name in ("exponential", "minimum", "threshold", "sample")
)

INDEPENDENT = Belief(assume="independent")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cap", [None, 0.05, 0.2, 1.0])
def test_nobody_loses_more_than_the_charge(shape, cap):
    aggregate, states, epsilons = SHAPES[shape]
    universe = Universe(epsilons, states)
    check_nobody_loses_more_than_the_charge(propose(aggregate, universe.specification, Belief(), cap=cap), universe)


@pytest.mark.parametrize("rule", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("shape", ["mode, presence", "mode", "presence"])
def test_both_rules_keep_the_charge_and_use_much_of_it(shape, rule):
    aggregate, states, epsilons = SHAPES[shape]
    universe = Universe(epsilons, states)
    mechanism = propose(aggregate, universe.specification, INDEPENDENT, cap=1.0, rule=rule)
    losses = check_nobody_loses_more_than_the_charge(mechanism, universe)
    assert max(losses) > 0.3  # of the 1.0 that the most open person allows; three answers cannot show more


ROWS = tuple(((group, value),) for group in (0, 1) for value in (0, 1, 2))
PLANTED = {
    "changed values": (quantile_of("1/2"), ((), *ROWS[:3])),
    "changed groups": (quantile_of("1/2", groups=2), ((), *ROWS)),
    "two rows": (quantile_of("1/2", rows_per_person=2), ((), *(a + b for a in ROWS[:3] for b in ROWS[:3]))),
    "mode": (Aggregate(kind="mode", protects="value", upper=2), ((), *ROWS[:3])),
}


@pytest.mark.parametrize("shape", PLANTED)
def test_half_the_scale_is_noticed(shape):
    """What forgetting changed groups, the second row or the other half of a change would do."""
    aggregate, states = PLANTED[shape]
    universe = Universe((2.0, 8.0, 9.0), states)  # far apart, so that few answers can show the whole loss
    honest = propose(aggregate, universe.specification, Belief(), cap=9.0)

    class Sharper(WeightedRank):
        @property
        def scale(self):
            return super().scale / 2

    planted = Sharper(**{name: getattr(honest, name) for name in honest.__dataclass_fields__})
    check_nobody_loses_more_than_the_charge(honest, universe)
    assert violations(losses_of(planted, universe), universe.epsilons)


def test_equal_preferences_make_it_the_ordinary_exponential_mechanism():
    universe = Universe((1.0,) * 5, (((0, 0),),))
    aggregate = quantile_of("1/2", upper=4, complete=True)
    dataset = tuple(((0, value),) for value in (0, 1, 2, 2, 4))
    statistics = statistics_of(aggregate, universe, dataset, range(5))
    ours = propose(aggregate, universe.specification, Belief()).scores(statistics)[0] / 2 / MICRO
    assert [-1.5, -0.5, 0.0, -1.5, -1.5] == ours.tolist()


def test_ties_score_by_the_interval_they_fill():
    universe = Universe((1.0,) * 4, (((0, 0),),))
    aggregate = quantile_of("1/2", upper=2, complete=True)
    statistics = statistics_of(aggregate, universe, (((0, 1),),) * 4, range(4))
    assert [-2 * 2 * MICRO, 0, -2 * 2 * MICRO] == propose(aggregate, universe.specification, Belief()).scores(
        statistics
    )[0].tolist()


def test_an_empty_group_is_answered_at_random():
    aggregate = quantile_of("1/2", groups=2, upper=1)
    histogram = np.zeros((2, 4, 2), dtype=np.int64)
    histogram[0, :, 1] = 1
    mechanism = propose(aggregate, SPECIFICATION, Belief())
    probabilities = mechanism.probabilities(Statistics(counts=histogram.sum(axis=2), histogram=histogram))
    assert [0.5, 0.5] == probabilities[1].tolist()
    assert probabilities[0, 1] > 0.5


def test_a_minimum_and_a_maximum_stay_inside_the_data():
    specification = Specification.of([(MICRO, 1_000)])
    for rank, side in [("0", 1), ("1", -1)]:
        aggregate = quantile_of(rank, upper=999, complete=True)
        histogram = np.zeros((1, 1, 1_000), dtype=np.int64)
        histogram[0, 0, 400:600] = 5
        statistics = Statistics(counts=histogram.sum(axis=2), histogram=histogram)
        inside = propose(aggregate, specification, Belief()).probabilities(statistics)[0, 400:600].sum()
        plain = propose_exponential(aggregate, specification, Belief()).probabilities(statistics)[0, 400:600].sum()
        assert inside > 0.95
        assert plain < 0.05
        outer = propose(aggregate, specification, Belief()).probabilities(statistics)[0, 400:600:1][::side][:40].sum()
        assert outer > 0.9  # and near the end asked for


def test_saturation_matches_the_equation():
    levels = [(k * 10_000, 40) for k in range(1, 101)]
    specification = Specification.of(levels)
    mechanism = propose(quantile_of("1/2", complete=True), specification, INDEPENDENT)
    kappa = max(mechanism.influence) / MICRO
    below = [(level / MICRO, people) for level, people in levels if level / MICRO < kappa]
    assert 32 == pytest.approx(sum(people * e * (kappa - e) for e, people in below), rel=1e-3)
    assert 8 == spread(quantile_of("1/2", complete=True)) * 4


def test_a_mode_among_few_categories_is_nearly_always_right():
    specification = Specification.of([(100_000, 300), (1_000_000, 100)])
    aggregate = Aggregate(kind="mode", protects="value", upper=3, complete=True)
    histogram = np.array([[[75, 75, 60, 90], [20, 20, 20, 40]]])
    statistics = Statistics(counts=histogram.sum(axis=2), histogram=histogram)
    mechanism = propose(aggregate, specification, INDEPENDENT)
    assert "permute_and_flip" == mechanism.rule
    assert mechanism.probabilities(statistics)[0, 3] > 0.95


def test_bad_options_are_refused():
    with pytest.raises(Unsuitable, match="cap must be above 0"):
        propose(quantile_of("1/2"), SPECIFICATION, Belief(), cap=0)
    with pytest.raises(Unsuitable, match="quantiles and modes only"):
        propose(Aggregate(kind="count", protects="value"), SPECIFICATION, Belief())


def test_a_register_without_people_is_refused():
    with pytest.raises(Unsuitable, match="nobody"):
        propose(quantile_of("1/2"), Specification(epsilons=(MICRO,), people=(0,)), Belief())


def preferences(people, rng):
    """The default mix of [JYC15]: 54% conservative, 37% moderate, 9% liberal, in hundredths."""
    split = rng.choice(3, people, p=[0.54, 0.37, 0.09])
    drawn = [rng.uniform(0.01, 0.2, people), rng.uniform(0.2, 1.0, people), np.ones(people)]
    return np.floor(np.choose(split, drawn) * 100) / 100


DATA = {
    "normal, bounds far away": lambda rng, n: np.clip(500 + 50 * rng.standard_normal(n), 0, 999),
    "uniform": lambda rng, n: rng.uniform(0, 1_000, n),
    "skewed": lambda rng, n: np.clip(30 * rng.exponential(1, n) ** 2, 0, 999),
    "one value": lambda rng, n: np.full(n, 300.0),
    "two values": lambda rng, n: rng.choice([10.0, 990.0], n),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("propose", [propose, propose_exponential, propose_minimum, propose_threshold, propose_sample])
@pytest.mark.parametrize("rank", ["1/2", "1/10"])
def test_the_95_percent_interval_covers(data, propose, rank):
    """Shares below and up to the answer, over 40 draws of data and preferences unrelated to it.

    The promise is 95%; a true 95% falls below 36 of 40 with probability 0.05, and the bounds are far from tight.
    """
    rng, aggregate, covered = noise.simulation(11), quantile_of(rank, upper=999, complete=True), 0
    for _ in range(40):
        specification, cohort = Specification.assign(preferences(500, rng))
        values = DATA[data](rng, 500).astype(int)
        mechanism = propose(aggregate, specification, INDEPENDENT)
        keep = np.ones(500, dtype=bool)
        if mechanism.measure.inclusion is not None:
            keep = noise.keep(noise.coins(500, rng), mechanism.measure.inclusion, cohort)
        histogram = np.zeros((1, len(specification.epsilons), 1_000), dtype=np.int64)
        np.add.at(histogram, (0, cohort[keep], values[keep]), 1)
        answer = mechanism.release(Statistics(counts=histogram.sum(axis=2), histogram=histogram), rng)[0]
        low, high = mechanism.error.interval(answer)
        covered += np.mean(values < answer) <= high and np.mean(values <= answer) >= low
        assert mechanism.error.total <= float(max(Fraction(rank), 1 - Fraction(rank))) * 2**0.5
    assert covered >= 36


@pytest.mark.parametrize("propose", [propose, propose_exponential, propose_threshold, propose_sample])
def test_without_assumptions_the_interval_covers_related_preferences_too(propose):
    """Those who allow more have larger values, as much as can be: nothing assumed, nothing broken."""
    rng, aggregate, covered = noise.simulation(13), quantile_of("1/2", upper=999, complete=True), 0
    for _ in range(40):
        epsilons = preferences(500, rng)
        specification, cohort = Specification.assign(epsilons)
        values = (999 * np.argsort(np.argsort(epsilons + 1e-6 * rng.random(500))) / 499).astype(int)
        mechanism = propose(aggregate, specification, Belief())
        keep = np.ones(500, dtype=bool)
        if mechanism.measure.inclusion is not None:
            keep = noise.keep(noise.coins(500, rng), mechanism.measure.inclusion, cohort)
        histogram = np.zeros((1, len(specification.epsilons), 1_000), dtype=np.int64)
        np.add.at(histogram, (0, cohort[keep], values[keep]), 1)
        answer = mechanism.release(Statistics(counts=histogram.sum(axis=2), histogram=histogram), rng)[0]
        low, high = mechanism.error.interval(answer)
        covered += np.mean(values < answer) <= high and np.mean(values <= answer) >= low
    assert covered >= 36


@pytest.mark.parametrize("propose", [propose, propose_threshold, propose_sample])
@pytest.mark.parametrize("rank", ["0", "1/1000", "1/100", "99/100", "1"])
def test_near_the_ends_few_people_with_most_of_the_influence_are_a_small_sample(propose, rank):
    """50 of 5,000 people count: the outermost of them has a fiftieth of the others beyond it, on average.

    The promise is 95%; a true 95% falls below 85 of 100 with probability 1e-4, and the seed is fixed.
    """
    rng, aggregate = noise.simulation(17), quantile_of(rank, upper=1_999, complete=True)
    specification, cohort = Specification.assign([100.0] * 50 + [0.001] * 4_950)
    mechanism, covered, squares = propose(aggregate, specification, INDEPENDENT), 0, []
    for _ in range(100):
        values, mine = rng.integers(0, 2_000, 5_000), rng.permutation(cohort)
        keep = np.ones(5_000, dtype=bool)
        if mechanism.measure.inclusion is not None:
            keep = noise.keep(noise.coins(5_000, rng), mechanism.measure.inclusion, mine)
        histogram = np.zeros((1, 2, 2_000), dtype=np.int64)
        np.add.at(histogram, (0, mine[keep], values[keep]), 1)
        answer = mechanism.release(Statistics(counts=histogram.sum(axis=2), histogram=histogram), rng)[0]
        off = max(np.mean(values < answer) - Fraction(rank), Fraction(rank) - np.mean(values <= answer), 0)
        covered += off <= mechanism.error.half_width()
        squares.append(off**2)
    assert covered >= 85
    assert np.sqrt(np.mean(squares)) <= 1.1 * mechanism.error.total


@pytest.mark.parametrize("rank", ["1/100", "1/10", "1/2"])
@pytest.mark.parametrize("belief", [INDEPENDENT, Belief(assume=0.05), Belief()], ids=str)
def test_no_other_cap_is_much_better(rank, belief):
    for strict in (1_000, 10_000, 100_000):
        specification = Specification.of([(strict, 4_000), (3 * strict, 900), (100 * MICRO, 100)])
        aggregate = quantile_of(rank, upper=999, complete=True)
        caps = np.geomspace(strict / MICRO, 100, 60)
        best = min(propose(aggregate, specification, belief, cap=cap).error.total for cap in caps)
        assert propose(aggregate, specification, belief).error.total <= 1.05 * best


def test_in_groups_the_error_says_for_how_many_rows_it_holds_even_if_everybody_has_one():
    """Who is in which group is secret, so how many are is."""
    one, many = (
        propose(quantile_of("1/2", complete=True, groups=groups), SPECIFICATION, Belief()) for groups in (1, 2)
    )
    assert one.error.rows is None
    assert 2 == many.error.rows
    assert "like everybody" in many.error.assumption

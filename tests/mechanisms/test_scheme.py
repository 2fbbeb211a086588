"""Schemes: the same people take part at the same ε and charge, whether a total, a rank or a black box is asked."""

from fractions import Fraction
from math import exp, log

import pytest

from discretion.errors import Unsuitable
from discretion.learn.run import plan
from discretion.mechanisms import MECHANISMS, Belief, scheme
from discretion.mechanisms.scheme import Group, Ladder
from discretion.mechanisms.stray import coin_scatter
from discretion.noise import ALWAYS
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate

PEOPLE = Specification(epsilons=(0, 100_000, 100_000, 500_000, 2_000_000), people=(4, 3, 0, 6, 2))
TOTAL = Aggregate(kind="sum", protects="presence", upper=3)
RANK = Aggregate(kind="quantile", protects="presence", upper=3, rank=Fraction(1, 2))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("minimum", {}),
        *(("threshold", {"threshold": t}) for t in ("max", "mean", 0.3)),
        *(("sample", {"threshold": t}) for t in ("max", "mean", 0.3, 5.0)),
    ],
)
def test_totals_ranks_and_black_boxes_ask_the_same_people_for_the_same_price(name, options):
    total, rank = (MECHANISMS[name](asked, PEOPLE, Belief(), **options) for asked in (TOTAL, RANK))
    (run,) = plan(PEOPLE, name, options)
    assert total.guarantee == rank.guarantee
    assert total.measure.inclusion == rank.measure.inclusion
    assert run.charge == tuple(loss.micro_epsilon for loss in total.guarantee.losses.values())
    if total.measure.inclusion is not None:
        assert run.inclusion == total.measure.inclusion
    assert total.weights == rank.scheme.prices == tuple(run.micro_epsilon if coin else 0 for coin in run.inclusion)


@pytest.mark.parametrize("t", [1, 50_000, 100_000, 300_000, 2_000_000, 9_000_000, 900_000_000])
def test_coins_make_everybody_lose_what_they_are_charged(t):
    """ln(1 − π + π e^t) = min(ε, t), and the doubles for predictions are the exact thresholds."""
    sampled = scheme.sample(PEOPLE, t)
    assert pytest.approx([coin / ALWAYS for coin in sampled.coins], rel=1e-9, abs=1e-18) == sampled.rates.tolist()
    if t < 100 * MICRO:
        lost = [log(1 - rate + rate * exp(t / MICRO)) * MICRO for rate in sampled.rates]
        assert pytest.approx(lost, abs=1e-3) == list(sampled.charges)


def test_a_rate_is_never_above_1_and_exactly_1_at_the_threshold():
    """Doubles of (1 − e^−ε)/(1 − e^−t) may come out above 1 by rounding: a root of that failed."""
    for level in range(1, 400_000, 1_009):
        people = Specification(epsilons=(level - level // 2, level, level + 7), people=(1, 3, 40_000))
        rates = scheme.sample(people, level).rates
        assert rates[0] <= 1.0
        assert [1.0, 1.0] == rates[1:].tolist()
        assert coin_scatter(people, rates) >= 0
        MECHANISMS["sample"](RANK, people, Belief(), threshold=level / MICRO)


def test_nobody_pays_more_than_they_have_and_those_who_chose_0_never_take_part():
    groups = scheme.partition(PEOPLE, lambda ladder: range(len(ladder.levels)), rounds=3)
    used = [scheme.minimum(PEOPLE), scheme.threshold(PEOPLE, 300_000), scheme.sample(PEOPLE, 300_000)]
    used += [scheme.weights(PEOPLE), scheme.weights(PEOPLE, 300_000), *(group.scheme(PEOPLE) for group in groups)]
    for one in used:
        assert all(charge <= micro for charge, micro in zip(one.charges, PEOPLE.epsilons, strict=True))
        assert (0, 0, 0.0, 0) == (one.prices[0], one.charges[0], one.rates[0], one.coins[0])
    assert all(scheme.paid(groups, PEOPLE) <= PEOPLE.micro)


def test_a_threshold_above_everybody_is_refused():
    with pytest.raises(Unsuitable, match="leaves everybody out"):
        scheme.threshold(PEOPLE, 2_000_001)


def test_a_ladder_has_each_level_once_and_nobody_without_any():
    ladder = Ladder.of(PEOPLE.micro, PEOPLE.heads)
    assert ([100_000, 500_000, 2_000_000], [3, 6, 2]) == (ladder.levels.tolist(), ladder.heads.tolist())
    assert (Group((1, 2, 3), 100_000), Group((4,), 2_000_000)) == ladder.groups([0, 2])


def test_people_too_few_for_a_group_are_refused_at_first_and_left_alone_later():
    with pytest.raises(Unsuitable, match="12 members"):
        scheme.partition(PEOPLE, lambda ladder: [0], smallest=12)
    assert 2 == len(scheme.partition(PEOPLE, lambda ladder: [0], smallest=8, rounds=9))

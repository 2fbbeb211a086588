"""Any private algorithm becomes a personalized one: checked by enumerating every outcome of tiny databases."""

from itertools import product
from math import exp, inf, log

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discretion import noise
from discretion.errors import InvalidDeclaration, QueryRefused, Unsuitable
from discretion.learn.personalize import personalize
from discretion.learn.run import plan
from discretion.noise import ALWAYS
from discretion.preference import Specification

LEVELS = np.array([0, 100_000, 500_000, 1_000_000])  # micro-ε of four people, one of whom never takes part
HEADS = np.array([1, 1, 1, 1])
PEOPLE = Specification(epsilons=tuple(LEVELS.tolist()), people=tuple(HEADS.tolist()))
OUTPUTS = range(-30, 35)


def geometric_count(rows, epsilon):
    """The exact distribution of a count with geometric noise: ε-DP for added, removed and changed bits."""
    a = exp(-epsilon)
    return {out: (1 - a) / (1 + a) * a ** abs(out - sum(rows)) for out in OUTPUTS}


def public_size(rows, epsilon):
    """ε-DP when one bit changes; prints the number of rows, which only that relation calls public."""
    return {(len(rows), out): p for out, p in geometric_count(rows, epsilon).items()}


def distribution(bits, runs, algorithm):
    """Of the tuple of outputs, over all coins: `bits[i]` is person i's bit, None if absent. One run."""
    (run,) = runs
    rates = [threshold / ALWAYS for threshold in run.inclusion]
    total: dict[object, float] = {}
    for coins in product((0, 1), repeat=len(bits)):
        chance = np.prod([rate if coin else 1 - rate for rate, coin in zip(rates, coins, strict=True)])
        if chance == 0:
            continue
        rows = [bit for bit, coin in zip(bits, coins, strict=True) if coin and bit is not None]
        for out, p in algorithm(rows, run.micro_epsilon / 1e6).items():
            total[out] = total.get(out, 0.0) + chance * p
    return total


def worst_loss(person, runs, algorithm, states):
    """The largest |log ratio| when one person's state changes."""
    worst = 0.0
    for bits in product(states, repeat=len(LEVELS)):
        here = distribution(bits, runs, algorithm)
        for other in states:
            there = distribution((*bits[:person], other, *bits[person + 1 :]), runs, algorithm)
            for out in {*here, *there}:
                p, q = here.get(out, 0.0), there.get(out, 0.0)
                worst = max(worst, inf if min(p, q) == 0 < max(p, q) else abs(log(p / q)))
    return worst


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("minimum", {}),
        ("threshold", {}),
        ("threshold", {"threshold": 0.5}),
        ("sample", {}),
        ("sample", {"threshold": "mean"}),
        ("sample", {"threshold": 0.05}),
        ("sample", {"threshold": 1.5}),
    ],
)
def test_nobody_loses_more_than_the_charge_and_somebody_loses_it_all(method, options):
    runs = plan(PEOPLE, method, options)
    slack = []
    for person, charge in enumerate(runs[0].charge):
        assert charge <= LEVELS[person]
        loss = worst_loss(person, runs, geometric_count, (None, 0, 1))  # presence and value at once
        assert loss <= charge / 1e6 + 1e-9
        slack.append(charge / 1e6 - loss)
    assert min(slack) < 1e-9 or "threshold" in options  # the check can tell a tight bound


def test_the_check_finds_an_algorithm_that_publishes_its_number_of_rows():
    runs = plan(PEOPLE, "sample")
    assert worst_loss(1, runs, public_size, (0, 1)) > 0.99  # promised .1, and t = 1 is lost
    assert worst_loss(1, runs, public_size, (None, 0, 1)) == inf


@pytest.mark.parametrize(
    "options", [{"method": "sample"}, {"protects": "presence", "register": [1.0] * 4}, {"groups": [1, 1, 2, 3]}]
)
def test_such_an_algorithm_is_refused(options):
    with pytest.raises(QueryRefused, match="number of rows"):
        personalize(
            sum, np.ones(4), epsilon=1.0, algorithm_protects="value", **({"method": "minimum"} | options), rng=None
        )


def test_it_is_accepted_where_the_number_of_rows_is_public():
    release = personalize(
        lambda rows, epsilon: (len(rows), epsilon),
        np.ones(4),
        epsilon=0.5,
        method="minimum",
        algorithm_protects="value",
    )
    assert (4, 0.5) == release.value


def test_an_algorithm_for_presence_only_gets_half_the_epsilon_under_value():
    def seen(rows, epsilon):
        return epsilon

    halved = personalize(seen, np.ones(4), epsilon=0.5, method="minimum", algorithm_protects="presence")
    whole = personalize(
        seen,
        np.ones(4),
        epsilon=0.5,
        method="minimum",
        algorithm_protects="presence",
        protects="presence",
        register=[0.5] * 4,
    )
    assert (0.25, 0.5) == (halved.value, whole.value)
    assert halved.guarantee.losses == whole.guarantee.losses


def test_a_person_with_several_rows_is_one_unit():
    owner = np.repeat(np.arange(10), 7)

    def seen(rows, epsilon):
        return np.bincount(rows, minlength=10).max(), epsilon

    release = personalize(
        seen,
        owner,
        epsilon=0.9,
        method="minimum",
        groups=owner,
        rows_per_person=3,
        algorithm_protects="both",
    )
    rows, epsilon = release.value
    assert 3 == rows
    assert epsilon == pytest.approx(0.3)
    assert 900_000 == release.guarantee.losses[0].micro_epsilon


def test_those_who_chose_zero_are_never_used_and_never_charged():
    for method in ("minimum", "threshold", "sample"):
        release = personalize(
            lambda rows, epsilon: rows.tolist(),
            np.array([7, 8, 9]),
            epsilon=[0, 0.5, 0.5],
            method=method,
            algorithm_protects="both",
        )
        assert [8, 9] == release.value
        assert 0 == release.guarantee.losses[0].micro_epsilon


def test_a_partition_combines_its_groups_and_charges_every_round():
    epsilon = np.repeat([0.1, 0.2, 1.0], [60, 30, 10])
    seen = []

    def fraction(rows, epsilon):
        seen.append((len(rows), round(epsilon, 6)))
        return rows.mean()

    release = personalize(
        fraction,
        np.repeat([0.0, 1.0, 0.5], [60, 30, 10]),
        epsilon=epsilon,
        method="partition",
        parts=3,
        rounds=2,
        cuts="privacy",
        utility=lambda people, epsilon: people * epsilon,
        algorithm_protects="both",
    )
    assert [(60, 0.1), (30, 0.2), (10, 1.0)] == seen  # everything is spent in the first round
    assert release.value == pytest.approx((6 * 0.0 + 6 * 1.0 + 10 * 0.5) / 22)
    assert [100_000, 200_000, 1_000_000] == [loss.micro_epsilon for loss in release.guarantee.losses.values()]


def test_a_partition_may_vote():
    release = personalize(
        lambda rows, epsilon: np.array([rows[0], "b"]),
        np.array(["a", "b", "c"]),
        epsilon=[0.1, 0.4, 1.0],
        method="partition",
        ensemble="vote",
        cuts="privacy",
        utility=lambda people, epsilon: people * epsilon,
        algorithm_protects="value",
    )
    assert ["c", "b"] == release.value.tolist()


@pytest.mark.parametrize(
    "data",
    [
        [10, 20, 30],
        np.array([10, 20, 30]),
        pd.DataFrame({"x": [10, 20, 30]}, index=[5, 5, 5]),
        pl.DataFrame({"x": [10, 20, 30]}),
        pa.table({"x": [10, 20, 30]}),
        (np.array([10, 20, 30]), pd.Series([1, 2, 3])),
    ],
    ids=lambda data: type(data).__module__.split(".")[0] + type(data).__name__,
)
def test_rows_may_come_in_any_common_form(data):
    release = personalize(
        lambda rows, epsilon: rows, data, epsilon=[1, 0, 1], method="threshold", algorithm_protects="both"
    )
    kept = release.value[0] if isinstance(data, tuple) else release.value
    values = kept["x"] if hasattr(kept, "columns") else kept
    assert [10, 30] == [int(str(value)) for value in values]


def test_the_best_threshold_follows_from_the_utility_and_public_information_alone():
    people_of = Specification(epsilons=(10_000, 200_000, 1_000_000), people=(500, 400, 100))
    budget, heads = people_of.micro, people_of.heads

    def precision(people, epsilon):
        return (people * epsilon) ** 2

    (by_threshold,) = plan(people_of, "threshold", {"threshold": "best", "utility": precision})
    assert 200_000 == by_threshold.micro_epsilon  # 500·.2 = 100 = 100·1: the first of two equals
    (by_sample,) = plan(people_of, "sample", {"threshold": "best", "utility": precision})
    candidates = {
        t: precision(float(np.minimum(1, np.expm1(budget / 1e6) / np.expm1(t / 1e6)) @ heads), t / 1e6)
        for t in budget.tolist()
    }
    assert max(candidates, key=candidates.get) == by_sample.micro_epsilon


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method must be"),
        ({"threshold": "median"}, "threshold must be"),
        ({"threshold": 0.0}, "millionth"),
        ({"threshold": "best"}, "utility"),
        ({"cuts": "privacy"}, "takes the options"),
        ({"algorithm_protects": "nothing"}, "algorithm_protects"),
        ({"rows_per_person": 2}, "rows_per_person"),
        ({"protects": "shape"}, "protects"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InvalidDeclaration, match=message):
        personalize(sum, np.ones(3), epsilon=0.5, **({"algorithm_protects": "both"} | options))


def test_nobody_left_to_ask_is_refused():
    with pytest.raises(Unsuitable, match="Somebody"):
        personalize(sum, np.ones(3), epsilon=0, algorithm_protects="both")
    with pytest.raises(Unsuitable, match="Nobody"):
        plan(PEOPLE, "threshold", {"threshold": 3.0})
    with pytest.raises(Unsuitable, match="too little"):
        personalize(
            sum,
            np.ones(3),
            epsilon=1e-6,
            groups=[1, 2, 3],
            rows_per_person=5,
            algorithm_protects="both",
        )


def test_parts_of_different_lengths_are_refused():
    with pytest.raises(InvalidDeclaration, match="same number of rows"):
        personalize(sum, (np.ones(3), np.ones(2)), epsilon=1, algorithm_protects="both")


def test_a_release_says_what_it_rests_on_and_whether_it_was_simulated():
    release = personalize(
        lambda rows, epsilon: len(rows),
        np.ones(50),
        epsilon=np.repeat([0.1, 1.0], 25),
        algorithm_protects="both",
        rng=noise.simulation(3),
    )
    assert release.simulated
    assert "declared to protect presence and value" in release.guarantee.note
    assert "25 people with ε = 0.1 pay 0.1" in release.explain()
    assert "float" == release.guarantee.arithmetic
    assert 25 <= release.value < 50

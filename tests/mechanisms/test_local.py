"""Model individual: effects are what trying everything gives; the fence holds; the text says what it is not."""

from itertools import product
from math import exp, inf

import numpy as np
import pytest

import discretion as dn
from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.mechanisms import MECHANISMS
from discretion.mechanisms.effect import effect_of
from discretion.mechanisms.local import WARNING, release_individual, scale_of
from discretion.release import IndividualRelease

FENCE = {"model": "individual", "acknowledged": True}
BOUNDS = (0.0, 3.0)


def truth_of(statistic, values, **options):
    return effect_of(statistic, np.array(values, dtype=float), BOUNDS, "value", **options).truth


ORDERS = [
    ("median", {}),
    ("midpoint", {}),
    ("quantile", {"q": 0.25}),
    ("min", {}),
    ("max", {}),
    ("second_max", {}),
    ("rank", {"q": 2}),
]
STATISTICS = [
    *ORDERS,
    ("sum", {}),
    ("mean", {}),
    ("count", {"inside": (1, 2)}),
    ("count", {"inside": (0, 3)}),
    ("histogram", {}),
]


@pytest.mark.parametrize(("statistic", "options"), STATISTICS)
@pytest.mark.parametrize("people", [3, 4])
def test_each_persons_effect_is_the_largest_change_of_their_value(statistic, options, people):
    for values in list(product(range(4), repeat=people))[::5]:
        effect = effect_of(statistic, np.array(values, dtype=float), BOUNDS, "value", **options)
        for person in range(people):
            changed = [
                np.abs(truth_of(statistic, (*values[:person], new, *values[person + 1 :]), **options) - effect.truth)
                for new in range(4)
            ]
            assert max(change.sum() for change in changed) == pytest.approx(effect.by_person[person])


@pytest.mark.parametrize(("statistic", "options"), STATISTICS)
@pytest.mark.parametrize("people", [3, 4])
def test_each_persons_effect_is_what_their_absence_changes(statistic, options, people):
    for values in list(product(range(4), repeat=people))[::5]:
        effect = effect_of(statistic, np.array(values, dtype=float), BOUNDS, "presence", **options)
        for person in range(people):
            without = truth_of(statistic, values[:person] + values[person + 1 :], **options)
            assert np.abs(without - effect.truth).sum() == pytest.approx(effect.by_person[person])
        added = [np.abs(truth_of(statistic, (*values, new), **options) - effect.truth).sum() for new in range(4)]
        assert max(added) == pytest.approx(effect.newcomer)


@pytest.mark.parametrize(("statistic", "options"), STATISTICS)
@pytest.mark.parametrize("protects", ["value", "presence"])
def test_it_keeps_the_promise_of_its_own_model_and_only_that(statistic, options, protects):
    """Around the actual data, with the noise it has there: |f(D) − f(D')| / scale(D) ≤ ε of whoever differs."""
    epsilons, micro = (0.1, 0.5, 1.0), np.array([100_000, 500_000, 1_000_000])
    for values in product(range(4), repeat=3):
        data = np.array(values, dtype=float)
        effect = effect_of(statistic, data, BOUNDS, protects, **options)
        scale = float(scale_of(effect, micro, 100_000, ()))
        for person, epsilon in enumerate(epsilons):
            rest = (values[:person], values[person + 1 :])
            others = [(*rest[0], new, *rest[1]) for new in range(4)] if protects == "value" else [rest[0] + rest[1]]
            for other in others:
                moved = np.abs(truth_of(statistic, other, **options) - effect.truth).sum()
                assert moved <= epsilon * scale + 1e-9


def test_it_is_not_differential_privacy():
    """Two neighbours with the same median: one answer is exact, the other is not. The ratio has no bound."""
    scales = [
        scale_of(effect_of("median", np.array(values, dtype=float), (0, 1), "value"), np.full(5, 10**6), 10**6, ())
        for values in ([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    ]
    assert [0, 1] == scales


def test_the_golden_sums_means_and_counts_hold(golden):
    found = golden("hdp")
    for case in found["idp_sensitivities"]:
        values, bounds, expected = np.array(case["x"], dtype=float), (case["lo"], case["hi"]), case["sum_mean"]

        def largest(statistic, protects, values=values, bounds=bounds):
            effect = effect_of(statistic, values, bounds, protects)
            return max(effect.by_person.max(), effect.newcomer)

        assert expected["sum_LS_sub"] == largest("sum", "value")
        assert expected["mean_LS_sub"] == pytest.approx(largest("mean", "value"))
        assert expected["sum_LS_addrem"] == largest("sum", "presence")
        assert expected["mean_LS_addrem"] == pytest.approx(largest("mean", "presence"))
        groups = effect_of("sum", values, bounds, "value").by_group
        assert expected["sum_group_sub"] == [groups(i) for i in range(len(expected["sum_group_sub"]))]
        for query in case["queries"]:
            name, _, q = query["query"].removeprefix("lower_").partition("_0")
            if name != "second_max" or len(values) > 1:
                effect = effect_of(
                    name, values, bounds, {"sub": "value", "addrem": "presence"}[query["relation"]], q=_number(q)
                )
                assert query["LS"] == max(effect.by_person.max(), effect.newcomer)
                assert query["group"] == [effect.by_group(i) for i in range(len(query["group"]))]
    counts, values = found["counts"], np.array([0.0, 1.0, 2.0])
    assert counts["range_sub"] == effect_of("count", values, BOUNDS, "value", inside=(1, 2)).by_person.max()
    everything = effect_of("count", values, BOUNDS, "value", inside=(0, 3))
    assert counts["range_sub_if_range_is_everything"] == everything.by_person.max()
    assert counts["histogram_L1_sub"] == effect_of("histogram", values, BOUNDS, "value").by_person.max()
    assert counts["histogram_L1_addrem"] == effect_of("histogram", values, BOUNDS, "presence").by_person.max()


def _number(text):
    return float("0" + text) if text else None


def drawn(times=4_000, **query):
    rng = noise.simulation(9)
    return np.array([release_individual(rng=rng, **FENCE, **query).value for _ in range(times)])


def test_noise_has_the_scale_of_the_person_who_needs_most():
    """Of 0, 5, 6, 10 the median rises by 1 at most (by the person at 0 too) and falls by 5 (by those from 5 on)."""
    values, epsilon = [0, 5, 6, 10], [0.1, 1.0, 0.5, 2.0]
    scale = max(1 / 0.1, 5 / 0.5)
    found = np.abs(drawn(values=values, epsilon=epsilon, statistic="median", bounds=(0, 10)) - 5)
    assert scale == pytest.approx(found.mean(), rel=0.08)  # five standard errors: scale/√4000


def test_discrete_noise_has_the_golden_distribution(golden):
    for case in golden("hdp")["discrete_laplace"][:2]:
        values = [0, 0, case["LS"]]  # its median moves from 0 to LS if a 0 rises
        found = drawn(values=values, epsilon=[1.0] * 3, statistic="median", bounds=(0, 3), discrete=True)
        for distance, probability in enumerate(case["pmf"]):
            share = np.mean(np.abs(found) == distance) / (1 if distance == 0 else 2)
            assert probability == pytest.approx(share, abs=0.035)
        assert case["alpha"] == pytest.approx(exp(-1 / case["LS"]))


def test_groups_of_people_get_the_noise_of_the_group_that_needs_most():
    """Δ = 0, 0, 4 over ε = 0.5, 1, 1.5 is a scale of 8/3 (golden gdp_scale)."""
    found = drawn(
        values=[0, 0, 0, 0, 0, 4, 4],
        epsilon=[0.5] * 7,
        statistic="median",
        bounds=(0, 4),
        group_epsilon=(0.5, 1.0, 1.5),
    )
    first = effect_of("median", np.array([0, 0, 0, 0, 0, 4, 4.0]), (0, 4), "value")
    assert [0, 4, 4] == [first.by_group(i) for i in (1, 2, 3)]
    assert 4 == pytest.approx(np.abs(found).mean(), rel=0.08)


def test_groups_move_a_midpoint_too():
    effect = effect_of("midpoint", np.array([0.0, 1.0, 2.0, 3.0]), BOUNDS, "value")
    assert [0.0, 1.0, 1.5] == [effect.by_group(i) for i in (0, 1, 2)]


def test_without_local_sensitivity_the_answer_is_exact_and_that_is_documented():
    release = release_individual([0, 0, 0, 0, 1], statistic="median", epsilon=[1e-6] * 5, bounds=(0, 1), **FENCE)
    assert 0.0 == release.value
    assert "the answer is then exact" in release.promise()
    assert "the answer is then exact" in release.guarantee.note


def test_the_release_says_what_it_is_not_and_never_shows_its_scale():
    release = release_individual([1, 2, 3], statistic="max", epsilon=[0.1, 1, 1], bounds=(0, 9), **FENCE)
    assert isinstance(release, IndividualRelease)
    assert "individual" == release.guarantee.model
    assert not release.guarantee.is_differential_privacy
    assert WARNING in repr(release)
    assert "model `individual` (NOT differential privacy)" in repr(release)
    assert ((0, 9), inf) == (release.error.limits, release.error.total)
    assert (0, 9) == release.interval()
    assert not hasattr(release, "scale")
    assert "local" not in MECHANISMS


@pytest.mark.parametrize("missing", [{"acknowledged": True}, {"model": "individual"}, {**FENCE, "acknowledged": 1}])
def test_it_is_refused_unless_asked_for_twice(missing):
    with pytest.raises(InvalidDeclaration, match="NOT differential privacy"):
        release_individual([1, 2, 3], statistic="max", epsilon=[1, 1, 1], bounds=(0, 9), **missing)


def test_people_who_chose_zero_and_absent_people_are_left_out():
    fence = {**FENCE, "bounds": (0, 1), "statistic": "median"}
    assert 0.0 == release_individual([1, 1, 1, 0, 0, 0, 0, 0], epsilon=[0, 0, 0, 1, 1, 1, 1, 1], **fence).value
    holes = release_individual([np.nan, np.nan, np.nan, 0, 0, 0, 0, 0], epsilon=[1] * 8, protects="presence", **fence)
    assert 0.0 == holes.value


def test_bad_arguments_are_refused():
    good = {"values": [1, 2, 3], "epsilon": [1, 1, 1], "bounds": (0, 9), **FENCE}
    for bad, text in [
        ({"statistic": "mode"}, "must be one of"),
        ({"statistic": "quantile"}, "needs q"),
        ({"statistic": "max", "bounds": (9, 0)}, "ascend"),
        ({"statistic": "max", "epsilon": [1, 1]}, "one value and one epsilon"),
        ({"statistic": "mean", "discrete": True}, "whole answers"),
        ({"statistic": "max", "group_epsilon": (2.0, 3.0)}, "at most anybody's own"),
        ({"statistic": "mean", "protects": "presence", "group_epsilon": (1.0,)}, "not presence"),
        ({"statistic": "midpoint", "protects": "presence", "group_epsilon": (1.0,)}, "not presence"),
    ]:
        with pytest.raises(InvalidDeclaration, match=text):
            release_individual(**{**good, **bad})


def test_arrays_offer_it_behind_the_same_fence():
    values, epsilon = np.arange(95) % 10, np.full(95, 0.5)
    release = dn.median(values, epsilon=epsilon, bounds=(0, 9), **FENCE)
    assert isinstance(release, IndividualRelease)
    assert 4.0 == release.value  # ten people share the value, so nobody alone can move it
    for ask in (dn.max, dn.min, dn.sum, dn.mean):
        assert isinstance(ask(values, epsilon=epsilon, bounds=(0, 9), **FENCE), IndividualRelease)
    assert isinstance(dn.count(values > 4, epsilon=epsilon, **FENCE), IndividualRelease)
    with pytest.raises(InvalidDeclaration, match="NOT differential privacy"):
        dn.median(values, epsilon=epsilon, bounds=(0, 9), model="individual")


def test_the_last_person_who_leaves_is_covered_too():
    """Without anybody a maximum is the lower bound: the only person, at the upper bound, moves it by going."""
    asked = {"statistic": "max", "bounds": (0, 9), "protects": "presence", "rng": noise.simulation(1), **FENCE}
    found = [release_individual([9.0], epsilon=[1.0], **asked).value for _ in range(50)]
    assert len(set(found)) == 50  # noise of scale 9, where there was none

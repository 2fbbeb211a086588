from fractions import Fraction
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from item_checker import Law, close, worst_log_ratio

from discretion.errors import InvalidDeclaration, InvalidPreference, Unsuitable
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social import function as functions
from discretion.social.function import Function
from discretion.social.stretching import (
    STEPS,
    bias_bound,
    distortion,
    on_grid,
    shrinkage,
    stretch,
    tail,
    tail_bound,
    used_steps,
)
from discretion.social.weight import declare, thousandths

POLYNOMIAL = Function(
    name="polynomial",
    evaluate=lambda d: d[0] ** 2 + d[1] + d[2] ** 3,
    sensitivity=lambda i, a: (a**2, a, a**3)[i],
    bounds=functions.unit_box(3),
    slopes=(Fraction(2), Fraction(1), Fraction(3)),
    exact=True,
)
LARGEST_PLANE = Function(
    name="largest of three planes",
    evaluate=lambda d: max(d[0] + 2 * d[1], Fraction(3, 2) * d[0] + Fraction(1, 5), d[2]),
    sensitivity=lambda i, a: max(Fraction(0), (Fraction(3, 2) * a, 2 * a - Fraction(1, 5), a - Fraction(1, 5))[i]),
    bounds=functions.unit_box(3),
    slopes=(Fraction(3, 2), Fraction(2), Fraction(1)),
    exact=True,
)
NONZEROS = Function(
    name="non-zeros in disguise",
    evaluate=lambda d: sum(x != 0 for x in d),
    sensitivity=lambda i, a: int(a > 0),
    bounds=functions.unit_box(2),
    exact=True,
)
GOLDEN = {
    "sum3": functions.total(3),
    "wsum[2,-1,0.5,0]": functions.weighted_sum([2, -1, 0.5, 0]),
    "max3": functions.maximum(3),
    "poly: d0^2+d1+d2^3": POLYNOMIAL,
    "l0 (count of nonzero of d0,d1)": NONZEROS,
}
SMALL = {
    "sum": functions.total(3),
    "mean": functions.mean(3),
    "signed": functions.weighted_sum([2, -1, 0.5], [(-1, 1), (0, 1), (-0.5, 0)]),
    "inner product": functions.inner_product(2),
    "maximum": functions.maximum(3),
    "polynomial": POLYNOMIAL,
    "planes": LARGEST_PLANE,
}


def test_shrinking_factors_are_the_golden_ones(golden):
    for case in golden["hdp_stretch_weights"]:
        function = GOLDEN[case["f"]]
        for row in case["cases"]:
            factors = shrinkage(function, [row["v_all"]] * function.items)
            assert close(row["w"], map(float, factors)), (case["f"], row)


def test_factors_stay_on_the_private_side_where_the_printed_loop_overshoots(golden):
    for case in golden["hdp_delta_step_trap"]:
        factor = shrinkage(functions.total(2), [case["v"], 1])[0]
        assert case["algorithm1_float"] < factor <= Fraction(1, 2)
        assert case["exact"] == float(factor)


@pytest.mark.parametrize("name", SMALL)
def test_declared_sensitivities_are_those_found_by_enumeration(name):
    function = SMALL[name]
    grid = [sorted({low, high, (low + high) / 2, Fraction(0), *_fifths(low, high)}) for low, high in function.bounds]
    for item, shrink in product(range(function.items), (Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(1))):
        found = Fraction(0)
        for point in product(*grid):
            values = []
            for own in grid[item]:
                moved = list(point)
                moved[item] = shrink * own
                values.append(function.evaluate(moved))
            found = max(found, max(values) - min(values))
        assert found == function.moves(item, shrink), (item, shrink)


def _fifths(low, high):
    return [low + (high - low) * Fraction(k, 5) for k in range(6)]


def test_per_item_losses_are_the_golden_ones(golden):
    for case in golden["hdp_per_item_log_ratio"]:
        factors = shrinkage(LARGEST_PLANE, case["v"])
        assert close(case["w"], map(float, factors))
        assert close([case["S"]], [float(LARGEST_PLANE.overall)])
        for item, expected in enumerate(case["per_item_log_ratio"]):
            worst = case["eps"] * float(_enumerated_move(LARGEST_PLANE, factors, item) / LARGEST_PLANE.overall)
            assert abs(expected - worst) < 1e-9
            assert worst <= case["eps"] * case["v"][item] + 1e-12


def _enumerated_move(function, factors, item):
    grid = [[w * k / 10 for k in range(11)] for w in factors]
    best = Fraction(0)
    for point in product(*grid):
        if point[item] == 0:
            values = [function.evaluate([own if j == item else x for j, x in enumerate(point)]) for own in grid[item]]
            best = max(best, max(values) - min(values))
    return best


def worst_losses(function, micro_epsilon, factors_of, weights=(0, 0.3, 1)):
    """The worst log-ratio of item 0 for each pair of its weights, over a grid of profiles; item and weight change."""
    scale = STEPS * MICRO / micro_epsilon
    values = [[float(low), float(low + high) / 2, float(high)] for low, high in function.bounds]
    found = {}
    for others in product(weights, repeat=function.items - 1):
        factors = {v: factors_of(function, (v, *others)) for v in weights}
        for rest in product(*values[1:]):
            centre = {(v, x): on_grid(function, (x, *rest), factors[v]) for v, x in product(weights, values[0] + [0.0])}
            for (v, x), (u, y) in product(centre, repeat=2):
                ratio = worst_log_ratio(Law(centre[v, x], scale), Law(centre[u, y], scale))
                found[v, u] = max(found.get((v, u), 0.0), ratio)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_no_item_loses_more_than_its_weight_allows(name):
    for (v, u), loss in worst_losses(SMALL[name], 800_000, shrinkage).items():
        assert loss <= 0.8 * max(v, u) + 1e-9


def test_the_sum_attains_its_weight_exactly():
    found = worst_losses(functions.total(3), 800_000, shrinkage)
    for (v, u), loss in found.items():
        assert abs(0.8 * max(v, u) - loss) < 2e-6  # one grid step


def test_the_checker_catches_factors_that_ignore_or_exceed_the_weights():
    def ignoring(function, weights):
        return (Fraction(1),) * function.items

    def exceeding(function, weights):
        return tuple(min(Fraction(1), w + Fraction(1, 100)) for w in shrinkage(function, weights))

    for planted in (ignoring, exceeding):
        losses = worst_losses(functions.total(3), 800_000, planted)
        assert any(loss > 0.8 * max(v, u) + 1e-3 for (v, u), loss in losses.items())


def test_changing_item_and_weight_together_costs_what_the_golden_vectors_say(golden):
    function = functions.total(2)
    for case in golden["hdp_item_and_weight_change"]:
        scale = STEPS / case["eps"]
        before, after = (on_grid(function, (1, 0), shrinkage(function, case[key])) for key in ("w", "w2"))
        empty = on_grid(function, (0, 0), shrinkage(function, case["w2"]))
        worst = max(worst_log_ratio(Law(a, scale), Law(b, scale)) for a in (before, after) for b in (empty, after))
        assert abs(case["log_ratio"] - worst) < 2e-6


def test_tails_are_the_golden_ones(golden):
    for case in golden["hdp_tail"]:
        assert abs(case["exact"] - tail(case["k"], bias=case["r"], scale=case["b"])) < 1e-12
        assert abs(case["valid_bound"] - tail_bound(case["k"], bias_bound=abs(case["r"]), scale=case["b"])) < 1e-12
        assert case["printed_theorem3"] < case["exact"]


@pytest.mark.parametrize("bias", [0.03, 0.77, -1.34, 4.02])
@pytest.mark.parametrize("distance", [0.1, 1.0, 2.5])
def test_the_grid_tail_is_the_sum_over_the_grid_and_tends_to_the_continuous_one(bias, distance):
    z = np.arange(-4000, 4001)
    law = np.exp(-np.abs(z) / 7)
    enumerated = law[np.abs(bias + z / 10) > distance].sum() / law.sum()
    assert abs(enumerated - tail(distance, bias=bias, scale=0.7, step=0.1)) < 1e-9
    fine = tail(distance, bias=bias, scale=0.7, step=1e-7)
    assert abs(fine - tail(distance, bias=bias, scale=0.7)) < 1e-6


def test_the_tail_agrees_with_simulated_errors():
    # 1,000 draws; false alarm below 1e-6 at 5 standard deviations; a tail too small by a factor 2 is 6.8 deviations off
    function, rng, profile = functions.total(4), simulation(8), [1, 1, 1, 1]
    draws = np.array([float(stretch(function, profile, [0.5] * 4, epsilon=1.0, rng=rng).value) for _ in range(1_000)])
    expected = tail(3.0, bias=-2.0, scale=1.0)
    assert abs((np.abs(draws - 4) > 3).mean() - expected) < 5 * sqrt(expected / 1_000)


def test_the_corollary_for_inner_products_is_replaced_by_a_bound_that_holds():
    function, profile, weights = functions.inner_product(100), [1.0] * 100, [0.5] * 100
    factors = shrinkage(function, weights)
    bias = float(function.evaluate([w * 1 for w in factors])) - 50
    assert -37.5 == bias
    assert tail(10, bias=bias, scale=1.0) > 0.999
    assert tail_bound(10, bias_bound=bias_bound(function, weights, profile), scale=1.0) == 1.0
    assert abs(bias) <= bias_bound(function, weights, profile)
    generous = [0.99] * 100
    held = bias_bound(function, generous, profile)
    assert tail(12, bias=-0.995, scale=1.0) <= tail_bound(12, bias_bound=held, scale=1.0) < 1


@pytest.mark.parametrize("name", SMALL)
def test_the_bias_bound_holds_on_every_small_profile(name):
    function = SMALL[name]
    for weights in product((0.0, 0.3, 1.0), repeat=function.items):
        factors = shrinkage(function, weights)
        for profile in product(*[[float(low), float(high)] for low, high in function.bounds]):
            exact = [Fraction(x) for x in profile]
            shrunk = [w * x for w, x in zip(factors, exact, strict=True)]
            bias = abs(function.evaluate(shrunk) - function.evaluate(exact))
            assert float(bias) <= bias_bound(function, weights, profile) + 1e-12


@pytest.mark.parametrize("name", SMALL)
def test_a_distortion_bound_costs_each_item_at_most_its_weight(name):
    function, scale = SMALL[name], STEPS / 0.5
    for others in product((0, 0.3, 1), repeat=function.items - 1):
        used = {v: used_steps(function, (v, *others)) for v in (0, 0.3, 0.7, 1)}
        for v, u in product(used, repeat=2):
            assert worst_log_ratio(Law(used[v], scale), Law(used[u], scale)) <= 0.5 * max(v, u) + 1e-9


def test_the_noise_drawn_is_that_of_the_proofs(monkeypatch):
    """The checks above compare laws of this scale; here is what is really drawn."""
    scales = []
    monkeypatch.setattr(
        "discretion.social.stretching.discrete_laplace", lambda scale, size, rng: scales.append(scale) or [0] * size
    )
    for epsilon in (0.5, 1e-6):
        stretch(functions.total(2), [1, 1], [1, 0.5], epsilon=epsilon)
        distortion(functions.total(2), [1, 0.5], epsilon=epsilon)
    assert [2 * STEPS] * 2 + [STEPS * MICRO] * 2 == scales


def test_a_distortion_bound_holds_as_often_as_it_says():
    function, weights = functions.total(4), [0.5, 0.25, 1, 0]
    true_worst = 4 - 1.75
    rng = simulation(5)
    held = [
        distortion(function, weights, epsilon=1.0, confidence=0.9, rng=rng).value >= true_worst for _ in range(1000)
    ]
    # mean 0.9; 5 standard deviations are 0.047; without the margin it would hold half the time
    assert 0.9 - 0.047 <= np.mean(held)
    assert 0.9 + 0.047 >= np.mean(held)


def test_release_states_its_item_guarantee_and_arithmetic():
    release = stretch(functions.total(2), [1, 1], [1, 0.5], epsilon=0.5, rng=simulation(1))
    assert "item" == release.guarantee.unit
    assert 500_000 == release.guarantee.losses[MICRO].micro_epsilon
    assert 125_000 == release.guarantee.losses[MICRO // 4].micro_epsilon
    assert 0 == release.guarantee.losses[0].micro_epsilon
    assert "exact" == release.guarantee.arithmetic
    assert release.simulated
    root = functions.lipschitz(lambda d: sqrt(1 + float(sum(d))), 0.5, [(0, 1)] * 2)
    assert "float" == stretch(root, [1, 1], [1, 1], epsilon=1, rng=simulation(1)).guarantee.arithmetic


def test_the_secure_source_is_the_default():
    release = stretch(functions.total(2), [1, 1], [1, 1], epsilon=100.0)
    assert not release.simulated
    assert abs(release.value - 2) < 1  # P = e^-100


def test_values_outside_their_bounds_are_clamped_and_missing_ones_count_as_absent():
    function = functions.total(3)
    ones = (Fraction(1),) * 3
    assert 2 * STEPS == on_grid(function, [7, 1, -3], ones)
    assert STEPS == on_grid(function, [np.nan, 1, inf], ones)


def test_an_item_nobody_declared_has_weight_zero():
    assert [0.0, 0.5, 0.0] == declare(3, {1: 0.5})
    assert (0, 1, 0) == shrinkage(functions.total(3), declare(3, {1: 1.0}))
    with pytest.raises(InvalidPreference, match="items 0 to 2"):
        declare(3, {3: 1.0})


def test_weights_are_rounded_down_to_thousandths():
    assert [0, 290, 333, 1000] == thousandths([0.0009, 0.29, 1 / 3, 1]).tolist()
    with pytest.raises(InvalidPreference, match="from 0"):
        thousandths([1.01])
    with pytest.raises(InvalidPreference, match="from 0"):
        thousandths([np.nan])


def test_meaningless_functions_are_refused_with_the_reason():
    with pytest.raises(Unsuitable, match="strictest weight"):
        functions.minimum(3)
    with pytest.raises(Unsuitable, match="still counts fully"):
        functions.count_nonzero(3)
    with pytest.raises(Unsuitable, match="jumps"):
        stretch(NONZEROS, [1, 1], [1, 1], epsilon=1.0)
    no_slopes = Function(name="f", evaluate=lambda d: d[0], sensitivity=lambda i, a: a, bounds=((0, 1),))
    for ask in (lambda: distortion(no_slopes, [1], epsilon=1), lambda: bias_bound(no_slopes, [1], [1])):
        with pytest.raises(Unsuitable, match="slopes"):
            ask()
    assert 1.0 == stretch(no_slopes, [1], [1], epsilon=1, rng=simulation(1)).error.bias


@pytest.mark.parametrize(
    "build",
    [
        lambda: functions.total(0),
        lambda: functions.total(2, [(0, 1)]),
        lambda: functions.total(1, [(1, 2)]),  # shrinking leaves the box
        lambda: functions.total(1, [(0, inf)]),
        lambda: functions.weighted_sum([0, 0]),
        lambda: functions.inner_product(3),
        lambda: functions.lipschitz(lambda d: d[0], [1, 1], [(0, 1)]),
        lambda: functions.lipschitz(lambda d: d[0], -1, [(0, 1)]),
        lambda: Function(name="f", evaluate=lambda d: 0.5, sensitivity=lambda i, a: a, bounds=((0, 1),), exact=True),
        lambda: Function(name="f", evaluate=lambda d: 0, sensitivity=lambda i, a: -1, bounds=((0, 1),)),
        lambda: Function(name="f", evaluate=lambda d: 0, sensitivity=lambda i, a: a, bounds=((0, 1),), slopes=()),
        lambda: stretch(functions.total(2), [1, 1], [1, 1], epsilon=0),
        lambda: stretch(functions.total(2), [1], [1, 1], epsilon=1),
        lambda: stretch(functions.total(2), [1, 1], [1], epsilon=1),
        lambda: distortion(functions.total(2), [1, 1], epsilon=1, confidence=1),
        lambda: stretch(functions.lipschitz(lambda d: inf if d[0] else 0.0, 1, [(0, 1)]), [1], [1], epsilon=1),
    ],
)
def test_malformed_declarations_are_refused(build):
    with pytest.raises(InvalidDeclaration):
        build()


def test_a_steady_mechanism_beats_stretching_when_all_weights_are_equal():
    """Known limit (docs/social.md): with one weight for all, plain noise of scale S/(ε·v) is better."""
    n, v = 200, 0.5
    stretched = sqrt((n * (1 - v)) ** 2 / 4 + 2)  # half the items held
    plain = sqrt(2) / v
    assert stretched > 10 * plain

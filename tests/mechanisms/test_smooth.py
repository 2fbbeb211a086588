"""Smooth sensitivity: calibrated by the exact loss, and the printed constants shown to fail."""

from fractions import Fraction
from itertools import product
from math import exp, log, pi, tan

import numpy as np
import pytest
from scipy.special import betaincinv
from sensitivity_after import changed_after
from test_rank import quantile_of

from discretion import noise
from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.sensitivity import Ordered, log_smooth
from discretion.mechanisms.smooth import exact_loss, largest_alpha, propose
from discretion.plan import choose
from discretion.preference import MICRO, Specification
from discretion.statistics import Statistics

SPECIFICATION = Specification.of([(0, 2), (MICRO, 5), (2 * MICRO, 4)])
PLACES = np.concatenate([-np.geomspace(1e-4, 1e6, 4_000)[::-1], [0.0], np.geomspace(1e-4, 1e6, 4_000)])


def loss(one, other, gamma):
    """The largest |log ratio| of two laws (centre, scale) with density ∝ 1/(1 + |z|^γ), on a fine grid of places."""
    places = np.concatenate([PLACES * law[1] + law[0] for law in (one, other)])
    logs = [-np.log(s) - np.log1p(np.abs((places - c) / s) ** gamma) for c, s in (one, other)]
    return float(np.max(np.abs(logs[0] - logs[1])))


def law(values, bounds, rank, alpha, beta):
    data = Ordered.of(np.array(values), bounds)
    return float(data.at(rank)), exp(log_smooth(data, rank, beta)) / alpha


@pytest.mark.parametrize(("gamma", "beta"), [(2.0, 0.5), (3.0, 0.25), (3.25, 0.2)])
def test_the_loss_is_at_most_epsilon_on_every_pair_of_neighbours(gamma, beta):
    alpha = largest_alpha(gamma, beta, 1.0)
    laws = {values: law(values, (0, 3), 2, alpha, beta) for values in product(range(4), repeat=3)}
    worst = 0.0
    for values in laws:
        for person, new in product(range(3), range(4)):
            neighbour = (*values[:person], new, *values[person + 1 :])
            worst = max(worst, loss(laws[values], laws[neighbour], gamma))
    assert 0.7 < worst <= 1.0 + 1e-9


def test_the_printed_constants_are_not_private():
    """β = ε and α = ε/4γ at γ = 3, as the paper's experiments use them: 2 instead of 1, on real data."""
    laws = [law(values, (0, 6), 3, 1 / 12, 1.0) for values in ((0, 0, 0, 0, 0), (0, 0, 0, 0, 6))]
    assert 2.0 == pytest.approx(loss(*laws, 3.0), abs=0.01)
    assert [1.002, 2.011, 3.02] == [round(exact_loss(g, 1 / (4 * g), 1.0), 3) for g in (2.0, 3.0, 4.0)]
    assert exact_loss(3.0, 1 / 12, 1 / 3) < 1  # with β = ε/γ they would be, wastefully


def test_the_golden_losses_and_alphas_hold(golden):
    found = golden("hdp")
    for case in found["cauchy_exact_loss"]:
        assert case["loss"] == pytest.approx(exact_loss(2.0, case["alpha"], case["beta"]), abs=1e-9)
    for case in found["cauchy_alpha_star"]:
        assert case["alpha"] == pytest.approx(largest_alpha(2.0, case["beta"], case["eps"]), abs=1e-9)
    for case in found["alpha_star_numeric_tol_1e-3"]:
        alpha = largest_alpha(case["gamma"], case["beta"], case["eps"])
        assert case["alpha"] == pytest.approx(alpha, abs=1e-3)
        assert alpha > case["alpha_sum_lower_bound"]


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("gamma", [1.5, 2.0, 3.0])
def test_a_small_epsilon_loses_no_digits(gamma, epsilon):
    """Against the density itself: cosh ε − cosh β, computed as it stands, would overspend ε = 1e-6 by 1e-4 of it."""
    alpha = largest_alpha(gamma, epsilon / 2.5, epsilon)
    z, worst = np.append(0.0, np.geomspace(1e-9, 1e9, 200_001)), 0.0
    for log_ratio in epsilon / 2.5 * np.array([-1.0, 0.0, 1.0]):
        shifted = exp(log_ratio) * (z + alpha * min(1.0, exp(-log_ratio)))
        # ln(1 + y^γ) − ln(1 + z^γ), without the cancellation of two large logarithms
        change = np.log1p((shifted**gamma - z**gamma) / (1 + z**gamma))
        worst = max(worst, float((change - log_ratio).max()))
    assert 0.99 * epsilon < worst <= epsilon * (1 + 1e-6)
    assert epsilon == pytest.approx(exact_loss(gamma, alpha, epsilon / 2.5), rel=1e-6)


def test_the_closed_form_and_the_search_agree():
    """At γ next to 2 the search must give what the closed form gives at 2."""
    for alpha, beta in product((0.1, 0.7, 1.5), (0.05, 0.5, 1.0)):
        assert exact_loss(2.0, alpha, beta) == pytest.approx(exact_loss(2.0 + 1e-9, alpha, beta), abs=1e-6)


def test_no_point_of_a_fine_grid_loses_more_than_the_exact_loss():
    for gamma, alpha, beta in [(3.0, 0.5, 0.25), (1.5, 0.4, 0.2), (4.0, 0.3, 0.1)]:
        worst = max(
            loss((0.0, 1.0), (alpha * min(1.0, exp(-ratio)), exp(-ratio)), gamma)
            for ratio in np.linspace(-beta, beta, 41)
        )
        assert worst <= exact_loss(gamma, alpha, beta) + 1e-9
        assert worst == pytest.approx(exact_loss(gamma, alpha, beta), abs=2e-3)


def half_width(gamma):
    """The 95% half-width of the noise itself: |Z|^γ/(1 + |Z|^γ) is Beta(1/γ, 1 − 1/γ)."""
    part = betaincinv(1 / gamma, 1 - 1 / gamma, 0.95)
    return (part / (1 - part)) ** (1 / gamma)


def test_table_1_of_the_paper_and_our_figures_beside_it(golden):
    printed = [log(20), 8 * tan(0.475 * pi), 12 * half_width(3.0)]
    assert [2.996, 101.65, 34.22] == [round(width, d) for width, d in zip(printed, (3, 2, 2), strict=True)]
    assert golden("hdp")["table1"]["gamma3"] == pytest.approx(printed[2])
    ours = {
        "γ = 2": half_width(2.0) / largest_alpha(2.0, 0.5, 1.0),
        "γ = 3, β = 1/6": half_width(3.0) / largest_alpha(3.0, 1 / 6, 1.0),
        "γ = 3, β = 1/3": half_width(3.0) / largest_alpha(3.0, 1 / 3, 1.0),
    }
    assert [12.192, 5.072, 7.062] == [round(width, 3) for width in ours.values()]


def test_a_release_charges_the_strictest_and_hides_its_scale():
    aggregate = quantile_of("1/2", upper=100, complete=True)
    mechanism = propose(aggregate, SPECIFICATION, Belief())
    histogram = np.zeros((1, 3, 101), dtype=np.int64)
    histogram[0, 0, 90], histogram[0, 1, 40], histogram[0, 2, 50] = 2, 5, 4
    statistics = Statistics(counts=histogram.sum(axis=2), histogram=histogram)
    rng = noise.simulation(5)
    drawn = [float(mechanism.release(statistics, rng)[0]) for _ in range(300)]
    assert 30 < np.median(drawn) < 50  # the median of the nine who are asked is 40
    assert all(0 <= value <= 100 and value == int(value) for value in drawn)
    assert [0, MICRO, MICRO] == [loss.micro_epsilon for loss in mechanism.guarantee.losses.values()]
    assert "float" == mechanism.guarantee.arithmetic
    assert ((0.0, 100.0), float("inf")) == (mechanism.error.limits, mechanism.error.total)
    assert "scale" not in repr(mechanism)
    assert mechanism.measure.histogram


@pytest.mark.parametrize("gamma", [2.0, 3.0])
def test_the_noise_added_is_the_smooth_sensitivity_over_alpha(gamma, monkeypatch):
    """S by its definition, over every number of changes; half as much noise would be seen."""
    aggregate, specification = quantile_of("1/2", upper=10_000, complete=True), Specification.of([(2 * MICRO, 9)])
    mechanism = propose(aggregate, specification, Belief(), gamma=gamma)
    values = np.array([4_000, 4_400, 4_700, 4_900, 5_000, 5_100, 5_400, 5_500, 6_000])
    histogram = np.zeros((1, 1, 10_001), dtype=np.int64)
    histogram[0, 0, values] = 1
    data = Ordered.of(values, (0, 10_000))
    smooth = max(exp(-mechanism.beta * k) * changed_after(data, 5, k) for k in range(10))
    monkeypatch.setattr(noise, "heavy_tailed", lambda gamma, size, rng: np.ones(size))
    (answer,) = mechanism.release(Statistics(counts=histogram.sum(axis=2), histogram=histogram), None)
    assert round(5_000 + smooth / mechanism.alpha) == answer


def test_it_is_never_chosen_automatically():
    plan = choose([quantile_of("1/2", upper=100, complete=True)], SPECIFICATION, Belief())
    assert "smooth" != plan.choices[0].chosen.name
    assert "smooth" in [candidate.name for candidate in plan.choices[0].candidates]
    forced = choose([quantile_of("1/2", upper=100, complete=True)], SPECIFICATION, Belief(), mechanism="smooth")
    assert "float" == forced.guarantee.arithmetic
    assert MECHANISMS["smooth"] is propose


def test_the_largest_epsilon_does_not_overflow():
    generous = Specification.of([(1_000 * MICRO, 9)])
    for gamma in (2.0, 3.0):
        assert propose(quantile_of("1/2", complete=True), generous, Belief(), gamma=gamma).alpha > 1


def test_what_it_cannot_answer_is_refused():
    with pytest.raises(Unsuitable, match="secret here"):
        propose(quantile_of("1/2", protects="presence"), SPECIFICATION, Belief())
    with pytest.raises(Unsuitable, match="one quantile"):
        propose(quantile_of("1/2", groups=2), SPECIFICATION, Belief())
    with pytest.raises(InvalidDeclaration, match="gamma"):
        propose(quantile_of("1/2", complete=True), SPECIFICATION, Belief(), gamma=1.0)
    with pytest.raises(InvalidDeclaration, match="beta"):
        propose(quantile_of(Fraction(1, 2), complete=True), SPECIFICATION, Belief(), beta=1.0)

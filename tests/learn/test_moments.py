"""Nobody moves the moments further than the noise is made for: tried at the corners, for both relations."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from discretion import noise
from discretion.errors import Unsuitable
from discretion.learn.features import Features
from discretion.learn.moments import Whole, gaussian, gaussian_mu, on_grid, ridge, sensitivity
from discretion.preference import MICRO


def coefficients(whole, points):
    """The whole-number vector that gets noise, of each point alone."""
    rows, columns = np.triu_indices(whole.size)
    is_cube = whole.domain == "cube"
    out = []
    for *x, y in points:
        total = whole.total(np.array([x]), np.array([y]), np.zeros(1, dtype=int), np.array([whole.shares]))
        upper = total[rows, columns] * np.where((rows != columns) & is_cube, 2, 1)
        out.append(np.concatenate([upper, total[-1, :-1] * (2 if is_cube else 1)]).astype(float))
    return np.array(out)


def worst_change(whole, points):
    """The largest L1 change a person of full weight causes: by coming or going, or by changing."""
    vectors = coefficients(whole, points)
    if whole.protects == "presence":
        return np.abs(vectors).sum(axis=1).max()
    return max(np.abs(vectors - vector).sum(axis=1).max() for vector in vectors)


def ball_points(size, rng, count=150):
    """Corners of the cross and of signed averages, and random directions; targets at both ends."""
    corners = [*np.eye(size), *-np.eye(size)]
    signs = [np.array(s) / sqrt(size) for s in product((-1, 1), repeat=size)] if size <= 4 else []
    random = rng.normal(size=(count, size))
    directions = [*corners, *signs, *(random / np.linalg.norm(random, axis=1)[:, None])]
    return [(*(direction * (1 - 1e-12)), y) for direction in directions for y in (-1, 1)]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("protects", ["value", "presence"])
def test_the_sensitivity_in_the_cube_is_exact(size, protects):
    whole = Whole(domain="cube", size=size, protects=protects, weights=(MICRO,))
    corners = list(product((-1, 0, 1), repeat=size + 1))
    bound = sensitivity("cube", size, protects, whole.steps)
    worst = worst_change(whole, corners)
    assert worst <= bound
    assert worst == bound or (protects == "value" and size % 2 == 0)  # an odd number of coordinates cannot halve
    assert worst > 0.85 * bound


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("protects", ["value", "presence"])
def test_the_sensitivity_in_the_ball_is_never_exceeded_and_nearly_reached(size, protects):
    whole = Whole(domain="ball", size=size, protects=protects, weights=(MICRO,))
    points = ball_points(size, noise.simulation(size))
    bound = sensitivity("ball", size, protects, whole.steps)
    worst = worst_change(whole, points)
    assert worst <= bound
    assert worst > 0.7 * bound


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_a_search_for_the_worst_change_in_the_ball_comes_close_and_never_beyond(size):
    """Random steps that are kept where two rows differ more, from 20 starts each; rows may be shorter than 1."""
    rng, rows = noise.simulation(size), np.triu_indices(size)

    def inside(point):
        return point / np.maximum(1, np.linalg.norm(point, axis=1))[:, None]

    def change(point):
        x, other = inside(point)
        return np.abs(np.outer(x, x) - np.outer(other, other))[rows].sum() + np.abs(x - other).sum()

    best = 0.0
    for _ in range(20):
        point, step = rng.normal(size=(2, size)), 1.0
        worst = change(point)
        for _ in range(1_200):
            tried = point + step * rng.normal(size=(2, size))
            if (found := change(tried)) > worst:
                point, worst = tried, found
            else:
                step = max(0.99 * step, 1e-3)
        best = max(best, worst)
    bound = sensitivity("ball", size, "value", 1_000) / 1_000**2
    assert best <= bound
    assert best > 0.92 * bound


@pytest.mark.parametrize("domain", ["cube", "ball"])
@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("bounds", [(0, 5), (-3, 0), (2, 9), (-1, 1), ([0, -8], [1, 0])], ids=str)
def test_nobody_loses_more_than_their_weight_whatever_the_bounds(domain, protects, intercept, bounds):
    features = Features.declared(bounds, 2, intercept=intercept, norm=None if domain == "cube" else 1.0)
    weights = (100_000, 1_000_000)
    whole = Whole(domain=domain, size=features.size, protects=protects, weights=weights)
    lower, upper = (np.broadcast_to(end, 2) for end in bounds)
    corners = np.array(list(product(*[(low, high, 2 * high - low) for low, high in zip(lower, upper, strict=True)])))
    placed = features.cube(corners) if domain == "cube" else features.ball(corners)[0]
    points = [(*row, y) for row in placed for y in (-1, 1)]
    loss = Fraction(int(worst_change(whole, points))) / whole.scale  # of somebody whose weight is one unit
    assert loss * (weights[0] // whole.unit) <= Fraction(weights[0], MICRO)
    assert loss * (weights[1] // whole.unit) <= 1
    assert loss > 0


def test_the_check_finds_a_sensitivity_made_from_the_lower_bound_alone():
    """A peer used max(|lower|, |lower|): with a lower bound of 0 its noise was 0 (peers.md 2.10)."""
    lower, upper = 0, 5
    wrong = max(abs(lower), abs(lower)) ** 2
    whole = Whole(domain="cube", size=1, protects="presence", weights=(MICRO,))
    features = Features.declared((lower, upper), 1, intercept=False)
    x = features.cube(np.array([[5.0]]))
    assert worst_change(whole, [(x[0, 0], 1.0)]) > wrong * whole.steps**2


def test_noise_for_the_ball_would_not_do_for_the_cube():
    whole = Whole(domain="cube", size=3, protects="presence", weights=(MICRO,))
    too_little = sensitivity("ball", 3, "presence", whole.steps)
    assert worst_change(whole, [(1, 1, 1, 1)]) > 3 * too_little


def test_rounding_to_the_grid_never_leaves_the_ball():
    whole = Whole(domain="ball", size=5, protects="value", weights=(MICRO,))
    points = noise.simulation(4).normal(size=(20_000, 5))
    points /= np.linalg.norm(points, axis=1)[:, None]
    lengths = (on_grid("ball", points, whole.steps) ** 2).sum(axis=1)
    assert lengths.max() <= whole.steps**2
    assert (lengths == 0).sum() == 0


def test_totals_are_exact_whole_numbers_whatever_the_order_of_the_rows():
    rng = noise.simulation(5)
    x, y = rng.uniform(-1, 1, (500, 3)), rng.uniform(-1, 1, 500)
    cohort, parts = rng.integers(0, 2, 500), np.ones(500, dtype=int)
    whole = Whole(domain="cube", size=3, protects="value", weights=(123_456, 700_001))
    total, order = whole.total(x, y, cohort, parts), rng.permutation(500)
    assert np.array_equal(total, whole.total(x[order], y[order], cohort[order], parts))
    z = np.hstack([np.rint(x * whole.steps), np.rint(y * whole.steps)[:, None]]).astype(int)
    weight = np.array(whole.weights)[cohort]
    by_hand = sum(int(w) * np.outer(row, row).astype(object) for w, row in zip(weight, z, strict=True))
    assert np.array_equal(by_hand, total)


def test_a_person_with_many_rows_moves_them_no_further_than_one_row_can():
    whole = Whole(domain="cube", size=2, protects="value", weights=(MICRO,), shares=64)
    rng, cohort = noise.simulation(6), np.zeros(5, dtype=int)
    parts = np.full(5, 64 // 5)
    bound = whole.scale  # what costs one ε
    for _ in range(50):
        a, b = (np.sign(rng.normal(size=(5, 3))) for _ in range(2))
        change = whole.total(a[:, :2], a[:, 2], cohort, parts) - whole.total(b[:, :2], b[:, 2], cohort, parts)
        assert np.abs(change).sum() - abs(change[2, 2]) <= bound


def test_noise_that_fits_no_grid_is_refused():
    with pytest.raises(Unsuitable, match="grid"):
        Whole(domain="cube", size=2000, protects="value", weights=(1,), shares=4096).steps  # noqa: B018


def test_released_moments_have_the_stated_spread():
    """Both tests together raise a false alarm with probability about 1e-6 (five standard errors each)."""
    whole = Whole(domain="cube", size=2, protects="value", weights=(MICRO,))
    nothing = (np.zeros((0, 2)), np.zeros(0), np.zeros(0, dtype=int), np.zeros(0, dtype=int))
    draws = [whole.release(*nothing, noise.simulation(seed)) for seed in range(4000)]
    for entry, stated in (
        ([m.products[0, 0] for m in draws], draws[0].products_noise[0, 0]),
        ([m.products[0, 1] for m in draws], draws[0].products_noise[0, 1]),
        ([m.cross[0] for m in draws], draws[0].cross_noise),
    ):
        assert abs(np.var(entry) / stated**2 - 1) < 5 * sqrt(5 / 4000)  # the kurtosis of Laplace noise is 6
    assert draws[0].products_noise[0, 0] == 2 * draws[0].products_noise[0, 1]
    assert sqrt(2) * 9 == pytest.approx(draws[0].products_noise[0, 0])  # Laplace of scale (d + 1)² = 9


@pytest.mark.parametrize(("protects", "squared"), [("value", 4.5), ("presence", 2.0)])
def test_the_normal_noise_is_made_for_the_largest_change(protects, squared):
    rng, worst = noise.simulation(7), 0.0
    for size in (1, 2, 5):
        u, v = rng.normal(size=(2, 20_000, size))
        u, v = (w / np.linalg.norm(w, axis=1)[:, None] * rng.uniform(0, 1, (20_000, 1)) ** 0.05 for w in (u, v))
        if protects == "presence":
            change = (u**2).sum(axis=1) ** 2 + (u**2).sum(axis=1)
        else:
            inner, a, b = (u * v).sum(axis=1), (u**2).sum(axis=1), (v**2).sum(axis=1)
            change = a**2 + b**2 - 2 * inner**2 + a + b + 2 * np.abs(inner)
        worst = max(worst, change.max())
    assert 0.95 * squared < worst <= squared
    stated = gaussian(np.zeros((0, 2)), np.zeros(0), np.zeros(0), protects, 0.5, rng)
    assert sqrt(squared) / 0.5 == pytest.approx(stated.cross_noise)
    assert stated.products_noise[0, 1] == pytest.approx(stated.cross_noise / sqrt(2))


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_mu_is_the_largest_that_keeps_epsilon_and_delta(delta):
    epsilon = np.array([0.0, 0.01, 0.1, 1.0, 10.0, 1000.0])

    def reached(mu):
        mean = epsilon[1:]
        tail = np.exp(mean + stats.norm.logcdf(-mean / mu - mu / 2))
        return stats.norm.cdf(-mean / mu + mu / 2) - tail

    mu = gaussian_mu(epsilon, delta)
    assert 0 == mu[0]
    assert np.all(reached(mu[1:]) <= delta)
    assert np.all(reached(mu[1:] * 1.001) > delta)
    assert delta != 1e-6 or mu[3] == pytest.approx(0.237, abs=1e-3)  # beyond.md 1.5


def test_without_noise_the_ridge_is_least_squares():
    rng = noise.simulation(8)
    x = rng.uniform(-0.5, 0.5, (400, 3))
    y = x @ [0.2, -0.1, 0.4]
    moments = gaussian(x, y, np.ones(400), "value", 1e9, rng)
    coefficients_, inverse = ridge(moments, intercept=False)
    assert np.allclose([0.2, -0.1, 0.4], coefficients_, atol=1e-5)
    assert np.all(np.diag(moments.covariance(inverse, coefficients_)) < 1e-12)


def test_the_predicted_effect_of_the_noise_is_what_happens():
    """To first order; the spread of 2,000 fits agrees within a tenth."""
    rng = noise.simulation(9)
    x = rng.uniform(-0.5, 0.5, (20_000, 3))
    y = x @ [0.2, -0.1, 0.4]
    seen, predicted = [], []
    for _ in range(2000):
        moments = gaussian(x, y, np.ones(len(x)), "value", 0.1, rng)
        inverse = np.linalg.inv(moments.products)
        seen.append(inverse @ moments.cross)
        predicted.append(np.sqrt(np.diag(moments.covariance(inverse, seen[-1]))))
    assert np.allclose(np.std(seen, axis=0), np.mean(predicted, axis=0), rtol=0.1)

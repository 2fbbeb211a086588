"""Rows are placed by public bounds only, one row at a time."""

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.learn.features import Features

BOUNDS = [(-1, 1), (0, 5), (-3, 0), (2, 9), ([0, -2], [1, 7])]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_every_row_lands_in_the_cube_and_in_the_ball(bounds, intercept):
    features = Features.declared(bounds, 2, intercept=intercept, norm=0.8)
    extremes = np.array([[a, b] for a in (-1e9, 0.0, 1.0, 1e9) for b in (-1e9, 0.0, 1.0, 1e9)])
    assert np.abs(features.cube(extremes)).max() <= 1
    placed, _ = features.ball(extremes)
    assert np.linalg.norm(placed, axis=1).max() <= 1


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_over_the_cube_predict_the_same_as_over_the_columns(bounds, intercept):
    features = Features.declared(bounds, 2, intercept=intercept)
    lower, upper = (np.broadcast_to(end, 2) for end in bounds)
    X = lower + (upper - lower) * np.array([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])
    theta = np.arange(1, features.size + 1) / 7
    slopes, constant = features.original(theta)
    assert np.allclose(features.cube(X) @ theta, X @ slopes + constant)
    assert intercept or constant == 0


def test_a_shortened_row_says_by_how_much():
    features = Features.declared((-1, 1), 2, intercept=False, norm=1.0)
    placed, shortened = features.ball(np.array([[1.0, 1.0], [0.3, 0.4]]))
    assert np.allclose([1 / np.sqrt(2), 1.0], shortened)
    assert np.allclose([[1 / np.sqrt(2)] * 2, [0.3, 0.4]], placed)


def test_one_row_never_changes_where_another_lands():
    features = Features.declared((0, 10), 2, intercept=True, norm=1.0)
    alone, _ = features.ball(np.array([[1.0, 2.0]]))
    beside, _ = features.ball(np.array([[1.0, 2.0], [1e12, -1e12]]))
    assert np.array_equal(alone[0], beside[0])


@pytest.mark.parametrize(
    "bounds", [None, 3, (1, 1), (2, 1), (0, np.inf), (0, np.nan), ([0, 0, 0], 1), (0, 1, 2), ("a", "b")]
)
def test_bounds_that_bound_nothing_are_refused(bounds):
    with pytest.raises(InvalidDeclaration, match="ounds"):
        Features.declared(bounds, 2, intercept=True)


@pytest.mark.parametrize("norm", [0, -1, np.inf, np.nan])
def test_a_norm_must_be_a_length(norm):
    with pytest.raises(InvalidDeclaration, match="norm"):
        Features.declared((0, 1), 2, intercept=True, norm=norm)

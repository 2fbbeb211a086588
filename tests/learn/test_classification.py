"""Logistic regression and the support vector machine: who pays what, what is refused, how good it is."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.learn import LinearSVC, LogisticRegression
from discretion.learn.features import Features
from discretion.learn.perturbation import CLOSE
from discretion.preference import Specification

METHODS = [
    {},
    {"kappa": 0.3},
    {"regularization": 0.01},
    *(
        {"method": method, "mechanism": mechanism}
        for method in ("objective", "output")
        for mechanism in ("minimum", "threshold", "sample", "partition")
    ),
    {"method": "objective", "mechanism": "partition", "options": {"cuts": "privacy", "parts": 2, "rounds": 2}},
    {"method": "objective", "options": {"threshold": "mean"}},
]


@pytest.fixture(scope="module")
def rows():
    rng = noise.simulation(1)
    X = rng.uniform(0, 10, (2000, 3))
    y = np.where(X @ [1.0, -1.0, 0.2] > 1, "yes", "no")
    return X, y, rng.choice([0.0, 0.07, 0.5, 1.0], 2000)


def model(estimator=LogisticRegression, **options):
    return estimator(**({"bounds": (0, 10), "classes": ("no", "yes"), "random_state": 0} | options))


@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_nobody_pays_more_than_they_have(rows, estimator, options, protects):
    X, y, epsilon = rows
    register = {"register": epsilon} if protects == "presence" else {}
    fitted = model(estimator, protects=protects, **options).fit(X, y, epsilon=epsilon, **register)
    paid = [loss.micro_epsilon for loss in fitted.guarantee_.losses.values()]
    assert fitted.guarantee_.honours(Specification.assign(epsilon)[0])
    assert 0 == paid[0]
    assert max(paid) > 0
    assert ("float", protects) == (fitted.guarantee_.arithmetic, fitted.guarantee_.protects)
    assert set(fitted.predict(X)) <= {"no", "yes"}


@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("method", ["weighted", "objective", "output"])
def test_with_hardly_any_privacy_the_classes_are_told_apart(rows, estimator, method):
    X, y, _ = rows
    fitted = model(estimator, method=method).fit(X, y, epsilon=1000.0)
    assert np.mean(fitted.predict(X) == y) > 0.9
    assert roc_auc_score(y == "yes", fitted.decision_function(X)) > 0.97


def test_the_first_class_is_the_negative_one(rows):
    X, y, _ = rows
    forth, back = (model(classes=classes).fit(X, y, epsilon=1000.0) for classes in (("no", "yes"), ("yes", "no")))
    assert np.all(forth.classes_ == back.classes_[::-1])
    assert np.mean(forth.predict(X) == back.predict(X)) > 0.95
    assert np.corrcoef(forth.decision_function(X), back.decision_function(X))[0, 1] < -0.95
    assert np.allclose(1, forth.predict_proba(X).sum(axis=1))


@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("bounds", [(0, 5), (-3, 0), (2, 9), (-1, 1)], ids=str)
def test_at_the_bounds_nobody_moves_the_minimiser_further_than_the_noise_is_made_for(estimator, protects, bounds):
    """Same seed, same noise: what differs is the minimiser. Tried at every corner, in the noise's own coordinates."""
    rng, ridge = noise.simulation(2), 0.05
    low, high = bounds
    others = rng.uniform(low, high, (20, 2))
    labels = rng.integers(0, 2, 20)
    register = {"register": np.append(np.ones(21), 0)} if protects == "presence" else {}
    declared = {"method": "output", "regularization": ridge, "protects": protects, "classes": (0, 1), "random_state": 3}

    def theta(x, y, takes_part=1.0):  # someone whose epsilon is 0 is as good as absent, and the noise stays the same
        there, epsilon = (np.vstack([others, [x]]), np.append(labels, y)), np.append(np.ones(20), takes_part)
        fitted = estimator(bounds=bounds, **declared).fit(*there, epsilon=epsilon, **register)
        features = Features.declared(bounds, 2, intercept=True)
        slopes = fitted.coef_[0] * features.half
        return np.append(slopes, fitted.intercept_[0] + fitted.coef_[0] @ features.centre) * features.norm

    states = [(corner, y) for corner in product((low, high), repeat=2) for y in (0, 1)]
    thetas = [theta(*state) for state in states]
    pairs = product(thetas, thetas) if protects == "value" else ((a, theta([low, low], 0, 0.0)) for a in thetas)
    worst = max(float(np.linalg.norm(a - b)) for a, b in pairs)
    times = 2 if protects == "value" else 1
    assert worst <= times / (ridge * 21) + 2 * CLOSE + 1e-9
    assert worst > 0.2 * times / (ridge * 21)


def test_people_with_epsilon_zero_leave_no_trace(rows):
    X, y, epsilon = rows
    moved = np.where((epsilon == 0)[:, None], 10 - X, X)
    for options in ({}, {"method": "objective"}):
        first, second = (model(**options).fit(rows_, y, epsilon=epsilon).coef_ for rows_ in (X, moved))
        assert np.allclose(first, second, atol=1e-7)


def test_a_person_with_a_thousand_rows_has_one_vote(rows):
    X, y, _ = rows
    loud = np.vstack([X, np.tile([[10.0, 0.0, 10.0]], (3000, 1))]), np.append(y, np.full(3000, "no"))
    person = np.append(np.arange(2000), np.zeros(3000, dtype=int))
    for options in ({}, {"method": "objective"}, {"method": "output"}):
        as_people, as_rows = (model(**options).fit(*loud, epsilon=100.0, groups=groups) for groups in (person, None))
        assert np.mean(as_people.predict(X) == y) > 0.85
        assert np.mean(as_rows.predict(X) == y) < 0.8


def test_under_presence_nothing_public_depends_on_who_is_there(rows):
    X, y, epsilon = rows
    for options in METHODS:
        fitted = [
            model(protects="presence", **options).fit(X[part], y[part], epsilon=epsilon[part], register=epsilon)
            for part in (slice(None), slice(0, 100))
        ]
        assert fitted[0].guarantee_ == fitted[1].guarantee_
        assert fitted[0].release_.explain() == fitted[1].release_.explain()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method"),
        ({"mechanism": "sample"}, "mechanism="),
        ({"method": "objective", "mechanism": "stretch"}, "method must be one of"),
        ({"method": "objective", "options": {"cuts": "privacy"}}, "takes the options"),
        ({"classes": None}, "declared"),
        ({"classes": ("no",)}, "two classes"),
        ({"classes": ("no", "no")}, "two classes"),
        ({"classes": ("no", "yes", "maybe")}, "two classes"),
        ({"regularization": 0}, "regularization"),
        ({"options": {"threshold": 1.0}}, "options="),
        ({"method": "objective", "kappa": 0.5}, "kappa="),
        ({"bounds": None}, "bounds"),
        ({"estimator": LinearSVC, "smoothing": 0}, "smoothing"),
    ],
    ids=str,
)
def test_bad_declarations_are_refused(rows, options, message):
    X, y, epsilon = rows
    with pytest.raises(InvalidDeclaration, match=message):
        model(**options).fit(X, y, epsilon=epsilon)


def test_observed_classes_must_be_two(rows):
    X, y, epsilon = rows
    fitted = model(classes="observed").fit(X, y, epsilon=epsilon)
    assert ["no", "yes"] == fitted.classes_.tolist()
    assert "read off the data" in fitted.guarantee_.note
    with pytest.raises(InvalidDeclaration, match="two classes"):
        model(classes="observed").fit(X, np.full(2000, "yes"), epsilon=epsilon)


def test_weighting_beats_sampling_on_real_rows():
    """569 tumours, 6 measurements, public bounds; 20 paired fits, the mean area under the curve is larger."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :6]
    bounds = ([5, 8, 40, 100, 0.05, 0.0], [30, 40, 190, 2500, 0.17, 0.35])
    areas = {}
    for seed in range(20):
        epsilon = noise.simulation(seed).choice([0.1, 0.5, 2.0], len(y), p=[0.5, 0.4, 0.1])
        for name, how in {"weighted": {}, "sample": {"method": "objective"}}.items():
            fitted = LogisticRegression(bounds=bounds, classes=(0, 1), random_state=seed, **how)
            scores = fitted.fit(X, y, epsilon=epsilon).decision_function(X)
            areas.setdefault(name, []).append(roc_auc_score(y, scores))
    assert np.mean(areas["weighted"]) > np.mean(areas["sample"])
    assert np.mean(areas["weighted"]) > 0.8

"""Linear regression: who pays what, what is refused, and how good it is."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from discretion import noise
from discretion.errors import InvalidDeclaration, InvalidPreference, Unsuitable
from discretion.learn import LinearRegression
from discretion.learn.moments import Whole
from discretion.preference import Specification

METHODS = [
    {},
    {"norm": 1.0},
    {"delta": 1e-6},
    {"kappa": 0.3},
    *({"method": "functional", "mechanism": how} for how in ("minimum", "threshold", "sample", "stretch")),
    {"method": "functional", "options": {"threshold": "mean"}, "sensitivity": "published"},
]


EACH = {"utility": lambda people, epsilon: people * epsilon}  # as many groups as there are levels


@pytest.fixture(scope="module")
def rows():
    rng = noise.simulation(1)
    X = rng.uniform(0, 10, (3000, 2))
    y = np.clip(5 + 2 * X[:, 0] - X[:, 1] + rng.normal(0, 0.5, 3000), -10, 30)
    return X, y, rng.choice([0.0, 0.07, 0.5, 1.0], 3000)


def model(**options):
    return LinearRegression(**({"bounds": (0, 10), "target_bounds": (-10, 30), "random_state": 0} | options))


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_nobody_pays_more_than_they_have(rows, options, protects):
    X, y, epsilon = rows
    register = {"register": epsilon} if protects == "presence" else {}
    fitted = model(protects=protects, **options).fit(X, y, epsilon=epsilon, **register)
    pico = round(options.get("delta", 0) * 1e12)
    paid = [loss.micro_epsilon for loss in fitted.guarantee_.losses.values()]
    assert fitted.guarantee_.honours(Specification.assign(epsilon)[0], pico_delta=pico)
    assert 0 == paid[0]
    assert max(paid) > 0
    assert {0, pico} >= {loss.pico_delta for loss in fitted.guarantee_.losses.values()}
    assert ("float" if "delta" in options else "exact") == fitted.guarantee_.arithmetic
    assert protects == fitted.guarantee_.protects
    assert fitted.release_.guarantee == fitted.guarantee_


@pytest.mark.parametrize(
    ("options", "paid"),
    [
        ({"kappa": 0.3}, [0, 70_000, 300_000, 300_000]),
        ({"method": "functional", "mechanism": "minimum"}, [0, 70_000, 70_000, 70_000]),
        ({"method": "functional", "mechanism": "threshold"}, [0, 0, 0, 1_000_000]),
        ({"method": "functional", "options": {"threshold": 0.5}}, [0, 70_000, 500_000, 500_000]),
        ({"method": "functional", "mechanism": "stretch"}, [0, 4_900, 250_000, 1_000_000]),
        (
            {"method": "functional", "mechanism": "partition", "options": {"cuts": "privacy", "parts": 3, **EACH}},
            [0, 70_000, 500_000, 1_000_000],
        ),
        (
            {"method": "functional", "mechanism": "partition", "options": {"parts": 2, "rounds": 2}},
            [0, 70_000, 500_000, 1_000_000],
        ),
    ],
)
def test_every_method_charges_what_it_spends(rows, options, paid):
    X, y, epsilon = rows
    fitted = model(**options).fit(X, y, epsilon=epsilon)
    assert paid == [loss.micro_epsilon for loss in fitted.guarantee_.losses.values()]


def test_bagged_regressions_see_each_person_once_a_round(rows, monkeypatch):
    """Groups are disjoint, so changing one row changes the moments of one group only; a bug that shared rows shows."""
    X, y, epsilon = rows
    seen = []
    release = Whole.release

    def spy(self, x, y, cohort, parts, rng):
        seen.append(set(cohort.tolist()))
        return release(self, x, y, cohort, parts, rng)

    monkeypatch.setattr(Whole, "release", spy)
    options = {"cuts": "privacy", "parts": 3, **EACH}
    fitted = model(method="functional", mechanism="partition", options=options).fit(X, y, epsilon=epsilon)
    assert [{1}, {2}, {3}] == seen
    near = model(method="functional", mechanism="minimum", random_state=1).fit(X, y, epsilon=np.full(len(X), 500.0))
    bagged = model(method="functional", mechanism="partition", options=options, random_state=1)
    assert np.allclose(near.coef_, bagged.fit(X, y, epsilon=epsilon * 400).coef_, atol=0.1)
    assert fitted.guarantee_.arithmetic == "exact"


def test_nobody_pays_more_than_a_kappa_below_every_epsilon(rows):
    X, y, _ = rows
    fitted = model(kappa=0.05).fit(X, y, epsilon=np.where(X[:, 0] > 5, 1.0, 0.4))
    assert [50_000, 50_000] == [loss.micro_epsilon for loss in fitted.guarantee_.losses.values()]


@pytest.mark.parametrize("options", METHODS, ids=str)
def test_with_hardly_any_privacy_it_is_least_squares_in_the_callers_units(rows, options):
    X, y, _ = rows
    fitted = model(**{k: v for k, v in options.items() if k not in ("kappa", "norm")}).fit(X, y, epsilon=1000.0)
    assert np.allclose([2.0, -1.0], fitted.coef_, atol=0.1)
    assert fitted.intercept_ == pytest.approx(5.0, abs=0.5)


def test_without_an_intercept_the_line_goes_through_zero(rows):
    X, _, _ = rows
    fitted = model(fit_intercept=False, target_bounds=(0, 30)).fit(X, X @ [2.0, 1.0], epsilon=1000.0)
    assert np.allclose([2.0, 1.0], fitted.coef_, atol=0.05)
    assert 0 == fitted.intercept_
    assert 0 == fitted.predict([[0.0, 0.0]])[0]


def test_people_with_epsilon_zero_leave_no_trace(rows):
    X, y, epsilon = rows
    moved = np.where((epsilon == 0)[:, None], 10 - X, X)
    first, second = (model().fit(rows_, y, epsilon=epsilon).coef_ for rows_ in (X, moved))
    assert np.array_equal(first, second)


def test_rows_outside_the_bounds_count_as_the_bound(rows):
    X, y, epsilon = rows
    wild, tame = X.copy(), X.copy()
    wild[:5], tame[:5] = [1e9, -1e9], [10.0, 0.0]
    first, second = (model().fit(rows_, y, epsilon=epsilon).coef_ for rows_ in (wild, tame))
    assert np.array_equal(first, second)


def test_a_person_with_a_thousand_rows_has_one_vote(rows):
    X, y, _ = rows
    loud = np.vstack([X, np.tile([[0.0, 10.0]], (1000, 1))]), np.append(y, np.full(1000, 30.0))
    person = np.append(np.arange(3000), np.zeros(1000, dtype=int))
    as_people, as_rows = (model().fit(*loud, epsilon=1000.0, groups=groups) for groups in (person, None))
    assert np.allclose([2.0, -1.0], as_people.coef_, atol=0.1)
    assert not np.allclose([2.0, -1.0], as_rows.coef_, atol=0.5)


def test_under_presence_nothing_public_depends_on_who_is_there(rows):
    X, y, epsilon = rows
    fitted = [
        model(protects="presence").fit(X[part], y[part], epsilon=epsilon[part], register=epsilon)
        for part in (slice(None), slice(0, 100))
    ]
    assert fitted[0].guarantee_ == fitted[1].guarantee_
    assert fitted[0].release_.explain() == fitted[1].release_.explain()


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}], ids=str)
def test_the_release_states_the_noise_of_every_coefficient(options):
    """With 400 fits the stated standard deviations are right within a fifth, the intercept's too."""
    rng = noise.simulation(2)
    X = rng.uniform(0, 10, (8000, 2))
    y = 3 + X @ [0.3, -0.2]
    declared = {"bounds": (0, 10), "target_bounds": (0, 7)} | options
    fits = [LinearRegression(**declared, random_state=seed).fit(X, y, epsilon=1.0) for seed in range(400)]
    stated = np.mean([[error.noise for error in fitted.release_.error] for fitted in fits], axis=0)
    seen = np.std([[*fitted.coef_, fitted.intercept_] for fitted in fits], axis=0)
    assert np.allclose(seen, stated, rtol=0.2)
    assert ("0", "1", "intercept") == fits[0].release_.columns["feature"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method"),
        ({"mechanism": "sample"}, "mechanism="),
        ({"method": "functional", "mechanism": "committee"}, "mechanism must be"),
        ({"delta": -0.1}, "delta"),
        ({"delta": 1e-13}, "delta"),
        ({"delta": 1e-6, "method": "functional"}, "delta"),
        ({"sensitivity": "wild"}, "sensitivity"),
        ({"bounds": None}, "bounds"),
        ({"bounds": ([0, 3], [1, 3])}, "ascend"),
        ({"target_bounds": None}, "bounds"),
        ({"norm": -1}, "norm"),
        ({"kappa": 0}, "kappa"),
        ({"kappa": np.inf}, "kappa"),
        ({"method": "functional", "kappa": 0.5}, "kappa="),
        ({"options": {"threshold": 1.0}}, "options="),
        ({"method": "functional", "mechanism": "stretch", "options": {"threshold": 1.0}}, "options="),
        ({"protects": "nothing"}, "protects"),
        ({"holdout": "maybe"}, "holdout"),
        ({"fits": 0}, "fits"),
    ],
    ids=str,
)
def test_bad_declarations_are_refused(rows, options, message):
    X, y, epsilon = rows
    with pytest.raises(InvalidDeclaration, match=message):
        model(**options).fit(X, y, epsilon=epsilon)


def test_the_weighted_fit_is_good_on_real_rows():
    """442 patients and 10 measurements: better than the middle, which is all the functional mechanism finds."""
    X, y = load_diabetes(return_X_y=True)
    epsilon = noise.simulation(3).choice([0.5, 2.0, 8.0], 442)
    declared = {"bounds": (-0.15, 0.2), "target_bounds": (25, 350), "random_state": 4}
    weighted = LinearRegression(**declared, delta=1e-6).fit(X, y, epsilon=epsilon)
    functional = LinearRegression(**declared, method="functional").fit(X, y, epsilon=epsilon)
    errors = [float(np.mean((fitted.predict(X) - y) ** 2)) for fitted in (weighted, functional)]
    assert errors[0] < np.var(y) * 1.3
    assert errors[0] < errors[1]


def test_if_nobody_has_anything_to_spend_nothing_is_learned(rows):
    X, y, _ = rows
    for options in METHODS:
        with pytest.raises(Unsuitable, match="Somebody"):
            model(**options).fit(X, y, epsilon=0.0)


def test_an_epsilon_for_each_row_and_one_for_each_person(rows):
    X, y, epsilon = rows
    with pytest.raises(InvalidPreference, match="same epsilon"):
        model().fit(X, y, epsilon=epsilon, groups=np.zeros(3000))

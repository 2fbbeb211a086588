"""scikit-learn's own checks, and what the estimators refuse although scikit-learn would do it."""

import subprocess
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.metadata_routing import get_routing_for_object

import discretion
from discretion import learn, noise
from discretion.errors import InvalidDeclaration, InvalidPreference, QueryRefused
from discretion.learn import LinearRegression, LinearSVC, LogisticRegression

PUBLIC = {"bounds": (-5, 5), "epsilon": 1000.0, "holdout": "public", "random_state": 0}
ESTIMATORS = [
    LinearRegression(target_bounds=(-10, 10), **PUBLIC),
    LinearRegression(target_bounds=(-10, 10), delta=1e-6, **PUBLIC),
    LinearRegression(target_bounds=(-10, 10), method="functional", **PUBLIC),
    LogisticRegression(classes="observed", **PUBLIC),
    LogisticRegression(classes="observed", method="output", **PUBLIC),
    LinearSVC(classes="observed", **PUBLIC),
    LinearSVC(classes="observed", method="objective", mechanism="partition", **PUBLIC),
]


_WHY = "A value that is not finite is somebody's data: an error would tell it, so the row counts as absent."
ABSENT = dict.fromkeys(("check_supervised_y_no_nan", "check_estimators_nan_inf"), _WHY)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: ABSENT)
def test_the_estimators_behave_as_scikit_learn_expects(estimator, check):
    check(estimator)


@pytest.fixture
def rows():
    rng = noise.simulation(1)
    X = rng.uniform(-1, 1, (400, 3))
    return X, (X @ [1.0, -2.0, 0.5] > 0).astype(int), rng.choice([0.1, 0.5, 1.0], 400)


def model(**options):
    return LogisticRegression(bounds=(-1, 1), classes=(0, 1), random_state=0, **options)


@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc"])
def test_cross_validation_on_private_rows_is_refused(rows, scoring):
    X, y, epsilon = rows
    with pytest.raises(QueryRefused, match="holdout"):
        cross_val_score(model(), X, y, scoring=scoring, params={"epsilon": epsilon})
    with pytest.raises(QueryRefused, match="holdout"):
        GridSearchCV(model(), {"norm": [1.0, 1.5]}, scoring=scoring).fit(X, y, epsilon=epsilon)


def test_a_score_on_private_rows_is_refused(rows):
    X, y, epsilon = rows
    fitted = model().fit(X, y, epsilon=epsilon)
    with pytest.raises(QueryRefused, match="exact statistic"):
        fitted.score(X, y)
    paid = discretion.mean(fitted.predict(X) == y, epsilon=epsilon, bounds=(0, 1), rng=noise.simulation(2))
    assert 0.5 < paid.value <= 1.1


def test_a_grid_search_scored_on_public_rows_pays_for_every_fit(rows):
    X, y, epsilon = rows
    public = np.arange(400) >= 300  # the last hundred rows
    search = GridSearchCV(
        model(holdout="public", fits=3),
        {"norm": [1.0, 1.5]},
        cv=PredefinedSplit(np.where(public, 0, -1)),
        refit=True,
    )
    search.fit(X, y, epsilon=epsilon)  # two candidates and the refit: three fits
    losses = search.best_estimator_.guarantee_.losses
    assert [33_333, 166_666, 333_333] == [loss.micro_epsilon for loss in losses.values()]
    assert search.best_score_ > 0.6


def test_a_clone_keeps_what_is_routed_to_it():
    with config_context(enable_metadata_routing=True):
        asked = model(holdout="public").set_fit_request(epsilon=True)
        assert {"epsilon": True, "groups": None, "register": None} == get_routing_for_object(clone(asked)).fit.requests


def test_every_estimator_is_checked_and_documented():
    assert set(learn._ESTIMATORS) == {type(one).__name__ for one in ESTIMATORS}
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text()
    assert all(f"`{name}`" in page for name in learn._ESTIMATORS)


@pytest.mark.parametrize("estimator", dict.fromkeys(type(one) for one in ESTIMATORS))
def test_parameters_are_those_of_the_signature_and_shown_where_they_differ(estimator):
    declared = estimator(bounds=(-1, 1), holdout="public")
    assert set(signature(estimator).parameters) == set(declared.get_params())
    assert f"{estimator.__name__}(bounds=(-1, 1), holdout='public')" == repr(declared) == repr(clone(declared))
    assert "holdout" in declared._repr_html_()


def test_epsilon_is_routed_through_a_pipeline(rows):
    X, y, epsilon = rows
    line = make_pipeline(FunctionTransformer(lambda values: values * 2), model().set_params(bounds=(-2, 2)))
    line.fit(X, y, logisticregression__epsilon=epsilon)
    assert line[-1].guarantee_.losses[0].micro_epsilon == 100_000
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(FunctionTransformer(), model().set_fit_request(epsilon=True))
        assert routed.fit(X, y, epsilon=epsilon)[-1].guarantee_ == line[-1].guarantee_


def test_the_secure_source_is_the_default_and_a_seed_says_simulated(rows):
    X, y, epsilon = rows
    secure = LogisticRegression(bounds=(-1, 1), classes=(0, 1))
    first, second = (secure.fit(X, y, epsilon=epsilon).coef_ for _ in range(2))
    assert not np.array_equal(first, second)
    assert not secure.release_.simulated
    assert model().fit(X, y, epsilon=epsilon).release_.simulated
    with pytest.raises(InvalidDeclaration, match="random_state"):
        model().set_params(random_state="seed").fit(X, y, epsilon=epsilon)


def test_everybody_needs_an_epsilon(rows):
    X, y, _ = rows
    with pytest.raises(InvalidPreference, match="epsilon"):
        model().fit(X, y)


def test_fewer_people_than_coefficients_are_refused(rows):
    X, _, epsilon = rows
    with pytest.raises(InvalidDeclaration, match="4 coefficients need at least as many people"):
        model().fit(X[:3], [0, 1, 0], epsilon=epsilon[:3])


UNUSABLE = {"nan": np.nan, "infinite": np.inf, "missing": None, "undeclared": 7}


def model_of(kind, **options):
    if kind == "regression":
        return LinearRegression(bounds=(-1, 1), target_bounds=(0, 1), random_state=0, **options)
    return model(**options)


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (kind, where)
        for kind in ("regression", "weighted", "output")
        for where in (*UNUSABLE, "feature")
        if (kind, where) != ("regression", "undeclared")  # a number beyond the bounds is clamped
    ],
)
def test_a_row_that_cannot_be_used_counts_as_absent(rows, where, kind, protects):
    """The same fit, to the last digit, as without that row's moments: a person with it is like one without a row."""
    X, y, epsilon = rows
    apart = {"register": epsilon} if protects == "presence" else {}
    options = {"protects": protects} | ({"method": "output", "mechanism": "minimum"} if kind == "output" else {})
    strange_X, strange_y = X.copy(), y.astype(object)
    if where == "feature":
        strange_X[5, 1] = np.nan
    else:
        strange_y[5] = UNUSABLE[where]
    fitted = model_of(kind, **options).fit(strange_X, strange_y, epsilon=epsilon, **apart)
    other_X = strange_X.copy()
    other_X[5] = [np.nan, 0.3, np.inf]
    other = model_of(kind, **options).fit(other_X, y, epsilon=epsilon, **apart)
    assert np.array_equal(other.coef_, fitted.coef_)
    assert other.guarantee_ == fitted.guarantee_


@pytest.mark.parametrize("kind", ["regression", "weighted"])
def test_presence_without_any_row_is_fitted_all_the_same(rows, kind):
    _, _, epsilon = rows
    fitted = model_of(kind, protects="presence").fit(np.empty((0, 3)), [], epsilon=[], register=epsilon)
    assert np.isfinite(fitted.coef_).all()


def test_personalize_needs_no_scikit_learn():
    """OpenDP imports scikit-learn by itself where it is installed, so it is made impossible here."""
    code = "import sys; sys.modules['sklearn'] = None\nfrom discretion.learn import personalize\n"
    code += "print(personalize(lambda rows, epsilon: len(rows), [1, 2], epsilon=1, algorithm_protects='both').value)"
    assert "2" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()


def test_without_scikit_learn_the_estimators_say_what_to_install():
    code = "import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\nimport discretion.learn as learn\n"
    code += "try: learn.LinearSVC\nexcept Exception as error: print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "discretion[learn]" in said
    with pytest.raises(AttributeError, match="RandomForest"):
        discretion.learn.RandomForest  # noqa: B018

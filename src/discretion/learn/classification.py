"""Logistic regression and the linear support vector machine with one epsilon per person."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Protects
from discretion.learn.estimator import PrivateFit
from discretion.learn.loss import Huber, Logistic, Loss
from discretion.learn.people import People
from discretion.learn.personalize import execute
from discretion.learn.perturbation import LEAST_RIDGE, times, uniform, weighted
from discretion.learn.run import Run, plan
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification

RADIUS = 4.0  # how long a useful θ is believed to be in the unit ball; sets the ridge, never the privacy
OUTPUT_RADIUS = 1.0  # the same where noise is added to θ itself, and no curvature holds it back
GRADIENT_VARIANCE = 0.25  # of one row's gradient, at most, where the decision is open


class PrivateLinearClassifier(PrivateFit, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Two classes, divided by a hyperplane that minimises a perturbed risk.

    method="weighted"   objective perturbation in which everybody has the weight their epsilon, up to κ, allows.
    method="objective"  [CMS11] Algorithm 2, method="output" Algorithm 1, both for one epsilon, under
                        mechanism="minimum", "threshold", "sample" (the default) or "partition", with their options
                        (a dictionary) as in `personalize`.

    bounds are public; norm is a public bound on the length of a row placed in [−1, 1]. classes are the two labels,
    the negative one first; "observed" reads them off the data, which makes public that both occur.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        epsilon: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        register: Specification | ArrayLike | None = None,
    ) -> "PrivateLinearClassifier":
        """Fit on rows whose owners accept to lose `epsilon`, one a row; `groups` names the owners.

        register: under protects="presence", the epsilon of everybody who could be in the data.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        self._check()
        owners = self._people(len(X), epsilon, groups, register)
        features = self._features(owners, X.shape[1])
        self.classes_ = self._classes(y)
        rng = self._rng()
        placed, _ = features.ball(X)
        signed = placed * np.where(y == self.classes_[1], 1.0, -1.0)[:, None]
        fit = self._fit_weighted if self.method == "weighted" else self._fit_uniform
        solution, guarantee, why = fit(signed, owners, rng)
        slopes, constant = features.original(solution / features.norm)
        self.coef_, self.intercept_ = slopes[None, :], np.array([constant])
        by_weights = self.method == "weighted"
        named = "weighted objective perturbation" if by_weights else f"{self.method} perturbation, {self._mechanism}"
        self._publish(guarantee, named, None, rng, why)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Signed scores, above 0 for the second class; post-processing of the release, free of charge."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted labels."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    @abstractmethod
    def _loss(self) -> Loss: ...

    @property
    def _note(self) -> str:
        observed = isinstance(self.classes, str) and self.classes == "observed"
        return "the two labels were read off the data and taken to be public" if observed else ""

    @property
    def _mechanism(self) -> str:
        return self.mechanism or "sample"

    def _check(self) -> None:
        if self.method not in ("weighted", "objective", "output"):
            raise InvalidDeclaration(f"method must be 'weighted', 'objective' or 'output', got {self.method!r}.")
        if self.method == "weighted" and self.mechanism is not None:
            raise InvalidDeclaration(
                "mechanism= is for 'objective' and 'output'; 'weighted' honours epsilon by weights."
            )
        if self.regularization is not None and not LEAST_RIDGE <= self.regularization < np.inf:
            raise InvalidDeclaration(f"regularization must be at least {LEAST_RIDGE:g}, got {self.regularization!r}.")

    def _classes(self, y: Any) -> NDArray[Any]:
        """The two labels, negative first."""
        check_classification_targets(y)
        if self.classes is None:
            raise InvalidDeclaration(
                "The two labels must be declared, classes=(negative, positive): which labels occur is private. If "
                "everybody knows that both do, classes='observed' reads them off the data."
            )
        found = np.unique(y)
        declared = found if self._note else np.asarray(self.classes)
        if declared.shape != (2,) or len(np.unique(declared)) != 2 or not set(found.tolist()) <= set(declared.tolist()):
            raise InvalidDeclaration(
                f"There must be exactly two classes and no other labels, got {declared.size} of shape "
                f"{declared.shape} declared or seen. Only binary classification is supported."
            )
        return declared

    def _ridge(self, epsilon: float, people: float, size: int) -> float:
        """λ: as declared for each person, or such that the noise moves θ by about as much as it is long."""
        if self.regularization is not None:
            return float(self.regularization * max(people, 1.0))
        radius = OUTPUT_RADIUS if self.method == "output" else RADIUS
        return max(size * times(self.protects) / (epsilon * radius), LEAST_RIDGE * people)

    def _fit_weighted(self, signed: Floats, owners: People, rng: Rng) -> tuple[Floats, Guarantee, str]:
        size = signed.shape[1]
        charge = self._capped(owners, size * (size + 1) * times(self.protects) ** 2 / GRADIENT_VARIANCE)
        most = int(charge.max()) / MICRO
        ridge = self._ridge(most, float(charge @ owners.specification.heads) / int(charge.max()), size)
        made = weighted(charge, self._loss, ridge, self.protects, size if owners.several else 1)
        solution = made.release(self._loss, signed, made.weights[owners.row_cohort] * owners.votes, rng)
        why = f"the largest influence is ε = {most:g}, the ridge {made.ridge:.3g}"
        return solution, owners.guarantee(charge, arithmetic="float", note=self._note), why

    def _fit_uniform(self, signed: Floats, owners: People, rng: Rng) -> tuple[Floats, Guarantee, str]:
        runs = plan(owners.budget, owners.specification.heads, self._mechanism, **(self.options or {}))
        rank = signed.shape[1] if owners.several else 1

        def one(rows: tuple[Floats, Floats], run: Run) -> Floats:
            ridge = self._ridge(run.micro_epsilon / MICRO, run.people, signed.shape[1])
            made = uniform(run.micro_epsilon, self.method, self._loss, ridge, self.protects, rank)
            return made.release(self._loss, *rows, rng)

        solution = execute(one, (signed, owners.votes), owners, runs, "average", rng)
        charge = np.sum([run.charge for run in runs], axis=0)
        guarantee = owners.guarantee(charge, arithmetic="float", note=self._note)
        return solution, guarantee, f"{len(runs)} fits with one epsilon each"


class LogisticRegression(PrivateLinearClassifier):
    """Logistic regression; see `PrivateLinearClassifier` for the methods."""

    def __init__(
        self,
        *,
        bounds: Any = None,
        classes: Any = None,
        norm: float | None = None,
        epsilon: float | None = None,
        method: str = "weighted",
        mechanism: str | None = None,
        options: dict[str, Any] | None = None,
        kappa: float | None = None,
        regularization: float | None = None,
        fit_intercept: bool = True,
        protects: Protects = "value",
        fits: int = 1,
        holdout: str = "private",
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.classes = classes
        self.norm = norm
        self.epsilon = epsilon
        self.method = method
        self.mechanism = mechanism
        self.options = options
        self.kappa = kappa
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.protects = protects
        self.fits = fits
        self.holdout = holdout
        self.random_state = random_state

    @property
    def _loss(self) -> Loss:
        return Logistic()

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, negative class first."""
        positive = special.expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])


class LinearSVC(PrivateLinearClassifier):
    """The linear support vector machine with the Huber loss; `smoothing` (h) is how wide its corner is rounded off."""

    def __init__(
        self,
        *,
        bounds: Any = None,
        classes: Any = None,
        norm: float | None = None,
        epsilon: float | None = None,
        method: str = "weighted",
        mechanism: str | None = None,
        options: dict[str, Any] | None = None,
        kappa: float | None = None,
        regularization: float | None = None,
        smoothing: float = 0.5,
        fit_intercept: bool = True,
        protects: Protects = "value",
        fits: int = 1,
        holdout: str = "private",
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.classes = classes
        self.norm = norm
        self.epsilon = epsilon
        self.method = method
        self.mechanism = mechanism
        self.options = options
        self.kappa = kappa
        self.regularization = regularization
        self.smoothing = smoothing
        self.fit_intercept = fit_intercept
        self.protects = protects
        self.fits = fits
        self.holdout = holdout
        self.random_state = random_state

    @property
    def _loss(self) -> Loss:
        if not 0 < self.smoothing < np.inf:
            raise InvalidDeclaration(f"smoothing must be a finite number above 0, got {self.smoothing!r}.")
        return Huber(float(self.smoothing))

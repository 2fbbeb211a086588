"""Logistic regression and the linear support vector machine with one epsilon per person."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.learn.estimator import PrivateFit
from discretion.learn.features import Features
from discretion.learn.loss import Huber, Logistic, LossFunction
from discretion.learn.people import People
from discretion.learn.personalize import execute
from discretion.learn.perturbation import LEAST_RIDGE, Kind, times, uniform, weighted
from discretion.learn.run import Run, plan
from discretion.noise import Floats, Rng
from discretion.preference import MICRO

RADIUS = 4.0  # how long a useful θ is believed to be in the unit ball; sets the ridge, never the privacy
OUTPUT_RADIUS = 1.0  # the same where noise is added to θ itself, and no curvature holds it back
GRADIENT_VARIANCE = 0.25  # of one row's gradient, at most, where the decision is open


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearClassifier(PrivateFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Two classes, divided by a hyperplane that minimises a perturbed risk.

    method="weighted"   objective perturbation in which everybody has the weight their epsilon, up to κ, allows.
    method="objective"  [CMS11] Algorithm 2, method="output" Algorithm 1, both for one epsilon, under
                        mechanism="minimum", "threshold", "sample" (the default) or "partition", with their options
                        (a dictionary) as in `personalize`.

    bounds are public; norm is a public bound on the length of a row placed in [−1, 1]. classes are the two labels,
    the negative one first; "observed" reads them off the data, which makes public that both occur.
    """

    classes: Any = None  # public: (negative, positive), or "observed"
    regularization: float | None = None  # Λ, the ridge for each person; None: by the noise
    _uniform_methods = ("objective", "output")

    def _learn(self, X: Floats, y: Any, owners: People, features: Features, rng: Rng) -> None:
        placed, _ = features.ball(X)
        signed = placed * np.where(y == self.classes_[1], 1.0, -1.0)[:, None]
        if self.method == "weighted":
            name, fit = "weighted objective perturbation", self._fit_weighted
        else:
            name, fit = f"{self.method} perturbation, {self._mechanism}", self._fit_uniform
        solution, guarantee, why = fit(signed, owners, rng)
        slopes, constant = features.original(solution / features.norm)
        self.coef_, self.intercept_ = slopes[None, :], np.array([constant])
        self._publish(np.append(slopes, constant), None, guarantee, name, rng, why)

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
    def _loss(self) -> LossFunction:
        """Return what a row costs that lies on the wrong side."""

    @property
    def _observed(self) -> bool:
        return isinstance(self.classes, str) and self.classes == "observed"

    def _guarantee(self, owners: People, charge: Any) -> Guarantee:
        note = "the two labels were read off the data and taken to be public" if self._observed else ""
        return owners.guarantee(charge, arithmetic="float", note=note)

    def _check(self) -> None:
        super()._check()
        if self.regularization is not None and not LEAST_RIDGE <= self.regularization < np.inf:
            raise InvalidDeclaration(f"regularization must be at least {LEAST_RIDGE:g}, got {self.regularization!r}.")

    def _has_target(self, y: Any) -> Any:
        """Return which rows have one of the two labels, which are set on the way."""
        self.classes_ = self._classes(y)
        known = set(self.classes_.tolist())
        return np.array([label in known for label in y.tolist()], dtype=bool)

    def _classes(self, y: Any) -> NDArray[Any]:
        """Return the two labels, negative first."""
        if self.classes is None:
            raise InvalidDeclaration(
                "The two labels must be declared, classes=(negative, positive): which labels occur is private. If "
                "everybody knows that both do, classes='observed' reads them off the data."
            )
        if self._observed:
            y = np.array([label for label in y.tolist() if label is not None and label == label], dtype=y.dtype)
            check_classification_targets(y)
        classes = np.unique(y) if self._observed else np.asarray(self.classes)
        if classes.shape != (2,) or classes[0] == classes[1]:
            got = f"{classes.size} in the data" if self._observed else f"{self.classes!r}"
            raise InvalidDeclaration(
                f"There must be exactly two classes, (negative, positive), got {got}. Only binary classification is "
                "supported."
            )
        return classes

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
        return solution, self._guarantee(owners, charge), why

    def _fit_uniform(self, signed: Floats, owners: People, rng: Rng) -> tuple[Floats, Guarantee, str]:
        runs = plan(owners.spends, self._mechanism, self.options or {})
        rank = signed.shape[1] if owners.several else 1
        kind: Kind = "output" if self.method == "output" else "objective"

        def one(rows: tuple[Floats, Floats], run: Run) -> Floats:
            ridge = self._ridge(run.micro_epsilon / MICRO, run.people, signed.shape[1])
            made = uniform(run.micro_epsilon, kind, self._loss, ridge, self.protects, rank)
            return made.release(self._loss, *rows, rng)

        solution = execute(one, (signed, owners.votes), owners, runs, "average", rng)
        charge = np.sum([run.charge for run in runs], axis=0)
        return solution, self._guarantee(owners, charge), f"{len(runs)} fits with one epsilon each"


class LogisticRegression(PrivateLinearClassifier):
    """Logistic regression; see `PrivateLinearClassifier` for the methods."""

    @property
    def _loss(self) -> LossFunction:
        return Logistic()

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, negative class first."""
        positive = special.expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])


@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVC(PrivateLinearClassifier):
    """The linear support vector machine with the Huber loss; `smoothing` is how wide its corner is rounded off.

    See `PrivateLinearClassifier` for the methods.
    """

    smoothing: float = 0.5  # h

    @property
    def _loss(self) -> LossFunction:
        return Huber(float(self.smoothing))

    def _check(self) -> None:
        super()._check()
        if not 0 < self.smoothing < np.inf:
            raise InvalidDeclaration(f"smoothing must be a finite number above 0, got {self.smoothing!r}.")

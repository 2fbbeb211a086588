"""Ensembles: several private outputs become one. All of it is post-processing and costs nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discretion.errors import InvalidDeclaration
from discretion.noise import Floats

Rule = Literal["average", "vote", "models", "majority"] | Callable[[Sequence[Any], Floats], Any]


def combine(outputs: Sequence[Any], weights: Sequence[float], rule: Rule) -> Any:
    """One output from several; a single one is returned as it is."""
    if len(outputs) == 1:
        return outputs[0]
    if callable(rule):
        return rule(outputs, _shares(weights))
    if rule not in _RULES:
        raise InvalidDeclaration(f"ensemble must be a function or one of {', '.join(map(repr, _RULES))}, got {rule!r}.")
    return _RULES[rule](outputs, _shares(weights))


def average(outputs: Sequence[Any], weights: Floats) -> Any:
    """The weighted average of numbers, or of arrays of one shape (coefficients, scores)."""
    return np.tensordot(weights, np.asarray(outputs, dtype=np.float64), axes=1)[()]


def vote(outputs: Sequence[Any], weights: Floats) -> NDArray[Any]:
    """The label with most weight behind it, for each position; the first in order if it is a tie."""
    votes = np.asarray(outputs)  # (voter, position)
    labels = np.unique(votes)
    support = np.stack([np.tensordot(weights, votes == label, axes=1) for label in labels])
    return np.asarray(labels[np.argmax(support, axis=0)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Jury:
    """Fitted models that decide together.

    With `by_vote` ([LXJJ17] 4.4: majority voting) every classifier has one vote, and weights only break ties. Else
    classifiers average their scores (class probabilities, or decision values) where they have them, because the
    ranking of a plain vote has only as many steps as there are voters; without scores they vote. Regressors average.
    """

    models: tuple[Any, ...]
    weights: Floats
    by_vote: bool = False

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the columns of `predict_proba`."""
        return np.asarray(self.models[0].classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Weighted average of the class probabilities."""
        return np.asarray(average([model.predict_proba(X) for model in self.models], self.weights))

    def decision_function(self, X: Any) -> Floats:
        """Weighted average of the decision values."""
        return np.asarray(average([model.decision_function(X) for model in self.models], self.weights))

    def predict(self, X: Any) -> NDArray[Any]:
        """By average score, else by vote; numbers are averaged."""
        first = self.models[0]
        if self.by_vote:
            return majority([model.predict(X) for model in self.models], self.weights)
        if hasattr(first, "predict_proba"):
            return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
        if hasattr(first, "decision_function"):
            return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])
        predictions = [model.predict(X) for model in self.models]
        return np.asarray((vote if hasattr(first, "classes_") else average)(predictions, self.weights))


def majority(outputs: Sequence[Any], weights: Floats) -> NDArray[Any]:
    """Return the label that most outputs have, for each position; of equals, the one with more weight behind it."""
    return vote(outputs, np.asarray(1 + weights / (2 * weights.sum() * len(outputs))))


def _majority(outputs: Sequence[Any], weights: Floats) -> Any:
    """Return a committee that votes for models, or the elected labels for arrays of labels."""
    if hasattr(outputs[0], "predict"):
        return Jury(models=tuple(outputs), weights=weights, by_vote=True)
    return majority(outputs, weights)


def _models(outputs: Sequence[Any], weights: Floats) -> Jury:
    return Jury(models=tuple(outputs), weights=weights)


def _shares(weights: Sequence[float]) -> Floats:
    raw = np.asarray(weights, dtype=np.float64)
    if not (bool(np.all(np.isfinite(raw) & (raw >= 0))) and raw.sum() > 0):
        raise InvalidDeclaration("The utility of a group must be a finite number of 0 or more, and not 0 for all.")
    return np.asarray(raw / raw.sum())


_RULES: dict[str, Callable[[Sequence[Any], Floats], Any]] = {
    "average": average,
    "vote": vote,
    "models": _models,
    "majority": _majority,
}

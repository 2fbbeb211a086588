"""Learning with one epsilon per person: personalize any algorithm; regression and classification for scikit-learn.

`personalize` needs NumPy only. The estimators need scikit-learn (the extra `learn`) and are imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discretion.errors import require
from discretion.learn.local import answer_locally
from discretion.learn.own import choose
from discretion.learn.personalize import personalize
from discretion.learn.run import risk_utility
from discretion.learn.tuning import count_with_pilot, tune_threshold

if TYPE_CHECKING:
    from discretion.learn.classification import LinearSVC, LogisticRegression
    from discretion.learn.linear_regression import LinearRegression

_ESTIMATORS = {
    "LinearRegression": "discretion.learn.linear_regression",
    "LinearSVC": "discretion.learn.classification",
    "LogisticRegression": "discretion.learn.classification",
}

__all__ = [
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "answer_locally",
    "choose",
    "count_with_pilot",
    "personalize",
    "risk_utility",
    "tune_threshold",
]


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'discretion.learn' has no attribute {name!r}")
    require("learn", name)
    return getattr(import_module(_ESTIMATORS[name]), name)

"""Combining outputs is arithmetic on what is already released."""

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.learn.ensemble import Jury, combine


class Constant:
    """A fitted classifier that says the same of everything."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, probability):
        self.probability = probability

    def predict_proba(self, X):
        return np.tile([1 - self.probability, self.probability], (len(X), 1))


def test_one_output_stays_what_it_is():
    model = object()
    assert model is combine([model], [0.0], "average")


def test_an_average_is_weighted_and_keeps_the_shape():
    assert 2.5 == combine([1.0, 3.0], [1.0, 3.0], "average")
    assert [2.5, 0.75] == combine([[1.0, 0.0], [3.0, 1.0]], [1.0, 3.0], "average").tolist()


def test_a_vote_is_weighted_and_ties_go_to_the_first_label():
    votes = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a"]]
    assert ["a", "b", "b"] == combine(votes, [1, 1, 1], "vote").tolist()
    assert ["b", "b", "b"] == combine(votes, [1, 5, 1], "vote").tolist()
    assert ["a"] == combine([["b"], ["a"]], [1, 1], "vote").tolist()


def test_models_average_their_scores_rather_than_vote():
    committee = combine([Constant(0.4), Constant(0.4), Constant(0.9)], [1, 1, 1], "models")
    assert isinstance(committee, Jury)
    assert np.allclose(0.5667, committee.predict_proba([0])[0, 1], atol=1e-4)
    assert ["yes"] == committee.predict([0]).tolist()  # two of three would have voted no


class Sided:
    """A fitted classifier with decision values only."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, value):
        self.value = value

    def decision_function(self, X):
        return np.full(len(X), self.value)


class Labelling:
    """A fitted model that only predicts; a classifier if it has classes."""

    def __init__(self, value, classes=None):
        self.value = value
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict(self, X):
        return np.full(len(X), self.value)


def test_models_use_the_best_scores_they_have():
    sided = combine([Sided(-1.0), Sided(3.0)], [3, 2], "models")
    assert [0.6] == sided.decision_function([0]).round(9).tolist()
    assert ["yes"] == sided.predict([0]).tolist()
    voting = combine([Labelling(value, ["no", "yes"]) for value in ("no", "no", "yes")], [1, 1, 1], "models")
    assert ["no"] == voting.predict([0]).tolist()
    averaging = combine([Labelling(1.0), Labelling(4.0)], [2, 1], "models")
    assert [2.0] == averaging.predict([0]).tolist()


def test_a_majority_has_one_vote_each_and_weights_only_break_ties():
    models = [Labelling(value, ["no", "yes"]) for value in ("no", "no", "yes")]
    assert ["no"] == combine(models, [1, 1, 98], "majority").predict([0]).tolist()
    assert ["yes"] == combine(models[1:], [1, 2], "majority").predict([0]).tolist()
    assert ["a", "c"] == combine([["a", "b"], ["a", "c"]], [1, 2], "majority").tolist()


def test_a_function_may_be_the_rule():
    assert [(1, 0.25), (2, 0.75)] == combine([1, 2], [1, 3], lambda out, w: list(zip(out, w.tolist(), strict=True)))


def test_unknown_rules_and_useless_weights_are_refused():
    with pytest.raises(InvalidDeclaration, match="ensemble"):
        combine([1, 2], [1, 1], "median")
    for weights in ([0, 0], [-1, 2], [np.nan, 1]):
        with pytest.raises(InvalidDeclaration, match="utility"):
            combine([1, 2], weights, "average")

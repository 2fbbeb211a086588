"""The number of people is free where who they are is public, and only there."""

import pytest

from discretion.errors import Unsuitable
from discretion.mechanisms import Belief
from discretion.mechanisms.public import propose
from discretion.preference import Specification
from discretion.statistics import Aggregate, Statistics

PEOPLE = Specification(epsilons=(0, 100_000), people=(2, 5))


@pytest.mark.parametrize("kind", ["count", "people"])
def test_everybody_is_counted_exactly_and_for_nothing(kind):
    mechanism = propose(Aggregate(kind=kind, protects="value", complete=True), PEOPLE, Belief())
    assert [7.0] == mechanism.release(Statistics(counts=None), None).tolist()
    assert 0 == mechanism.error.total
    assert [0, 0] == [loss.micro_epsilon for loss in mechanism.guarantee.losses.values()]
    assert mechanism.measure.aggregate.complete


@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "count", "protects": "presence"},
        {"kind": "count", "protects": "value"},
        {"kind": "count", "protects": "value", "complete": True, "groups": 2},
        {"kind": "sum", "protects": "value", "complete": True},
    ],
)
def test_nothing_else_is_public(shape):
    with pytest.raises(Unsuitable, match="not public"):
        propose(Aggregate(**shape), PEOPLE, Belief())

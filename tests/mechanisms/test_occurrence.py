"""How many keys occur: nobody loses more than the charge, and the error is honest on every small dataset."""

from dataclasses import replace

import numpy as np
import pytest

from contracts import (
    Universe,
    charges_of,
    check_nobody_loses_more_than_the_charge,
    losses_of,
    statistics_of,
    violations,
)
from discretion.errors import Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.occurrence import Occurrence, tuned
from discretion.noise import simulation
from discretion.preference import Specification
from discretion.statistics import Aggregate

COUNTING = ("weighted", "stretch", "threshold", "minimum")
OTHERS = ("public", "pooled", "weighted_rank", "sample", "exponential", "partition", "smooth")
ONE = ((), ((0, 0),), ((0, 1),), ((0, 2),))
TWO = (*ONE, ((0, 0), (0, 1)), ((0, 0), (0, 2)), ((0, 1), (0, 2)), ((0, 1), (0, 1)))
GROUPED = ((), *(((g, v),) for g in (0, 1) for v in (0, 1)), ((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (1, 0)))
SHAPES = {
    "one row": ({"upper": 2}, ONE, (0.1, 0.3, 1.0)),
    "two rows": ({"upper": 2, "rows_per_person": 2}, TWO, (0.1, 0.3, 1.0)),
    "more rows than keys": ({"upper": 0, "rows_per_person": 2}, ((), ((0, 0),), ((0, 0), (0, 0))), (0.1, 0.3, 1.0)),
    "groups": ({"upper": 1, "rows_per_person": 2, "groups": 2}, GROUPED, (0.1, 0.5, 1.0)),
    "somebody opted out": ({"upper": 2}, ONE, (0.0, 0.3, 1.0)),
}


def made(shape: str, name: str, protects: str) -> tuple[Universe, Occurrence]:
    known, states, epsilons = SHAPES[shape]
    universe = Universe(epsilons, states)
    aggregate = Aggregate(kind="distinct", protects=protects, **known)
    return universe, MECHANISMS[name](aggregate, universe.specification, Belief())


@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nobody_loses_more_than_the_charge(shape: str, protects: str) -> None:
    for name in COUNTING:
        universe, mechanism = made(shape, name, protects)
        losses = check_nobody_loses_more_than_the_charge(mechanism, universe)
        if name == "stretch":  # everybody's whole price is used: the sensitivity is no larger than it must be
            assert charges_of(mechanism, universe) == pytest.approx(losses)


@pytest.mark.parametrize("protects", ["presence", "value"])
def test_a_smaller_sensitivity_would_be_noticed(protects: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: a key is counted once, so its first row would be all that matters."""
    universe, mechanism = made("two rows", "stretch", protects)
    monkeypatch.setattr(Aggregate, "sensitivity", 1)
    assert [0, 1, 2] == violations(losses_of(mechanism, universe), universe.epsilons)


def test_group_totals_as_if_rows_stayed_in_their_group_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: under value, rows that leave a group for another are counted in one of them."""
    universe, mechanism = made("groups", "stretch", "value")
    monkeypatch.setattr(Aggregate, "sensitivity", 2)
    assert [] != violations(losses_of(mechanism, universe), universe.epsilons)


def test_the_smallest_weight_instead_of_the_largest_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: a key's weight is the strictest person's, so that somebody strict lowers what others have."""

    def lowest(self: Occurrence, statistics):
        weights = np.array(self.weights) // self.unit
        occurs = statistics.histogram > 0
        least = np.where(occurs, weights[:, None], weights.max() + 1).min(axis=1)
        return ((least * occurs.any(axis=1)).sum(axis=1),)

    universe, mechanism = made("one row", "stretch", "presence")
    monkeypatch.setattr(Occurrence, "centres", lowest)
    assert [] != violations(losses_of(mechanism, universe), universe.epsilons)


@pytest.mark.parametrize("shape", ["one row", "two rows", "somebody opted out"])
def test_the_count_never_overstates_and_falls_short_by_at_most_the_bias(shape: str) -> None:
    worst = dict.fromkeys(COUNTING, 0.0)
    for name in COUNTING:
        universe, mechanism = made(shape, name, "presence")
        for dataset in universe.datasets():
            truth = len({step for state in dataset for _, step in state})
            (centre,) = mechanism.centres(statistics_of(mechanism.aggregate, universe, dataset, range(len(dataset))))
            short = truth - float(centre[0]) * mechanism.unit / max(mechanism.weights)
            assert -1e-9 <= short <= mechanism.error.bias + 1e-9
            worst[name] = max(worst[name], short)
        assert mechanism.error.bias == pytest.approx(worst[name])  # and some dataset falls that short


@pytest.mark.parametrize("confidence", [0.2, 0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("shape", ["one row", "two rows", "somebody opted out"])
def test_intervals_miss_no_more_often_than_they_say(shape: str, confidence: float) -> None:
    """Exactly, on every dataset: the noise is discrete Laplace."""
    for name in COUNTING:
        universe, mechanism = made(shape, name, "presence")
        unit, (scale,) = mechanism.unit / max(mechanism.weights), mechanism.scales
        noise = np.arange(-int(60 * scale) - 1, int(60 * scale) + 2)
        chances = np.exp(-np.abs(noise) / float(scale)) * np.tanh(0.5 / float(scale))
        below, above = mechanism.error._ends((1 - confidence) / 2)
        for dataset in universe.datasets():
            truth = len({step for state in dataset for _, step in state})
            (centre,) = mechanism.centres(statistics_of(mechanism.aggregate, universe, dataset, range(len(dataset))))
            past = truth - (float(centre[0]) + noise) * unit
            missed = chances[(past < below - 1e-9) | (past > above + 1e-9)].sum()
            assert missed <= 1 - confidence + 1e-9


def test_an_interval_is_no_wider_than_the_bias_and_the_noise_on_both_sides() -> None:
    """The count only falls short: the lower end is as far as the noise reaches, and not the bias further."""
    specification = Specification(epsilons=(500_000, 1_000_000), people=(100, 5_000))
    error = tuned(
        Aggregate(kind="distinct", protects="presence", upper=999), specification, np.array([500_000, 1_000_000])
    ).error
    low, high = error.interval(500.0)
    assert error.bias == pytest.approx(50)
    assert 500 - low == pytest.approx(np.log(10), rel=0.1)
    assert high - 500 == pytest.approx(50 + np.log(10), rel=0.03)
    assert high - low < 0.6 * 2 * replace(error, quantiles=()).half_width()


def test_one_level_counts_exactly_but_for_the_noise() -> None:
    specification = Specification(epsilons=(1_000_000_000,), people=(50,))
    aggregate = Aggregate(kind="distinct", protects="value", upper=9)
    histogram = np.zeros((1, 1, 10), dtype=np.int64)
    histogram[0, 0, [1, 4, 7]] = 5
    universe = Universe((1.0,), ((),))
    statistics = replace(statistics_of(aggregate, universe, ((),), ()), histogram=histogram)
    for name in COUNTING:
        mechanism = MECHANISMS[name](aggregate, specification, Belief())
        assert [3.0] == mechanism.release(statistics, simulation(1)).tolist()
        assert mechanism.error.bias == 0
        assert mechanism.error.limits == (0.0, 10.0)


def test_few_strict_people_cost_little() -> None:
    """Ten strict people among thousands have at most ten keys to themselves."""
    specification = Specification(epsilons=(100_000, 1_000_000), people=(10, 5_000))
    aggregate = Aggregate(kind="distinct", protects="presence", upper=999)
    errors = {name: MECHANISMS[name](aggregate, specification, Belief()).error for name in COUNTING}
    assert errors["stretch"].bias == pytest.approx(10 * 0.9)
    assert errors["threshold"].bias in (0, 10)
    assert errors["weighted"].total <= min(error.total for error in errors.values()) + 1e-9


def test_mechanisms_that_add_up_people_refuse() -> None:
    universe, mechanism = made("one row", "minimum", "value")
    for name in OTHERS:
        with pytest.raises(Unsuitable):
            MECHANISMS[name](mechanism.aggregate, universe.specification, Belief())
    with pytest.raises(Unsuitable, match="nobody"):
        tuned(mechanism.aggregate, universe.specification, np.zeros(3, dtype=np.int64))

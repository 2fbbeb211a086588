"""The checker itself: it finds the losses that are known exactly, and it notices every planted bug."""

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from contracts import (
    Atoms,
    Shifts,
    Universe,
    check_nobody_loses_more_than_the_charge,
    law_of,
    loss,
    losses_of,
    statistics_of,
    violations,
    worst_losses,
)
from discretion import noise
from discretion.guarantee import Loss
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.linear import Linear, Part
from discretion.mechanisms.sample import Sample
from discretion.noise import choice_probabilities, simulation
from discretion.preference import MICRO, Specification, allowance
from discretion.release import Error
from discretion.statistics import Aggregate
from drawing import check_release_draws_the_law

BITS = ((), ((0, 1),))
THREE = Universe((0.1, 0.5, 1.0), BITS)
COUNT = Aggregate(kind="count", protects="presence")


def count(protects="presence"):
    return replace(COUNT, protects=protects)


def propose(name, universe=THREE, aggregate=COUNT, **options):
    return MECHANISMS[name](aggregate, universe.specification, Belief(), **options)


GOLDEN = [  # the digest's name, its relation, the mechanism here
    ("Sample count geom t=0.1", "presence", "sample", {"threshold": 0.1}),
    ("Sample count geom t=0.5", "presence", "sample", {"threshold": 0.5}),
    ("Sample count geom t=0.533", "presence", "sample", {"threshold": "mean"}),
    ("Sample count geom t=1", "presence", "sample", {"threshold": "max"}),
    ("Sample count geom t=1.5", "presence", "sample", {"threshold": 1.5}),
    ("Sample count geom t=0.05", "presence", "sample", {"threshold": 0.05}),
    ("Minimum count geom", "presence", "minimum", {}),
    ("Threshold count geom t=.5", "presence", "threshold", {"threshold": 0.5}),
    ("Stretching count (Alag.)", "presence", "stretch", {}),
    ("PE count", "value", "exponential", {}),
    ("PE count, absent as a state", "presence", "exponential", {}),
    ("PE count uniform", "value", "exponential", {}),
    ("PE count, cheap zeros / dear ones, factor 1/2", "value", "exponential", {}),
    (
        "Partitioned counts k=2 T=1, groups from public phi",
        "presence",
        "partition",
        {"groups": 2, "cuts": "privacy", "ensemble": "stratified"},
    ),
    (
        "Partitioned counts k=2 T=2, groups from public phi",
        "presence",
        "partition",
        {"groups": 2, "cuts": "privacy", "ensemble": "stratified", "rounds": 2},
    ),
]


@pytest.mark.parametrize(("case", "protects", "name", "options"), GOLDEN, ids=[f"{c[0]}, {c[1]}" for c in GOLDEN])
def test_known_losses_are_found_exactly(golden, case, protects, name, options):
    relations = {"presence": ("addrem",), "value": ("sub", "sub_any")}[protects]
    vectors = [v for v in golden("pdp")["verification"] if v["name"] == case and v["relation"] in relations]
    assert vectors
    for vector in vectors:
        universe = Universe(tuple(vector["phi"]), BITS)
        mechanism = propose(name, universe, count(protects), **options)
        losses = check_nobody_loses_more_than_the_charge(mechanism, universe)
        assert pytest.approx(vector["worst_loss"], abs=1e-6) == losses


# Planted bugs: each is a mistake somebody made in print or could make here.


def test_half_the_noise_is_noticed():
    class Quiet(Linear):
        @property
        def scales(self):
            return tuple(scale / 2 for scale in super().scales)

    honest = propose("weighted")
    quiet = Quiet(**{name: getattr(honest, name) for name in honest.__dataclass_fields__})
    assert [0, 1, 2] == violations(losses_of(quiet, THREE), THREE.epsilons)


@pytest.mark.parametrize("name", ["minimum", "sample", "partition"])
def test_parameters_from_the_people_present_are_noticed(name):
    """Minimum, mean or groups computed from those who are in the data: the noise itself tells who is."""
    options = {"threshold": "mean"} if name == "sample" else {}

    def law(dataset):
        present = [person for person, state in enumerate(dataset) if state]
        if not present:
            return Shifts(np.zeros((1, 1)), np.ones(1), (1.0,))
        seen = Universe(tuple(THREE.epsilons[p] for p in present), BITS)
        mechanism = propose(name, seen, **options)
        return law_of(mechanism, COUNT, seen, tuple(dataset[p] for p in present))

    assert {0, 1} <= set(violations(worst_losses(law, THREE, "presence"), THREE.epsilons))


def test_the_noise_of_presence_does_not_protect_values_in_a_histogram():
    aggregate = Aggregate(kind="count", protects="presence", groups=2)
    universe = Universe((0.1, 0.5), ((), ((0, 1),), ((1, 1),)))
    mechanism = propose("weighted", universe, aggregate)
    assert [] == violations(losses_of(mechanism, universe), universe.epsilons)
    by_value = worst_losses(lambda d: law_of(mechanism, aggregate, universe, d), universe, "value")
    assert pytest.approx([0.2, 1.0]) == by_value


def test_sampling_with_noise_for_one_relation_only_is_noticed(golden):
    """±1 sums: noise for presence under a change of value. The digest knows the losses."""
    (vector,) = [
        v
        for v in golden("pdp")["verification"]
        if v["name"] == "Sample sum of values in {-1,+1}, t=1" and v["relation"] == "sub"
    ]
    aggregate = Aggregate(kind="sum", protects="presence", lower=-1, upper=1)
    universe = Universe((0.1, 0.5, 1.0), (((0, -1),), ((0, 1),)))
    mechanism = propose("sample", universe, aggregate, threshold="max")
    losses = worst_losses(lambda d: law_of(mechanism, aggregate, universe, d), universe, "value")
    assert pytest.approx(vector["worst_loss"], abs=1e-6) == losses
    assert [0, 1, 2] == violations(losses, universe.epsilons)


def test_sampling_inside_which_the_number_of_people_is_public_is_noticed():
    """Everybody's sum on 1..3 changes by 2 with a value, but by 3 when a coin leaves somebody out."""
    aggregate = Aggregate(kind="sum", protects="value", lower=1, upper=3, complete=True)
    universe = Universe((0.1, 0.5, 1.0), (((0, 1),), ((0, 3),)))
    honest = propose("sample", universe, aggregate, threshold="max")
    check_nobody_loses_more_than_the_charge(honest, universe)
    wrong = replace(honest, aggregate=aggregate)
    assert 0 in violations(losses_of(wrong, universe), universe.epsilons)


def test_publishing_the_size_of_the_sample_is_noticed(golden):
    """The inner answer is t-DP for changed values only: the strict person loses t. Under presence, everything."""
    expected = {
        v["relation"]: [float(x) for x in v["worst_loss"]]
        for v in golden("pdp")["verification"]
        if v["name"].startswith("Sample, inner publishes n")
    }
    values = Universe((0.1, 0.5, 1.0), (((0, 0),), ((0, 1),)))
    aggregate = Aggregate(kind="sum", protects="value")

    class Sized(Sample):
        @property
        def scales(self):
            return (*super().scales, 0)

        def centres(self, statistics):
            return (*super().centres(statistics), statistics.counts.sum(axis=1))

    honest = propose("sample", values, aggregate, threshold="max")
    sized = Sized(**{name: getattr(honest, name) for name in honest.__dataclass_fields__})
    assert pytest.approx(expected["sub"]) == losses_of(sized, values)
    present = Universe((0.1, 0.5, 1.0), ((), ((0, 0),), ((0, 1),)))
    gone = worst_losses(lambda d: law_of(sized, aggregate, present, d), present, "presence")
    assert all(worst > 100 for worst in gone)


def test_candidates_up_to_the_number_of_people_present_are_noticed():
    """[JYC15] as printed: R = {0..n} with n from the data."""
    universe = Universe((0.1, 0.2, 0.5, 1.0), ((), ((0, 0),), ((0, 1),)))

    def law(dataset):
        costs = _costs(dataset, universe)
        return Atoms(choice_probabilities([-c for c in costs], 2 * MICRO))

    assert [inf] * 4 == worst_losses(law, universe, "presence")


def _costs(dataset, universe):
    micro = allowance(universe.epsilons)
    ones = sorted(micro[p] for p, state in enumerate(dataset) if state and state[0][1])
    zeros = sorted(micro[p] for p, state in enumerate(dataset) if state and not state[0][1])
    down = [sum(ones[:k]) for k in range(len(ones), 0, -1)]
    return [*down, *(sum(zeros[:k]) for k in range(len(zeros) + 1))]


def test_a_choice_sharper_than_one_half_is_noticed(golden):
    (vector,) = [v for v in golden("pdp")["verification"] if v["name"].endswith("factor 0.8")]
    universe = Universe(tuple(vector["phi"]), BITS)
    mechanism = propose("exponential", universe, count("value"))

    def law(dataset):
        costs = mechanism.costs(statistics_of(COUNT, universe, dataset, range(len(dataset))))
        return Atoms(choice_probabilities(-costs, Fraction(MICRO) / Fraction(8, 10)))

    losses = worst_losses(law, universe, "value")
    assert pytest.approx(vector["worst_loss"], abs=1e-6) == losses
    assert violations(losses, universe.epsilons)


def test_rounding_preferences_to_the_nearest_hundredth_is_noticed():
    """[JYC15]'s experiments: somebody who chose 0.016 is served 0.02."""
    chosen = (0.016, 0.5)
    rounded = Universe(tuple(round(epsilon, 2) for epsilon in chosen), BITS)
    mechanism = propose("weighted", rounded)
    assert [0] == violations(losses_of(mechanism, rounded), chosen)
    assert not mechanism.guarantee.honours(Specification.assign(chosen)[0])


def test_spending_the_whole_budget_on_each_moment_is_noticed(monkeypatch):
    monkeypatch.setattr(
        "discretion.mechanisms.linear.parts",
        lambda a: (Part("centred", Fraction(2 * a.upper)), Part("square", Fraction(a.upper**2))),
    )
    aggregate = Aggregate(kind="variance", protects="value", upper=4, complete=True)
    universe = Universe((0.1, 0.5), (((0, 0),), ((0, 2),), ((0, 3),), ((0, 4),)))
    mechanism = Linear(
        aggregate=aggregate,
        specification=universe.specification,
        weights=universe.specification.epsilons,
        error=Error(bias=0, noise=0),
    )
    assert [0, 1] == violations(losses_of(mechanism, universe), universe.epsilons)


def test_one_weight_for_all_is_noticed():
    """Stretching without the stretch."""
    honest = propose("stretch")
    careless = replace(honest, weights=(MICRO,) * 3)
    assert [0, 1] == violations(losses_of(careless, THREE), THREE.epsilons)
    assert not careless.guarantee.honours(THREE.specification)


def test_charging_less_than_is_lost_is_noticed():
    mechanism = propose("minimum")

    class Cheap(type(mechanism)):
        @property
        def guarantee(self):
            return replace(super().guarantee, losses=dict.fromkeys(super().guarantee.losses, Loss(50_000)))

    cheap = Cheap(**{name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__})
    with pytest.raises(AssertionError, match=r"charged 0\.05 loses 0\.1"):
        check_nobody_loses_more_than_the_charge(cheap, THREE)


# The distance between laws.


def test_mixtures_are_extreme_at_their_breakpoints():
    rng = simulation(4)
    for _ in range(50):
        scale = float(rng.uniform(0.5, 4))
        one, other = (
            Shifts(rng.integers(-5, 6, (4, 1)).astype(float), rng.dirichlet(np.ones(4)), (scale,)) for _ in range(2)
        )
        z = np.arange(-40, 41)
        p, q = (
            sum(w * np.exp(-np.abs(z - c) / scale) for w, c in zip(law.weights, law.centres[:, 0], strict=True))
            for law in (one, other)
        )
        assert pytest.approx(np.max(np.abs(np.log(p / q)))) == loss(one, other)


def test_different_scales_or_supports_or_kinds_of_law_are_infinitely_far_apart():
    narrow, wide = (Shifts(np.zeros((1, 1)), np.ones(1), (scale,)) for scale in (1.0, 2.0))
    assert inf == loss(narrow, wide)
    assert inf == loss(Atoms(np.array([0.5, 0.5])), Atoms(np.array([1.0, 0.0])))
    assert inf == loss(Atoms(np.ones(1)), narrow)


# Planted bugs in what is drawn: the exposed law is right, and the release is not drawn from it.


def planted(honest, **methods):
    """A mechanism whose law is that of an honest one."""
    kind = type("Planted", (type(honest),), methods)
    return kind(**{name: getattr(honest, name) for name in honest.__dataclass_fields__})


def quieter(self, statistics, rng):
    (centre,), (scale,) = self.centres(statistics), self.scales
    return self._totals((centre + noise.discrete_laplace(scale / 2, 1, rng).astype(object)) * self.unit)


def twice(self, statistics, rng):
    answers = [Linear.answer(self, statistics, rng)[0] for _ in range(2)]
    return np.mean(answers, axis=0), (self.error,)


def another_generator(self, statistics, rng):
    (centre,) = self.centres(statistics)
    drawn = simulation(1).laplace(scale=float(self.scales[0]), size=1)  # seeded: nothing is secret
    return self._totals((centre + drawn) * self.unit)


def tells_more(self, statistics, rng):
    values, errors = Linear.answer(self, statistics, rng)
    return values, tuple(replace(error, noise=error.noise + int(statistics.counts.sum())) for error in errors)


def clamps_to_the_truth(self, statistics, rng):
    values, errors = Linear.answer(self, statistics, rng)
    return np.minimum(values, float(statistics.counts.sum())), errors


@pytest.mark.parametrize("drawing", [quieter, twice, another_generator, tells_more, clamps_to_the_truth])
def test_an_answer_that_is_not_drawn_from_its_law_is_noticed(drawing):
    honest = propose("weighted")
    check_release_draws_the_law(honest, THREE)
    wrong = planted(honest, answer=drawing)
    check_nobody_loses_more_than_the_charge(wrong, THREE)  # its law is right
    with pytest.raises(AssertionError):
        check_release_draws_the_law(wrong, THREE)


def test_a_choice_by_another_law_is_noticed():
    honest = propose("exponential")
    check_release_draws_the_law(honest, THREE)

    def greedier(self, statistics, rng):
        return np.array([float(noise.choose(-self.costs(statistics), MICRO, rng, self.rule))])

    with pytest.raises(AssertionError, match="another law"):
        check_release_draws_the_law(planted(honest, release=greedier), THREE)

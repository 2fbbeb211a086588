"""Model individual over statistics: exhaustively, nobody's loss around the actual data exceeds their ε."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration, Unsuitable
from discretion.guarantee import Guarantee, in_parallel
from discretion.mechanisms.individual import FINER, Local, coarser, propose
from discretion.noise import choice_probabilities, simulation
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

EPSILONS = (100_000, 500_000, 1_000_000)
SPECIFICATION = Specification(epsilons=EPSILONS, people=(1, 1, 1))
VALUES = range(3)
ABSENT = None
ASKED = [
    {"kind": "count"},
    {"kind": "sum", "lower": -1, "upper": 1},
    {"kind": "sum", "lower": 0, "upper": 2},
    {"kind": "mean", "upper": 2},
    {"kind": "quantile", "upper": 2, "rank": Fraction(1, 2)},
    {"kind": "quantile", "upper": 2, "rank": Fraction(0)},
    {"kind": "quantile", "upper": 2, "rank": Fraction(1)},
]


def shape(**asked):
    return Aggregate(**{"protects": "presence", **asked})


def statistics(aggregate, people):
    """What an engine finds: `people` has a state for each of three people, (group, value) or ABSENT."""
    width = aggregate.upper - aggregate.lower + 1
    histogram = np.zeros((aggregate.groups, 3, width), dtype=np.int64)
    for cohort, state in enumerate(people):
        if state is not ABSENT:
            histogram[state[0], cohort, min(state[1], width - 1)] += 1
    return Statistics(counts=histogram.sum(axis=2), histogram=histogram)


def states_of(aggregate):
    present = [(group, value) for group in range(aggregate.groups) for value in VALUES]
    return present if aggregate.size_is_public else [ABSENT, *present]


def neighbours(aggregate, people, person):
    """Data in which this person's row comes or goes (presence), or is any other (value)."""
    for state in states_of(aggregate):
        comes = (state is ABSENT) != (people[person] is ABSENT)
        if state != people[person] and (aggregate.protects == "value" or comes):
            yield (*people[:person], state, *people[person + 1 :])


def worst(mechanism, relation=None):
    """Return the largest loss of anybody, as a part of their ε, over all data and their neighbours."""
    aggregate, found = mechanism.aggregate, Fraction(0)
    every = list(product(states_of(aggregate), repeat=3))
    centres = {people: mechanism.centres(statistics(aggregate, people)) for people in every}
    for people in every:
        for person, epsilon in enumerate(EPSILONS):
            for other in neighbours(relation or aggregate, people, person):
                loss = Fraction(0)
                for (mine, scale), (theirs, _) in zip(centres[people], centres[other], strict=True):
                    if mine != theirs:
                        loss += Fraction(10**9) if scale == 0 else abs(mine - theirs) / scale
                found = max(found, loss * MICRO / epsilon)
    return found


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked['kind']} {asked.get('rank', '')}")
@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize("groups", [1, 2])
def test_nobody_loses_more_than_their_epsilon_around_the_actual_data(asked, protects, groups):
    mechanism = propose(shape(**asked, protects=protects, groups=groups), SPECIFICATION)
    assert Fraction(4, 10) < worst(mechanism) <= 1  # and the noise is not far larger than that needs


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked['kind']} {asked.get('rank', '')}")
def test_where_everybody_has_a_value_only_changes_are_covered(asked):
    mechanism = propose(shape(**asked, protects="value", complete=True), SPECIFICATION)
    assert "value" == mechanism.relation
    assert worst(mechanism) <= 1


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("rank", [Fraction(0), Fraction(1)])
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_the_second_maximum_keeps_the_promise_too(place, rank, protects):
    mechanism = propose(shape(kind="quantile", upper=2, rank=rank, protects=protects), SPECIFICATION, place=place)
    assert worst(mechanism) <= 1
    people = [(0, value) for value in (2, 0, 1)]
    ((truth, _),) = mechanism.centres(statistics(mechanism.aggregate, people))
    assert sorted([0, 1, 2], reverse=rank == 1)[place - 1] == truth


def test_the_check_finds_parts_that_are_charged_once_although_people_can_move():
    """[SDSM17] Theorems 2 and 4 as printed: a record that is modified leaves one part for another, and loses twice."""
    printed = propose(shape(kind="count", groups=2), SPECIFICATION)  # each part at ε, as where rows come and go
    assert worst(printed) == 1
    assert worst(printed, replace(printed.aggregate, protects="value")) == 2


def test_the_check_finds_a_row_that_comes_and_was_forgotten():
    class Forgetful(Local):
        @property
        def relation(self):
            return "value"  # although a filter, or NULL, makes rows come and go

    aggregate = shape(kind="quantile", upper=2, rank=Fraction(1, 2), protects="value")
    assert worst(Forgetful(aggregate=aggregate, specification=SPECIFICATION)) > 1


# Modes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protects", ["presence", "value"])
def test_nobody_loses_more_than_the_strictest_epsilon_by_a_mode(protects):
    aggregate = shape(kind="mode", upper=2, protects=protects)
    mechanism = propose(aggregate, SPECIFICATION)
    exact = 0
    for people in product(states_of(aggregate), repeat=3):
        counts = statistics(aggregate, people).histogram[0].sum(axis=0)
        truth, modes = int(np.argmax(counts)), mechanism.reachable(counts)
        assert truth == modes[0]
        exact += len(modes) == 1
        found, scores = mechanism.scores(statistics(aggregate, people))
        law = dict(zip(found, choice_probabilities(np.array(scores), MICRO), strict=True))
        for person in range(3):
            for other in neighbours(aggregate, people, person):
                changed = int(np.argmax(statistics(aggregate, other).histogram[0].sum(axis=0)))
                assert changed in law  # else the ratio has no bound
                ratio = law[truth] / law[changed] if changed != truth else 1.0
                assert ratio <= np.exp(EPSILONS[0] / MICRO) + 1e-12
    assert exact > 0


def test_a_mode_that_nobody_can_change_is_exact():
    aggregate = shape(kind="mode", upper=2)
    many = Specification(epsilons=(1_000_000,), people=(20,))
    histogram = np.array([[[9, 5, 1]]])
    mechanism = propose(aggregate, many)
    assert [0] == mechanism.reachable(histogram[0, 0])
    release = mechanism.release(Statistics(counts=histogram.sum(axis=2), histogram=histogram), simulation(1))
    assert [0.0] == release.tolist()


# The axioms of the paper --------------------------------------------------------------------------------------------

MODE = propose(shape(kind="mode", upper=2), SPECIFICATION)
EVERY = list(product(states_of(MODE.aggregate), repeat=3))
BOUND = float(np.exp(EPSILONS[0] / MICRO))


def counts_of(people):
    return statistics(MODE.aggregate, people).histogram[0].sum(axis=0)


def law(actual, people, bound=BOUND):
    """Return the law of κ_actual on `people`: it is tuned to the actual data, as [SDSM17] Definition 5 has it."""
    weights = np.array([float(mode in MODE.reachable(counts_of(actual))) for mode in VALUES])
    weights[int(np.argmax(counts_of(people)))] *= bound
    return weights / weights.sum()


def worst_ratio(law_of):
    """Return the largest ratio of probabilities around any actual data, in both directions."""
    found = 1.0
    for people in EVERY[::3]:
        mine = law_of(people, people)
        for person in range(3):
            for other in neighbours(MODE.aggregate, people, person):
                theirs = law_of(people, other)
                assert np.array_equal(mine > 0, theirs > 0)
                ratios = mine[mine > 0] / theirs[mine > 0]
                found = max(found, *ratios, *(1 / ratios))
    return found


def test_the_law_itself_is_bounded_around_the_actual_data():
    assert worst_ratio(law) == pytest.approx(BOUND)


def test_transformation_invariance_whatever_is_done_with_an_answer_keeps_the_bound():
    """[SDSM17] Proposition 3, for every map to two outputs and for random ones."""
    maps = [np.array(rows, dtype=float) for rows in product([(1, 0), (0, 1), (0.3, 0.7)], repeat=3)]
    for transformed in maps:
        assert worst_ratio(lambda actual, people, by=transformed: law(actual, people) @ by) <= BOUND + 1e-12


def test_choice_between_two_mechanisms_keeps_the_bound():
    """[SDSM17] Proposition 4: which mechanism answers is drawn independently of the data, seen or not."""

    def exact(actual, people):
        return law(actual, people, bound=float(np.exp(0.05)))

    for chance in (0.1, 0.5, 0.9):

        def unseen(actual, people, p=chance):
            return p * law(actual, people) + (1 - p) * exact(actual, people)

        def seen(actual, people, p=chance):
            return np.concatenate([p * law(actual, people), (1 - p) * exact(actual, people)])

        assert worst_ratio(unseen) <= BOUND + 1e-12
        assert worst_ratio(seen) <= BOUND + 1e-12


def test_a_choice_that_depends_on_the_data_breaks_the_axiom_and_is_noticed():
    def drawn(actual, people):
        p = 0.9 if counts_of(people)[0] > 1 else 0.1
        return np.concatenate([p * law(actual, people), (1 - p) * law(actual, people)])

    assert worst_ratio(drawn) > BOUND + 0.1


def test_differential_privacy_implies_it_for_every_actual_data_set():
    """[SDSM17] Proposition 2: the exponential mechanism on counts is tuned to no data, and bounded around all."""

    def private(actual, people):
        weights = np.exp(counts_of(people) * EPSILONS[0] / MICRO / 2)
        return weights / weights.sum()

    assert worst_ratio(private) <= BOUND + 1e-12


# What it refuses, and grids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        ({"kind": "variance"}, {}, "does not answer a variance"),
        ({"kind": "count", "rows_per_person": 2}, {}, "one row"),
        ({"kind": "mode", "groups": 2}, {}, "without groups"),
        ({"kind": "sum"}, {"place": 2}, "for a minimum or a maximum"),
        ({"kind": "quantile", "rank": Fraction(1)}, {"place": 0}, "counts from 1"),
        ({"kind": "sum", "upper": 10**9}, {}, "larger share"),
    ],
)
def test_what_it_cannot_answer_is_refused(asked, options, said):
    with pytest.raises(Unsuitable, match=said):
        propose(
            shape(**asked), Specification(epsilons=(1,), people=(3,)) if "larger" in said else SPECIFICATION, **options
        )


def test_a_sum_is_put_on_a_grid_that_can_be_counted():
    fine = shape(kind="sum", lower=-3_000_000, upper=9_999_999, step=Fraction(1, 10_000))
    rough = coarser(fine)
    assert rough.upper - rough.lower <= 1_002
    assert rough.value(rough.lower) <= fine.value(fine.lower)
    assert rough.value(rough.upper) >= fine.value(fine.upper)
    assert shape(kind="count") == coarser(shape(kind="count"))


def test_a_mean_is_rounded_to_a_part_of_a_step():
    mechanism = propose(shape(kind="mean", upper=2, protects="value", complete=True), SPECIFICATION)
    ((truth, _),) = mechanism.centres(statistics(mechanism.aggregate, [(0, 0), (0, 1), (0, 1)]))
    assert round(FINER * 2 / 3) == truth


# Parallel composition -----------------------------------------------------------------------------------------------


def promise(*micro, protects="presence", **kind):
    return Guarantee.of(Specification(epsilons=(1, 2), people=(1, 1)), micro, protects=protects, **kind)


def test_releases_about_disjoint_parts_cost_the_most_of_them():
    parts = [promise(3, 10), promise(5, 4)]
    assert [5, 10] == [loss.micro_epsilon for loss in in_parallel(parts).losses.values()]
    moved = in_parallel(parts, "value")
    assert [10, 20] == [loss.micro_epsilon for loss in moved.losses.values()]
    assert "value" == moved.protects


@pytest.mark.parametrize("protects", ["presence", "value"])
def test_parallel_composition_holds_for_every_pair_of_mechanisms_on_two_parts(protects):
    """Three people, two parts, every law of answers of a grid of laws: losses of pairs are at most what is charged."""
    losses = (Fraction(1), Fraction(1, 2))  # ε of the release about each part: exact counts, scales 1/ε
    states = [ABSENT, 0, 1]
    allowed = max(losses) if protects == "presence" else 2 * max(losses)
    largest = Fraction(0)
    for people in product(states, repeat=3):
        for person in range(3):
            for state in states:
                if protects == "presence" and (state is ABSENT) == (people[person] is ABSENT):
                    continue
                other = (*people[:person], state, *people[person + 1 :])
                moved = [abs(people.count(part) - other.count(part)) for part in (0, 1)]
                largest = max(largest, sum(move * loss for move, loss in zip(moved, losses, strict=True)))
    assert largest <= allowed
    assert largest == (max(losses) if protects == "presence" else sum(losses))  # the two largest: more than one alone


def test_parts_must_protect_presence_and_have_one_model():
    with pytest.raises(InvalidDeclaration, match="protects presence"):
        in_parallel([promise(1, 1, protects="value")])
    with pytest.raises(InvalidDeclaration, match="different models"):
        in_parallel([promise(1, 1), promise(1, 1, model="individual")])
    with pytest.raises(InvalidDeclaration, match="protects presence"):
        in_parallel([])

"""Cosine, Jaccard, Dice and overlap: what is released for them, what it costs, and planted bugs."""

from itertools import product

import numpy as np
import pytest
from item_checker import Law, worst_log_ratio

from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social import similarity
from discretion.social.profile import Profiles
from discretion.social.similarity import RATIOS, Cosine, Dice, Exact, Jaccard, Overlap, ScalarProduct

KINDS = [Cosine, Jaccard, Dice, Overlap]
LEVELS = (None, 0, 300, 1000)  # an item is absent, or held with this weight in thousandths
A, B = np.array([0]), np.array([1])
EPSILON, SIZE = 0.5, 0.2


def pair(x, y):
    """Two people from their levels, item by item."""
    entries = [(p, i, v / 1000) for p, row in enumerate((x, y)) for i, v in enumerate(row) if v is not None]
    person, item, weight = zip(*entries, strict=True) if entries else ((), (), ())
    return Profiles.of(person, item, weight, people=2, items=len(x))


def laws(kind, profiles):
    """Everything that is released for one pair: the product and both sizes, each with noise of its own."""
    made = kind.charged(ScalarProduct(profiles=profiles, micro_epsilon=int(EPSILON * MICRO)), size_epsilon=SIZE)
    sizes = [Law(int(steps), float(made.size_scale)) for steps in profiles.stretched_sizes]
    return [Law(int(made.product.steps(A, B)[0]), float(made.product.scale)), *sizes]


def worst_losses(release):
    """The worst log-ratio of all released numbers together when item 0 of the first person changes, by its levels.

    The noises are independent, so the worst event of all numbers is the worst event of each, and log-ratios add up.
    """
    found = {}
    for rest, y in product(LEVELS, product(LEVELS, repeat=2)):
        made = {v: release(pair((v, rest), y)) for v in LEVELS}
        for v, u in product(LEVELS, repeat=2):
            loss = sum(worst_log_ratio(a, b) for a, b in zip(made[v], made[u], strict=True))
            key = (v or 0) / 1000, (u or 0) / 1000
            found[key] = max(found.get(key, 0.0), loss)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_item_loses_more_than_its_weight_to_a_ratio(kind):
    losses = worst_losses(lambda profiles: laws(kind, profiles))
    for (v, u), loss in losses.items():
        assert loss <= (EPSILON + SIZE) * max(v, u) + 1e-9
    assert abs(EPSILON + SIZE - losses[1.0, 0.0]) < 1e-9  # attained: the checker has power
    made = kind.charged(ScalarProduct(profiles=pair((1000,), (1000,)), micro_epsilon=500_000), size_epsilon=SIZE)
    assert (500_000, 200_000) == (made.micro_epsilon, made.joining)
    assert 350_000 == made.promise(700_000).losses[MICRO // 2].micro_epsilon


@pytest.mark.parametrize("bug", ["sizes without weights", "half the noise on sizes", "product without weights"])
def test_the_check_finds_planted_bugs(bug):
    def release(profiles):
        shared, *sizes = laws(Jaccard, profiles)
        if bug == "sizes without weights":
            sizes = [Law(1000 * int(size), sizes[0].scale) for size in profiles.sizes]
        if bug == "half the noise on sizes":
            sizes = [Law(size.steps, size.scale / 2) for size in sizes]
        if bug == "product without weights":
            shared = Law(1000 * int(profiles.held.toarray().prod(axis=0).sum()), shared.scale)
        return [shared, *sizes]

    assert any(loss > (EPSILON + SIZE) * max(v, u) + 0.05 for (v, u), loss in worst_losses(release).items())


def scores(kind, profiles, seed):
    made = kind.charged(ScalarProduct(profiles=profiles, micro_epsilon=500_000), size_epsilon=SIZE)
    return made.join(simulation(seed))(A, B, simulation(seed + 1)).tolist()


def differing(score):
    """Small universes in which an item of weight 0 changes the score although the noise is the same."""
    return [
        (rest, y)
        for rest, y in product(LEVELS, product(LEVELS, repeat=2))
        if score(pair((None, rest), y)) != score(pair((0, rest), y))
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_of_weight_zero_never_changes_a_score(kind):
    assert [] == differing(lambda profiles: scores(kind, profiles, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_finds_a_division_by_exact_sizes(kind):
    """[AGK16] section 4 divides by the true number of items."""

    def exact(profiles):
        drawn = ScalarProduct(profiles=profiles, micro_epsilon=500_000).draw(A, B, simulation(2))
        sizes = np.maximum(1, profiles.sizes)
        return RATIOS[kind.measure](drawn, sizes[A], sizes[B]).tolist()

    assert differing(exact)


@pytest.mark.parametrize("kind", KINDS)
def test_with_public_sizes_swapping_items_costs_at_most_the_larger_weight(kind):
    """Sizes are equal then, and a ratio does not fall where the product rises, so its law is that of the product."""
    for v, u, y in product((0, 300, 1000), (0, 300, 1000), product(LEVELS, repeat=2)):
        made = [kind.public(ScalarProduct(profiles=pair(x, y), micro_epsilon=500_000)) for x in ((v, None), (None, u))]
        assert made[0].sizes(None).tolist() == made[1].sizes(None).tolist()
        released = [Law(int(each.product.steps(A, B)[0]), float(each.product.scale)) for each in made]
        assert worst_log_ratio(*released) <= 0.5 * max(v, u) / 1000 + 1e-9
    assert "swapping" in made[0].promise(MICRO).note


@pytest.mark.parametrize("measure", RATIOS)
def test_ratios_never_fall_where_the_product_rises(measure):
    products = np.linspace(-30, 30, 601)
    for a, b in product((1.0, 2.5, 9.0), repeat=2):
        assert np.all(np.diff(RATIOS[measure](products, a, b)) >= 0)


def test_ratios_are_those_counted_by_hand():
    profiles = pair((1000, 1000, 1000, None), (None, 1000, 1000, 1000))
    expected = {"product": 2, "cosine": 2 / 3, "jaccard": 2 / 4, "dice": 4 / 6, "overlap": 2 / 3}
    for measure, value in expected.items():
        assert abs(value - Exact(profiles=profiles, measure=measure).draw(A, B, None)[0]) < 1e-12
    for kind in KINDS:
        sharp = kind.public(ScalarProduct(profiles=profiles, micro_epsilon=900 * MICRO))
        assert abs(expected[kind.measure] - sharp.join(None)(A, B, None)[0]) < 0.1  # noise above .1: e^-80


def test_jaccard_of_weighted_profiles_is_the_sum_of_minima_over_the_sum_of_maxima():
    profiles = pair((1000, 300, None), (300, 1000, 1000))
    steps = ScalarProduct(profiles=profiles, micro_epsilon=MICRO).steps(A, B)[0] / 1000
    a, b = profiles.stretched_sizes / 1000
    assert abs(0.6 / 3.0 - RATIOS["jaccard"](steps, a, b)) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_drawn_is_that_of_the_proof(monkeypatch, kind):
    drawn = []
    monkeypatch.setattr(
        similarity,
        "discrete_laplace",
        lambda scale, size, rng: drawn.append((scale, size)) or np.zeros(size, dtype=np.int64),
    )
    made = kind.charged(ScalarProduct(profiles=pair((1000,), (1000,)), micro_epsilon=500_000), size_epsilon=SIZE)
    draw = made.join(None)
    draw(A, B, None)
    draw(A, B, None)
    assert [(5_000, 2), (2_000, 1), (2_000, 1)] == drawn  # sizes once, a product for each pair

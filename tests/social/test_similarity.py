from itertools import product
from math import sqrt

import numpy as np
import pytest
from item_checker import Law, worst_log_ratio

from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.social import similarity as similarities
from discretion.social.profile import Profiles
from discretion.social.similarity import Cosine, Exact, ScalarProduct, shared

LEVELS = (None, 0, 300, 1000)  # an item is absent, or held with this weight in thousandths
A, B = np.array([0]), np.array([1])


def pair(x, y):
    """Two people from their levels, item by item."""
    entries = [(p, i, v / 1000) for p, row in enumerate((x, y)) for i, v in enumerate(row) if v is not None]
    person, item, weight = zip(*entries, strict=True) if entries else ((), (), ())
    return Profiles.of(person, item, weight, people=2, items=len(x))


def worst_losses(law):
    """The worst log-ratio when item 0 of the first person changes, by its two levels (absent counts as 0)."""
    found = {}
    for rest_x, y in product(LEVELS, product(LEVELS, repeat=2)):
        laws = {v: law(pair((v, rest_x), y)) for v in LEVELS}
        for v, u in product(LEVELS, repeat=2):
            key = (v or 0) / 1000, (u or 0) / 1000
            found[key] = max(found.get(key, 0.0), worst_log_ratio(laws[v], laws[u]))
    return found


def scalar_law(coefficient, micro_epsilon=500_000):
    def law(profiles):
        mechanism = ScalarProduct(profiles=profiles, micro_epsilon=micro_epsilon, coefficient=coefficient)
        return Law(int(mechanism.steps(A, B)[0]), float(mechanism.scale))

    return law


@pytest.mark.parametrize("coefficient", ["min", "product"])
def test_no_item_loses_more_than_its_weight_to_a_scalar_product(coefficient):
    losses = worst_losses(scalar_law(coefficient))
    for (v, u), loss in losses.items():
        assert loss <= 0.5 * max(v, u) + 1e-9
    assert abs(0.5 - losses[1.0, 0.0]) < 1e-9  # attained: the checker has power


def test_scalar_products_treat_both_sides_alike():
    profiles = pair((300, None, 1000), (1000, 300, 0))
    for coefficient in ("min", "product"):
        mechanism = ScalarProduct(profiles=profiles, micro_epsilon=MICRO, coefficient=coefficient)
        assert mechanism.steps(A, B) == mechanism.steps(B, A)


@pytest.mark.parametrize("bug", ["unweighted", "larger weight", "half the noise"])
def test_the_checker_catches_planted_bugs(bug):
    def law(profiles):
        dense = profiles.weights.toarray()
        both = profiles.held.toarray().prod(axis=0)
        steps = {"unweighted": 1000 * both, "larger weight": dense.max(axis=0) * both}.get(bug, dense.min(axis=0))
        return Law(int(steps.sum()), 1000 / 0.5 / (2 if bug == "half the noise" else 1))

    assert any(loss > 0.5 * max(v, u) + 0.05 for (v, u), loss in worst_losses(law).items())


def test_dividing_by_exact_sizes_breaks_the_promise():
    """[AGK16] section 4 as printed: cos = noisy product / √(exact sizes). An item of weight 0 must cost nothing."""

    def law(profiles):
        plain = scalar_law("product")(profiles)
        norm = sqrt(np.maximum(1, profiles.sizes).prod())
        return Law(plain.steps, plain.scale, 1 / norm)

    assert worst_losses(law)[0.0, 0.0] > 3  # and it grows without bound with the threshold
    assert worst_losses(scalar_law("product"))[0.0, 0.0] == 0


def test_the_printed_example_of_that_leak():
    """Eleven items instead of ten against thirty, the new one of weight 0: ratios .80, 8.4, 84 at t = 1, 10, 100."""
    for t, expected in ((1, 0.80), (10, 8.4), (100, 84)):
        logs = [np.log(sqrt(30 * n)) - abs(t * sqrt(30 * n) - 5) for n in (10, 11)]  # Laplace density of SP/√(30n)
        assert abs(expected - abs(logs[0] - logs[1])) < 0.06 * max(1, t / 12)


def test_released_sizes_cost_each_item_its_weight():
    def law(profiles):
        return Law(int(profiles.stretched_sizes[0]), 1000 / 0.2)

    for (v, u), loss in worst_losses(law).items():
        assert loss <= 0.2 * max(v, u) + 1e-9
    product_only = ScalarProduct(profiles=pair((1000, 0), (300, None)), micro_epsilon=MICRO)
    charged = Cosine.charged(product_only, size_epsilon=0.2)
    many = [charged.sizes(simulation(s))[0] for s in range(2_000)]
    # clamped at 1 from a Laplace law of scale 5 around 1: P(1) = P(Z ≤ 0), about .5; 5 deviations are .056
    assert abs(0.5 - np.mean(np.array(many) == 1)) < 0.06
    large = ScalarProduct(
        profiles=Profiles.of([0] * 100 + [1], [*range(100), 0], [1] * 101, people=2, items=100), micro_epsilon=MICRO
    )
    off = [abs(Cosine.charged(large, size_epsilon=0.2).sizes(simulation(s))[0] - 100) for s in range(2_000)]
    assert abs(5 - np.mean(off)) < 0.6  # E|Z| = 5, deviation of the mean 5/√2000 = .11
    assert 200_000 == charged.joining
    assert 500 == charged.promise(1_000).losses[MICRO // 2].micro_epsilon


def test_with_public_sizes_swapping_items_costs_at_most_the_larger_weight():
    for v, u, y in product((0, 300, 1000), (0, 300, 1000), product(LEVELS, repeat=2)):
        laws = []
        for x in ((v, None), (None, u)):
            profiles = pair(x, y)
            mechanism = Cosine.public(ScalarProduct(profiles=profiles, micro_epsilon=500_000))
            norm = sqrt(mechanism.sizes(None).prod())
            laws.append(Law(int(mechanism.product.steps(A, B)[0]), float(mechanism.product.scale), 1 / norm))
        assert worst_log_ratio(*laws) <= 0.5 * max(v, u) / 1000 + 1e-9
    promised = mechanism.promise(MICRO)
    assert MICRO == promised.losses[0].micro_epsilon  # swapping away an item of weight 0 shows the other
    assert "swapping" in promised.note


def test_golden_products_and_cosines(golden):
    for case in golden["hdp_scalar_cosine"]:
        levels = [[round(1000 * v) if held else None for v, held in zip(case[w], case[s], strict=True)]
                  for w, s in (("vx", "x"), ("vy", "y"))]  # fmt: skip
        profiles = pair(*levels)
        for coefficient, suffix in (("product", ""), ("min", "_min")):
            mechanism = ScalarProduct(profiles=profiles, micro_epsilon=MICRO, coefficient=coefficient)
            noisy = mechanism.steps(A, B)[0] / mechanism.whole + case["noise"]
            assert abs(case["sp_product" if coefficient == "product" else "sp_min"] - noisy) < 1e-9
            cosine = noisy / sqrt(Cosine.public(mechanism).sizes(None).prod())
            assert abs(case[f"cosine{suffix}"] - cosine) < 1e-9
            if coefficient == "product":
                assert abs(case["squared_as_in_released_code"] - cosine**2) < 1e-9


def test_squaring_loses_the_sign_as_in_the_released_simulator():
    """Two strangers whose noise is strongly negative look like friends."""
    profiles = pair((1000, None), (None, 1000))
    product_only = ScalarProduct(profiles=profiles, micro_epsilon=MICRO)
    signed, squared = (
        Cosine.public(product_only, squared=squared).join(None)(np.zeros(50, int), np.ones(50, int), simulation(1))
        for squared in (False, True)
    )
    assert np.allclose(signed**2, squared)
    assert signed.min() < -0.5 < 0 < squared.min()


def test_the_min_coefficient_never_keeps_less_than_the_product():
    profiles = Profiles.of(*np.nonzero(np.ones((2, 50))), np.linspace(0, 1, 100), people=2, items=50)
    kept = {c: ScalarProduct(profiles=profiles, micro_epsilon=MICRO, coefficient=c) for c in ("min", "product")}
    small, large = (kept[c].steps(A, B)[0] / kept[c].whole for c in ("product", "min"))
    assert small < large
    halves = profiles.weigh(500)
    quarter, half = (ScalarProduct(profiles=halves, micro_epsilon=MICRO, coefficient=c) for c in ("product", "min"))
    assert 2 * quarter.steps(A, B)[0] / quarter.whole == half.steps(A, B)[0] / half.whole


def test_noise_has_the_stated_scale():
    profiles = pair((1000, 500), (1000, 1000))
    for coefficient in ("min", "product"):
        mechanism = ScalarProduct(profiles=profiles, micro_epsilon=250_000, coefficient=coefficient)
        many = np.zeros(20_000, dtype=np.int64)
        drawn = mechanism.draw(many, many + 1, simulation(4))
        # E|Z| = 4, deviation of the mean 4/√20000 = .028: 5 deviations
        assert abs(4 - np.abs(drawn - 1.5).mean()) < 0.15
        assert mechanism.draw(A, B, None).shape == (1,)


def test_pairs_are_compared_in_batches_with_the_same_result(monkeypatch):
    rng = simulation(3)
    profiles = Profiles.of(*np.nonzero(rng.random((30, 40)) < 0.3), people=30, items=40).sliced(np.arange(0, 1001), rng)
    left, right = rng.integers(0, 30, (2, 500))
    dense = profiles.weights.toarray().astype(np.int64)
    expected = {
        "min": np.minimum(dense[left], dense[right]).sum(axis=1),
        "product": (dense[left] * dense[right]).sum(axis=1),
    }
    for entries in (4_000_000, 50):
        monkeypatch.setattr(similarities, "ENTRIES", entries)
        for coefficient, sums in expected.items():
            assert sums.tolist() == shared(profiles.weights, left, right, coefficient).tolist()
    assert 0 == shared(profiles.weights, left[:0], right[:0], "min").size


@pytest.mark.parametrize(
    ("people", "density", "levels"), [(40, 0.5, 4), (40, 0.5, 500), (40, 0.01, 4), (1_100, 0.2, 4)]
)
@pytest.mark.parametrize("coefficient", ["min", "product"])
def test_all_pairs_at_once_give_the_same_steps(people, density, levels, coefficient):
    rng = simulation(9)
    held = np.nonzero(rng.random((people, 60)) < density)
    profiles = Profiles.of(*held, people=people, items=60).sliced(np.linspace(0, 1000, levels).astype(int), rng)
    mechanism = ScalarProduct(profiles=profiles, micro_epsilon=MICRO, coefficient=coefficient)
    left, right = rng.integers(0, people, (2, 300))
    assert shared(profiles.weights, left, right, coefficient).tolist() == mechanism.steps(left, right).tolist()


def test_large_products_do_not_overflow():
    items = 60_000  # 60,000 full products of 10^6 each leave 32 bits
    profiles = Profiles.of(
        np.repeat([0, 1], items), np.tile(np.arange(items), 2), np.ones(2 * items), people=2, items=items
    )
    mechanism = ScalarProduct(profiles=profiles, micro_epsilon=MICRO, coefficient="product")
    assert items * 10**6 == mechanism.steps(A, B)[0]


def test_the_exact_baseline_promises_nothing():
    exact = Exact(profiles=pair((0, 1000, None), (300, None, 1000)), measure="cosine")
    assert exact.promise(5) is None
    assert 0.5 == exact.draw(A, B, None)[0]
    assert 1 == Exact(profiles=exact.profiles).draw(A, B, None)[0]


def test_malformed_similarities_are_refused():
    profiles = pair((1000,), (1000,))
    for build in (
        lambda: ScalarProduct(profiles=profiles, micro_epsilon=0),
        lambda: ScalarProduct(profiles=profiles, micro_epsilon=1, coefficient="max"),
        lambda: Cosine.charged(ScalarProduct(profiles=profiles, micro_epsilon=1), size_epsilon=0),
    ):
        with pytest.raises(InvalidDeclaration):
            build()

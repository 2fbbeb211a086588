"""Every sampler against its law. The secure source cannot be seeded, so each statistical test states its false-alarm
rate (10^-9 unless said otherwise) and the same test must reject a law that is a few percent off: that is its power.
By the noncentral χ² law (for Kolmogorov's test, a normal one) that fails by chance less than once in 10^9 runs, too."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from scipy import stats

from discretion import noise
from discretion.errors import InvalidDeclaration

FALSE_ALARM = 1e-9


def laplace_pmf(scale: float, reach: int) -> np.ndarray:
    """Probabilities of −reach..reach, the two tails lumped into the end cells."""
    a = exp(-1 / scale)
    pmf = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    pmf[[0, -1]] = a**reach / (1 + a)
    return pmf


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    return float(stats.chisquare(observed, expected * observed.sum()).pvalue)


@pytest.mark.parametrize("scale", [Fraction(1, 2), 3, Fraction(22, 7)])
@pytest.mark.parametrize("rng", [None, noise.simulation(1)], ids=["secure", "simulated"])
def test_discrete_laplace_has_its_law_and_the_test_would_notice_four_percent(scale, rng):
    reach = max(2, round(4 * float(scale)))
    draws = np.clip(noise.discrete_laplace(scale, 200_000, rng), -reach, reach)
    observed = np.bincount(draws + reach, minlength=2 * reach + 1)
    assert chi_square(observed, laplace_pmf(float(scale), reach)) > FALSE_ALARM
    for wrong in (0.96, 1.04):
        assert chi_square(observed, laplace_pmf(wrong * float(scale), reach)) < FALSE_ALARM


@pytest.mark.parametrize("rule", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("rng", [None, noise.simulation(2)], ids=["secure", "simulated"])
def test_choices_have_their_law_and_the_test_would_notice_twelve_percent(rule, rng):
    scores, scale = np.array([0, -1_000_000, -2_000_000, -4_000_000, -5_000_000]), 2_000_000
    observed = np.bincount([noise.choose(scores, scale, rng, rule) for _ in range(40_000)], minlength=5)
    assert chi_square(observed, noise.choice_probabilities(scores, scale, rule)) > FALSE_ALARM
    for wrong in (0.88, 1.12):
        off = noise.choice_probabilities(scores, Fraction(wrong) * scale, rule)
        assert chi_square(observed, off) < FALSE_ALARM


def test_the_discrete_laplace_ratio_is_exactly_its_claim_and_breaks_with_five_percent_less_noise():
    def worst(scale: float, shift: int) -> float:
        pmf = laplace_pmf(scale, 60)[1:-1]
        return float(np.max(np.abs(np.log(pmf[shift:]) - np.log(pmf[:-shift]))))

    for scale, shift in product((0.5, 2, 7), (1, 2, 3)):
        assert worst(scale, shift) == pytest.approx(shift / scale)
        assert worst(0.95 * scale, shift) > shift / scale


@pytest.mark.parametrize("rule", ["exponential", "permute_and_flip"])
def test_the_choice_ratio_keeps_its_claim_on_all_neighbours_and_breaks_with_five_percent_less_noise(rule):
    def worst(scale: Fraction | int) -> float:
        law = {s: np.log(noise.choice_probabilities(s, scale, rule)) for s in product(range(0, 13, 2), repeat=3)}
        moves = list(product((-1, 0, 1), repeat=3))
        ratios = (
            law[s] - np.log(noise.choice_probabilities([a + b for a, b in zip(s, move, strict=True)], scale, rule))
            for s in law
            for move in moves
        )
        return float(max(np.max(np.abs(ratio)) for ratio in ratios))

    claim = 2 * 1 / 2  # scores move by at most 1, scale 2
    assert worst(2) <= claim + 1e-12
    assert worst(Fraction(19, 10)) > claim


def test_permute_and_flip_probabilities_match_the_algorithm_spelled_out():
    accept = np.exp(np.array([0, -1, -2.5]) / 2)

    def flip(remaining: tuple[int, ...]) -> np.ndarray:
        """Exact distribution of: pick one of the remaining at random, accept it or remove it."""
        total = np.zeros(3)
        for i in remaining:
            total[i] += accept[i] / len(remaining)
            if accept[i] < 1:
                total += (1 - accept[i]) / len(remaining) * flip(tuple(j for j in remaining if j != i))
        return total

    expected = flip((0, 1, 2))
    assert noise.choice_probabilities([0, -2, -5], 4, "permute_and_flip") == pytest.approx(expected)


def test_a_scale_that_no_double_holds_is_rounded_up():
    third = noise._double_above(Fraction(1, 3))
    assert Fraction(third) >= Fraction(1, 3)
    assert noise._double_above(7) == 7.0


def test_inclusion_thresholds_give_the_golden_rates_and_never_more(golden):
    for case in golden("pdp")["inclusion"]:
        epsilon, t = (round(float(case[key]) * 1e6) for key in ("phi", "t"))
        threshold = noise.inclusion_threshold(epsilon, t)
        assert threshold / 2**64 == pytest.approx(float(case["pi"]), abs=1e-15)
        rate = Fraction(threshold, 2**64)
        assert log(1 + float(rate) * (exp(t / 1e6) - 1)) <= max(min(epsilon, t), 0) / 1e6 + 1e-15


def test_coins_keep_people_at_the_rate_of_their_cohort():
    cohort = np.repeat([0, 1, 2], 50_000)
    thresholds = [noise.inclusion_threshold(e, 1_000_000) for e in (0, 300_000, 1_000_000)]
    kept = np.bincount(cohort, noise.keep(noise.coins(150_000), thresholds, cohort), minlength=3)
    rate = (exp(0.3) - 1) / (exp(1) - 1)
    assert kept[0] == 0
    assert kept[2] == 50_000
    assert stats.binomtest(int(kept[1]), 50_000, rate).pvalue > FALSE_ALARM
    assert stats.binomtest(int(kept[1]), 50_000, 1.15 * rate).pvalue < FALSE_ALARM


def test_a_keyed_coin_is_a_uniform_function_of_key_and_person():
    key = noise.coin_key()
    shares = [noise.keyed_coin(key, str(person)) / 2**64 for person in range(20_000)]
    assert noise.keyed_coin(key, "7") == noise.keyed_coin(key, "7") != noise.keyed_coin(noise.coin_key(), "7")
    assert stats.kstest(shares, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest([s**1.2 for s in shares], "uniform").pvalue < FALSE_ALARM


def spherical_norms(scale: float, rng: noise.Rng) -> np.ndarray:
    return np.array([np.linalg.norm(noise.spherical(scale, 3, rng)) for _ in range(30_000)])


CONTINUOUS: list[tuple[str, Callable[[noise.Rng], np.ndarray], Callable[[float], Callable]]] = [
    ("uniform", lambda rng: noise.uniform(60_000, rng), lambda f: stats.uniform(scale=f).cdf),
    ("gaussian", lambda rng: noise.gaussian(2.0, 100_000, rng), lambda f: stats.norm(scale=2 * f).cdf),
    ("spherical norm", lambda rng: spherical_norms(1.5, rng), lambda f: stats.gamma(3, scale=1.5 * f).cdf),
    ("Cauchy", lambda rng: noise.heavy_tailed(2.0, 200_000, rng), lambda f: stats.cauchy(scale=f).cdf),
]


@pytest.mark.parametrize(("name", "draw", "law"), CONTINUOUS, ids=[case[0] for case in CONTINUOUS])
@pytest.mark.parametrize("rng", [None, noise.simulation(3)], ids=["secure", "simulated"])
def test_continuous_noise_has_its_law_and_the_test_would_notice_ten_percent(name, draw, law, rng):
    draws = draw(rng)
    assert stats.kstest(draws, law(1.0)).pvalue > FALSE_ALARM
    assert stats.kstest(draws, law(1.1)).pvalue < FALSE_ALARM


def test_heavy_tailed_noise_has_the_golden_distribution(golden):
    for case in golden("hdp")["admissible_noise"]:
        draws = noise.heavy_tailed(case["gamma"], 40_000, noise.simulation(4))
        for point, probability in case["cdf"].items():
            below = int((draws <= float(point)).sum())
            assert stats.binomtest(below, draws.size, probability).pvalue > FALSE_ALARM


def test_spherical_noise_points_everywhere():
    directions = np.array([noise.spherical(1.0, 3) for _ in range(20_000)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert stats.kstest(directions[:, 0], stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM  # Archimedes


def test_the_secure_source_does_not_repeat_itself():
    first, second = (noise.discrete_laplace(10**6, 64) for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_simulation_repeats_itself():
    first, second = (noise.discrete_laplace(10**6, 64, noise.simulation(5)) for _ in range(2))
    assert np.array_equal(first, second)


def test_no_noise_at_scale_zero():
    assert not noise.discrete_laplace(0, 5).any()


@pytest.mark.parametrize(
    "call",
    [
        lambda: noise.discrete_laplace(-1, 1),
        lambda: noise.discrete_laplace(2**51, 1),
        lambda: noise.choose([], 1),
        lambda: noise.choose([1], 0),
        lambda: noise.inclusion_threshold(1, 0),
        lambda: noise.heavy_tailed(1.0, 1),
        lambda: noise.heavy_tailed(inf, 1),
    ],
)
def test_impossible_noise_is_refused(call):
    with pytest.raises(InvalidDeclaration):
        call()

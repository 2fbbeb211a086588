"""Sampling: rates, errors and tuned thresholds against exact vectors."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from contracts import Universe, law_of
from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.accuracy import laplace_variance
from discretion.mechanisms.scheme import sample
from discretion.noise import simulation
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

COUNT = Aggregate(kind="count", protects="presence")
propose = MECHANISMS["sample"]
EXAMPLE = Specification(epsilons=(100_000, 1_000_000), people=(130, 70))


def test_rates_are_the_papers(golden):
    for vector in golden("pdp")["inclusion"]:
        t = int(float(vector["t"]) * MICRO)
        level = round(float(vector["phi"]) * MICRO)
        specification = Specification.of([(level, 1), (2_000_000, 1)])
        assert pytest.approx(float(vector["pi"]), rel=1e-12) == sample(specification, t).rates[0]
        assert pytest.approx(float(vector["pi"]), rel=1e-12) == noise.inclusion_threshold(level, t) / noise.ALWAYS


def test_the_sampled_count_has_the_exact_law(golden):
    vector = golden("pdp")["sampled_count_pmf"]
    universe = Universe(tuple(map(float, vector["phi"])), ((), ((0, 1),)))
    mechanism = propose(COUNT, universe.specification, Belief(), threshold="max")
    law = law_of(mechanism, COUNT, universe, tuple(((0, 1),) if bit else () for bit in vector["D"]))
    found = [float(law.weights[law.centres[:, 0] == size].sum()) for size in range(5)]
    assert pytest.approx(list(map(float, vector["pmf_0_to_4"])), abs=1e-12) == found


def test_example_1_of_the_paper(golden):
    """n = 200, a tenth of each level counts: expected squared errors at t = 1 and t = 0.2."""
    for row in golden("pdp")["example1"]["rows"]:
        t = int(float(row["t"]) * MICRO)
        kept = sample(EXAMPLE, t).rates
        ones = np.array([13, 7])
        sampled = ones @ (kept * (1 - kept)) + (ones @ (1 - kept)) ** 2
        assert pytest.approx(float(row["sampling_sq_error"]), abs=1e-9) == sampled


@pytest.mark.parametrize("t", [0.1, 0.2, 0.5, 1.0])
def test_the_predicted_raw_error_is_exact_for_a_known_fraction(t):
    """Every cohort's fraction is 10%: bias, coins and noise follow exactly."""
    mechanism = propose(COUNT, EXAMPLE, Belief(expect=(0.1, 0.1)), threshold=t)
    kept = sample(EXAMPLE, int(t * MICRO)).rates
    ones = np.array([13, 7])
    exact = ones @ (kept * (1 - kept)) + (ones @ (1 - kept)) ** 2 + laplace_variance(1 / t)
    assert pytest.approx(exact, rel=1e-9) == mechanism.error.total**2


def test_the_predicted_rescaled_error_is_the_digests(golden):
    vector = golden("pdp")["sampled_count_mse"]
    specification = Specification.of([(int(float(e) * MICRO), n) for e, n in vector["levels"]])
    for row in vector["rows"]:
        mechanism = propose(
            COUNT,
            specification,
            Belief(assume="independent", expect=(0.1, 0.1)),
            threshold=float(row["t"]),
            rescaled=True,
        )
        t = float(row["t"])
        rate = specification.heads @ sample(specification, int(t * MICRO)).rates / specification.size
        grid = (2 / t**2 - laplace_variance(1 / t)) / rate**2  # the digest's noise is continuous, ours whole
        assert pytest.approx(float(row["rescaled_total"]) - grid, rel=1e-9) == mechanism.error.total**2


def test_the_best_threshold_of_example_1_is_found(golden):
    best = golden("pdp")["example1"]["best_t_on_grid_0.0005"]
    mechanism = propose(COUNT, EXAMPLE, Belief(expect=(0.1, 0.1)))
    assert pytest.approx(best["t"], rel=0.02) == mechanism.threshold / MICRO
    assert pytest.approx(best["total"], rel=0.005) == mechanism.error.total**2


def test_the_minimax_threshold_beats_the_mean_and_the_largest():
    errors = {t: propose(COUNT, EXAMPLE, Belief(), threshold=t).error.total for t in ("best", "mean", "max")}
    assert errors["best"] < errors["mean"] < errors["max"]


def test_people_above_the_threshold_are_charged_the_threshold():
    mechanism = propose(COUNT, EXAMPLE, Belief(), threshold=0.5)
    assert [100_000, 500_000] == [loss.micro_epsilon for loss in mechanism.guarantee.losses.values()]


def test_a_threshold_above_everybody_is_private_and_keeps_nobody_for_sure():
    mechanism = propose(COUNT, EXAMPLE, Belief(), threshold=1.5)
    assert all(threshold < noise.ALWAYS for threshold in mechanism.measure.inclusion)
    assert [100_000, 1_000_000] == [loss.micro_epsilon for loss in mechanism.guarantee.losses.values()]


@pytest.mark.parametrize("threshold", [0, -0.5, float("nan"), float("inf"), "median"])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(InvalidDeclaration, match="threshold must be"):
        propose(COUNT, EXAMPLE, Belief(), threshold=threshold)


def test_inside_the_sample_nothing_takes_the_number_of_people_for_public():
    aggregate = Aggregate(kind="mean", protects="value", upper=10, complete=True)
    assert not propose(aggregate, EXAMPLE, Belief()).aggregate.size_is_public


@pytest.mark.parametrize("rescaled", [True, False])
def test_the_predicted_error_is_what_coins_and_noise_give(rescaled):
    """10,000 simulated releases at random assignment, 40% ones: within 4%, twice the standard error."""
    belief = Belief(assume="independent", expect=(0.4, 0.4))
    mechanism = propose(COUNT, EXAMPLE, belief, threshold=0.4, rescaled=rescaled)
    rng = simulation(2)
    ones = rng.multivariate_hypergeometric(EXAMPLE.heads, 80, size=10_000)
    kept = rng.binomial(ones, sample(EXAMPLE, 400_000).rates)
    answers = [mechanism.release(Statistics(counts=row[None]), rng)[0] for row in kept]
    assert pytest.approx(mechanism.error.total, rel=0.04) == sqrt(np.mean((np.array(answers) - 80) ** 2))


def test_nothing_else_changes_between_relations():
    one, other = (propose(replace(COUNT, protects=p), EXAMPLE, Belief(), threshold=0.3) for p in ("presence", "value"))
    assert one.scales == other.scales


@pytest.mark.parametrize("kind", ["mean", "variance"])
def test_the_error_of_a_sampled_ratio_covers_what_happens(kind):
    """200 releases of 2,000 people, half of them with a value: RMSE at most 1.15 of the error stated afterwards."""
    aggregate = Aggregate(kind=kind, protects="value", upper=100)
    specification = Specification(epsilons=(50_000, 200_000, 1_000_000), people=(800, 800, 400))
    mechanism = propose(aggregate, specification, Belief(assume="independent"))
    rng = simulation(11)
    cohort = np.repeat(np.arange(3), specification.heads)
    off, stated = [], []
    for _ in range(200):
        values, present = rng.integers(0, 2, 2000) * 100, rng.random(2000) < 0.5
        kept = present & noise.keep(noise.coins(2000, rng), mechanism.measure.inclusion, cohort)
        counts, totals, squares = (
            np.bincount(cohort[kept], weights=w[kept], minlength=3).astype(np.int64)[None]
            for w in (np.ones(2000), values, values**2)
        )
        found = Statistics(counts=counts, totals=totals, squares=squares)
        (answer,), (error,) = mechanism.answer(found, rng)
        off.append(answer - (values[present].mean() if kind == "mean" else values[present].var()))
        stated.append(error.total)
    assert sqrt(np.mean(np.square(off))) <= 1.15 * np.median(stated)
    assert np.median(stated) <= 4 * mechanism.error.total

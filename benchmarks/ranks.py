"""Order statistics: speed against the straightforward method, errors of medians against the paper's, Table I."""

from collections.abc import Callable
from fractions import Fraction
from math import log, pi, tan
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import betaincinv

from discretion import noise
from discretion.mechanisms import exponential, minimum, sample, threshold, weighted_rank
from discretion.mechanisms.belief import Belief
from discretion.mechanisms.sensitivity import Ordered, log_smooth
from discretion.mechanisms.smooth import largest_alpha
from discretion.preference import MICRO, Specification
from discretion.statistics import Aggregate, Statistics

MEDIAN = Fraction(1, 2)
NOTHING, INDEPENDENT = Belief(), Belief(assume="independent")
MECHANISMS = {
    "M": lambda *shape: minimum.propose(*shape, NOTHING),
    "T, t = max": lambda *shape: threshold.propose(*shape, NOTHING, threshold="max"),
    "S, t = max": lambda *shape: sample.propose(*shape, NOTHING, threshold="max"),
    "S-avg": lambda *shape: sample.propose(*shape, NOTHING, threshold="mean"),
    "PE": lambda *shape: exponential.propose(*shape, NOTHING),
    "weighted_rank": lambda *shape: weighted_rank.propose(*shape, NOTHING),
    "weighted_rank, independent": lambda *shape: weighted_rank.propose(*shape, INDEPENDENT),
}
DIGEST = {  # RMSE that pdp.md 7.2 gives for Figure 2(a): σ -> M, T, S, S-avg, PE
    100: (208, 14.4, 6.3, 4.9, 14.0),
    200: (193, 28.6, 13.5, 10.3, 27.7),
    500: (225, 75.9, 31.4, 24.3, 69.6),
    1000: (255, 147, 61.9, 50.4, 137),
}


def main() -> None:
    console = Console()
    console.print(speed())
    console.print(smooth_speed())
    console.print(figure_2a())
    console.print(shares())
    console.print(modes())
    console.print(table_1())


def speed(people: int = 1_000_000, values: int = 1_000, levels: int = 100) -> Table:
    """PE and weighted_rank from counts, against looking at everybody for every candidate."""
    rng = noise.simulation(1)
    cohort, value = rng.integers(0, levels, people), rng.integers(0, values, people)
    specification, _ = Specification.assign((cohort + 1) / levels)
    counting, histogram = _timed(lambda: np.bincount(cohort * values + value, minlength=levels * values))
    histogram = histogram.reshape(1, levels, values)
    statistics = Statistics(counts=histogram.sum(axis=2), histogram=histogram)
    shape = _median(values - 1)
    table = Table(title=f"{people:,} people, {values:,} grid values, {levels} levels: milliseconds after counting")
    for heading in ("what", "ms", "ratio"):
        table.add_column(heading, justify="right" if heading != "what" else "left")
    tried = np.arange(0, values, 20)
    slow, costs = _timed(lambda: _straightforward(value, (cohort + 1) * MICRO // levels, tried))
    slow *= values / len(tried)
    table.add_row(f"PE, everybody for every candidate ({len(tried)} timed)", f"{1e3 * slow:,.0f}", "1")
    for name, propose in (("PE", exponential.propose), ("weighted_rank", weighted_rank.propose)):
        mechanism = propose(shape, specification, NOTHING)
        fast, scores = min((_timed(lambda m=mechanism: m.scores(statistics)) for _ in range(5)), key=lambda t: t[0])
        drawn, _ = min((_timed(lambda m=mechanism: m.release(statistics, None)) for _ in range(5)), key=lambda t: t[0])
        if name == "PE" and not np.array_equal(-scores[0, tried], costs):
            raise ArithmeticError("The two methods do not agree.")
        table.add_row(f"{name}, scores", f"{1e3 * fast:.1f}", f"{fast / slow:.1e}")
        table.add_row(f"{name}, scores and exact draw", f"{1e3 * drawn:.1f}", f"{drawn / slow:.1e}")
    table.add_row("(counting by cohort and value)", f"{1e3 * counting:.1f}", f"{counting / slow:.1e}")
    return table


def smooth_speed(people: int = 1_000_000) -> Table:
    table = Table(title=f"Smooth sensitivity of the median of {people:,} values, β = 0.1: seconds")
    table.add_column("values")
    table.add_column("seconds", justify="right")
    rng = noise.simulation(2)
    for name, values in {"uniform": rng.random(people), "all at the ends": np.rint(rng.random(people))}.items():
        data = Ordered.of(values, (0.0, 1.0))
        table.add_row(name, f"{_timed(lambda d=data: log_smooth(d, people // 2, 0.1))[0]:.2f}")
    return table


def figure_2a(runs: int = 40) -> Table:
    """[JYC15] Figure 2(a): 1,001 people, N(500, σ) in 1..1000, default preferences; RMSE, in brackets the digest's."""
    table = Table(title=f"Median, Figure 2(a): RMSE over {runs} draws (pdp.md 7.2 in brackets)")
    table.add_column("σ", justify="right")
    for name in MECHANISMS:
        table.add_column(name, justify="right")
    for sigma, published in DIGEST.items():
        rng = noise.simulation(sigma)
        squares = dict.fromkeys(MECHANISMS, 0.0)
        for _ in range(runs):
            values = np.clip(np.rint(500 + sigma * rng.standard_normal(1_001)), 1, 1_000).astype(int) - 1
            specification, cohort = Specification.assign(preferences(1_001, rng))
            truth = int(np.sort(values)[500])
            for name, propose in MECHANISMS.items():
                chances = _chances(propose(_median(999), specification), values, cohort, 1_000, rng)
                squares[name] += chances @ (np.arange(1_000) - truth) ** 2 / runs
        cells = [f"{square**0.5:.1f}" for square in squares.values()]
        cells = [f"{cell} ({known})" for cell, known in zip(cells, published, strict=False)] + cells[len(published) :]
        table.add_row(str(sigma), *cells)
    return table


def shares(runs: int = 100) -> Table:
    """500 and 2,000 people, N(0, 1) in bounds (−10, 10): mean |share below the answer − 1/2|."""
    table = Table(title=f"Median of N(0, 1) in (−10, 10), default preferences: mean |share below − 1/2|, {runs} draws")
    table.add_column("people", justify="right")
    for name in MECHANISMS:
        table.add_column(name, justify="right")
    for people in (500, 2_000):
        rng = noise.simulation(people)
        missed = dict.fromkeys(MECHANISMS, 0.0)
        for _ in range(runs):
            values = np.rint((np.clip(rng.standard_normal(people), -10, 10) + 10) * 50).astype(int)
            specification, cohort = Specification.assign(preferences(people, rng))
            below = np.searchsorted(np.sort(values), np.arange(1_001)) / people
            for name, propose in MECHANISMS.items():
                chances = _chances(propose(_median(1_000), specification), values, cohort, 1_001, rng)
                missed[name] += float(chances @ np.abs(below - 0.5)) / runs
        table.add_row(f"{people:,}", *(f"{share:.4f}" for share in missed.values()))
    return table


def modes(runs: int = 200) -> Table:
    """The most frequent of 12 categories, 300 people: how many fewer people the answer has, as a share of all."""
    table = Table(title=f"Mode of 12 categories, 300 people, default preferences: mean regret, {runs} draws")
    contenders = {
        "M": lambda *shape: minimum.propose(*shape, NOTHING),
        "S, t = max": lambda *shape: sample.propose(*shape, NOTHING, threshold="max"),
        "PE, exponential": lambda *shape: exponential.propose(*shape, NOTHING, rule="exponential"),
        "PE, permute and flip": lambda *shape: exponential.propose(*shape, NOTHING),
        "weighted, exponential": lambda *shape: weighted_rank.propose(*shape, INDEPENDENT, rule="exponential"),
        "weighted, permute and flip": lambda *shape: weighted_rank.propose(*shape, INDEPENDENT),
    }
    rng, regret = noise.simulation(12), dict.fromkeys(contenders, 0.0)
    for _ in range(runs):
        values = rng.choice(12, 300, p=(weights := 1 / np.arange(1, 13)) / weights.sum())
        specification, cohort = Specification.assign(preferences(300, rng))
        counts = np.bincount(values, minlength=12)
        shape = Aggregate(kind="mode", protects="value", upper=11, complete=True)
        for name, propose in contenders.items():
            chances = _chances(propose(shape, specification), values, cohort, 12, rng)
            regret[name] += float(chances @ (counts.max() - counts)) / 300 / runs
    for name in contenders:
        table.add_column(name, justify="right")
    table.add_row(*(f"{share:.4f}" for share in regret.values()))
    return table


def table_1() -> Table:
    """[SDSM17] Table I: 95% half-widths at ε = 1 and sensitivity 1, with the printed and with the exact constants."""
    table = Table(title="iDP paper, Table I: 95% half-widths at ε = 1, sensitivity 1")
    for heading in ("noise", "paper's constants", "exact α"):
        table.add_column(heading, justify="right" if heading != "noise" else "left")
    part = float(betaincinv(1 / 3, 2 / 3, 0.95))
    width = (part / (1 - part)) ** (1 / 3)
    table.add_row("Laplace (individual: not DP)", f"{log(20):.3f}", "")
    table.add_row("γ = 2", f"{8 * tan(0.475 * pi):.2f}", f"{tan(0.475 * pi) / largest_alpha(2.0, 0.5, 1.0):.2f}")
    exact = [width / largest_alpha(3.0, beta, 1.0) for beta in (1 / 6, 1 / 3)]
    table.add_row("γ = 3", f"{12 * width:.2f}", f"{exact[0]:.2f} (β = 1/6) to {exact[1]:.2f} (β = 1/3)")
    return table


def preferences(people: int, rng: noise.Rng) -> np.ndarray:
    """[JYC15] Table I's defaults: 54% U(.01, .2), 37% U(.2, 1), 9% at 1, in hundredths."""
    group = rng.choice(3, people, p=[0.54, 0.37, 0.09])
    drawn = [rng.uniform(0.01, 0.2, people), rng.uniform(0.2, 1.0, people), np.ones(people)]
    return np.round(np.choose(group, drawn), 2)


def _median(upper: int) -> Aggregate:
    return Aggregate(kind="quantile", protects="value", upper=upper, rank=MEDIAN, complete=True)


def _chances(mechanism: object, values: np.ndarray, cohort: np.ndarray, size: int, rng: noise.Rng) -> np.ndarray:
    """The exact law of the answer, given the coins."""
    inclusion, levels = mechanism.measure.inclusion, len(mechanism.specification.epsilons)
    kept = np.ones(len(values), dtype=bool)
    if inclusion is not None:
        kept = noise.keep(noise.coins(len(values), rng), inclusion, cohort)
    histogram = np.bincount(cohort[kept] * size + values[kept], minlength=levels * size).reshape(1, levels, size)
    return mechanism.probabilities(Statistics(counts=histogram.sum(axis=2), histogram=histogram))[0]


def _straightforward(values: np.ndarray, prices: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """For every candidate, the cheapest of those on the wrong side, looking at everybody."""
    order = np.argsort(prices, kind="stable")
    values, prices = values[order], prices[order]
    people, costs = len(values), np.zeros(len(candidates), dtype=np.int64)
    place = (people + 1) // 2 - 1
    for index, candidate in enumerate(candidates):
        below, above = values < candidate, values > candidate
        cheapest_below = prices[below][: max(0, int(below.sum()) - place)]
        cheapest_above = prices[above][: max(0, int(above.sum()) - (people - 1 - place))]
        costs[index] = cheapest_below.sum() + cheapest_above.sum()
    return costs


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    start = perf_counter()
    made = work()
    return perf_counter() - start, made


if __name__ == "__main__":
    main()

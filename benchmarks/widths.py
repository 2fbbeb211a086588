"""Widths: half widths of 95% intervals over the true 95% error, before and after, in the same runs.

"Before" is the width used until then: the worst bias, and on top of it the noise of both tails; and a variance that the
released value narrows once. The true 95% error is measured: preferences are dealt out anew in every run, unrelated to
the values. Ranks have exact laws: for even values, for two points, and for the worst data that were found.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import log, sqrt
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import discretion as dn
from benchmarks.pooled import paper
from benchmarks.ranks import preferences
from discretion import noise
from discretion.mechanisms import MECHANISMS, Belief, accuracy
from discretion.mechanisms.belief import Assume
from discretion.preference import Integers, Specification
from discretion.release import Error, Release
from discretion.statistics import Aggregate, Statistics

PEOPLE = 5_000
ASSUMED: tuple[Assume, ...] = (None, "gradual", "independent")
RANKED = 2_000  # people whose quantiles are looked at
GRID = 101  # candidates


def main(runs: int = 200) -> None:
    rng = noise.simulation(1)
    values = 100 * rng.beta(2, 8, PEOPLE)
    flag, rare, two = values > 30, values > 53.5, np.where(rng.random(PEOPLE) < 0.5, 0.0, 100.0)
    bounds: dict[str, Any] = {"bounds": (0, 100)}
    asked: dict[str, tuple[float, Callable[..., Release]]] = {
        "count": (float(flag.sum()), lambda **how: dn.count(flag, **how)),
        "count of 1%": (float(rare.sum()), lambda **how: dn.count(rare, **how)),
        "sum": (float(values.sum()), lambda **how: dn.sum(values, **bounds, **how)),
        "mean": (float(values.mean()), lambda **how: dn.mean(values, **bounds, **how)),
        "mean of two points": (float(two.mean()), lambda **how: dn.mean(two, **bounds, **how)),
    }
    table = Table(
        *("answer", "choices", "assume", "true 95% error", "before", "after", "held"),
        title=f"{PEOPLE:,} people: half width over the true 95% error, {runs} runs",
    )
    for name, (truth, ask) in asked.items():
        for choices in ("[JYC15]", "0.001 and 20", "20, one in ten 0.001"):
            for assume in ASSUMED:
                table.add_row(name, choices, assume or "nothing", *_row(truth, ask, choices, assume, runs))
    Console().print(table)
    ranks = Table(
        *("answer", "choices", "assume", "half width", "even values", "two points", "worst data"),
        title=f"{RANKED:,} people: half width in ranks over the exact 95% error, {GRID} candidates",
    )
    for row in _ranks():
        ranks.add_row(*row)
    Console().print(ranks)


def _chosen(choices: str, rng: Any) -> Any:
    if choices == "[JYC15]":
        return preferences(PEOPLE, rng)
    strict = PEOPLE // (2 if choices == "0.001 and 20" else 10)
    return np.repeat([0.001, 20.0], [strict, PEOPLE - strict])


def _row(truth: float, ask: Callable[..., Release], choices: str, assume: Assume, runs: int) -> tuple[str, ...]:
    """Two passes with the same draws: released values narrow their variance once, and as often as it helps."""
    often, widths = accuracy.NARROWED, []
    for times in (1, often):
        accuracy.NARROWED = times
        rng = noise.simulation(2)
        chosen, off, held, width = _chosen(choices, rng), [], 0, 0.0
        for _ in range(runs):
            release = ask(epsilon=rng.permutation(chosen), assume=assume, rng=rng)
            low, high = release.error.interval(release.value)
            off.append(abs(release.value - truth))
            held += low <= truth <= high
            width += ((high - low) / 2 if times == often else _before(release.value, release.error)) / runs
        widths.append(width)
    true = float(np.quantile(off, 0.95))
    return f"{true:,.3g}", f"{widths[0] / true:.2f}", f"{widths[1] / true:.2f}", f"{held / runs:.1%}"


def _before(value: float, error: Error) -> float:
    """Half of the interval that was shown until then."""
    if error.quantiles or error.limits is None:
        low, high = error.interval(value)
    else:
        half = error.bias + error.pull + error.noise * log(20) / sqrt(2)
        low, high = (min(max(end, error.limits[0]), error.limits[1]) for end in (value - half, value + half))
    return (high - low) / 2


def _ranks() -> Iterator[tuple[str, ...]]:
    rng = noise.simulation(3)
    for choices, epsilon in (("0.1", np.full(RANKED, 0.1)), ("[JYC15]", paper(RANKED, rng))):
        specification, cohort = Specification.assign(epsilon)
        for name, rank in (("median", Fraction(1, 2)), ("MAX", Fraction(1))):
            for assume in (None, "independent"):
                shape = Aggregate(kind="quantile", protects="value", upper=GRID - 1, rank=rank, complete=True)
                mechanisms = [
                    MECHANISMS[one](shape, specification, Belief(assume=assume))
                    for one in ("weighted_rank", "exponential")
                ]
                mechanism = min(mechanisms, key=lambda one: one.error.ranked)
                half = mechanism.error.half_width()
                even, two = np.arange(RANKED) % GRID, np.where(np.arange(RANKED) % 2, 0, GRID - 1)
                kind = [_exact(mechanism, rng.permutation(cohort), places) for places in (even, two)]
                worst = max(
                    _exact(mechanism, dealt, places)
                    for places in _bad(rank)
                    for dealt in ([rng.permutation(cohort)] if assume else [cohort, cohort[::-1]])
                )
                ratios = (f"{half / error:.2f}" if error else "error 0" for error in (*kind, worst))
                yield name, choices, assume or "nothing", f"{half:.4f}", *ratios


def _bad(rank: Fraction) -> Iterator[Integers]:
    """Yield data that draw a choice away: some people have one value, all others the bounds (or the lower one)."""
    for some in np.unique(np.geomspace(10, RANKED // 2, 40).astype(int)).tolist():
        places = np.where(np.arange(RANKED) % 2, 0, GRID - 1 if rank < 1 else 0)
        places[:some] = GRID // 2
        yield places


def _exact(mechanism: Any, cohort: Integers, places: Integers) -> float:
    """Return the 95% error in ranks of a choice about people of these cohorts and grid values."""
    histogram = np.zeros((len(mechanism.specification.epsilons), GRID), dtype=np.int64)
    np.add.at(histogram, (cohort, places), 1)
    chances = mechanism.probabilities(Statistics(counts=histogram.sum(axis=1)[None], histogram=histogram[None]))[0]
    upto = np.cumsum(histogram.sum(axis=0)) / RANKED
    below, asked = np.append(0, upto[:-1]), float(mechanism.aggregate.rank)
    off = np.maximum(np.maximum(below - asked, asked - upto), 0)
    order = np.argsort(off)
    return float(off[order][np.searchsorted(np.cumsum(chances[order]), 0.95)])

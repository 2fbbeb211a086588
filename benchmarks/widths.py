"""Widths: half widths of 95% intervals over the true 95% error, before and after, in the same runs.

"Before" is the width used until then: the worst bias, and on top of it the noise of both tails. The true 95% error is
measured: preferences are dealt out anew in every run, unrelated to the values.
"""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import discretion as dn
from benchmarks.ranks import preferences
from discretion import noise
from discretion.mechanisms.belief import Assume
from discretion.release import Error, Release

PEOPLE = 5_000
ASSUMED: tuple[Assume, ...] = (None, "gradual", "independent")


def main(runs: int = 200) -> None:
    rng = noise.simulation(1)
    values = 100 * rng.beta(2, 8, PEOPLE)
    flag, two = values > 30, np.where(rng.random(PEOPLE) < 0.5, 0.0, 100.0)
    bounds: dict[str, Any] = {"bounds": (0, 100)}
    asked: dict[str, tuple[float, Callable[..., Release]]] = {
        "count": (float(flag.sum()), lambda **how: dn.count(flag, **how)),
        "sum": (float(values.sum()), lambda **how: dn.sum(values, **bounds, **how)),
        "mean": (float(values.mean()), lambda **how: dn.mean(values, **bounds, **how)),
        "mean of two points": (float(two.mean()), lambda **how: dn.mean(two, **bounds, **how)),
    }
    table = Table(
        *("answer", "choices", "assume", "true 95% error", "before", "after", "held"),
        title=f"{PEOPLE:,} people: half width over the true 95% error, {runs} runs",
    )
    for name, (truth, ask) in asked.items():
        for choices in ("[JYC15]", "0.001 and 20"):
            for assume in ASSUMED:
                table.add_row(name, choices, assume or "nothing", *_row(truth, ask, choices, assume, runs))
    Console().print(table)


def _row(truth: float, ask: Callable[..., Release], choices: str, assume: Assume, runs: int) -> tuple[str, ...]:
    rng = noise.simulation(2)
    chosen = preferences(PEOPLE, rng) if choices == "[JYC15]" else np.repeat([0.001, 20.0], PEOPLE // 2)
    off, before, after, held = [], 0.0, 0.0, 0
    for _ in range(runs):
        release = ask(epsilon=rng.permutation(chosen), assume=assume, rng=rng)
        value, error = release.value, release.error
        low, high = error.interval(value)
        off.append(abs(value - truth))
        held += low <= truth <= high
        after += (high - low) / 2 / runs
        before += _before(value, error) / runs
    true = float(np.quantile(off, 0.95))
    return f"{true:,.3g}", f"{before / true:.2f}", f"{after / true:.2f}", f"{held / runs:.1%}"


def _before(value: float, error: Error) -> float:
    """Half of the interval that was shown until then."""
    if error.quantiles or error.limits is None:
        low, high = error.interval(value)
    else:
        half = error.bias + error.pull + error.noise * log(20) / sqrt(2)
        low, high = (min(max(end, error.limits[0]), error.limits[1]) for end in (value - half, value + half))
    return (high - low) / 2

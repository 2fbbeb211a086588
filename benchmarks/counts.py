"""Counts: [JYC15] Figure 1(a) for the paper's six and for `auto`; planning, releasing and cutting at a million people.

Errors are not simulated: for each of 1,000 random datasets the exact error given the data is averaged, over noise,
coins and choices.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import discretion as dn
from discretion import noise
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.accuracy import laplace_variance
from discretion.mechanisms.cuts import privacy_cuts
from discretion.mechanisms.exponential import Exponential
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.sample import Sample
from discretion.plan import choose
from discretion.preference import Specification
from discretion.statistics import Aggregate, Statistics

PEOPLE, RUNS = 1000, 1000
DENSITIES = (0.01, 0.05, 0.1, 0.15, 0.3, 0.5)
PRESENCE, VALUE = (Aggregate(kind="count", protects=protects) for protects in ("presence", "value"))
# heading -> (relation of the neighbours, mechanism, its options): the paper mixes the relations
PAPER: dict[str, tuple[Aggregate, str, dict[str, Any]]] = {
    "M": (PRESENCE, "minimum", {}),
    "T": (PRESENCE, "threshold", {"threshold": "max"}),
    "S": (PRESENCE, "sample", {"threshold": "max"}),
    "S-avg": (PRESENCE, "sample", {"threshold": "mean"}),
    "PE": (VALUE, "exponential", {}),
    "Alag.": (PRESENCE, "stretch", {}),
}
TUNED: dict[str, tuple[Aggregate, str, dict[str, Any]]] = {"S, t tuned": (PRESENCE, "sample", {"threshold": "best"})}
AUTO: dict[str, tuple[Aggregate, Belief]] = {
    "auto": (VALUE, Belief()),
    "auto ": (PRESENCE, Belief()),
    "auto, expect 0 to .1": (VALUE, Belief(expect=(0, 0.1))),
    "auto, independent": (VALUE, Belief(assume="independent")),
    "auto, independent ": (PRESENCE, Belief(assume="independent")),
}


def main() -> None:
    _figure_1a()
    _speed()
    _cuts()


def preferences(rng: np.random.Generator) -> np.ndarray:  # noqa: TID251  a type, not a source of randomness
    """The paper's defaults: 54% U[.01, .2], 37% U[.2, 1], both in hundredths, the rest 1."""
    strict, medium = round(0.54 * PEOPLE), round(0.37 * PEOPLE)
    chosen = [rng.uniform(0.01, 0.2, strict).round(2), rng.uniform(0.2, 1.0, medium).round(2)]
    return np.concatenate([*chosen, np.ones(PEOPLE - strict - medium)])


def mean_squared_error(mechanism: Any, ones: np.ndarray) -> float:
    """Exactly, given how many of each cohort count: over noise, coins and choices."""
    truth = ones.sum()
    if isinstance(mechanism, Exponential):
        law = mechanism.probabilities(Statistics(counts=ones[None]))
        return float(np.sum(law * (np.arange(len(law)) - truth) ** 2))
    if not isinstance(mechanism, Linear):
        raise TypeError(f"no closed form for {type(mechanism).__name__}")
    share = np.array(mechanism.weights) / float(mechanism.divisor)
    coins = 0.0
    if isinstance(mechanism, Sample):
        kept = mechanism.scheme.rates
        coins = float(ones @ (share**2 * kept * (1 - kept)))
        share = share * kept
    noise_variance = laplace_variance(float(mechanism.scales[0])) * (mechanism.unit / float(mechanism.divisor)) ** 2
    return float((share @ ones + float(mechanism.offset) - truth) ** 2) + coins + noise_variance


def _figure_1a() -> None:
    rng = noise.simulation(2015)
    squared = {name: np.zeros(len(DENSITIES)) for name in [*PAPER, *TUNED, *AUTO]}
    chosen: dict[str, set[str]] = {name: set() for name in AUTO}
    for _ in track(range(RUNS), description="Figure 1(a)", transient=True):
        specification, _cohorts = Specification.assign(preferences(rng))
        tuned = {
            name: MECHANISMS[mechanism](aggregate, specification, Belief(), **options)
            for name, (aggregate, mechanism, options) in {**PAPER, **TUNED}.items()
        }
        for name, (aggregate, belief) in AUTO.items():
            (choice,) = choose([aggregate], specification, belief).choices
            tuned[name] = choice.mechanism
            chosen[name].add(choice.chosen.name)
        for place, density in enumerate(DENSITIES):
            ones = rng.multivariate_hypergeometric(specification.heads, round(density * PEOPLE))
            for name, mechanism in tuned.items():
                squared[name][place] += mean_squared_error(mechanism, ones) / RUNS
    _print_figure(squared, chosen)


def _print_figure(squared: dict[str, np.ndarray], chosen: dict[str, set[str]]) -> None:
    table = Table(title=f"Root mean squared error of a count, n = {PEOPLE}, {RUNS:,} datasets ([JYC15] Figure 1(a))")
    table.add_column("density", justify="right")
    relations = {name: entry[0].protects for name, entry in {**PAPER, **TUNED, **AUTO}.items()}
    for name in squared:
        table.add_column(f"{name.strip()}\n{relations[name]}", justify="right")
    for place, density in enumerate(DENSITIES):
        errors = [float(np.sqrt(squared[name][place])) for name in squared]
        best = min(errors[: len(PAPER)])
        table.add_row(f"{density:g}", *(f"{e:.1f} *" if e <= best else f"{e:.1f}" for e in errors))
    console = Console()
    console.print(table)
    console.print("*: no worse than the best of the paper's six; the relation of neighbours is under each name")
    for name, names in chosen.items():
        console.print(f"{name.strip()} ({relations[name]}) chose {', '.join(sorted(names))}")


def _speed() -> None:
    people, levels = 1_000_000, np.arange(1, 101) / 100
    rng = noise.simulation(1)
    epsilon, condition = rng.choice(levels, people), rng.random(people) < 0.3
    specification, cohort = Specification.assign(epsilon)
    counts = np.bincount(cohort[condition], minlength=100)[None]
    table = Table(title=f"{people:,} people in 100 levels: milliseconds, best of 9")
    for heading in ("step", "nothing assumed", "independent"):
        table.add_column(heading, justify="right")
    beliefs = [Belief(), Belief(assume="independent")]
    plans = [choose([VALUE], specification, belief) for belief in beliefs]
    rows: dict[str, list[Callable[[], Any]]] = {
        "plan (all mechanisms)": [lambda b=b: choose([VALUE], specification, b) for b in beliefs],  # type: ignore[misc]
        "release (secure source)": [
            lambda p=p: p.choices[0].mechanism.release(Statistics(counts=counts), None)  # type: ignore[misc]
            for p in plans
        ],
        "dn.count, grouping people by ε included": [
            lambda a=a: dn.count(condition, epsilon=epsilon, assume=a)  # type: ignore[misc]
            for a in (None, "independent")
        ],
        "np.unique of the epsilons alone": [lambda: np.unique(epsilon, return_inverse=True)] * 2,
    }
    for name, works in rows.items():
        table.add_row(name, *(f"{min(_seconds(work) for _ in range(9)) * 1e3:.1f}" for work in works))
    Console().print(table)


def _cuts() -> None:
    table = Table(title="Privacy-aware cuts into 10 groups, exact: seconds, and ratio to sorting the budgets")
    for heading in ("distinct budgets", "seconds", "sorting", "ratio"):
        table.add_column(heading, justify="right")
    rng = noise.simulation(7)
    for count in (10_000, 100_000, 1_000_000):
        budgets = rng.permutation(np.arange(1, count + 1) * (1_000_000 // count) + rng.integers(0, 2))
        sorting = _seconds(lambda b=budgets: np.sort(b))  # type: ignore[misc]
        ascending, heads = np.sort(budgets), rng.integers(1, 3, count)
        seconds = _seconds(lambda a=ascending, h=heads: privacy_cuts(a, h, 10))  # type: ignore[misc]
        table.add_row(f"{count:,}", f"{seconds:.2f}", f"{sorting:.3f}", f"{seconds / sorting:.0f}")
    Console().print(table)


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    main()

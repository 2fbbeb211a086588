"""Quantiles: a list released level by level against one release each, in the same runs.

"Before" is what the product released until then: every quantile by itself, for its part of the budget. "After" is what
it releases now: the list together where the planner predicts that this is clearly better. Errors are shares of the
ranks: how far the wanted share lies from the shares below and up to the answer. Preferences are [JYC15]'s defaults,
dealt out anew every ten runs; a question spends all of them.
"""

from fractions import Fraction
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.ranks import preferences
from discretion import noise
from discretion.errors import Unsuitable
from discretion.guarantee import Protects
from discretion.mechanisms import MECHANISMS, Belief, answer
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.joint import Kin
from discretion.mechanisms.nested_rank import NestedRank, propose
from discretion.mechanisms.weighted_rank import WeightedRank
from discretion.plan import choose
from discretion.preference import Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Statistics

RUNS, TOP = 100, 1_000
PEOPLE = (2_000, 100_000)  # of all lists, and of the shortest once more
LISTS = {
    "3 quartiles": [Fraction(n, 4) for n in (1, 2, 3)],
    ".1 .25 .5 .75 .9": [Fraction(n, 20) for n in (2, 5, 10, 15, 18)],
    "9 deciles": [Fraction(n, 10) for n in range(1, 10)],
}
ASSUMED: tuple[Assume, ...] = (None, "independent")
RELATIONS: tuple[Protects, ...] = ("value", "presence")
Generator = np.random.Generator  # noqa: TID251  a type, not a source of randomness


def main(runs: int = RUNS) -> None:
    table = Table(
        *(
            "people",
            "list",
            "protects",
            "assume",
            "values",
            "together",
            "before",
            "after",
            "gain",
            "held",
            "width after/before",
        ),
        title=f"Lists of quantiles: root mean square of the rank error, {runs} runs",
    )
    asked = [(PEOPLE[0], name) for name in LISTS] + [(PEOPLE[1], next(iter(LISTS)))]
    for (people, name), protects, assume, values in product(asked, RELATIONS, ASSUMED, ("smooth", "60% zero")):
        found = _row(people, LISTS[name], protects, assume, values, runs)
        table.add_row(f"{people:,}", name, protects, assume or "nothing", values, *found)
    Console().print(table)
    Console().print(extremes())


def _row(
    people: int, ranks: list[Fraction], protects: Protects, assume: Assume, kind: str, runs: int
) -> tuple[str, ...]:
    rng, belief = noise.simulation(7), Belief(assume=assume)
    shapes = [Aggregate(kind="quantile", protects=protects, upper=TOP, rank=rank) for rank in ranks]
    squares, held, widths, together = np.zeros(2), np.zeros(2), np.zeros(2), 0
    for number in range(runs):
        if number % 10 == 0:  # a new plan for new preferences
            specification, cohort = Specification.assign(preferences(people, rng))
            parts = choose(shapes, specification.divided(len(ranks)), belief)
            alone = [choice.mechanism for choice in parts.choices]
            nested = _nested(shapes, specification, belief, [one.error for one in alone])
        data = _values(people, kind, rng)
        levels = len(specification.epsilons)
        mixed = rng.permutation(cohort)
        histogram = np.bincount(mixed * (TOP + 1) + data, minlength=levels * (TOP + 1)).reshape(1, levels, TOP + 1)
        statistics = Statistics(counts=histogram.sum(axis=2), histogram=histogram)
        upto = np.cumsum(np.bincount(data, minlength=TOP + 1)) / people
        before = [(answer(one, statistics, rng)[0][0], one.error) for one in alone]
        after = before
        if nested is not None:
            together += 1
            after = [(found[0], errors[0]) for found, errors in nested.answer(statistics, None, rng)]
        for place, answers in enumerate((before, after)):
            for (value, error), rank in zip(answers, ranks, strict=True):
                missed = _missed(float(value), float(rank), upto)
                squares[place] += missed**2
                held[place] += missed <= error.half_width()
                widths[place] += min(error.half_width(), 1.0)
    before_, after_ = np.sqrt(squares / runs / len(ranks))
    part = held / runs / len(ranks)
    sizes = f"{before_:.4f}", f"{after_:.4f}", f"{before_ / after_:.2f}"
    return f"{together / runs:.0%}", *sizes, f"{part[1]:.1%}", f"{widths[1] / widths[0]:.2f}"


def _nested(
    shapes: list[Aggregate], specification: Specification, belief: Belief, errors: list[Error]
) -> NestedRank | None:
    """Return the release of the whole list; None if the planner keeps the quantiles apart."""
    try:
        return propose([Kin(aggregate=shape) for shape in shapes], shapes[0], specification, belief, errors)
    except Unsuitable:
        return None


def _values(people: int, kind: str, rng: Generator) -> np.ndarray:
    found = np.clip(np.rint(500 + 120 * rng.standard_normal(people)), 0, TOP).astype(np.int64)
    return np.where(rng.random(people) < 0.6, 0, found) if kind == "60% zero" else found


def _missed(value: float, rank: float, upto: np.ndarray) -> float:
    """How far the rank lies outside of the ranks that the value has."""
    step = int(value)
    below = upto[step - 1] if step else 0.0
    return float(max(below - rank, rank - upto[step], 0.0))


def extremes(runs: int = 20) -> Table:
    """A maximum whose bounds are the largest value times a factor: exact laws, mean |error| over the largest value."""
    table = Table(
        *("people", "values", "bounds/max", "aims below", "weighted_rank", "exponential", "ratio"),
        title="Maximum, default preferences, independent: mean |error| as a part of the largest value",
    )
    for people in (1_000, 20_000):
        for kind in ("uniform", "normal"):
            for loose in (1.0, 1.02, 1.1, 1.5, 3.0, 10.0):
                table.add_row(f"{people:,}", kind, f"{loose:g}", *_extreme(people, kind, loose, runs))
    return table


def _extreme(people: int, kind: str, loose: float, runs: int) -> tuple[str, ...]:
    rng, belief = noise.simulation(people), Belief(assume="independent")
    shape = Aggregate(kind="quantile", protects="value", upper=TOP, rank=Fraction(1))
    missed, aimed = np.zeros(2), 0.0
    for _ in range(runs):
        specification, cohort = Specification.assign(preferences(people, rng))
        raw = rng.random(people) if kind == "uniform" else np.abs(rng.standard_normal(people))
        data = np.rint(raw / raw.max() * TOP / loose).astype(np.int64)
        levels = len(specification.epsilons)
        histogram = np.bincount(cohort * (TOP + 1) + data, minlength=levels * (TOP + 1)).reshape(1, levels, TOP + 1)
        statistics = Statistics(counts=histogram.sum(axis=2), histogram=histogram)
        off = np.abs(np.arange(TOP + 1) - data.max()) / data.max()
        for place, name in enumerate(("weighted_rank", "exponential")):
            mechanism = MECHANISMS[name](shape, specification, belief)
            missed[place] += mechanism.probabilities(statistics)[0] @ off / runs
            if isinstance(mechanism, WeightedRank):
                aimed += mechanism.margin / float(specification.heads @ np.array(mechanism.influence)) / runs
    return f"{aimed:.1%}", f"{missed[0]:.3f}", f"{missed[1]:.3f}", f"{missed[0] / missed[1]:.2f}"

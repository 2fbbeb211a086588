"""Joint: sums that serve several answers, against the same answers released separately, in the same runs.

"Before" is what the product released until then: a mean or variance as numerators and a count with rates of their own,
every aggregate for its own part of the budget, and caps tuned to the largest variance. All figures are measured with
the product's own noise. With nothing assumed everybody has the same ε, so that no bias is traded for noise. Otherwise
preferences are [JYC15]'s defaults, dealt out anew each run; a question spends a tenth of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.counts import preferences
from discretion import noise
from discretion.guarantee import Protects
from discretion.mechanisms import JOINT, MECHANISMS, Belief, answer
from discretion.mechanisms.accuracy import ratio_error
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.form import forms, is_affine
from discretion.mechanisms.joint import Kin, Released
from discretion.mechanisms.level import best_level
from discretion.mechanisms.linear import Linear
from discretion.mechanisms.scheme import capped
from discretion.mechanisms.weighted import saturation
from discretion.noise import Floats
from discretion.plan import choose
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.statistics import Aggregate, Kind, Statistics

RUNS, PEOPLE, TOP = 200, 20_000, 100
RELATIONS: tuple[tuple[Protects, int], ...] = (("presence", 1), ("presence", 4), ("value", 1), ("value", 4))
SHAPES = {"mean 5": (0.95, 18.0), "mean 20": (1.6, 6.4), "mean 35": (2.8, 5.2), "mean 50": (4.0, 4.0)}  # beta laws
ASSUMED: tuple[Assume, ...] = (None, "independent", "gradual")
Generator = np.random.Generator  # noqa: TID251  a type, not a source of randomness
Answer = tuple[Floats, tuple[Error, ...]]


def main() -> None:
    _print("One mean or variance: error before over error after (interval held before, after)", _ratios())
    _print("Several aggregates of one SELECT: error before over error after, each (intervals held after)", _families())
    _print("Unrelated preferences: error before over error after, half widths likewise (held after)", _caps())


def _print(title: str, rows: Iterator[tuple[str, ...]]) -> None:
    table = Table(*next(rows), title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One run's data: what the engine computes, and the truth by group."""

    statistics: Statistics
    rows: np.ndarray  # of all people, by (group, cohort)
    truths: dict[str, Floats]


def _draw(rng: Generator, specification: Specification, groups: int, law: tuple[float, float]) -> Drawn:
    """Everybody has a row; a tenth of these have no value."""
    cohort = rng.permutation(np.repeat(np.arange(len(specification.epsilons)), specification.heads))
    group, there = rng.integers(0, groups, PEOPLE), rng.random(PEOPLE) < 0.9
    values = np.rint(TOP * rng.beta(*law, PEOPLE)).astype(np.int64)
    place, shape = group * len(specification.epsilons) + cohort, (groups, len(specification.epsilons))

    def added(each: np.ndarray) -> np.ndarray:
        return np.bincount(place, weights=each, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)

    counts, totals, squares, rows = (added(each) for each in (there, there * values, there * values**2, there + ~there))
    n, s, q = (each.sum(axis=1).astype(float) for each in (counts, totals, squares))
    truths = {
        "count": n,
        "rows": rows.sum(axis=1).astype(float),
        "sum": s,
        "mean": s / n,
        "variance": q / n - (s / n) ** 2,
    }
    return Drawn(statistics=Statistics(counts=counts, totals=totals, squares=squares), rows=rows, truths=truths)


@dataclass
class Tally:
    """Squared errors, intervals that held, and their half widths, over runs and groups."""

    squared: float = 0.0
    held: int = 0
    width: float = 0.0
    total: int = 0

    def add(self, found: Answer, truths: Floats) -> None:
        for value, error, truth in zip(found[0].tolist(), found[1], truths.tolist(), strict=True):
            low, high = error.interval(value)
            self.squared += (value - truth) ** 2
            self.held += low <= truth <= high
            self.width += (high - low) / 2
            self.total += 1

    @property
    def part(self) -> float:
        return self.held / self.total


def _gain(before: Tally, after: Tally) -> float:
    return float(np.sqrt(before.squared / after.squared))


def specification_of(rng: Generator, belief: Belief) -> Specification:
    """[JYC15]'s preferences, or their mean for all where nothing is assumed."""
    chosen = np.concatenate([preferences(rng) for _ in range(PEOPLE // 1_000)])
    return Specification.assign((np.full(PEOPLE, chosen.mean()) if belief.assume is None else chosen) / 10)[0]


def before(aggregate: Aggregate, specification: Specification, belief: Belief) -> Any:
    """The best mechanism as it was: a private ratio had rates for numerators and count."""
    if is_affine(aggregate) or belief.assume == "gradual":
        (choice,) = choose([aggregate], specification, belief).choices
        return choice.mechanism
    return best_level("best", specification, partial(_plain, aggregate, specification, belief))


def _plain(aggregate: Aggregate, specification: Specification, belief: Belief, kappa: int) -> Linear:
    weights, form = capped(specification, kappa), forms(aggregate)[-1]
    at = partial(ratio_error, aggregate, specification, belief, weights.astype(float), form, 0.0)
    made = {"weights": tuple(weights.tolist()), "form": form, "error": at(), "error_at": at}
    return Linear(aggregate=aggregate, specification=specification, **made)


def _ratios() -> Iterator[tuple[str, ...]]:
    yield ("aggregate", "assumed", "protects", "groups", *SHAPES)
    kinds: tuple[Kind, ...] = ("mean", "variance")
    for kind in kinds:
        for assume in ASSUMED[:2]:
            for protects, groups in RELATIONS:
                if (protects, groups) == ("value", 1):
                    continue  # as before
                cells = [_ratio_cell(kind, protects, groups, Belief(assume=assume), law) for law in SHAPES.values()]
                yield kind, str(assume or "nothing"), protects, str(groups), *cells


def _ratio_cell(kind: Kind, protects: Protects, groups: int, belief: Belief, law: tuple[float, float]) -> str:
    rng = noise.simulation(18)
    specification = specification_of(rng, belief)
    aggregate = Aggregate(kind=kind, protects=protects, groups=groups, upper=TOP)
    tried = [before(aggregate, specification, belief), MECHANISMS["weighted"](aggregate, specification, belief)]
    tallies = [Tally(), Tally()]
    for _ in range(RUNS):
        data = _draw(rng, specification, groups, law)
        for mechanism, tally in zip(tried, tallies, strict=True):
            tally.add(answer(mechanism, data.statistics, rng), data.truths[kind])
    return f"{_gain(*tallies):.2f} ({tallies[0].part:.2f}, {tallies[1].part:.2f})"


FAMILIES: dict[str, tuple[tuple[Kind, ...], bool]] = {
    "COUNT(x), SUM, AVG": (("count", "sum", "mean"), False),
    "COUNT(*), SUM, AVG": (("count", "sum", "mean"), True),
    "COUNT(x), AVG": (("count", "mean"), False),
    "COUNT(x), AVG, VARIANCE": (("count", "mean", "variance"), False),
}


def _families() -> Iterator[tuple[str, ...]]:
    yield ("SELECT", "assumed", "protects", "groups", *list(SHAPES)[:2], list(SHAPES)[3])
    for name, (kinds, wide) in FAMILIES.items():
        for assume in ASSUMED:
            if assume == "gradual" and "variance" in kinds:
                continue
            for protects, groups in RELATIONS:
                laws = (SHAPES["mean 5"], SHAPES["mean 20"], SHAPES["mean 50"])
                cells = [_family_cell(kinds, wide, protects, groups, Belief(assume=assume), law) for law in laws]
                yield name, str(assume or "nothing"), protects, str(groups), *cells


def _family_cell(
    kinds: Sequence[Kind], wide: bool, protects: Protects, groups: int, belief: Belief, law: tuple[float, float]
) -> str:
    rng = noise.simulation(19)
    specification = specification_of(rng, belief)
    shapes = [
        Aggregate(kind=kind, protects=protects, groups=groups, upper=1 if kind == "count" else TOP) for kind in kinds
    ]
    spends = Specification(
        epsilons=tuple(micro // len(kinds) for micro in specification.epsilons), people=specification.people
    )
    alone = [before(shape, spends, belief) for shape in shapes]
    kin = [Kin(aggregate=shape, wide=wide and shape.kind == "count") for shape in shapes]
    together = _together(kin, specification, belief, [mechanism.error for mechanism in alone])
    if any(one.error.total >= apart.error.total for one, apart in zip(together.estimates, alone, strict=True)):
        return "released apart"
    tallies = [(Tally(), Tally()) for _ in kinds]
    for _ in range(RUNS // (3 if belief.assume == "gradual" else 1)):
        data = _draw(rng, specification, groups, law)
        found = together.answer(data.statistics, data.rows, rng)
        for one, mechanism, new, (old_tally, new_tally) in zip(kin, alone, found, tallies, strict=True):
            about = replace(data.statistics, counts=data.rows) if one.wide else data.statistics
            truths = data.truths["rows" if one.wide else one.aggregate.kind]
            old_tally.add(answer(mechanism, about, rng), truths)
            new_tally.add(new, truths)
    gains = ", ".join(f"{_gain(*pair):.1f}" for pair in tallies)
    return f"{gains} ({min(new.part for _, new in tallies):.2f})"


def _together(kin: Sequence[Kin], specification: Specification, belief: Belief, errors: Sequence[Error]) -> Released:
    name = "pooled_joint" if belief.assume == "gradual" else "joint"
    return JOINT[name](kin, kin[-1].aggregate, specification, belief, errors)


def _caps() -> Iterator[tuple[str, ...]]:
    """Counts and means that are tuned to a usual variance, and intervals that the released value narrows."""
    yield ("aggregate", "protects", "mean .01", ".05", ".15", ".5")
    for kind, protects in (("count", "value"), ("mean", "value"), ("mean", "presence")):
        yield kind, protects, *(_cap_cell(kind, protects, part) for part in (0.01, 0.05, 0.15, 0.5))  # type: ignore[arg-type]


def _cap_cell(kind: Kind, protects: Protects, part: float) -> str:
    rng, belief = noise.simulation(20), Belief(assume="independent")
    specification = Specification.assign(preferences(rng))[0]
    aggregate = Aggregate(kind=kind, protects=protects)
    new = MECHANISMS["weighted"](aggregate, specification, belief)
    cautious: Any = new
    if kind == "count":
        worst = MECHANISMS["weighted"](aggregate, specification, belief, cap=saturation(specification, 8) / MICRO)
        cautious = replace(worst, error_at=None)  # type: ignore[type-var]
    else:
        cautious = before(aggregate, specification, belief)
    tallies = [Tally(), Tally()]
    for ones in rng.multivariate_hypergeometric(specification.heads, round(1_000 * part), size=4 * RUNS):
        counts = ones if kind == "count" else specification.heads
        statistics = Statistics(counts=counts[None], totals=ones[None])
        truths = np.array([1_000 * part if kind == "count" else part])
        for mechanism, tally in zip([cautious, new], tallies, strict=True):
            tally.add(answer(mechanism, statistics, rng), truths)
    return f"{_gain(*tallies):.2f}, {tallies[0].width / tallies[1].width:.2f} ({tallies[1].part:.2f})"

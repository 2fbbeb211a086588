"""Questions about arrays and data frames: one ε per person, no ledger. Each is specification → plan → release.

Every function takes `epsilon`, one per person; those about numbers `bounds`, and perhaps `grid` and `required`; and all
of them these choices:

mechanism   "auto" (the smallest predicted error) or a name; a name may be followed by that mechanism's own options
assume      None: nothing about the data; "gradual": people of similar ε are alike, and how values depend on ε is
            estimated; "independent": preferences are unrelated to values; or a number between
protects    "value": who is in the data is public; "presence": being in it is secret, and a missing value is an absence
expect      (low, high): every cohort's fraction or mean is believed to lie there
rng         None: the secure source; a generator of `noise.simulation(seed)` for experiments
with_interval  for quantiles: a third of everybody's ε goes to an interval in the units of the values
model       "personalized"; or "individual", with acknowledged=True: not differential privacy (see `local`)

A missing, NaN or infinite value contributes nothing, and its person is protected like everybody else.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discretion import noise
from discretion.engines.arrays import Column, bits, categories_of, numbers
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Protects
from discretion.mechanisms import Belief, answer
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.local import IndividualRelease, release_individual
from discretion.noise import Floats, Rng
from discretion.plan import Plan, choose
from discretion.plan.interval import MIDDLE, SIDE, WHOLE, between, sides
from discretion.preference import Integers, Specification
from discretion.release import Error, Release
from discretion.statistics import Aggregate, Kind, Measure, Statistics

STEPS = {
    "quantile": 1_000,
    "sum": 1_000_000,
    "mean": 1_000_000,
    "variance": 10_000,
}  # grid steps across the bounds: rounding is negligible


def count(condition: Any, *, epsilon: Any, **choices: Any) -> Release:
    """How many people the condition holds for (True, or any number but 0)."""
    return _answer("count", Aggregate(kind="count", protects="value"), bits(condition), epsilon, **choices)


def histogram(values: Any, *, categories: Sequence[Any], epsilon: Any, **choices: Any) -> Release:
    """How many people have each of `categories`, which must be known beforehand; other values are not counted."""
    if len(set(categories)) != len(categories) or not len(categories):
        raise InvalidDeclaration("categories must be one or more different values.")
    shape = Aggregate(kind="count", protects="value", groups=len(categories))
    release = _answer("count", shape, categories_of(values, categories), epsilon, **choices)
    return replace(release, columns={"category": tuple(categories), **release.columns})


def sum(values: Any, **choices: Any) -> Release:
    """The sum of values, each clamped to `bounds`; a missing value adds 0.

    `required` declares that everybody has a value, which makes their number public and the answer better where the
    bounds are far from 0; one that is missing all the same counts as the bound nearest 0.
    """
    return _numeric("sum", "sum", values, **choices)


def mean(values: Any, **choices: Any) -> Release:
    """The mean of values, each clamped to `bounds`, over the people who have one; `required` as for `sum`."""
    return _numeric("mean", "mean", values, **choices)


def variance(values: Any, *, population: bool = False, **choices: Any) -> Release:
    """Return the sample variance of values, each clamped to `bounds`; `required` as for `sum`.

    It divides by n − 1, like VARIANCE in SQL; with `population` by n, like VAR_POP.
    """
    return _numeric("variance", "variance", values, sample=not population, **choices)


def median(values: Any, **choices: Any) -> Release:
    """The lower median of values, each clamped to `bounds`; see `quantile`."""
    return _numeric("median", "quantile", values, Fraction(1, 2), **choices)


def quantile(values: Any, q: float, **choices: Any) -> Release:
    """The value of rank ⌈q·n⌉ among the n people who have one, each clamped to `bounds`.

    Candidates are the points of a grid, 1,000 steps from bound to bound or `grid` apart. The error is in ranks: a
    share of the people. `required` as for `sum`.
    """
    if not 0 <= q <= 1:
        raise InvalidDeclaration(f"q must be from 0 (the minimum) to 1 (the maximum), got {q!r}.")
    rank = Fraction(q).limit_denominator(10_000)
    if (rank in (0, 1)) != (q in (0, 1)):
        raise InvalidDeclaration(f"q must be 0, 1 or at least 0.0001 away from them, got {q!r}.")
    return _numeric("quantile", "quantile", values, rank, **choices)


def minimum(values: Any, **choices: Any) -> Release:
    """The smallest value, each clamped to `bounds`; it aims a little inside, where people are."""
    return _numeric("min", "quantile", values, Fraction(0), **choices)


def maximum(values: Any, **choices: Any) -> Release:
    """The largest value, each clamped to `bounds`; it aims a little inside, where people are."""
    return _numeric("max", "quantile", values, Fraction(1), **choices)


def mode(values: Any, *, categories: Sequence[Any], epsilon: Any, **choices: Any) -> Release:
    """The most frequent of `categories`, which must be known beforehand; other values are not counted."""
    if len(set(categories)) != len(categories) or not len(categories):
        raise InvalidDeclaration("categories must be one or more different values.")
    found = categories_of(values, categories)
    column = replace(found, values=found.group, group=np.zeros_like(found.group))
    shape = Aggregate(kind="mode", protects="value", upper=len(categories) - 1)
    release = _answer("mode", shape, column, epsilon, **choices)
    return replace(release, columns={"mode": tuple(categories[int(pick)] for pick in release.columns["mode"])})


def _numeric(
    name: str,
    kind: Kind,
    values: Any,
    rank: Fraction | None = None,
    *,
    epsilon: Any,
    bounds: tuple[float, float],
    grid: float | None = None,
    required: bool = False,
    sample: bool = False,
    **choices: Any,
) -> Release:
    """A question about clamped numbers. Where they are required, a missing one becomes a value: no absence any more."""
    if required and choices.get("protects") == "presence":
        raise InvalidDeclaration('required declares that everybody has a value: it needs protects="value".')
    column = numbers(values).filled() if required else numbers(values)
    shape = replace(_gridded(kind, column, bounds, grid, rank), sample=sample)
    return _answer(name, shape, column, epsilon, **choices)


def _answer(
    name: str,
    aggregate: Aggregate,
    column: Column,
    epsilon: Any,
    *,
    mechanism: str = "auto",
    assume: Assume = None,
    protects: Protects = "value",
    expect: tuple[float, float] | None = None,
    rng: Rng = None,
    with_interval: bool = False,
    model: str = "personalized",
    acknowledged: bool = False,
    **options: Any,
) -> Release:
    """The whole flow. The plan sees the shape of the question and the preferences, never the column."""
    if protects not in ("value", "presence"):
        raise InvalidDeclaration(f'protects must be "value" or "presence", got {protects!r}.')
    shape = replace(aggregate, protects=protects, complete=aggregate.complete and protects == "value")
    specification, cohort = Specification.assign(np.asarray(epsilon))
    if len(column) != len(cohort):
        raise InvalidDeclaration(f"There must be one epsilon per person, got {len(column)} values and {len(cohort)}.")
    if model != "personalized":
        asked = {"model": model, "acknowledged": acknowledged, "protects": protects, "rng": rng, **options}
        return _individual(name, shape, column, epsilon, **asked)
    whole = WHOLE if with_interval else 1
    spends, place = _part(specification, whole)
    plan = _plan(name, shape, spends, Belief(assume=assume, expect=expect), mechanism, with_interval, options)
    answers = [
        answer(choice.mechanism, compute(measure, column, place[cohort], len(spends.epsilons), rng), rng)
        for choice, measure in zip(plan.choices, plan.request.measures, strict=True)
    ]
    return Release(
        columns={name: tuple(answers[0][0].tolist())},
        errors={name: _errors(plan, answers)},
        mechanism=plan.choices[0].chosen.name,
        guarantee=_over(specification, plan.guarantee, whole),
        simulated=rng is not None,
        explanation=str(plan),
        comparison=plan.comparison,
    )


def _plan(
    name: str,
    shape: Aggregate,
    spends: Specification,
    belief: Belief,
    mechanism: str,
    with_interval: bool,
    options: dict[str, Any],
) -> Plan:
    """One choice; with an interval, two more for the sides, by the same public information."""
    if not with_interval:
        return choose([shape], spends, belief, mechanism=mechanism, labels=[name], **options)
    if shape.kind != "quantile":
        raise InvalidDeclaration(f"with_interval is for medians and other quantiles, not for a {shape.kind}.")
    return choose(
        [shape, *sides(shape, spends, belief, mechanism)],
        spends,
        belief,
        mechanism=mechanism,
        weights=(MIDDLE, SIDE, SIDE),
        labels=[name, f"{name}, from below", f"{name}, from above"],
        **options,
    )


def _part(specification: Specification, whole: int) -> tuple[Specification, Integers]:
    """What each cohort may spend on one of `whole` equal parts, and where each cohort is found then."""
    levels = specification.micro // whole
    part = Specification.of(zip(levels.tolist(), specification.people, strict=True))
    return part, np.searchsorted(part.micro, levels)


def _over(specification: Specification, guarantee: Guarantee, whole: int) -> Guarantee:
    """The same losses by the cohorts of everything they may spend."""
    return replace(guarantee, losses={level: guarantee.losses[level // whole] for level in specification.epsilons})


def _errors(plan: Plan, answers: Sequence[tuple[Floats, tuple[Error, ...]]]) -> tuple[Error, ...]:
    """One error a group; in value units if the sides of a quantile were released too."""
    if len(answers) == 1:
        return answers[0][1]
    middle, below, above = (float(released[0]) for released, _ in answers)
    ranks = tuple(float(choice.aggregate.rank or 0) for choice in plan.choices[1:])
    return (between(plan.choices[0].aggregate, middle, answers[0][1][0], (below, above), (ranks[0], ranks[1])),)


def _individual(name: str, shape: Aggregate, column: Column, epsilon: Any, **asked: Any) -> IndividualRelease:
    """Model `individual`, which is not differential privacy: the same question to `local`, which fences it."""
    if shape.groups > 1 or shape.kind not in ("count", "sum", "mean", "quantile"):
        raise InvalidDeclaration(f"Model `individual` does not answer this {shape.kind}.")
    values, bounds = column.present * 1.0, (0.0, 1.0)
    if shape.kind == "count":
        asked |= {"inside": (1.0, 1.0)}
    else:
        values = np.where(column.present, column.steps(shape) * float(shape.step) + float(shape.origin), np.nan)
        bounds = float(shape.value(shape.lower)), float(shape.value(shape.upper))
        asked |= {"q": float(shape.rank)} if shape.rank is not None else {}
    statistic: Any = shape.kind
    release = release_individual(values, statistic=statistic, epsilon=epsilon, bounds=bounds, **asked)
    (answers,), (errors,) = release.columns.values(), release.errors.values()
    return replace(release, columns={name: answers}, errors={name: errors})


def compute(measure: Measure, column: Column, cohort: Integers, cohorts: int, rng: Rng = None) -> Statistics:
    """Whole numbers by (group, cohort), as an engine would compute them; the only function that reads values."""
    aggregate = measure.aggregate
    used = column.present
    if measure.inclusion is not None:
        used = used & noise.keep(noise.coins(len(column), rng), measure.inclusion, cohort)
    cell = (column.group * cohorts + cohort)[used]
    shape = (aggregate.groups, cohorts)
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    if aggregate.kind in ("count", "people"):
        return Statistics(counts=counts)
    steps = column.steps(aggregate)[used]
    if measure.histogram:
        values = aggregate.upper - aggregate.lower + 1
        by_value = np.bincount(cell * values + steps - aggregate.lower, minlength=counts.size * values)
        return Statistics(counts=counts, histogram=by_value.reshape(*shape, values))
    totals = _sums(steps, cell, counts.size).reshape(shape)
    squares = _sums(steps**2, cell, counts.size).reshape(shape) if aggregate.kind == "variance" else None
    return Statistics(counts=counts, totals=totals, squares=squares)


def _sums(values: Integers, cell: Integers, size: int) -> Any:
    """Exact sums by cell: `bincount` adds doubles, so each half of a number is added where doubles are exact."""
    low = np.bincount(cell, weights=values & 0xFFFF, minlength=size)  # exact below 2^37 people
    middle = np.bincount(cell, weights=(values >> 16) & 0xFFFF, minlength=size)
    high = np.bincount(cell, weights=values >> 32, minlength=size)
    parts = [part.astype(np.int64).astype(object) for part in (low, middle, high)]
    return parts[0] + parts[1] * 2**16 + parts[2] * 2**32


def _gridded(
    kind: Kind, column: Column, bounds: tuple[float, float], grid: float | None, rank: Fraction | None
) -> Aggregate:
    """The shape of a question about clamped numbers: bounds and step become whole numbers of steps."""
    low, high = _bounds(bounds)
    largest = max(high - low, abs(low), abs(high)) if kind == "sum" else high - low
    if grid is not None and not 0 < grid < float("inf"):
        raise InvalidDeclaration(f"grid must be a step above 0, got {grid!r}.")
    origin = Fraction(0) if kind == "sum" else low  # a missing value must add 0 to a sum
    whole = column.whole and origin.denominator == 1
    step = Fraction(str(grid)) if grid is not None else _step(kind, largest, whole)
    return Aggregate(
        kind=kind,
        protects="value",
        lower=(low - origin) // step,
        upper=-((origin - high) // step),  # outwards: no bound is cut
        origin=origin,
        step=step,
        complete=not column.nullable,
        rank=rank,
    )


def _step(kind: str, width: Fraction, whole: bool) -> Fraction:
    """A power of ten that gives about so many steps; 1 for whole numbers where that suffices."""
    steps = STEPS[kind]
    if whole and width <= steps:
        return Fraction(1)
    if kind == "quantile":
        return width / steps
    step = Fraction(1)
    while width / step > 2 * steps:
        step *= 10
    while width / step < steps / 5:
        step /= 10
    return step


def _bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise InvalidDeclaration("bounds must be two numbers (low, high) that are known beforehand.") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidDeclaration(f"bounds must be finite and ascend, got {low!r} to {high!r}.")
    return Fraction(str(low)), Fraction(str(high))

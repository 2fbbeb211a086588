"""Questions about arrays and data frames: one ε per person, no ledger. Each is specification → plan → release.

Every function takes `epsilon`, one per person; those about numbers `bounds`, and perhaps `grid` (the step between the
candidate answers of a quantile; sums, means and variances pay no attention to it) and `required`; and all of them these
choices:

mechanism   "auto" (the smallest predicted error) or a name; `options` are for the one that is named, e.g.
            options={"threshold": 0.5}
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

from discretion.engines.arrays import ArrayColumn, ArrayRows, bits, categories_of, compute, numbers
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.mechanisms import Belief
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.local import IndividualRelease, release_individual
from discretion.mechanisms.option import Options
from discretion.noise import Rng
from discretion.plan import flow
from discretion.plan.family import of_quantiles
from discretion.plan.flow import Manner
from discretion.preference import Specification
from discretion.release import Release
from discretion.statistics import MOST_CELLS, Aggregate, Kind, Wanted, gridded

LARGEST_BOUND = 1e100  # beyond it doubles overflow, and the noise too


def count(condition: Any, *, epsilon: Any, **choices: Any) -> Release:
    """How many people the condition holds for (True, or any number but 0)."""
    return _answer("count", [Aggregate(kind="count", protects="value")], bits(condition), epsilon, **choices)


def histogram(values: Any, *, categories: Sequence[Any], epsilon: Any, **choices: Any) -> Release:
    """How many people have each of `categories`, which must be known beforehand; other values are not counted."""
    column = categories_of(values, categories)
    shape = Aggregate(kind="count", protects="value", groups=len(categories))
    release = _answer("count", [shape], column, epsilon, **choices)
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
    """Return a median of values, each clamped to `bounds`; see `quantile`."""
    return _numeric("median", "quantile", values, (Fraction(1, 2),), **choices)


def quantile(values: Any, q: float | Sequence[float], **choices: Any) -> Release:
    """Return the value of rank ⌈q·n⌉ among the n people who have one, each clamped to `bounds`.

    A list of q is answered by one release, a row each, in the order given; that is better than asking one by one.

    Where q·n is whole, as for the median of an even number, any value from there to the next higher one may be
    returned, as in SQL. Candidates are the points of a grid, 1,000 steps from bound to bound or `grid` apart; for
    whole numbers in a span of 1,000 or less, every value. The error is in ranks: a share of the people. `required` as
    for `sum`.
    """
    if np.ndim(q) == 0:
        return _numeric("quantile", "quantile", values, (_rank(q),), **choices)
    listed = [float(each) for each in np.asarray(q).ravel()]
    if len(set(listed)) != len(listed) or not listed:
        raise InvalidDeclaration(f"q must be a number, or a list of different numbers, got {q!r}.")
    release = _numeric("quantile", "quantile", values, tuple(map(_rank, listed)), **choices)
    return replace(release, columns={"q": tuple(listed), **release.columns})


def _rank(q: Any) -> Fraction:
    if not 0 <= q <= 1:
        raise InvalidDeclaration(f"q must be from 0 (the minimum) to 1 (the maximum), got {q!r}.")
    rank = Fraction(q).limit_denominator(10_000)
    if (rank in (0, 1)) != (q in (0, 1)):
        raise InvalidDeclaration(f"q must be 0, 1 or at least 0.0001 away from them, got {q!r}.")
    return rank


def minimum(values: Any, **choices: Any) -> Release:
    """The smallest value, each clamped to `bounds`; it aims a little inside, where people are."""
    return _numeric("min", "quantile", values, (Fraction(0),), **choices)


def maximum(values: Any, **choices: Any) -> Release:
    """The largest value, each clamped to `bounds`; it aims a little inside, where people are."""
    return _numeric("max", "quantile", values, (Fraction(1),), **choices)


def mode(values: Any, *, categories: Sequence[Any], epsilon: Any, **choices: Any) -> Release:
    """The most frequent of `categories`, which must be known beforehand; other values are not counted."""
    found = categories_of(values, categories)
    column = ArrayColumn(present=found.present, values=np.asarray(found.group))
    shape = Aggregate(kind="mode", protects="value", upper=len(categories) - 1)
    release = _answer("mode", [shape], column, epsilon, **choices)
    return replace(release, columns={"mode": tuple(categories[int(pick)] for pick in release.columns["mode"])})


def _numeric(
    name: str,
    kind: Kind,
    values: Any,
    ranks: Sequence[Fraction | None] = (None,),
    *,
    epsilon: Any,
    bounds: tuple[float, float],
    grid: float | None = None,
    required: bool = False,
    sample: bool = False,
    **choices: Any,
) -> Release:
    """Ask about clamped numbers. Where they are required, a missing one becomes a value: it is not absent any more."""
    if required and choices.get("protects") == "presence":
        raise InvalidDeclaration('required declares that everybody has a value: it needs protects="value".')
    if grid is not None and not 0 < grid < float("inf"):
        raise InvalidDeclaration(f"grid must be a step above 0, got {grid!r}.")
    column = numbers(values).filled() if required else numbers(values)
    step = None if grid is None else Fraction(str(grid))
    shape = gridded(kind, *_bounds(bounds), protects="value", whole=column.whole, step=step, rank=ranks[0])
    if kind == "quantile" and shape.upper >= MOST_CELLS:
        raise InvalidDeclaration(f"{shape.upper + 1:,} candidate answers are too many. Use a coarser grid.")
    shape = replace(shape, sample=sample, complete=not column.nullable)
    return _answer(name, [replace(shape, rank=rank) for rank in ranks], column, epsilon, **choices)


def _answer(
    name: str,
    aggregates: Sequence[Aggregate],
    column: ArrayColumn,
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
    options: Options | None = None,
) -> Release:
    """Plan, compute, release. The plan sees the shape of the question and the preferences, never the column."""
    if protects not in ("value", "presence"):
        raise InvalidDeclaration(f'protects must be "value" or "presence", got {protects!r}.')
    shapes = [replace(one, protects=protects, complete=one.complete and protects == "value") for one in aggregates]
    shape = shapes[0]
    specification, cohort = Specification.assign(np.asarray(epsilon))
    if len(column) != len(cohort):
        raise InvalidDeclaration(f"There must be one epsilon per person, got {len(column)} values and {len(cohort)}.")
    if model != "personalized":
        asked = {"model": model, "acknowledged": acknowledged, "protects": protects, "rng": rng, **(options or {})}
        return _individual(name, shape, column, epsilon, **asked)
    if with_interval and shape.kind != "quantile":
        raise InvalidDeclaration(f"with_interval is for medians and other quantiles, not for a {shape.kind}.")
    belief = Belief(assume=assume, expect=expect)
    manner = Manner(mechanism=mechanism, belief=belief, with_interval=with_interval, options=options)
    names = [name] if len(shapes) == 1 else [f"{name} {float(one.rank or 0):g}" for one in shapes]
    wanted = [Wanted(text=text, aggregate=one) for text, one in zip(names, shapes, strict=True)]
    families = of_quantiles({place: one.rank for place, one in enumerate(shapes)})
    _, plan = flow.propose(wanted, specification.divided(flow.parts(wanted, manner)), manner, families)
    rows = ArrayRows(column=column, cohort=cohort, cohorts=len(specification.epsilons))
    statistics = compute(replace(plan.request, source=rows), rng)  # the only line that reads values
    released, errors = flow.draw(plan, len(wanted), statistics, rng)
    answers = tuple(value for each in released for value in each.tolist())
    return flow.conclude(plan, {name: answers}, {name: tuple(one for each in errors for one in each)}, rng=rng)


def _individual(name: str, shape: Aggregate, column: ArrayColumn, epsilon: Any, **asked: Any) -> IndividualRelease:
    """Ask `local`, which fences model `individual`: it is not differential privacy."""
    if shape.groups > 1 or shape.kind not in ("count", "sum", "mean", "quantile"):
        raise InvalidDeclaration(f"Model `individual` does not answer this {shape.kind}.")
    values, bounds = column.counted * 1.0, (0.0, 1.0)
    if shape.kind == "count":
        asked |= {"inside": (1.0, 1.0)}
    else:
        values = np.where(column.counted, column.steps(shape) * float(shape.step) + float(shape.origin), np.nan)
        bounds = float(shape.value(shape.lower)), float(shape.value(shape.upper))
        asked |= {"q": float(shape.rank)} if shape.rank is not None else {}
    statistic: Any = shape.kind
    release = release_individual(values, statistic=statistic, epsilon=epsilon, bounds=bounds, **asked)
    (answers,), (errors,) = release.columns.values(), release.errors.values()
    return replace(release, columns={name: answers}, errors={name: errors})


def _bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise InvalidDeclaration("bounds must be two numbers (low, high) that are known beforehand.") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidDeclaration(f"bounds must be finite and ascend, got {low!r} to {high!r}.")
    if max(-low, high) > LARGEST_BOUND or high - low < 1 / LARGEST_BOUND:
        raise InvalidDeclaration(f"bounds must be within ±1e100 and not closer than 1e-100, got {low!r} to {high!r}.")
    return Fraction(str(low)), Fraction(str(high))

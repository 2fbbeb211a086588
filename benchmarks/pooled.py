"""Pooled: errors and intervals of `assume="gradual"` where choices and values are related, and where they are not.

Every figure is measured with the product's own mechanism and noise. A cell is `RMSE / how often the 95% interval held`.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

import discretion
from discretion import noise
from discretion.guarantee import Protects
from discretion.mechanisms import MECHANISMS, Belief, Mechanism, answer
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.pooled import Pooled
from discretion.noise import Floats
from discretion.preference import Specification
from discretion.statistics import Aggregate, Kind, Statistics

RUNS = 1_000
SHARES = (0.05, 0.15, 0.5)
PAGE = Path("bench-output") / "pooled.md"
KEPT = Path("bench-output") / "pooled"
INTRODUCTION = """# How well `gradual` works

This page is written by `python -m benchmarks pooled`: 1,000 runs a cell unless it says otherwise, with the product's
own mechanisms and noise. A cell is the root mean squared error / how often the 95% interval held.
docs/mechanisms.md explains how `assume="gradual"` works.

p is the share of people who are counted. *Trend*: the rate falls linearly by a factor 3 from the strictest to the most
open person, by rank or by ε. *Step*: the rate of the stricter 54% is 6.7 times that of the others. *Very strict*: only
people with ε < .05 differ, by a factor 2. "paper" stands for [JYC15]'s preferences: 54% of the people from .01 to .2,
37% from .2 to 1, the others 1. "3 levels": .1, .5, 1. "5 levels": .05, .1, .2, .5, 1. "5 wide levels": .02, .1, .3, 1,
3. "100 levels": .01, .02, ..., 1."""
SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
ASSUMPTIONS: tuple[Assume, ...] = ("gradual", None, "independent")
SIDES = (0.025, 0.975)  # of 95% intervals
Generator = np.random.Generator  # noqa: TID251  a type, not a source of randomness


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What was measured."""

    rmse: float
    held: float  # share of 95% intervals that held the truth
    half: float  # mean half width
    off: float  # mean error

    def __str__(self) -> str:
        return f"{three(self.rmse)} / {self.held:.3f}"


def three(number: float) -> str:
    """Return three digits of a number."""
    return f"{float(f'{number:.3g}'):,.10g}"


def main() -> None:
    sections = [
        ("RMSE of a count and how often its 95% interval held; 1,000 people, [JYC15]'s preferences", _figures),
        ("[JYC15] Figure 1(a) with every assumption: RMSE of a count and how often its interval held", _figure_1a),
        ("How often 95% intervals of counts held, for p of .05, .15 and .5: least and mean", _coverage),
        ("How often 95% intervals of sums and means of skewed values held, 200 runs", _value_coverage),
        ("Real data, related choices, a share of 10%: RMSE, how often the interval held, its half width", _real),
    ]
    page = [INTRODUCTION]
    for title, rows in sections:
        header, *body = rows()
        table = Table(*header, title=title)
        for row in body:
            table.add_row(*row)
        Console().print(table)
        lines = [" | ".join(row) for row in (header, ("---",) * len(header), *body)]
        page.append("\n".join([f"## {title}", "", *(f"| {line} |" for line in lines)]))
    PAGE.write_text("\n\n".join(page) + "\n")


def kept(function: Callable[..., "Cell"], *arguments: Any, **named: Any) -> "Cell":
    """Return a cell, from an earlier run of the same code if there is one: a stopped run goes on where it was."""
    sources = sorted((Path(discretion.__file__).parent / "mechanisms").glob("*.py"))
    code = b"".join(path.read_bytes() for path in sources)
    key = sha256(code + repr((function.__name__, arguments, named)).encode()).hexdigest()
    path = KEPT / f"{key}.json"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(function(*arguments, **named))))
    return Cell(**json.loads(path.read_text()))


def _figures() -> Iterator[tuple[str, ...]]:
    yield "relation", "assumed", *(f"p = {share:g}" for share in SHARES)
    for relation in RELATIONS:
        for assume in ASSUMPTIONS:
            cells = [
                kept(measured_count, "paper", relation, share, people=1_000, runs=RUNS, assume=assume)
                for share in SHARES
            ]
            yield relation, str(assume or "nothing"), *map(str, cells)


def _figure_1a() -> Iterator[tuple[str, ...]]:
    """The densities of the paper, choices unrelated to values as there."""
    densities = (0.01, 0.05, 0.1, 0.15, 0.3, 0.5)
    yield ("assumed", *map(str, densities))
    for assume in ASSUMPTIONS:
        cells = [
            kept(measured_count, "paper", "none", share, people=1_000, runs=RUNS, assume=assume) for share in densities
        ]
        yield (str(assume or "nothing"), *map(str, cells))


def _coverage() -> Iterator[tuple[str, ...]]:
    sizes = (300, 1_000, 10_000, 100_000)
    yield "preferences", "relation", *(f"{people:,} people" for people in sizes)
    for register in ("3 levels", "5 levels", "100 levels"):
        for relation in ("none", "trend by rank", "step"):
            found = []
            for people in sizes:
                held = [
                    kept(measured_count, register, relation, share, people=people, runs=RUNS).held for share in SHARES
                ]
                found.append(f"{min(held):.3f}, {np.mean(held):.3f}")
            yield register, relation, *found


def _value_coverage() -> Iterator[tuple[str, ...]]:
    sizes = (300, 1_000)
    yield "preferences", "relation", "aggregate", *(f"{people:,} people" for people in sizes)
    for register in ("3 levels", "100 levels"):
        for relation in ("none", "step"):
            for kind, protects in (("sum", "value"), ("mean", "value"), ("mean", "presence")):
                held = [
                    kept(measured_values, register, relation, kind, protects, people=people, runs=200, registers=4).held
                    for people in sizes
                ]
                yield register, relation, f"{kind}, {protects}", *(f"{one:.3f}" for one in held)


def _real() -> Iterator[tuple[str, ...]]:
    yield "data", "question", "truth", *(str(assume or "nothing") for assume in ASSUMPTIONS)
    for number, (name, question, _, values, bounds) in enumerate(real_questions()):
        cells = [kept(measured_question, number, assume=assume, runs=RUNS) for assume in ASSUMPTIONS]
        truth = np.nanmean(np.clip(values, *bounds)) if bounds else values.sum()
        yield name, question, f"{truth:,.6g}", *(f"{cell}, ± {three(cell.half)}" for cell in cells)


def measured_question(number: int, *, assume: Assume, runs: int) -> "Cell":
    """One of the questions about real data."""
    _, _, score, values, bounds = list(real_questions())[number]
    return measured_real(score, values, bounds, assume=assume, runs=runs)


def real_questions() -> Iterator[tuple[str, str, Floats, Floats, tuple[int, int] | None]]:
    """(data, question, what choices are related to, values, bounds; None: a count of those with the value 1)."""
    if not SHARED.exists():
        return
    adult = parquet.read_table(SHARED / "adult.parquet").to_pandas()
    age, hours = adult["age"].to_numpy(float), adult["hours_per_week"].to_numpy(float)
    yield "adult, older are stricter", "COUNT income > 50K", age, 1.0 * (adult["income"] == ">50K").to_numpy(), None
    yield "adult, older are stricter", "COUNT hours > 40", age, 1.0 * (hours > 40), None
    yield (
        "adult, older are stricter",
        "COUNT never married",
        age,
        1.0 * (adult["marital_status"] == "Never-married"),
        None,
    )
    yield "adult, older are stricter", "AVG(age)", age, age, (17, 90)
    yield "adult, older are stricter", "AVG(hours)", age, hours, (1, 99)
    acs = parquet.read_table(SHARED / "acs_national_2019.parquet").to_pandas()
    income = acs["pincp"].to_numpy(float)
    rich = np.nan_to_num(income, nan=0.0)
    yield "ACS, richer are stricter", "COUNT income > 50,000", rich, 1.0 * (rich > 50_000), None
    yield "ACS, richer are stricter", "COUNT age > 65", rich, 1.0 * (acs["agep"].to_numpy(float) > 65), None
    yield "ACS, richer are stricter", "AVG(income) / 1,000", rich, income / 1_000, (0, 200)
    food = parquet.read_table(SHARED / "food_world_cup.parquet").to_pandas()
    ratings = food[[column for column in food if column.startswith("like_")]]
    rated = ratings.notna().sum(axis=1).to_numpy(float)
    yield "food, who rated more is more open", "COUNT likes Italian", -rated, 1.0 * (ratings["like_italy"] >= 4), None
    yield "food, who rated more is more open", "COUNT women", -rated, 1.0 * (food["gender"] == "Female"), None
    yield "food, who rated more is more open", "AVG(countries rated)", -rated, rated, (0, 40)


def measured_real(
    score: Floats, values: Floats, bounds: tuple[int, int] | None, *, assume: Assume, runs: int = 300
) -> Cell:
    """[JYC15]'s preferences, the stricter the higher the score, with chance; a tenth is spent."""
    rng, cells = noise.simulation(3), []
    place = np.argsort(np.argsort(score + rng.random(score.size) * 1e-6)) / score.size
    for _ in range(3):
        mixed = place + rng.normal(0, 0.3, place.size)
        chosen = np.sort(paper(place.size, rng))[::-1] / 10
        specification, cohort = Specification.assign(chosen[np.argsort(np.argsort(mixed))])
        levels = len(specification.epsilons)
        column = np.asarray(values, dtype=float)
        present = np.isfinite(column) if bounds else column == 1
        low, high = bounds or (0, 1)
        steps = np.clip(np.where(present, column, low), low, high).round().astype(np.int64)
        counts = np.bincount(cohort[present], minlength=levels)[None].repeat(runs // 3, axis=0)
        totals = np.bincount(cohort[present], weights=steps[present] - low, minlength=levels)[None].repeat(
            runs // 3, axis=0
        )
        aggregate = Aggregate(
            kind="mean" if bounds else "count",
            protects="value",
            upper=high - low,
            origin=Fraction(low),
            complete=bool(bounds and present.all()),
        )
        truth = steps[present].mean() if bounds else float(present.sum())
        statistics = Statistics(counts=counts, totals=totals.astype(np.int64).astype(object))
        mechanism = tuned(aggregate, specification, assume)
        cells.append(measure(mechanism, statistics, np.full(runs // 3, truth), rng))
    return average(cells)


def paper(people: int, rng: Generator) -> Floats:
    """[JYC15]'s defaults: 54% U[.01, .2], 37% U[.2, 1], both in hundredths, the rest 1."""
    strict, medium = round(0.54 * people), round(0.37 * people)
    chosen = [rng.uniform(0.01, 0.2, strict).round(2), rng.uniform(0.2, 1.0, medium).round(2)]
    return np.concatenate([*chosen, np.ones(people - strict - medium)])


def drawn(levels: Any, parts: Any) -> Callable[[int, Generator], Floats]:
    """Preferences chosen at random among few levels."""
    return lambda people, rng: rng.choice(np.asarray(levels, dtype=float), people, p=parts)


REGISTERS: dict[str, Callable[[int, Generator], Floats]] = {
    "paper": paper,
    "3 levels": drawn([0.1, 0.5, 1.0], [0.54, 0.37, 0.09]),
    "5 levels": drawn([0.05, 0.1, 0.2, 0.5, 1.0], [0.2, 0.3, 0.25, 0.15, 0.1]),
    "5 wide levels": drawn([0.02, 0.1, 0.3, 1.0, 3.0], [0.2, 0.3, 0.25, 0.15, 0.1]),
    "100 levels": drawn(np.arange(1, 101) / 100, [0.01] * 100),
}
# relation -> how a person's rate depends on (ε, the share of people with a smaller ε)
RELATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "none": lambda epsilon, rank: np.ones_like(rank),
    "trend by rank": lambda epsilon, rank: 1.5 - rank,
    "trend by ε": lambda epsilon, rank: 1 - 2 / 3 * (epsilon - epsilon.min()) / np.ptp(epsilon),
    "step": lambda epsilon, rank: np.where(rank < 0.54, 6.7, 1.0),
    "very strict": lambda epsilon, rank: np.where(epsilon < 0.05, 2.0, 1.0),
}


def rank_of(epsilon: Floats) -> Floats:
    """The share of people with a smaller ε, half of one's own level added."""
    _, level, heads = np.unique(epsilon, return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(heads) - heads / 2) / heads.sum())[level])


def rates(relation: str, epsilon: Floats, share: float) -> Floats:
    """Everybody's rate, `share` on average; none above 1."""
    raw = RELATIONS[relation](epsilon, rank_of(epsilon))
    found = raw / raw.mean() * share
    for _ in range(50):  # what is above 1 goes to the others
        found = np.minimum(found, 1.0)
        found = np.where(found < 1, found * (share / found.mean()), 1.0)
    return np.asarray(np.minimum(found, 1.0))


def judge(found: Any, truth: Floats, limits: tuple[float, float]) -> Cell:
    """Compare estimates and truths."""
    low, high = np.clip(found.sides, *limits).T
    slack = 1e-9 * max(1.0, float(np.abs(truth).max()))
    off = found.values - truth
    return Cell(
        rmse=float(np.sqrt(np.mean(off**2))),
        held=float(np.mean((low <= truth + slack) & (truth - slack <= high))),
        half=float(np.mean(high - low) / 2),
        off=float(np.mean(off)),
    )


def tuned(aggregate: Aggregate, specification: Specification, assume: Assume = "gradual") -> Mechanism:
    """`pooled`, or `weighted` under another assumption."""
    name = "pooled" if assume == "gradual" else "weighted"
    return MECHANISMS[name](aggregate, specification, Belief(assume=assume))


def measure(mechanism: Mechanism, statistics: Statistics, truth: Floats, rng: Generator) -> Cell:
    """Errors and intervals over many runs, a run in every row of the statistics."""
    if isinstance(mechanism, Pooled):
        found = mechanism.pool.estimate(mechanism.noisy(statistics, rng), sides=SIDES)
        return judge(found, truth, mechanism.error.limits or (-np.inf, np.inf))
    cells = []
    for run, true in enumerate(truth):
        one = Statistics(
            counts=statistics.counts[[run]], totals=None if statistics.totals is None else statistics.totals[[run]]
        )
        (value,), (error,) = answer(mechanism, one, rng)
        low, high = error.interval(value)
        off = float(value - true)
        cells.append(Cell(rmse=abs(off), held=float(low <= true <= high), half=(high - low) / 2, off=off))
    return average(cells)


def average(cells: list[Cell]) -> Cell:
    """All runs together."""
    return Cell(
        rmse=float(np.sqrt(np.mean([cell.rmse**2 for cell in cells]))),
        held=float(np.mean([cell.held for cell in cells])),
        half=float(np.mean([cell.half for cell in cells])),
        off=float(np.mean([cell.off for cell in cells])),
    )


def measured_count(
    register: str,
    relation: str,
    share: float,
    *,
    people: int,
    runs: int,
    registers: int = 10,
    assume: Assume = "gradual",
    seed: int = 1,
) -> Cell:
    """A count of `share` of the people; new preferences for every part of the runs."""
    rng, cells = noise.simulation(seed), []
    for _ in range(registers):
        epsilon = REGISTERS[register](people, rng)
        specification, cohort = Specification.assign(epsilon)
        mean = np.bincount(cohort, weights=rates(relation, epsilon, share)) / specification.heads
        ones = rng.binomial(specification.heads, np.clip(mean, 0, 1), (runs // registers, len(specification.epsilons)))
        mechanism = tuned(Aggregate(kind="count", protects="value"), specification, assume)
        cells.append(measure(mechanism, Statistics(counts=ones), ones.sum(axis=1).astype(float), rng))
    return average(cells)


def measured_values(
    register: str,
    relation: str,
    kind: Kind,
    protects: Protects,
    *,
    people: int,
    runs: int,
    registers: int = 10,
    assume: Assume = "gradual",
    seed: int = 2,
) -> Cell:
    """A sum or a mean of skewed values from 0 to 100, which seven of ten people have; they ascend with the rate."""
    rng, cells = noise.simulation(seed), []
    aggregate = Aggregate(kind=kind, protects=protects, upper=100)
    for _ in range(registers):
        epsilon = REGISTERS[register](people, rng)
        specification, cohort = Specification.assign(epsilon)
        rate, levels = rates(relation, epsilon, 0.15), len(specification.epsilons)
        shape = (runs // registers, people)
        values = np.minimum(rng.gamma(0.7, rate * 140, shape), 100).astype(np.int64)
        place = np.where(rng.random(shape) < 0.7, cohort + levels * np.arange(shape[0])[:, None], shape[0] * levels)
        counts, totals = (
            np.bincount(place.ravel(), weights=weights, minlength=shape[0] * levels + 1)[:-1]
            .reshape(shape[0], levels)
            .astype(np.int64)
            for weights in (None, values.ravel())
        )
        truth = totals.sum(axis=1) / (counts.sum(axis=1) if kind == "mean" else 1.0)
        mechanism = tuned(aggregate, specification, assume)
        cells.append(measure(mechanism, Statistics(counts=counts, totals=totals.astype(object)), truth, rng))
    return average(cells)

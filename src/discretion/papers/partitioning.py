"""[LXJJ17] Li, Xiong, Ji, Jiang: Partitioning-Based Mechanisms Under Personalized Differential Privacy: counts."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from discretion.learn.run import plan
from discretion.mechanisms import Belief, Mechanism
from discretion.mechanisms.partition import Cuts
from discretion.mechanisms.partition import propose as partition
from discretion.noise import Floats
from discretion.papers.claim import Check
from discretion.papers.data import IN_LXJJ17, Census, census, census_file
from discretion.papers.figure import Axes, Claim, Effort, Figure, Finding, Point, Points
from discretion.papers.trial import Contender, drawn_errors
from discretion.preference import MICRO, Integers, Specification
from discretion.statistics import Aggregate

PEOPLE = {"US": 370_000, "Brazil": 190_000}
SHARES = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0]  # thresholds over the mean budget; 0: the smallest
GROUPS, DRAWS = 5, 20
MINIMUM, SAMPLE = "Minimum", "Sample"
PRIVACY, UTILITY, ADDED = "privacy-aware, k = 5", "utility-based, k = 5", "utility-based, counts added up"
AUTO, EXPECT = "auto, independent", "auto, independent, expect (0, .001)"
COUNT = Aggregate(kind="count", protects="value")


def uniform(low: float, high: float) -> Callable[[Any, int], Floats]:
    """Budgets from U(low, high)."""
    return lambda rng, people: np.asarray(rng.uniform(low, high, people))


def normal(rng: Any, people: int) -> Floats:
    """Budgets from N(.1, 1), only those in [.01, 1]: the reading whose mean is about .5, as the text says."""
    drawn = rng.normal(0.1, 1, 4 * people)
    return np.asarray(drawn[(drawn >= 0.01) & (drawn <= 1)][:people])


BUDGETS = {"U(.01, 1)": uniform(0.01, 1), "U(.01, .1)": uniform(0.01, 0.1), "N(.1, 1) in [.01, 1]": normal}
THREE = "U(.01, 1), ranges on 3 attributes"
PANELS = [*BUDGETS, THREE]


def register(draw: Callable[[Any, int], Floats], people: int, rng: Any) -> tuple[Specification, Integers]:
    """Everybody's budget, rounded down to 100 levels between the smallest and the largest."""
    budget = draw(rng, people)
    low, high = float(budget.min()), float(budget.max())
    levels = np.linspace(low, high, 101)[:-1]
    return Specification.assign(levels[np.clip(np.searchsorted(levels, budget, side="right") - 1, 0, 99)])


def range_counts(country: str) -> Callable[[Effort], Iterator[list[Point]]]:
    """Mean |relative frequency error| of random range counts, against the sampling threshold."""

    def compute(effort: Effort) -> Iterator[list[Point]]:
        people = _people(effort.data, effort.seed, country)
        for panel in PANELS:
            rng = effort.generator("partitioning", country, panel)
            specification, cohort = register(BUDGETS.get(panel, BUDGETS["U(.01, 1)"]), len(people), rng)
            queries = _queries(people, cohort, len(specification.epsilons), effort.runs, panel == THREE, rng)
            mean = float(specification.heads @ specification.micro) / specification.size / MICRO
            yield list(_panel_points(panel, specification, queries, mean, rng))

    return compute


def _panel_points(
    panel: str, specification: Specification, queries: Integers, mean: float, rng: Any
) -> Iterator[Point]:
    level = {
        contender.curve: (contender, _errors(contender.tuned(COUNT, specification), queries, specification.size, rng))
        for contender in _level_contenders()
    }
    for share in SHARES:
        t = min(max(share * mean, specification.strictest / MICRO), specification.epsilons[-1] / MICRO)
        sampled = Contender(
            curve=SAMPLE,
            mechanism="sample",
            protects="value",
            assume="independent",
            options={"threshold": t, "rescaled": True},
        )
        errors = _errors(sampled.tuned(COUNT, specification), queries, specification.size, rng)
        yield _point(sampled, share, errors, panel)
        for contender, fixed in level.values():
            yield _point(contender, share, fixed, panel)


def _level_contenders() -> list[Contender]:
    """What needs no threshold: a horizontal line."""

    def cut(curve: str, cuts: str, ensemble: str) -> Contender:
        options = {"groups": GROUPS, "cuts": cuts, "ensemble": ensemble}
        return Contender(
            curve=curve,
            mechanism="partition",
            protects="value",
            assume="independent",
            expect=(0.0, 0.0),  # weights (n_i ε_i)²: "depending on n_i and ε_i", as the paper has it
            options=options,
        )

    return [
        Contender(curve=MINIMUM, mechanism="minimum", protects="value"),
        cut(PRIVACY, "privacy", "homogeneous"),
        cut(UTILITY, "precision", "homogeneous"),
        cut(ADDED, "precision", "stratified"),
        Contender(curve=AUTO, mechanism="auto", protects="value", assume="independent", by="auto"),
        Contender(
            curve=EXPECT, mechanism="auto", protects="value", assume="independent", expect=(0.0, 0.001), by="auto"
        ),
    ]


@lru_cache(maxsize=2)
def _people(path: Path | None, seed: int, country: str) -> Census:
    if path is not None:
        return census_file(path)
    return census(PEOPLE[country], Effort(runs=0, seed=seed).generator("census", country), country).choose(IN_LXJJ17)


def _queries(people: Census, cohort: Integers, cohorts: int, queries: int, few: bool, rng: Any) -> Integers:
    """(query, cohort) -> how many people lie in random intervals of all attributes, or of three."""
    lower, upper = np.array(people.bounds).T
    counts = np.zeros((queries, cohorts), dtype=np.int64)
    for query in range(queries):
        ends = np.sort(lower + (upper - lower) * rng.random((2, lower.size)), axis=0)
        inside = np.arange(len(people))
        for attribute in rng.permutation(lower.size)[: 3 if few else None]:
            value = people.values[inside, attribute]
            inside = inside[(value >= np.floor(ends[0, attribute])) & (value <= np.ceil(ends[1, attribute]))]
        counts[query] = np.bincount(cohort[inside], minlength=cohorts)
    return counts


def _errors(mechanism: Mechanism, queries: Integers, people: int, rng: Any) -> Floats:
    """Mean |answer − truth| / n of each query, over draws of noise and coins."""
    return np.asarray(np.abs(drawn_errors(mechanism, queries, DRAWS, rng)).mean(axis=0) / people)


def _point(contender: Contender, x: float, errors: Floats, panel: str) -> Point:
    spread = float(errors.std(ddof=1) / sqrt(errors.size))
    return Point(
        curve=contender.curve,
        x=x,
        y=float(errors.mean()),
        spread=spread,
        panel=panel,
        by=contender.by,
        relation=contender.protects,
    )


ROUNDS, MANY = 4, 10_000  # rounds shown, levels of the budgets
LEFT, FLOOR, SPREAD = "370,000 people, U(.01, 1), k = 10", "12 people, k = 3, groups of at least 4", "a count's error"
CUTS: dict[str, Cuts] = {"privacy-aware": "privacy", "utility-based": "precision"}


def rounds(effort: Effort) -> Iterator[list[Point]]:
    """What is left of the squared budgets after T rounds, beside the bound; and what later rounds are worth."""
    levels = np.unique(np.rint(np.linspace(0.01, 1, MANY) * MICRO).astype(np.int64))
    heads = np.full(levels.size, PEOPLE["US"] // levels.size)
    everybody = Specification(epsilons=tuple(levels.tolist()), people=tuple(heads.tolist()))
    belief = Belief(assume="independent")
    auto = Contender(curve=AUTO, mechanism="auto", protects="value", assume="independent", by="auto")
    best = auto.tuned(COUNT, everybody).error.total / everybody.size
    for number in range(1, ROUNDS + 1):
        points = [_bound(number, everybody.size, 10, LEFT)]
        for curve, cuts in CUTS.items():
            made = partition(
                COUNT,
                everybody,
                belief,
                groups=10,
                cuts=cuts,
                ensemble="homogeneous",
                rounds=number,
            )
            paid = np.array([loss.micro_epsilon for loss in made.guarantee.losses.values()])
            points.append(Point(curve=curve, x=number, y=_left(levels, paid, heads), panel=LEFT, relation="value"))
            error = made.error.total / everybody.size
            points.append(Point(curve=curve, x=number, y=error, panel=SPREAD, relation="value"))
        points.append(Point(curve=AUTO, x=number, y=best, panel=SPREAD, by="auto", relation="value"))
        yield points + _floored(number)


def _left(levels: Integers, paid: Integers, heads: Integers) -> float:
    """Σ leftover² / Σ ε²."""
    return float(heads @ ((levels - paid) / MICRO) ** 2 / (heads @ (levels / MICRO) ** 2))


def _bound(number: int, people: int, groups: int, panel: str) -> Point:
    bound = (people / (people - 1 + groups**2)) ** number
    return Point(curve="bound of the theorem", x=number, y=bound, panel=panel, by="reference")


def _floored(number: int) -> list[Point]:
    """Nine people at .01 and three at 1: no group of four can have only the latter."""
    levels, heads = np.array([10_000, MICRO]), np.array([9, 3])
    runs = plan(levels, heads, "partition", cuts="privacy", parts=3, smallest=4)  # after it, three people are too few
    left = _left(levels, np.sum([run.charge for run in runs], axis=0), heads)
    return [
        _bound(number, 12, 3, FLOOR),
        Point(curve="privacy-aware", x=number, y=left, panel=FLOOR, relation="value"),
    ]


def _within(panel: str) -> Check:
    def check(points: Points) -> Finding:
        pairs = [
            (points.y("privacy-aware", t, panel), points.y("bound of the theorem", t, panel)) for t in points.xs(panel)
        ]
        shown = ", ".join(f"{left:.2g}" for left, _ in pairs)
        bounds = ", ".join(f"{bound:.4g}" for _, bound in pairs)
        worst = max(left / bound for left, bound in pairs[:1])
        return Finding(
            holds=all(left <= bound for left, bound in pairs),
            number=f"left after 1, 2, ... rounds: {shown}; bounds {bounds}; ratio {worst:.2f} after one",
        )

    return check


def _later_rounds(points: Points) -> Finding:
    errors = points.curve("privacy-aware", SPREAD)
    gain = 1 - min(errors) / errors[0]
    return Finding(
        holds=gain > 0.1,
        number=f"error {errors[0]:.3g} of n after one round, {min(errors):.3g} at best: {gain:.1%} less",
    )


def _optimum_at_mean(panel: str) -> Check:
    def check(points: Points) -> Finding:
        errors = {x: points.y(SAMPLE, x, panel) for x in SHARES}
        best = min(errors, key=lambda x: errors[x])
        number = f"{errors[1.0]:.2g} at the mean, best {errors[best]:.2g} at {best:g} times the mean"
        return Finding(holds=errors[1.0] <= 1.25 * errors[best], number=number)

    return check


def _sharp_rise(points: Points) -> Finding:
    low, mean = points.y(SAMPLE, 0.25, PANELS[0]), points.y(SAMPLE, 1.0, PANELS[0])
    return Finding(holds=low > 1.5 * mean, number=f"{low:.2g} at a quarter of the mean, {mean:.2g} at the mean")


def _near_optimum(points: Points) -> Finding:
    ratios = [points.y(UTILITY, 1.0, panel) / min(points.curve(SAMPLE, panel)) for panel in BUDGETS]
    return Finding(
        holds=max(ratios) <= 2, number=f"{min(ratios):.2f} to {max(ratios):.2f} times the best threshold's error"
    )


def _utility_better(points: Points) -> Finding:
    ratios = [points.y(UTILITY, 1.0, panel) / points.y(PRIVACY, 1.0, panel) for panel in BUDGETS]
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return Finding(holds=float(np.mean(ratios)) < 1, number=f"utility-based over privacy-aware: {shown}")


def _like_minimum(points: Points) -> Finding:
    pairs = [(points.y(SAMPLE, SHARES[0], panel), points.y(MINIMUM, SHARES[0], panel)) for panel in BUDGETS]
    shown = ", ".join(f"{a:.2g} and {b:.2g}" for a, b in pairs)
    return Finding(holds=all(0.8 < a / b < 1.25 for a, b in pairs), number=f"Sample and Minimum: {shown}")


def _added_up(points: Points) -> Finding:
    ratios = [points.y(ADDED, 1.0, panel) / points.y(MINIMUM, 1.0, panel) for panel in BUDGETS]
    return Finding(holds=max(ratios) < 0.9, number=f"{min(ratios):.2f} to {max(ratios):.2f} times Minimum's error")


def _count_figure(number: int, country: str) -> Figure:
    return Figure(
        id=f"partitioning-fig{number}",
        title=f"Partitioning Figure {number}: error of range counts, {country}",
        compute=range_counts(country),
        claims=(
            Claim(text="the best threshold is the mean budget", check=_optimum_at_mean(PANELS[0])),
            Claim(text="the same for ranges on 3 attributes", check=_optimum_at_mean(THREE)),
            Claim(text="Sample deteriorates sharply below the mean", check=_sharp_rise),
            Claim(
                text="utility-based partitioning is almost as good as the best threshold (within twice its error)",
                check=_near_optimum,
            ),
            Claim(text="utility-based is slightly better than privacy-aware", check=_utility_better),
            Claim(text="at the smallest threshold Sample equals Minimum", check=_like_minimum),
            Claim(text="partitioning beats Minimum also when the groups' counts are added up", check=_added_up),
        ),
        axes=Axes(
            x="threshold / mean budget (0: smallest)",
            y="mean relative frequency error",
            log_y=True,
            columns=2,
        ),
        data=f"{PEOPLE[country]:,} census-like people of {country} with 14 attributes, random ranges on all (or on 3)",
        runs=1_000,
        quick=150,
        steps=len(PANELS),
        seconds=80.0 if country == "US" else 50.0,
        accepts="census",
        note="A run is one random query. Budgets in 100 levels, rounded down. The paper leaves open how groups are "
        "combined; here each speaks for everybody with weight (n_i ε_i)², assuming preferences unrelated to values.",
    )


FIGURES = (
    _count_figure(2, "US"),
    _count_figure(3, "Brazil"),
    Figure(
        id="partitioning-rounds",
        title="Partitioning, T rounds: budget left over, and what later rounds are worth",
        compute=rounds,
        claims=(
            Claim(text="Σ leftover² ≤ (n/(n−1+k²))^T Σ ε²", check=_within(LEFT)),
            Claim(text="the same with a minimum group size", check=_within(FLOOR)),
            Claim(text="further rounds make counts notably better (10%)", check=_later_rounds),
        ),
        axes=Axes(x="rounds T", y="Σ leftover² / Σ ε²|error / n|Σ leftover² / Σ ε²", log_y=True, columns=3),
        data="budgets spread evenly over the range, in 10,000 levels",
        runs=0,
        quick=0,
        steps=ROUNDS,
        seconds=10.0,
        note="The bound holds but is very loose: it depends on n, the leftovers do not.",
    ),
)

"""[LXJJ17] Li, Xiong, Ji, Jiang: Partitioning-Based Mechanisms Under Personalized Differential Privacy: counts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from discretion.noise import Floats
from discretion.papers.claim import NEAR, SIGNIFICANT, Check
from discretion.papers.data import IN_LXJJ17, Census, citizens
from discretion.papers.figure import Axes, Claim, Effort, Figure, Point, Points, Result
from discretion.papers.trial import Contender, drawn_errors
from discretion.preference import MICRO, Integers, Specification
from discretion.statistics import Aggregate

PEOPLE = {"US": 370_000, "Brazil": 190_000}
SHARES = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0]  # thresholds over the mean budget; 0: the smallest
LEVELS = 100  # of the budgets: everybody's is rounded down to one of them
GROUPS, DRAWS = 5, 20  # groups of people; draws of noise and coins for each query
MINIMUM, SAMPLE = "Minimum", "Sample"
PRIVACY, UTILITY = f"privacy-aware, k = {GROUPS}", f"utility-based, k = {GROUPS}"
ADDED = "utility-based, counts added up"
COUNT = Aggregate(kind="count", protects="value")
AUTO = Contender(curve="auto, independent", mechanism="auto", protects="value", assume="independent", by="auto")


def uniform(low: float, high: float) -> Callable[[Any, int], Floats]:
    """Budgets from U(low, high)."""
    return lambda rng, people: np.asarray(rng.uniform(low, high, people))


def normal(rng: Any, people: int) -> Floats:
    """Budgets from N(.1, 1), only those in [.01, 1]: the reading whose mean is about .5, as the text says."""
    drawn = rng.normal(0.1, 1, 4 * people)
    return np.asarray(drawn[(drawn >= 0.01) & (drawn <= 1)][:people])


UNIFORM, NORMAL, WIDE = "U(.01, .1)", "N(.1, 1) in [.01, 1]", "U(.01, 1)"
BUDGETS = {UNIFORM: uniform(0.01, 0.1), NORMAL: normal, WIDE: uniform(0.01, 1)}
OF_THE_PAPER = [UNIFORM, NORMAL]  # the others are ours
THREE = f"{UNIFORM}, ranges on 3 attributes"
PANELS = [*BUDGETS, THREE]


def register(draw: Callable[[Any, int], Floats], people: int, rng: Any) -> tuple[Specification, Integers]:
    """Everybody's budget, rounded down to levels between the smallest and the largest."""
    budget = draw(rng, people)
    levels = np.linspace(float(budget.min()), float(budget.max()), LEVELS + 1)[:-1]
    return Specification.assign(levels[np.clip(np.searchsorted(levels, budget, side="right") - 1, 0, LEVELS - 1)])


def range_counts(country: str) -> Callable[[Effort], Iterator[list[Point]]]:
    """Mean |relative frequency error| of random range counts, against the sampling threshold."""

    def compute(effort: Effort) -> Iterator[list[Point]]:
        people = citizens(effort, "census", country, PEOPLE[country], IN_LXJJ17)
        for panel in PANELS:
            rng = effort.generator("partitioning", country, panel)
            specification, cohort = register(BUDGETS[UNIFORM if panel == THREE else panel], len(people), rng)
            queries = _queries(people, cohort, len(specification.epsilons), effort.runs, panel == THREE, rng)
            yield list(_panel_points(panel, specification, queries, rng))

    return compute


def _panel_points(panel: str, specification: Specification, queries: Integers, rng: Any) -> Iterator[Point]:
    """The error of every contender at every threshold; those without one are a horizontal line."""

    def errors(contender: Contender) -> Floats:  # of each query, over n: the mean over draws of noise and coins
        drawn = drawn_errors(contender.tuned(COUNT, specification), queries, DRAWS, rng)
        return np.asarray(np.abs(drawn).mean(axis=0) / specification.size)

    level = [(contender, errors(contender)) for contender in _level_contenders()]
    mean = float(specification.heads @ specification.micro) / specification.size / MICRO
    for share in SHARES:
        t = min(max(share * mean, specification.strictest / MICRO), specification.epsilons[-1] / MICRO)
        sampled = Contender(
            curve=SAMPLE,
            mechanism="sample",
            protects="value",
            assume="independent",
            options={"threshold": t, "rescaled": True},
        )
        for contender, found in [(sampled, errors(sampled)), *level]:
            yield Point.mean(found, x=share, panel=panel, **contender.legend)


def _level_contenders() -> list[Contender]:
    """Return what needs no threshold."""

    def cut(curve: str, cuts: str, ensemble: str) -> Contender:
        return Contender(
            curve=curve,
            mechanism="partition",
            protects="value",
            assume="independent",
            expect=(0.0, 0.0),  # weights (n_i ε_i)²; the paper says that they depend on n_i and ε_i
            options={"groups": GROUPS, "cuts": cuts, "ensemble": ensemble},
        )

    return [
        Contender(curve=MINIMUM, mechanism="minimum", protects="value"),
        cut(PRIVACY, "privacy", "homogeneous"),
        cut(UTILITY, "precision", "homogeneous"),
        cut(ADDED, "precision", "stratified"),
        AUTO,
        replace(AUTO, curve="auto, independent, expect (0, .001)", expect=(0.0, 0.001)),
    ]


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


def _optimum_at_mean(panel: str) -> Check:
    def check(points: Points) -> Result:
        errors = {x: points.y(SAMPLE, x, panel) for x in SHARES}
        best = min(errors, key=lambda x: errors[x])
        number = f"{errors[1.0]:.2g} at the mean, best {errors[best]:.2g} at {best:g} times the mean"
        return Result(holds=errors[1.0] <= (1 + NEAR) * errors[best], number=number)

    return check


def _sharp_rise(points: Points) -> Result:
    pairs = [(points.y(SAMPLE, 0.5, panel), points.y(SAMPLE, 1.0, panel)) for panel in OF_THE_PAPER]
    shown = ", ".join(f"{low:.2g} and {mean:.2g}" for low, mean in pairs)
    return Result(
        holds=all(mean <= SIGNIFICANT * low for low, mean in pairs), number=f"at half the mean and at the mean: {shown}"
    )


def _near_optimum(curve: str) -> Check:
    def check(points: Points) -> Result:
        ratios = [points.y(curve, 1.0, panel) / min(points.curve(SAMPLE, panel)) for panel in OF_THE_PAPER]
        shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        return Result(holds=max(ratios) <= 1 + NEAR, number=f"{shown} times the best threshold's error")

    return check


def _utility_better(points: Points) -> Result:
    ratios = [points.y(UTILITY, 1.0, panel) / points.y(PRIVACY, 1.0, panel) for panel in OF_THE_PAPER]
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return Result(
        holds=all(SIGNIFICANT <= ratio < 1 for ratio in ratios), number=f"utility-based over privacy-aware: {shown}"
    )


def _like_minimum(points: Points) -> Result:
    pairs = [(points.y(SAMPLE, SHARES[0], panel), points.y(MINIMUM, SHARES[0], panel)) for panel in OF_THE_PAPER]
    shown = ", ".join(f"{a:.2g} and {b:.2g}" for a, b in pairs)
    return Result(holds=all(abs(a / b - 1) <= NEAR for a, b in pairs), number=f"Sample and Minimum: {shown}")


def _added_up(points: Points) -> Result:
    ratios = [points.y(ADDED, 1.0, panel) / points.y(MINIMUM, 1.0, panel) for panel in BUDGETS]
    return Result(holds=max(ratios) < 1, number=f"{min(ratios):.2f} to {max(ratios):.2f} times Minimum's error")


MEAN_IS_BEST = (
    "The accuracy of sampling mechanism reaches optimal when the budget threshold attains the mean of all privacy "
    "budget values"
)
AT_THE_MEAN = "Sample has at most a tenth more error at the mean than at its best threshold"


def _count_figure(number: int, country: str) -> Figure:
    return Figure(
        id=f"partitioning-fig{number}",
        title=f"Partitioning Figure {number}: error of range counts, {country}",
        compute=range_counts(country),
        claims=(
            *(
                Claim(
                    text=f"{panel}: the best threshold is the mean budget",
                    check=_optimum_at_mean(panel),
                    rule=AT_THE_MEAN,
                    section="5.2",
                    quote=MEAN_IS_BEST,
                )
                for panel in OF_THE_PAPER
            ),
            Claim(
                text="Sample deteriorates sharply below the mean",
                check=_sharp_rise,
                rule="at half the mean it has at least 1.25 times the error it has at the mean",
                section="5.2",
                quote="the accuracy of sampling mechanism deteriorates sharply when threshold value is smaller than "
                "the mean privacy budget",
            ),
            *(
                Claim(
                    text=f"{curve} partitioning is almost as good as the best threshold",
                    check=_near_optimum(curve),
                    rule="at most a tenth more error",
                    section="5.2",
                    quote="perform almost the same with the optimal performance of sampling mechanism",
                )
                for curve in (PRIVACY, UTILITY)
            ),
            Claim(
                text="utility-based is slightly better than privacy-aware",
                check=_utility_better,
                rule="less error, by at most a fifth",
                section="5.2",
                quote="Utility-based partitioning has slightly better performance in the experiments",
            ),
            Claim(
                text="at the smallest threshold Sample equals Minimum",
                check=_like_minimum,
                rule="the same error within a tenth",
                section="5.2",
                quote="performs similarly with the privacy budget threshold being the smallest",
            ),
            *(
                Claim(
                    text=f"{panel}: the best threshold is the mean budget",
                    check=_optimum_at_mean(panel),
                    rule=AT_THE_MEAN,
                )
                for panel in (WIDE, THREE)
            ),
            Claim(
                text="partitioning beats Minimum also when the groups' counts are added up",
                check=_added_up,
                rule="less error than Minimum for all budgets",
            ),
        ),
        axes=Axes(x="threshold / mean budget (0: smallest)", y="mean relative frequency error", log_y=True, columns=2),
        data=f"{PEOPLE[country]:,} census-like people of {country} with {len(IN_LXJJ17)} attributes, "
        "random ranges on all (in one panel on 3)",
        runs=1_000,
        quick=150,
        steps=len(PANELS),
        seconds=80.0 if country == "US" else 50.0,
        accepts="census",
        note=f"A run is one random query. Budgets in {LEVELS} levels, rounded down. The paper takes a weighted sum of "
        "the groups' answers, with weights that depend on n_i and ε_i; here each group speaks for everybody with "
        "weight (n_i ε_i)², assuming preferences unrelated to values.",
    )


FIGURES = (_count_figure(2, "US"), _count_figure(3, "Brazil"))

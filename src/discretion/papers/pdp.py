"""[JYC15] Jorgensen, Yu, Cormode: Conservative or Liberal? Counts and medians: Example 1, Figures 1 and 2."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from discretion.column import bits
from discretion.papers.claim import best, compare, crossover, monotone, ratio, steady
from discretion.papers.figure import Axes, Claim, Effort, Figure, Finding, Point, Points
from discretion.papers.setting import Setting, Sweep, count_of, count_trial, median_of, median_trial
from discretion.papers.trial import Contender, Trial, squared_error
from discretion.preference import Specification

DENSITIES = [0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.54, 0.6]
STRICT = [0.01, 0.05, 0.08, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5]
MEDIUM = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
DEVIATIONS = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1_000.0]


SAMPLING = (
    Contender(curve="S", mechanism="sample", protects="presence", options={"threshold": "max"}),
    Contender(curve="S-avg", mechanism="sample", protects="presence", options={"threshold": "mean"}),
)
PAPER = (
    Contender(curve="M", mechanism="minimum", protects="presence"),
    Contender(curve="T", mechanism="threshold", protects="presence", options={"threshold": "max"}),
    *SAMPLING,
    Contender(curve="PE", mechanism="exponential", protects="value"),
)
AUTO = (
    Contender(curve="auto, presence", mechanism="auto", protects="presence", by="auto"),
    Contender(curve="auto, value", mechanism="auto", protects="value", by="auto"),
    Contender(curve="auto, value, independent", mechanism="auto", protects="value", assume="independent", by="auto"),
)
TUNED = Contender(curve="S, t tuned", mechanism="sample", protects="presence", by="auto")
COUNT = (*PAPER, Contender(curve="Alag.", mechanism="stretch", protects="presence"), *AUTO, TUNED)
MEDIAN = (*PAPER, *AUTO)
SIX = ["M", "T", "S", "S-avg", "PE", "Alag."]
PDP = ["S", "S-avg", "PE"]


THRESHOLDS = [0.1, 0.15, 0.2, 0.2083, 0.25, 0.3, 0.4, 0.415, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
OLD = "S, t tuned to selectivity .1"


def example(effort: Effort) -> Iterator[list[Point]]:
    """[JYC15] Example 1: 130 people at ε = .1, 70 at ε = 1, 13 and 7 of them ones; expected squared error."""
    cohort = np.repeat([0, 1], [130, 70])
    ones = np.isin(np.arange(200), [*range(13), *range(130, 137)])
    trial = Trial(
        specification=Specification(epsilons=(100_000, 1_000_000), people=(130, 70)),
        cohort=cohort,
        column=bits(ones),
        truth=20.0,
    )
    fixed = (*AUTO, replace(TUNED, curve=OLD, expect=(0.1, 0.1)))
    errors = {c.curve: squared_error(c.tuned(count_of(c), trial.specification), trial, None) for c in fixed}
    for t in THRESHOLDS:
        sampled = replace(SAMPLING[0], options={"threshold": t})
        error = squared_error(sampled.tuned(count_of(sampled), trial.specification), trial, None)
        yield [
            Point(curve="S", x=t, y=error, relation="presence"),
            *(Point(curve=c.curve, x=t, y=errors[c.curve], by=c.by, relation=c.protects) for c in fixed),
        ]


def _near(name: str, x: float, expected: float, tolerance: float) -> Callable[[Points], Finding]:
    def check(points: Points) -> Finding:
        value = points.y(name, x)
        return Finding(holds=abs(value - expected) <= tolerance, number=f"{value:.2f}")

    return check


def _needs_data(points: Points) -> Finding:
    """Whether the best t can only be found by looking at data: a t from public information must then be worse."""
    tuned, best_seen = points.y(OLD, 1.0), min(points.curve("S"))
    return Finding(
        holds=tuned > 1.02 * best_seen,
        number=f"t from head-counts and a guess of the selectivity gives {tuned:.2f}, the best t {best_seen:.2f}",
    )


def _lowest_pair(points: Points) -> Finding:
    """Whether S and S-avg are the two best of the six at low density."""
    best = {x: sorted(SIX, key=lambda name: points.y(name, x))[:2] for x in DENSITIES if x < 0.1}
    shown = "; ".join(f"δ = {x:g}: {', '.join(f'{n} {points.y(n, x):.1f}' for n in pair)}" for x, pair in best.items())
    return Finding(holds=all(set(pair) == {"S", "S-avg"} for pair in best.values()), number=f"the two best: {shown}")


def _exponentially(points: Points) -> Finding:
    """An exponential fall would make equal steps of ε_C give equal ratios."""
    first, second = (points.y("M", a) / points.y("M", b) for a, b in ((0.1, 0.2), (0.2, 0.3)))
    product = [points.y("M", x) * x for x in STRICT]
    return Finding(
        holds=abs(first / second - 1) < 0.1,
        number=f"from .1 to .2 by a factor {first:.2f}, from .2 to .3 by {second:.2f}; "
        f"error × ε_C stays {min(product):.3f} to {max(product):.3f}: inversely proportional",
    )


def _more_for_counts(points: Points) -> Finding:
    gains = {
        (name, panel): points.y(name, MEDIUM[0], panel) / points.y(name, MEDIUM[-1], panel)
        for name in ("S", "S-avg")
        for panel in ("", "count")
    }
    shown = ", ".join(
        f"{name}: count {gains[name, 'count']:.2f}, median {gains[name, '']:.2f}" for name in ("S", "S-avg")
    )
    return Finding(
        holds=all(gains[name, "count"] > gains[name, ""] for name in ("S", "S-avg")),
        number=f"error at ε_M = .05 over that at .5, {shown}",
    )


BITS = "1,000 people, δ of them ones, three groups of preferences as in Table I"
VALUES = "1,001 people, N(500, σ) rounded and clipped to 1..1000, three groups of preferences as in Table I"
MIXED = (
    "The paper compares mechanisms under different relations: PE protects values, the others presence. M uses ε_C and "
    "T and S use ε_L. Squared errors are computed exactly given data and coins, and averaged over the runs."
)


def _beside_counts(sweep: Sweep) -> Callable[[Effort], Iterator[list[Point]]]:
    """The same sweep with sampled counts in a second panel, because the paper compares the two."""
    counts = replace(sweep, base=Setting(), contenders=SAMPLING, question=count_of, people=count_trial, panel="count")

    def compute(effort: Effort) -> Iterator[list[Point]]:
        for medians, beside in zip(sweep(effort), counts(effort), strict=True):
            yield [*medians, *beside]

    return compute


def _count(letter: str, title: str, parameter: str, values: list[float], x: str, claims: tuple[Claim, ...]) -> Figure:
    base = Setting(medium=0.5) if parameter == "strict" else Setting()
    name = f"pdp-1{letter}"
    return Figure(
        id=name,
        title=f"PDP Figure 1({letter}): RMSE of a count against {title}",
        compute=Sweep(
            id=name,
            base=base,
            parameter=parameter,
            values=values,
            contenders=COUNT,
            question=count_of,
            people=count_trial,
        ),
        claims=claims,
        axes=Axes(x=x, y="RMSE of the count", log_y=True),
        data=BITS,
        runs=1_000,
        quick=30,
        steps=len(values),
        seconds=23.0 * len(values),
        note=MIXED,
    )


def _median(letter: str, title: str, parameter: str, values: list[float], x: str, claims: tuple[Claim, ...]) -> Figure:
    base = Setting(people=1_001, medium=0.5) if parameter == "strict" else Setting(people=1_001)
    name = f"pdp-2{letter}"
    sweep = partial(
        Sweep, id=name, parameter=parameter, values=values, contenders=MEDIAN, question=median_of, people=median_trial
    )
    return Figure(
        id=name,
        title=f"PDP Figure 2({letter}): RMSE of a median against {title}",
        compute=_beside_counts(sweep(base=base)) if letter == "d" else sweep(base=base),
        claims=claims,
        axes=Axes(x=x, y="RMSE of the median|RMSE of the count", log_y=True, columns=2),
        data=VALUES,
        runs=300,
        quick=15,
        steps=len(values),
        seconds=30.0 * len(values),
        note=MIXED,
    )


FIGURES = (
    Figure(
        id="pdp-example1",
        title="PDP Example 1: squared error of a sampled count against the threshold",
        compute=example,
        claims=(
            Claim(text="with t = 1 the squared error is about 152", check=_near("S", 1.0, 152, 1)),
            Claim(text="with t = .2 it is about 100", check=_near("S", 0.2, 100, 1)),
            Claim(text="tuning t needs old data or a part of the budget", check=_needs_data),
        ),
        axes=Axes(x="threshold t", y="expected squared error"),
        data="200 people, 65% at ε = .1 and 35% at ε = 1, a tenth of each are ones",
        runs=0,
        quick=0,
        steps=len(THRESHOLDS),
        seconds=0.5,
        note="Noise is discrete Laplace, whose variance is slightly below 2/t².",
    ),
    _count(
        "a",
        "density",
        "density",
        DENSITIES,
        "density δ (share of ones)",
        (
            Claim(text="for δ < .1, S and S-avg have the lowest errors", check=_lowest_pair),
            Claim(text="for δ < .1, S-avg is the best of the six", check=best("S-avg", SIX, lambda x: x < 0.1)),
            Claim(text="for δ > .1, PE is the best of the six", check=best("PE", SIX, lambda x: x > 0.1)),
            Claim(
                text="for δ > .1, PE beats sampling whatever the threshold",
                check=best("PE", ["S", "S-avg", "S, t tuned"], lambda x: x > 0.1),
            ),
            Claim(
                text="at δ = .3, PE has less than half the error of the next best",
                check=lambda points: compare(
                    points.y("PE", 0.3) * 2,
                    min(points.y(n, 0.3) for n in SIX if n != "PE"),
                    "twice PE's is {:.3g}, the next best {:.3g}",
                ),
            ),
            Claim(text="Alag. has slightly lower error than S", check=ratio("Alag.", "S", 0.15, 1.0, 0.8)),
            Claim(text="PE significantly outperforms Alag.", check=ratio("PE", "Alag.", 0.15, 0.7)),
            Claim(
                text="sampling exceeds M as density grows",
                check=lambda points: compare(points.y("M", 0.5), points.y("S", 0.5), "at .5: M {:.3g}, S {:.3g}"),
            ),
            Claim(text="PE is generally unaffected by density", check=steady("PE", 1.5)),
        ),
    ),
    _count(
        "b",
        "the share of conservative people",
        "conservative",
        SHARES,
        "share of conservative people f_C",
        (
            Claim(text="S, S-avg and PE do better the fewer people are conservative", check=monotone(PDP, rising=True)),
            Claim(text="M does not depend on f_C", check=steady("M", 1.01)),
        ),
    ),
    _count(
        "c",
        "the strictest preference (ε_M = .5)",
        "strict",
        STRICT,
        "strictest preference ε_C",
        (
            Claim(text="M's error falls exponentially with ε_C", check=_exponentially),
            Claim(text="M becomes the best choice at ε_C of about .08", check=crossover("M", SIX[1:], 0.08, 0.015)),
            Claim(
                text="PDP gains less than M from a weaker ε_C",
                check=lambda points: compare(
                    points.y("S", 0.01) / points.y("S", 0.5),
                    points.y("M", 0.01) / points.y("M", 0.5),
                    "from .01 to .5, S by a factor {:.2f}, M by {:.3g}",
                ),
            ),
        ),
    ),
    _count(
        "d",
        "the medium preference",
        "medium",
        MEDIUM,
        "medium preference ε_M",
        (
            Claim(text="S, S-avg and PE improve with ε_M", check=monotone(PDP, rising=False)),
            Claim(
                text="PE gains greatly (at least twice)",
                check=lambda points: compare(
                    2 * points.y("PE", 0.5),
                    points.y("PE", 0.05),
                    "twice its error at .5 is {:.3g}, at .05 it is {:.3g}",
                ),
            ),
        ),
    ),
    _median(
        "a",
        "the spread of the data",
        "deviation",
        DEVIATIONS,
        "standard deviation σ",
        (
            Claim(text="the errors of all approaches grow with σ", check=monotone([*SIX[:5]], rising=True)),
            Claim(text="the errors of T, S, S-avg and PE grow with σ", check=monotone(SIX[1:5], rising=True)),
            Claim(text="S considerably reduces the error of M and T", check=ratio("S", "T", 200.0, 0.7)),
            Claim(text="PE significantly outperforms M", check=ratio("PE", "M", 200.0, 0.5)),
            Claim(text="PE is no better than T", check=ratio("PE", "T", 200.0, 1.2, 0.85)),
            Claim(text="S-avg is only slightly better than S", check=ratio("S-avg", "S", 200.0, 1.0, 0.6)),
        ),
    ),
    _median(
        "b",
        "the share of conservative people",
        "conservative",
        SHARES,
        "share of conservative people f_C",
        (
            Claim(text="S, S-avg and PE do better the fewer people are conservative", check=monotone(PDP, rising=True)),
            Claim(
                text="T rises sharply at f_C = .6, where 3% of the people are left",
                check=lambda points: compare(
                    1.5 * points.y("T", 0.54),
                    points.y("T", 0.6),
                    "1.5 times its error at .54 is {:.3g}, at .6 it is {:.3g}",
                ),
            ),
            Claim(text="M does not depend on f_C", check=steady("M", 1.02)),
        ),
    ),
    _median(
        "c",
        "the strictest preference (ε_M = .5)",
        "strict",
        STRICT,
        "strictest preference ε_C",
        (
            Claim(
                text="S-avg is the best choice until ε_C is about .25",
                check=best("S-avg", SIX[:5], lambda x: x < 0.25),
            ),
            Claim(
                text="beyond that the benefits of PDP diminish",
                check=lambda points: compare(
                    min(points.y("M", 0.4), points.y("PE", 0.4)),
                    points.y("S-avg", 0.4),
                    "at .4: M or PE {:.3g}, S-avg {:.3g}",
                ),
            ),
        ),
    ),
    _median(
        "d",
        "the medium preference",
        "medium",
        MEDIUM,
        "medium preference ε_M",
        (
            Claim(text="S, S-avg and PE improve with ε_M", check=monotone(PDP, rising=False)),
            Claim(
                text="PE gains greatly (at least twice)",
                check=lambda points: compare(
                    2 * points.y("PE", 0.5),
                    points.y("PE", 0.05),
                    "twice its error at .5 is {:.3g}, at .05 it is {:.3g}",
                ),
            ),
            Claim(text="sampling gains much more for counts than for medians", check=_more_for_counts),
        ),
    ),
)

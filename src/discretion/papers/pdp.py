"""[JYC15] Jorgensen, Yu, Cormode: Conservative or Liberal? Counts and medians: Example 1, Figures 1 and 2."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from discretion.column import bits
from discretion.papers.claim import best, compare, crossover, monotone, ratio, steady
from discretion.papers.figure import Axes, Claim, Effort, Figure, Finding, Point, Points
from discretion.papers.setting import (
    CONSERVATIVE,
    MEDIUM,
    STRICT,
    Parameter,
    Question,
    Setting,
    Sweep,
    count_of,
    count_trial,
    median_of,
    median_trial,
)
from discretion.papers.trial import Contender, Trial, squared_error
from discretion.preference import Specification

DENSITY = Parameter(
    name="density",
    values=[0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5],
    title="density",
    axis="density δ (share of ones)",
)
DEVIATION = Parameter(
    name="deviation",
    values=[100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1_000.0],
    title="the spread of the data",
    axis="standard deviation σ",
)
THRESHOLDS = [0.1, 0.15, 0.2, 0.2083, 0.25, 0.3, 0.4, 0.415, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]

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
STRETCHED = Contender(curve="Alag.", mechanism="stretch", protects="presence")
TUNED = Contender(curve="S, t tuned", mechanism="sample", protects="presence", by="auto")
TUNED_TO_OLD_DATA = replace(TUNED, curve="S, t tuned to selectivity .1", expect=(0.1, 0.1))
COUNT = Question(base=Setting(), trial=count_trial, aggregate=count_of, contenders=(*PAPER, STRETCHED, *AUTO, TUNED))
MEDIAN = Question(base=Setting(people=1_001), trial=median_trial, aggregate=median_of, contenders=(*PAPER, *AUTO))
FIVE = [contender.curve for contender in PAPER]
SIX = [*FIVE, STRETCHED.curve]
PERSONALIZED = ["S", "S-avg", "PE"]
MIXED = (
    "The paper compares mechanisms under different relations: PE protects values, the others presence. M uses ε_C and "
    "T and S use ε_L. Squared errors are computed exactly given data and coins, and averaged over the runs."
)


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
    fixed = (*AUTO, TUNED_TO_OLD_DATA)
    errors = {c.curve: squared_error(c.tuned(count_of(c), trial.specification), trial, None) for c in fixed}
    for t in THRESHOLDS:
        sampled = replace(SAMPLING[0], options={"threshold": t})
        error = squared_error(sampled.tuned(count_of(sampled), trial.specification), trial, None)
        yield [
            Point(x=t, y=error, **sampled.legend),
            *(Point(x=t, y=errors[c.curve], **c.legend) for c in fixed),
        ]


def _near(name: str, x: float, expected: float, tolerance: float) -> Callable[[Points], Finding]:
    def check(points: Points) -> Finding:
        value = points.y(name, x)
        return Finding(holds=abs(value - expected) <= tolerance, number=f"{value:.2f}")

    return check


def _needs_data(points: Points) -> Finding:
    """Whether the best t can only be found by looking at data: a t from public information must then be worse."""
    tuned, best_seen = points.y(TUNED_TO_OLD_DATA.curve, 1.0), min(points.curve("S"))
    return Finding(
        holds=tuned > 1.02 * best_seen,
        number=f"t from head-counts and a guess of the selectivity gives {tuned:.2f}, the best t {best_seen:.2f}",
    )


def _lowest_pair(points: Points) -> Finding:
    """Whether S and S-avg are the two best of the six at low density."""
    lowest = {x: sorted(SIX, key=lambda name: points.y(name, x))[:2] for x in DENSITY.values if x < 0.1}
    shown = "; ".join(
        f"δ = {x:g}: {', '.join(f'{name} {points.y(name, x):.1f}' for name in pair)}" for x, pair in lowest.items()
    )
    return Finding(holds=all(set(pair) == {"S", "S-avg"} for pair in lowest.values()), number=f"the two best: {shown}")


def _exponentially(points: Points) -> Finding:
    """An exponential fall would make equal steps of ε_C give equal ratios."""
    first, second = (points.y("M", a) / points.y("M", b) for a, b in ((0.1, 0.2), (0.2, 0.3)))
    product = [points.y("M", x) * x for x in STRICT.values]
    return Finding(
        holds=abs(first / second - 1) < 0.1,
        number=f"from .1 to .2 by a factor {first:.2f}, from .2 to .3 by {second:.2f}; "
        f"error × ε_C stays {min(product):.3f} to {max(product):.3f}: inversely proportional",
    )


def _more_for_counts(points: Points) -> Finding:
    """Whether sampling gains more from the largest ε_M for counts than for medians."""
    low, high = MEDIUM.values[0], MEDIUM.values[-1]
    gains = {
        name: [points.y(name, low, panel) / points.y(name, high, panel) for panel in ("count", "")]
        for name in ("S", "S-avg")
    }
    shown = ", ".join(f"{name}: count {count:.2f}, median {median:.2f}" for name, (count, median) in gains.items())
    return Finding(
        holds=all(count > median for count, median in gains.values()),
        number=f"error at ε_M = .05 over that at .5, {shown}",
    )


FEWER_CONSERVATIVE = Claim(
    text="S, S-avg and PE do better the fewer people are conservative", check=monotone(PERSONALIZED, rising=True)
)
LARGER_MEDIUM = (
    Claim(text="S, S-avg and PE improve with ε_M", check=monotone(PERSONALIZED, rising=False)),
    Claim(
        text="PE gains greatly (at least twice)",
        check=lambda points: compare(
            2 * points.y("PE", 0.5), points.y("PE", 0.05), "twice its error at .5 is {:.3g}, at .05 it is {:.3g}"
        ),
    ),
)


def _beside_counts(medians: Sweep) -> Callable[[Effort], Iterator[list[Point]]]:
    """The same sweep with sampled counts in a second panel, because the paper compares the two."""
    counts = replace(medians, question=replace(COUNT, contenders=SAMPLING), panel="count")
    return lambda effort: (m + c for m, c in zip(medians(effort), counts(effort), strict=True))


def _count(letter: str, parameter: Parameter, *claims: Claim) -> Figure:
    name = f"pdp-1{letter}"
    return Figure(
        id=name,
        title=f"PDP Figure 1({letter}): RMSE of a count against {parameter.title}",
        compute=Sweep(id=name, question=COUNT, parameter=parameter),
        claims=claims,
        axes=Axes(x=parameter.axis, y="RMSE of the count", log_y=True),
        data="1,000 people, δ of them ones, three groups of preferences as in Table I",
        runs=1_000,
        quick=30,
        steps=len(parameter.values),
        seconds=23.0 * len(parameter.values),
        note=MIXED,
    )


def _median(letter: str, parameter: Parameter, *claims: Claim) -> Figure:
    name = f"pdp-2{letter}"
    sweep = Sweep(id=name, question=MEDIAN, parameter=parameter)
    return Figure(
        id=name,
        title=f"PDP Figure 2({letter}): RMSE of a median against {parameter.title}",
        compute=_beside_counts(sweep) if parameter is MEDIUM else sweep,
        claims=claims,
        axes=Axes(x=parameter.axis, y="RMSE of the median|RMSE of the count", log_y=True, columns=2),
        data="1,001 people, N(500, σ) rounded and clipped to 1..1000, three groups of preferences as in Table I",
        runs=300,
        quick=15,
        steps=len(parameter.values),
        seconds=30.0 * len(parameter.values),
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
        DENSITY,
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
    _count(
        "b",
        CONSERVATIVE,
        FEWER_CONSERVATIVE,
        Claim(text="M does not depend on f_C", check=steady("M", 1.01)),
    ),
    _count(
        "c",
        STRICT,
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
    _count("d", MEDIUM, *LARGER_MEDIUM),
    _median(
        "a",
        DEVIATION,
        Claim(text="the errors of all approaches grow with σ", check=monotone(FIVE, rising=True)),
        Claim(text="the errors of T, S, S-avg and PE grow with σ", check=monotone(FIVE[1:], rising=True)),
        Claim(text="S considerably reduces the error of M and T", check=ratio("S", "T", 200.0, 0.7)),
        Claim(text="PE significantly outperforms M", check=ratio("PE", "M", 200.0, 0.5)),
        Claim(text="PE is no better than T", check=ratio("PE", "T", 200.0, 1.2, 0.85)),
        Claim(text="S-avg is only slightly better than S", check=ratio("S-avg", "S", 200.0, 1.0, 0.6)),
    ),
    _median(
        "b",
        CONSERVATIVE,
        FEWER_CONSERVATIVE,
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
    _median(
        "c",
        STRICT,
        Claim(
            text="S-avg is the best choice until ε_C is about .25",
            check=best("S-avg", FIVE, lambda x: x < 0.25),
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
    _median(
        "d",
        MEDIUM,
        *LARGER_MEDIUM,
        Claim(text="sampling gains much more for counts than for medians", check=_more_for_counts),
    ),
)

"""[JYC15] Figure 2: medians under personal budgets."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from discretion.papers.claim import NEAR, SIGNIFICANT, Check, best, compare, everywhere, monotone, ratio
from discretion.papers.figure import Axes, Claim, Effort, Figure, Point, Points, Result
from discretion.papers.pdp import (
    AUTO,
    COUNT,
    DEVIATION,
    FEWER_CONSERVATIVE,
    FIVE,
    GRADUAL,
    LARGER_MEDIUM,
    MIXED,
    NO_FC,
    PAPER,
    SAMPLING,
)
from discretion.papers.setting import (
    CONSERVATIVE,
    KEY,
    MEDIUM,
    STRICT,
    Experiment,
    Parameter,
    Setting,
    Sweep,
    median_of,
    median_trial,
)

MEDIAN = Experiment(
    base=Setting(people=1_001), trial=median_trial, aggregate=median_of, contenders=(*PAPER, *AUTO, GRADUAL)
)


def _more_for_counts(points: Points) -> Result:
    """Decide whether sampling gains more from the largest ε_M for counts than for medians."""
    low, high = MEDIUM.values[0], MEDIUM.values[-1]
    gains = {
        name: [points.y(name, low, panel) / points.y(name, high, panel) for panel in ("count", "")]
        for name in ("S", "S-avg")
    }
    shown = ", ".join(f"{name}: count {count:.2f}, median {median:.2f}" for name, (count, median) in gains.items())
    return Result(
        holds=all(count > median for count, median in gains.values()),
        number=f"error at ε_M = .05 over that at .5, {shown}",
    )


def _below_baselines(name: str) -> Check:
    """Decide whether the curve has at most four fifths of the better baseline's error everywhere."""

    def check(points: Points) -> Result:
        found = {x: points.y(name, x) / min(points.y("M", x), points.y("T", x)) for x in points.xs("")}
        shown = f"{name} over the better of M and T: {min(found.values()):.3g} to {max(found.values()):.3g}"
        return everywhere(((f"{x:g}", share <= SIGNIFICANT) for x, share in found.items()), shown)

    return check


def _no_longer_best(points: Points) -> Result:
    places = [x for x in STRICT.values if x >= 0.3]
    others = {x: min(points.y(name, x) for name in FIVE if name != "S-avg") for x in places}
    shown = ", ".join(f"at {x:g} {points.y('S-avg', x):.3g}, the best other {others[x]:.3g}" for x in places)
    return Result(holds=all(points.y("S-avg", x) >= others[x] for x in places), number=f"S-avg {shown}")


def _beside_counts(medians: Sweep) -> Callable[[Effort], Iterator[list[Point]]]:
    """Return the same sweep with sampled counts in a second panel, because the paper compares the two."""
    counts = replace(medians, question=replace(COUNT, contenders=SAMPLING), panel="count")
    return lambda effort: (m + c for m, c in zip(medians(effort), counts(effort), strict=True))


def _median(letter: str, parameter: Parameter, *claims: Claim) -> Figure:
    name = f"pdp-2{letter}"
    sweep = Sweep(id=name, question=MEDIAN, parameter=parameter)
    return Figure(
        id=name,
        title=f"PDP Figure 2({letter}): RMSE of a median against {parameter.title}",
        compute=_beside_counts(sweep) if parameter is MEDIUM else sweep,
        claims=claims,
        axes=Axes(x=parameter.axis, y="RMSE of the median|RMSE of the count", log_y=True, columns=2, key=KEY),
        data="1,001 people, N(500, σ) rounded and clipped to 1..1000, three groups of preferences as in Table I",
        runs=300,
        quick=15,
        steps=len(parameter.values),
        seconds=30.0 * len(parameter.values),
        note=f"{MIXED} Medians are not pooled: `gradual` answers them as with nothing assumed.",
    )


FIGURES = (
    _median(
        "a",
        DEVIATION,
        Claim(
            text="the errors of all approaches grow with σ",
            check=monotone(FIVE, rising=True),
            rule="no step goes the other way by more than four standard errors",
            section="V-A",
            quote="as σ increases, and the data become more spread out, the errors of all approaches increase",
        ),
        *(
            Claim(
                text=f"{name} considerably reduces the error of M and T",
                check=_below_baselines(name),
                rule="at most four fifths of the better baseline's error, at every σ",
                section="V-A",
                quote="S and S-avg offer a considerable reduction in error, relative to the baseline approaches",
            )
            for name in ("S", "S-avg")
        ),
        Claim(
            text="PE significantly outperforms M",
            check=ratio("PE", "M", SIGNIFICANT),
            rule="at most four fifths of its error, at every σ",
            section="V-A",
            quote="Although PE significantly outperforms M",
        ),
        Claim(
            text="PE is no better than T",
            check=ratio("PE", "T", float("inf"), 1 - NEAR),
            rule="nowhere better by more than a tenth",
            section="V-A",
            quote="it appears to be no better than T in this scenario",
        ),
        Claim(
            text="S-avg is only slightly better than S",
            check=ratio("S-avg", "S", 1.0, SIGNIFICANT),
            rule="better, by at most a fifth, at every σ",
            section="V-A",
            quote="S-avg offers only a slight improvement over using the default threshold",
        ),
    ),
    _median(
        "b",
        CONSERVATIVE,
        FEWER_CONSERVATIVE,
        Claim(
            text="T rises sharply at f_C = .6, where 3% of the people are left",
            check=lambda points: compare(
                points.y("T", 0.54) / SIGNIFICANT,
                points.y("T", 0.6),
                "1.25 times its error at .54 is {:.3g}, at .6 {:.3g}",
            ),
            rule="its error at .6 is at least 1.25 times that at .54",
            section="V-A",
            quote="The sharp increase in the error of T when fC = 0.6",
        ),
        NO_FC,
    ),
    _median(
        "c",
        STRICT,
        Claim(
            text="S-avg is the best choice until ε_C is about .25",
            check=best("S-avg", FIVE, lambda x: x < 0.25 * (1 - NEAR)),
            rule="the best of the five at every ε_C up to a tenth below .25",
            section="V-A",
            quote="S-avg remains the best choice until εC is larger than about 0.25",
        ),
        Claim(
            text="beyond that it is not",
            check=_no_longer_best,
            rule="another of the five is at least as good at every ε_C from .3 on",
            section="V-A",
            quote="at which point the benefits of using PDP diminish",
        ),
    ),
    _median(
        "d",
        MEDIUM,
        *LARGER_MEDIUM,
        Claim(
            text="sampling gains more for counts than for medians",
            check=_more_for_counts,
            rule="the error falls by the larger factor for counts, for S and for S-avg",
            section="V-A",
            quote="the error reduction was much more pronounced for count than for median",
        ),
    ),
)

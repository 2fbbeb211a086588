"""[AGK16] Alaggan, Gambs, Kermarrec: Heterogeneous Differential Privacy. Figures 1 and 2: all people alike."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from discretion.papers.claim import NEAR, NOISE, Check
from discretion.papers.figure import Claim, Effort, Point, Points, Result
from discretion.papers.networks import (
    BASELINE,
    HDP,
    OURS,
    RANDOM,
    Rule,
    figure,
    mean,
    networks,
    on,
    people,
    point,
    recalls,
    repeats,
)
from discretion.social.dataset import NETWORKS
from discretion.social.weight import slices

LOWEST = [0.0, 0.5, 0.9]  # the smallest weight, u
SLICES = [2, 3, 4, 5, 6, 7, 8, 9, 10]  # n; the paper starts at 1, where its formula divides by 0
FEW_SLICES = [2, 5, 10]  # of a quick run
RULES: dict[str, Rule] = {HDP: "paper", OURS: "min"}
EFFORT: dict[str, Any] = {  # both figures are drawn from one computation
    "steps": len(NETWORKS) * len(LOWEST),
    "seconds": 600.0,
    "thinned": len(FEW_SLICES) / len(SLICES),
    "family": "slices",
}


def _slices(effort: Effort) -> list[int]:
    return FEW_SLICES if effort.quick else SLICES


@lru_cache(maxsize=4_096)
def _sliced(effort: Effort, name: str, lowest: float, count: int, run: int, rule: Rule) -> float:
    """Return the mean recall when every item draws one of `count` weights."""
    rng = effort.generator("hdp", name, lowest, count, run, rule)
    profiles = people(name, effort.data, effort.seed)
    found, _ = recalls(profiles.sliced(slices(lowest, 1, count), rng), rule, rng)
    return mean(found)


@lru_cache(maxsize=256)
def _baseline(effort: Effort, name: str, run: int) -> tuple[float, float]:
    """The same without privacy."""
    found, chance = recalls(people(name, effort.data, effort.seed), "exact", effort.generator("hdp", name, run))
    return mean(found), mean(chance)


def by_lowest(effort: Effort) -> Iterator[list[Point]]:
    """Figure 1: recall against the smallest weight, averaged over slices."""
    for name in networks(effort):
        plain = [_baseline(effort, name, run) for run in repeats(effort, name)]
        for lowest in LOWEST:
            points = []
            for curve, rule in RULES.items():
                rows = [
                    [_sliced(effort, name, lowest, count, run, rule) for count in _slices(effort)]
                    for run in repeats(effort, name)
                ]
                points.append(point(curve, lowest, np.mean(rows, axis=1), name))
            points.append(point(BASELINE, lowest, [found for found, _ in plain], name))
            points.append(point(RANDOM, lowest, [chance for _, chance in plain], name))
            yield points


def by_slices(effort: Effort) -> Iterator[list[Point]]:
    """Figure 2: recall against the number of slices."""
    for name in networks(effort):
        for lowest in LOWEST:
            yield [
                point(
                    f"{curve}, u = {lowest:g}",
                    count,
                    [_sliced(effort, name, lowest, count, run, rule) for run in repeats(effort, name)],
                    name,
                )
                for curve, rule in RULES.items()
                for count in _slices(effort)
            ]


def _near_baseline(name: str) -> Check:
    def check(points: Points) -> Result:
        low, high = points.y(HDP, 0.5, name), points.y(HDP, 0.9, name)
        top, bottom = points.y(BASELINE, 0.5, name), points.y(RANDOM, 0.5, name)
        return Result(
            holds=abs(low - high) <= NEAR * (top - bottom) and min(low, high) > (top + bottom) / 2,
            number=f"recall {low:.4f} at u = .5, {high:.4f} at .9, Baseline {top:.4f}, Random {bottom:.4f}",
        )

    return on(name, check)


def _towards_random(name: str) -> Check:
    def check(points: Points) -> Result:
        none, half, most = (points.y(HDP, u, name) for u in LOWEST)
        return Result(
            holds=half - none > abs(most - half),
            number=f"recall {none:.4f} at u = 0, {half:.4f} at .5, {most:.4f} at .9",
        )

    return on(name, check)


def _effect_of_slices(points: Points, name: str, lowest: float) -> tuple[float, float]:
    """Return the range of recall over the number of slices, and what chance alone may make of it."""
    curve = [p for p in points.rows if p.curve == f"{HDP}, u = {lowest:g}" and p.panel == name]
    return max(p.y for p in curve) - min(p.y for p in curve), NOISE * float(np.mean([p.spread for p in curve]))


def _slices_matter(name: str, matter: bool, lowest: list[float]) -> Check:
    def check(points: Points) -> Result:
        found = {u: _effect_of_slices(points, name, u) for u in lowest}
        shown = ", ".join(f"{effect:.4f} at u = {u:g}" for u, (effect, _) in found.items())
        small = all(effect <= 0.01 + chance for effect, chance in found.values())
        return Result(holds=small != matter, number=f"recall varies by {shown} over the slices")

    return on(name, check)


NO_DIFFERENCE = "there is not much difference in terms of utility between the situations in which u = 0.5 and u = 0.9"
QUOTE = "the largest difference is obtained when u is set to 0"
SLICES_SAY = "varying the number of slices has almost no effect on the utility achieved by u ∈ {0.5, 0.9}"
SLICES_MATTER = "but has significant impact on the situation in which u = 0"
FIGURES = (
    figure(
        1,
        "recall against the smallest weight",
        by_lowest,
        "smallest weight u",
        (
            *(
                Claim(
                    text=f"{name}: u = .5 and .9 hardly differ and are near Baseline",
                    check=_near_baseline(name),
                    rule="they differ by at most a tenth of the way from Random to Baseline, and both lie in its upper "
                    "half",
                    section="4.2",
                    quote=NO_DIFFERENCE,
                )
                for name in ("Survey", "Digg")
            ),
            *(
                Claim(
                    text=f"{name}: the largest difference is at u = 0, towards Random",
                    check=_towards_random(name),
                    rule="recall falls more from u = .5 to 0 than it changes from .9 to .5",
                    section="4.2",
                    quote=QUOTE,
                )
                for name in ("Survey", "Digg")
            ),
        ),
        **EFFORT,
    ),
    figure(
        2,
        "recall against the number of slices",
        by_slices,
        "number of slices",
        (
            *(
                Claim(
                    text=f"{name}: slices have almost no effect for u = .5 and .9",
                    check=_slices_matter(name, False, [0.5, 0.9]),
                    rule="recall varies by at most .01 and four standard errors over the slices",
                    section="4.2",
                    quote=SLICES_SAY,
                )
                for name in ("Survey", "Digg")
            ),
            *(
                Claim(
                    text=f"{name}: slices matter significantly for u = 0",
                    check=_slices_matter(name, True, [0.0]),
                    rule="recall varies by more than .01 and four standard errors over the slices",
                    section="4.2",
                    quote=SLICES_MATTER,
                )
                for name in ("Survey", "Digg")
            ),
        ),
        **EFFORT,
    ),
)

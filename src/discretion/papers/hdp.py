"""[AGK16] Alaggan, Gambs, Kermarrec: Heterogeneous Differential Privacy. Figures 1 and 2: all people alike."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from discretion.papers.claim import Check
from discretion.papers.figure import Claim, Effort, Finding, Point, Points
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
SLICES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
FEW_SLICES = [1, 5, 10]  # of a quick run
RULES: dict[str, Rule] = {HDP: "paper", OURS: "min"}
EFFORT: dict[str, Any] = {  # both figures are drawn from one computation
    "steps": len(NETWORKS) * len(LOWEST),
    "seconds": 470.0,
    "thinned": len(FEW_SLICES) / len(SLICES),
    "family": "slices",
}


def _slices(effort: Effort) -> list[int]:
    return FEW_SLICES if effort.quick else SLICES


@lru_cache(maxsize=4_096)
def _sliced(effort: Effort, name: str, lowest: float, count: int, run: int, rule: Rule) -> float:
    """Mean recall when every item draws one of `count` + 1 weights."""
    rng = effort.generator("hdp", name, lowest, count, run, rule)
    profiles = people(name, effort.data, effort.seed)
    found, _ = recalls(profiles.sliced(slices(lowest, 1, count + 1), rng), rule, rng)
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
    def check(points: Points) -> Finding:
        low, high = points.y(HDP, 0.5, name), points.y(HDP, 0.9, name)
        top, bottom = points.y(BASELINE, 0.5, name), points.y(RANDOM, 0.5, name)
        return Finding(
            holds=abs(low - high) < 0.01 and top - low < (top - bottom) / 2,
            number=f"recall {low:.4f} at u = .5, {high:.4f} at .9, Baseline {top:.4f}, Random {bottom:.4f}",
        )

    return on(name, check)


def _towards_random(name: str) -> Check:
    def check(points: Points) -> Finding:
        values = [points.y(HDP, u, name) for u in LOWEST]
        return Finding(
            holds=values[0] < min(values[1:]), number=f"recall {values[0]:.4f} at u = 0, {values[1]:.4f} at .5"
        )

    return on(name, check)


def _effect_of_slices(points: Points, name: str, lowest: float) -> tuple[float, float]:
    """Range of recall over the number of slices, and what chance alone may make of it."""
    curve = [p for p in points.rows if p.curve == f"{HDP}, u = {lowest:g}" and p.panel == name]
    return max(p.y for p in curve) - min(p.y for p in curve), 4 * float(np.mean([p.spread for p in curve]))


def _slices_matter(name: str, matter: bool, lowest: list[float]) -> Check:
    def check(points: Points) -> Finding:
        found = {u: _effect_of_slices(points, name, u) for u in lowest}
        shown = ", ".join(f"{effect:.4f} at u = {u:g}" for u, (effect, _) in found.items())
        small = all(effect <= 0.01 + chance for effect, chance in found.values())
        return Finding(holds=small != matter, number=f"recall varies by {shown} over the slices")

    return on(name, check)


FIGURES = (
    figure(
        1,
        "recall against the smallest weight",
        by_lowest,
        "smallest weight u",
        (
            *(
                Claim(text=f"{name}: u = .5 and .9 hardly differ and are near Baseline", check=_near_baseline(name))
                for name in ("Survey", "Digg")
            ),
            *(
                Claim(text=f"{name}: the largest difference is at u = 0, towards Random", check=_towards_random(name))
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
                )
                for name in ("Survey", "Digg")
            ),
            *(
                Claim(text=f"{name}: slices matter significantly for u = 0", check=_slices_matter(name, True, [0.0]))
                for name in ("Survey", "Digg")
            ),
        ),
        **EFFORT,
    ),
)

"""[LXJJ17] Figures 4 and 5: the support vector machine under personal budgets."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from discretion import learn
from discretion.noise import Floats
from discretion.papers.data import COUNTRIES, IN_LXJJ17, Census, citizens
from discretion.papers.figure import Axes, By, Claim, Effort, Figure, Finding, Point, Points
from discretion.papers.partitioning import BUDGETS, NORMAL, UNIFORM

PEOPLE = 12_500  # "small", says the paper; a fifth is held out
THRESHOLDS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0]
PANELS = [UNIFORM, NORMAL]
SAMPLE, PRIVACY, UTILITY, WEIGHTED, PLAIN = "Sample", "privacy-aware", "utility-based", "weighted", "non private"
LEVEL: dict[str, tuple[By, dict[str, Any]]] = {  # models without a threshold: a horizontal line
    "Minimum": ("paper", {"method": "objective", "mechanism": "minimum"}),
    PRIVACY: ("paper", {"method": "objective", "mechanism": "partition", "options": {"cuts": "privacy", "parts": 5}}),
    UTILITY: ("paper", {"method": "objective", "mechanism": "partition", "options": {"cuts": "utility", "parts": 5}}),
    WEIGHTED: ("auto", {"method": "weighted"}),
}


def curves(country: str) -> Callable[[Effort], Iterator[list[Point]]]:
    """Test AUC against the sampling threshold."""

    def compute(effort: Effort) -> Iterator[list[Point]]:
        people = citizens(effort, "svm", country, PEOPLE, IN_LXJJ17)
        for panel in PANELS:
            found: dict[tuple[str, float], list[float]] = {}
            for run in range(effort.runs):
                rng = effort.generator("svm", country, panel, run)
                for key, value in _run(people, COUNTRIES[country].income, BUDGETS[panel], rng).items():
                    found.setdefault(key, []).append(value)
            yield [Point.mean(aucs, x=x, panel=panel, **_legend(curve)) for (curve, x), aucs in found.items()]

    return compute


def _run(people: Census, rich: float, draw: Any, rng: Any) -> dict[tuple[str, float], float]:
    """AUC of every model on a held-out fifth, for new budgets."""
    order = rng.permutation(len(people))[:PEOPLE]
    held_out, training = order[: order.size // 5], order[order.size // 5 :]
    label = np.where(people.income > rich, 1, -1)
    epsilon = np.maximum(np.floor(draw(rng, training.size) * 100) / 100, 0.01)  # rounded down to hundredths

    def score(budget: Floats, options: dict[str, Any]) -> float:
        model = learn.LinearSVC(
            bounds=tuple(zip(*people.bounds[:-1], strict=True)), classes=(-1, 1), random_state=rng, **options
        ).fit(people.features[training], label[training], epsilon=budget)
        return _auc(model.decision_function(people.features[held_out]), label[held_out] > 0)

    plain = score(np.full(training.size, 500.0), {"method": "weighted"})
    level = {curve: score(epsilon, options) for curve, (_, options) in LEVEL.items()}
    found = {}
    for t in THRESHOLDS:
        sampled = {"method": "objective", "mechanism": "sample", "options": {"threshold": t}}
        found[SAMPLE, t] = score(epsilon, sampled)
        found |= {(curve, t): value for curve, value in level.items()} | {(PLAIN, t): plain}
    return found


def _auc(score: Floats, positive: Any) -> float:
    """The chance that somebody rich gets a higher score than somebody who is not."""
    ranks, ones = stats.rankdata(score), int(positive.sum())
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * (positive.size - ones)))


def _legend(curve: str) -> dict[str, Any]:
    by = "reference" if curve == PLAIN else LEVEL[curve][0] if curve in LEVEL else "paper"
    return {"curve": curve, "by": by, "relation": "value"}


def _superior(points: Points) -> Finding:
    places = [(panel, t) for panel in PANELS for t in THRESHOLDS]
    best = {panel: max(points.y(curve, 1.0, panel) for curve in (PRIVACY, UTILITY)) for panel in PANELS}
    worse = [f"{t:g} ({panel})" for panel, t in places if points.y(SAMPLE, t, panel) > best[panel]]
    shown = ", ".join(f"{best[p]:.3f}, Sample up to {max(points.curve(SAMPLE, p)):.3f} ({p})" for p in PANELS)
    return Finding(holds=not worse, number=f"{shown}; Sample is ahead at {len(worse)} of {len(places)} thresholds")


def _no_pattern(points: Points) -> Finding:
    """A pattern: thresholds far below the mean are worse than the mean by more than three standard errors."""
    gaps = []
    for panel in PANELS:
        low, mean = points.at(SAMPLE, 0.05, panel), points.at(SAMPLE, 0.5, panel)
        gaps.append((mean.y - low.y, 3 * float(np.hypot(low.spread, mean.spread))))
    shown = ", ".join(f"{gap:.3f} ± {spread / 3:.3f}" for gap, spread in gaps)
    return Finding(holds=all(gap < spread for gap, spread in gaps), number=f"AUC at .5 less that at .05: {shown}")


def _best_at_mean(points: Points) -> Finding:
    curve = [points.at(SAMPLE, t, NORMAL) for t in THRESHOLDS]
    best, mean = max(curve, key=lambda p: p.y), curve[THRESHOLDS.index(0.5)]
    allowed = 0.005 + 2 * float(np.hypot(best.spread, mean.spread))
    return Finding(
        holds=mean.y > best.y - allowed,
        number=f"{mean.y:.3f} ± {mean.spread:.3f} at .5, best {best.y:.3f} at {best.x:g}",
    )


def _figure(number: int, country: str) -> Figure:
    return Figure(
        id=f"partitioning-fig{number}",
        title=f"Partitioning Figure {number}: AUC of the support vector machine, {country}",
        compute=curves(country),
        claims=(
            Claim(text="partitioning is superior to sampling whatever the threshold", check=_superior),
            Claim(text="sampling shows no obvious pattern over thresholds", check=_no_pattern),
            Claim(text="under normal budgets sampling is best at about .5, the mean", check=_best_at_mean),
        ),
        axes=Axes(x="sampling threshold t", y="test AUC", better="larger", columns=2),
        data=f"{PEOPLE:,} census-like people of {country}, income above {COUNTRIES[country].income:,} against the rest",
        runs=40,
        quick=3,
        steps=len(PANELS),
        seconds=80.0,
        accepts="census",
        note="Huber loss, objective perturbation with the correction term, budgets rounded down to hundredths, five "
        "groups whose coefficients are averaged with weight (n_i ε_i)². The class threshold is public, not the mean "
        "of the data. `weighted` is this library's weighted objective perturbation at the same guarantee.",
    )


FIGURES = (_figure(4, "US"), _figure(5, "Brazil"))

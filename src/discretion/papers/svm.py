"""[LXJJ17] Figures 4 and 5, and the experiment it does not show: classifiers under personal budgets."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from discretion import learn
from discretion.learn.ensemble import majority
from discretion.learn.run import plan
from discretion.noise import ALWAYS, Floats
from discretion.papers.claim import NEAR, SIGNIFICANT
from discretion.papers.data import COUNTRIES, IN_LXJJ17, Census, citizens
from discretion.papers.figure import Axes, By, Claim, Effort, Figure, Point, Points, Result
from discretion.papers.partitioning import BUDGETS, NORMAL, UNIFORM, WIDE
from discretion.preference import MICRO, Specification

PEOPLE = 12_500  # "small", says the paper; a fifth is held out
SHARES = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0]  # thresholds over the mean budget; 0: the smallest
OF_THE_PAPER, PANELS = [UNIFORM, NORMAL], [UNIFORM, NORMAL, WIDE]
LEAST_PEOPLE = 100  # T, the smallest group: a fit has 14 coefficients
SAMPLE, WEIGHTED, PLAIN, MINIMUM = "Sample", "weighted", "non private", "Minimum"
PRIVACY, UTILITY = "privacy-aware, majority vote", "utility-based, majority vote"
AVERAGED = "utility-based, averaged"
CUTS = {PRIVACY: "privacy", UTILITY: "utility"}
Score = Callable[[Any, Any], float]  # (score of each held-out person, who is rich) -> how good


def curves(country: str, model: Any, score: Score) -> Callable[[Effort], Iterator[list[Point]]]:
    """Return how good the model is on a held-out fifth, against the sampling threshold."""

    def compute(effort: Effort) -> Iterator[list[Point]]:
        people = citizens(effort, "svm", country, PEOPLE, IN_LXJJ17)
        for panel in PANELS:
            found: dict[tuple[str, float], list[float]] = {}
            for run in range(effort.runs):
                rng = effort.generator("svm", country, panel, run)
                fits = _Fits(people, COUNTRIES[country].income, BUDGETS[panel], rng, model)
                for key, values in fits.scores().items():
                    found.setdefault(key, []).append(score(values, fits.positive))
            yield [Point.mean(values, x=x, panel=panel, **_legend(curve)) for (curve, x), values in found.items()]

    return compute


class _Fits:
    """One run: new budgets, a new fifth held out, and every model's scores for it."""

    def __init__(self, people: Census, rich: float, draw: Any, rng: Any, model: Any) -> None:
        order = rng.permutation(len(people))[:PEOPLE]
        held_out, training = order[: order.size // 5], order[order.size // 5 :]
        label = np.where(people.income > rich, 1, -1)
        self.make, self.rng = model, rng
        self.bounds = tuple(zip(*people.bounds[:-1], strict=True))
        self.x, self.y, self.test = people.features[training], label[training], people.features[held_out]
        self.positive = label[held_out] > 0
        finest = 1000 if draw is BUDGETS[UNIFORM] else 100  # budgets are rounded down to thousandths or hundredths
        self.epsilon = np.maximum(np.floor(draw(rng, training.size) * finest) / finest, 0.01)

    def scores(self) -> dict[tuple[str, float], Any]:
        """Return (curve, threshold over the mean) -> the score of each held-out person, above 0 for rich."""
        level = {
            MINIMUM: self._fit(self.epsilon, method="objective", mechanism="minimum"),
            WEIGHTED: self._fit(self.epsilon, method="weighted"),
            PLAIN: self._fit(np.full(self.y.size, 500.0), method="weighted"),
        } | self._partitioned()
        found: dict[tuple[str, float], Any] = {}
        for share in SHARES:
            t = float(np.clip(share * self.epsilon.mean(), self.epsilon.min(), self.epsilon.max()))
            sampled = {"method": "objective", "mechanism": "sample", "options": {"threshold": t}}
            found[SAMPLE, share] = self._fit(self.epsilon, **sampled)
            found |= {(curve, share): values for curve, values in level.items()}
        return found

    def _fit(self, epsilon: Floats, rows: Any = slice(None), **options: Any) -> Floats:
        model = self.make(bounds=self.bounds, classes=(-1, 1), random_state=self.rng, **options)
        return np.asarray(model.fit(self.x[rows], self.y[rows], epsilon=epsilon).decision_function(self.test))

    def _partitioned(self) -> dict[str, Any]:
        """Return the share of votes for rich, by majority of the groups' models, and their weighted average."""
        specification, cohort = Specification.assign(self.epsilon)
        found: dict[str, Any] = {}
        for curve, cuts in CUTS.items():
            runs = plan(specification, "partition", {"cuts": cuts, "smallest": LEAST_PEOPLE})
            fits = []
            for run in runs:
                rows = np.flatnonzero(np.array(run.inclusion)[cohort] == ALWAYS)
                epsilon = np.full(rows.size, run.micro_epsilon / MICRO)
                fits.append(self._fit(epsilon, rows, method="objective", mechanism="minimum"))
            weights = np.array([run.weight for run in runs])
            weights /= weights.sum()
            votes = [np.where(fit > 0, 1, -1) for fit in fits]
            elected = majority(votes, weights)
            found[curve] = np.mean(votes, axis=0) + 1e-3 * elected  # a tie is decided as the majority decides it
            if curve == UTILITY:
                found[AVERAGED] = weights @ np.array(fits)
        return found


def auc(score: Floats, positive: Any) -> float:
    """Return the chance that somebody rich gets a higher score than somebody who is not."""
    ranks, ones = stats.rankdata(score), int(positive.sum())
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * (positive.size - ones)))


def misclassified(score: Floats, positive: Any) -> float:
    """Return the share of people on the wrong side of 0."""
    return float(np.mean((score > 0) != positive))


def _legend(curve: str) -> dict[str, Any]:
    by: By = "reference" if curve == PLAIN else "auto" if curve in (WEIGHTED, AVERAGED) else "paper"
    return {"curve": curve, "by": by, "relation": "value"}


def _superior(points: Points) -> Result:
    worse = 0
    for panel in OF_THE_PAPER:
        mine = min(points.y(curve, 1.0, panel) for curve in CUTS)
        worse += sum(points.y(SAMPLE, x, panel) >= mine for x in SHARES)
    shown = "; ".join(
        f"{panel}: {', '.join(f'{c} {points.y(c, 1.0, panel):.3f}' for c in CUTS)}, Sample "
        f"{min(points.curve(SAMPLE, panel)):.3f} to {max(points.curve(SAMPLE, panel)):.3f}"
        for panel in OF_THE_PAPER
    )
    places = len(SHARES) * len(OF_THE_PAPER)
    return Result(holds=worse == 0, number=f"{shown}; Sample is ahead of one at {worse} of {places} thresholds")


def _no_pattern(points: Points) -> Result:
    """A pattern: thresholds far below the mean are worse than the mean by more than three standard errors."""
    gaps = []
    for panel in OF_THE_PAPER:
        low, mean = points.at(SAMPLE, 0.25, panel), points.at(SAMPLE, 1.0, panel)
        gaps.append((mean.y - low.y, 3 * float(np.hypot(low.spread, mean.spread))))
    shown = ", ".join(f"{gap:.3f} ± {spread / 3:.3f}" for gap, spread in gaps)
    return Result(
        holds=all(abs(gap) <= spread for gap, spread in gaps), number=f"AUC at the mean less that at a quarter: {shown}"
    )


def _best_at_mean(points: Points) -> Result:
    curve = [points.at(SAMPLE, x, NORMAL) for x in SHARES]
    best, mean = max(curve, key=lambda p: p.y), points.at(SAMPLE, 1.0, NORMAL)
    return Result(
        holds=mean.y >= best.y - NEAR * (best.y - 0.5),
        number=f"{mean.y:.3f} ± {mean.spread:.3f} at the mean, best {best.y:.3f} at {best.x:g} times it",
    )


def _figure(number: int, country: str) -> Figure:
    return Figure(
        id=f"partitioning-fig{number}",
        title=f"Partitioning Figure {number}: AUC of the support vector machine, {country}",
        compute=curves(country, learn.LinearSVC, auc),
        claims=(
            Claim(
                text="partitioning is superior to sampling",
                check=_superior,
                rule="both have a higher AUC than Sample at every threshold, for both budgets of the paper",
                section="5.2",
                quote="our partitioning mechanisms have superior performance than sampling mechanism",
            ),
            Claim(
                text="sampling shows no obvious pattern over thresholds",
                check=_no_pattern,
                rule="a quarter of the mean and the mean differ by at most three standard errors",
                section="5.2",
                quote="There is no obvious pattern for sampling mechanism on which privacy budget threshold has the "
                "optimal utility",
            ),
            Claim(
                text="under normal budgets sampling is best at about .5, the mean",
                check=_best_at_mean,
                rule="its AUC at the mean is at most a tenth nearer to ½ than at its best threshold",
                section="5.2",
                quote="under normal privacy budgets arrives the best when the threshold value is around 0.5",
            ),
        ),
        axes=Axes(x="threshold / mean budget (0: smallest)", y="test AUC", better="larger", columns=3),
        data=f"{PEOPLE:,} census-like people of {country}, income above {COUNTRIES[country].income:,} against the rest",
        runs=40,
        quick=3,
        steps=len(PANELS),
        seconds=30.0,
        accepts="census",
        note=NOTE,
    )


NOTE = (
    "Objective perturbation with the correction term, budgets rounded down to hundredths (U(.01, .1): thousandths), as "
    f"many groups of at least {LEAST_PEOPLE} people as have most utility. Every group's model has one vote; people "
    "are ranked by their share of votes, because the paper does not say how an AUC follows from votes. The class "
    "threshold is public, not the mean of the data. `weighted` is this library's weighted objective perturbation at "
    "the same guarantee."
)


def _trend(points: Points) -> Result:
    """Check the counts: best at the mean, sharply worse below it, partitioning almost as good as the best."""
    excess = {
        panel: {x: points.y(SAMPLE, x, panel) - points.y(PLAIN, x, panel) for x in SHARES} for panel in OF_THE_PAPER
    }
    at_mean = all(found[1.0] <= (1 + NEAR) * min(found.values()) for found in excess.values())
    below = all(found[1.0] <= SIGNIFICANT * found[0.5] for found in excess.values())
    close = all(
        points.y(curve, 1.0, panel) - points.y(PLAIN, 1.0, panel) <= (1 + NEAR) * min(excess[panel].values())
        for curve in CUTS
        for panel in OF_THE_PAPER
    )
    word = {True: "yes", False: "no"}
    shown = "; ".join(
        f"{panel}: non private {points.y(PLAIN, 1.0, panel):.3f}, Sample {points.y(SAMPLE, 0.5, panel):.3f} at half "
        f"the mean, {points.y(SAMPLE, 1.0, panel):.3f} at it, {min(points.curve(SAMPLE, panel)):.3f} at best, "
        f"{UTILITY} {points.y(UTILITY, 1.0, panel):.3f}"
        for panel in OF_THE_PAPER
    )
    return Result(
        holds=at_mean and below and close,
        number=f"best at the mean: {word[at_mean]}; sharply worse below it: {word[below]}; partitioning almost as "
        f"good: {word[close]}; {shown}",
    )


def _logistic(country: str) -> Figure:
    return Figure(
        id=f"partitioning-logistic-{country.lower()}",
        title=f"Partitioning, not shown in the paper: misclassification of logistic regression, {country}",
        compute=curves(country, learn.LogisticRegression, misclassified),
        claims=(
            Claim(
                text="logistic regression has the same trend as counts",
                check=_trend,
                rule="what Sample loses against no privacy is least at the mean (within a tenth), at least 1.25 times "
                "as much at half of it, and both partitionings lose at most a tenth more than the best threshold",
                section="5.1",
                quote="the performance of logistic regression has the same trend with count query",
            ),
        ),
        axes=Axes(x="threshold / mean budget (0: smallest)", y="misclassification rate", columns=3),
        data=f"{PEOPLE:,} census-like people of {country}, income above {COUNTRIES[country].income:,} against the rest",
        runs=40,
        quick=3,
        steps=len(PANELS),
        seconds=30.0,
        accepts="census",
        note=NOTE,
    )


FIGURES = (_figure(4, "US"), _figure(5, "Brazil"), _logistic("US"), _logistic("Brazil"))

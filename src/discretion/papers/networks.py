"""[AGK16] section 4: everybody finds ten neighbours by gossip; how many hidden items do these bring back?"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discretion.noise import Floats
from discretion.papers.claim import Check
from discretion.papers.data import items_file
from discretion.papers.figure import Axes, By, Claim, Effort, Figure, Point, Points, Result
from discretion.preference import MICRO, Integers
from discretion.social.dataset import NETWORKS
from discretion.social.exchange import Exchange
from discretion.social.gossip import explore
from discretion.social.profile import Profiles
from discretion.social.recall import random_recall, recall, split
from discretion.social.similarity import Cosine, Exact, ScalarProduct
from discretion.social.weight import WESTIN, WHOLE

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)  # every published number is the mean over these
NEIGHBOURS = 10
ASKED = 1  # others that a person asks a cycle; on average one more asks them, so each meets 1 to 3 in 92% of cycles
SAMPLED, LEAST = 500, 10  # people taken from a real file, and the fewest items they hold
Rule = Literal["paper", "min", "exact"]
HDP, OURS, BASELINE, RANDOM = "HDP", "discretion, min rule", "Baseline, not private", "Random"
HOMOGENEOUS, SAME_PEOPLE = "true ε/2, fundamentalists dropped", "HDP, without the fundamentalists' own recall"
DATA = (
    f"planted communities of the published sizes (Survey {NETWORKS['Survey'].people} people, "
    f"Digg {NETWORKS['Digg'].people}, Delicious {NETWORKS['Delicious'].people}), their parameters chosen "
    "to give the recall of an earlier simulation"
)
NOTE = (
    "Every number is the mean over ε = .1, .5, 1, 2, 3 per similarity. A person takes part in about 40 of them: no ε "
    "here is a total. In each of 20 cycles everybody asks one other person and is asked by one on average, "
    "which is the rate of the paper (1 to 3). Survey has four times the runs. HDP divides by exact norms, which its "
    "guarantee does not cover. The min rule ranks by noisy scalar products with the smaller of both weights: the same "
    "ε and weights, and a guarantee that holds."
)


def networks(effort: Effort) -> list[str]:
    """The names of the data sets: the three of the paper, or the real file."""
    return list(NETWORKS) if effort.data is None else [effort.data.stem]


def repeats(effort: Effort, name: str) -> range:
    """The runs of a data set: more where people are few, because each costs little and varies more."""
    return range(effort.runs * (4 if name == "Survey" else 1))


@lru_cache(maxsize=8)
def people(name: str, path: Path | None, seed: int) -> Profiles:
    """Everybody's items, weights not chosen yet."""
    rng = Effort(runs=0, seed=seed).generator("network", name)
    if path is None:
        return NETWORKS[name].generate(rng)
    person, item = items_file(path)
    held = np.bincount(person)
    chosen = rng.permutation(np.flatnonzero(held >= LEAST))[:SAMPLED]
    kept = np.isin(person, chosen)
    known, numbered = np.unique(person[kept], return_inverse=True)
    catalogue, items = np.unique(item[kept], return_inverse=True)  # an experiment on a file that is public as a whole
    return Profiles.of(numbered, items, people=known.size, items=catalogue.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Remembered(ScalarProduct):
    """A scalar product that looks all pairs up: the five ε of an experiment share them."""

    table: Integers  # (person, person): what `steps` of any two would compute

    def steps(self, left: Integers, right: Integers) -> Integers:
        return self.table[left, right]


def table(profiles: Profiles, coefficient: Literal["product", "min"]) -> Integers:
    """The weighted products of all pairs, in the grid steps of ScalarProduct."""
    weights = profiles.weights.astype(np.int64)
    if coefficient == "product":
        return np.asarray((weights @ weights.T).toarray())
    levels = np.unique(weights.data)
    total = np.zeros((profiles.people,) * 2, dtype=np.int64)
    for below, level in zip(np.append(0, levels), levels, strict=False):  # min(a, b) = Σ over levels that both reach
        reached = weights.copy()
        reached.data = (weights.data >= level).astype(np.int64)
        total += (level - below) * (reached @ reached.T).toarray()
    return total


def recalls(
    profiles: Profiles, rule: Rule, rng: Any, *, epsilon_scale: float = 1.0, asked: int = ASKED
) -> tuple[Floats, Floats]:
    """Return each person's recall, averaged over the five ε, and that of random neighbours; NaN without hidden items.

    `paper`: product of both weights over exact norms. `min`: the smaller weight, no norms: the same guarantee and, for
    the norms, a true one. `exact`: no privacy.
    """
    parts = split(profiles, rng=rng)
    found = [
        recall(neighbours, parts.whole.weights, parts.hidden)
        for neighbours in _found(parts.training, rule, rng, epsilon_scale, asked)
    ]
    return np.mean(found, axis=0), random_recall(parts.whole.weights, parts.hidden, NEIGHBOURS)


def _found(training: Profiles, rule: Rule, rng: Any, scale: float, asked: int) -> Iterator[Integers]:
    """Yield everybody's neighbours, for every ε."""
    if rule == "exact":
        exact = Exchange(Exact(profiles=training, measure="cosine"), rng=rng)
        yield explore(exact, neighbours=NEIGHBOURS, peers=asked).neighbours
        return
    coefficient: Literal["product", "min"] = "product" if rule == "paper" else "min"
    looked_up = table(training, coefficient)
    for epsilon in EPSILONS:
        product = Remembered(
            profiles=training, micro_epsilon=round(epsilon * scale * MICRO), coefficient=coefficient, table=looked_up
        )
        similarity = Cosine.public(product) if rule == "paper" else product
        yield explore(Exchange(similarity, rng=rng), neighbours=NEIGHBOURS, peers=asked).neighbours


def without(profiles: Profiles, share: float, rng: Any, group: str | None = None) -> Profiles:
    """The same people less a random share of them, or of one group."""
    leaving = rng.random(profiles.people) < share
    if group is not None and profiles.groups is not None:
        leaving &= profiles.groups == list(WESTIN).index(group)
    return profiles.keep(~leaving)


def half(profiles: Profiles) -> Profiles:
    """[AGK16] Naive: everybody's weight is .5."""
    return profiles.weigh(WHOLE // 2)


def whole(profiles: Profiles) -> Profiles:
    """Everybody's weight is 1."""
    return profiles.weigh(WHOLE)


def mean(values: Floats, members: Any = True) -> float:
    """The mean over people who have hidden items."""
    chosen = ~np.isnan(values) & members
    return float(values[chosen].mean()) if chosen.any() else nan


def point(curve: str, x: float, values: Iterable[float], panel: str) -> Point:
    """The mean over the runs in which anybody was there to be measured; NaN without any."""
    measured = [value for value in values if isfinite(value)] or [nan]
    references = (BASELINE, RANDOM, HOMOGENEOUS, SAME_PEOPLE)
    by: By = "auto" if "min rule" in curve else "reference" if curve.startswith(references) else "paper"
    return Point.mean(measured, curve=curve, x=x, panel=panel, by=by, relation="item")


def on(name: str, check: Check) -> Check:
    """The check, where this data set was computed."""

    def decide(points: Points) -> Result:
        if any(panel.startswith(name) for panel in points.panels):
            return check(points)
        return Result(holds=None, number=f"{name} was not computed")

    return decide


def figure(
    number: int,
    title: str,
    compute: Callable[[Effort], Iterator[list[Point]]],
    x: str,
    claims: tuple[Claim, ...],
    *,
    columns: int = len(NETWORKS),
    **effort: Any,
) -> Figure:
    """A figure of section 4; `effort` are the other fields, about how long it takes."""
    return Figure(
        id=f"hdp-fig{number}",
        title=f"HDP Figure {number}: {title}",
        compute=compute,
        claims=claims,
        axes=Axes(x=x, y="recall", better="larger", columns=columns),
        data=DATA,
        runs=5,
        quick=2,
        accepts="items",
        overhead=3.0,
        note=NOTE,
        **effort,
    )

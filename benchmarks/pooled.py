"""Pooled: errors and intervals of `assume="gradual"` where choices and values are related, and where they are not.

Every figure is measured with the product's own mechanism and noise. A cell is `RMSE / how often the 95% interval held`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discretion import noise
from discretion.mechanisms import MECHANISMS, Belief
from discretion.mechanisms.pooled import Pooled
from discretion.mechanisms.pooling import SIDES
from discretion.noise import Floats
from discretion.preference import Specification
from discretion.statistics import Aggregate, Statistics

LOW, HIGH = SIDES.index(0.025), SIDES.index(0.975)
Generator = np.random.Generator  # noqa: TID251  a type, not a source of randomness


def paper(people: int, rng: Generator) -> Floats:
    """[JYC15]'s defaults: 54% U[.01, .2], 37% U[.2, 1], both in hundredths, the rest 1."""
    strict, medium = round(0.54 * people), round(0.37 * people)
    chosen = [rng.uniform(0.01, 0.2, strict).round(2), rng.uniform(0.2, 1.0, medium).round(2)]
    return np.concatenate([*chosen, np.ones(people - strict - medium)])


def drawn(levels: Any, parts: Any) -> Callable[[int, Generator], Floats]:
    """Preferences chosen at random among few levels."""
    return lambda people, rng: rng.choice(np.asarray(levels, dtype=float), people, p=parts)


REGISTERS: dict[str, Callable[[int, Generator], Floats]] = {
    "paper": paper,
    "3 levels": drawn([0.1, 0.5, 1.0], [0.54, 0.37, 0.09]),
    "5 levels": drawn([0.02, 0.1, 0.3, 1.0, 3.0], [0.2, 0.3, 0.25, 0.15, 0.1]),
    "100 levels": drawn(np.arange(1, 101) / 100, [0.01] * 100),
}
# relation -> how a person's rate depends on (ε, the share of people with a smaller ε)
RELATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "none": lambda epsilon, rank: np.ones_like(rank),
    "trend by rank": lambda epsilon, rank: 1.5 - rank,
    "trend by ε": lambda epsilon, rank: 1 - 2 / 3 * (epsilon - epsilon.min()) / np.ptp(epsilon),
    "step": lambda epsilon, rank: np.where(rank < 0.54, 6.7, 1.0),
    "very strict": lambda epsilon, rank: np.where(epsilon < 0.05, 2.0, 1.0),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What was measured."""

    rmse: float
    held: float  # share of 95% intervals that held the truth
    half: float  # mean half width
    off: float  # mean error

    def __str__(self) -> str:
        return f"{self.rmse:,.3g} / {self.held:.3f}"


def rank_of(epsilon: Floats) -> Floats:
    """The share of people with a smaller ε, half of one's own level added."""
    _, level, heads = np.unique(epsilon, return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(heads) - heads / 2) / heads.sum())[level])


def rates(relation: str, epsilon: Floats, share: float) -> Floats:
    """Everybody's rate, `share` on average; none above 1."""
    raw = RELATIONS[relation](epsilon, rank_of(epsilon))
    found = raw / raw.mean() * share
    for _ in range(50):  # what is above 1 goes to the others
        found = np.minimum(found, 1.0)
        found = np.where(found < 1, found * (share / found.mean()), 1.0)
    return np.asarray(np.minimum(found, 1.0))


def answers(mechanism: Pooled, statistics: Statistics, rng: Generator) -> Any:
    """Estimates for many runs at once, a run in every row of the statistics."""
    runs = len(statistics.counts)
    noisy = [
        centre.astype(np.float64) + noise.discrete_laplace(scale, runs, rng)
        for centre, scale in zip(mechanism.centres(statistics), mechanism.scales, strict=True)
    ]
    return mechanism.pool.estimate(mechanism.totals(np.array(noisy).T))


def judge(found: Any, truth: Floats, limits: tuple[float, float]) -> Cell:
    """Compare estimates and truths."""
    low, high = (np.clip(found.sides[:, side], *limits) for side in (LOW, HIGH))
    slack = 1e-9 * max(1.0, float(np.abs(truth).max()))
    off = found.values - truth
    return Cell(
        rmse=float(np.sqrt(np.mean(off**2))),
        held=float(np.mean((low <= truth + slack) & (truth - slack <= high))),
        half=float(np.mean(high - low) / 2),
        off=float(np.mean(off)),
    )


def propose(aggregate: Aggregate, specification: Specification) -> Pooled:
    return MECHANISMS["pooled"](aggregate, specification, Belief(assume="gradual"))  # type: ignore[return-value]


def pooled_counts(
    register: str, relation: str, share: float, *, people: int, runs: int, seed: int = 1, registers: int = 10
) -> Cell:
    """A count of `share` of the people; new preferences in every tenth of the runs."""
    rng, cells = noise.simulation(seed), []
    for _ in range(registers):
        epsilon = REGISTERS[register](people, rng)
        specification, cohort = Specification.assign(epsilon)
        mechanism = propose(Aggregate(kind="count", protects="value"), specification)
        mean = np.bincount(cohort, weights=rates(relation, epsilon, share)) / specification.heads
        ones = rng.binomial(specification.heads, np.clip(mean, 0, 1), (runs // registers, len(specification.epsilons)))
        found = answers(mechanism, Statistics(counts=ones), rng)
        cells.append(judge(found, ones.sum(axis=1).astype(float), mechanism.error.limits or (-np.inf, np.inf)))
    return average(cells)


def average(cells: list[Cell]) -> Cell:
    """All runs together."""
    return Cell(
        rmse=float(np.sqrt(np.mean([cell.rmse**2 for cell in cells]))),
        held=float(np.mean([cell.held for cell in cells])),
        half=float(np.mean([cell.half for cell in cells])),
        off=float(np.mean([cell.off for cell in cells])),
    )

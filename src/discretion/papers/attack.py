"""Attack: read a secret column off answers, once under model `individual` and once under differential privacy.

The data are invented, the mechanisms are the real ones, and everything is asked as an order statistic of public
functions of the secrets. Under `individual` the answer is exact where nobody alone could move it, so the questions are
put so that whether there is noise is the secret: the nominal ε hardly matters. [SDSM17] claims the opposite.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration, require
from discretion.mechanisms import Belief, exponential, smooth
from discretion.mechanisms.local import release_individual
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification
from discretion.statistics import Aggregate, Statistics

LARGEST_VALUE = 99  # of the values whose order statistics are asked for

Ask = Callable[[Integers, int, int, int, Rng], float]  # values 0..top, place from 1, top, micro-ε, generator -> answer


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """Says how much of a secret column one attack read off the answers of one mechanism."""

    attack: str
    against: str
    is_private: bool  # differential privacy, or only model `individual`
    epsilon: float  # over all queries together
    queries: int
    recovered: float  # share of the secrets
    guessing: float  # what knowing nothing recovers
    ceiling: float | None = None  # for bits: the most that differential privacy at this ε allows


def attack_idp(*, people: int = 101, values: int = 1_000, epsilon: float = 0.01, seed: int = 1) -> list[Reconstruction]:
    """Three attacks on `individual`, each repeated on differentially private mechanisms at the same total ε."""
    rng = noise.simulation(seed)
    bits = (rng.random(people) < 0.5).astype(np.int64)
    numbers = rng.integers(0, LARGEST_VALUE + 1, values)
    found = [
        _bits(attack, name, bits, epsilon, guesses(bits, ask, _share(epsilon, people), rng))
        for attack, guesses in {"second maximum": second_maximum, "threshold counts": threshold_counts}.items()
        for name, ask in AGAINST.items()
    ]
    for name in (INDIVIDUAL, BOUNDS, EXPONENTIAL):
        read = order_statistics(numbers, AGAINST[name], _share(epsilon, values), rng)
        found.append(_numbers(name, numbers, epsilon, values, read))
    drawn = noise.discrete_laplace(Fraction(2 / epsilon), LARGEST_VALUE + 1, rng)
    read = _expand(np.bincount(numbers, minlength=LARGEST_VALUE + 1) + drawn, values)
    return [*found, _numbers("DP, one histogram", numbers, epsilon, 1, read)]


def second_maximum(bits: Integers, ask: Ask, micro_epsilon: int, rng: Rng) -> Integers:
    """One query a person: the second largest of [is this the target, with bit 1]. It is 0; its noise is not."""
    guesses = np.zeros_like(bits)
    for person in range(len(bits)):
        target = np.zeros_like(bits)
        target[person] = bits[person]
        guesses[person] = ask(target, len(bits) - 1, 1, micro_epsilon, rng) != 0
    return guesses


def threshold_counts(bits: Integers, ask: Ask, micro_epsilon: int, rng: Rng) -> Integers:
    """One query a person: do at least c + 2 of the people so far have bit 1, c known for those before?

    That is an order statistic of the bits, it is 0, and this person alone could make it 1 only if theirs makes c + 1.
    """
    guesses = np.zeros_like(bits)
    for person in range(len(bits)):
        so_far = np.where(np.arange(len(bits)) <= person, bits, 0)
        place = max(1, len(bits) - int(guesses.sum()) - 1)  # the (c + 2)-th largest
        guesses[person] = ask(so_far, place, 1, micro_epsilon, rng) != 0
    return guesses


def order_statistics(values: Integers, ask: Ask, micro_epsilon: int, rng: Rng) -> Integers:
    """One query a rank. Answers that are whole and in range are believed; the others take the nearest believed one."""
    answers = np.array([ask(values, place, LARGEST_VALUE, micro_epsilon, rng) for place in range(1, len(values) + 1)])
    believed = np.flatnonzero((answers == np.rint(answers)) & (answers >= 0) & (answers <= LARGEST_VALUE))
    if not believed.size:
        return np.asarray(np.clip(np.rint(answers), 0, LARGEST_VALUE), dtype=np.int64)
    places = np.arange(len(values))
    after = np.clip(np.searchsorted(believed, places), 0, len(believed) - 1)
    before = np.clip(after - 1, 0, None)
    nearer = places - believed[before] <= believed[after] - places
    return np.asarray(answers[np.where(nearer, believed[before], believed[after])], dtype=np.int64)


def ask_individual(values: Integers, place: int, top: int, micro_epsilon: int, rng: Rng) -> float:
    """Not differentially private: noise for what one person could do to these very values."""
    return _individual(values, place, top, micro_epsilon, rng, discrete=False)


def ask_individual_discrete(values: Integers, place: int, top: int, micro_epsilon: int, rng: Rng) -> float:
    """The same with noise on the whole numbers."""
    return _individual(values, place, top, micro_epsilon, rng, discrete=True)


def _individual(values: Integers, place: int, top: int, micro_epsilon: int, rng: Rng, *, discrete: bool) -> float:
    release = release_individual(
        values,
        statistic="rank",
        q=place,
        epsilon=np.full(len(values), micro_epsilon / MICRO),
        bounds=(0, top),
        model="individual",
        acknowledged=True,
        discrete=discrete,
        rng=rng,
    )
    return float(release.value)


def ask_bounds(values: Integers, place: int, top: int, micro_epsilon: int, rng: Rng) -> float:
    """Differentially private: noise for the whole range."""
    return float(np.sort(values)[place - 1] + noise.discrete_laplace(Fraction(top * MICRO, micro_epsilon), 1, rng)[0])


def ask_exponential(values: Integers, place: int, top: int, micro_epsilon: int, rng: Rng) -> float:
    """Differentially private: the exponential mechanism."""
    aggregate, specification, statistics = _shaped(values, place, top, micro_epsilon)
    return float(exponential.propose(aggregate, specification, Belief()).release(statistics, rng)[0])


def ask_smooth(values: Integers, place: int, top: int, micro_epsilon: int, rng: Rng) -> float:
    """Differentially private: smooth sensitivity, calibrated exactly."""
    aggregate, specification, statistics = _shaped(values, place, top, micro_epsilon)
    return float(smooth.propose(aggregate, specification, Belief()).release(statistics, rng)[0])


INDIVIDUAL, BOUNDS, EXPONENTIAL = "individual, Laplace", "DP, noise for the bounds", "DP, exponential"
AGAINST: dict[str, Ask] = {
    INDIVIDUAL: ask_individual,
    "individual, discrete Laplace": ask_individual_discrete,
    BOUNDS: ask_bounds,
    "DP, smooth": ask_smooth,
    EXPONENTIAL: ask_exponential,
}


def draw(found: list[Reconstruction], path: Path) -> None:
    """Bars of what was recovered, `individual` against differential privacy (needs Matplotlib)."""
    require("plots", "A plot")
    from matplotlib import pyplot  # an extra: only this picture needs it

    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(found) + 1.2), layout="constrained")
    labels = [f"{row.attack}: {row.against}" for row in found]
    colours = ["#2b6cb0" if row.is_private else "#c0392b" for row in found]
    axes.barh(labels, [100 * row.recovered for row in found], color=colours)
    axes.plot([100 * row.guessing for row in found], labels, "k|", markersize=14, label="guessing")
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"secrets recovered, %, at a total ε of {found[0].epsilon:g}")
    axes.legend(loc="lower right")
    try:
        figure.savefig(path, dpi=150)
    except ValueError as unknown:  # a format it cannot write; it lists those it can
        raise InvalidDeclaration(f"Cannot draw {path.name!r}. {unknown}") from None
    finally:
        pyplot.close(figure)


def _shaped(values: Integers, place: int, top: int, micro_epsilon: int) -> tuple[Aggregate, Specification, Statistics]:
    people = len(values)
    aggregate = Aggregate(kind="quantile", protects="value", upper=top, rank=Fraction(place, people), complete=True)
    histogram = np.bincount(values, minlength=top + 1).reshape(1, 1, -1)
    specification = Specification(epsilons=(micro_epsilon,), people=(people,))
    return aggregate, specification, Statistics(counts=histogram.sum(axis=2), histogram=histogram)


def _share(epsilon: float, queries: int) -> int:
    return max(1, int(epsilon * MICRO / queries))


def _expand(counts: Floats | Integers, people: int) -> Integers:
    """The sorted values that a noisy histogram describes, cut or stretched to the right number."""
    positive = np.maximum(counts, 0)
    upto = np.cumsum(positive) / max(1, int(positive.sum()))
    return np.minimum(np.searchsorted(upto, (np.arange(people) + 0.5) / people), len(counts) - 1)


def _bits(attack: str, name: str, bits: Integers, epsilon: float, guesses: Integers) -> Reconstruction:
    return Reconstruction(
        attack=attack,
        against=name,
        is_private=name.startswith("DP"),
        epsilon=epsilon,
        queries=len(bits),
        recovered=float(np.mean(guesses == bits)),
        guessing=0.5,
        ceiling=exp(epsilon) / (1 + exp(epsilon)),
    )


def _numbers(name: str, values: Integers, epsilon: float, queries: int, read: Integers) -> Reconstruction:
    return Reconstruction(
        attack="order statistics",
        against=name,
        is_private=name.startswith("DP"),
        epsilon=epsilon,
        queries=queries,
        recovered=float(np.mean(np.sort(values) == read)),
        guessing=float(np.mean(np.sort(values) == _expand(np.ones(LARGEST_VALUE + 1), len(values)))),  # evenly spread
    )

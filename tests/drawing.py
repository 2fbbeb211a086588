"""What every mechanism must keep besides its charge: it draws from the law that it exposes, and tells nothing else.

The samplers are replaced by others that note what they are asked for and give numbers that are known. Two datasets are
then given noise so that both have the same noisy totals (or the same choices). Their answers, with all errors, must be
equal: whatever else an answer depends on was not covered by noise.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np

from contracts import Dataset, Universe, statistics_of
from discretion import noise
from discretion.mechanisms import answer
from discretion.statistics import Statistics

COMPARED = 2  # datasets, besides the last
FAR = (-40, 40)  # noise, in units: below and above everything that can be true
UNUSED: Any = object()  # instead of a generator: nothing but the samplers, which are replaced, may use it
OTHERS = ("uniform", "gaussian", "spherical", "heavy_tailed", "coins")  # no exposed law is about these


@dataclass
class Drawn:
    """Notes what was drawn."""

    scales: list[tuple[Fraction, int]] = field(default_factory=list)  # of noise, and how many
    laws: list[np.ndarray] = field(default_factory=list)  # of choices


@contextmanager
def dealt(noises: Callable[[int, int], np.ndarray]) -> Iterator[Drawn]:
    """Draw `noises(number of the draw, how many)` as noise, and every choice by its number; note both."""
    drawn, probabilities = Drawn(), noise.choice_probabilities

    def discrete_laplace(scale: Any, size: int, rng: Any = None) -> np.ndarray:
        drawn.scales.append((Fraction(scale), size))
        return noises(len(drawn.scales) - 1, size)

    def choose(scores: Any, scale: Any, rng: Any = None, rule: Any = "exponential") -> int:
        drawn.laws.append(probabilities(scores, scale, rule))
        return len(drawn.laws) % len(scores)

    def unknown(*_: Any, **__: Any) -> None:
        raise AssertionError("it draws from a law that it does not expose")

    others = dict.fromkeys(OTHERS, unknown)
    with patch.multiple(noise, discrete_laplace=discrete_laplace, choose=choose, **others):
        yield drawn


def check_release_draws_the_law(mechanism: Any, universe: Universe) -> None:
    """Every answer of a mechanism is computed from draws of its law, and from nothing else."""
    aggregate = mechanism.measure.aggregate

    def seen(dataset: Dataset) -> Statistics:
        return statistics_of(aggregate, universe, dataset, range(len(dataset)))

    check_draws(mechanism, lambda found: answer(mechanism, found, UNUSED), [seen(one) for one in several(universe)])


def several(universe: Universe) -> list[Dataset]:
    """A few datasets, the first and the last of all among them."""
    datasets = list(universe.datasets())
    return [*islice(datasets, 0, None, max(1, len(datasets) // COMPARED)), datasets[-1]]


def check_draws(mechanism: Any, told: Callable[[Any], object], found: Sequence[Any]) -> None:
    """What is told of each of `found` is computed from noisy totals or choices of the law, and from nothing else."""
    for far in FAR:
        expected = None
        for one in found:
            with dealt(_making_equal(mechanism, one, found[0], far)) as drawn:
                answered = repr(told(one))
            _check_drawn(mechanism, one, drawn)
            expected = expected or answered
            assert expected == answered, "the answer depends on more than what noise was added to"


def _making_equal(mechanism: Any, one: Any, first: Any, far: int) -> Callable[[int, int], np.ndarray]:
    """Return noise that makes the noisy totals of one dataset those of the first, `far` from the truth."""
    if hasattr(mechanism, "probabilities"):
        return lambda number, size: np.zeros(size, dtype=np.int64)
    mine, theirs = mechanism.centres(one), mechanism.centres(first)

    def noises(number: int, size: int) -> np.ndarray:
        assert number < len(mine), "it draws more noise than its law says"
        away = np.ravel(theirs[number]).astype(np.int64) - np.ravel(mine[number]).astype(np.int64)
        return np.resize(away + 3 * np.arange(len(away)) + number + far, size)

    return noises


def _check_drawn(mechanism: Any, one: Any, drawn: Drawn) -> None:
    if hasattr(mechanism, "probabilities"):
        assert not drawn.scales, "it adds noise, and exposes no scales"
        _check_choices(np.atleast_2d(mechanism.probabilities(one)), drawn.laws)
        return
    sizes = [np.size(centre) for centre in mechanism.centres(one)]
    expected = list(zip(map(Fraction, mechanism.scales), sizes, strict=True))
    assert expected == drawn.scales, "it draws other noise than its law says"
    assert not drawn.laws, "it chooses, and exposes no probabilities"


def _check_choices(exposed: np.ndarray, drawn: Sequence[np.ndarray]) -> None:
    expected = [] if exposed.shape[1] == 1 else list(exposed)  # what is certain needs no draw
    assert len(expected) == len(drawn), "it makes other choices than its law says"
    for one, other in zip(expected, drawn, strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=0), "it chooses by another law than it exposes"

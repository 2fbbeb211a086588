"""Local: one's own function under model `individual`, which is NOT differential privacy (see mechanisms/local.py)."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Arithmetic, Guarantee, Model, Protects
from discretion.mechanisms.local import WARNING, fence, noisy
from discretion.mechanisms.own import MOST_CHECKED, Function
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Specification
from discretion.release import Error, IndividualRelease

Sensitivity = Callable[[Sequence[Any]], float]  # one state per person -> how far one person can move f, from here
SMALL = (1, 2, 3)  # people of the universes on which a sensitivity is checked


def answer_locally(
    states: Sequence[Any],
    *,
    epsilon: ArrayLike,
    possible: Sequence[Any],
    function: Function,
    sensitivity: Sensitivity | None = None,
    candidates: Sequence[Any] = (),
    protects: Protects = "value",
    absent: Any = None,
    model: Model = "personalized",
    acknowledged: bool = False,
    rng: Rng = None,
) -> IndividualRelease:
    """Answer one's own function of `states`, one per person, with noise for what people can do to this very data.

    `possible` lists all states there are. A function to numbers, f: D -> R^k, gets Laplace noise of scale local
    sensitivity / ε ([SDSM17] Proposition 5). Without `sensitivity` every change of one person is tried, and each person
    has their own ε; `sensitivity(states)` is checked on every dataset of one to three people first, and refused if one
    person moves the function further. With `candidates`, the function gives one of them, and the answer is the true one
    with weight e^ε, or one that a single person could make true with weight 1 each; another answer of the function
    counts as the first candidate. People who chose 0 are left out.
    """
    fence(model, acknowledged)
    refuse_states(states, possible, protects, absent)
    specification, cohort = Specification.assign(np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(states)))
    prices, known = specification.micro[cohort], set(possible)
    used = [(state if state in known else possible[0], int(price)) for state, price in zip(states, prices, strict=True)]
    data, micro = [state for state, price in used if price], [price for _, price in used if price]
    strictest = Fraction(specification.strictest, MICRO)
    if candidates:
        answers: tuple[Any, ...] = (_chosen(function, data, possible, candidates, strictest, rng),)
    else:
        if sensitivity is not None:
            check_sensitivity(function, sensitivity, possible)
        scale = _scale(function, sensitivity, data, micro, possible, strictest)
        answers = tuple(noisy(_numbers(function(data)), scale, False, rng).tolist())
    arithmetic: Arithmetic = "exact" if candidates else "float"
    spent = specification.epsilons
    return IndividualRelease(
        columns={"answer": answers},
        errors={"answer": (Error(bias=0.0, noise=inf),) * len(answers)},
        mechanism="local (own function)",
        guarantee=Guarantee.of(
            specification, spent, protects=protects, model="individual", note=WARNING, arithmetic=arithmetic
        ),
        simulated=rng is not None,
    )


def check_sensitivity(function: Function, sensitivity: Sensitivity, possible: Sequence[Any]) -> None:
    """Refuse a local sensitivity that one person exceeds in a universe of one to three people."""
    if len(possible) ** max(SMALL) > MOST_CHECKED:
        raise InvalidDeclaration(f"The check needs from 2 to {int(MOST_CHECKED ** (1 / max(SMALL)))} possible states.")
    for people in SMALL:
        for data in product(possible, repeat=people):
            claimed, truth = float(sensitivity(data)), _numbers(function(data))
            moved = max(float(np.abs(_numbers(function(other)) - truth).sum()) for _, other in _changes(data, possible))
            if not claimed >= moved - 1e-9:
                raise InvalidDeclaration(
                    f"This sensitivity is too small: on the made-up people {data} it is {claimed:g}, and one of them "
                    f"can move the function by {moved:g}."
                )


def _changes(data: Sequence[Any], possible: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Give everything that one person can make of the data, and whose change it is."""
    for person in range(len(data)):
        for state in possible:
            yield person, [*data[:person], state, *data[person + 1 :]]


def _numbers(answer: Any) -> Floats:
    return np.atleast_1d(np.asarray(answer, dtype=np.float64))


def _scale(
    function: Function,
    sensitivity: Sensitivity | None,
    data: Sequence[Any],
    micro: Sequence[int],
    possible: Sequence[Any],
    strictest: Fraction,
) -> Fraction:
    if sensitivity is not None:
        return Fraction(float(sensitivity(data))) / strictest
    truth, needed = _numbers(function(data)), Fraction(0)
    for person, other in _changes(data, possible):
        moved = Fraction(float(np.abs(_numbers(function(other)) - truth).sum()))
        needed = max(needed, moved * MICRO / micro[person])
    return needed


def reachable(function: Function, data: Sequence[Any], possible: Sequence[Any], candidates: Sequence[Any]) -> list[int]:
    """Return the places of the candidates that the data, or data that one person changed, can have; the true first."""
    places = {candidate: place for place, candidate in enumerate(candidates)}
    every = [function(data), *(function(other) for _, other in _changes(data, possible))]
    return list(dict.fromkeys(places.get(answer, 0) for answer in every))  # an unknown answer must not be an error


def _chosen(
    function: Function,
    data: Sequence[Any],
    possible: Sequence[Any],
    candidates: Sequence[Any],
    epsilon: Fraction,
    rng: Rng,
) -> Any:
    found = reachable(function, data, possible, candidates)
    scores = [0] + [-int(epsilon * MICRO)] * (len(found) - 1)
    return candidates[found[noise.choose(scores, MICRO, rng)]]


def refuse_states(states: Sequence[Any], possible: Sequence[Any], protects: Protects, absent: Any) -> None:
    """Refuse people and possible states that do not fit together."""
    if len(states) == 0 or len(set(possible)) != len(possible):
        raise InvalidDeclaration("There must be at least one person, and every possible state must be listed once.")
    if protects not in ("value", "presence"):
        raise InvalidDeclaration(f"protects must be 'value' or 'presence', got {protects!r}.")
    if protects == "presence" and absent not in possible:
        raise InvalidDeclaration(
            f"protects='presence' needs the state of somebody who is absent, {absent!r}, among the possible states."
        )

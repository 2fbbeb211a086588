"""Own: choose an answer to one's own function so that nobody loses more than their epsilon (the paper's PE)."""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Protects
from discretion.learn.local import refuse_states
from discretion.mechanisms.own import Distance, Function, Own, brute_force, check_distance
from discretion.noise import Rng, Rule
from discretion.preference import Specification
from discretion.release import Error, Release


def choose(
    states: Sequence[Any],
    *,
    epsilon: ArrayLike,
    candidates: Sequence[Any],
    possible: Sequence[Any],
    function: Function | None = None,
    distance: Distance | None = None,
    protects: Protects = "value",
    absent: Any = None,
    rule: Rule = "exponential",
    rng: Rng = None,
) -> Release:
    """Choose one of `candidates` as the answer of one's own function, at everybody's own epsilon ([JYC15] PE).

    `states` has one state per person of the register; `possible` lists all states there are. Give `function(states)`
    alone and the cost of each candidate is found by brute force (few people and states), or give `distance(states,
    prices)`, which returns for each candidate the least sum of prices of people whose change makes it the answer. A
    distance is checked on every dataset of small universes first, and refused if anybody's change moves a cost by more
    than their price. With protects="presence", people who are not in the data have the state `absent`.
    """
    _refuse(states, possible, function, distance, protects, absent)
    if distance is not None:
        check_distance(distance, candidates, possible, function)
    specification, cohort = Specification.assign(np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(states)))
    used: Distance = distance or brute_force(function, possible, candidates)  # type: ignore[arg-type]  # one is given
    own = Own(candidates=tuple(candidates), distance=used, rule=rule)
    known = set(possible)
    placed = [state if state in known else possible[0] for state in states]  # an unknown state must not be an error
    answer = own.choose(placed, specification.micro[cohort].tolist(), rng)
    note = "" if distance is None else "rests on the distance given, which was checked on small universes only"
    return Release(
        columns={"answer": (answer,)},
        errors={"answer": (Error(bias=0.0, noise=inf),)},
        mechanism="exponential (own function)",
        guarantee=Guarantee.of(specification, specification.epsilons, protects=protects, note=note),
        simulated=rng is not None,
        explanation=f"one of {len(candidates)} candidates, by the least sum of epsilon that makes it the answer",
    )


def _refuse(
    states: Sequence[Any],
    possible: Sequence[Any],
    function: Function | None,
    distance: Distance | None,
    protects: Protects,
    absent: Any,
) -> None:
    if function is None and distance is None:
        raise InvalidDeclaration("Give function= (found by brute force) or distance= (and function= to check it by).")
    refuse_states(states, possible, protects, absent)

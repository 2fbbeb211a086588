"""Own: the paper's PE for one's own function, from candidates and a distance, or by brute force on small domains."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from discretion import noise
from discretion.errors import InvalidDeclaration
from discretion.mechanisms.rank import IMPOSSIBLE
from discretion.noise import Floats, Rng, Rule
from discretion.preference import MICRO, Integers

Function = Callable[[Sequence[Any]], Any]  # one state per person -> the answer, which is one of the candidates
Distance = Callable[[Sequence[Any], Sequence[int]], Sequence[int]]  # (states, prices) -> a cost for each candidate
MOST_DATASETS = 200_000  # that brute force looks at
MOST_CHECKED = 5_000  # datasets of a universe on which a distance is checked
PRICES = ((3,), (1, 5), (2, 2), (1, 3, 9))  # of the people of small universes, in any unit


@dataclass(frozen=True, kw_only=True)
class Own:
    """Pick a candidate, likelier the less it would cost to make it the true answer.

    Definition  [JYC15] Definition 10 (PE): P(r) ∝ exp(−c(r)/2), c(r) = −d_f(D, r, Φ): the least sum of ε of people
                whose change makes r the value of f. `distance` computes c in micro-ε for every candidate.
    Guarantee   ε_u, if c is a distance: when u's state changes, no c(r) moves by more than ε_u ([JYC15] Theorem 6, with
                both halves: r's own weight and the normaliser). `brute_force` is one by construction, because the
                distance to a set is 1-Lipschitz. For any other `distance` the guarantee rests on it: `check_distance`
                looks at every dataset of small universes, which finds mistakes and is not a proof for all sizes.
    Neighbours  one person's state changes. If "absent" is one of the states, this covers people who come and go.
    Tested by   tests/mechanisms/test_own.py
    """

    candidates: tuple[Any, ...]
    distance: Distance
    rule: Rule = "exponential"

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidDeclaration("There must be at least one candidate answer.")

    def costs(self, states: Sequence[Any], prices: Sequence[int]) -> Integers:
        """Return c(r) in micro-ε for every candidate. Private. Rounding down keeps it a distance."""
        raw = np.asarray(self.distance(states, prices), dtype=np.float64)
        if raw.shape != (len(self.candidates),) or bool(np.isnan(raw).any()):
            raise InvalidDeclaration(
                f"A distance must return one cost per candidate, {len(self.candidates)} numbers, got shape {raw.shape}."
            )
        return np.floor(np.clip(raw, 0, IMPOSSIBLE)).astype(np.int64)

    def probabilities(self, states: Sequence[Any], prices: Sequence[int]) -> Floats:
        """Return the law of the answer, by candidate."""
        return noise.choice_probabilities(-self.costs(states, prices), 2 * MICRO, self.rule)

    def choose(self, states: Sequence[Any], prices: Sequence[int], rng: Rng) -> Any:
        """Return a private answer."""
        return self.candidates[noise.choose(-self.costs(states, prices), 2 * MICRO, rng, self.rule)]


def brute_force(function: Function, states: Sequence[Any], candidates: Sequence[Any]) -> Distance:
    """Return the exact distance of `function` by looking at every dataset with these states: states^people of them.

    c(r) is the least sum of prices over all datasets whose answer is r. A candidate that no dataset has is never
    chosen; which these are depends on the function and the number of people, not on the data.
    """
    known = {candidate: place for place, candidate in enumerate(candidates)}

    def distance(actual: Sequence[Any], prices: Sequence[int]) -> list[int]:
        if len(states) ** len(actual) > MOST_DATASETS:
            raise InvalidDeclaration(
                f"Brute force looks at every dataset: {len(states)} states of {len(actual)} people are more than "
                f"{MOST_DATASETS:,}. Give a distance instead."
            )
        costs = [IMPOSSIBLE] * len(candidates)
        for other in product(states, repeat=len(actual)):
            place = known.get(function(other))
            if place is not None:
                moved = sum(price for mine, theirs, price in zip(actual, other, prices, strict=True) if mine != theirs)
                costs[place] = min(costs[place], moved)
        return costs

    return distance


def check_distance(
    distance: Distance, candidates: Sequence[Any], states: Sequence[Any], function: Function | None = None
) -> None:
    """Refuse a distance that breaks one of its proof obligations on a universe of one to three people.

    1. Nobody's change moves any cost by more than their price: this is what the guarantee needs.
    2. Every cost is 0 or more, and with `function`, the true answer costs 0: this is what accuracy needs.
    """
    if len(set(states)) < 2 or len(states) ** 3 > MOST_CHECKED:
        raise InvalidDeclaration(f"The check needs from 2 to {int(MOST_CHECKED ** (1 / 3))} different states.")
    for prices in PRICES:
        scaled = [price * MICRO for price in prices]
        costs = {
            dataset: np.asarray(distance(dataset, scaled), dtype=np.float64)
            for dataset in product(states, repeat=len(prices))
        }
        for dataset, mine in costs.items():
            _refuse_costs(dataset, mine, candidates, function)
            for person, price in enumerate(scaled):
                for state in states:
                    neighbour = (*dataset[:person], state, *dataset[person + 1 :])
                    if bool(np.any(np.abs(mine - costs[neighbour]) > price + 1e-6)):
                        raise InvalidDeclaration(
                            "This distance is not private: on the made-up people "
                            f"{dataset} and {neighbour}, who differ in one person of price {price:,}, a cost moves by "
                            f"{np.abs(mine - costs[neighbour]).max():,.0f}. It may move by the price at most."
                        )


def _refuse_costs(dataset: Any, costs: Floats, candidates: Sequence[Any], function: Function | None) -> None:
    if costs.shape != (len(candidates),) or bool(np.any(~(costs >= 0))):
        raise InvalidDeclaration(
            f"On the made-up people {dataset} the distance is not one cost of 0 or more a candidate."
        )
    if function is not None and function(dataset) in candidates:
        place = list(candidates).index(function(dataset))
        if costs[place] != 0:
            raise InvalidDeclaration(
                f"On the made-up people {dataset} the true answer {candidates[place]!r} costs {costs[place]:g}, not 0."
            )

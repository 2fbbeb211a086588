"""Group: some cohorts that are answered together, once, at the ε of the strictest of them ([LXJJ17])."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discretion.preference import Integers, Specification


class Group(NamedTuple):
    """Some cohorts answered together, once."""

    cohorts: tuple[int, ...]
    micro_epsilon: int

    def people(self, specification: Specification) -> int:
        """Return how many people of the register it has."""
        return int(specification.heads[list(self.cohorts)].sum())


def charges(groups: Sequence[Group], specification: Specification) -> Integers:
    """Return what each cohort has paid, in micro-ε."""
    paid = np.zeros(len(specification.epsilons), dtype=np.int64)
    for group in groups:
        paid[list(group.cohorts)] += group.micro_epsilon
    return paid


def without_dominated(groups: tuple[Group, ...], specification: Specification) -> tuple[Group, ...]:
    """Leave out a group if another has exactly as many people and a larger ε ([LXJJ17] 4.4). Sizes are public."""
    best: dict[int, int] = {}
    for group in groups:
        size = group.people(specification)
        best[size] = max(best.get(size, 0), group.micro_epsilon)
    return tuple(group for group in groups if group.micro_epsilon == best[group.people(specification)])

"""Datasets: generated networks with planted communities, of the sizes published in [AGK16] section 4."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.social.profile import Profiles


@dataclass(frozen=True, kw_only=True)
class Network:
    """The size of a user-item data set, and communities whose members mostly hold items of their own community."""

    people: int
    items: int
    mean: int  # items a person holds
    communities: int
    outside: float  # how likely an item of another community is, against one's own
    popularity: float  # exponent of the items' popularity: an item of rank r has the weight r^−popularity
    activity: float  # spread of the logarithm of people's sizes
    holders: int = 1  # every item is held by at least so many

    def __post_init__(self) -> None:
        if not self.items * self.holders <= self.people * self.mean < self.people * self.items:
            raise InvalidDeclaration(
                f"{self.people:,} people with {self.mean:,} of {self.items:,} items cannot give every item "
                f"{self.holders:,} holders, or leave nothing to choose."
            )

    def generate(self, rng: Any) -> Profiles:
        """People × mean held items: the largest of random keys, first for every item. Weights are 0 until chosen."""
        home, kind = rng.integers(0, self.communities, self.people), rng.integers(0, self.communities, self.items)
        key = np.where(home[:, None] == kind, np.float32(0), np.float32(np.log(self.outside)))
        key -= (self.popularity * np.log1p(rng.permutation(self.items))).astype(np.float32)
        key += (self.activity * rng.standard_normal(self.people)).astype(np.float32)[:, None]
        key -= np.log(-np.log(np.maximum(rng.random(key.shape, dtype=np.float32), np.float32(1e-30))))
        held = np.zeros(key.shape, dtype=bool)
        first = np.argpartition(-key, self.holders - 1, axis=0)[: self.holders]
        held[first, np.arange(self.items)] = True
        key[held] = -np.inf
        rest = self.people * self.mean - int(held.sum())
        held.flat[np.argpartition(-key.ravel(), rest)[:rest]] = True
        return Profiles.of(*np.nonzero(held), people=self.people, items=self.items)


# The sizes are the published ones. The other parameters were searched for so that recall without privacy, by chance
# and under HDP resembles an earlier simulation, which itself only knew the sizes: that recall agrees with it is no
# evidence; how curves lie to one another is.
NETWORKS = {
    "Survey": Network(people=113, items=196, mean=68, communities=5, outside=0.5, popularity=0.6, activity=0.4),
    "Digg": Network(
        people=481, items=1_237, mean=317, communities=12, outside=0.2, popularity=0.4, activity=0.55, holders=10
    ),
    "Delicious": Network(
        people=504, items=51_807, mean=135, communities=20, outside=0.0375, popularity=0.65, activity=0.88
    ),
}


def survey(seed: int = 0) -> Profiles:
    """A small network to try things on: 113 people, 68 items each."""
    return NETWORKS["Survey"].generate(simulation(seed))

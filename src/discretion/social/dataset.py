"""Datasets: generated profiles with planted communities, of the sizes published in [AGK16] section 4."""

import numpy as np

from discretion.noise import simulation
from discretion.social.profile import Profiles


def planted(
    *,
    people: int,
    items: int,
    mean_size: float,
    communities: int,
    affinity: float,
    spread: float,
    skew: float,
    seed: int = 0,
) -> Profiles:
    """People who mostly hold items of their own community.

    An item's weight is rank^−skew, times `affinity` for members of its community; sizes are lognormal with `spread`
    around `mean_size`. Privacy weights are 0 until chosen.
    """
    rng = simulation(seed)
    wanted = rng.lognormal(0.0, spread, people)
    for _ in range(50):  # nobody holds more than there is: scale until the mean is right all the same
        wanted *= mean_size / np.clip(wanted, 1, items).mean()
    sizes = np.clip(np.rint(wanted), 1, items).astype(np.int64)
    popularity = -skew * np.log(rng.permutation(items) + 1.0)
    member, topic = rng.integers(0, communities, people), rng.integers(0, communities, items)
    chosen = []
    for person in range(people):  # a weighted draw without replacement: the largest Gumbel keys
        keys = popularity + np.log(affinity) * (topic == member[person]) - np.log(rng.exponential(size=items))
        chosen.append(np.argpartition(-keys, sizes[person] - 1)[: sizes[person]])
    return Profiles.of(np.repeat(np.arange(people), sizes), np.concatenate(chosen), people=people, items=items)


def survey(seed: int = 0) -> Profiles:
    """Like Survey: 113 people, 196 items, 68 each."""
    return planted(people=113, items=196, mean_size=68, communities=4, affinity=4, spread=0.4, skew=0.8, seed=seed)


def digg(seed: int = 0) -> Profiles:
    """Like Digg: 481 people, 1,237 items, 317 each."""
    return planted(people=481, items=1237, mean_size=317, communities=8, affinity=6, spread=0.7, skew=0.8, seed=seed)


def delicious(seed: int = 0) -> Profiles:
    """Like Delicious: 504 people, 51,807 items, 135 each."""
    return planted(
        people=504, items=51_807, mean_size=135, communities=30, affinity=25, spread=0.8, skew=0.62, seed=seed
    )

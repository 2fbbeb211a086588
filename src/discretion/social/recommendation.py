"""Recommendations: noisy counts of what a person's neighbours hold, charged to the neighbours like everything else.

Definition  for every item j: Σ over neighbours u of v_uj x_uj + discrete Laplace of scale 1/ε; the largest are shown.
Guarantee   item j of neighbour u moves one count by v_uj at most, so it loses ε·v_uj; with its weight changing too,
            ε·max(v, v'). The items j are those of the declared catalogue: if they came from the rows, an item of
            weight 0 could be recommended because one person holds it. Who the neighbours are follows from noisy
            similarities. Reading neighbours' profiles as they are, as [AGK16] does, is outside its guarantee.
Neighbours  one item of one neighbour's profile, possibly with its weight.
Tested by   tests/social/test_recommendation.py::test_no_item_of_a_neighbour_loses_more_than_its_weight
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.noise import Floats, discrete_laplace
from discretion.preference import MICRO, Integers, allowance
from discretion.social.exchange import Exchange
from discretion.social.gossip import Clustering
from discretion.social.profile import Profiles
from discretion.social.strangers import NOBODY
from discretion.social.weight import WHOLE, promise


@dataclass(frozen=True, kw_only=True, eq=False)
class Recommendation:
    """Items for one person to look at, best first. For that person only: the items they hold are left out."""

    items: Integers
    scores: Floats  # noisy weighted numbers of neighbours who hold the item
    neighbours: Integers  # who paid
    guarantee: Guarantee  # to each item of each of those neighbours
    simulated: bool


def recommend(
    exchange: Exchange, clustering: Clustering, profiles: Profiles, person: int, *, epsilon: float, count: int = 10
) -> Recommendation:
    """The `count` items most held by the person's neighbours; those who cannot pay ε more are not asked."""
    micro = int(allowance(epsilon))
    if micro <= 0 or count < 1 or not 0 <= person < profiles.people or profiles.people != exchange.people:
        raise InvalidDeclaration(
            f"A recommendation needs one of the {exchange.people} people, an epsilon above 0 and a count of at "
            f"least 1, got epsilon {epsilon!r} and count {count}."
        )
    found = clustering.neighbours[person]
    found = found[found != NOBODY]
    paying = found[exchange.pay(found, micro)]  # before any profile is read
    scale = Fraction(WHOLE * MICRO, micro)
    scores = (weighted_counts(profiles, paying) + discrete_laplace(scale, profiles.items, exchange.rng)) / WHOLE
    scores[profiles.weights[[person]].indices] = -np.inf
    best = np.argsort(-scores, kind="stable")[:count]
    best = best[scores[best] > -np.inf]
    return Recommendation(
        items=best,
        scores=scores[best],
        neighbours=paying,
        guarantee=promise(micro),
        simulated=exchange.rng is not None,
    )


def weighted_counts(profiles: Profiles, people: Integers) -> Integers:
    """Σ v_uj x_uj over these people for every item, in thousandths. Private until noise is added."""
    return np.asarray(profiles.weights[people].sum(axis=0), dtype=np.int64)

"""Item-level privacy: one weight per item, similarities and recommendations that keep it, and their honest totals.

profiles = Profiles.of(person, item, weight, people=9, items=50)  # who holds what, and how private it is
price = split_total(1.0, expected_peers(explore, profiles.people))  # a total of ε = 1 per item of weight 1
exchange = Exchange(ScalarProduct(profiles=profiles, micro_epsilon=price), budget=1.0)
clustering = explore(exchange)                                    # everybody's nearest peers, and what it cost
"""

from discretion.social.exchange import Exchange
from discretion.social.function import Function
from discretion.social.gossip import Clustering, expected_peers, explore, gossip, split_total
from discretion.social.profile import Profiles
from discretion.social.recommendation import Recommendation, recommend
from discretion.social.response import Response
from discretion.social.similarity import Cosine, Dice, Exact, Jaccard, Overlap, ScalarProduct
from discretion.social.stretching import distortion, shrinkage, stretch

__all__ = [
    "Clustering",
    "Cosine",
    "Dice",
    "Exact",
    "Exchange",
    "Function",
    "Jaccard",
    "Overlap",
    "Profiles",
    "Recommendation",
    "Response",
    "ScalarProduct",
    "distortion",
    "expected_peers",
    "explore",
    "gossip",
    "recommend",
    "shrinkage",
    "split_total",
    "stretch",
]

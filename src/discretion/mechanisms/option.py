"""Options: what a mechanism that is asked for by name can be told. Every door takes them as one mapping."""

from typing import Literal, TypedDict

from discretion.mechanisms.level import Level
from discretion.mechanisms.partition import Cuts, Ensemble
from discretion.noise import Rule

MechanismName = Literal[
    "auto",
    "public",
    "weighted",
    "pooled",
    "weighted_rank",
    "stretch",
    "sample",
    "threshold",
    "exponential",
    "minimum",
    "partition",
    "smooth",
]


class Options(TypedDict, total=False):
    """Every option of every mechanism; each mechanism has some of them (docs/mechanisms.md says which)."""

    cap: Level | None  # weighted, weighted_rank, stretch: the largest influence (κ)
    bands: int | None  # pooled: how many bands of ε are distinguished
    rule: Rule | None  # exponential, weighted_rank: how to choose among candidates
    upper: bool  # exponential: the higher one of two medians
    threshold: Level  # sample, threshold
    rescaled: bool | None  # sample: correct for the people who are left out
    groups: int | None  # partition: how many groups of people
    cuts: Cuts  # partition: where to separate groups
    ensemble: Ensemble | None  # partition: how answers of groups are combined
    rounds: int  # partition: how often people are divided anew
    smallest: int  # partition: the fewest people of a group
    drop: bool  # partition: leave the strictest out where that is better
    gamma: float  # smooth
    beta: float | None  # smooth
    place: int  # model "individual": 2 is the second largest (or smallest) value, and so on
    discrete: bool  # model "individual": discrete noise
    group_epsilon: tuple[float, ...]  # model "individual": ε of a group of one, two, ... people

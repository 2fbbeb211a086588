"""Assumption: predicted errors under each one, side by side. Nothing is drawn and nothing is charged."""

from dataclasses import dataclass, replace
from functools import lru_cache

from discretion.errors import Unsuitable
from discretion.mechanisms import MECHANISMS, Belief, Mechanism
from discretion.mechanisms.belief import Assume
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.render.sheet import amount
from discretion.statistics import Aggregate

NAMES: dict[str, Assume] = {"nothing": None, "gradual": "gradual", "independent": "independent"}
CLAIMS = {
    "nothing": "holds for any data",
    "gradual": "people of similar ε are alike; the relation of choices and values is estimated",
    "independent": "choices are unrelated to values; wrong if they are related",
}
USUAL = (
    "pooled",
    "weighted",
    "weighted_rank",
    "exponential",
    "stretch",
    "threshold",
    "minimum",
)  # the others never win

MOST_KEPT = 2_000  # levels of a mechanism that is kept: one for each person would fill the memory


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The least predicted error under one assumption."""

    assume: str
    mechanism: str
    error: Error
    most: float  # ε that anybody pays

    def __str__(self) -> str:
        size = f"{self.error.total:.2%} of the ranks" if self.error.unit == "rank" else _digits(self.error.total)
        costs = f"{self.mechanism}, pay up to {amount(self.most)}"
        return f"assuming {self.assume + ':':<13} error {size} ({costs}); {CLAIMS[self.assume]}"


def proposed(name: str, aggregate: Aggregate, specification: Specification, belief: Belief) -> Mechanism | str:
    """Return a mechanism tuned for this, or why it is unsuitable; the last ones are kept: questions repeat."""
    if name != "pooled" and belief.assume == "gradual":
        belief = replace(belief, assume=None)  # only `pooled` uses it
    tune = _tuned if len(specification.epsilons) <= MOST_KEPT else _tuned.__wrapped__
    return tune(name, aggregate, specification, belief)


@lru_cache(maxsize=256)
def _tuned(name: str, aggregate: Aggregate, specification: Specification, belief: Belief) -> Mechanism | str:
    try:
        return MECHANISMS[name](aggregate, specification, belief)
    except Unsuitable as refusal:
        return str(refusal)


def predictions(aggregate: Aggregate, specification: Specification, belief: Belief) -> tuple[Prediction, ...]:
    """One for every assumption that some mechanism uses; what is expected stays as it is."""
    found = []
    for name, assume in NAMES.items():
        assumed = Belief(assume=assume, expect=belief.expect)
        tried = {usual: proposed(usual, aggregate, specification, assumed) for usual in USUAL}
        suitable = [(usual, one) for usual, one in tried.items() if not isinstance(one, str)]
        if suitable:
            usual, best = min(suitable, key=lambda tried: tried[1].error.ranked)
            most = max(loss.micro_epsilon for loss in best.guarantee.losses.values())
            found.append(Prediction(assume=name, mechanism=usual, error=best.error, most=most / MICRO))
    return tuple(found)


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"

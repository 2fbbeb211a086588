"""Assumption: predicted errors under each one, side by side. Nothing is drawn and nothing is charged."""

from dataclasses import dataclass

from discretion.errors import Unsuitable
from discretion.mechanisms import MECHANISMS, Belief
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


def predictions(aggregate: Aggregate, specification: Specification, belief: Belief) -> tuple[Prediction, ...]:
    """One for every assumption that some mechanism uses; what is expected stays as it is."""
    found = []
    for name, assume in NAMES.items():
        assumed = Belief(assume=assume, expect=belief.expect)
        tried = [one for usual in USUAL if (one := _predicted(name, usual, aggregate, specification, assumed))]
        if tried:
            found.append(min(tried, key=lambda one: one.error.ranked))
    return tuple(found)


def _predicted(
    assume: str, name: str, aggregate: Aggregate, specification: Specification, belief: Belief
) -> Prediction | None:
    try:
        mechanism = MECHANISMS[name](aggregate, specification, belief)
    except Unsuitable:
        return None
    most = max(loss.micro_epsilon for loss in mechanism.guarantee.losses.values())
    return Prediction(assume=assume, mechanism=name, error=mechanism.error, most=most / MICRO)


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"

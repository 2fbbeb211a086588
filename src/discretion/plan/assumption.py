"""Assumption: predicted errors under each one, side by side. Nothing is drawn and nothing is charged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms import MECHANISMS, Belief, Mechanism, together
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.joint import Kin
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.render.number import percent, upwards
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

NEARLY_0 = 1e-9  # errors below this are not told apart
MOST_KEPT = 2_000  # levels of a mechanism that is kept: one for each person would fill the memory


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The least predicted error under one assumption."""

    assume: str
    mechanism: str
    error: Error
    most: float  # ε that anybody pays

    def __str__(self) -> str:
        wide = self.error.half_width()
        size = f"{wide:.2%} of the ranks" if self.error.unit == "rank" else digits(wide)
        costs = f"{self.mechanism}, pay up to {amount(upwards(self.most, 3))}"
        return f"assuming {self.assume + ':':<13} ± {size} at 95% ({costs}); {CLAIMS[self.assume]}"


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
        best = _best(aggregate, specification, Belief(assume=assume, expect=belief.expect))
        if best is not None:
            usual, made = best
            found.append(Prediction(assume=name, mechanism=usual, error=made.error, most=_most(made.guarantee)))
    return _different(found)


def _different(found: Sequence[Prediction]) -> tuple[Prediction, ...]:
    """Return those that their assumption makes a difference to: no mechanism for ranks estimates a relation."""
    nothing = [one for one in found if one.assume == "nothing"]
    same = [one for one in found if one.assume == "gradual" and nothing and one.error == nothing[0].error]
    return tuple(one for one in found if one not in same)


def _best(aggregate: Aggregate, specification: Specification, belief: Belief) -> tuple[str, Mechanism] | None:
    tried = {usual: proposed(usual, aggregate, specification, belief) for usual in USUAL}
    suitable = [(usual, one) for usual, one in tried.items() if not isinstance(one, str)]
    return min(suitable, key=lambda tried: tried[1].error.ranked, default=None)


def _most(guarantee: Guarantee) -> float:
    return max(loss.micro_epsilon for loss in guarantee.losses.values()) / MICRO


@dataclass(frozen=True, kw_only=True)
class Kindred:
    """Aggregates that can be released together, and what each may spend alone and all of them together."""

    kin: tuple[Kin, ...]
    grid: Aggregate
    alone: tuple[Specification, ...]
    whole: Specification

    def predictions(self, place: int, belief: Belief) -> tuple[Prediction, ...]:
        """Return the least predicted errors of one of them, released together where that is better."""
        found = []
        for name, assume in NAMES.items():
            best = _kindred(self, Belief(assume=assume, expect=belief.expect))
            if best:
                found.append(replace(best[place], assume=name))
        return _different(found)


@lru_cache(maxsize=64)  # every member of a family asks
def _kindred(kindred: Kindred, belief: Belief) -> tuple[Prediction, ...]:
    """Return a prediction for every member; none if one of them cannot be answered."""
    alone = [_best(one.aggregate, each, belief) for one, each in zip(kindred.kin, kindred.alone, strict=True)]
    best = [one for one in alone if one is not None]
    if len(best) < len(alone):
        return ()
    found = together(kindred.kin, kindred.grid, kindred.whole, belief, [one.error for _, one in best])
    if found is None:
        return tuple(
            Prediction(assume="", mechanism=name, error=one.error, most=_most(one.guarantee)) for name, one in best
        )
    name, made = found
    most = _most(made.guarantee)
    return tuple(Prediction(assume="", mechanism=name, error=one.error, most=most) for one in made.estimates)


def reach(error: Error) -> str:
    """Return the 95% error as text, as it stands next to an answer."""
    half = error.half_width()
    return f"rank ± {percent(half)}" if error.unit == "rank" else f"± {upwards(half, 2):,.12g}"


def digits(number: float) -> str:
    """Three digits, or all of those left of the point: 34,360 is read more easily than 3.44e+04; less is nearly 0."""
    if 0 < number < NEARLY_0:
        return f"<{NEARLY_0:.0e}"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"

"""Choice: the mechanism for one aggregate, by itself or together with others."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from discretion.errors import Unsuitable
from discretion.mechanisms import Belief, Mechanism, paired, together
from discretion.mechanisms.joint import JointMember, Kin
from discretion.plan.assumption import Kindred, Prediction, predictions
from discretion.plan.family import Family
from discretion.preference import Specification
from discretion.release import Error
from discretion.statistics import Aggregate

MOST_COMPARED = 2_000  # levels for which assumptions are compared


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One mechanism considered for one aggregate: tuned, or unsuitable for a reason."""

    name: str
    mechanism: Mechanism | None = None
    reason: str = ""

    @property
    def error(self) -> Error | None:
        return self.mechanism.error if self.mechanism is not None else None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The mechanism chosen for one aggregate, and everything it was chosen over."""

    aggregate: Aggregate
    chosen: Candidate
    candidates: tuple[Candidate, ...]  # best first, unsuitable ones last
    specification: Specification  # what each cohort may spend on it
    label: str = ""  # the aggregate in the words of the question
    belief: Belief = field(default_factory=Belief)
    kindred: Kindred | None = None  # those it may be released together with, and
    place: int = 0  # its place among them

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """The predicted error under nothing, gradual and independent.

        Left out where the answer is exact, and where there are so many levels that planning three times takes long.
        """
        few = len(self.specification.epsilons) <= MOST_COMPARED
        if not self.mechanism.error.total or not few or self.chosen.name in ("paired", "local"):
            return ()
        if self.kindred is not None:
            return self.kindred.predictions(self.place, self.belief)
        return predictions(self.aggregate, self.specification, self.belief)

    @property
    def mechanism(self) -> Mechanism:
        if self.chosen.mechanism is None:
            raise Unsuitable(self.chosen.reason)
        return self.chosen.mechanism


def joined(
    family: Family, alone: Sequence[Choice], specification: Specification, belief: Belief, forced: str = ""
) -> tuple[list[Choice], bool]:
    """Return the choices of a family, released together if none of them is as good alone, and whether they are.

    With `forced`, they are released by that mechanism, better or not.
    """
    kindred = Kindred(
        kin=tuple(
            Kin(aggregate=choice.aggregate, wide=place == family.wide)
            for place, choice in zip(family.places, alone, strict=True)
        ),
        grid=alone[family.places.index(family.base)].aggregate,
        alone=tuple(choice.specification for choice in alone),
        whole=specification,
    )
    choices = [replace(choice, kindred=kindred, place=place) for place, choice in enumerate(alone)]
    errors = [choice.mechanism.error for choice in alone]
    found = together(kindred.kin, kindred.grid, specification, belief, errors, forced)
    if found is None:
        return choices, False
    name, made = found
    candidates = [Candidate(name=name, mechanism=JointMember(joint=made, place=place)) for place in range(len(choices))]
    members = [
        replace(choice, chosen=one, candidates=(one, *choice.candidates), specification=specification)
        for one, choice in zip(candidates, choices, strict=True)
    ]
    return members, True


def paired_choices(
    family: Family, sums: Sequence[Choice], specification: Specification, belief: Belief, mechanism: str
) -> list[Choice]:
    """Return the choices of nine sums about two columns; only those that show a statistic have a label."""
    if mechanism not in ("auto", "paired"):
        raise Unsuitable(f"Mechanism {mechanism!r} cannot answer {sums[0].label}: it is `paired`. Leave mechanism out.")
    kin = [Kin(aggregate=one.aggregate, pair=pair) for one, pair in zip(sums, family.pairs, strict=True)]
    made = paired.propose(kin, specification, belief)
    found = []
    for place, (one, pair) in enumerate(zip(sums, family.pairs, strict=True)):
        chosen = Candidate(name="paired", mechanism=JointMember(joint=made, place=place))
        label = one.label if pair.statistic is not None else ""
        found.append(replace(one, chosen=chosen, candidates=(chosen,), specification=specification, label=label))
    return found

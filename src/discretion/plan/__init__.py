"""Choose the mechanism with the smallest predicted error, from public information only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import isfinite
from operator import add
from typing import Any, cast

import numpy as np

from discretion.errors import Unsuitable
from discretion.guarantee import Guarantee
from discretion.mechanisms import BY_NAME, MECHANISMS, TOGETHER, Belief, answer
from discretion.mechanisms.joint import JointMember
from discretion.mechanisms.option import Options
from discretion.mechanisms.rounding import with_rounding
from discretion.noise import Floats, Rng
from discretion.plan.assumption import Prediction, digits, proposed, reach
from discretion.plan.choice import Candidate, Choice, joined, paired_choices
from discretion.plan.family import Family
from discretion.plan.option import checked, told
from discretion.preference import MICRO, Specification
from discretion.release import Error
from discretion.render.explanation import Explanation
from discretion.render.sheet import Sheet, Shown, amount
from discretion.statistics import Aggregate, Request, Statistics

INEXACT = "Its arithmetic is not exact. Ask for it by name."
NOTABLY = 0.9  # an error below this part of ours is worth a line
FROM_ONE = "are computed from one release."  # ends a line that names aggregates
SPLIT = "releases."  # ends a line that tells how many releases there are
ANSWERED = "This question was answered before: asking it again is free. Asked anew, it would cost what follows."
MOST_LEVELS = 8  # levels of preference shown before a sheet says how many more there are


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Shown):
    """Says how a question will be answered, what it will cost whom, and how good the answer will be."""

    specification: Specification  # what each cohort may spend on a choice of weight 1
    choices: tuple[Choice, ...]
    source: Any = None  # which rows, in the engine's words; it names people
    families: tuple[Family, ...] = ()  # the choices that are released together
    options: Mapping[str, Any] = field(default_factory=dict)  # of the mechanism that was asked for
    share: float | None = None  # of everybody's allowance, where there is a ledger
    also: str = ""  # what the guarantee covers besides, for joined tables
    within: float | None = None  # the largest 95% error that was asked for
    answered: bool = False  # before: asking again is free

    @property
    def releases(self) -> tuple[Choice, ...]:
        """Return the choices that are paid for: of those released together, the first."""
        later = {place for family in self.families for place in family.places[1:]}
        return tuple(choice for place, choice in enumerate(self.choices) if place not in later)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return what is charged: all releases together."""
        return replace(reduce(add, (choice.mechanism.guarantee for choice in self.releases)), also=self.also)

    def draw(self, statistics: Sequence[Statistics], rng: Rng) -> list[tuple[Floats, tuple[Error, ...]]]:
        """Return answers and errors of every choice; those released together come from one draw."""
        found: dict[int, tuple[Floats, tuple[Error, ...]]] = {}
        for family in self.families:
            first = self.choices[family.places[0]].mechanism
            if isinstance(first, JointMember):
                rows = statistics[family.wide].counts if family.wide is not None else None
                about: Any = [statistics[place] for place in family.places] if family.pairs else statistics[family.base]
                answers = first.joint.answer(about, rows, rng)
                found |= dict(zip(family.places, answers, strict=True))
        for place, (choice, about) in enumerate(zip(self.choices, statistics, strict=True)):
            if place not in found:
                found[place] = answer(choice.mechanism, about, rng)
        people = self.specification.size
        return [
            (values, with_rounding(choice.aggregate, people, values, errors))
            for choice, (values, errors) in zip(self.choices, map(found.__getitem__, range(len(found))), strict=True)
        ]

    @property
    def request(self) -> Request[Any]:
        """Return what the engine must compute."""
        return Request(measures=tuple(choice.mechanism.measure for choice in self.choices), source=self.source)

    @property
    def comparison(self) -> tuple[str, ...]:
        """For every choice, its predicted errors under the assumptions that can be made, one line each."""
        several = len(self.choices) > 1
        return tuple(
            f"{choice.label}: {prediction}" if several else f"{prediction}"
            for choice in self.choices
            if not choice.label.endswith((", from below", ", from above"))  # the sides of an interval
            for prediction in choice.predictions
        )

    @cached_property
    def explanation(self) -> Explanation:
        """Return the plan as the ledger and the release keep it: without what other assumptions would have given."""
        return Explanation([*(_choice_sheet(one) for one in self.choices if one.label), _charge_sheet(self)])

    @property
    def hint(self) -> tuple[str, ...]:
        """Say in one line how much smaller errors would be under assumptions that were not made; () if not notably."""
        shown = [one for one in self.choices if one.label and not one.label.endswith((", from below", ", from above"))]
        better = [(one, found) for one in shown if (found := _better(one))]
        if not better:
            return ()
        if len(shown) > 1:
            times = max(one.mechanism.error.half_width() / min(map(_reach, found)) for one, found in better)
            return (f"An assumption would make errors up to {times:.2g} times smaller: `explain` compares them.",)
        ((one, found),) = better
        ways = " or ".join(f'{reach(p.error)} with assume="{p.assume}"' for p in found)
        now = reach(one.mechanism.error)
        return (f"Predicted 95% error: {now}. An assumption would make it {ways}: `explain` says what it means.",)

    def sheets(self) -> list[Sheet]:
        """Return every mechanism considered for every aggregate, and what each level pays for all of them together."""
        chosen = (_choice_sheet(one, one.predictions) for one in self.choices if one.label)
        before = [Sheet(notes=(ANSWERED,))] if self.answered else []
        return [*before, *chosen, _charge_sheet(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return every mechanism considered for every aggregate, and what each level pays for all of them together."""
        losses = self.guarantee.losses
        heads = enumerate(self.specification.people)
        levels = [{"people": people, "pays": losses[cohort].micro_epsilon / MICRO} for cohort, people in heads]
        asked = {"share": self.share, "options": dict(self.options), "answered": self.answered}
        aggregates = [_choice_dict(one) for one in self.choices if one.label]
        return {"aggregates": aggregates, "levels": levels, "guarantee": str(self.guarantee), **asked}


def choose(
    aggregates: Sequence[Aggregate],
    specification: Specification,
    belief: Belief,
    *,
    mechanism: str = "auto",
    source: Any = None,
    weights: Sequence[int] = (),
    labels: Sequence[str] = (),
    families: Sequence[Family] = (),
    options: Options | None = None,
) -> Plan:
    """Rank every mechanism for every aggregate; `mechanism` forces one.

    `weights`, where given, say how many times `specification` each aggregate may spend. Of `families`, those are
    released together whose aggregates all become better by it.
    """
    given = checked(mechanism, cast(Mapping[str, Any] | None, options))
    specification.strictest  # noqa: B018  refuses when nobody has anything to spend
    parts = list(weights) or [1] * len(aggregates)
    alone = "auto" if mechanism in TOGETHER else mechanism
    choices = [
        _choose_one(aggregate, label, specification.times(weight), belief, alone, given)
        for aggregate, weight, label in zip(aggregates, parts, labels or [""] * len(aggregates), strict=True)
    ]
    better = [family for family in families if family.pairs]
    for family in better:
        spends = specification.times(sum(parts[place] for place in family.places))
        members = paired_choices(family, [choices[place] for place in family.places], spends, belief, mechanism)
        for place, choice in zip(family.places, members, strict=True):
            choices[place] = choice
    forced = mechanism if mechanism in TOGETHER else ""
    for whole in (one for one in families if alone == "auto" and not one.pairs):
        for family in (whole, *whole.smaller):
            spends = specification.times(sum(parts[place] for place in family.places))
            members, is_better = joined(family, [choices[place] for place in family.places], spends, belief, forced)
            if is_better or family is whole:  # the whole family is what assumptions are compared for
                for place, choice in zip(family.places, members, strict=True):
                    choices[place] = choice
            if is_better:
                better.append(family)
                break
    released = {place for family in better for place in family.places}
    left = [one.label for place, one in enumerate(choices) if place not in released and one.chosen.name != "public"]
    if forced and left:
        raise Unsuitable(
            f"Mechanism {forced!r} answers several aggregates of one column from one release, and cannot answer "
            f"{left[0]} here. Leave mechanism out."
        )
    return Plan(
        specification=specification, choices=tuple(choices), source=source, families=tuple(better), options=given
    )


def _choose_one(
    aggregate: Aggregate,
    label: str,
    specification: Specification,
    belief: Belief,
    forced: str,
    options: Mapping[str, Any],
) -> Choice:
    candidates = sorted(
        (
            Candidate(name=name, reason=INEXACT)  # not tuned: it could not be chosen
            if name in BY_NAME and name != forced
            else _candidate(name, aggregate, specification, belief, options if name == forced else {})
            for name in MECHANISMS
        ),
        key=lambda candidate: candidate.error.ranked if candidate.error is not None else float("inf"),
    )
    chosen = next(c for c in candidates if c.name == forced or (forced == "auto" and not _is_float(c)))
    if chosen.mechanism is None and forced == "auto":
        raise Unsuitable("\n".join([f"No mechanism answers {label or aggregate.kind}:", *_reasons(candidates)]))
    if chosen.mechanism is None:
        raise Unsuitable(f"Mechanism {forced!r} cannot answer {label or aggregate.kind}. {chosen.reason}")
    return Choice(
        aggregate=aggregate,
        chosen=chosen,
        candidates=tuple(candidates),
        specification=specification,
        label=label or aggregate.kind,
        belief=belief,
    )


def _reasons(candidates: Sequence[Candidate]) -> list[str]:
    """Say why each is unsuitable; those with one reason share a line."""
    names: dict[str, list[str]] = {}
    for candidate in candidates:
        names.setdefault(candidate.reason, []).append(candidate.name)
    return [f"  {', '.join(who)}: {reason}" for reason, who in names.items()]


def _is_float(candidate: Candidate) -> bool:
    """Without exact arithmetic: only by name, never chosen automatically."""
    return candidate.mechanism is not None and candidate.mechanism.guarantee.arithmetic == "float"


def _candidate(
    name: str, aggregate: Aggregate, specification: Specification, belief: Belief, options: Mapping[str, Any]
) -> Candidate:
    if not options:
        found = proposed(name, aggregate, specification, belief)
        return Candidate(name=name, reason=found) if isinstance(found, str) else Candidate(name=name, mechanism=found)
    try:
        return Candidate(name=name, mechanism=MECHANISMS[name](aggregate, specification, belief, **options))
    except Unsuitable as refusal:
        return Candidate(name=name, reason=str(refusal))


def _better(choice: Choice) -> tuple[Prediction, ...]:
    """Return the predictions whose error is notably smaller than that of the chosen mechanism."""
    ours = choice.mechanism.error
    same = [one for one in choice.predictions if one.error.unit == ours.unit]
    return tuple(one for one in same if 0 < _reach(one) < NOTABLY * ours.half_width())


def _reach(prediction: Prediction) -> float:
    return prediction.error.half_width()


def _told(plan: Plan) -> list[str]:
    """Say what was asked for besides the question."""
    share = [f"share {plan.share:g} of everybody's allowance"] if plan.share is not None else []
    return [*share, *told(plan.options)]


def _split(plan: Plan) -> list[str]:
    """Say how what everybody may spend is shared out."""
    several = len(plan.releases)
    lines = [f"What everybody may spend is split over {several} {SPLIT}"] if several > 1 else []
    lines += [
        f"{', '.join(labels)} {FROM_ONE}"
        for family in plan.families
        if len(labels := [label for place in family.places if (label := plan.choices[place].label)]) > 1
    ]
    return lines


# As sheets ----------------------------------------------------------------------------------------------------------


def _choice_sheet(choice: Choice, predicted: Sequence[Prediction] = ()) -> Sheet:
    suitable = [candidate for candidate in choice.candidates if candidate.error is not None]
    ranked = choice.chosen.error is not None and choice.chosen.error.unit == "rank"
    ranks = ("errors are in ranks: a share of the rows that are asked about",) if ranked else ()
    words = "95% error: the ± of an answer, as predicted; RMSE: the root mean squared error, which is typical"
    return Sheet(
        title=f"{choice.label}: {choice.chosen.name}",
        columns=("mechanism", "95% error", "RMSE", "bias", "noise", "compared"),
        rows=tuple(_candidate_row(candidate, choice.chosen) for candidate in suitable),
        notes=(
            words,
            *ranks,
            *_stepped(choice),
            *_assumed(choice),
            *_plain(choice),
            *map(str, predicted),
            *(f"not {c.name}: {c.reason}" for c in choice.candidates if c.error is None),
        ),
        numbers=frozenset({"95% error", "RMSE", "bias", "noise", "compared"}),
    )


def _stepped(choice: Choice) -> list[str]:
    """Say how coarse the answers of a quantile are, where that can move them."""
    one = choice.aggregate
    if one.kind != "quantile" or not one.rounding:
        return []
    return [f"values are rounded to steps of {float(one.step):,.6g} first: a finer `grid` can be declared"]


def _assumed(choice: Choice) -> list[str]:
    assumption = choice.mechanism.error.assumption
    return [f"assumes {assumption}: accuracy rests on it, privacy does not"] if assumption else []


def _plain(choice: Choice) -> list[str]:
    """Return what ordinary differential privacy would have given, which must serve the strictest person."""
    strictest = choice.specification.strictest / MICRO
    for candidate in choice.candidates:
        if candidate.name == "minimum" and candidate.error is not None:
            ours, plain = choice.mechanism.error.total, candidate.error.total
            ratio = digits(plain / ours) if 0 < ours < float("inf") > plain else ""
            times = {"": "", "1": ", the same as this one"}.get(ratio, f", {ratio} times this one")
            size = _size(plain, candidate.error)
            return [f"plain DP with everybody at the strictest ε = {amount(strictest)}: RMSE {size}{times}"]
    return []


def _choice_dict(choice: Choice) -> dict[str, Any]:
    return {
        "aggregate": choice.label,
        "mechanism": choice.chosen.name,
        "candidates": [*map(_candidate_dict, choice.candidates)],
        "assumptions": [
            {
                "assume": one.assume,
                "mechanism": one.mechanism,
                "error": one.error.total,
                "within": one.error.half_width(),
                "unit": one.error.unit,
                "pay": one.most,
            }
            for one in choice.predictions
        ],
    }


def _candidate_dict(candidate: Candidate) -> dict[str, Any]:
    error = candidate.error
    if error is None:
        return {"mechanism": candidate.name, "unsuitable": candidate.reason}
    sizes = {"error": error.total, "bias": error.bias, "noise": error.noise, "unit": error.unit}
    sizes["within"] = error.half_width()  # at 95%
    return {"mechanism": candidate.name, **sizes}


def _candidate_row(candidate: Candidate, chosen: Candidate) -> tuple[str, ...]:
    error, best = candidate.error, chosen.error
    if error is None or best is None:
        return candidate.name, "", "", "", "", ""
    ratio = f"{error.total / best.total:.3g}×" if best.total > 0 and isfinite(error.total) else ""
    sizes = [_size(size, error) for size in (error.half_width(), error.total, error.bias, error.noise)]
    return candidate.name, *sizes, "chosen" if candidate is chosen else ratio


def _charge_sheet(plan: Plan) -> Sheet:
    """Return what everybody pays; the middle of a long list of levels is left out."""
    losses = plan.guarantee.losses
    offered = np.sum([choice.specification.micro for choice in plan.releases], axis=0).tolist()
    rows = [
        (f"{people:,}", _epsilon(offered[cohort]), _epsilon(losses[cohort].micro_epsilon))
        for cohort, people in enumerate(plan.specification.people)
    ]
    return Sheet(
        title="What people pay",
        columns=("people", "at most", "pay"),
        rows=_shortened(rows),
        notes=(*_told(plan), *_split(plan), str(plan.guarantee), *filter(None, [plan.guarantee.note])),
        numbers=frozenset({"people", "at most", "pay"}),
    )


def _shortened(rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    if len(rows) <= MOST_LEVELS:
        return tuple(rows)
    half = MOST_LEVELS // 2
    gap = (f"... {len(rows) - 2 * half} more levels", *[""] * (len(rows[0]) - 1))
    return (*rows[:half], gap, *rows[-half:])


def _size(part: float, error: Error) -> str:
    if not isfinite(part):
        return "no bound"
    return f"{part:.2%}" if error.unit == "rank" else digits(part)


def _epsilon(micro: int) -> str:
    return amount(micro / MICRO)

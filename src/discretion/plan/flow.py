"""Flow: the steps that a question to a ledger and a question about arrays have in common.

parts       how many equal parts of what everybody may spend the question needs, or several together
propose     the plan, for what each cohort may spend on one part; it sees no data
draw        the private answers and their errors
conclude    the release
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from discretion.mechanisms import TOGETHER, Belief
from discretion.mechanisms.option import Options
from discretion.mechanisms.paired import PARTS
from discretion.noise import Floats, Rng
from discretion.plan import Plan, choose
from discretion.plan.family import Family
from discretion.plan.interval import W, errors_of, flanked, weights
from discretion.preference import Specification
from discretion.release import Error, Release, kind_of
from discretion.statistics import Statistics, Wanted


@dataclass(frozen=True, kw_only=True)
class Manner:
    """Says how a question is to be answered: what is chosen besides the question itself."""

    mechanism: str = "auto"
    belief: Belief = field(default_factory=Belief)
    with_interval: bool = False  # quantiles: spend a third on an interval in value units
    options: Options | None = None  # of the mechanism
    scale: int = 1  # times that everything is weighted, next to questions that are asked together with this one


def parts(wanted: Sequence[Wanted], manner: Manner) -> int:
    """Return how many parts are paid for: those of public answers go to the others."""
    return _paid(wanted, manner) or 1


def parts_together(several: Sequence[Sequence[Wanted]], manner: Manner) -> int:
    """Return how many parts are paid for by several questions that are asked together."""
    each = zip(several, scales(several), strict=True)
    return sum(_paid(wanted, replace(manner, scale=scale)) for wanted, scale in each) or 1


def scales(several: Sequence[Sequence[Wanted]]) -> list[int]:
    """Return how each of several questions is weighted, so that every aggregate of all of them has the same part."""
    paired = [any(one.pair is not None for one in wanted) for wanted in several]
    return [PARTS if any(paired) and not pairs else 1 for pairs in paired]


def _paid(wanted: Sequence[Wanted], manner: Manner) -> int:
    every = _weights(wanted, manner)
    return sum(every) - sum(weight for weight, one in zip(every, wanted, strict=False) if _is_free(one, manner))


def propose(
    wanted: Sequence[W], specification: Specification, manner: Manner, families: Sequence[Family] = ()
) -> tuple[tuple[W, ...], Plan]:
    """Return everything to be computed, the sides of quantiles last, and the plan for it.

    Of `families`, those are released together whose answers all become better by it.
    """
    belief, mechanism = manner.belief, manner.mechanism
    sides = specification.times(PARTS if any(one.pair is not None for one in wanted) else manner.scale)
    everything = flanked(wanted, sides, belief, mechanism) if manner.with_interval else tuple(wanted)
    plan = choose(
        [one.aggregate for one in everything],
        specification,
        belief,
        mechanism=mechanism,
        weights=_weights(wanted, manner),
        labels=[one.text for one in everything],
        families=families,
        options=manner.options,
    )
    return everything, plan


def draw(
    plan: Plan, wanted: int, statistics: Sequence[Statistics], rng: Rng = None
) -> tuple[list[Floats], list[tuple[Error, ...]]]:
    """Draw the noise; return the answers and errors of the first `wanted` choices, by group."""
    answers = plan.draw(statistics, rng)
    released = [values for values, _ in answers]
    return released[:wanted], errors_of(plan.choices, wanted, released, [errors for _, errors in answers])


def conclude(
    plan: Plan,
    columns: Mapping[str, tuple[Any, ...]],
    errors: Mapping[str, tuple[Error, ...]],
    *,
    entry: str = "",
    rng: Rng = None,
) -> Release:
    """Return the release of these answers, with the plan's guarantee and explanation."""
    release = kind_of(plan.guarantee)(
        columns=dict(columns),
        errors=dict(errors),
        mechanism=" + ".join(dict.fromkeys(choice.chosen.name for choice in plan.choices)),
        guarantee=plan.guarantee,
        simulated=rng is not None,
        entry=entry,
        explanation=plan.explanation,
        share=plan.share,
        within=plan.within,
    )
    better = plan.hint if release.is_wide else ()  # predictions take time
    return replace(release, comparison=(*_left_out(plan), *better))


def _left_out(plan: Plan) -> tuple[str, ...]:
    """Say how many people an answer is without, because they have nothing to spend on it."""
    offered = plan.specification
    many = sum(people for epsilon, people in zip(offered.epsilons, offered.people, strict=True) if not epsilon)
    if not many or not any(loss.micro_epsilon for loss in plan.guarantee.losses.values()):
        return ()
    who = "1 person, who has" if many == 1 else f"{many:,} people, who have"
    return (f"This answer is without {who} nothing left to spend, or chose that their data are not used.",)


def _weights(wanted: Sequence[Wanted], manner: Manner) -> tuple[int, ...]:
    """Return the parts of each; nine sums about two columns have one part together."""
    every = weights(wanted) if manner.with_interval else (1,) * len(wanted)
    paired = [one.pair is not None for one in wanted] + [False] * (len(every) - len(wanted))
    if not any(paired):
        return tuple(manner.scale * weight for weight in every)
    return tuple(weight if pair else PARTS * weight for weight, pair in zip(every, paired, strict=True))


def _is_free(one: Wanted, manner: Manner) -> bool:
    """Return whether the answer is public, so that the others can have its part."""
    counts = one.aggregate.kind in ("count", "people") and one.aggregate.size_is_public
    return counts and manner.mechanism in ("auto", "public", *TOGETHER)

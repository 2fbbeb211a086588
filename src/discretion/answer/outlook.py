"""Outlook: what a question would cost each level, how good it would be, how many such are left, and what would help."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discretion.answer import Question, outlook_of
from discretion.errors import DiscretionError
from discretion.ledger import Cohort, Ledger, Offer
from discretion.plan import Plan
from discretion.plan.assumption import CLAIMS
from discretion.preference import MICRO
from discretion.release.error import Error
from discretion.statistics import Aggregate

ENOUGH = 3  # ways to a useful answer that are offered
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
Change = Literal["assume", "share", "groups", "columns"]


@dataclass(frozen=True, kw_only=True)
class LevelCost:
    """Say what the people of one level would pay."""

    epsilon: float  # their allowance
    people: int
    spent: float  # by those who spent most
    remaining: float  # of those who have least left, except those with nothing left
    pays: float  # those who pay most
    exhausted: int  # people who have nothing left, and pay nothing

    @property
    def part(self) -> float:
        """Return the part of the allowance that the question would use."""
        return self.pays / self.epsilon if self.epsilon else 0.0


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to a better answer: what to change, what it would cost, and how good the answer would be."""

    change: Change
    question: Question
    part: float  # of an allowance that it would use at most
    error: float  # 95% of one answer: the worst of its columns, as a part of the range where answers can lie
    silent: bool  # it would say nothing, either


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Say what a question would cost and how good it would be: all that an analyst needs before asking."""

    question: Question
    plan: Mapping[str, Any]  # every mechanism considered, as `Plan.to_dict` tells it
    levels: tuple[LevelCost, ...]
    left: int | None  # how many such questions everybody can still pay; None: it costs nothing
    errors: tuple[float, ...]  # of every aggregate, at 95%
    silent: tuple[str, ...]  # aggregates whose answers would say nothing
    claims: Mapping[str, str]  # what each assumption claims
    everybody: tuple[bool, ...]  # of every aggregate: whether its error is that of everybody having one row in it
    answered: bool = False  # before: asking again is free
    ways: tuple[Way, ...] = ()

    @property
    def parts(self) -> tuple[float, float]:
        """Return the least and the largest part of an allowance that the question would use."""
        found = [level.part for level in self.levels if level.epsilon and level.people > level.exhausted]
        return (min(found), max(found)) if found else (0.0, 0.0)


def outlook(question: Question, *, ledger: Ledger, own: bool = False) -> Outlook:
    """Return what `question` would cost and how good it would be. Free; it sees no data.

    With `own`, answers to other analysts are not told of.
    """
    plan, offer = outlook_of(question, ledger=ledger, own=own)
    silent = _silent(plan)
    return Outlook(
        question=question,
        plan=plan.to_dict(),
        levels=tuple(_levels(plan, offer)),
        left=_left(plan, offer),
        errors=tuple(choice.mechanism.error.half_width() for choice in plan.choices),
        silent=silent,
        claims=dict(CLAIMS),
        everybody=tuple(_for_everybody(choice.aggregate) for choice in plan.choices),
        answered=plan.answered,
        ways=ways(question, ledger=ledger, own=own) if silent else (),
    )


def ways(question: Question, *, ledger: Ledger, own: bool = False) -> tuple[Way, ...]:
    """Return the cheapest changes after which the answer would say something; if none would, the most promising."""
    found = [
        way
        for change, other in _others(replace(question, within=None))
        if (way := _cheapest(change, other, ledger, own)) is not None
    ]
    useful = [way for way in found if not way.silent]
    ranked = sorted(useful, key=lambda way: (way.part, way.error)) or sorted(found, key=lambda way: way.error)
    return tuple(ranked[:ENOUGH])


def _cheapest(change: Change, question: Question, ledger: Ledger, own: bool) -> Way | None:
    """Return the question with the smallest share at which it says something, or the largest that can be paid."""
    shares = [question.share] * (change != "share") + [share for share in SHARES if share > question.share]
    best = None
    while shares:  # errors fall as shares grow, so half of what is left can be left out each time
        middle = len(shares) // 2
        way = _way(change, replace(question, share=shares[middle]), ledger, own)
        if way is not None and (best is None or best.silent or not way.silent):
            best = way
        shares = shares[middle + 1 :] if way is not None and way.silent else shares[:middle]
    return best


def _way(change: Change, question: Question, ledger: Ledger, own: bool) -> Way | None:
    try:
        plan, offer = outlook_of(question, ledger=ledger, own=own)
    except DiscretionError:
        return None  # it cannot be asked, or paid
    part = max((level.part for level in _levels(plan, offer)), default=0.0)
    return Way(change=change, question=question, part=part, error=_worst(plan), silent=bool(_silent(plan)))


def _others(question: Question) -> Iterator[tuple[Change, Question]]:
    yield "share", question
    for assume in ("gradual", "independent"):
        if question.assume != assume:
            yield "assume", replace(question, assume=assume)
    for sql in _without_groups(question.sql):
        yield "groups", replace(question, sql=sql)
    for sql in _single_columns(question.sql):
        yield "columns", replace(question, sql=sql)


def _without_groups(sql: str) -> Iterator[str]:
    """Return the question about everybody together, if it is about groups."""
    select = _select(sql)
    if select is None or select.args.get("group") is None:
        return
    keys = [one for one in select.expressions if one.find(exp.AggFunc) is None]
    for name in ("group", "order", "limit", "having"):
        select.set(name, None)
    select.set("expressions", [one for one in select.expressions if one not in keys])
    if select.expressions:
        yield select.sql("duckdb", pretty=True)


def _single_columns(sql: str) -> Iterator[str]:
    """Return a question for the first aggregate alone, if there are several."""
    select = _select(sql)
    if select is None:
        return
    asked = [one for one in select.expressions if one.find(exp.AggFunc) is not None]
    if len(asked) > 1:
        select.set("expressions", [one for one in select.expressions if one not in asked[1:]])
        yield select.sql("duckdb", pretty=True)


def _select(sql: str) -> exp.Select | None:
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except SqlglotError:
        return None
    return tree if isinstance(tree, exp.Select) else None


def _silent(plan: Plan) -> tuple[str, ...]:
    """Return the aggregates whose interval would be all that is possible."""
    return tuple(choice.label for choice in plan.choices if _relative(choice.mechanism.error) >= 1)


def _for_everybody(aggregate: Aggregate) -> bool:
    """Return whether the error depends on how many rows are selected, which is private: not of counts and sums."""
    return aggregate.kind not in ("count", "people", "sum", "distinct") and not aggregate.size_is_public


def _worst(plan: Plan) -> float:
    return max((_relative(choice.mechanism.error) for choice in plan.choices), default=0.0)


def _relative(error: Error) -> float:
    """Return the width of an interval as a part of where answers can lie."""
    if error.limits is None:
        return 0.0
    low, high = error.limits
    return error.width / (high - low) if high > low else 0.0


def _levels(plan: Plan, offer: Offer) -> Iterator[LevelCost]:
    """Return what the people of every level pay; those who have spent differently are one level."""
    losses = plan.guarantee.losses
    levels: dict[int, list[tuple[Cohort, int]]] = {}
    for cohort in offer.cohorts:
        can = cohort.remaining(offer.model) and not plan.answered
        pays = losses[offer.position[cohort.id]].micro_epsilon if can else 0
        levels.setdefault(cohort.micro_allowance, []).append((cohort, pays))
    for allowance, found in sorted(levels.items()):
        able = [cohort for cohort, _ in found if cohort.remaining(offer.model)]
        yield LevelCost(
            epsilon=allowance / MICRO,
            people=sum(cohort.people for cohort, _ in found),
            spent=max(cohort.spent(offer.model) for cohort, _ in found) / MICRO,
            remaining=min((cohort.remaining(offer.model) for cohort in able), default=0) / MICRO,
            pays=max(pays for _, pays in found) / MICRO,
            exhausted=sum(cohort.people for cohort, _ in found if not cohort.remaining(offer.model)),
        )


def _left(plan: Plan, offer: Offer) -> int | None:
    """Return how often the same can be asked, at the same cost, until somebody cannot pay their share in full."""
    losses, fits = plan.guarantee.losses, []
    if plan.answered:
        return None
    for cohort in offer.cohorts:
        left, pays = cohort.remaining(offer.model), losses[offer.position[cohort.id]].micro_epsilon
        asked = cohort.micro_allowance * offer.share.numerator // offer.share.denominator
        if left and pays:
            fits.append(left // pays if offer.partial else max(0, (left - asked) // pays + 1))
    return min(fits) if fits else None

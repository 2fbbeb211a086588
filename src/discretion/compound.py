"""Compound: a statement above released values becomes its private parts, asked one by one, and SQL over them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import floor
from operator import add

from sqlglot import exp

from discretion import answer as flow
from discretion.answer import Paid
from discretion.declaration.table import Table
from discretion.derived import derive, rehearse
from discretion.engines import Engine
from discretion.errors import QueryRefused
from discretion.ledger import Ledger
from discretion.ledger.clock import Clock
from discretion.ledger.offer import exact
from discretion.plan import Plan
from discretion.preference import MICRO
from discretion.query import parse, statement
from discretion.query.division import Division, divide
from discretion.question import Question
from discretion.release import Release

JOINED = (
    "Joined protected tables are answered in a question of their own, without windows, UNION or another query above. "
    "Ask for the aggregates, and compute the rest from the answer."
)


def answer(
    question: Question, *, engine: Engine, ledger: Ledger, clock: Clock, tell: Callable[[str | Paid], None]
) -> Release:
    """Answer a question, or a statement above several of them.

    Every part is stored before anything is computed from it. So another statement above the same parts costs nothing,
    and one that fails loses nothing: its failure depends on released values only.
    """
    try:
        return flow.answer(question, engine=engine, ledger=ledger, clock=clock, tell=tell)
    except QueryRefused as refusal:
        division = _division(question, ledger, refusal)
    rehearse(division)
    parts = _questions(question, division)
    if len(parts) > 1:
        _refuse_together(question, parts, ledger)

    def told(heard: str | Paid) -> None:
        tell(heard if isinstance(heard, str) else replace(heard, statement=question))

    releases = [flow.answer(part, engine=engine, ledger=ledger, clock=clock, tell=told) for part in parts]
    derived = derive(division, releases)
    return replace(derived, guarantee=reduce(add, (one.guarantee for one in releases)))


def explain(question: Question, *, ledger: Ledger) -> Plan:
    """Return the plan that `answer` would charge; of a statement with several parts, all their choices."""
    try:
        return flow.explain(question, ledger=ledger)
    except QueryRefused as refusal:
        division = _division(question, ledger, refusal)
    rehearse(division)
    plans = [flow.explain(part, ledger=ledger) for part in _questions(question, division)]
    if len(plans) == 1:
        return plans[0]
    choices = tuple(
        replace(choice, label=f"part {number}, {choice.label}")
        for number, plan in enumerate(plans)
        for choice in plan.choices
    )
    return replace(plans[0], choices=choices, families=())


def _division(question: Question, ledger: Ledger, refusal: QueryRefused) -> Division:
    """Return the private parts of a statement; raise the refusal of the whole if there is nothing above a part."""
    tables = {table.name: table for table in ledger.tables()}
    found = divided(question.sql, tables, refusal)
    if any(query.partners for query in found.queries):
        raise (refusal if _is_question(question.sql, tables) else QueryRefused(JOINED)) from None
    return found


def divided(sql: str, tables: Mapping[str, Table], refusal: QueryRefused) -> Division:
    """Return a statement that is not one question as its private parts and the SQL above them, or refuse it."""
    plain = True
    try:
        plain = statement(sql).find(exp.Window, exp.With, exp.SetOperation, exp.Subquery) is None
        found = divide(sql, tables)
    except (QueryRefused, RecursionError) as other:
        raise (refusal if plain or isinstance(other, RecursionError) else other) from None
    if found is None:
        raise refusal from None
    return found


def _is_question(sql: str, tables: Mapping[str, Table]) -> bool:
    """Return whether a text is one question, so that it was not refused for its form."""
    try:
        parse(sql, tables)
    except QueryRefused:
        return False
    return True


def _questions(question: Question, division: Division) -> list[Question]:
    """Return the parts as questions that divide the share evenly."""
    if len({query.table.register for query in division.queries}) > 1:
        raise QueryRefused("The parts of this statement are paid for by different registers. Ask them one by one.")
    if len(division.parts) == 1:
        return [replace(question, sql=division.parts[0])]
    if question.within is not None:
        raise QueryRefused("`within` is about one question, and this statement has several parts. Ask with a share.")
    micro = floor(exact(question.share) * MICRO / len(division.parts))
    return [replace(question, sql=part, share=float(Fraction(micro, MICRO))) for part in division.parts]


def _refuse_together(question: Question, parts: list[Question], ledger: Ledger) -> None:
    """Refuse all parts, before anybody pays, if one that was not answered before cannot be paid for."""
    for part in parts:
        if flow.is_open(part, ledger):
            flow.explain(replace(part, share=question.share), ledger=ledger)

"""One question, start to end: parse → choose → charge → compute → release."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

import pyarrow as pa
from sqlglot import exp

from discretion.declaration.enrolment import Enrolment
from discretion.declaration.table import Table
from discretion.engines import Cohorts, Engine, Rows, is_object
from discretion.errors import (
    EngineFailed,
    LedgerFailed,
    PlanOutdated,
    QueryRefused,
    SourceChanged,
)
from discretion.ledger import Ledger, Offer, Register, Snapshot
from discretion.ledger.clock import Clock
from discretion.ledger.containment import contained, shape_of
from discretion.ledger.offer import exact
from discretion.ledger.spend import CHANGED
from discretion.mechanisms.belief import Belief
from discretion.noise import Floats, Rng
from discretion.plan import Plan, flow, individual
from discretion.plan.family import families
from discretion.plan.flow import Manner
from discretion.plan.within import smallest_share
from discretion.query import Query, parse
from discretion.query.uncertainty import propagate
from discretion.question import Question as Question
from discretion.release import Error, Release
from discretion.statistics import Statistics

OTHER_STATE = "The source of {name!r} is not in the state that was admitted. Its steward can admit it with `refresh`."
VERSIONS = {"variance": 2}  # of aggregates that were computed differently before; all others have version 1
NO_TICKS = Clock()
ATTEMPTS = 4  # plans that may be outdated by somebody else's charge or change; later ones are made under the lock


class State(NamedTuple):
    """A source, and the state of it that a steward admitted."""

    place: str
    fingerprint: str
    columns: Mapping[str, str]  # with their SQL types; empty: any


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Holds what the ledger says about a question in one snapshot: everything that a plan depends on."""

    query: Query
    register: Register
    offer: Offer
    changes: pa.Table  # people who are not in the cohort that they were enrolled in


@dataclass(frozen=True, kw_only=True)
class Look:
    """A question as one snapshot of the ledger shows it: answered, open under conditions, or being computed."""

    query: Query
    states: tuple[State, ...]  # of the sources that are read for it
    identity: str  # the same text for the same question on the same data
    stored: str | None
    conditions: Conditions | None


@dataclass(frozen=True, kw_only=True)
class Paid:
    """A question that was charged, with all that is needed to answer it: in another process, too, if one dies."""

    look: Look
    offer: Offer
    plan: Plan
    shape: str
    entry: str
    statement: Question | None = None  # that it is a part of


Tell = Callable[[str | Paid], None]


def answer(
    question: Question,
    *,
    engine: Engine,
    ledger: Ledger,
    clock: Clock = NO_TICKS,
    tell: Tell = lambda _: None,
) -> Release:
    """Answer `question` so that each person gets the privacy they chose.

    `tell` hears of its identity before the charge, and of the charge before any row is read.
    """
    paid = _pay(question, engine, ledger, clock, tell)  # durable before any row is read
    if isinstance(paid, str):
        return Release.from_stored(paid)  # the same question on the same data: nothing new is told
    tell(paid)
    return finish(paid, engine=engine, ledger=ledger, clock=clock)


def finish(paid: Paid, *, engine: Engine, ledger: Ledger, clock: Clock = NO_TICKS) -> Release:
    """Answer a question that was charged."""
    try:
        return _release(paid, engine, ledger, clock)
    except BaseException:
        with suppress(LedgerFailed):
            ledger.abandon(paid.entry)  # nobody else needs to wait for this answer
        raise


def explain(question: Question, *, ledger: Ledger) -> Plan:
    """Return the plan that `answer` would charge: who would pay what, for which accuracy. It sees no data."""
    return outlook_of(question, ledger=ledger)[0]


def outlook_of(question: Question, *, ledger: Ledger) -> tuple[Plan, Offer]:
    """Return the plan that `answer` would charge, and what everybody can spend on it. It sees no data."""
    with _parsed(question, ledger) as (query, seen):
        conditions = _conditions(question, query, seen.register(query.table.register), seen)
    found = _affordable(question, conditions)
    return _plan(question, found), found.offer


def is_open(question: Question, ledger: Ledger) -> bool:
    """Return whether a question was neither answered before nor is being answered."""
    return _look(question, ledger).stored is None


def _pay(question: Question, engine: Engine, ledger: Ledger, clock: Clock, tell: Tell) -> Paid | str:
    """Plan and pay, or return the answer that was paid for before; plan again if anything changed in between."""
    attempt = 0
    while True:
        attempt += 1
        with suppress(PlanOutdated), ledger.exclusively() if attempt >= ATTEMPTS else nullcontext():
            look = _look(question, ledger)
            _refuse_other_states(look, engine)
            if look.stored is not None:
                return look.stored
            if attempt == 1:
                tell(look.identity)
                clock.wait()
            if look.conditions is not None:
                return _charge(question, look, look.conditions, engine, ledger)
        ledger.awaited(look.identity)  # returns at once if nobody computes the same question


def _look(question: Question, ledger: Ledger) -> Look:
    """Read everything that an answer or a plan depends on, in one transaction."""
    with _parsed(question, ledger) as (query, seen):
        register = seen.register(query.table.register)
        states = _states(query, register)
        identity = _identity(question, query, states)
        stored = seen.answered(identity)
        is_open = stored is None and not seen.pending(identity)
        conditions = _conditions(question, query, register, seen) if is_open else None
    return Look(query=query, states=states, identity=identity, stored=stored, conditions=conditions)


@contextmanager
def _parsed(question: Question, ledger: Ledger) -> Iterator[tuple[Query, Snapshot]]:
    """Parse a question, and give it with a snapshot in which its table is declared like that.

    Nobody waits for a long text to be parsed: the transaction begins afterwards. If a table was declared meanwhile, or
    since the last time that the ledger was asked, the text is parsed again.
    """
    tables = ledger.last_tables
    while True:
        try:
            query = parse(question.sql, {table.name: table for table in tables})
        except QueryRefused:
            before, tables = tables, ledger.tables()
            if before == tables:
                raise
            continue
        with ledger.snapshot() as seen:
            if tables == seen.tables():
                yield query, seen
                return
        tables = ledger.tables()


def _charge(question: Question, look: Look, offered: Conditions, engine: Engine, ledger: Ledger) -> Paid:
    conditions = _affordable(question, offered)
    plan, shape = _plan(question, conditions), shape_of(look.query)
    engine.check(plan.request)
    entry = ledger.charge(
        conditions.offer,
        plan.guarantee,
        table=look.query.table.name,
        joined=[one.table.name for one in look.query.partners],
        analyst=question.analyst,
        memo=question.sql,
        plan=str(plan.explanation),
        question=look.identity,
        shape=shape,
    )
    return Paid(look=look, offer=conditions.offer, plan=plan, shape=shape, entry=entry)


def _release(paid: Paid, engine: Engine, ledger: Ledger, clock: Clock) -> Release:
    """Compute and deliver what was paid for."""
    offer, plan, entry = paid.offer, paid.plan, paid.entry

    def changed() -> bool:
        return not _are_admitted(paid.look.states, engine) or (
            ledger.register(offer.register).fingerprint != offer.fingerprint
        )

    def work() -> Release:
        statistics = engine.compute(plan.request)  # the only line that reads rows
        if not _are_admitted(paid.look.states, engine):
            raise SourceChanged(CHANGED)
        release = conclude(paid.look.query, plan, statistics, entry=entry)
        answered = release.stored()
        clock.wait()
        # If a separate register was refreshed meanwhile, its source may be in an admitted state again, but the charge
        # used the old preferences: such an answer is not delivered.
        ledger.deliver(entry, answered, fingerprint=offer.fingerprint)
        return release

    return contained(
        work, ledger=ledger, register=offer.register, charge=entry, shape=paid.shape, changed=changed, clock=clock
    )


def conclude(
    query: Query, plan: Plan, statistics: Sequence[Statistics], *, entry: str = "", rng: Rng = None
) -> Release:
    """Draw the noise, then compute the answer and its error from what was released."""
    released, errors = flow.draw(plan, len(query.asked), statistics, rng)
    shown = _errors(query, released, errors, query.shown(released), [one.places for one in plan.families])
    return flow.conclude(plan, query.finish(released), shown, entry=entry, rng=rng)


def _conditions(question: Question, query: Query, register: Register, seen: Snapshot) -> Conditions:
    """Read what everybody may spend on each part of the question, and who is in which cohort."""
    manner = _manner(question)
    parts = flow.parts(query.asked, manner)
    if question.model == "individual":
        individual.refuse_unfit(manner, allowed=query.table.policy.individual, within=question.within)
        parts = len(query.asked)
    offer = seen.offer(register, share=question.share, parts=parts, partial=question.partial, model=question.model)
    return Conditions(query=query, register=register, offer=offer, changes=seen.changes(register))


def _plan(question: Question, conditions: Conditions) -> Plan:
    """Return the plan that spends best what everybody may spend."""
    query, offered = conditions.query, conditions.offer.specification
    if question.model == "individual" and query.partners:
        raise QueryRefused("Model `individual` is not offered for joined tables. Ask about one table, or without it.")
    if question.model == "individual":
        asked, plan = individual.propose(query.asked, offered, question.options or {})
    else:
        asked, plan = flow.propose(query.asked, offered, _manner(question), families(query.asked))
    source = Rows(query=replace(query, asked=asked), cohorts=_cohorts(conditions))
    share, within = float(conditions.offer.share), question.within
    return replace(plan, source=source, share=share, within=within, also=_also(query))


def _also(query: Query) -> str:
    """Return what a promise about values covers besides, where tables that protect presence are joined."""
    hidden = [one.name for one in query.tables if one.protects == "presence"]
    if not query.partners or query.protects == "presence":
        return ""
    return f"and whether you are in {' or '.join(hidden)}"


def _affordable(question: Question, conditions: Conditions) -> Conditions:
    """Return the conditions with the smallest share that is enough for the error asked for, if one is."""
    offer, query = conditions.offer, conditions.query
    if question.within is None:
        return conditions
    if any(column.uses and column.asked is None for column in query.columns):
        raise QueryRefused(
            "`within` is about aggregates, and a column of this question is computed from them, or is a standard "
            "deviation. Ask for the aggregates alone, or with a share."
        )

    def at(share: Fraction) -> Plan:
        return _plan(question, replace(conditions, offer=replace(offer, share=share)))

    most = min(offer.largest_share, *(exact(one.policy.largest_share) for one in query.tables))
    found = smallest_share(question.within, offer.share, most, at)
    return replace(conditions, offer=replace(offer, share=found))


def _manner(question: Question) -> Manner:
    belief = Belief(assume=question.assume, expect=question.expect)
    manner = Manner(mechanism=question.mechanism, belief=belief, with_interval=question.with_interval)
    return replace(manner, options=question.options)


def _cohorts(conditions: Conditions) -> Cohorts:
    """Return which cohort of the offer each person is in."""
    enrolment = Enrolment.from_json(conditions.register.source)
    offer, changes, places = conditions.offer, None, conditions.offer.enrolled_position
    if conditions.changes.num_rows:
        moved = [offer.position.get(cohort, -1) for cohort in conditions.changes["cohort"].to_pylist()]
        changes = pa.table({"person": conditions.changes["person"], "cohort": pa.array(moved, pa.int64())})
    # Where to look up preferences that are not in the table itself.
    apart = {"register": enrolment.source, "person": enrolment.person, "epsilon": enrolment.epsilon}
    return Cohorts(
        count=len(offer.specification.epsilons),
        levels={found: places[micro] for found, micro in enrolment.worth if micro in places},
        changes=changes,
        **({} if conditions.query.table.protects == "value" else apart),
    )


def _states(query: Query, register: Register) -> tuple[State, ...]:
    """Return the admitted states of all sources that are read: tables, lookups, a separate register."""

    def admitted(table: Table) -> State:
        # Before version 0.2 a state was admitted only where the table is its own register.
        before = register.fingerprint if table.protects == "value" else ""
        return State(table.source, table.admitted or before, table.columns)

    lookups = [State(one.lookup.source, one.lookup.admitted, one.lookup.columns) for one in query.lookups]
    states = [admitted(query.table), *lookups, *(admitted(one.table) for one in query.partners)]
    if query.table.protects != "value":
        states.append(State(Enrolment.from_json(register.source).source, register.fingerprint, {}))
    return tuple(states)


def _identity(question: Question, query: Query, states: Sequence[State]) -> str:
    """Return one text for the same question on the same data, if its sources are in these states."""
    read = len(query.tables) + len(query.lookups)
    data = [state.fingerprint for state in states[:read]]  # a register's people pay, and may change
    asked = {**question.facts(), "sql": query.text, "analyst": ""}
    # An aggregate that is computed differently since has another version: no answer of the old one is served again.
    kinds = {one.aggregate.kind for one in query.asked} & set(VERSIONS)
    versions = [{kind: VERSIONS[kind] for kind in kinds}] if kinds else []
    declared = [one.identity() for one in query.tables]
    return sha256(json.dumps([asked, *declared, data, *versions], sort_keys=True).encode()).hexdigest()


def _refuse_other_states(look: Look, engine: Engine) -> None:
    """Refuse, uncharged, any source that is not in the state that a steward admitted."""
    if not all(_is_admitted(state, engine) for state in look.states):
        raise SourceChanged(OTHER_STATE.format(name=", ".join(one.name for one in look.query.tables)))


def _are_admitted(states: Sequence[State], engine: Engine) -> bool:
    """Return whether all sources are still in their admitted states."""
    try:
        return all(_is_admitted(state, engine) for state in states)
    except EngineFailed:
        return False  # an object that is gone


def _is_admitted(state: State, engine: Engine) -> bool:
    try:
        found = engine.fingerprint(state.place), dict(engine.schema(state.place))
    except (OSError, EngineFailed):
        if is_object(state.place):
            raise  # an object of another program: it says nothing about rows
        return False  # it is gone, or of a kind that is copied since version 0.2
    return found == (state.fingerprint, dict(state.columns) or found[1])


def _errors(
    query: Query,
    released: Sequence[Floats],
    errors: Sequence[Sequence[Error]],
    shown: Sequence[int],
    together: Sequence[Sequence[int]],
) -> dict[str, tuple[Error, ...]]:
    """For every answered column, the error in every group shown."""
    environments = {
        group: dict(zip((key.name for key in query.keys), query.groups[group], strict=True))
        | {str(number): float(values[group]) for number, values in enumerate(released)}
        for group in shown
    }
    return {
        column.name: tuple(
            propagate(column.expression, environments[group], [by_group[group] for by_group in errors], together)
            for group in shown
        )
        for column in query.columns
        if column.expression.find(exp.Placeholder)
    }

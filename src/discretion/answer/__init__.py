"""One question, start to end: parse → choose → charge → compute → release."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa

from discretion.answer.compound import Compound, concluded, kept, read, restored, together
from discretion.answer.drawn import Drawn
from discretion.answer.question import Question as Question
from discretion.answer.state import (
    State,
    are_admitted,
    containing,
    distinct,
    earlier_identity_of,
    identity_of,
    identity_together,
    refuse_other_states,
    rows_of,
    states_of,
)
from discretion.declaration.enrolment import Enrolment
from discretion.engines import Cohorts, Engine, Rows
from discretion.errors import BudgetExhausted, LedgerFailed, PlanOutdated, QueryRefused, SourceChanged
from discretion.ledger import Ledger, Offer, Register, Snapshot
from discretion.ledger.answers import stored_answer
from discretion.ledger.clock import Clock
from discretion.ledger.containment import contained, shape_of
from discretion.ledger.offer import exact
from discretion.ledger.spend import CHANGED
from discretion.mechanisms.belief import Belief
from discretion.noise import Rng
from discretion.plan import Plan, flow, individual
from discretion.plan.family import families
from discretion.plan.flow import Manner
from discretion.plan.within import smallest_share
from discretion.query import Query
from discretion.release import Release
from discretion.statistics import Statistics

NO_TICKS = Clock()
ATTEMPTS = 4  # plans that may be outdated by somebody else's charge or change; later ones are made under the lock


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Holds what the ledger says about a question in one snapshot: everything that a plan depends on."""

    asked: Compound
    register: Register
    offer: Offer
    changes: pa.Table  # people who are not in the cohort that they were enrolled in


@dataclass(frozen=True, kw_only=True)
class Look:
    """A question as one snapshot of the ledger shows it: answered, open under conditions, or being computed."""

    asked: Compound
    states: tuple[State, ...]  # of the sources that are read for it
    identity: str  # the same text for the same question on the same data
    stored: str | None
    conditions: Conditions | None


@dataclass(frozen=True, kw_only=True)
class Paid:
    """A question that was charged, with all that is needed to answer it: in another process, too, if one dies."""

    look: Look
    offer: Offer
    plans: tuple[Plan, ...]  # one for each private part
    shape: str
    entry: str


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
    if isinstance(paid, Release):
        return paid  # the same question on the same data: nothing new is told
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


def explain(question: Question, *, ledger: Ledger, own: bool = False) -> Plan:
    """Return the plan that `answer` would charge: who would pay what, for which accuracy. It sees no data."""
    return outlook_of(question, ledger=ledger, own=own)[0]


def outlook_of(question: Question, *, ledger: Ledger, own: bool = False) -> tuple[Plan, Offer]:
    """Return the plan that `answer` would charge, and what everybody can spend on it. It sees no data.

    It tells whether the question was answered before; with `own`, only if the same analyst asked it then. Guesses at
    what others asked would cost nothing otherwise.
    """
    with _parsed(question, ledger) as (asked, seen):
        register = seen.register(asked.tables[0].register)
        _, stored, _ = _found(question, asked, [states_of(query, register) for query in asked.queries], seen)
        conditions = _conditions(question, asked, register, seen)
    answered = stored is not None and (not own or _asker(stored, ledger) == question.analyst)
    try:
        found = _affordable(question, conditions)
        return replace(together(_plans(question, found)), answered=answered), found.offer
    except (BudgetExhausted, QueryRefused):  # an error `within` what nobody can pay for any more
        if not answered:
            raise
    full = tuple(replace(one, micro_spent=0, micro_individual=0) for one in conditions.offer.cohorts)
    before = _affordable(question, replace(conditions, offer=replace(conditions.offer, cohorts=full)))
    return replace(together(_plans(question, before)), answered=True), conditions.offer


def _asker(stored: str, ledger: Ledger) -> str:
    """Return who asked the question that was answered so."""
    return stored_answer(ledger, Release.from_stored(stored).entry)[0]


def _pay(question: Question, engine: Engine, ledger: Ledger, clock: Clock, tell: Tell) -> Paid | Release:
    """Plan and pay, or return the answer that was paid for before; plan again if anything changed in between."""
    attempt = 0
    while True:
        attempt += 1
        with suppress(PlanOutdated), ledger.exclusively() if attempt >= ATTEMPTS else nullcontext():
            look = _look(question, ledger)
            refuse_other_states(look.states, look.asked.tables, engine)
            if look.stored is not None:
                return restored(look.asked, look.stored)
            if attempt == 1:
                tell(look.identity)
                clock.wait()
            if look.conditions is not None:
                return _charge(question, look, look.conditions, engine, ledger)
        ledger.awaited(look.identity)  # returns at once if nobody computes the same question


def _look(question: Question, ledger: Ledger) -> Look:
    """Read everything that an answer or a plan depends on, in one transaction."""
    with _parsed(question, ledger) as (asked, seen):
        register = seen.register(asked.tables[0].register)
        states = [states_of(query, register) for query in asked.queries]
        identity, stored, pending = _found(question, asked, states, seen)
        is_open = stored is None and not pending
        conditions = _conditions(question, asked, register, seen) if is_open else None
    every = distinct(state for one in states for state in one)
    return Look(asked=asked, states=every, identity=identity, stored=stored, conditions=conditions)


def _found(
    question: Question, asked: Compound, states: Sequence[tuple[State, ...]], seen: Snapshot
) -> tuple[str, str | None, bool]:
    """Return the identity of a question, its answer if it has one, and whether one is being computed."""
    each = list(zip(asked.queries, states, strict=True))
    identity = identity_together([identity_of(question, *one) for one in each])
    stored, pending = seen.before(identity)
    if stored is None and not pending:
        stored, _ = seen.before(identity_together([earlier_identity_of(question, *one) for one in each]))
    if stored is None and not pending:
        stored = _among_more(identity, seen)
    return identity, stored, bool(pending)


def _among_more(identity: str, seen: Snapshot) -> str | None:
    """Return the first answer to a question for these aggregates and others, about the same rows and groups."""
    rows = rows_of(identity)
    found = containing(identity, seen.alike(rows)) if rows else None
    return seen.before(found).answer if found is not None else None


@contextmanager
def _parsed(question: Question, ledger: Ledger) -> Iterator[tuple[Compound, Snapshot]]:
    """Parse a question, and give it with a snapshot in which its table is declared like that.

    Nobody waits for a long text to be parsed: the transaction begins afterwards. If a table was declared meanwhile, or
    since the last time that the ledger was asked, the text is parsed again.
    """
    tables = ledger.last_tables
    while True:
        try:
            asked = read(question.sql, tables)
        except QueryRefused:
            before, tables = tables, ledger.tables()
            if before == tables:
                raise
            continue
        with ledger.snapshot() as seen:
            if tables == seen.tables():
                yield asked, seen
                return
        tables = ledger.tables()


def _charge(question: Question, look: Look, offered: Conditions, engine: Engine, ledger: Ledger) -> Paid:
    conditions = _affordable(question, offered)
    plans, shape = _plans(question, conditions), "\n".join(map(shape_of, look.asked.queries))
    for plan in plans:
        engine.check(plan.request)
    whole, (first, *others) = together(plans), look.asked.tables
    entry = ledger.charge(  # one entry for all parts: everybody pays for all of them, or nobody for any
        conditions.offer,
        whole.guarantee,
        table=first.name,
        joined=[one.name for one in others],
        analyst=question.analyst,
        memo=question.sql,
        plan=str(whole.explanation),
        question=look.identity,
        shape=shape,
        manner=question.manner(),
    )
    return Paid(look=look, offer=conditions.offer, plans=plans, shape=shape, entry=entry)


def _release(paid: Paid, engine: Engine, ledger: Ledger, clock: Clock) -> Release:
    """Compute and deliver what was paid for."""
    offer, entry, asked = paid.offer, paid.entry, paid.look.asked

    def changed() -> bool:
        return not are_admitted(paid.look.states, engine) or (
            ledger.register(offer.register).fingerprint != offer.fingerprint
        )

    def work() -> tuple[Release, QueryRefused | None]:
        found = [engine.compute(plan.request) for plan in paid.plans]  # the only line that reads rows
        if not are_admitted(paid.look.states, engine):
            raise SourceChanged(CHANGED)
        planned = list(zip(asked.queries, paid.plans, strict=True))
        drawn = [draw(*one, statistics) for one, statistics in zip(planned, found, strict=True)]
        releases = [conclude(*one, values, entry=entry) for one, values in zip(planned, drawn, strict=True)]
        release, refusal = concluded(asked, releases)
        answered = kept(asked, release, releases, drawn)
        clock.wait()
        # If a separate register was refreshed meanwhile, its source may be in an admitted state again, but the charge
        # used the old preferences: such an answer is not delivered.
        ledger.deliver(entry, answered, fingerprint=offer.fingerprint)
        return release, refusal

    release, refusal = contained(
        work, ledger=ledger, register=offer.register, charge=entry, shape=paid.shape, changed=changed, clock=clock
    )
    if refusal is not None:
        raise refusal
    return release


def draw(query: Query, plan: Plan, statistics: Sequence[Statistics], rng: Rng = None) -> Drawn:
    """Draw the noise of every aggregate in every group."""
    released, errors = flow.draw(plan, len(query.asked), statistics, rng)
    return Drawn(released=released, errors=errors, together=[one.places for one in plan.families])


def conclude(query: Query, plan: Plan, drawn: Drawn, *, entry: str = "", rng: Rng = None) -> Release:
    """Compute the answer and its error from what was released."""
    return flow.conclude(plan, drawn.columns(query), drawn.column_errors(query), entry=entry, rng=rng)


def _conditions(question: Question, asked: Compound, register: Register, seen: Snapshot) -> Conditions:
    """Read what everybody may spend on each part of the question, and who is in which cohort."""
    wanted = [query.asked for query in asked.queries]
    parts = flow.parts_together(wanted, _manner(question))
    if question.model == "individual":
        allowed = all(one.policy.individual for one in asked.tables)
        individual.refuse_unfit(_manner(question), allowed=allowed, within=question.within)
        parts = sum(map(len, wanted))
    offer = seen.offer(register, share=question.share, parts=parts, partial=question.partial, model=question.model)
    return Conditions(asked=asked, register=register, offer=offer, changes=seen.changes(register))


def _plans(question: Question, conditions: Conditions) -> tuple[Plan, ...]:
    """Return the plans that spend best what everybody may spend, one for each private part."""
    scales = flow.scales([query.asked for query in conditions.asked.queries])
    each = zip(conditions.asked.queries, scales, strict=True)
    return tuple(_plan(question, conditions, query, scale) for query, scale in each)


def _plan(question: Question, conditions: Conditions, query: Query, scale: int) -> Plan:
    offered = conditions.offer.specification
    if question.model == "individual" and query.partners:
        raise QueryRefused("Model `individual` is not offered for joined tables. Ask about one table, or without it.")
    if question.model == "individual":
        asked, plan = individual.propose(query.asked, offered, question.options or {})
    else:
        manner = replace(_manner(question), scale=scale)
        asked, plan = flow.propose(query.asked, offered, manner, families(query.asked))
    source = Rows(query=replace(query, asked=asked), cohorts=_cohorts(conditions, query))
    share, within = float(conditions.offer.share), question.within
    return replace(plan, source=source, share=share, within=within, also=conditions.asked.also)


def _affordable(question: Question, conditions: Conditions) -> Conditions:
    """Return the conditions with the smallest share that is enough for the error asked for, if one is."""
    offer, asked = conditions.offer, conditions.asked
    if question.within is None:
        return conditions
    if len(asked.queries) > 1:
        raise QueryRefused("`within` is about one question, and this statement has several parts. Ask with a share.")
    query = asked.queries[0]
    if any(column.uses and column.asked is None for column in query.columns):
        raise QueryRefused(
            "`within` is about aggregates, and a column of this question is computed from them, or is a standard "
            "deviation. Ask for the aggregates alone, or with a share."
        )

    def at(share: Fraction) -> Plan:
        return _plans(question, replace(conditions, offer=replace(offer, share=share)))[0]

    most = min(offer.largest_share, *(exact(one.policy.largest_share) for one in query.tables))
    found = smallest_share(question.within, offer.share, most, at)
    return replace(conditions, offer=replace(offer, share=found))


def _manner(question: Question) -> Manner:
    belief = Belief(assume=question.assume, expect=question.expect)
    manner = Manner(mechanism=question.mechanism, belief=belief, with_interval=question.with_interval)
    return replace(manner, options=question.options)


def _cohorts(conditions: Conditions, query: Query) -> Cohorts:
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
        **({} if query.table.protects == "value" else apart),
    )

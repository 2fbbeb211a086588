"""One question, start to end: parse → choose → charge → compute → release."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256

import pyarrow as pa
from sqlglot import exp

from discretion.declaration.enrolment import Enrolment
from discretion.engines import Cohorts, Engine, Rows
from discretion.engines.source import is_object
from discretion.errors import BudgetExhausted, EngineFailed, LedgerFailed, PlanOutdated, SourceChanged
from discretion.ledger import Ledger, Offer
from discretion.ledger.clock import Clock
from discretion.ledger.containment import CHANGED, contained, shape_of
from discretion.mechanisms import answer as draw
from discretion.mechanisms.belief import Assume, Belief
from discretion.noise import Floats, Rng
from discretion.plan import Plan, choose
from discretion.plan.flank import flanked, interval_errors, weights
from discretion.query import Asked, Query, parse
from discretion.query.uncertainty import propagate
from discretion.release import Error, Release
from discretion.statistics import Statistics

OTHER_STATE = "The source of {name!r} is not in the state that was admitted. Its steward can admit it with `refresh`."
VERSIONS = {"variance": 2}  # of aggregates that were computed differently before; all others have version 1
NO_TICKS = Clock()
ATTEMPTS = 4  # plans that may be outdated by somebody else's charge or change; later ones are made under the lock


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an analyst asks, and how."""

    sql: str
    share: float = 0.1  # of each person's allowance, at most
    mechanism: str = "auto"
    assume: Assume = None
    expect: tuple[float, float] | None = None
    with_interval: bool = False  # quantiles: spend a third on an interval in value units
    partial: bool = False  # let people who cannot pay the share pay what they have left
    analyst: str = ""


@dataclass(frozen=True, kw_only=True)
class Paid:
    """A question that was charged, with all that is needed to answer it: in another process, too, if one dies."""

    question: Question
    query: Query
    identity: str
    shape: str
    offer: Offer
    plan: Plan
    entry: str


def answer(
    question: Question,
    *,
    engine: Engine,
    ledger: Ledger,
    clock: Clock = NO_TICKS,
    tell: Callable[[str | Paid], None] = lambda _: None,
) -> Release:
    """Answer `question` so that each person gets the privacy they chose.

    `tell` hears of its identity before the charge, and of the charge before any row is read.
    """
    query = parse(question.sql, {table.name: table for table in ledger.tables()})
    identity = _identify(question, query, engine, ledger)
    if (stored := ledger.answered(identity)) is not None:
        return Release.from_json(stored)  # the same question on the same data: nothing new is told
    shape = shape_of(query)
    tell(identity)
    clock.wait()
    paid = _charge(question, query, identity, shape, engine, ledger)  # durable before any row is read
    if isinstance(paid, str):
        return Release.from_json(paid)  # somebody else has just paid for the same question
    offer, plan, entry = paid
    state = Paid(question=question, query=query, identity=identity, shape=shape, offer=offer, plan=plan, entry=entry)
    tell(state)
    return finish(state, engine=engine, ledger=ledger, clock=clock)


def finish(paid: Paid, *, engine: Engine, ledger: Ledger, clock: Clock = NO_TICKS) -> Release:
    """Answer a question that was charged."""
    try:
        return _finish(paid, engine=engine, ledger=ledger, clock=clock)
    except BaseException:
        with suppress(LedgerFailed):
            ledger.abandon(paid.entry)  # nobody else needs to wait for this answer
        raise


def _finish(paid: Paid, *, engine: Engine, ledger: Ledger, clock: Clock) -> Release:
    def changed() -> bool:
        # If a separate register was refreshed meanwhile, its fingerprint matches again, but the charge used the old
        # preferences.
        refreshed = ledger.register(paid.offer.register).fingerprint != paid.offer.fingerprint
        try:
            return refreshed or _identify(paid.question, paid.query, engine, ledger) != paid.identity
        except (SourceChanged, EngineFailed):
            return True

    def work() -> Release:
        statistics = engine.compute(paid.plan.request)  # the only line that reads rows
        if changed():
            raise SourceChanged(CHANGED)
        release = conclude(paid.query, paid.plan, statistics, entry=paid.entry)
        answered = release.to_json()
        clock.wait()
        ledger.deliver(paid.entry, answered)
        return release

    told = {"register": paid.offer.register, "charge": paid.entry, "shape": paid.shape}
    return contained(work, ledger=ledger, **told, changed=changed, clock=clock)


def explain(question: Question, *, ledger: Ledger) -> Plan:
    """The plan that `answer` would charge: who would pay what, for which accuracy. It sees no data."""
    query = parse(question.sql, {table.name: table for table in ledger.tables()})
    return propose(question, query, ledger)[1]


def conclude(
    query: Query, plan: Plan, statistics: Sequence[Statistics], *, entry: str = "", rng: Rng = None
) -> Release:
    """Draw the noise, then compute the answer and its error from what was released."""
    answers = [draw(choice.mechanism, found, rng) for choice, found in zip(plan.choices, statistics, strict=True)]
    released = [values for values, _ in answers]
    errors = interval_errors(query, released, [by_group for _, by_group in answers])
    return Release(
        columns=query.finish(released),
        errors=_errors(query, released, errors, query.shown(released)),
        mechanism=" + ".join(dict.fromkeys(choice.chosen.name for choice in plan.choices)),
        guarantee=plan.guarantee,
        simulated=rng is not None,
        entry=entry,
        explanation=str(plan),
        comparison=plan.comparison,
    )


def rows(query: Query, offer: Offer, ledger: Ledger) -> Rows:
    """Which rows are asked about, and which cohort of the offer each person is in."""
    register = ledger.register(query.table.register)
    enrolment = Enrolment.from_json(register.source)
    places = offer.enrolled_position
    cohorts = Cohorts(
        count=len(offer.specification.epsilons),
        levels={found: places[micro] for found, micro in enrolment.worth if micro in places},
        changes=_changes(offer, ledger),
        **({} if query.table.protects == "value" else _apart(enrolment)),
    )
    return Rows(query=query, cohorts=cohorts)


def _apart(enrolment: Enrolment) -> dict[str, str]:
    """Where to look up preferences that are not in the table itself."""
    return {"register": enrolment.source, "person": enrolment.person, "epsilon": enrolment.epsilon}


def _changes(offer: Offer, ledger: Ledger) -> pa.Table | None:
    changes = ledger.changes(offer.register, at=offer.members)
    if not changes.num_rows:
        return None
    places = [offer.position.get(cohort, -1) for cohort in changes["cohort"].to_pylist()]
    return pa.table({"person": changes["person"], "cohort": pa.array(places, pa.int64())})


def propose(question: Question, query: Query, ledger: Ledger) -> tuple[Offer, Plan]:
    """What everybody may spend on each part of the question, and the plan that spends it best."""
    belief = Belief(assume=question.assume, expect=question.expect)
    parts = weights(query) if question.with_interval else (1,) * len(query.asked)
    paid = sum(parts) - sum(part for part, one in zip(parts, query.asked, strict=False) if _is_free(one, question))
    offer = ledger.offer(query.table.register, share=question.share, parts=paid or 1, partial=question.partial)
    asked = flanked(query, offer.specification, belief, question.mechanism) if question.with_interval else query
    plan = choose(
        asked.aggregates,
        offer.specification,
        belief,
        mechanism=question.mechanism,
        source=rows(asked, offer, ledger),
        weights=parts,
        labels=[one.text for one in asked.asked],
    )
    return offer, plan


def _is_free(asked: Asked, question: Question) -> bool:
    """Whether the answer is public, so that the others can have its part of the share."""
    counts = asked.aggregate.kind in ("count", "people") and asked.aggregate.size_is_public
    return counts and question.mechanism in ("auto", "public")


def _charge(
    question: Question, query: Query, identity: str, shape: str, engine: Engine, ledger: Ledger
) -> tuple[Offer, Plan, str] | str:
    """Plan and pay, or return the answer somebody else paid for; plan again if anything changed in between."""
    attempt = 0
    while True:
        attempt += 1
        if (stored := ledger.awaited(identity)) is not None:
            return stored
        try:
            with ledger.exclusively() if attempt >= ATTEMPTS else nullcontext():
                offer, plan = propose(question, query, ledger)
                engine.check(plan.request)
                entry = ledger.charge(
                    offer,
                    plan.guarantee,
                    table=query.table.name,
                    analyst=question.analyst,
                    memo=question.sql,
                    plan=str(plan),
                    question=identity,
                    shape=shape,
                )
        except PlanOutdated:
            continue  # under the lock: somebody else has just paid for the same question, so wait for its answer
        except BudgetExhausted:
            if (stored := ledger.awaited(identity)) is None:  # or did the same question take what was left?
                raise
            return stored
        return offer, plan, entry


def _identify(question: Question, query: Query, engine: Engine, ledger: Ledger) -> str:
    """Return one text for the same question on the same data; refuse data that no steward admitted."""
    _refuse_other_states(query, engine, ledger)
    found = [engine.fingerprint(place) for place in (query.table.source, *(one.lookup.source for one in query.lookups))]
    asked = {**asdict(question), "sql": query.text, "analyst": ""}
    # An aggregate that is computed differently since has another version: no answer of the old one is served again.
    kinds = {one.aggregate.kind for one in query.asked} & set(VERSIONS)
    versions = [{kind: VERSIONS[kind] for kind in kinds}] if kinds else []
    return sha256(json.dumps([asked, query.table.identity(), found, *versions], sort_keys=True).encode()).hexdigest()


def _refuse_other_states(query: Query, engine: Engine, ledger: Ledger) -> None:
    """Refuse, uncharged, whatever is not in the state that a steward admitted."""
    table, register = query.table, ledger.register(query.table.register)
    enrolled = Enrolment.from_json(register.source).source
    own = table.protects == "value"
    # Before version 0.2 a state was admitted only where the table is its own register.
    states = [(table.source, table.admitted or (register.fingerprint if own else ""), table.columns)]
    states += [(one.lookup.source, one.lookup.admitted, one.lookup.columns) for one in query.lookups]
    if not own:
        states.append((enrolled, register.fingerprint, {}))
    if not all(_is_admitted(engine, *state) for state in states):
        raise SourceChanged(OTHER_STATE.format(name=table.name))


def _is_admitted(engine: Engine, place: str, admitted: str, columns: Mapping[str, str]) -> bool:
    try:
        found = engine.fingerprint(place), dict(engine.schema(place))
    except (OSError, EngineFailed):
        if is_object(place):
            raise  # an object of another program: it says nothing about rows
        return False  # it is gone, or of a kind that is copied since version 0.2
    return found == (admitted, dict(columns) or found[1])


def _errors(
    query: Query, released: Sequence[Floats], errors: Sequence[Sequence[Error]], shown: Sequence[int]
) -> dict[str, tuple[Error, ...]]:
    """For every answered column, the error in every group shown."""
    environments = {
        group: dict(zip((key.name for key in query.keys), query.groups[group], strict=True))
        | {str(number): float(values[group]) for number, values in enumerate(released)}
        for group in shown
    }
    return {
        column.name: tuple(
            propagate(column.expression, environments[group], [by_group[group] for by_group in errors])
            for group in shown
        )
        for column in query.columns
        if column.expression.find(exp.Placeholder)
    }

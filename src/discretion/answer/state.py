"""State: the admitted states of the sources that a question reads, which are part of the question's identity."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from discretion.answer.question import Question
from discretion.declaration.enrolment import Enrolment
from discretion.declaration.table import Table
from discretion.engines import Engine, is_object
from discretion.errors import EngineFailed, SourceChanged
from discretion.ledger import Register
from discretion.query import Query

OTHER_STATE = "The source of {name!r} is not in the state that was admitted. Its steward can admit it with `refresh`."
VERSIONS = {"variance": 2}  # of aggregates that were computed differently before; all others have version 1
MOST_NAMED = 80  # aggregates that an identity names one by one: PostgreSQL indexes texts of up to 2,700 bytes
_ROWS, _AGGREGATE = 64, 32  # hexadecimal digits of an identity that are about rows and groups, and about an aggregate


class State(NamedTuple):
    """A source, and the state of it that a steward admitted."""

    place: str
    fingerprint: str
    columns: Mapping[str, str]  # with their SQL types; empty: any


def states_of(query: Query, register: Register) -> tuple[State, ...]:
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


def distinct(states: Iterable[State]) -> tuple[State, ...]:
    """Return every state once. If two are asked of one place, both stay, and both must hold."""
    return tuple({repr(state): state for state in states}.values())


def identity_of(question: Question, query: Query, states: Sequence[State]) -> str:
    """Return one text for the same aggregates in the same groups of the same data, if its sources are in these states.

    It begins with that of the rows and groups, and goes on with those of the aggregates, in one order. What is computed
    from them, and what columns are called, is not part of it: that is free, then and later.
    """
    rows = _digest(_facts(question, query, query.core, states))
    asked = [(label, VERSIONS.get(one.aggregate.kind)) for label, one in zip(query.labels, query.asked, strict=True)]
    aggregates = {_digest(one)[:_AGGREGATE] for one in asked if one[0]}
    if len(aggregates) > MOST_NAMED:
        return _digest([rows, *sorted(aggregates)])
    return rows + "".join(sorted(aggregates))


def rows_of(identity: str) -> str:
    """Return the part of an identity that is about rows and groups; "" if nothing but all of it tells them."""
    return identity[:_ROWS] if len(identity) > _ROWS else ""


def containing(identity: str, others: Iterable[str]) -> str | None:
    """Return the first of other identities that has all aggregates of this one, about the same rows and groups."""
    wanted = _aggregates(identity)
    return next((one for one in others if rows_of(one) == rows_of(identity) and wanted <= _aggregates(one)), None)


def _aggregates(identity: str) -> set[str]:
    return {identity[place : place + _AGGREGATE] for place in range(_ROWS, len(identity), _AGGREGATE)}


def earlier_identity_of(question: Question, query: Query, states: Sequence[State]) -> str:
    """Return the text that earlier versions kept an answer for: that of the whole question."""
    # An aggregate that is computed differently since has another version: no answer of the old one is served again.
    kinds = {one.aggregate.kind for one in query.asked} & set(VERSIONS)
    versions = [{kind: VERSIONS[kind] for kind in kinds}] if kinds else []
    return _digest([*_facts(question, query, query.text, states), *versions])


def _facts(question: Question, query: Query, text: str, states: Sequence[State]) -> list[object]:
    """Return everything that an answer depends on, besides the versions of its aggregates."""
    read = len(query.tables) + len(query.lookups)
    data = [state.fingerprint for state in states[:read]]  # a register's people pay, and may change
    asked = {**question.facts(), "sql": text, "analyst": ""}
    return [asked, *(one.identity for one in query.tables), data]


def identity_together(identities: Sequence[str]) -> str:
    """Return one text for questions that are asked together; of one question, its own."""
    return identities[0] if len(identities) == 1 else _digest(["together", *identities])


def _digest(facts: object) -> str:
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def refuse_other_states(states: Iterable[State], tables: Iterable[Table], engine: Engine) -> None:
    """Refuse, uncharged, any source that is not in the state that a steward admitted."""
    if not all(_is_admitted(state, engine) for state in states):
        raise SourceChanged(OTHER_STATE.format(name=", ".join(one.name for one in tables)))


def are_admitted(states: Iterable[State], engine: Engine) -> bool:
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

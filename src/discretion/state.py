"""State: the admitted states of the sources that a question reads, which are part of the question's identity."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from discretion.declaration.enrolment import Enrolment
from discretion.declaration.table import Table
from discretion.engines import Engine, is_object
from discretion.errors import EngineFailed, SourceChanged
from discretion.ledger import Register
from discretion.query import Query
from discretion.question import Question

OTHER_STATE = "The source of {name!r} is not in the state that was admitted. Its steward can admit it with `refresh`."
VERSIONS = {"variance": 2}  # of aggregates that were computed differently before; all others have version 1


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

    What is computed from them, and what columns are called, is not part of it: that is free, then and later.
    """
    return _identity(question, query, query.core, states)


def earlier_identity_of(question: Question, query: Query, states: Sequence[State]) -> str:
    """Return the text that earlier versions kept an answer for: that of the whole question."""
    return _identity(question, query, query.text, states)


def _identity(question: Question, query: Query, text: str, states: Sequence[State]) -> str:
    read = len(query.tables) + len(query.lookups)
    data = [state.fingerprint for state in states[:read]]  # a register's people pay, and may change
    asked = {**question.facts(), "sql": text, "analyst": ""}
    # An aggregate that is computed differently since has another version: no answer of the old one is served again.
    kinds = {one.aggregate.kind for one in query.asked} & set(VERSIONS)
    versions = [{kind: VERSIONS[kind] for kind in kinds}] if kinds else []
    declared = [one.identity() for one in query.tables]
    return _digest([asked, *declared, data, *versions])


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

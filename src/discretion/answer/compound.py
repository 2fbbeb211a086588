"""Compound: a statement becomes one question, or several that are asked and paid for together, and SQL above them."""

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress

from sqlglot import exp

from discretion.answer.derived import derive, rehearse
from discretion.answer.drawn import Drawn
from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.plan import FROM_ONE, SPLIT, Plan
from discretion.plan.choice import Choice
from discretion.plan.family import Family
from discretion.query import Query, parse, statement
from discretion.query.division import Division, divide
from discretion.release import Release
from discretion.render.explanation import Explanation

_SIDE = re.compile(", from (below|above)$")  # of the quantiles at the sides of an interval
logger = logging.getLogger(__name__)

FAILS = (
    "What is above the aggregates fails for the values that were released. They are kept: ask for them, for nothing."
)


@dataclass(frozen=True, kw_only=True)
class Compound:
    """A statement: the questions that are its private parts, and what is computed from their answers."""

    queries: tuple[Query, ...]
    division: Division | None = None  # None: it is one question

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return every protected table that is read, once."""
        return tuple({table.name: table for query in self.queries for table in query.tables}.values())

    @property
    def also(self) -> str:
        """Return what a promise about values covers besides, where tables that protect presence are joined."""
        hidden = [one.name for one in self.tables if one.protects == "presence"]
        if len(self.tables) == 1 or self.queries[0].protects == "presence":
            return ""
        return f"and whether you are in {' or '.join(hidden)}"


@lru_cache(maxsize=64)  # it follows from the text and what was declared
def read(sql: str, tables: tuple[Table, ...]) -> Compound:
    """Return the questions of a statement, or refuse it; SQL above them is tried on made-up values."""
    named = {table.name: table for table in tables}
    try:
        return Compound(queries=(parse(sql, named),))
    except QueryRefused as refusal:
        division = divided(sql, named, refusal)
    _refuse_unlike(division.queries)
    rehearse(division)
    return Compound(queries=division.queries, division=division)


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


def _refuse_unlike(queries: Sequence[Query]) -> None:
    """Refuse parts that cannot be one promise to the same people."""
    if len({query.table.register for query in queries}) > 1:
        raise QueryRefused("The parts of this statement are paid for by different registers. Ask them one by one.")
    if len({query.protects for query in queries}) > 1:
        raise QueryRefused(
            "One part of this statement protects presence and another one values, so they cannot share one promise. "
            "Ask them one by one."
        )


def together(plans: Sequence[Plan]) -> Plan:
    """Return the plans of all parts as one: what is charged is the sum of their losses, cohort by cohort."""
    first = plans[0]
    if len(plans) == 1:
        return first
    choices: list[Choice] = []
    families: list[Family] = []
    for number, plan in enumerate(plans):
        families += [_moved(family, len(choices)) for family in plan.families]
        choices += [replace(choice, label=f"part {number}, {choice.label}") for choice in plan.choices]
    return replace(first, choices=tuple(choices), families=tuple(families), source=None)


def _moved(family: Family, by: int) -> Family:
    """Return a family whose aggregates stand behind others."""
    places = tuple(by + place for place in family.places)
    return replace(
        family, places=places, base=by + family.base, wide=None if family.wide is None else by + family.wide, smaller=()
    )


def concluded(compound: Compound, releases: Sequence[Release]) -> tuple[Release, QueryRefused | None]:
    """Return the answer to keep, and why the SQL above the parts has none.

    That depends on released values alone, so it stops nobody, and the parts are kept for another statement.
    """
    if compound.division is None:
        return releases[0], None
    try:
        return derive(compound.division, releases), None
    except QueryRefused as refusal:
        return releases[0], refusal
    except Exception as failure:
        logger.error("SQL above released values failed: %s", type(failure).__name__)
        return releases[0], QueryRefused(FAILS)


def kept(compound: Compound, answer: Release, releases: Sequence[Release], drawn: Sequence[Drawn]) -> str:
    """Return the text that the ledger keeps: the answer, and what it was computed from."""
    each = zip(compound.queries, releases, drawn, strict=True)
    parts = [one.stored(drawn=found.to_dict(query)) for query, one, found in each]
    return parts[0] if compound.division is None else answer.stored(parts=parts)


def restored(compound: Compound, text: str) -> Release:
    """Return the answer to a statement from what the ledger kept of the same parts; they may have had another SQL."""
    parts = json.loads(text).get("parts") or [text]
    answer, refusal = concluded(compound, [_again(*each) for each in zip(compound.queries, parts, strict=True)])
    if refusal is not None:
        raise refusal
    return answer


def _again(query: Query, text: str) -> Release:
    """Return the answer to a part from what the ledger kept of its aggregates in the same groups."""
    release, drawn = Release.from_stored(text), json.loads(text).get("drawn")
    if drawn is None:  # kept by an earlier version, for exactly this text
        return release
    found = Drawn.from_dict(drawn, query)
    answer = replace(release, columns=found.columns(query), errors=found.column_errors(query))
    if {*drawn["labels"]} <= {*query.labels}:
        return answer
    return _about(answer, query.labels)


def _about(release: Release, labels: Collection[str]) -> Release:
    """Return an answer that shows some aggregates and what all together cost; the others may be another analyst's."""
    *chosen, paid = release.explain().sheets
    titles = [sheet.title.rpartition(": ") for sheet in chosen]
    own = [_SIDE.sub("", label) in labels for label, _, _ in titles]
    notes = [note for note in paid.notes if not note.endswith((FROM_ONE, SPLIT))]
    shown = [*compress(chosen, own), replace(paid, notes=(*notes, "Paid together with other aggregates."))]
    return replace(
        release,
        mechanism=" + ".join(dict.fromkeys(name for _, _, name in compress(titles, own))),
        comparison=(),  # it may be about any of them
        explanation=Explanation(shown),
    )

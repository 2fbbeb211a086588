"""Stay: a person was in one cohort from one entry to another; what it paid meanwhile could have used their data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from discretion.errors import InvalidDeclaration
from discretion.ledger import schema
from discretion.ledger.register import Register

_PAID, _ENTRY = schema.charge.c, schema.entry.c


@dataclass(frozen=True, kw_only=True)
class Stay:
    """Say in which entries a person was in a cohort: from `first` on and before `end`."""

    cohort: int
    first: int
    end: int | None
    stated: int | None
    by: str


@dataclass(frozen=True, kw_only=True)
class Total:
    """Add up all charges of a person."""

    micro_epsilon: int
    releases: int
    individual: int  # how many were not differentially private


def stays_of(db: sa.Connection, register: Register, person: str) -> Iterator[Stay]:
    """Return where a person of the register was, in order."""
    known, change, cohort = schema.person.c, schema.change.c, schema.cohort.c
    enrolled = db.execute(
        sa.select(schema.person).where(known.register == register.id, known.person == person)
    ).one_or_none()
    if enrolled is None:
        raise InvalidDeclaration(f"Register {register.name!r} has no such person.")
    moves = db.execute(
        sa.select(schema.change).where(change.register == register.id, change.person == person).order_by(change.seq)
    ).all()
    ends = [move.seq for move in moves] + [None]
    if not moves or moves[0].seq != enrolled.seq:  # else they joined later, and the first move says where
        home = sa.select(cohort.id).where(
            cohort.register == register.id, cohort.enrolled, cohort.micro_allowance == enrolled.micro_epsilon
        )
        yield Stay(
            cohort=db.execute(home).scalar_one(),
            first=enrolled.seq,
            end=ends[0],
            stated=enrolled.micro_epsilon,
            by="enrolment",
        )
    for move, end in zip(moves, ends[1:], strict=True):
        yield Stay(cohort=move.cohort, first=move.seq, end=end, stated=move.micro_epsilon, by=move.origin)


def charges(
    db: sa.Connection, stays: Sequence[Stay], *, before: int | None = None, most: int | None = None
) -> list[sa.Row[Any]]:
    """Return the charges of all stays with their entries, newest first: so many of those before an entry."""
    found: list[sa.Row[Any]] = []
    for stay in reversed(stays):
        query = sa.select(schema.charge, _ENTRY.kind, _ENTRY.body, _ENTRY.hash)
        query = query.join(schema.entry, _ENTRY.seq == _PAID.seq).where(*_during(stay))
        if before is not None:
            query = query.where(_PAID.seq < before)
        if most is not None:
            query = query.limit(most - len(found))
        found += db.execute(query.order_by(_PAID.seq.desc())).all()
        if most is not None and len(found) >= most:
            break
    return found


def total(db: sa.Connection, stays: Sequence[Stay]) -> Total:
    """Add up all charges of all stays, without reading their entries."""
    spent = releases = individual = 0
    is_individual = sa.case((_PAID.micro_individual > 0, 1), else_=0)
    for stay in stays:
        sums = sa.select(sa.func.count(), sa.func.sum(_PAID.micro_epsilon), sa.func.sum(is_individual))
        count, paid, apart = db.execute(sums.where(*_during(stay))).one()
        spent, individual = spent + int(paid or 0), individual + int(apart or 0)
        releases += count - int(apart or 0)
    return Total(micro_epsilon=spent, releases=releases, individual=individual)


def _during(stay: Stay) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for what a cohort paid during a stay."""
    end = [] if stay.end is None else [_PAID.seq < stay.end]
    return [_PAID.cohort == stay.cohort, _PAID.seq > stay.first, *end]

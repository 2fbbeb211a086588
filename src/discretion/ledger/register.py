"""Register: a snapshot of people and preferences, and the cohorts that follow from it.

A person is where their last `change` put them, and else in the cohort of everybody enrolled with their preference.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, InvalidPreference, LedgerCorrupt, SourceChanged
from discretion.ledger import schema
from discretion.ledger.chain import Entry, Writing, append, canonical, digest
from discretion.ledger.offer import Cohort
from discretion.ledger.people import canonical_people, digest_people, insert_many, levels_of, listed
from discretion.preference import allowance

MOST_LEVELS = 10_000
_FIELDS = tuple(Cohort.__dataclass_fields__)
_NAMED = sa.select(schema.register).where(schema.register.c.name == sa.bindparam("wanted"))
_COHORTS = (
    sa.select(*(schema.cohort.c[name] for name in _FIELDS))
    .where(schema.cohort.c.register == sa.bindparam("wanted"))
    .order_by(schema.cohort.c.id)
)


@dataclass(frozen=True, kw_only=True)
class Register:
    """A promise to a group of people: their preferences as enrolled from one source."""

    id: int
    name: str
    source: str
    fingerprint: str
    levels: tuple[int, ...]  # the menu that later choices are rounded down to, in micro-ε, ascending
    members: int  # the last entry that moved anybody
    separate: bool  # the steward said that its identifiers name other people than those of other registers
    balances: str  # digest of the cohorts

    def verify(self, fingerprint: str) -> None:
        """Refuse a source that is not the one that was enrolled."""
        if fingerprint != self.fingerprint:
            raise SourceChanged(
                f"The source of register {self.name!r} is not the one that was enrolled. "
                "If the change is right, run `refresh`: nobody gets back what is spent."
            )

    def snap(self, micro_epsilon: int) -> int:
        """The largest level that does not exceed this choice; below them all, 0."""
        return max((level for level in self.levels if level <= micro_epsilon), default=0)


def load(db: sa.Connection, name: str) -> Register:
    """The register of this name."""
    row = db.execute(_NAMED, {"wanted": name}).one_or_none()
    if row is None:
        raise InvalidDeclaration(
            f"There is no register or table {name!r}. `balance` shows all; `protect` and `register` make one."
        )
    return _register(row)


def load_all(db: sa.Connection) -> tuple[Register, ...]:
    """Every register, in order of enrolment."""
    return tuple(map(_register, db.execute(sa.select(schema.register).order_by(schema.register.c.id))))


def cohorts_of(db: sa.Connection, register: Register) -> tuple[Cohort, ...]:
    """Every cohort; damage shows here, before anything is charged."""
    stored = canonical([tuple(row) for row in db.execute(_COHORTS, {"wanted": register.id})])
    if digest(stored) != register.balances:  # see `digest_cohorts`
        raise LedgerCorrupt(
            f"The balances of register {register.name!r} are not what its last entry left: the ledger is damaged or "
            "was tampered with. Nothing can be charged; run the audit."
        )
    return _cohorts(stored)


@lru_cache(maxsize=16)  # a question reads them when it is planned, and again when it is charged
def _cohorts(stored: str) -> tuple[Cohort, ...]:
    return tuple(Cohort(**dict(zip(_FIELDS, row, strict=True))) for row in json.loads(stored))


def digest_cohorts(cohorts: Iterable[Cohort]) -> str:
    """One hash for all balances of a register."""
    return digest(canonical(list(map(attrgetter(*_FIELDS), cohorts))))


def cohort_rows(register: Register, cohorts: Iterable[Cohort]) -> list[dict[str, Any]]:
    """Cohorts as rows to insert."""
    return [{"register": register.id} | {name: getattr(one, name) for name in _FIELDS} for one in cohorts]


def next_cohort(db: sa.Connection) -> int:
    """The number of the next cohort; the writer's lock makes it unique."""
    return 1 + (db.scalar(sa.select(sa.func.max(schema.cohort.c.id))) or 0)


def enroll(
    tx: Writing, name: str, people: pa.Table, *, source: str, fingerprint: str, menu: Sequence[float], separate: bool
) -> Entry | None:
    """Take a snapshot of people and preferences under a new name; None if it was taken before."""
    known = tx.db.execute(sa.select(schema.register).where(schema.register.c.name == name)).one_or_none()
    if known is not None:
        _register(known).verify(fingerprint)
        return None
    people = canonical_people(people)
    levels = levels_of(people)
    if len(levels) > MOST_LEVELS:
        raise InvalidPreference(
            f"{len(levels):,} different preferences are more than {MOST_LEVELS:,}: round them down to a menu of levels."
        )
    first = next_cohort(tx.db)
    cohorts = [
        Cohort(id=first + place, micro_allowance=level, micro_spent=0, people=count, enrolled=True)
        for place, (level, count) in enumerate(levels.items())
    ]
    register = Register(
        id=1 + (tx.db.scalar(sa.select(sa.func.max(schema.register.c.id))) or 0),
        name=name,
        source=source,
        fingerprint=fingerprint,
        levels=tuple(sorted({*levels, *allowance(list(menu)).tolist()})),
        members=tx.seq + 1,
        separate=separate,
        balances=digest_cohorts(cohorts),
    )
    insert_many(tx.db, schema.person, ((register.id, person, level, tx.seq + 1) for person, level in listed(people)))
    if not separate:
        _refuse_overlap(tx.db, register)
    return _record(tx, register, cohorts, digest_people(people))


def _record(tx: Writing, register: Register, cohorts: list[Cohort], people: str) -> Entry:
    kept = {name: getattr(register, name) for name in ("source", "fingerprint", "levels", "separate", "balances")}
    born = [[cohort.id, cohort.micro_allowance, cohort.people] for cohort in cohorts]
    entry = append(tx, "enroll", {**kept, "register": register.name, "people": people, "cohorts": born})
    tx.db.execute(
        sa.insert(schema.register).values(
            {**kept, "id": register.id, "name": register.name, "members": entry.seq}
            | {"levels": canonical(register.levels)}
        )
    )
    tx.db.execute(sa.insert(schema.cohort), cohort_rows(register, cohorts))
    return entry


def _refuse_overlap(db: sa.Connection, register: Register) -> None:
    mine, other = schema.person.alias(), schema.person.alias()
    for known in load_all(db):
        both = sa.select(1).select_from(mine.join(other, other.c.person == mine.c.person)).limit(1)
        if db.scalar(both.where(mine.c.register == register.id, other.c.register == known.id)) is not None:
            raise InvalidDeclaration(shared_people(register.name, known.name))


def shared_people(name: str, other: str) -> str:
    """Say why one person may not be in two registers."""
    return (
        f"Register {name!r} has people who are in register {other!r} already; enrolled twice, they would be charged "
        f"apart and lose up to twice what they chose. Use register={other!r} for both, or, if equal identifiers "
        "name different people there, say so with separate=True (--separate)."
    )


def whereabouts(db: sa.Connection, register: Register, person: str) -> int | None:
    """The cohort this person is in; None for a stranger."""
    change, enrolled, cohort = schema.change.c, schema.person.c, schema.cohort.c
    moved = db.scalar(
        sa.select(change.cohort)
        .where(change.register == register.id, change.person == person)
        .order_by(change.seq.desc())
        .limit(1)
    )
    if moved is not None:
        return int(moved)
    home = sa.select(cohort.id).where(
        cohort.register == register.id,
        cohort.enrolled,
        cohort.micro_allowance
        == sa.select(enrolled.micro_epsilon)
        .where(enrolled.register == register.id, enrolled.person == person)
        .scalar_subquery(),
    )
    return db.scalar(home)


def last_changes(
    db: sa.Connection, register: Register, *, at: int | None = None, origin: str | None = None
) -> Iterator[sa.Row[Any]]:
    """Everybody's last change up to entry `at`."""
    query = _last_changes(until=at is not None, by_origin=origin is not None)
    return iter(db.execute(query, {"wanted": register.id, "at": at, "whence": origin}))


@cache
def _last_changes(*, until: bool, by_origin: bool) -> sa.Select[Any]:
    change, later = schema.change, schema.change.alias()
    last = sa.select(sa.func.max(later.c.seq)).where(
        later.c.register == change.c.register, later.c.person == change.c.person
    )
    if until:
        last = last.where(later.c.seq <= sa.bindparam("at"))
    if by_origin:
        last = last.where(later.c.origin == sa.bindparam("whence"))
    wanted = sa.select(change).where(change.c.register == sa.bindparam("wanted"))
    return wanted.where(change.c.seq == last.scalar_subquery()).order_by(change.c.person)


def _register(row: sa.Row[Any]) -> Register:
    fields = dict(row._mapping)
    return Register(**{**fields, "levels": tuple(json.loads(fields["levels"]))})

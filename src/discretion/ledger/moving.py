"""Moving: somebody chooses again, joins, leaves or comes back, and what is spent goes with them.

To keep cohorts few, a new choice is rounded down to the register's levels, and what is spent may be rounded up, by at
most 2% of the allowance, to that of a cohort that exists. Both only ever make the promise stronger.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, SourceChanged
from discretion.ledger import schema
from discretion.ledger.chain import Entry, Writing, append, canonical, digest
from discretion.ledger.offer import Cohort
from discretion.ledger.people import canonical_people, insert_many
from discretion.ledger.register import (
    Register,
    cohort_rows,
    cohorts_of,
    digest_cohorts,
    last_changes,
    load,
    load_all,
    next_cohort,
    shared_people,
    whereabouts,
)
from discretion.preference import allowance

SLACK = 50  # what is spent is rounded up by at most one part in 50 of the allowance


EnteredBy = Literal["person", "steward"]  # who entered a choice


@dataclass(frozen=True, kw_only=True)
class Move:
    """One person's way from a cohort to a level."""

    person: str
    cohort: int | None  # where they are; None: they are new
    level: int | None  # micro-ε they go to; None: they are no longer in the source
    stated: int | None  # micro-ε they (or the source, for them) asked for
    origin: str  # person, source


def prefer(tx: Writing, name: str, person: str, epsilon: float, *, by: EnteredBy = "person") -> Entry:
    """Write down a new choice of somebody in the register; what is spent stays spent."""
    register, stated = load(tx.db, name), int(allowance(epsilon))
    where = whereabouts(tx.db, register, person)
    if where is None:
        raise InvalidDeclaration(f"Register {name!r} has no such person; people are added with `join`.")
    absent = tx.db.scalar(sa.select(schema.cohort.c.absent).where(schema.cohort.c.id == where))
    level = None if absent else register.snap(stated)
    move = Move(person=person, cohort=where, level=level, stated=stated, origin="person")
    return _move(tx, register, [move], facts={"by": by})


def join(tx: Writing, name: str, person: str, epsilon: float, *, by: EnteredBy = "person") -> Entry:
    """Write down somebody new, with their choice."""
    register, stated = load(tx.db, name), int(allowance(epsilon))
    if whereabouts(tx.db, register, person) is not None:
        raise InvalidDeclaration(f"This person is in register {name!r} already; a new choice is made with `prefer`.")
    move = Move(person=person, cohort=None, level=register.snap(stated), stated=stated, origin="person")
    return _move(tx, register, [move], facts={"by": by})


def refresh(tx: Writing, name: str, people: pa.Table, *, fingerprint: str, source: str) -> Entry | None:
    """Accept a changed source: its differences become changes of single people; None if nothing changed.

    A choice a person made themselves is only ever lowered by the source, never raised. People missing from the source
    are set aside with what they have spent, and find it again when they come back.
    """
    register = load(tx.db, name)
    place = {"fingerprint": fingerprint, "source": source or register.source}
    if place == {"fingerprint": register.fingerprint, "source": register.source}:
        return None
    moves = _differences(tx.db, register, canonical_people(people))
    tx.db.execute(sa.update(schema.register).where(schema.register.c.id == register.id).values(place))
    return _move(tx, register, moves, kind="refresh", facts=place)


def rename(tx: Writing, name: str, people: pa.Table, *, source: str) -> Entry | None:
    """Accept that the same source has another name; refused if it says anything else about anybody."""
    register = load(tx.db, name)
    if source != register.source and _differences(tx.db, register, canonical_people(people)):
        raise SourceChanged(
            f"Register {name!r} was enrolled from other columns, levels or a default: somebody would have another "
            "preference now. If that is right, run `refresh`: nobody gets back what is spent."
        )
    return refresh(tx, name, people, fingerprint=register.fingerprint, source=source)


def _differences(db: sa.Connection, register: Register, people: pa.Table) -> list[Move]:
    said = {row.person: row.micro_epsilon for row in last_changes(db, register, origin="source")}
    chosen = {row.person: row.micro_epsilon for row in last_changes(db, register, origin="person")}
    now = {row.person: row.cohort for row in last_changes(db, register)}
    home = {cohort.micro_allowance: cohort.id for cohort in cohorts_of(db, register) if cohort.enrolled}
    known = _snapshot(db, register)
    if not pc.any(pc.is_in(people["person"], value_set=known["person"].combine_chunks())).as_py():
        raise InvalidDeclaration(
            f"Nobody of register {register.name!r} is in this source: identifiers seem to be written in another way, "
            "and everybody would start with nothing spent. Write them as before, or enrol another register."
        )
    _refuse_other_spellings(people["person"], known["person"])
    both = people.join(known, "person", join_type="full outer")
    unlike = pc.invert(pc.fill_null(pc.equal(both["micro_epsilon"], both["enrolled"]), False))
    told = pc.is_in(both["person"], value_set=pa.array(list(said), pa.string()))
    moves = []
    for row in both.filter(pc.or_(unlike, told)).sort_by("person").to_pylist():
        person, stated, enrolled = row["person"], row["micro_epsilon"], row["enrolled"]
        if stated == said.get(person, enrolled):
            continue
        level = None if stated is None else register.snap(min(stated, chosen.get(person, stated)))
        where = now.get(person, home.get(enrolled))
        moves.append(Move(person=person, cohort=where, level=level, stated=stated, origin="source"))
    return moves


def _refuse_other_spellings(people: pa.ChunkedArray, known: pa.ChunkedArray) -> None:
    """Refuse people who were enrolled with blanks around their names: without them they would be somebody else."""
    padded = known.filter(pc.not_equal(known, pc.utf8_trim_whitespace(known)))
    if pc.any(pc.is_in(pc.utf8_trim_whitespace(padded), value_set=people.combine_chunks())).as_py():
        raise InvalidDeclaration(
            "Identifiers were enrolled with blanks around them and are written without them now, so these people would "
            "get a second allowance. Write them as before."
        )


def _snapshot(db: sa.Connection, register: Register) -> pa.Table:
    """Everybody, and the preference that the source stated when it was enrolled (none for those who came later)."""
    person = schema.person.c
    first = sa.select(sa.func.min(person.seq)).where(person.register == register.id).scalar_subquery()
    stated = sa.case((person.seq == first, person.micro_epsilon))
    rows = db.execute(sa.select(person.person, stated).where(person.register == register.id)).all()
    names, levels = zip(*rows, strict=True)
    return pa.table({"person": pa.array(names, pa.string()), "enrolled": pa.array(levels, pa.int64())})


def _move(
    tx: Writing,
    register: Register,
    moves: Sequence[Move],
    *,
    kind: str = "change",
    facts: Mapping[str, Any] | None = None,
) -> Entry:
    before = {cohort.id: cohort for cohort in cohorts_of(tx.db, register)}
    after, placed = _place_all(before, {(move.cohort, move.level) for move in moves}, next_cohort(tx.db))
    flows: dict[tuple[int | None, int], int] = defaultdict(int)
    for move in moves:
        flows[move.cohort, placed[move.cohort, move.level]] += 1
    for (old, new), count in flows.items():
        after[new] = replace(after[new], people=after[new].people + count)
        if old is not None:
            after[old] = replace(after[old], people=after[old].people - count)
    rows = [
        (register.id, move.person, tx.seq + 1, placed[move.cohort, move.level], move.stated, move.origin)
        for move in moves
    ]
    newcomers = [(register.id, move.person, move.stated, tx.seq + 1) for move in moves if move.cohort is None]
    if not register.separate:
        _refuse_familiar(tx.db, register, [row[1] for row in newcomers])
    entry = append(
        tx,
        kind,
        {
            **(facts or {}),
            "register": register.name,
            "changes": digest_changes(row[1:] for row in rows),
            "created": [born(cohort) for cohort in after.values() if cohort.id not in before],
            "flows": [[old, new, count] for (old, new), count in flows.items()],
            "balances": digest_cohorts(after.values()),
        },
    )
    insert_many(tx.db, schema.person, newcomers)
    insert_many(tx.db, schema.change, rows)
    _store(tx.db, register, before, after, entry)
    return entry


def digest_changes(changes: Iterable[Sequence[Any]]) -> str:
    """One hash for the changes of an entry: (person, entry, cohort, stated, origin), in order of the person."""
    return digest(canonical(sorted(map(list, changes))))


def born(cohort: Cohort) -> list[int]:
    """A cohort at its creation, as an entry tells it."""
    return [
        cohort.id,
        cohort.micro_allowance,
        cohort.micro_spent,
        cohort.pico_delta,
        cohort.micro_individual,
        int(cohort.absent),
    ]


def _place_all(
    cohorts: Mapping[int, Cohort], ways: Iterable[tuple[int | None, int | None]], number: int
) -> tuple[dict[int, Cohort], dict[tuple[int | None, int | None], int]]:
    """A cohort for every (cohort, level) that somebody moves between; new ones are numbered from `number`."""
    after, placed = dict(cohorts), {}
    kin: dict[tuple[int, bool], list[Cohort]] = defaultdict(list)
    for cohort in cohorts.values():
        kin[cohort.micro_allowance, cohort.absent].append(cohort)
    nobody = Cohort(id=0, micro_allowance=-1, micro_spent=0, people=0)
    start = {None: nobody} | {cohort.id: cohort for cohort in cohorts.values()}
    # those who have spent most first: whoever follows finds their cohort just above
    for old, level in sorted(ways, key=lambda way: (-start[way[0]].micro_spent, way[0] or 0, way[1] or 0)):
        current = start[old]
        relatives = kin[level or 0, level is None]
        stays = (current.micro_allowance, current.absent) == (level or 0, level is None)
        target = current if stays else _nearest(relatives, current, level or 0)
        if target is None:
            target = replace(
                current, id=number, micro_allowance=level or 0, absent=level is None, people=0, enrolled=False
            )
            number += 1
            relatives.append(target)
            after[target.id] = target
        placed[old, level] = target.id
    return after, placed


def _nearest(relatives: Iterable[Cohort], current: Cohort, level: int) -> Cohort | None:
    most = current.micro_spent + max(level, current.micro_spent) // SLACK
    fitting = [
        one
        for one in relatives
        if current.micro_spent <= one.micro_spent <= most
        and (one.pico_delta, one.micro_individual) == (current.pico_delta, current.micro_individual)
    ]
    return min(fitting, key=lambda one: (one.micro_spent, one.id), default=None)


def _refuse_familiar(db: sa.Connection, register: Register, people: Sequence[str]) -> None:
    person = schema.person.c
    others = {other.id: other.name for other in load_all(db) if other.id != register.id}
    for start in range(0, len(people), 500):
        known = sa.and_(person.register.in_(list(others)), person.person.in_(people[start : start + 500]))
        found = db.scalar(sa.select(person.register).where(known).limit(1)) if others else None
        if found is not None:
            raise InvalidDeclaration(shared_people(register.name, others[found]))


def _store(
    db: sa.Connection, register: Register, before: Mapping[int, Cohort], after: Mapping[int, Cohort], entry: Entry
) -> None:
    cohort = schema.cohort.c
    counted = [
        {"key": key, "count": after[key].people} for key, one in before.items() if one.people != after[key].people
    ]
    if counted:
        change = sa.update(schema.cohort).where(cohort.id == sa.bindparam("key"))
        db.execute(change.values(people=sa.bindparam("count")), counted)
    fresh = [after[key] for key in after if key not in before]
    if fresh:
        db.execute(sa.insert(schema.cohort), cohort_rows(register, fresh))
    db.execute(
        sa.update(schema.register)
        .where(schema.register.c.id == register.id)
        .values(members=entry.seq, balances=entry.facts["balances"])
    )
